"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from dropdtw import drops
from dropdtw.cli import screen
from dropdtw.drops import DropCost
from dropdtw.orders.blocks import Steps
from dropdtw.problem.charges import Opening
from dropdtw.problem.inputs import Array
from dropdtw.tables.methods import METHODS

NOTHING = "none"

T = TypeVar("T")

DropX = Annotated[
    str | None,
    typer.Option(
        "--drop-x",
        metavar="COST",
        help="What leaving out an element of X costs: a number, percentile:30 (of the match costs; lower drops more), "
        "logit:30 (with softmax), a file with one number per element, suggest, or none (nothing may be left out).",
    ),
]
DropZ = Annotated[str | None, typer.Option("--drop-z", metavar="COST", help="The same for an element of Z.")]
OpenX = Annotated[
    str | None,
    typer.Option(
        "--open-x",
        metavar="COST",
        help="What each run of left-out elements of X costs on top, so that junk goes in few long runs: a number, or "
        "suggest. Default: 0.",
    ),
]
OpenZ = Annotated[str | None, typer.Option("--open-z", metavar="COST", help="The same for runs of Z.")]
Warp = Annotated[
    float, typer.Option("--warp", metavar="COST", help="What a match that repeats an element costs on top: a number.")
]
Match = Annotated[
    str,
    typer.Option(
        "--match",
        help="auto (euclidean for plain numbers, cosine for vectors), cosine, softmax, softmax:0.1, euclidean, "
        "sqeuclidean, cityblock, chebyshev or correlation.",
    ),
]
Method = Annotated[str, typer.Option("--method", help=", ".join(METHODS) + ".")]
OneToMany = Annotated[bool, typer.Option(help="One z may match several x.")]
ManyToOne = Annotated[bool, typer.Option(help="One x may match several z.")]
Contiguous = Annotated[bool, typer.Option(help="No x is dropped inside the run of a z.")]
Window = Annotated[
    str | None,
    typer.Option(
        "--window", metavar="W", help="Forbid matches far from the diagonal: 20 (columns) or 0.1 (share of X)."
    ),
]
Threshold = Annotated[
    str | None, typer.Option("--threshold", metavar="COST", help="For lcss and edr: a number or percentile:30.")
]

OrderFile = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="FILE",
        help='Which steps may follow which: JSON ({"before": [[0, 2]]}, a task graph with steps and edges, or what '
        "Order.to_dict gives), or a step to a line with blocks such as `any order:`.",
    ),
]

Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether sequences in .csv, .tsv and .txt begin with a line of names. Default: if it holds no number, or "
        "0,1,2 … as pandas writes.",
    ),
]


def drop_cost(text: str | None, name: str) -> DropCost:
    """What `--drop-x` and its like say; "none" and nothing at all are None, "suggest" stays a word."""
    if text is None or text.lower() == NOTHING:
        return None
    if text == "suggest":
        return text
    from dropdtw.files import formats, tables

    try:
        return tables.number(text)
    except ValueError:
        pass
    if Path(text).exists():
        values = formats.read(text)
        if values.shape[1] != 1:
            raise ValueError(f"--{name} is {text}, which holds {values.shape[1]} numbers a row; give one per element")
        return values[:, 0]
    try:
        drops.resolve(text, name)
    except ValueError:
        raise ValueError(
            f"--{name} is {text!r}; give a number, percentile:30, logit:30, suggest, none, or an existing file"
        ) from None
    return text


def parsed(place: str, parse: Callable[[str], T], holding: str) -> T:
    """What a text says; `holding` is what should be in it."""
    from dropdtw.files import formats, texts

    content, shown = formats.content_of(place, holding)
    text = texts.decoded(content, shown)
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from None


def order_of(place: str, steps: Sequence[str] | int) -> Steps:
    """What `--order` says of these steps, or of so many."""
    from dropdtw.orders import parse_steps

    return parsed(place, lambda text: parse_steps(text, steps), "an order")


def with_optional(drop_z: DropCost, optional: Sequence[int], K: int) -> DropCost:
    """Drop costs of K steps of which some may be left out for free; without others, the rest may not."""
    import numpy as np

    if not optional:
        return drop_z
    if isinstance(drop_z, str):
        raise ValueError(
            f"--drop-z is {drop_z!r}, but the order has optional steps, which are dropped for free; give a number, or "
            "leave it out: then the others are not dropped"
        )
    found = np.broadcast_to(np.inf if drop_z is None else np.asarray(drop_z, np.float64), (K,)).copy()
    found[list(optional)] = 0.0
    return found


def opening_cost(text: str | None, name: str) -> Opening:
    """What `--open-x` and its like say; nothing at all is 0."""
    if text is None or text == "suggest":
        return text or 0.0
    from dropdtw.files import tables

    try:
        return tables.number(text)
    except ValueError:
        raise ValueError(f"--{name} is {text!r}; give a number, or suggest") from None


def refuse_overwriting(outputs: Mapping[str, str | os.PathLike[str] | None], inputs: Iterable[str | None]) -> None:
    """Refuse to write over what is read. Files are compared, not names: links and redirections are seen through.

    outputs : the files to be written, by option.   inputs : what is read, as `formats.read` takes it; None is nothing.
    """
    from dropdtw.files import formats

    for option, out in outputs.items():
        there = None if out is None else _regular(os.fspath(out), sys.stdout)
        if there is None:
            continue
        for name in inputs:
            read = None if name is None else _regular(formats.file_of(name), sys.stdin)
            if read is not None and os.path.samestat(there, read):
                same = "standard input" if name == "-" else name
                raise ValueError(f"{option} is {out}, which would overwrite what is read ({same}); give another file")


def _regular(name: str, stream: Any) -> os.stat_result | None:
    """A file that is there and can be overwritten; "-" is what `stream` is redirected to."""
    try:
        found = os.fstat(stream.fileno()) if name == "-" else os.stat(name)
    except (OSError, ValueError, AttributeError):  # not there, or a stream without a file behind it
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def takes_a_suggestion(drop_x: str | None, drop_z: str | None, method: str) -> bool:
    """Whether nothing is said about drop costs, and the method has them."""
    return drop_x is None and drop_z is None and method in METHODS and METHODS[method].takes_drops


def suggested(Z: Array, some: Sequence[Array], total: int, how: Mapping[str, Any]) -> float:
    """A drop cost for both sides that suits a query with some sequences of a corpus; says so."""
    import numpy as np

    import dropdtw

    if not some:
        raise ValueError("there is no readable sequence to suggest a drop cost from; give --drop-x and --drop-z")
    found = [dropdtw.suggest_drop(Z, X, drop_z=True, **how) for X in some]
    constant = float(np.median([s.constant for s in found]))
    sure = float(np.mean([s.confidence for s in found]))
    screen.note(
        f"drop cost {constant:.4g} suggested for both sides, from {len(found)} of {total} sequences "
        f"(confidence {sure:.0%})"
    )
    return constant


def suggested_openings(Z: Array, some: Sequence[Array], total: int, how: Mapping[str, Any]) -> dict[str, float]:
    """Opening costs, where they are to be suggested, that suit a query with some sequences of a corpus; says so.

    how : keyword arguments of `dropdtw.align`, with the drop costs.
    """
    import numpy as np

    from dropdtw.problem.problem import Problem
    from dropdtw.problem.spec import Spec

    wanted = [name for name in ("open_x", "open_z") if how[name] == "suggest"]
    spec = Spec.of(**how)
    if not wanted:
        return {}
    found = [Problem.of_sequences(spec, Z, X).given.charges for X in some if spec.fits(len(Z), len(X))]
    if not found:
        raise ValueError(f"there is no sequence to suggest {wanted[0]} from; give a number")
    openings = {name: float(np.median([getattr(charges, name) for charges in found])) for name in wanted}
    for name, cost in openings.items():
        screen.note(f"opening cost {cost:.4g} suggested for {name[-1]}, from {len(found)} of {total} sequences")
    return openings


def window_width(text: str | None) -> float | None:
    """What `--window` says: an int is a count of columns, a number with a point a share."""
    if text is None:
        return None
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise ValueError(f"--window is {text!r}; give a count of columns (20) or a share of X (0.1)") from None
