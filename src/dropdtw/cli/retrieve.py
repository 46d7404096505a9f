"""`dropdtw retrieve`: rank the sequences of a folder by the cost of aligning them with a query."""

from __future__ import annotations

import csv
import io as memory
import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dropdtw.cli import options, screen
from dropdtw.cli.flags import FILE, Flags, of_alignment
from dropdtw.files.sanitize import cell
from dropdtw.problem.missing import present
from dropdtw.problem.options import MethodOptions

if TYPE_CHECKING:
    from dropdtw.files.tables import Table
    from dropdtw.problem.inputs import Array

CHUNK = 1 << 26
"""Bytes of sequences that are read before they are aligned."""


@of_alignment(
    MethodOptions,
    drop_x=f"{FILE}Default: suggest; none if --drop-z is given.",
    drop_z="Default: suggest; none if --drop-x is given.",
)
def retrieve(
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="The sequence to look for (Z); - for stdin."),
    ],
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="A folder with one sequence per file, or an .npz with one per array. "
            "For Parquet, see: dropdtw corpus retrieve.",
        ),
    ],
    top: Annotated[int, typer.Option(min=1, help="Number of sequences to show.")] = 10,
    *,
    flags: Flags,
    time: options.TimeColumn = None,
    missing: options.Missing = None,
    header: options.Header = None,
    mean: Annotated[
        bool, typer.Option("--mean", help="Rank by cost per element, so that long sequences are not penalized.")
    ] = False,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Report unreadable files and skip them.")] = False,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the ranking to a .json or .csv file; - for JSON on stdout.")
    ] = None,
) -> None:
    """Rank the sequences of a folder by the cost of aligning them with a query, on all cores.

    Without --drop-x and --drop-z, one drop cost is suggested from a few sequences and used for X and Z.
    """
    from dropdtw.files import formats

    kind = options.kind_of_output(out, (".json", ".csv"), "rankings")
    names = formats.sequences(corpus)
    options.refuse_overwriting({"--out": out}, (query, *names, *flags.files))
    if out and out != "-" and Path(corpus).resolve() in Path(out).resolve().parents:
        raise ValueError(
            f"--out is {out}, which is in the folder to search: the next search would take it for a sequence; "
            "give a file elsewhere"
        )
    of_query, of_corpus, both = formats.both_times(time)
    how_to_read = {"header": header, "time": of_corpus, **options.holes(missing)}
    table = formats.read_table(query, needed=both, **{**how_to_read, "time": of_query})
    whole, Z = table.values, present(table.values, query, missing)[0]
    reader = Reader(query, table, of_query, skip_broken, missing, how_to_read)
    how = flags.priced(lambda: (Z, _some(names, reader), len(names)))
    ranking: list[tuple[float, str, int]] = []
    with screen.progress("aligning", len(names)) as advance:
        for chunk in _chunks(names, reader, advance):
            lengths = [len(present(X, name, missing)[0]) for name, X in chunk]
            found = _costs(whole, [X for _, X in chunk], None if mean else top, how, missing)
            ranking += [(cost / (len(Z) + lengths[k]) if mean else cost, chunk[k][0], lengths[k]) for k, cost in found]
            ranking = sorted(ranking)[:top]
            advance(len(chunk))
    if reader.numbered > 1:
        screen.note(f"the same holds for {reader.numbered - 1} more files")
    if not ranking:
        raise ValueError(f"{corpus} holds no readable sequence; check the messages above")
    if out:
        screen.write(out, _content(ranking, kind))
    if out != "-":
        rows = [[str(n), f"{cost:.6g}", str(length), name] for n, (cost, name, length) in enumerate(ranking, 1)]
        screen.table([">#", ">cost", ">length", "sequence"], rows)


@dataclass
class Reader:
    """Reads the sequences of a corpus, with columns in the order of the query's.

    query, table : the name of the query, and its content.
    time : its column of times.   missing : as in `dropdtw.align`.
    how : keyword arguments of `formats.read_table`.
    numbered : how many files had numbered columns or rows; only the first is reported.
    """

    query: str
    table: Table
    time: str | None
    skip_broken: bool
    missing: str | None
    how: dict[str, Any]
    numbered: int = 0

    def read(self, name: str, *, quiet: bool = False) -> Array | None:
        """Read a sequence; None if it is broken and skipped. quiet : print no notes."""
        from dropdtw.files import formats

        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = formats.read_table(name, **self.how)
            X = formats.in_order_of(self.table, found, self.query, name, (self.time, self.how["time"]))
            if X.shape[1] != (wanted := self.table.values.shape[1]):
                raise ValueError(f"{name} has {X.shape[1]} features and the query {wanted}; both need the same number")
            present(X, name, self.missing)  # raises if nothing is left
        except (ValueError, OSError) as error:
            if not self.skip_broken:
                raise ValueError(f"{error} (--skip-broken skips such files)") from None
            if not quiet:
                screen.note(f"skipped: {error}")
            return None
        if said and not quiet:
            self.numbered += 1
            if self.numbered == 1:
                screen.note(str(said[0].message))
        return X


def _chunks(names: list[str], reader: Reader, advance: Any) -> Iterator[list[tuple[str, Array]]]:
    """Read the sequences in chunks of bounded size, each with its name."""
    chunk: list[tuple[str, Array]] = []
    held = 0
    for name in names:
        X = reader.read(name)
        if X is None:
            advance(1)
            continue
        chunk.append((name, X))
        held += X.nbytes
        if held >= CHUNK or len(chunk) >= 1024:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


def _costs(
    Z: Array, Xs: list[Array], top: int | None, how: dict[str, Any], missing: str | None
) -> list[tuple[int, float]]:
    """Indices and costs of sequences: of the `top` nearest if lower bounds can prune the others, else of all."""
    import dropdtw

    if top is not None and all(d is None or isinstance(d, float) for d in (how["drop_x"], how["drop_z"])):
        Z, *Xs = (present(A, "a sequence", missing)[0] for A in (Z, *Xs))
        found = dropdtw.nearest(Z, Xs, top, **how, progress=False)
        return list(zip(found.indices.tolist(), found.costs.tolist(), strict=True))
    # There is a single row of pairs, so each thread takes a part of it.
    from dropdtw.search.pairwise import thread_count, useful_threads

    threads = useful_threads(min(len(Xs), thread_count(-1)), len(Z) * sum(map(len, Xs)) / len(Xs))
    parts = [Xs[k::threads] for k in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        alone: dict[str, Any] = {"n_jobs": 1, "progress": False, "missing": missing, **how}
        rows = list(pool.map(lambda part: dropdtw.pairwise([Z], part, **alone)[0], parts))
    return [(k + threads * n, cost) for k, row in enumerate(rows) for n, cost in enumerate(row.tolist())]


def _some(names: list[str], reader: Reader) -> list[Array]:
    """A few readable sequences without their missing elements, spread over the corpus."""
    import numpy as np

    some = [names[k] for k in sorted({round(k) for k in np.linspace(0, len(names) - 1, min(8, len(names)))})]
    found = ((name, reader.read(name, quiet=True)) for name in some)
    return [present(X, name, reader.missing)[0] for name, X in found if X is not None]


def _content(ranking: list[tuple[float, str, int]], kind: str) -> str:
    if kind == ".json":
        entries = [
            {"rank": n, "sequence": name, "cost": cost if cost < float("inf") else None, "length": length}
            for n, (cost, name, length) in enumerate(ranking, 1)
        ]
        return json.dumps({"nearest": entries}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    out = memory.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["rank", "sequence", "cost", "length"])
    table.writerows([n, cell(name), cost, length] for n, (cost, name, length) in enumerate(ranking, 1))
    return out.getvalue()
