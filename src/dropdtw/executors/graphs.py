"""The reference executor for steps that form a graph: any table without borders, any reducer, in plain NumPy.

It works like `reference.py`, but column by column. In each column, blocks of nodes are processed in topological order
(`GraphLayout`). Edges enter a state as in a list, except that their source is first reduced over the node's incoming
arcs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dropdtw.executors.protocol import Element, Result, Step, Trace
from dropdtw.orders.graph import AGAIN, NEW, OTHER, PASS, Block, Graph, use_of
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.problem.match import Matrix
from dropdtw.tables.reducers import Reducer, hard_min
from dropdtw.tables.table import MOVES, Recurrence

CONSUMES = NEW | OTHER | AGAIN
"""The uses of an arc that advance to the next column."""


def run(
    table: Recurrence, graph: Graph, reducer: Reducer, costs: Costs, *, gradient: bool = False, weighted: bool = True
) -> Result:
    """Compute the value and, with `gradient`, its derivatives, including those with respect to the costs of arcs.

    weighted : False returns the weight that flows through each cost, without the factor `Edge.weight`.
    """
    sheet = _Sheet(table, graph, costs)
    sheet.fill(reducer)
    ends = sheet.ends()
    value = float(reducer.value(ends)[0])
    if not gradient:
        return Result(value)
    G = np.zeros_like(sheet.D)
    weights = reducer.weights(ends)[:, 0].reshape(len(sheet.final), -1)
    for s, w in zip(sheet.final, weights, strict=True):
        np.add.at(G[s, -1], np.array(graph.finals), w)
    return Result(value, *sheet.push_back(reducer, G, range(len(sheet.D[0]) - 1, -1, -1), weighted))


def trace(table: Recurrence, graph: Graph, costs: Costs, *, matching: Element | None = None) -> Trace:
    """Find a best alignment and its walk, the steps that it visits.

    matching : an element that it must match; None for no such constraint.
    """
    sheet = _Sheet(table, graph, costs, matching)
    sheet.fill(hard_min)
    ends = sheet.ends()
    value = float(hard_min.value(ends)[0])
    if not np.isfinite(value):
        return Trace(value, np.empty((0, 2), np.int64), np.zeros(costs.shape[1]), np.zeros(costs.shape[0]))
    steps = sheet.trace_back(hard_min, int(np.argmin(ends)), lambda weights: int(np.argmax(weights)))
    return Trace.of_steps(value, steps, costs.shape, table)


def sample(
    table: Recurrence, graph: Graph, reducer: Reducer, costs: Costs, n: int, rng: np.random.Generator
) -> list[list[Step]]:
    """Draw n alignments; see `reference.sample`."""

    sheet = _Sheet(table, graph, costs)
    sheet.fill(reducer)
    ends = reducer.weights(sheet.ends())[:, 0]
    return [sheet.trace_back(reducer, drawn(ends, rng), lambda weights: drawn(weights, rng)) for _ in range(n)]


def drawn(weights: Array, rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to `weights`."""
    total = np.cumsum(weights, dtype=np.float64)
    return int(np.searchsorted(total, rng.random() * total[-1], side="right"))


class GraphColumn:
    """Values column by column, for an X whose end is not known: `reference.Column` for a graph."""

    def __init__(
        self, table: Recurrence, graph: Graph, reducer: Reducer, drop_z: Array, charges: Charges = NO_CHARGES
    ) -> None:
        never = np.full((len(drop_z), 1), np.inf, drop_z.dtype)
        self.reducer = reducer
        self.sheet = _Sheet(table, graph, Costs(Matrix(never), never[0], drop_z, charges))
        self.sheet.enter(reducer, 0)
        self.current = 0  # there is no x yet, so the current column is column 0

    @property
    def values(self) -> Array:
        """(states, V): the value of every state in every node of the column."""
        return self.sheet.D[:, self.current, :-1]

    def push(self, match: Array, drop_x: float) -> None:
        """Advance to the next column. Matching its x with z_i costs match[i], dropping it costs drop_x."""
        sheet = self.sheet
        sheet.D[:, 0] = sheet.D[:, self.current]
        sheet.match[:-1, 0], sheet.drop_x[0], self.current = match, drop_x, 1
        sheet.enter(self.reducer, 1)

    def choices(self) -> tuple[Array, Array]:
        """The best predecessors, two arrays (states, V).

        The first holds the number of the best edge into each state of each node, −1 if there is none; for a hub it is
        0. The second holds which of the node's arcs of that use the edge takes (see `Gather`).
        """
        sheet = self.sheet
        ways, arcs = (np.full(self.values.shape, fill) for fill in (-1, 0))
        for block in sheet.layout.blocks:
            everywhere = np.arange(len(block.nodes))
            for s in range(len(sheet.ways)):
                best = self._best(sheet.arriving(self.reducer, block, everywhere, s, self.current))
                if block.hub:
                    ways[s, block.nodes], arcs[s, block.nodes] = np.minimum(best, 0), np.maximum(best, 0)
                    continue
                ways[s, block.nodes] = best
                for number, way in enumerate(sheet.ways[s]):
                    at = everywhere[best == number]
                    if way.use and len(at):
                        arcs[s, block.nodes[at]] = self._best(sheet.sources(block, at, way.use, way.src, self.current))
        return ways, arcs

    def _best(self, values: Array) -> Array:
        """The row of the best value in each column, the first among ties; −1 if none is finite."""
        weights = self.reducer.weights(values)
        return np.asarray(np.where(weights.any(axis=0), weights.argmax(axis=0), -1))

    def marginals(self, weights: Array) -> tuple[Array, float]:
        """The weight that passes through each match (K,) and through the drop of the newest x; as in `reference`."""
        G = np.zeros_like(self.sheet.D)
        G[:, 1, :-1] = weights
        match, drop_x, *_ = self.sheet.push_back(self.reducer, G, [1], weighted=False)
        return match[:, 0], float(drop_x[0])


class Way(NamedTuple):
    """An edge into a state.

    src : the number of its source state.   di, dj : how many z and x it advances by; in a graph, `di` is a new node.
    use : the use of the arc that it takes in a graph, 0 for none.   cost, weight, plus, move : as in `Edge`.
    border : True if it exists only on the border, False if only off it, None if everywhere.
    only : the only z or x in which it exists, counted from 1; None for all.
    """

    src: int
    di: int
    dj: int
    use: int
    cost: str
    weight: float
    plus: str | None
    move: str
    border: bool | None
    only: Element | None = None


def ways_of(table: Recurrence) -> list[list[Way]]:
    """The edges into each state of a table, in tie order."""
    number = {state: s for s, state in enumerate(table.states)}
    listed = [(e, None if table.border is None else False) for e in table.edges]
    listed += [(e, True) for e in table.border or ()]
    ways: list[list[Way]] = [[] for _ in table.states]
    for e, border in listed:
        ways[number[e.dst]].append(
            Way(number[e.src], *MOVES[e.move], use_of(e), e.cost, e.weight, e.plus, e.move, border)
        )
    return ways


def through(element: Element, ways: list[list[Way]], final: list[int]) -> tuple[list[list[Way]], list[int]]:
    """The edges into each state, and the final states, of a table whose alignments all match this element.

    Every state has a duplicate, in which the element has already been matched. Only its matches lead from the originals
    to the duplicates, and only duplicates are final.
    """
    S, there = len(ways), Element(element.axis, element.place + 1)
    across = [[way._replace(only=there) for way in into if way.cost == "match"] for into in ways]
    after = [[way._replace(src=way.src + S) for way in into] for into in ways]
    return ways + [one + other for one, other in zip(across, after, strict=True)], [s + S for s in final]


class _Sheet:
    """A table applied to a graph and its costs: D (states, N + 1, V + 1). The last node is a dummy that stays at ∞.

    matching : an element that every alignment must match; None for no such constraint.
    """

    def __init__(self, table: Recurrence, graph: Graph, costs: Costs, matching: Element | None = None) -> None:
        N = costs.shape[1]
        number = {state: s for s, state in enumerate(table.states)}
        self.graph, self.layout = graph, graph.on(table)
        self.seen: dict[tuple[int, ...], Array] = {}  # cached weights of edges and arcs, for tracebacks
        self.start, self.final = ([number[s] for s in states] for states in (table.starts, table.final))
        self.ways = ways_of(table)
        if matching is not None:
            self.ways, self.final = through(matching, self.ways, self.final)
        self.charges = costs.charges._asdict()
        self.D = np.full((len(self.ways), N + 1, len(graph) + 1), np.inf, costs.dtype)
        # Nodes without a z (label −1) and column 0, which has no x, both get the index −1. It selects the last entry,
        # which is ∞.
        self.match = np.pad(costs.matrix, ((0, 1), (0, 1)), constant_values=np.inf)
        self.drop_x = np.append(costs.drop_x, np.inf).astype(self.D.dtype)
        self.drop_z = np.append(costs.drop_z, np.inf).astype(self.D.dtype)

    @cached_property
    def places(self) -> dict[int, tuple[Block, int]]:
        """The block of each node, and its position in the block."""
        return {int(v): (block, n) for block in self.layout.blocks for n, v in enumerate(block.nodes)}

    def fill(self, reducer: Reducer) -> None:
        """Compute all columns."""
        for j in range(self.D.shape[1]):
            self.enter(reducer, j)

    def enter(self, reducer: Reducer, j: int) -> None:
        """Compute column j from the previous one."""
        for block in self.layout.blocks:
            everywhere = np.arange(len(block.nodes))
            for s in range(len(self.ways)):
                self.D[s, j, block.nodes] = reducer.value(self.arriving(reducer, block, everywhere, s, j))
                if j == 0 and s in self.start:
                    self.D[s, 0, block.nodes[block.nodes == self.graph.start]] = 0

    def ends(self) -> Array:
        """The values of the final states in the final nodes, ordered by state, then by node: (states · nodes, 1)."""
        return np.concatenate([self.D[s, -1, list(self.graph.finals)] for s in self.final])[:, None]

    def sources(self, block: Block, at: Array, use: int, s: int, j: int) -> Array:
        """The values (W, n) of source state s over the arcs of a use into the nodes `at` of a block in column j."""
        gather = block.gathers[use]
        j -= bool(use & CONSUMES)
        if j < 0:
            return np.full((len(gather.source), len(at)), np.inf, self.D.dtype)
        return np.asarray(self.D[s, j, gather.source[:, at]] + gather.cost[:, at].astype(self.D.dtype))

    def arriving(self, reducer: Reducer, block: Block, at: Array, s: int, j: int) -> Array:
        """The value (edges, n) of each edge into state s of the nodes `at` of a block in column j."""
        if block.hub:
            return self.sources(block, at, PASS, s, j)
        nodes = block.nodes[at]
        values = np.full((max(1, len(self.ways[s])), len(at)), np.inf, self.D.dtype)
        for v, way in zip(values, self.ways[s], strict=False):
            if way.only is not None and way.only.axis == 1 and way.only.place != j:
                continue
            if way.use:
                v[:] = reducer.value(self.sources(block, at, way.use, way.src, j))
            elif j >= way.dj:
                v[:] = self.D[way.src, j - way.dj, nodes]
            if way.plus is not None:
                v += self.charges[way.plus]
            v += self.price(way, nodes, j)
            if way.only is not None and way.only.axis == 0:
                v[self.graph.label[nodes] + 1 != way.only.place] = np.inf
        return values

    def price(self, way: Way, nodes: Array, j: int) -> Array | float:
        """The cost of an edge into column j, without its charge."""
        if way.cost == "free":
            return 0.0
        label = self.graph.label[nodes]
        paid: Any = self.drop_x[j - 1]
        if way.cost != "drop_x":
            paid = self.match[label, j - 1] if way.cost == "match" else self.drop_z[label]
        return np.asarray(paid if way.weight == 1 else way.weight * paid)

    def push_back(
        self, reducer: Reducer, G: Array, columns: Any, weighted: bool = True
    ) -> tuple[Array, Array, Array, Charges, Array]:
        """Propagate the weights G of all states back along edges and arcs; see `reference._backward`.

        Returns derivatives, the last with respect to the costs of arcs.
        """
        match, drop_x, drop_z = (np.zeros_like(part) for part in (self.match, self.drop_x, self.drop_z))
        charged = dict.fromkeys(self.charges, 0.0)
        arcs = np.zeros(len(self.layout.source) + 1, self.D.dtype)  # the last entry is for padding
        for j in columns:
            for block in reversed(self.layout.blocks):
                for s in reversed(range(len(self.ways))):
                    g = G[s, j, block.nodes]
                    if j == 0 and s in self.start:
                        g[block.nodes == self.graph.start] = 0
                    at = np.flatnonzero(g)
                    if at.size == 0:
                        continue
                    weights = reducer.weights(self.arriving(reducer, block, at, s, j)) * g[at]
                    if block.hub:
                        self._to_sources(G, arcs, weights, block, at, PASS, s, j)
                        continue
                    nodes = block.nodes[at]
                    label = self.graph.label[nodes]
                    for w, way in zip(weights, self.ways[s], strict=False):
                        if way.use:
                            shares = reducer.weights(self.sources(block, at, way.use, way.src, j)) * w
                            self._to_sources(G, arcs, shares, block, at, way.use, way.src, j)
                        elif j >= way.dj:
                            G[way.src, j - way.dj, nodes] += w
                        if way.plus is not None:
                            charged[way.plus] += float(w.sum())
                        paid = way.weight * w if weighted else w
                        if way.cost == "match":
                            np.add.at(match[:, j - 1], label, paid)
                        elif way.cost == "drop_x":
                            drop_x[j - 1] += paid.sum()
                        elif way.cost == "drop_z":
                            np.add.at(drop_z, label, paid)
        by_arcs = arcs[: len(self.graph.arcs)]
        return match[:-1, :-1], drop_x[:-1], drop_z[:-1], Charges(**charged), by_arcs

    def _to_sources(
        self, G: Array, arcs: Array, shares: Array, block: Block, at: Array, use: int, s: int, j: int
    ) -> None:
        gather = block.gathers[use]
        if j >= bool(use & CONSUMES):
            np.add.at(G[s, j - bool(use & CONSUMES)], gather.source[:, at], shares)
            np.add.at(arcs, gather.arcs[:, at], shares)

    def trace_back(self, reducer: Reducer, end: int, draw: Callable[[Array], int]) -> list[Step]:
        """A path from an end back to the start, as steps from start to end. `draw` picks one of several weights."""
        s, v = self.final[end // len(self.graph.finals)], self.graph.finals[end % len(self.graph.finals)]
        j, path = self.D.shape[1] - 1, []
        while not (j == 0 and v == self.graph.start and s in self.start):
            block, n = self.places[v]
            at = np.array([n])
            if (s, v, j) not in self.seen:  # many tracebacks pass through the same cells
                self.seen[s, v, j] = reducer.weights(self.arriving(reducer, block, at, s, j))[:, 0]
            chosen = draw(self.seen[s, v, j])
            if block.hub:
                v = int(block.gathers[PASS].source[chosen, n])
                continue
            way = self.ways[s][chosen]
            path.append(Step(way.cost, int(self.graph.label[v]), j - 1, way.weight, way.plus, way.move))
            if way.use:
                if (s, v, j, chosen) not in self.seen:
                    shares = reducer.weights(self.sources(block, at, way.use, way.src, j))
                    self.seen[s, v, j, chosen] = shares[:, 0]
                arc = draw(self.seen[s, v, j, chosen])
                v = int(block.gathers[way.use].source[arc, n])
            s, j = way.src, j - way.dj
        return path[::-1]
