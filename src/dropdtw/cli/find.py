"""`dropdtw find`: find every occurrence of a query in a signal, and show or write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dropdtw.cli import options, pictures, screen
from dropdtw.cli.flags import FILE, Flags, of_alignment
from dropdtw.problem.options import OpeningOptions

if TYPE_CHECKING:
    from dropdtw.search.find import Occurrence

SHOWN = 20
"""Maximum number of occurrences listed on screen."""


@of_alignment(OpeningOptions, drop_x=f"{FILE}Default: none.", drop_z="Default: none.")
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
    fps: options.Fps = None,
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

    options.refuse_one_stream(QUERY=query, SIGNAL=signal)
    options.check_clock(fps, time)
    kind = options.kind_of_output(out, (".json", ".csv"), "occurrences")
    if plot:
        pictures.check(plot)
    options.refuse_overwriting({"--out": out, "--plot": plot}, (query, signal, *flags.files))
    Z, X, times = formats.read_pair(query, signal, header=header, time=time, **options.holes(missing))
    how = flags.parsed()
    found = dropdtw.find(Z, X, k, max_cost, overlap, times=times, fps=fps, missing=missing, **how)
    if out:
        screen.write(out, found.to_json() if kind == ".json" else found.to_csv())
    if plot:
        from dropdtw.plot import occurrences

        pictures.save(occurrences(X, found), plot)
    if out != "-":
        measure = dropdtw.costs.resolve(how["match"], Z.shape[1]).name
        print(f"{measure} costs: {len(Z)} z in {len(X)} x, {len(found)} occurrence{'' if len(found) == 1 else 's'}")
        _show(found)


def _show(found: Sequence[Occurrence]) -> None:
    if not found:
        return
    columns = [">#", ">cost", ">start", ">stop", ">length", ">dropped x", ">dropped z", *screen.time_columns(found)]
    rows = []
    for n, o in enumerate(found[:SHOWN], 1):
        lost = (int(o.alignment.dropped_x.sum()), int(o.alignment.dropped_z.sum()))
        rows.append([str(n), f"{o.cost:.6g}", *map(str, (o.start, o.stop, o.length, *lost))])
        rows[-1] += screen.times(o)
    screen.table(columns, rows)
    if len(found) > SHOWN:
        print(f"… and {len(found) - SHOWN} more; --out writes them all")
