"""The reference executor: any table, any reducer, in plain NumPy. Read this to know what every other executor computes.

Cells of one anti-diagonal (i + j = t) do not depend on each other, so each pass is a loop over anti-diagonals in
which a whole diagonal is one array. `forward` folds the edges that enter each state; `backward` pushes weights back
along the same edges. With the hard minimum the weights are 0 or 1, and the weights that arrive at the match costs are
the optimal alignment. `Column` takes the same passes over one column after the other, for an X that has not ended yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dropdtw.executors.graphs import run as run_graph
from dropdtw.executors.graphs import trace as trace_graph
from dropdtw.executors.protocol import Occurrences, Padded, Result, Step, Trace, Within
from dropdtw.orders.graph import Graph
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.inputs import Array
from dropdtw.problem.match import Matrix
from dropdtw.problem.problem import Costs
from dropdtw.tables.reducers import Reducer, hard_min
from dropdtw.tables.table import MOVES, Recurrence

__all__ = [
    "Column",
    "marginals",
    "occurrences",
    "pairwise",
    "run",
    "run_batch",
    "run_graph",
    "sample",
    "supports",
    "trace",
]
__all__ += ["trace_graph", "trace_matching", "within"]


def supports(table: Recurrence) -> bool:
    """Every table runs here."""
    return True


def run(table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False) -> Result:
    """Solve one problem: the value, and with `gradient` also its derivatives (for `hard_min`, the alignment)."""
    return _run(_Grid(table, costs), reducer, gradient)


def _run(grid: _Grid, reducer: Reducer, gradient: bool) -> Result:
    _forward(grid, reducer)
    ends = grid.ends()
    value = float(reducer.value(ends)[0])
    if not gradient:
        return Result(value)
    G = np.zeros_like(grid.D)
    G[grid.final, *grid.shape] = reducer.weights(ends)[:, 0]
    return Result(value, *_backward(grid, reducer, G, grid.diagonals()))


def trace(table: Recurrence, costs: Costs) -> Trace:
    """Find a best alignment: the derivatives of the hard minimum, which are 1 where it pays and 0 elsewhere."""
    return _trace(_Grid(table, costs))


def trace_matching(table: Recurrence, costs: Costs, j: int) -> Trace:
    """Find a best alignment among those that match x_j."""
    return _trace(_Grid(table, costs, matching=j))


def _trace(grid: _Grid) -> Trace:
    value, match, drop_x, drop_z, charges, _ = _run(grid, hard_min, gradient=True)
    pairs = np.argwhere(match)
    weights = None if grid.weights <= {1.0} else match[tuple(pairs.T)]
    return Trace(value, pairs, drop_x, drop_z, weights, charges)


def marginals(table: Recurrence, reducer: Reducer, costs: Costs) -> Array:
    """How much of the value passes through each match, whatever that weighs: under `soft_min`, its probability."""
    grid = _Grid(table, costs)
    _forward(grid, reducer)
    G = np.zeros_like(grid.D)
    G[grid.final, *grid.shape] = reducer.weights(grid.ends())[:, 0]
    return _backward(grid, reducer, G, grid.diagonals(), weighted=False)[0]


def within(table: Recurrence, costs: Costs, limit: float) -> Within:
    """The hard value, whatever the limit."""
    return Within(run(table, hard_min, costs).value)


def occurrences(table: Recurrence, costs: Costs, report: Callable[[int, int], None]) -> Occurrences:
    """See `Executor.occurrences`: with each value goes the first x of its path, the last of those that tie."""
    grid = _Grid(table, costs)
    _forward(grid, hard_min)
    K, N = grid.shape
    begin = np.full(grid.D.shape, -1, np.int64)
    begin[grid.start] = np.arange(N + 2)  # a path that has not begun takes the next x at the earliest
    others = [s for s in range(len(grid.ways)) if s not in grid.start]
    for i, j in grid.diagonals():
        for s in others:
            ties = grid.arriving(s, i, j) == grid.D[s, i, j]
            before = [begin[way.src, i - way.di, j - way.dj] for way in grid.ways[s]]
            begin[s, i, j] = np.where(ties, before, -1).max(axis=0)
    ends = grid.D[grid.final, K, 1:-1]
    cost = ends.min(axis=0)
    found = np.where((ends == cost) & (cost < np.inf), begin[grid.final, K, 1:-1], -1).max(axis=0)
    report(N, N)
    return Occurrences(cost, found)


def run_batch(
    table: Recurrence,
    reducer: Reducer,
    padded: Padded,
    *,
    graphs: Sequence[Graph] | None = None,
    gradient: bool = False,
    threads: int = 1,
) -> tuple[Array, Array, Array, Array, Array]:
    """See `Executor.run_batch`: one item after the other."""
    value = np.empty(len(padded.match))
    charges = np.zeros((len(value), len(NO_CHARGES))) if padded.charges is None else padded.charges
    parts = [np.zeros_like(part) if gradient else np.empty(0, part.dtype) for part in (*padded[:3], charges)]
    items = zip(*padded[:5], charges, strict=True)
    for b, (match, d_x, d_z, k, n, charged) in enumerate(items):
        costs = Costs(Matrix(match[:k, :n]), d_x[:n], d_z[:k], None, Charges(*map(float, charged)))
        if graphs is None:
            found = run(table, reducer, costs, gradient=gradient)
        else:
            found = run_graph(table, graphs[b], reducer, costs, gradient=gradient)
        value[b] = found.value
        if gradient:
            parts[0][b, :k, :n], parts[1][b, :n], parts[2][b, :k], parts[3][b] = found[1:5]
    return value, parts[0], parts[1], parts[2], parts[3]


def pairwise(*problems: Any, **options: Any) -> None:
    """Nothing here takes many pairs at a time."""


def sample(table: Recurrence, reducer: Reducer, costs: Costs, n: int, rng: np.random.Generator) -> list[list[Step]]:
    """Draw n alignments from the distribution in which a path's probability is the product of its edges' weights.

    Each draw walks from the end to the start and chooses every edge by its weight; it comes back from start to end.
    Meant for `soft_min`, whose weights are probabilities.
    """
    grid = _Grid(table, costs)
    _forward(grid, reducer)
    ends = reducer.weights(grid.ends())[:, 0]
    return [_walk(grid, reducer, grid.final[_draw(ends, rng)], rng) for _ in range(n)]


class Column:
    """One column of a table's values after the other, for an X whose end is not known; column 0 is there at once.

    A column needs only the one before it, so the grid is that of a problem with a single x: its column 0 holds the
    values of the last column, its column 1 is filled anew.
    """

    def __init__(self, table: Recurrence, reducer: Reducer, drop_z: Array, charges: Charges = NO_CHARGES) -> None:
        K = len(drop_z)
        never = np.full((K, 1), np.inf, drop_z.dtype)
        self.reducer = reducer
        self.grid = _Grid(table, Costs(Matrix(never), never[0], drop_z, None, charges))
        self.rows = np.arange(K + 1)
        # Cells in parts without dependence: all at once where no edge leads down a column, else row by row.
        down = any(way.di and not way.dj for ways in self.grid.ways for way in ways)
        self.cells = [(i, np.ones_like(i)) for i in (self.rows[:, None] if down else self.rows[None])]
        _forward(self.grid, reducer)
        self.place = 0  # column 1 has not been asked for yet

    @property
    def values(self) -> Array:
        """(states, K + 1): the value of every state in every cell of the column."""
        return self.grid.D[:, :-1, self.place]

    def push(self, match: Array, drop_x: float) -> None:
        """Go on to the next column, where z_i matches for match[i] and x drops for drop_x."""
        grid = self.grid
        grid.D[:, :, 0] = grid.D[:, :, self.place]
        grid.D[:, :, 1] = np.inf
        grid.match[1:, 1], grid.drop_x[1], self.place = match, drop_x, 1
        for i, j in self.cells:
            _enter(grid, self.reducer, i, j)

    def choices(self) -> Array:
        """(states, K + 1): the number of the best way into each state of the column, the first of equals, −1: none."""
        j = np.full_like(self.rows, self.place)
        weights = [self.reducer.weights(self.grid.arriving(s, self.rows, j)) for s in range(len(self.grid.ways))]
        return np.array([np.where(w.any(axis=0), w.argmax(axis=0), -1) for w in weights])

    def derivatives(self, weights: Array) -> tuple[Array, float]:
        """How much of weights (states, K + 1) on the column's values goes to each match of its x, and to its drop."""
        G = np.zeros_like(self.grid.D)
        G[:, :-1, 1] = weights
        match, drop_x, _, _ = _backward(self.grid, self.reducer, G, self.cells)
        return match[:, 0], float(drop_x[0])


class _Way(NamedTuple):
    """An edge into a state, with its source's number.

    border : None where the edge holds everywhere.   column : the one that it holds in, None for all.
    """

    src: int
    di: int
    dj: int
    cost: str
    weight: float
    plus: str | None
    border: bool | None
    column: int | None = None


class _Grid:
    """A table laid over one problem: the value D of every state in every cell, and what each edge pays there.

    matching : an x that every alignment has to match; None: no matter which.
    """

    def __init__(self, table: Recurrence, costs: Costs, matching: int | None = None) -> None:
        K, N = self.shape = costs.shape
        number = {state: s for s, state in enumerate(table.states)}
        self.start = [number[state] for state in table.starts]
        self.final = [number[state] for state in table.final]
        listed = [(e, None if table.border is None else False) for e in table.edges]
        listed += [(e, True) for e in table.border or ()]
        self.ways = [
            [
                _Way(number[e.src], *MOVES[e.move], e.cost, e.weight, e.plus, border)
                for e, border in listed
                if e.dst == state
            ]
            for state in table.states
        ]
        if matching is not None:
            # Every state a second time, for after x has been matched. Only matches of x lead from the first ones to the
            # second, and only these are final.
            S = len(self.ways)
            across = [[w._replace(column=matching + 1) for w in into if w.cost == "match"] for into in self.ways]
            after = [[w._replace(src=w.src + S) for w in into] for into in self.ways]
            self.ways += [one + other for one, other in zip(across, after, strict=True)]
            self.final = [s + S for s in self.final]
        self.weights = table.weights
        self.charges = costs.charges._asdict()
        # A cell before row or column 0 has index −1, which is the last one: kept at ∞, nothing comes from there.
        self.D = np.full((len(self.ways), K + 2, N + 2), np.inf, costs.dtype)
        # Row and column 0 have nothing to match or to drop: their prices are ∞.
        self.match = np.pad(costs.banded(), ((1, 0), (1, 0)), constant_values=np.inf)
        self.drop_x = np.concatenate([[np.inf], costs.drop_x]).astype(self.D.dtype)
        self.drop_z = np.concatenate([[np.inf], costs.drop_z]).astype(self.D.dtype)

    def diagonals(self) -> Iterator[tuple[Array, Array]]:
        """The cells of each anti-diagonal as arrays (i, j), in the order of the forward pass, without the origin."""
        K, N = self.shape
        for t in range(1, K + N + 1):
            i = np.arange(max(0, t - N), min(K, t) + 1)
            yield i, t - i

    def arriving(self, s: int, i: Array, j: Array) -> Array:
        """The value of each way into state s at each of the cells (i, j): (ways, cells), ∞ where there is none."""
        values = np.full((max(1, len(self.ways[s])), len(i)), np.inf, self.D.dtype)
        for v, way in zip(values, self.ways[s], strict=False):
            v[:] = self.D[way.src, i - way.di, j - way.dj]
            if way.plus is not None:
                v += self.charges[way.plus]
            v += self.price(way, i, j)
            if way.border is not None:
                v[((i == 0) | (j == 0)) != way.border] = np.inf
            if way.column is not None:
                v[j != way.column] = np.inf
        return values

    def price(self, way: _Way, i: Array, j: Array) -> Array | float:
        """What an edge pays on arrival at the cells (i, j), without its charge."""
        if way.cost == "free":
            return 0.0
        paid = self.match[i, j] if way.cost == "match" else self.drop_x[j] if way.cost == "drop_x" else self.drop_z[i]
        return paid if way.weight == 1 else way.weight * paid

    def ends(self) -> Array:
        """The values of the final states in the last cell: (states, 1)."""
        K, N = self.shape
        return self.D[self.final, K, N][:, None]


def _forward(grid: _Grid, reducer: Reducer) -> None:
    """Fill grid.D: each state of each cell from the ways into it."""
    origin = np.array([0])
    for s in range(len(grid.ways)):
        grid.D[s, 0, 0] = 0 if s in grid.start else reducer.value(grid.arriving(s, origin, origin))[0]
    for i, j in grid.diagonals():
        _enter(grid, reducer, i, j)


def _enter(grid: _Grid, reducer: Reducer, i: Array, j: Array) -> None:
    """Fill the cells (i, j), none of which depends on another."""
    for s in range(len(grid.ways)):
        grid.D[s, i, j] = reducer.value(grid.arriving(s, i, j))


def _backward(
    grid: _Grid, reducer: Reducer, G: Array, cells: Iterable[tuple[Array, Array]], weighted: bool = True
) -> tuple[Array, Array, Array, Charges]:
    """Push the weights G of all states back along the edges; what arrives at the prices are their derivatives.

    cells : in the order of the forward pass, in parts none of whose cells depends on another.
    weighted : False gives what passes through each price, whatever an edge multiplies it by.
    """
    into = {
        "match": np.zeros_like(grid.match),
        "drop_x": np.zeros_like(grid.drop_x),
        "drop_z": np.zeros_like(grid.drop_z),
    }
    charged = dict.fromkeys(grid.charges, 0.0)
    for i, j in reversed(list(cells)):
        for s in reversed(range(len(grid.ways))):
            live = np.flatnonzero(G[s, i, j])  # of a hard alignment, one cell or none
            if live.size == 0:
                continue
            il, jl = i[live], j[live]
            weights = reducer.weights(grid.arriving(s, il, jl)) * G[s, il, jl]
            for w, way in zip(weights, grid.ways[s], strict=True):
                # No cell occurs twice, so += adds every contribution; but several may share their x.
                G[way.src, il - way.di, jl - way.dj] += w
                if way.plus is not None:
                    charged[way.plus] += float(w.sum())
                if weighted:
                    w = way.weight * w
                if way.cost == "match":
                    into["match"][il, jl] += w
                elif way.cost == "drop_x":
                    np.add.at(into["drop_x"], jl, w)
                elif way.cost == "drop_z":
                    into["drop_z"][il] += w
    return into["match"][1:, 1:], into["drop_x"][1:], into["drop_z"][1:], Charges(**charged)


def _walk(grid: _Grid, reducer: Reducer, s: int, rng: np.random.Generator) -> list[Step]:
    """One random path from state s in the last cell back to the origin, as what it pays where."""
    i, j = grid.shape
    path = []
    while (i, j) != (0, 0):
        w = reducer.weights(grid.arriving(s, np.array([i]), np.array([j])))[:, 0]
        way = grid.ways[s][_draw(w, rng)]
        path.append(Step(way.cost, i - 1, j - 1, way.weight, way.plus))
        s, i, j = way.src, i - way.di, j - way.dj
    return path[::-1]


def _draw(weights: Array, rng: np.random.Generator) -> int:
    """An index drawn with probability proportional to `weights`."""
    total = np.cumsum(weights, dtype=np.float64)
    return int(np.searchsorted(total, rng.random() * total[-1], side="right"))
