"""A common interface to the columns of a table over a list of steps or over a graph. Used by `Stream`.

A *place* is a row of a list (row 0 is before the first z) or a node of a graph. `ListColumns` and `Nodes` know the
z of each place, where alignments begin and end, and the best predecessor of each place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dropdtw.executors import graphs, reference
from dropdtw.executors.graphs import Way, ways_of
from dropdtw.orders.graph import AGAIN, PASS, Graph
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.tables.reducers import Reducer


class Choices(NamedTuple):
    """The best predecessors of a column, as arrays (states, places).

    ways : the number of the best edge into each state of each place; −1 if there is none.
    arcs : in a graph, the number of the arc that this edge takes; empty for a list.
    """

    ways: Array
    arcs: Array


def columns(problem: Problem, reducer: Reducer) -> ListColumns | Nodes:
    """The columns of a problem's table, before the first x."""
    graph = problem.graph
    return ListColumns(problem, reducer) if graph is None or graph.chain is not None else Nodes(problem, reducer, graph)


class ListColumns:
    """The columns of a list: the predecessors of row i are in rows i and i − 1.

    label : (places,) the z of each place, −1 before the first z.
    start, finals : the places where alignments begin and end.   counted : the places where a prefix of one may end.
    """

    def __init__(self, problem: Problem, reducer: Reducer) -> None:
        costs = problem.costs
        self.K = len(costs.drop_z)
        self.rows = None if problem.graph is None else problem.graph.chain
        drop_z = costs.drop_z if self.rows is None else costs.drop_z[self.rows]
        self.column = reference.Column(problem.table, reducer, drop_z, costs.charges)
        self.label = np.r_[-1, np.arange(self.K) if self.rows is None else self.rows]
        self.start, self.finals = 0, (len(drop_z),)
        self.counted = np.arange(len(self.label))
        self.ways = ways_of(problem.table)
        widest = max(1, *map(len, self.ways))
        moves = [[(way.src, way.di, way.dj) for way in ways] for ways in self.ways]
        self.moves = np.array([ways + [(0, 0, 1)] * (widest - len(ways)) for ways in moves], int)

    @property
    def values(self) -> Array:
        """(states, places) the value of every state in every place."""
        return self.column.values

    def push(self, match: Array, drop_x: float) -> None:
        """Advance to the next x. Matching it with z_i costs match[i], dropping it costs drop_x."""
        self.column.push(match if self.rows is None else match[self.rows], drop_x)

    def choices(self) -> Choices:
        """The best predecessors of the column."""
        return Choices(self.column.choices().astype(np.int8), np.empty(0))

    def marginals(self, weights: Array) -> tuple[Array, float]:
        """The weight that passes through each match (K,) and through the drop of the newest x."""
        match, dropped = self.column.marginals(weights)
        return (match if self.rows is None else np.bincount(self.rows, match, self.K)), dropped

    def source(self, choices: Choices, s: int, place: int) -> tuple[Way | None, int, int]:
        """The best edge into state s of a place (None for a hub), and the state and place it comes from."""
        way = self.ways[s][choices.ways[s, place]]
        return way, way.src, place - way.di

    def sources(self, choices: Choices, s: Array, places: Array) -> tuple[Array, Array, Array]:
        """The predecessors of many cells: states, places, and whether they belong to the previous x.

        Cells without a predecessor, at the start, are left out.
        """
        ways = choices.ways[s, places]
        there = ways >= 0
        src, di, dj = self.moves[s[there], ways[there]].T
        return src, places[there] - di, dj == 1


class Nodes:
    """The columns of a graph: the predecessors of a node are itself and the sources of its arcs. See `ListColumns`."""

    def __init__(self, problem: Problem, reducer: Reducer, graph: Graph) -> None:
        table = problem.table
        self.column = graphs.GraphColumn(table, graph, reducer, problem.costs.drop_z, problem.costs.charges)
        self.label, self.hub = graph.label, graph.hub
        self.start, self.finals = graph.start, graph.finals
        # Hubs only repeat the values of their sources. A node that can only continue its match is not an end, unless it
        # is final.
        leaves = np.zeros(len(graph), bool)
        leaves[graph.source[graph.use & ~AGAIN != 0]] = True
        leaves[list(graph.finals)] = True
        self.counted = np.flatnonzero(leaves & ~graph.hub)
        self.ways = ways_of(table)
        widest = max(1, *map(len, self.ways))
        layout = graph.on(table)
        uses = [0, PASS, *sorted(layout.uses)]
        self.moves = np.zeros((len(table.states), widest, 3), np.int64)  # source state, whether x is new, use
        for s, ways in enumerate(self.ways):
            for n, way in enumerate(ways):
                self.moves[s, n] = way.src, way.dj, uses.index(way.use)
        # The sources of the arcs of each use into each node are stored consecutively.
        self.first = np.zeros((len(uses), len(graph)), np.int64)
        found: list[Array] = []
        here = widest_in = 0
        for block in layout.blocks:
            for use, gather in block.gathers.items():
                there = (gather.arcs >= 0).T
                count = there.sum(axis=1)
                self.first[uses.index(use), block.nodes] = here + np.cumsum(count) - count
                found.append(gather.source.T[there])
                here += int(count.sum())
                widest_in = max(widest_in, int(count.max(initial=0)))
        self.before = np.concatenate(found)
        self.dtype = np.min_scalar_type(widest_in)

    @property
    def values(self) -> Array:
        """(states, places) the value of every state in every place."""
        return self.column.values

    def push(self, match: Array, drop_x: float) -> None:
        """Advance to the next x. Matching it with z_i costs match[i], dropping it costs drop_x."""
        self.column.push(match, drop_x)

    def choices(self) -> Choices:
        """The best predecessors of the column."""
        ways, arcs = self.column.choices()
        return Choices(ways.astype(np.int8), arcs.astype(self.dtype))

    def marginals(self, weights: Array) -> tuple[Array, float]:
        """The weight that passes through each match (K,) and through the drop of the newest x."""
        return self.column.marginals(weights)

    def source(self, choices: Choices, s: int, place: int) -> tuple[Way | None, int, int]:
        """The best edge into state s of a place (None for a hub), and the state and place it comes from."""
        (src,), (before,), _ = self.sources(choices, np.array([s]), np.array([place]))
        return None if self.hub[place] else self.ways[s][choices.ways[s, place]], int(src), int(before)

    def sources(self, choices: Choices, s: Array, places: Array) -> tuple[Array, Array, Array]:
        """The predecessors of many cells: states, places, and whether they belong to the previous x.

        Cells without a predecessor, at the start, are left out.
        """
        there = choices.ways[s, places] >= 0
        s, places = s[there], places[there]
        hub = self.hub[places]
        src, dj, use = self.moves[s, choices.ways[s, places]].T
        src, dj, use = np.where(hub, s, src), np.where(hub, 0, dj), np.where(hub, 1, use)
        place = self.first[use, places] + choices.arcs[s, places]
        return src, np.where(use == 0, places, self.before[np.where(use == 0, 0, place)]), dj == 1
