"""A table as kernels read it, and what they ask of it while they are compiled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import triton
import triton.language as tl

from dropdtw.tables.recurrence import COSTS, MOVES, Edge, Recurrence

DIAG, LEFT, TOP, SAME = (tl.constexpr(k) for k in range(4))
MATCH, DROP_X, DROP_Z, FREE = (tl.constexpr(k) for k in range(4))
EVERYWHERE, INSIDE, BORDER = (tl.constexpr(k) for k in range(3))
MOVE_NUMBER = {move: k for k, move in enumerate(MOVES)}
COST_NUMBER = {cost: k for k, cost in enumerate(COSTS)}


@dataclass(frozen=True, eq=False)  # one for each table: told apart, quickly, by what they are and not by what they hold
class Layout:
    """A table as kernels read it: numbers in place of names.

    src, dst, move, cost, where : of each edge, by destination and then in tie order.
    all, row : the numbers of all edges, and of those that matter on row 0.
    price : for each state, the cost that all edges into it pay, or −1 where they differ.
    start : whether a state may begin; final : the states that may end.
    up : whether a state is looked at from the row below; top : whether from the cell just below.
    diag : whether diagonally, or along row 0; keep : whether from any other cell.
    """

    src: tuple[int, ...]
    dst: tuple[int, ...]
    move: tuple[int, ...]
    cost: tuple[int, ...]
    where: tuple[int, ...]
    all: tuple[int, ...]
    row: tuple[int, ...]
    price: tuple[int, ...]
    start: tuple[bool, ...]
    final: tuple[int, ...]
    up: tuple[bool, ...]
    top: tuple[bool, ...]
    diag: tuple[bool, ...]
    keep: tuple[bool, ...]

    @property
    def planes(self) -> int:
        """How many values per lane describe where a program stands."""
        return sum(self.keep) + sum(self.diag)


@cache
def layout(table: Recurrence) -> Layout:
    """The table as kernels read it."""
    number = {state: k for k, state in enumerate(table.states)}
    inside = EVERYWHERE.value if table.border is None else INSIDE.value
    border = table.border or ()
    listed: list[tuple[Edge, int]] = [(e, EVERYWHERE.value if e in border else inside) for e in table.edges]
    listed += [(e, BORDER.value) for e in border if e not in table.edges]
    listed.sort(key=lambda way: number[way[0].dst])  # stable: the tie order within a state stays
    src = tuple(number[e.src] for e, _ in listed)
    dst = tuple(number[e.dst] for e, _ in listed)

    on_row_0 = [
        k
        for k, (e, where) in enumerate(listed)
        if MOVES[e.move][0] == 0 and e.cost in ("drop_x", "free") and where != INSIDE.value
    ]
    live = {number[s] for s in table.starts}
    while new := {dst[k] for k in on_row_0 if src[k] in live} - live:
        live |= new
    row = [k for k in on_row_0 if src[k] in live]

    def left_by(move: str, among: Iterable[int] = range(len(listed))) -> set[int]:
        return {src[k] for k in among if listed[k][0].move == move}

    states = range(len(table.states))
    paid = [{COST_NUMBER[e.cost] for e, _ in listed if number[e.dst] == s} for s in states]
    diag = left_by("diag") | left_by("left", row)
    top = left_by("top")
    up = diag | top
    keep = up | left_by("left")
    return Layout(
        src=src,
        dst=dst,
        move=tuple(MOVE_NUMBER[e.move] for e, _ in listed),
        cost=tuple(COST_NUMBER[e.cost] for e, _ in listed),
        where=tuple(where for _, where in listed),
        all=tuple(range(len(listed))),
        row=tuple(row),
        price=tuple(next(iter(p)) if len(p) == 1 else -1 for p in paid),
        start=tuple(s in table.starts for s in table.states),
        final=tuple(number[s] for s in table.final),
        up=tuple(s in up for s in states),
        top=tuple(s in top for s in states),
        diag=tuple(s in diag for s in states),
        keep=tuple(s in keep for s in states),
    )


# What kernels ask of a layout while they are compiled.


@triton.constexpr_function
def of(table, part, k):
    return getattr(table, part)[k]


@triton.constexpr_function
def count(table, part):
    return len(getattr(table, part))


@triton.constexpr_function
def planes(table):
    return table.planes


@triton.constexpr_function
def plane(table, part, s):
    """Where a state that is written down as `keep` or `diag` comes among all that are."""
    return sum(table.keep[:s]) if part == "keep" else sum(table.keep) + sum(table.diag[:s])


@triton.constexpr_function
def is_sent(table, plane):
    """Whether a strip sends that plane of derivatives to the one above: by `top` states, by d_x, by `diag` states."""
    return (*table.top, True, *table.diag)[plane]


@triton.constexpr_function
def pays(table, cost):
    """Whether any edge pays that cost."""
    return cost in table.cost


@triton.constexpr_function
def edge(table, among, n):
    """The n-th edge of a list of edges ("all" or "row")."""
    return getattr(table, among)[n]


@triton.constexpr_function
def into(table, among, s):
    """How many edges of a list lead into state s."""
    return sum(table.dst[e] == s for e in getattr(table, among))


@triton.constexpr_function
def before(table, among, s):
    """How many edges of a list lead into states before s: where those into s begin."""
    return sum(table.dst[e] < s for e in getattr(table, among))


@triton.constexpr_function
def _places(table, among, part, value, move):
    edges = getattr(table, among)
    return [
        n for n, e in enumerate(edges) if getattr(table, part)[e] == value and (move is None or table.move[e] == move)
    ]


@triton.constexpr_function
def many(table, among, part, value, move=None):
    """How many edges of a list have `value` as that part (and that move)."""
    return len(_places(table, among, part, value, move))


@triton.constexpr_function
def nth(table, among, part, value, move, n):
    """The place in the list of the n-th such edge."""
    return _places(table, among, part, value, move)[n]
