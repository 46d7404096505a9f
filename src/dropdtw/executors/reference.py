"""The reference executor: any table, any reducer, in plain NumPy. It defines what every other executor must compute.

The cells of an anti-diagonal (i + j = t) do not depend on each other, so each pass loops over anti-diagonals and treats
each as one array. `_forward` reduces the edges into each state. `_backward` propagates derivatives back along the same
edges. With the hard minimum, the derivative is 1 for the edges of one optimal path and 0 for all others. So the match
costs with a nonzero derivative (1, or `Edge.weight`) are those of an optimal alignment.
`Column` makes the same passes column by column, for an X whose end is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dropdtw.executors.graphs import Way, drawn, through, ways_of
from dropdtw.executors.graphs import run as run_graph
from dropdtw.executors.graphs import trace as trace_graph
from dropdtw.executors.protocol import Element, Occurrences, Result, Step, Trace, Within
from dropdtw.orders.graph import Graph
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.problem.match import Matrix
from dropdtw.tables.reducers import Reducer, hard_min
from dropdtw.tables.table import Recurrence

__all__ = [
    "Column",
    "in_lanes",
    "marginals",
    "occurrences",
    "pairwise",
    "run",
    "run_batch",
    "run_graph",
    "sample",
    "supports",
    "trace",
    "trace_graph",
    "trace_matching",
    "within",
]


def supports(table: Recurrence, *, graph: bool = False) -> bool:
    """The reference executor runs every table."""
    return True


def in_lanes(table: Recurrence) -> bool:
    """See `Executor.in_lanes`."""
    return False


def run(table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False) -> Result:
    """Solve one problem: the value, and, with `gradient`, its derivatives (for `hard_min`, the alignment)."""
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
    """Find a best alignment from the derivatives of the hard minimum, which are nonzero for what it pays."""
    return _trace(_Grid(table, costs))


def trace_matching(table: Recurrence, costs: Costs, element: Element) -> Trace:
    """Find a best alignment among those that match an element."""
    return _trace(_Grid(table, costs, matching=element))


def _trace(grid: _Grid) -> Trace:
    value, match, drop_x, drop_z, charges, _ = _run(grid, hard_min, gradient=True)
    pairs = np.argwhere(match)
    weights = None if grid.weights <= {1.0} else match[tuple(pairs.T)]
    return Trace(value, pairs, drop_x, drop_z, weights, charges)


def marginals(table: Recurrence, reducer: Reducer, costs: Costs) -> Array:
    """The derivative of each match, without the factor `Edge.weight`; for `soft_min`, the probability of the match."""
    grid = _Grid(table, costs)
    _forward(grid, reducer)
    G = np.zeros_like(grid.D)
    G[grid.final, *grid.shape] = reducer.weights(grid.ends())[:, 0]
    return _backward(grid, reducer, G, grid.diagonals(), weighted=False)[0]


def within(table: Recurrence, costs: Costs, limit: float) -> Within:
    """The hard value. The limit is ignored."""
    return Within(run(table, hard_min, costs).value)


def occurrences(table: Recurrence, costs: Costs, report: Callable[[int, int], None]) -> Occurrences:
    """See `Executor.occurrences`. With each value, it tracks where the path begins; among ties, the latest."""
    grid = _Grid(table, costs)
    _forward(grid, hard_min)
    K, N = grid.shape
    begin = np.full(grid.D.shape, -1, np.int64)
    begin[grid.start] = np.arange(N + 2)  # in column j, the next x has index j
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
    batch: Costs,
    *,
    graphs: Sequence[Graph] | None = None,
    gradient: bool = False,
    threads: int = 1,
) -> tuple[Array, Array, Array, Array, Array]:
    """See `Executor.run_batch`. Items are computed one after the other."""
    value = np.empty(len(batch.match))
    charges = np.zeros((len(value), len(NO_CHARGES))) if batch.charges is None else batch.charges
    parts = [np.zeros_like(part) if gradient else np.empty(0, part.dtype) for part in (*batch[:3], charges)]
    items = zip(*batch[:3], *batch.sizes, charges, strict=True)
    for b, (match, d_x, d_z, k, n, charged) in enumerate(items):
        costs = Costs(Matrix(match[:k, :n]), d_x[:n], d_z[:k], Charges(*map(float, charged)))
        if graphs is None:
            found = run(table, reducer, costs, gradient=gradient)
        else:
            found = run_graph(table, graphs[b], reducer, costs, gradient=gradient)
        value[b] = found.value
        if gradient:
            parts[0][b, :k, :n], parts[1][b, :n], parts[2][b, :k], parts[3][b] = found[1:5]
    return value, parts[0], parts[1], parts[2], parts[3]


def pairwise(*problems: Any, **options: Any) -> None:
    """The reference executor cannot compute many pairs in one call, so this returns None."""


def sample(table: Recurrence, reducer: Reducer, costs: Costs, n: int, rng: np.random.Generator) -> list[list[Step]]:
    """Draw n alignments.

    Each sample goes from the end back to the start. In each state, it draws one of the edges into it, with the
    probability that the reducer gives it (`Reducer.weights`, not `Edge.weight`). The steps are returned from start to
    end. Intended for `soft_min`, for which these are probabilities.
    """
    grid = _Grid(table, costs)
    _forward(grid, reducer)
    ends = reducer.weights(grid.ends())[:, 0]
    seen: dict[tuple[int, int, int], Array] = {}
    return [_random_path(grid, reducer, grid.final[drawn(ends, rng)], rng, seen) for _ in range(n)]


class Column:
    """A table's values column by column, for an X whose end is not known. It starts at column 0.

    A column depends only on the previous one, so the grid is that of a problem with a single x. Its column 0 holds the
    previous column; its column 1 is recomputed for each x.
    """

    def __init__(self, table: Recurrence, reducer: Reducer, drop_z: Array, charges: Charges = NO_CHARGES) -> None:
        K = len(drop_z)
        never = np.full((K, 1), np.inf, drop_z.dtype)
        self.reducer = reducer
        self.grid = _Grid(table, Costs(Matrix(never), never[0], drop_z, charges))
        self.rows = np.arange(K + 1)
        # Groups of independent cells: the whole column if no edge has the move `top`, otherwise row by row.
        down = any(way.di and not way.dj for ways in self.grid.ways for way in ways)
        self.cells = [(i, np.ones_like(i)) for i in (self.rows[:, None] if down else self.rows[None])]
        _forward(self.grid, reducer)
        self.current = 0  # there is no x yet, so the current column is column 0

    @property
    def values(self) -> Array:
        """(states, K + 1): the value of every state in every cell of the column."""
        return self.grid.D[:, :-1, self.current]

    def push(self, match: Array, drop_x: float) -> None:
        """Advance to the next column. Matching its x with z_i costs match[i], dropping it costs drop_x."""
        grid = self.grid
        grid.D[:, :, 0] = grid.D[:, :, self.current]
        grid.D[:, :, 1] = np.inf
        grid.match[1:, 1], grid.drop_x[1], self.current = match, drop_x, 1
        for i, j in self.cells:
            _enter(grid, self.reducer, i, j)

    def choices(self) -> Array:
        """(states, K + 1): the number of the best edge into each state, the first among ties; −1 if there is none."""
        j = np.full_like(self.rows, self.current)
        weights = [self.reducer.weights(self.grid.arriving(s, self.rows, j)) for s in range(len(self.grid.ways))]
        return np.array([np.where(w.any(axis=0), w.argmax(axis=0), -1) for w in weights])

    def marginals(self, weights: Array) -> tuple[Array, float]:
        """The weight that passes through each match (K,) and through the drop of the newest x; see `marginals`.

        weights : (states, K + 1), the weight of each state.
        """
        G = np.zeros_like(self.grid.D)
        G[:, :-1, 1] = weights
        match, drop_x, _, _ = _backward(self.grid, self.reducer, G, self.cells, weighted=False)
        return match[:, 0], float(drop_x[0])


class _Grid:
    """A table applied to one problem: the value D of every state in every cell, and the costs of the edges.

    matching : an element that every alignment must match; None for no such constraint.
    """

    def __init__(self, table: Recurrence, costs: Costs, matching: Element | None = None) -> None:
        K, N = self.shape = costs.shape
        number = {state: s for s, state in enumerate(table.states)}
        self.start = [number[state] for state in table.starts]
        self.final = [number[state] for state in table.final]
        self.ways = ways_of(table)
        if matching is not None:
            self.ways, self.final = through(matching, self.ways, self.final)
        self.weights = table.weights
        self.charges = costs.charges._asdict()
        # Row and column −1 wrap around to the last ones, which are padding and stay at ∞.
        self.D = np.full((len(self.ways), K + 2, N + 2), np.inf, costs.dtype)
        # Row 0 has no z and column 0 has no x, so the match costs there, drop_z[0] and drop_x[0] are ∞.
        self.match = np.pad(costs.banded(), ((1, 0), (1, 0)), constant_values=np.inf)
        self.drop_x = np.concatenate([[np.inf], costs.drop_x]).astype(self.D.dtype)
        self.drop_z = np.concatenate([[np.inf], costs.drop_z]).astype(self.D.dtype)

    def diagonals(self) -> Iterator[tuple[Array, Array]]:
        """The cells of each anti-diagonal except the origin, as arrays (i, j), in the order of the forward pass."""
        K, N = self.shape
        for t in range(1, K + N + 1):
            i = np.arange(max(0, t - N), min(K, t) + 1)
            yield i, t - i

    def arriving(self, s: int, i: Array, j: Array) -> Array:
        """The value of each edge into state s at each cell (i, j): (edges, cells), ∞ where the edge does not exist."""
        values = np.full((max(1, len(self.ways[s])), len(i)), np.inf, self.D.dtype)
        for v, way in zip(values, self.ways[s], strict=False):
            v[:] = self.D[way.src, i - way.di, j - way.dj]
            if way.plus is not None:
                v += self.charges[way.plus]
            v += self.price(way, i, j)
            if way.border is not None:
                v[((i == 0) | (j == 0)) != way.border] = np.inf
            if way.only is not None:
                v[(i, j)[way.only.axis] != way.only.place] = np.inf
        return values

    def price(self, way: Way, i: Array, j: Array) -> Array | float:
        """The cost of an edge into the cells (i, j), without its charge."""
        if way.cost == "free":
            return 0.0
        paid = self.match[i, j] if way.cost == "match" else self.drop_x[j] if way.cost == "drop_x" else self.drop_z[i]
        return paid if way.weight == 1 else way.weight * paid

    def ends(self) -> Array:
        """The values of the final states in the last cell: (states, 1)."""
        K, N = self.shape
        return self.D[self.final, K, N][:, None]


def _forward(grid: _Grid, reducer: Reducer) -> None:
    """Fill grid.D: compute each state of each cell from the edges into it."""
    origin = np.array([0])
    for s in range(len(grid.ways)):
        grid.D[s, 0, 0] = 0 if s in grid.start else reducer.value(grid.arriving(s, origin, origin))[0]
    for i, j in grid.diagonals():
        _enter(grid, reducer, i, j)


def _enter(grid: _Grid, reducer: Reducer, i: Array, j: Array) -> None:
    """Fill the cells (i, j), which do not depend on each other."""
    for s in range(len(grid.ways)):
        grid.D[s, i, j] = reducer.value(grid.arriving(s, i, j))


def _backward(
    grid: _Grid, reducer: Reducer, G: Array, cells: Iterable[tuple[Array, Array]], weighted: bool = True
) -> tuple[Array, Array, Array, Charges]:
    """Propagate G, the derivatives with respect to the values of all states, back along the edges.

    Returns the derivative with respect to each cost.

    cells : groups of independent cells, in the order of the forward pass.
    weighted : False leaves out the factor `Edge.weight`.
    """
    into = {
        "match": np.zeros_like(grid.match),
        "drop_x": np.zeros_like(grid.drop_x),
        "drop_z": np.zeros_like(grid.drop_z),
    }
    charged = dict.fromkeys(grid.charges, 0.0)
    for i, j in reversed(list(cells)):
        for s in reversed(range(len(grid.ways))):
            live = np.flatnonzero(G[s, i, j])  # for the hard minimum, at most one cell
            if live.size == 0:
                continue
            il, jl = i[live], j[live]
            weights = reducer.weights(grid.arriving(s, il, jl)) * G[s, il, jl]
            for w, way in zip(weights, grid.ways[s], strict=True):
                # += adds only once to a repeated index. The cells are distinct and no two share a z, but in `Column`
                # they share an x, so drop_x needs np.add.at.
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


def _random_path(
    grid: _Grid, reducer: Reducer, s: int, rng: np.random.Generator, seen: dict[tuple[int, int, int], Array]
) -> list[Step]:
    """A random path from state s in the last cell back to the origin, as steps from start to end.

    seen : the weights of the edges into the cells that other paths have passed through.
    """
    i, j = grid.shape
    path = []
    while (i, j) != (0, 0):
        if (s, i, j) not in seen:
            seen[s, i, j] = reducer.weights(grid.arriving(s, np.array([i]), np.array([j])))[:, 0]
        way = grid.ways[s][drawn(seen[s, i, j], rng)]
        path.append(Step(way.cost, i - 1, j - 1, way.weight, way.plus))
        s, i, j = way.src, i - way.di, j - way.dj
    return path[::-1]
