"""Terminal output: tables (plain lines if piped), notes on standard error, and progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dropdtw.files.progress import reporter
from dropdtw.files.sanitize import one_line

if TYPE_CHECKING:
    from dropdtw.results.alignment import Segment
    from dropdtw.search.find import Occurrence

LEAST = 12
"""Hide the flexible column below this width, in characters."""


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. NO_COLOR is honored.

    A column whose name begins with ">" is right-aligned. One that begins with "~" is flexible: it gets the remaining
    width. Cells may hold any text; control characters are replaced.
    """
    rows = [[one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for line in plain_lines(columns, rows):
            print(line)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    widths = [max(len(cell) for cell in (name, *(row[c] for row in rows))) for c, name in enumerate(columns)]
    room = console.width - 2 - sum(w + 2 for name, w in zip(columns, widths, strict=True) if name[:1] != "~")
    kept = [c for c, name in enumerate(columns) if name[:1] != "~" or room > LEAST]
    shown = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for c in kept:
        name, cut = columns[c].lstrip("~>"), columns[c][:1] == "~"
        shown.add_column(
            name, justify="right" if columns[c][:1] == ">" else "left", no_wrap=cut, max_width=room if cut else None
        )
    for row in rows:
        shown.add_row(*(Text(row[c], overflow="ellipsis") for c in kept))
    console.print(shown)


def plain_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, without decoration.

    >>> plain_lines(["step", ">at"], [["boil", "0:05"], ["pour", "10:00"]])
    ['step     at', 'boil   0:05', 'pour  10:00']
    """
    cells = [[name.lstrip("~>") for name in columns], *rows]
    widths = [max(len(row[c]) for row in cells) for c in range(len(columns))]
    right = [name.startswith(">") for name in columns]
    return [
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]


def time_columns(found: Sequence[Segment | Occurrence]) -> list[str]:
    """The columns of `times`, if the rows of a table have times."""
    return [">start time", ">stop time"] if any(each.clock is not None for each in found) else []


def times(each: Segment | Occurrence) -> list[str]:
    """When a segment or an occurrence begins and ends; nothing without times."""
    from dropdtw.problem.clock import spoken

    return [] if each.clock is None else [spoken(each.start_time), spoken(each.stop_time)]


def note(text: str) -> None:
    """Print a note on standard error, apart from the result."""
    print(f"dropdtw: {one_line(text)}", file=sys.stderr)


def write(out: str, content: bytes | str) -> None:
    """Write the file of `--out` and say so; "-" is standard output."""
    from dropdtw.files import formats

    formats.write(out, content)
    if out != "-":
        note(f"wrote {out}")


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, else a line a minute. Yields a function for the number of newly done items."""
    if not sys.stderr.isatty():
        report, done = reporter(label), 0

        def advance(more: int) -> None:
            nonlocal done
            done += more
            report(done, total)

        yield advance
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda more: bar.advance(task, more)
