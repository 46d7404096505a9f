"""A table in the form that kernels read, and their compile-time queries of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import triton
import triton.language as tl

from dropdtw.tables.table import CHARGES, COSTS, MOVES, Edge, Recurrence

DIAG, LEFT, TOP, SAME = (tl.constexpr(k) for k in range(4))
MATCH, DROP_X, DROP_Z, FREE = (tl.constexpr(k) for k in range(4))
EVERYWHERE, INSIDE, BORDER = (tl.constexpr(k) for k in range(3))
MOVE_NUMBER = {move: k for k, move in enumerate(MOVES)}
COST_NUMBER = {cost: k for k, cost in enumerate(COSTS)}
CHARGE_NUMBER = {None: -1} | {plus: k for k, plus in enumerate(CHARGES)}
TURNED_NUMBER = {None: -1, "open_x": CHARGE_NUMBER["open_z"], "open_z": CHARGE_NUMBER["open_x"]}


@dataclass(frozen=True, eq=False)  # one per table, compared by identity: comparing contents is slow
class TableLayout:
    """A table in the form that kernels read, with numbers in place of names.

    src, dst, move, cost, weight, plus, where : of each edge, by destination and then in tie order. `plus` is the place
        of its charge among the problem's, −1 for none.
    kinds : the charges that some edge pays.
    turned : whether rows of kernels are columns of the problem. It is False without charges, because only the sums of
        their derivatives depend on it.
    scores : whether C holds match costs with the opposite sign, so that the best alignment has the largest sum.
    all, row : the numbers of all edges, and of those that matter on row 0.
    price, times : for each state, the cost that all edges into it pay, and how many times; −1 if they differ.
    start : whether an alignment may begin in a state; final : the states in which it may end.
    up : whether a state is read from the row below; top : whether from the cell directly below.
    diag : whether it is read diagonally or along row 0; keep : whether from any other cell.
    opens : for each state, which of its two ways along row 0 leads to column 1; the other one continues from there. −1
        if that does not apply, or without charges.
    row_left : for each state, the state whose `diag` holds its previous value on row 0.
    """

    src: tuple[int, ...]
    dst: tuple[int, ...]
    move: tuple[int, ...]
    cost: tuple[int, ...]
    weight: tuple[float, ...]
    plus: tuple[int, ...]
    where: tuple[int, ...]
    all: tuple[int, ...]
    row: tuple[int, ...]
    price: tuple[int, ...]
    times: tuple[float, ...]
    start: tuple[bool, ...]
    final: tuple[int, ...]
    up: tuple[bool, ...]
    top: tuple[bool, ...]
    diag: tuple[bool, ...]
    keep: tuple[bool, ...]
    opens: tuple[int, ...]
    row_left: tuple[int, ...]
    kinds: tuple[int, ...]
    turned: bool
    scores: bool = False

    @property
    def planes(self) -> int:
        """The number of values per lane that describe the state of a program."""
        return sum(self.keep) + sum(self.diag)

    @property
    def kept(self) -> int:
        """The number of states that other cells read."""
        return sum(self.keep)

    @property
    def sent(self) -> tuple[bool, ...]:
        """Which planes of derivatives a strip sends to the one above.

        Those of `top` states, of d_x, of `diag` states, and of charges if columns of kernels are summed.
        """
        return (*self.top, True, *self.diag, *(True,) * (len(self.kinds) * self.turned))


@cache
def layout(table: Recurrence, turned: bool = False) -> TableLayout:
    """Convert a table to the form that kernels read.

    turned : whether it is the transpose of the problem's table; charges keep the problem's order.
    """
    number = {state: k for k, state in enumerate(table.states)}
    inside = EVERYWHERE.value if table.border is None else INSIDE.value
    border = table.border or ()
    listed: list[tuple[Edge, int]] = [(e, EVERYWHERE.value if e in border else inside) for e in table.edges]
    listed += [(e, BORDER.value) for e in border if e not in table.edges]
    listed.sort(key=lambda way: number[way[0].dst])  # stable: keeps the tie order within a state
    src = tuple(number[e.src] for e, _ in listed)
    dst = tuple(number[e.dst] for e, _ in listed)

    on_row_0 = [
        k
        for k, (e, where) in enumerate(listed)
        if MOVES[e.move][0] == 0 and e.cost in ("drop_x", "free") and where != INSIDE.value
    ]
    starts = {number[s] for s in table.starts}
    live = set(starts)
    while new := {dst[k] for k in on_row_0 if src[k] in live} - live:
        live |= new
    place = CHARGE_NUMBER | (TURNED_NUMBER if turned else {})
    plus = tuple(place[e.plus] for e, _ in listed)
    kinds = tuple(sorted(set(plus) - {-1}))

    def left_by(move: str) -> set[int]:
        return {src[k] for k, (e, _) in enumerate(listed) if e.move == move}

    states = range(len(table.states))
    paid = [{(COST_NUMBER[e.cost], e.weight) for e, _ in listed if number[e.dst] == s} for s in states]
    shared = [next(iter(p)) if len(p) == 1 else (-1, 1.0) for p in paid]
    ways = [_RowEdge(k, src[k], dst[k], listed[k][0].move) for k in on_row_0 if src[k] in live]
    ways, opens, row_left = _row_0(ways, starts, left_by("diag")) if kinds else (ways, {}, {})
    first = {way for s, n in opens.items() for way in [[way for way in ways if way.dst == s][n]]}
    diag = left_by("diag") | {row_left.get(way.src, way.src) for way in ways if way.move == "left" and way not in first}
    top = left_by("top")
    up = diag | top
    keep = up | left_by("left")
    return TableLayout(
        src=src,
        dst=dst,
        move=tuple(MOVE_NUMBER[e.move] for e, _ in listed),
        cost=tuple(COST_NUMBER[e.cost] for e, _ in listed),
        weight=tuple(float(e.weight) for e, _ in listed),
        plus=plus,
        where=tuple(where for _, where in listed),
        all=tuple(range(len(listed))),
        row=tuple(way.edge for way in ways),
        price=tuple(cost for cost, _ in shared),
        times=tuple(float(weight) for _, weight in shared),
        start=tuple(s in table.starts for s in table.states),
        final=tuple(number[s] for s in table.final),
        up=tuple(s in up for s in states),
        top=tuple(s in top for s in states),
        diag=tuple(s in diag for s in states),
        keep=tuple(s in keep for s in states),
        opens=tuple(opens.get(s, -1) for s in states),
        row_left=tuple(row_left.get(s, s) for s in states),
        kinds=kinds,
        turned=turned and bool(kinds),
    )


class _RowEdge(NamedTuple):
    """An edge of row 0, with its number."""

    edge: int
    src: int
    dst: int
    move: str


def _row_0(
    ways: list[_RowEdge], starts: set[int], kept: set[int]
) -> tuple[list[_RowEdge], dict[int, int], dict[int, int]]:
    """Simplify row 0 to need few minima and few stored values; return its ways, `opens` and `row_left`.

    A state that no way enters is ∞ from column 1 on. What remains are states with one way, or one way at a time.
    kept : the states whose values are stored anyway.
    """
    entered = {way.dst for way in ways}
    ways = [way for way in ways if way.move != "same" or way.src in entered or way.dst not in starts]
    entered = {way.dst for way in ways}
    at_origin = set(starts)
    for way in ways:
        if way.move == "same" and way.src in at_origin:
            at_origin.add(way.dst)
    opens = {}
    later = set()
    for s in entered:
        into = [way for way in ways if way.dst == s]
        first = [way for way in into if way.src not in entered]
        more = [way for way in into if way.src not in at_origin]
        if len(into) == 2 and len(first) == len(more) == 1 and {way.move for way in into} == {"left"}:
            opens[s] = into.index(first[0])
            later.add(more[0])
    row_left: dict[int, int] = {}
    for way in later:
        if way.src not in kept and {w for w in ways if w.src == way.src and w.move == "left"} <= later:
            same = [s for s in sorted(kept) if [w[1:] for w in ways if w.dst == s] == [(way.src, s, "same")]]
            if same:
                row_left[way.src] = same[0]
    return ways, opens, row_left


# Compile-time queries of a layout.


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
    """Return the index of a state, stored as `keep` or `diag`, among all stored states."""
    return sum(table.keep[:s]) if part == "keep" else sum(table.keep) + sum(table.diag[:s])


@triton.constexpr_function
def kind(table, k):
    """Return the index of charge k among the charges of the table, or −1 if the table does not have it."""
    return table.kinds.index(k) if k in table.kinds else -1


@triton.constexpr_function
def digits(table, among, s):
    """Return how many bits number the alternatives of state s; 0 if the step alone decides."""
    if among == "row" and table.opens[s] != -1:
        return 0
    n = sum(table.dst[e] == s for e in getattr(table, among))
    return max(n - 1, 0).bit_length()


@triton.constexpr_function
def shift(table, among, s):
    """Return the place of that number among the bits of a step; after the last state of "row": how many there are."""
    places = [(a, k) for a in ("all", "row") for k in range(len(table.price))]
    until = places.index((among, s)) if s < len(table.price) else len(places)
    return sum(digits(table, *place) for place in places[:until])


@triton.constexpr_function
def chosen(table, among, s):
    """Return the index of that number among the choices of a list, see `cells.fold`."""
    return sum(digits(table, among, k) > 0 for k in range(s))


@triton.constexpr_function
def packs(table, hard, block):
    """Whether the choices of a hard minimum in a block fit into one word, which is stored instead of states."""
    return hard and shift(table, "row", len(table.price)) * block <= 32


@triton.constexpr_function
def of_scores(table):
    return table.scores


@triton.constexpr_function
def is_turned(table):
    return table.turned


@triton.constexpr_function
def flagged(table, part):
    """Count the flags of a part that are set."""
    return sum(getattr(table, part))


@triton.constexpr_function
def nth_flag(table, part, n):
    """Return the index of the n-th flag that is set."""
    return [s for s, flag in enumerate(getattr(table, part)) if flag][n]


@triton.constexpr_function
def seat(table, part, s, u, block):
    """Return the place of number s of the u-th step among those of a block that `part` flags."""
    return sum(getattr(table, part)[:s]) * block + u


@triton.constexpr_function
def pays(table, cost):
    """Whether any edge pays that cost."""
    return cost in table.cost


@triton.constexpr_function
def edge(table, among, n):
    """Return the n-th edge of a list of edges ("all" or "row")."""
    return getattr(table, among)[n]


@triton.constexpr_function
def into(table, among, s):
    """Count the edges of a list that lead into state s."""
    return sum(table.dst[e] == s for e in getattr(table, among))


@triton.constexpr_function
def before(table, among, s):
    """Count the edges of a list that lead into states before s: the index where those into s begin."""
    return sum(table.dst[e] < s for e in getattr(table, among))


@triton.constexpr_function
def _places(table, among, part, value, move):
    edges = getattr(table, among)
    return [
        n for n, e in enumerate(edges) if getattr(table, part)[e] == value and (move is None or table.move[e] == move)
    ]


@triton.constexpr_function
def many(table, among, part, value, move=None):
    """Count the edges of a list that have `value` as that part (and that move)."""
    return len(_places(table, among, part, value, move))


@triton.constexpr_function
def nth(table, among, part, value, move, n):
    """Return the index in the list of the n-th such edge."""
    return _places(table, among, part, value, move)[n]
