"""What the commands print: tables for people at a terminal, plain lines for pipes, notes on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dropdtw.files.strangers import one_line

LEAST = 12
"""Letters below which a column that takes the room that is left is left out."""


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. NO_COLOR is honored.

    A column whose name begins with ">" is set flush right; one that begins with "~" gets the room that is left. Cells
    may hold anything: what a terminal would obey is replaced.
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
    """The lines of a table without any decoration.

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


def note(text: str) -> None:
    """Say something that is not the answer, on standard error."""
    print(f"dropdtw: {one_line(text)}", file=sys.stderr)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, nothing elsewhere; gives a function to call with how many more are done."""
    if not sys.stderr.isatty():
        yield lambda more: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda more: bar.advance(task, more)
