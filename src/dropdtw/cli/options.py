"""Options that several commands share, and how their values are parsed."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote

import typer

from dropdtw import drops
from dropdtw.drops import DropCost
from dropdtw.orders.blocks import Steps
from dropdtw.problem.charges import Opening
from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array

if TYPE_CHECKING:
    from dropdtw.aligner import Aligner

NOTHING = "none"

T = TypeVar("T")


OrderFile = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="FILE",
        help='File that says which steps may follow which: text with one step per line and blocks such as "any '
        'order:", or JSON such as {"before": [[0, 2]]}. The documentation lists all forms.',
    ),
]


def _load_settings(ctx: typer.Context, place: str | None) -> str | None:
    """Make the options of a stored `Aligner` the defaults of this command; flags override them."""
    if place is None or ctx.resilient_parsing:
        return place
    aligner = stored_aligner(place)
    taken = {parameter.name for parameter in ctx.command.params}
    values: dict[str, Any] = {"drop_x": NOTHING, "drop_z": NOTHING}  # here, none means that nothing may be dropped
    stored = aligner.to_dict()
    if "method" not in taken and aligner.method == "steps":  # `find` has no other method than Drop-DTW
        del stored["method"]
        stored |= aligner.spec.matching._asdict()
    for name, value in stored.items():
        if name in ("reducer", "gamma", "normalize"):  # they concern values, not alignments
            continue
        if name not in taken:
            raise OptionError(
                name, getattr(aligner, name), "leave it out", f" in {place}, which this command does not take"
            )
        if isinstance(value, (list, dict)) and name != "anchors":
            raise OptionError(name, value, "give a file with its flag", f" in {place}, and this command takes a file")
        values[name] = value if isinstance(value, bool) else str(value)
    ctx.default_map = {name: value for name, value in values.items() if name in taken}
    return place


def stored_aligner(place: str) -> Aligner:
    """Read the file of `--settings`."""
    from dropdtw.aligner import Aligner
    from dropdtw.files import jsons

    return parsed(place, lambda text: Aligner.from_dict(jsons.loads(text)), "settings")


Settings = Annotated[
    str | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        is_eager=True,
        callback=_load_settings,
        help="Options of an alignment as JSON, as Aligner.to_dict writes them; flags override them.",
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether .csv, .tsv and .txt files begin with a line of column names. Default: detected. A first "
        "line without numbers is one, and so is 0,1,2,…, the column names that pandas writes by default.",
    ),
]


Fps = Annotated[float | None, typer.Option("--fps", help="Elements of the second sequence per second; adds times.")]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="NAME",
        help="The column of the second file, a .csv, .tsv or .txt, that holds times (seconds, h:mm:ss or dates); adds "
        "times to the output. The column itself is not aligned. The first file may have it, too; if its times have "
        "another name, give both: UPTIME,TIME.",
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="NAME",
        help="The column of the sequences, .csv, .tsv or .txt files, that holds times and is not aligned. The query "
        "may have it, too; if its times have another name, give both: UPTIME,TIME.",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="drop",
        help="drop: ignore elements with NaN or an empty cell, as if deleted. Default: refuse them.",
    ),
]


def check_clock(fps: float | None, time: str | None) -> None:
    """Raise if the times of the second sequence are given twice, or at an impossible rate."""
    if fps is not None and time is not None:
        raise ValueError("--fps and --time both set the times of the second sequence; give only one of them")
    if fps is not None and not 0 < fps < float("inf"):
        raise ValueError(f"--fps is {fps}; give the number of elements per second, > 0")


def holes(missing: str | None) -> dict[str, Any]:
    """How `formats.read` treats missing values under the option --missing."""
    if missing not in (None, "drop"):
        raise ValueError(f"--missing is {missing!r}; give drop, or omit it to refuse NaN")
    return {"holes": True} if missing else {"or_else": ", or give --missing drop to ignore them"}


def complete(A: Array) -> Array:
    """The elements without missing values."""
    import numpy as np

    return np.asarray(A[~np.isnan(A).any(axis=1)])


def drop_cost(text: str | None, name: str) -> DropCost:
    """Parse the value of `--drop-x` or a similar option. None and "none" give None; "suggest" stays as it is."""
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
            raise ValueError(f"--{name} is {text}, which has {values.shape[1]} numbers per row; give one per element")
        return values[:, 0]
    try:
        drops.resolve(text, name)
    except ValueError:
        if name == "threshold":
            raise ValueError(f"--threshold is {text!r}; give a number, percentile:30 or suggest") from None
        logit = "logit:30, " if name == "drop-x" else ""
        raise ValueError(
            f"--{name} is {text!r}; give a number, percentile:30, {logit}suggest, none, or an existing file"
        ) from None
    return text


def parsed(place: str, parse: Callable[[str], T], holding: str) -> T:
    """Read and parse a text file. `holding` says what should be in it, for error messages."""
    from dropdtw.files import formats, texts

    content, shown = formats.content_of(place, holding)
    text = texts.decoded(content, shown)
    if not text.strip("\ufeff \t\r\n"):
        raise ValueError(f"{shown} is empty; give a file with {holding}")
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from None


def order_of(place: str, steps: Sequence[str] | int) -> Steps:
    """Read the file of `--order`. `steps` are the names of the steps, or their number."""
    from dropdtw.orders import parse_steps

    return parsed(place, lambda text: parse_steps(text, steps), "an order")


def with_optional(drop_z: DropCost, optional: Sequence[int], K: int) -> DropCost:
    """The drop costs of K steps: 0 for optional ones, `drop_z` for the rest. Without `drop_z`, the rest are kept."""
    import numpy as np

    if not optional:
        return drop_z
    if isinstance(drop_z, str):
        raise ValueError(
            f"--drop-z is {drop_z!r}, but the order has optional steps, which are dropped for free; give a number, or "
            "omit --drop-z so that only optional steps are dropped"
        )
    found = np.broadcast_to(np.inf if drop_z is None else np.asarray(drop_z, np.float64), (K,)).copy()
    found[list(optional)] = 0.0
    return found


def opening_cost(text: str | None, name: str) -> Opening:
    """Parse the value of `--open-x` or `--open-z`; None gives 0."""
    if text is None or text == "suggest":
        return text or 0.0
    from dropdtw.files import tables

    try:
        return tables.number(text)
    except ValueError:
        raise ValueError(f"--{name} is {text!r}; give a number, or suggest") from None


def refuse_overwriting(outputs: Mapping[str, str | os.PathLike[str] | None], inputs: Iterable[str | None]) -> None:
    """Refuse to overwrite an input. Compares the files, not their names, so links and redirections are noticed.

    outputs : the files to write, by option.   inputs : the files to read, as `formats.read` takes them, or None.
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
                raise ValueError(f"{option} is {out}, which would overwrite an input ({same}); give another file")


def refuse_one_stream(**places: str | None) -> None:
    """Refuse to read standard input twice. places : the files to read, by argument; underscores begin an option."""
    twice = [name.replace("_", "--", 1) for name, place in places.items() if place == "-"]
    if len(twice) > 1:
        raise ValueError(
            f"{twice[0]} and {twice[1]} are both '-', but standard input can be read only once; give one of them as a "
            "file"
        )


def kind_of_output(out: str | None, kinds: Sequence[str], what: str) -> str:
    """The extension of --out: JSON for standard output, "" if nothing is written. Raises unless it is one of `kinds`.

    what : what is written.
    """
    kind = ".json" if out == "-" else Path(out).suffix.lower() if out else ""
    if out and kind not in kinds:
        known = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        raise ValueError(f"--out is {out!r}; {what} are written as {known}: change the file extension")
    return kind


def format_of(form: str | None, out: str | None, ends: Mapping[str, str], formats: Iterable[str]) -> str | None:
    """The format to write, from --format or, by `ends`, from the extension of --out; None for only a table."""
    if form is None and out is not None:
        form = ends.get(Path(out).suffix.lower())
        if form is None:
            raise ValueError(
                f"--out is {out!r}, whose extension is not a known format; use {', '.join(ends)}, or add --format "
                f"{'|'.join(formats)}"
            )
    if form is not None and form not in formats:
        raise ValueError(f"--format is {form!r}; choose one of {', '.join(formats)}")
    return form


def address_of(recording: str, out: str | None, name: str) -> str:
    """The address of a recording on a page: relative to the page, or as it is if it is on the web.

    name : of the argument that gives it, for errors.
    """
    from dropdtw.text.page import REMOTE

    if recording.startswith(REMOTE):
        return recording
    path = Path(recording)
    if not path.is_file():
        raise ValueError(f"{name} is {recording}, which is not a file; give a file, or an address with https://")
    if out in (None, "-"):
        return path.resolve().as_uri()
    assert out is not None
    try:
        return quote(Path(os.path.relpath(path.resolve(), Path(out).resolve().parent)).as_posix())
    except ValueError:  # on another drive
        return path.resolve().as_uri()


def outlasting(what: str, times: Sequence[tuple[float, float]], recording: str) -> str | None:
    """A note if what is said begins more than a second after the end of the recording; else None.

    what : its name in the note.   times : when each part of it begins and ends.
    recording : its file. If its length is not known, for want of an extra or because it cannot be read: None.
    """
    from dropdtw.media.sound import duration
    from dropdtw.text.labels import clock

    try:
        length = duration(recording)
    except ImportError:
        return None
    if length is None or not times or max(start for start, _ in times) <= length + 1:
        return None
    return (
        f"{what} run to {clock(max(stop for _, stop in times))}, but {recording} lasts {clock(length)}; check that "
        "they belong together"
    )


def _regular(name: str, stream: Any) -> os.stat_result | None:
    """The status of an existing regular file, or None. "-" is the file that `stream` is redirected to."""
    try:
        found = os.fstat(stream.fileno()) if name == "-" else os.stat(name)
    except (OSError, ValueError, AttributeError):  # no such file, or a stream without a file behind it
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def window_width(text: str | None, name: str = "window") -> float | None:
    """Parse the value of `--window`: an integer counts columns, a number with a decimal point is a fraction of X."""
    if text is None:
        return None
    if text.removeprefix("+").isdecimal():
        return int(text)
    try:
        fraction = float(text)
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction <= 1:
        raise ValueError(f"--{name} is {text!r}; give a number of columns (20) or a fraction of X (0.1)")
    return fraction


def anchors(text: str | None, name: str = "anchors") -> list[tuple[int, int]] | None:
    """Parse the value of `--anchors`: pairs such as 3,40 7,95, or the JSON of an `Aligner`."""
    if text is None:
        return None
    numbers = [part for part in re.split(r"[\s,;()\[\]]+", text) if part]
    if len(numbers) % 2 or not numbers or not all(part.isdecimal() for part in numbers):
        raise ValueError(f"--{name} is {text!r}; give pairs of indices, counted from 0: z_3 with x_40 is 3,40")
    places = [int(part) for part in numbers]
    return list(zip(places[::2], places[1::2], strict=True))
