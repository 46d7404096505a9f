"""Tables: states and the edges between them. `recurrence.py` defines every aligner as a table.

A path over cells (i, j), 0 ≤ i ≤ K and 0 ≤ j ≤ N, from (0, 0) to (K, N), describes an alignment. Cell (i, j) means that
the first i elements of Z and the first j elements of X have been processed. In each cell the path is in one *state*,
which records what happened last. An *edge* `src → dst` is one way to enter a state. Its *move* says from which cell it
comes. On arrival at (i, j), it pays `weight × cost + plus`; these terms are explained below. These are the moves:

    move   predecessor cell
    diag   (i−1, j−1)
    left   (i,   j−1)
    top    (i−1, j)
    same   (i,   j)

And these are the costs; `COSTS` lists the moves that can pay each of them:

    cost     pays      exists where
    match    C[i, j]   i, j ≥ 1
    drop_x   d_x[j]    j ≥ 1
    drop_z   d_z[i]    i ≥ 1
    free     0         everywhere

Here, elements are numbered from 1. Arrays start at 0, so in code the cell (i, j) pays C[i−1, j−1].

The *weight* is a number that belongs to the table; in built-in tables, it differs from 1 only in step patterns. *plus*
names a charge, an extra cost whose amount belongs to the problem, not to the table: "open_x" and "open_z" for the first
drop of a run, "warp" for a match that repeats an element.

An edge exists only where both its predecessor cell and its cost exist. So row 0 and column 0 need no special code,
except in a table with a `border`, which has its own edges there.

The order of the edges breaks ties: among equally good edges into a state, the first one listed wins.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real
from typing import Final, NamedTuple

MOVES: Final = {"diag": (1, 1), "left": (0, 1), "top": (1, 0), "same": (0, 0)}
"""How far back (in i, in j) the predecessor cell of each move lies."""

COSTS: Final = {
    "match": ("diag", "left", "top"),
    "drop_x": ("left", "diag"),
    "drop_z": ("top", "diag"),
    "free": ("diag", "left", "top", "same"),
}
"""The moves on which each cost can be paid. A drop of x_j has to enter column j, a drop of z_i has to enter row i."""

CHARGES: Final = {"open_x": "drop_x", "open_z": "drop_z", "warp": "match"}
"""The cost that each charge can be added to."""


class Edge(NamedTuple):
    """One way to enter state `dst`: from state `src` by `move`, paying `weight × cost + plus`.

    src, dst : names of states.   move : "diag", "left", "top" or "same".
    cost : "match", "drop_x", "drop_z" or "free".   weight : a finite number > 0.
    plus : a charge on top, "open_x", "open_z" or "warp"; None for no charge.
    """

    src: str
    dst: str
    move: str
    cost: str
    weight: float = 1.0
    plus: str | None = None


def edges(
    src: str, *, to: str, moves: str, cost: str, weight: float = 1.0, plus: str | None = None
) -> tuple[Edge, ...]:
    """Make the edges from each state in `src` to state `to`, by each of the `moves`.

    src, moves : names separated by spaces.   to : one state.   cost, weight, plus : as in `Edge`.

    >>> import dropdtw
    >>> [f"{e.src} → {e.dst} {e.move}" for e in dropdtw.edges("a b", to="c", moves="diag left", cost="match")]
    ['a → c diag', 'b → c diag', 'a → c left', 'b → c left']
    """
    return tuple(Edge(s, to, move, cost, weight, plus) for move, s in product(moves.split(), src.split()))


@dataclass(frozen=True)
class Recurrence:
    """A dynamic program over two sequences, stated as data. The module `dropdtw.tables.table` explains its parts.

    states : names, in the order in which a cell is computed: a `same` edge has to lead from an earlier state to a later
        one.
    edges : the edges; among ties the first one listed wins.
    start : the state, or states, that cost 0 in cell (0, 0).
    final : the states in which an alignment may end in cell (K, N); among ties the first one listed wins.
    border : edges that replace `edges` on row 0 and column 0; None if `edges` applies there too.
    name : for error messages and `Alignment.method`.

    Raises ValueError if the table is inconsistent. Your own table works wherever a method name does:

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
        """The start states, always as a tuple."""
        return (self.start,) if isinstance(self.start, str) else self.start

    @property
    def at_origin(self) -> dict[str, int]:
        """In how many ways each state is reached in cell (0, 0), where only `same` edges lead on from a start state.

        A border has no such edges.
        """
        ways = dict.fromkeys(self.starts, 1)
        for state in self.states if self.border is None else ():
            if state not in ways:
                into = [ways.get(e.src, 0) for e in self.edges if e.move == "same" and e.dst == state]
                ways |= {state: sum(into)} if sum(into) else {}
        return ways

    def transpose(self) -> Recurrence:
        """The same table with the roles of Z and X exchanged."""
        return replace(
            self,
            name=f"{self.name}, transposed",
            edges=_mirror(self.edges),
            border=None if self.border is None else _mirror(self.border),
        )

    def matches_by(self, move: str) -> bool:
        """Whether a match can be entered by `move`: `left` lets one z match several x, `top` one x several z."""
        return any(e.cost == "match" and e.move == move for e in self.edges)

    @property
    def every_edge(self) -> tuple[Edge, ...]:
        """All edges, including those of the border."""
        return (*self.edges, *(self.border or ()))

    def pays_charge(self, plus: str) -> bool:
        """Whether some edge pays this charge."""
        return any(e.plus == plus for e in self.every_edge)

    @property
    def weights(self) -> frozenset[float]:
        """The distinct weights of match costs."""
        return frozenset(e.weight for e in self.edges if e.cost == "match")

    @property
    def skips_for_free(self) -> bool:
        """Whether some edge skips an element without paying. Then d_x and d_z do not account for all drops."""
        pays_one_of_two = {("diag", "drop_x"), ("diag", "drop_z")}  # a diagonal move passes an x and a z
        return any(
            (e.cost == "free" and e.move != "same") or (e.move, e.cost) in pays_one_of_two for e in self.every_edge
        )

    def unmatched_x_pays(self) -> frozenset[str]:
        """What an unmatched x can pay as the path enters its column: "drop_x", "free" or both; empty if all x match."""
        return frozenset(
            "drop_x" if e.cost == "drop_x" else "free"
            for e in self.every_edge
            if MOVES[e.move][1] and e.cost != "match"
        )

    def can_match_x_after_drop(self) -> bool:
        """Whether a path that entered a column without a match can still match its x in a later row.

        No built-in table allows this, but a user-defined one may.
        """
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
    """Raise if the table is inconsistent, and say why."""

    def refuse(what: str) -> None:
        raise ValueError(f"recurrence {table.name!r}: {what}")

    known = set(table.states)
    if not table.states or len(known) < len(table.states):
        refuse(f"states are {table.states!r}; list at least one, without duplicates")
    for role, listed in (("start", table.starts), ("final", table.final)):
        if not listed or not set(listed) <= known or len(set(listed)) < len(listed):
            refuse(f"{role} is {listed!r}; give one or more of the states {table.states!r}, each once")
    for e in table.every_edge:
        if not {e.src, e.dst} <= known:
            refuse(f"{e} names a state that is not among {table.states!r}; add the state or correct the edge")
        if e.move not in MOVES or e.cost not in COSTS:
            refuse(f"{e}: unknown move or cost; moves are {', '.join(MOVES)}, costs are {', '.join(COSTS)}")
        if e.move not in COSTS[e.cost]:
            refuse(f"{e}: a {e.cost!r} cost can be paid on the moves {', '.join(COSTS[e.cost])} only")
        if not (isinstance(e.weight, Real) and 0 < e.weight < math.inf):
            refuse(f"{e}: the weight is {e.weight!r}; give a finite number > 0")
        if e.cost == "free" and e.weight != 1:
            refuse(f"{e}: a weight has no effect on a free edge; leave it out")
        if e.plus is not None and CHARGES.get(e.plus) != e.cost:
            known_charges = ", ".join(f"{plus!r} to {cost!r}" for plus, cost in CHARGES.items())
            refuse(f"{e}: plus is {e.plus!r}, which does not fit {e.cost!r}; these can be added: {known_charges}")
        if e.plus == "warp" and e.move == "diag":
            refuse(f"{e}: a match by 'diag' repeats no element; charge 'warp' on left or top")
        if e.move == "same" and table.states.index(e.src) >= table.states.index(e.dst):
            refuse(f"{e}: a 'same' edge must lead from an earlier state to a later one; reorder the states")
    for e in table.border or ():
        if e.cost == "match" or e.move == "diag":
            refuse(f"{e}: on a border there is nothing to match and no diagonal move; use left or top, and no match")
    for group in (table.edges, table.border or ()):
        twice = [way for way, n in Counter(e[:4] for e in group).items() if n > 1]
        if twice:
            refuse(f"{Edge(*twice[0])} is listed twice; under soft minima it would count twice, so remove one")
    unreachable = known - _reachable(table)
    if unreachable:
        refuse(f"no path from start {table.starts!r} leads to {sorted(unreachable)}; add an edge or remove the state")


def _reachable(table: Recurrence) -> set[str]:
    found = set(table.starts)
    while new := {e.dst for e in table.every_edge if e.src in found} - found:
        found |= new
    return found
