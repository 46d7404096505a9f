"""Read talks from tables: .csv or .tsv with a line of column names, a column of times and a column of texts."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from dropdtw.files.tables import delimiter_of, seconds
from dropdtw.text.subtitles import Sentence

TEXTS: Final = ("text", "sentence", "subtitle", "caption", "transcript")
STARTS: Final = ("start", "begin", "from", "time", "seconds")
STOPS: Final = ("stop", "end", "to")
"""Column names that are recognized."""
WHISPER: Final = ["start", "end", "text"]
"""The columns of Whisper's .tsv, whose times are in milliseconds."""
EMPTY: Final = "the table has no sentences; give a line of column names, and below it one sentence per line"


def read_table(content: str, time: str | None = None) -> list[Sentence]:
    """The sentences of a table, one per row, in order of time.

    content : the content of a .csv or .tsv file: a line of column names, then one sentence per line, with a column of
        times and a column of texts (`text`, `sentence`, `subtitle`, `caption` or `transcript`).
    time : the name of the column of start times; None: a usual name such as start or time. Times are seconds or
        h:mm:ss; in Whisper's .tsv, milliseconds. A row without an end lasts until the next one begins, the
        last one as long as the median of the others.

    Returns a list of `Sentence`. Raises ValueError if a column or a time is missing, or if there are no sentences.

    >>> from dropdtw.text import read_table
    >>> read_table("at;text\\n0:01,5;Hello\\n4;Boil the water", time="at")
    [Sentence(start=1.5, stop=4.0, text='Hello'), Sentence(start=4.0, stop=6.5, text='Boil the water')]
    """
    lines = content.lstrip("\ufeff").splitlines()
    delimiter = delimiter_of(lines[0]) if lines else ","
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise ValueError(EMPTY)
    names = [name.strip() for name in rows[0]]
    text = _column(names, TEXTS, "texts", f"rename the column of texts to {TEXTS[0]!r}")
    wanted = (time,) if time else STARTS
    start = names.index(time) if time in names else _column(names, wanted, "times", "name it with time= (--time)")
    stop = next((k for k, name in enumerate(names) if name.lower() in STOPS and k != start), None)
    scale = 0.001 if delimiter == "\t" and names == WHISPER else 1.0
    cues = []
    for number, row in enumerate(rows[1:], 1):
        cells = [cell.strip() for cell in row] + [""] * (len(names) - len(row))
        if cells[text]:
            begin = scale * _seconds(cells[start], number)
            end = None if stop is None or not cells[stop] else scale * _seconds(cells[stop], number)
            cues.append((begin, end, cells[text]))
    if not cues:
        raise ValueError(EMPTY)
    return _ended(sorted(cues, key=lambda cue: cue[0]))


def _column(names: Sequence[str], wanted: Sequence[str | None], what: str, remedy: str) -> int:
    found = next((k for name in wanted for k, other in enumerate(names) if other.lower() == name), None)
    if found is None:
        raise ValueError(f"there is no column of {what} among {', '.join(names)}; {remedy}")
    return found


def _seconds(cell: str, row: int) -> float:
    try:
        return seconds(cell)
    except ValueError:
        raise ValueError(f"row {row} has the time {cell!r}; give seconds or h:mm:ss") from None


def _ended(cues: Sequence[tuple[float, float | None, str]]) -> list[Sentence]:
    """Fill in missing ends: the start of the next cue; for the last cue, its start plus the usual length."""
    starts = [start for start, _, _ in cues]
    lengths = [b - a for a, b in pairwise(starts)]
    starts.append(starts[-1] + (median(lengths) if lengths else 0.0))
    return [
        Sentence(start, max(start, starts[k + 1] if stop is None else stop), text)
        for k, (start, stop, text) in enumerate(cues)
    ]
