"""Every aligner is a table: states, and the edges between them.

Alignment walks over cells (i, j), 0 ≤ i ≤ K and 0 ≤ j ≤ N, from (0, 0) to (K, N), where (i, j) means that the
first i elements of Z and the first j of X are dealt with. In each cell it is in one *state* (what happened last).
An *edge* `src → dst` says how a state is entered: the *move* names the cell it comes from, and on arrival at (i, j) it
pays `weight × cost + plus`. The *cost* is one of the element or the pair:

    move   from cell            cost     pays            exists where
    diag   (i−1, j−1)           match    C[i, j]         i, j ≥ 1
    left   (i,   j−1)           drop_x   d_x[j]          j ≥ 1
    top    (i−1, j)             drop_z   d_z[i]          i ≥ 1
    same   (i,   j)             free     0               everywhere

The *weight* is a number of the table (step patterns have others than 1), and *plus* names a charge, a scalar of the
problem: "open_x" and "open_z" for the first drop of a run, "warp" for a match that repeats an element. Tables that
charge come beside those that do not (`charged=True`), so that nobody pays for an addition of 0.

An edge exists only where both its origin and its price do, so borders need no code of their own.

The order of edges is the tie order: of equally good ways into a state the first listed wins. Every table here lists
`diag` before `left` before `top` and matched states before dropped ones: a match beats a drop, a diagonal the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from numbers import Real
from typing import Final, NamedTuple

MOVES: Final = {"diag": (1, 1), "left": (0, 1), "top": (1, 0), "same": (0, 0)}
"""Steps back (in i, in j) from a cell to the one a move comes from."""

COSTS: Final = {
    "match": ("diag", "left", "top"),
    "drop_x": ("left", "diag"),
    "drop_z": ("top", "diag"),
    "free": ("diag", "left", "top", "same"),
}
"""The moves that each cost can pay for: a drop of x_j enters column j, a drop of z_i enters row i."""

CHARGES: Final = {"open_x": "drop_x", "open_z": "drop_z", "warp": "match"}
"""The cost that each charge can be added to."""


class Edge(NamedTuple):
    """One way into state `dst`: from state `src` by `move`, paying `weight × cost + plus`."""

    src: str
    dst: str
    move: str
    cost: str
    weight: float = 1.0
    plus: str | None = None


def edges(
    src: str, *, to: str, moves: str, cost: str, weight: float = 1.0, plus: str | None = None
) -> tuple[Edge, ...]:
    """Edges from each of the states `src` into state `to`, by each of the `moves` (names separated by spaces).

    >>> [f"{e.src} → {e.dst} {e.move}" for e in edges("a b", to="c", moves="diag left", cost="match")]
    ['a → c diag', 'b → c diag', 'a → c left', 'b → c left']
    """
    return tuple(Edge(s, to, move, cost, weight, plus) for move, s in product(moves.split(), src.split()))


@dataclass(frozen=True)
class Recurrence:
    """A dynamic program over two sequences, stated as data; see the module's text for what its parts mean.

    states : in order; within a cell, a `same` edge leads from an earlier state to a later one.
    edges : in tie order.
    start : the state, or states, that cost 0 in cell (0, 0).
    final : the states in which an alignment may end in cell (K, N), in tie order.
    border : edges that replace `edges` on row 0 and column 0; None where `edges` holds there too.

    A table of your own works wherever a method's name does:

    >>> import numpy as np, dropdtw
    >>> lockstep = dropdtw.Recurrence(
    ...     states=("match",), start="match", final=("match",), name="lockstep",
    ...     edges=dropdtw.edges("match", to="match", moves="diag", cost="match"),
    ... )
    >>> dropdtw.cost(np.eye(3), method=lockstep)
    3.0
    """

    states: tuple[str, ...]
    edges: tuple[Edge, ...]
    start: str | tuple[str, ...]
    final: tuple[str, ...]
    border: tuple[Edge, ...] | None = None
    name: str = "custom"

    def __post_init__(self) -> None:
        _check(self)

    @property
    def starts(self) -> tuple[str, ...]:
        """The start states, as a tuple even where there is one."""
        return (self.start,) if isinstance(self.start, str) else self.start

    def transpose(self) -> Recurrence:
        """The same table with the roles of Z and X exchanged."""
        return replace(
            self,
            name=f"{self.name}, transposed",
            edges=_mirror(self.edges),
            border=None if self.border is None else _mirror(self.border),
        )

    def matches_by(self, move: str) -> bool:
        """Whether a match can be entered by `move`: by `left` one z takes several x, by `top` one x several z."""
        return any(e.cost == "match" and e.move == move for e in self.edges)

    @property
    def every_edge(self) -> tuple[Edge, ...]:
        """All edges, those of the border included."""
        return (*self.edges, *(self.border or ()))

    def charges(self, plus: str) -> bool:
        """Whether some edge pays this charge."""
        return any(e.plus == plus for e in self.every_edge)

    @property
    def weights(self) -> frozenset[float]:
        """The weights of match costs."""
        return frozenset(e.weight for e in self.edges if e.cost == "match")

    @property
    def skips_for_free(self) -> bool:
        """Whether some edge passes over an element without paying: then d_x and d_z do not govern all drops."""
        pays_one_of_two = {("diag", "drop_x"), ("diag", "drop_z")}
        return any(
            (e.cost == "free" and e.move != "same") or (e.move, e.cost) in pays_one_of_two for e in self.every_edge
        )

    def skips_x_for(self) -> frozenset[str]:
        """What an x without a match can pay on the way into its column: "drop_x", "free", both, or neither."""
        return frozenset(
            "drop_x" if e.cost == "drop_x" else "free"
            for e in self.every_edge
            if MOVES[e.move][1] and e.cost != "match"
        )

    def matches_skipped_x(self) -> bool:
        """Whether a path that has entered a column without a match can still match its x further down."""
        here = {e.dst for e in self.every_edge if MOVES[e.move][1] and e.cost != "match"}
        while new := {e.dst for e in self.every_edge if e.src in here and not MOVES[e.move][1]} - here:
            here |= new
        return any(e.src in here and e.move == "top" and e.cost == "match" for e in self.edges)


def _mirror(listed: tuple[Edge, ...]) -> tuple[Edge, ...]:
    swap = {"left": "top", "drop_x": "drop_z", "open_x": "open_z"}
    swap |= {there: here for here, there in swap.items()}
    return tuple(
        e._replace(
            move=swap.get(e.move, e.move),
            cost=swap.get(e.cost, e.cost),
            plus=None if e.plus is None else swap.get(e.plus, e.plus),
        )
        for e in listed
    )


def _check(table: Recurrence) -> None:
    """Refuse a table that cannot mean what its author wants, and say why."""

    def refuse(what: str) -> None:
        raise ValueError(f"recurrence {table.name!r}: {what}")

    known = set(table.states)
    if not table.states or len(known) < len(table.states):
        refuse(f"states are {table.states!r}; give at least one, each once")
    for role, listed in (("start", table.starts), ("final", table.final)):
        if not listed or not set(listed) <= known or len(set(listed)) < len(listed):
            refuse(f"{role} is {listed!r}; give one or more of the states {table.states!r}, each once")
    for e in table.every_edge:
        if not {e.src, e.dst} <= known:
            refuse(f"{e} names a state that is not among {table.states!r}")
        if e.move not in MOVES or e.cost not in COSTS:
            refuse(f"{e}: moves are {', '.join(MOVES)}; costs are {', '.join(COSTS)}")
        if e.move not in COSTS[e.cost]:
            refuse(f"{e}: a {e.cost!r} cost can be paid on the moves {', '.join(COSTS[e.cost])} only")
        if not (isinstance(e.weight, Real) and 0 < e.weight < math.inf):
            refuse(f"{e}: the weight is {e.weight!r}; give a finite number above 0")
        if e.cost == "free" and e.weight != 1:
            refuse(f"{e}: nothing is paid that a weight could change; leave it out")
        if e.plus is not None and CHARGES.get(e.plus) != e.cost:
            known_charges = ", ".join(f"{plus!r} to {cost!r}" for plus, cost in CHARGES.items())
            refuse(f"{e}: charges can be added to one cost each: {known_charges}")
        if e.plus == "warp" and e.move == "diag":
            refuse(f"{e}: a match by 'diag' repeats no element; charge 'warp' on left or top")
        if e.move == "same" and table.states.index(e.src) >= table.states.index(e.dst):
            refuse(f"{e}: a 'same' edge leads from an earlier state to a later one; reorder the states")
    for e in table.border or ():
        if e.cost == "match" or e.move == "diag":
            refuse(f"{e}: on a border there is nothing to match and no diagonal; use left or top, and no match")
    for group in (table.edges, table.border or ()):
        twice = [way for way, n in Counter(e[:4] for e in group).items() if n > 1]
        if twice:
            refuse(f"{Edge(*twice[0])} is listed twice; under soft minima it would count twice")
    unreachable = known - _reachable(table)
    if unreachable:
        refuse(f"no path from start {table.starts!r} leads to {sorted(unreachable)}; add an edge or remove the state")


def _reachable(table: Recurrence) -> set[str]:
    found = set(table.starts)
    while new := {e.dst for e in table.every_edge if e.src in found} - found:
        found |= new
    return found


# --- The tables -------------------------------------------------------------------------------------------------


def _matches(
    diag: str, left: str, top: str, *, to: str, one_to_many: bool, many_to_one: bool, charged: bool
) -> tuple[Edge, ...]:
    """The ways to match z_i with x_j: a new pair, z_i again (`left`), x_j again (`top`)."""
    again = "warp" if charged else None
    found = edges(diag, to=to, moves="diag", cost="match")
    if one_to_many:
        found += edges(left, to=to, moves="left", cost="match", plus=again)
    if many_to_one:
        found += edges(top, to=to, moves="top", cost="match", plus=again)
    return found


def _drops(first: str, more: str, *, to: str, side: str, charged: bool) -> tuple[Edge, ...]:
    """The ways to drop an element of a side: as the `first` of a run, which opens it, or as one `more`."""
    move, cost, opens = ("left", "drop_x", "open_x") if side == "x" else ("top", "drop_z", "open_z")
    found = edges(first, to=to, moves=move, cost=cost, plus=opens if charged else None)
    return found + edges(more, to=to, moves=move, cost=cost)


def _named(name: str, charged: bool) -> str:
    return f"{name}_charged" if charged else name


@cache
def dtw(*, one_to_many: bool = True, many_to_one: bool = True, charged: bool = False) -> Recurrence:
    """Dynamic time warping: every element is matched (paper Eq. 1)."""
    return Recurrence(
        name=_named("dtw", charged),
        states=("match",),
        edges=_matches(
            "match",
            "match",
            "match",
            to="match",
            one_to_many=one_to_many,
            many_to_one=many_to_one,
            charged=charged,
        ),
        start="match",
        final=("match",),
    )


@cache
def one_sided(
    *, one_to_many: bool = True, many_to_one: bool = True, contiguous: bool = False, charged: bool = False
) -> Recurrence:
    """Drop-DTW that drops from X only (paper Algorithm 1): `match` is D⁺, `drop` is D⁻, `best` is D.

    `best` is a state of its own because smoothMin is not associative: min over (D⁺, D⁻) first, as the paper does.
    Where opening a run is charged, D⁻ tells the first drop of a run from the others, also the first drop of all: so
    the origin counts as `match`, too.
    """
    again = "match" if contiguous else "best"
    matches = _matches(
        "best", again, "match", to="match", one_to_many=one_to_many, many_to_one=many_to_one, charged=charged
    )
    plain = edges("best", to="drop", moves="left", cost="drop_x")
    return Recurrence(
        name=_named("drop_dtw_one_sided", charged),
        states=("match", "drop", "best"),
        edges=matches
        + (_drops("match", "drop", to="drop", side="x", charged=True) if charged else plain)
        + edges("match drop", to="best", moves="same", cost="free"),
        start=("match", "best") if charged else "best",
        final=("best",),
    )


@cache
def two_sided(
    *, one_to_many: bool = True, many_to_one: bool = True, contiguous: bool = False, charged: bool = False
) -> Recurrence:
    """Drop-DTW that drops from both sequences, each alignment reached by exactly one path.

    States name what is matched at the end of the prefix: `both` z_i and x_j, `z_only`, `x_only`, `neither`. The one
    path through a gap drops its x first, then its z: `neither` is entered from above only. So all drops of a run come
    one after the other. With hard min this is the paper's Algorithm 2; with soft min it is what Algorithm 2 would be
    if it did not count orders of drops.
    """
    return Recurrence(
        name=_named("drop_dtw_two_sided", charged),
        states=("both", "z_only", "x_only", "neither"),
        edges=_two_sided_matches(one_to_many, many_to_one, contiguous, charged)
        + _drops("both", "z_only", to="z_only", side="x", charged=charged)
        + _drops("both", "x_only", to="x_only", side="z", charged=charged)
        + _drops("z_only", "neither", to="neither", side="z", charged=charged),
        start="both",
        final=("both", "z_only", "x_only", "neither"),
    )


@cache
def algorithm_2(*, one_to_many: bool = True, many_to_one: bool = True, contiguous: bool = False) -> Recurrence:
    """The paper's Algorithm 2 as printed, its typos corrected: D^{zx}, D^{z−}, D^{−x}, D^{−−} in this order.

    Line 3 means D^{−x}_{0,j} = ∞; line 4 means D^{−−}_{i,0} = D^{−x}_{i,0} and D^{−−}_{0,j} = D^{z−}_{0,j}. All four
    tables start at 0, and the borders are self-loops. Soft minima count some alignments several times here.
    """
    return Recurrence(
        name="drop_dtw_paper",
        states=("both", "z_only", "x_only", "neither"),
        edges=_two_sided_matches(one_to_many, many_to_one, contiguous, charged=False)
        + edges("both z_only", to="z_only", moves="left", cost="drop_x")
        + edges("both x_only", to="x_only", moves="top", cost="drop_z")
        + edges("z_only neither", to="neither", moves="top", cost="drop_z")
        + edges("x_only neither", to="neither", moves="left", cost="drop_x"),
        start=("both", "z_only", "x_only", "neither"),
        final=("both", "z_only", "x_only", "neither"),
        border=edges("z_only", to="z_only", moves="left", cost="drop_x")
        + edges("x_only", to="x_only", moves="top", cost="drop_z")
        + edges("neither", to="neither", moves="left", cost="drop_x")
        + edges("neither", to="neither", moves="top", cost="drop_z"),
    )


def _two_sided_matches(one_to_many: bool, many_to_one: bool, contiguous: bool, charged: bool) -> tuple[Edge, ...]:
    return _matches(
        "both z_only x_only neither",
        "both" if contiguous else "both z_only",
        "both x_only",
        to="both",
        one_to_many=one_to_many,
        many_to_one=many_to_one,
        charged=charged,
    )


@cache
def subsequence(*, one_to_many: bool = True, many_to_one: bool = True, charged: bool = False) -> Recurrence:
    """DTW of all of Z with a stretch of X: x before the first match and after the last are dropped.

    These drops cost d_x like any other; subsequence DTW and OTAM set it to 0.
    """
    matches = _matches(
        "match prefix", "match", "match", to="match", one_to_many=one_to_many, many_to_one=many_to_one, charged=charged
    )
    return Recurrence(
        name=_named("subsequence", charged),
        states=("prefix", "match", "suffix"),
        edges=matches
        + edges("prefix", to="prefix", moves="left", cost="drop_x")
        + edges("match suffix", to="suffix", moves="left", cost="drop_x"),
        start="prefix",
        final=("match", "suffix"),
    )


@cache
def needleman_wunsch(*, charged: bool = False) -> Recurrence:
    """One-to-one matches, paid drops on both sides; a gap drops its x first, then its z. Charged, it is Gotoh's."""
    return Recurrence(
        name=_named("needleman_wunsch", charged),
        states=("match", "drop_x", "drop_z"),
        edges=edges("match drop_x drop_z", to="match", moves="diag", cost="match")
        + _drops("match", "drop_x", to="drop_x", side="x", charged=charged)
        + _drops("match drop_x", "drop_z", to="drop_z", side="z", charged=charged),
        start="match",
        final=("match", "drop_x", "drop_z"),
    )


@cache
def smith_waterman(*, charged: bool = False) -> Recurrence:
    """Needleman–Wunsch inside the best-scoring stretch of both sequences; what lies outside it is free.

    The stretch begins and ends with a match, or is empty at cost 0: `skip_*` walks to it, `rest_*` on from it.
    """
    return Recurrence(
        name=_named("smith_waterman", charged),
        states=("skip_x", "skip_z", "match", "drop_x", "drop_z", "rest_x", "rest_z"),
        edges=edges("skip_x", to="skip_x", moves="left", cost="free")
        + edges("skip_x skip_z", to="skip_z", moves="top", cost="free")
        + edges("match drop_x drop_z skip_x skip_z", to="match", moves="diag", cost="match")
        + _drops("match", "drop_x", to="drop_x", side="x", charged=charged)
        + _drops("match drop_x", "drop_z", to="drop_z", side="z", charged=charged)
        + edges("match rest_x", to="rest_x", moves="left", cost="free")
        + edges("match rest_x rest_z", to="rest_z", moves="top", cost="free"),
        start="skip_x",
        final=("match", "rest_x", "rest_z", "skip_z"),
    )


# --- Step patterns ----------------------------------------------------------------------------------------------
#
# Sakoe and Chiba's (1978), as R's dtw and dtw-python name and weigh them: Z is their query, X their reference. The
# first pair is paid once, whatever a diagonal step weighs: so the origin has a state of its own, `start`.


@cache
def symmetric2() -> Recurrence:
    """DTW in which a diagonal step counts twice: all paths weigh K + N in total."""
    return Recurrence(
        name="symmetric2",
        states=("start", "match"),
        edges=edges("start", to="match", moves="diag", cost="match")
        + edges("match", to="match", moves="diag", cost="match", weight=2.0)
        + edges("match", to="match", moves="left top", cost="match"),
        start="start",
        final=("match",),
    )


@cache
def asymmetric() -> Recurrence:
    """Each z counts once: x may be passed over, one at a time and for free, and may match several z.

    A step goes on by 0, 1 or 2 columns; `skip` is in the column between.
    """
    return Recurrence(
        name="asymmetric",
        states=("start", "match", "skip"),
        edges=edges("start", to="match", moves="diag", cost="match")
        + edges("match", to="match", moves="top diag", cost="match")
        + edges("skip", to="match", moves="diag", cost="match")
        + edges("match", to="skip", moves="left", cost="free"),
        start="start",
        final=("match",),
    )


def _slope_limited(name: str, diag: float, second_x: tuple[float, float], second_z: tuple[float, float]) -> Recurrence:
    """A pattern in which a step along X or along Z follows a diagonal one: slopes from ½ to 2.

    diag : the weight of a diagonal step.
    second_x, second_z : the weights of the diagonal step before a step along X (along Z), and of that step.
    """
    return Recurrence(
        name=name,
        states=("start", "match", "before_x", "before_z"),
        edges=edges("start", to="match", moves="diag", cost="match")
        + edges("before_x", to="match", moves="left", cost="match", weight=second_x[1])
        + edges("match", to="match", moves="diag", cost="match", weight=diag)
        + edges("before_z", to="match", moves="top", cost="match", weight=second_z[1])
        + edges("match", to="before_x", moves="diag", cost="match", weight=second_x[0])
        + edges("match", to="before_z", moves="diag", cost="match", weight=second_z[0]),
        start="start",
        final=("match",),
    )


@cache
def symmetric_p1() -> Recurrence:
    """`symmetric2` with slopes from ½ to 2."""
    return _slope_limited("symmetricP1", 2.0, (2.0, 1.0), (2.0, 1.0))


@cache
def asymmetric_p1() -> Recurrence:
    """Each z counts once, with slopes from ½ to 2: two x that match one z count half each."""
    return _slope_limited("asymmetricP1", 1.0, (0.5, 0.5), (1.0, 1.0))
