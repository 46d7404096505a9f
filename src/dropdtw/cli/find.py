"""`dropdtw find`: find every occurrence of a query in a signal, and show or write them."""

from __future__ import annotations

import csv
import io as memory
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dropdtw.cli import options, pictures, screen
from dropdtw.cli.flags import Flags, of_alignment

if TYPE_CHECKING:
    from dropdtw.problem.inputs import Array
    from dropdtw.search.find import Occurrence

SHOWN = 20
"""Maximum number of occurrences listed on screen."""


@of_alignment(drop_x=options.NoDropX, without=("method", "window", "threshold"))
def find(
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="What to look for: .npy, .npz, .csv, .parquet, .jsonl …; - for stdin."),
    ],
    signal: Annotated[str, typer.Argument(metavar="SIGNAL", help="Where to look; at least as long as QUERY.")],
    k: Annotated[
        int | None, typer.Option("-k", help="Maximum number of occurrences (default: 10; with --max-cost, no limit).")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", metavar="COST", help="Maximum cost of an occurrence.")
    ] = None,
    overlap: Annotated[
        float,
        typer.Option(metavar="FRACTION", help="Allowed overlap of two occurrences: a fraction of the shorter, 0 to 1."),
    ] = 0.0,
    *,
    flags: Flags,
    time: options.Time = None,
    missing: options.Missing = None,
    header: options.Header = None,
    fps: Annotated[float | None, typer.Option(help="Elements of SIGNAL per second; adds times in seconds.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write to a .json or .csv file; - for JSON on stdout.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the occurrences to a .png, .svg or .pdf file.")] = None,
) -> None:
    """Find every occurrence of a query in a longer signal, best first.

    Inside an occurrence, --drop-x is the cost of dropping an element of SIGNAL (X), and --drop-z the cost of dropping
    one of QUERY (Z). Without them, every element inside is matched. Elements outside cost nothing.
    """
    import dropdtw
    from dropdtw.files import formats

    if query == signal == "-":
        raise ValueError(
            "QUERY and SIGNAL are both '-', but standard input can be read only once; give one of them as a file"
        )
    if fps is not None and not 0 < fps < float("inf"):
        raise ValueError(f"--fps is {fps}; give the number of elements per second, > 0")
    if fps is not None and time is not None:
        raise ValueError("--fps and --time both set the times of SIGNAL; give only one of them")
    kind = ".json" if out == "-" else Path(out).suffix.lower() if out else ""
    if out and kind not in (".json", ".csv"):
        raise ValueError(f"--out is {out!r}; occurrences are written as .json or .csv: change the file extension")
    if plot:
        pictures.check(plot)
    options.refuse_overwriting({"--out": out, "--plot": plot}, (query, signal, *flags.files))
    Z, X, times = formats.read_pair(query, signal, header=header, time=time, **options.holes(missing))
    seconds = None if fps is None and times is None else formats.borders(len(X), fps, times)
    how = flags.parsed()
    found = dropdtw.find(Z, X, k, max_cost, overlap, missing=missing, **how)
    if out:
        screen.write(out, _content(found, kind, seconds))
    if plot:
        from dropdtw.plot import occurrences

        pictures.save(occurrences(X, found), plot)
    if out != "-":
        measure = dropdtw.costs.resolve(how["match"], Z.shape[1]).name
        print(f"{measure} costs: {len(Z)} z in {len(X)} x, {len(found)} occurrence{'' if len(found) == 1 else 's'}")
        _show(found, seconds)


def _show(found: Sequence[Occurrence], seconds: Array | None) -> None:
    if not found:
        return
    columns = [
        ">#",
        ">cost",
        ">start",
        ">stop",
        ">length",
        ">dropped x",
        ">dropped z",
        *([] if seconds is None else [">from", ">to"]),
    ]
    rows = []
    for n, o in enumerate(found[:SHOWN], 1):
        lost = (int(o.alignment.dropped_x.sum()), int(o.alignment.dropped_z.sum()))
        rows.append([str(n), f"{o.cost:.6g}", *map(str, (o.start, o.stop, o.length, *lost))])
        rows[-1] += [] if seconds is None else [f"{seconds[o.start]:.2f} s", f"{seconds[o.stop]:.2f} s"]
    screen.table(columns, rows)
    if len(found) > SHOWN:
        print(f"… and {len(found) - SHOWN} more; --out writes them all")


def _content(found: Sequence[Occurrence], kind: str, seconds: Array | None) -> str:
    entries: list[dict[str, Any]] = []
    for n, o in enumerate(found, 1):
        entry: dict[str, Any] = {"rank": n, "start": o.start, "stop": o.stop, "cost": o.cost}
        if seconds is not None:
            entry |= {"from": float(seconds[o.start]), "to": float(seconds[o.stop])}
        entries.append(entry)
    if kind == ".json":
        for entry, o in zip(entries, found, strict=True):
            entry["dropped_x"] = [o.start + j for j in o.alignment.dropped_x.nonzero()[0].tolist()]
            entry["dropped_z"] = o.alignment.dropped_z.nonzero()[0].tolist()
        return json.dumps({"occurrences": entries}, indent=1, allow_nan=False) + "\n"
    out = memory.StringIO()
    columns = ["rank", "start", "stop", "cost", *([] if seconds is None else ["from", "to"])]
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(entries)
    return out.getvalue()
