"""Read numbers from tables (.csv, .tsv and .txt), with or without a header line and a column of times."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np

from dropdtw.problem.clock import Clock
from dropdtw.problem.inputs import Array, shortened

ENDS: Final = (".csv", ".tsv", ".txt")
"""The file name extensions of tables."""

DECIMAL_POINT: Final = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")
DECIMAL_COMMA: Final = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
CLOCK: Final = re.compile(r"(?:(\d+):)?([0-5]?\d):([0-5]?\d(?:[.,]\d+)?)")

NAMELESS: Final = "it begins with numbers instead of column names"

Row = tuple[int, list[str]]
"""A line number, and the cells of that line."""


class Table(NamedTuple):
    """The contents of a table.

    values : rows of numbers (n, d).   names : the names of all columns, if it has names.   times : those of the rows.
    row_numbers : whether a column of row numbers was left out.
    """

    values: Array
    names: Sequence[str] = ()
    times: Clock | None = None
    row_numbers: bool = False


def read(text: str, header: bool | None = None, time: str | None = None, needed: bool = True) -> Table:
    """Read a table. Columns are separated by tabs, semicolons, commas or spaces.

    header : whether it begins with a line of names; None decides by the first line, see `dropdtw.files.formats.read`.
    time : the name of a column of times, which is not part of the sequence: seconds, h:mm:ss, or ISO 8601 dates.
    needed : whether a missing column of times is an error.

    Row numbers, as pandas writes them by default, are left out: increasing whole numbers in a first column without a
    name.

    Raises ValueError if a cell is not a number, or if rows differ in length.
    """
    rows = _cells(text)
    names = [cell.strip() for cell in rows[0][1]]
    row_numbers = header is not False and time != "" and _has_row_numbers(names, rows[1:])
    if row_numbers:
        header = True
        names = names[1:]
        rows = [(n, cells[1:]) for n, cells in rows]
    if header is None:
        header = time in names or _has_names(names, len(rows))
    if header:
        rows = rows[1:]
    else:
        names = []
    if time is not None and needed and time not in names:
        raise ValueError(
            f"it has no column {time!r}; " + (f"its columns are {shortened(names)}" if names else NAMELESS)
        )
    times = None
    if time is not None and time in names:
        column = names.index(time)
        times = _times([(n, cells[column] if column < len(cells) else "") for n, cells in rows])
        rows = [(n, cells[:column] + cells[column + 1 :]) for n, cells in rows]
        if len(names) == 1:
            raise ValueError(f"it has no column besides {time!r}; give a sequence as well as its times")
    kept = [name for name in names if name != time]
    return Table(rectangle([_numbers(cells, n, kept) for n, cells in rows]), names, times, row_numbers)


def _numbers(cells: Sequence[str], line: int, names: Sequence[str]) -> list[float]:
    """Convert the cells of a line to numbers. Empty cells are missing values, NaN, as pandas writes them."""
    try:
        return numbers(["nan" if not cell.strip() else cell for cell in cells], f"line {line}")
    except ValueError:
        bad = next(k for k, cell in enumerate(cells) if cell.strip() and _fails(number, cell))
        column, advice = f"column {bad + 1}", "leave out the column"
        if bad < len(names):
            column += f" ({names[bad]})"
            if not _fails(_time, cells[bad].strip(), line):
                called = names[bad] or "''"
                advice = f"pass --time {called} (time={names[bad]!r}) if it holds times, or leave it out"
        raise ValueError(f"line {line}, {column} is {cells[bad]!r}, not a number; {advice}") from None


def _fails(parse: Callable[..., Any], *values: Any) -> bool:
    try:
        parse(*values)
    except ValueError:
        return True
    return False


def _cells(text: str) -> list[Row]:
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(n, line) for n, line in lines if not line.lstrip().startswith("#")]
    if not lines:
        raise ValueError("it has no rows")
    delimiter = delimiter_of(lines[0][1])
    rows = [
        (n, [cell for cell in next(csv.reader([line.strip()], delimiter=delimiter)) if cell or delimiter != " "])
        for n, line in lines
    ]
    return _with_points(rows) if delimiter in "\t;" else rows


def delimiter_of(line: str) -> str:
    """The character that separates the cells of a line."""
    return next((mark for mark in "\t;," if mark in line), " ")


def _has_names(names: Sequence[str], lines: int) -> bool:
    """Whether the first line holds column names: no number, or 0,1,…,d−1, as pandas numbers columns.

    lines : the number of lines.
    """
    numbered = is_numbered(names)
    if numbered and lines == 1:
        raise ValueError(
            f"its only line is {shortened(names)}, which can be column names or an element; "
            "say --header or --no-header (header=True, header=False)"
        )
    return numbered or not any(_is_number(cell) for cell in names)


def is_numbered(names: Sequence[str]) -> bool:
    """Whether the columns are named 0,1,…,d−1."""
    return len(names) > 1 and _counts(names)


def _counts(cells: Sequence[str]) -> bool:
    return list(cells) == [str(k) for k in range(len(cells))]


def _has_row_numbers(names: Sequence[str], rows: Sequence[Row]) -> bool:
    """Whether the first column has no name and increasing whole numbers, and pandas could have named the others."""
    others = names[1:]
    if names[0] or not others or not rows or (not _counts(others) and any(_is_number(cell) for cell in others)):
        return False
    first = [cells[0].strip() for _, cells in rows]
    return all(map(str.isdecimal, first)) and all(int(a) < int(b) for a, b in pairwise(first))


def _with_points(rows: list[Row]) -> list[Row]:
    """Convert decimal commas to decimal points, unless some cell has a decimal point."""
    if any(DECIMAL_POINT.fullmatch(cell) for _, cells in rows for cell in cells):
        return rows
    return [(n, [c.replace(",", ".") if DECIMAL_COMMA.fullmatch(c) else c for c in cells]) for n, cells in rows]


def _times(cells: Sequence[tuple[int, str]]) -> Clock:
    """Convert cells to times, which must increase."""
    found = [_time(cell.strip(), n) for n, cell in cells]
    dates = [t for t in found if isinstance(t, datetime)]
    if dates and len(dates) < len(found):
        raise ValueError("some of its times are dates and others are not; write all of them alike")
    if len({t.tzinfo is None for t in dates}) > 1:
        raise ValueError("some of its dates have a time zone and others have none; write all of them alike")
    for (n, cell), before, now in zip(cells[1:], found, found[1:], strict=False):
        if not now > before:  # type: ignore[operator]
            raise ValueError(
                f"line {n} has the time {cell}, which does not follow that of the line before; "
                "sort the rows by time and remove duplicates"
            )
    return Clock.of(found, "x")


def _time(cell: str, line: int) -> float | datetime:
    for read_as in (seconds, datetime.fromisoformat):
        try:
            return read_as(cell)
        except ValueError:
            continue
    raise ValueError(f"line {line} has the time {cell!r}; give seconds, h:mm:ss, or dates such as 2024-05-01T12:00:00")


def seconds(cell: str) -> float:
    """Parse a time in seconds or as h:mm:ss; decimal commas are allowed. Raises ValueError if it is not a time.

    >>> seconds("1:02:03,5"), seconds("2,5")
    (3723.5, 2.5)
    """
    if clock := CLOCK.fullmatch(cell):
        hours, minutes, rest = clock.groups()
        return 3600 * float(hours or 0) + 60 * float(minutes) + float(rest.replace(",", "."))
    found = number(cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell)
    if not isfinite(found):
        raise ValueError(f"{cell!r} is not a time")
    return found


def is_prose(content: bytes) -> bool:
    """Whether a file that is no table holds sentences: it has more words of letters than numbers."""
    words = content.decode("utf-8", errors="replace").replace(",", " ").split()
    return sum(word.strip(".!?;:").isalpha() for word in words) > sum(map(_is_number, words))


def _is_number(text: str) -> bool:
    """Whether Python's `float` accepts the text. If so, it is not a name, even if `number` rejects it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def number(text: str) -> float:
    """Parse a number. Python's notation "1_000" is rejected."""
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def numbers(cells: Iterable[Any], where: str) -> list[float]:
    """Convert cells to numbers. `where` names their row in errors."""
    out = []
    for k, cell in enumerate(cells, 1):
        try:
            if isinstance(cell, bool) or cell is None:
                raise TypeError
            out.append(number(cell) if isinstance(cell, str) else float(cell))
        except (TypeError, ValueError):
            raise ValueError(f"{where}, column {k} is {cell!r}, not a number") from None
    return out


def rectangle(rows: list[list[float]]) -> Array:
    """Convert rows of equal length to an array. Raises ValueError if they differ in length, or if there are none."""
    if not rows:
        raise ValueError("it has no rows")
    for k, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(f"row {k} has {len(row)} numbers, the first one {len(rows[0])}")
    return np.array(rows, np.float64)
