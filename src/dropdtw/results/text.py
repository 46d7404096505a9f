"""Alignments as text: Z above X, a column for each pair and each gap, as alignments of letters are usually printed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import combining, east_asian_width

import numpy as np

from dropdtw.problem.symbols import Symbols, listing
from dropdtw.tables.methods import METHODS

if TYPE_CHECKING:
    from dropdtw.results.alignment import Alignment

GAP: Final = "-"
"""Fills the place opposite a dropped element."""

AGAIN: Final = "~"
"""Stands for an element that stands in the column before, too."""

NARROWEST: Final = 20
"""Minimum length of a line."""


class _Column(NamedTuple):
    """A pair, or an element and a gap (None).

    z, x : the indices of the elements.   above, mark, below : what to print.   cells : how wide that is.
    """

    z: int | None
    x: int | None
    above: str
    mark: str
    below: str

    @property
    def cells(self) -> int:
        return max(_cells(self.above), _cells(self.below))


def to_text(a: Alignment, Z: Sequence[Hashable] | None, X: Sequence[Hashable] | None, width: int) -> str:
    """See `Alignment.text`."""
    if not isinstance(width, (int, np.integer)) or width < NARROWEST:
        raise ValueError(f"width is {width!r}; give the maximum length of a line, {NARROWEST} or more")
    if a.symbols is None and (Z is None or X is None):
        raise ValueError("this alignment is not one of symbols; give text(Z, X) what to print for each element")
    of_z, of_x = (
        known if values is None else listing(values, name)
        for name, values, known in zip("ZX", (Z, X), a.symbols or ((), ()), strict=True)
    )
    for name, symbols, length in zip("ZX", (of_z, of_x), a.shape, strict=True):
        if len(symbols) != length:
            raise ValueError(f"{name} has {len(symbols)} symbols for {length} elements; give one for each")
    columns = [_column(of_z, of_x, *place) for place in _places(a)]
    equal = sum(column.mark == "|" for column in columns)
    share = f" ({equal / len(columns):.0%})" if columns else ""
    said = f"identity {equal}/{len(columns)}{share}, cost {a.cost:.6g}"
    between = "" if all(column.cells <= 1 for column in columns) else " "
    digits = len(str(max(a.shape)))
    blocks = list(_wrapped(columns, width, len(between)))
    begin = [next((column[side] for column in columns if column[side] is not None), None) for side in (0, 1)]
    labeled = len(blocks) > 1 or begin[0] not in (a.walk[0], None) or begin[1] not in (0, None)
    if labeled:
        blocks = list(_wrapped(columns, width - digits - 3, len(between)))
    return "\n\n".join([*(_lines(block, between, digits if labeled else 0) for block in blocks), said])


def _places(a: Alignment) -> Iterator[tuple[int | None, int | None, bool, bool]]:
    """The elements of each column, None for a gap, and whether each stands in the column before, too.

    Elements that are skipped for free before the first pair or after the last one are left out.
    """
    present = ~a.missing_x
    walk = a.walk.tolist()
    entry = METHODS.get(a.method)
    paid_z = a.paid_z > (entry is not None and entry.free_z)  # such a method lists free skips as drops that cost 0
    paid_x = a.paid_x > (entry is not None and entry.free_x)
    pairs = list(zip(a.visit.tolist(), a.pairs[:, 1].tolist(), strict=True))
    done_z = done_x = -1
    for k, (v, j) in enumerate([*pairs, (len(walk), a.shape[1])]):
        inside = 0 < k < len(pairs)
        for i in walk[done_z + 1 : v]:
            if inside or paid_z[i]:
                yield i, None, False, False
        for x in range(done_x + 1, j):
            if present[x] and (inside or paid_x[x]):
                yield None, x, False, False
        if k < len(pairs):
            yield walk[v], j, v == done_z, j == done_x
        done_z, done_x = v, j


def _column(Z: Symbols, X: Symbols, i: int | None, j: int | None, z_again: bool, x_again: bool) -> _Column:
    above = GAP if i is None else AGAIN if z_again else _shown(Z[i])
    below = GAP if j is None else AGAIN if x_again else _shown(X[j])
    if i is None:
        return _Column(i, j, GAP * _cells(below), " ", below)
    if j is None:
        return _Column(i, j, above, " ", GAP * _cells(above))
    return _Column(i, j, above, "|" if Z[i] == X[j] else ".", below)


def _wrapped(columns: list[_Column], width: int, between: int) -> Iterator[list[_Column]]:
    """The columns of each line."""
    block: list[_Column] = []
    used = 0
    for column in columns:
        if block and used + column.cells > width:
            yield block
            block, used = [], 0
        block.append(column)
        used += column.cells + between
    if block:
        yield block


def _lines(block: list[_Column], between: str, digits: int) -> str:
    """The three lines of a block. digits : the width of the numbers of its first elements; 0 for none."""
    rows = [
        between.join(text + " " * (column.cells - _cells(text)) for column, text in zip(block, texts, strict=True))
        for texts in zip(*((c.above, c.mark, c.below) for c in block), strict=True)
    ]
    if digits:
        first = [next((str(c[side]) for c in block if c[side] is not None), "") for side in (0, 1)]
        rows = [
            f"{name:1} {number:>{digits}} {row}"
            for name, number, row in zip("Z X", (first[0], "", first[1]), rows, strict=True)
        ]
    return "\n".join(row.rstrip() for row in rows)


def _shown(symbol: Hashable) -> str:
    """A symbol on one line; an empty one as its repr."""
    text = str(symbol) or repr(symbol)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
