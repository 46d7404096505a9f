"""Graphs of steps: the executors' representation of an order that is not a list.

In a list, the predecessors of row i are in row i − 1. In a graph, the predecessors of *node* v are the nodes u at the
sources of its incoming *arcs*. Taking an arc adds its cost, and `use` states which edges of the table may take it:

    use     an edge of the table that …                                    predecessor
    NEW     matches the next x with a new step (move diag, cost match)     (u, j − 1)
    OTHER   moves by diag and pays another cost                            (u, j − 1)
    SAME    matches the same x with a new step (top, match)                (u, j)
    DROP    skips a step (top, drop_z or free)                             (u, j)
    AGAIN   matches the next x with the same step (left, match)            (u, j − 1)
    PASS    none: every state of v has the value of that state of u        (u, j)

A node is its own predecessor for `left` edges that are not matches, and, if its `again` is set, for matches too. A
*hub* has no label and no `left` edges. It collects its predecessors by PASS, so that n nodes reach m others by n + m
arcs.

If several arcs lead into a node, each source state is first reduced over these arcs, in their order. Then the table
continues as in a list. Arcs that consume no x (SAME, DROP, PASS) form no cycle; the others may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dropdtw.orders.poset import levels_of
from dropdtw.tables.table import Edge, Recurrence

NEW, OTHER, SAME, DROP, AGAIN, PASS = (1 << bit for bit in range(6))
STEP: Final = NEW | OTHER | SAME | DROP
"""All uses of the arc between two rows of a list."""

MOST_NODES: Final = 1 << 18
"""Maximum number of nodes of a graph."""

Ints = npt.NDArray[np.int64]


def use_of(e: Edge) -> int:
    """The use that an arc must have for this edge of a table; 0 if the edge stays in its node."""
    if e.move == "same" or (e.move == "left" and e.cost != "match"):
        return 0
    if e.move == "left":
        return AGAIN
    if e.move == "diag":
        return NEW if e.cost == "match" else OTHER
    return SAME if e.cost == "match" else DROP


class Arc(NamedTuple):
    """An arc from node `source` to node `target`."""

    source: int
    target: int
    use: int = STEP
    cost: float = 0.0


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes 0 … V − 1 and the arcs between them; see the module docstring.

    label : (V,) the row of Z that a node stands for, −1 for none.
    arcs : in tie order; the arcs into one node are reduced in this order.
    start : the node in which alignments begin.   finals : the nodes in which they may end, in tie order.
    hub : (V,) bool.   again : (V,) bool, whether a node may match another x without leaving it.
    past : for each node, the steps that are done there, including its own, as bits of an integer; None if that depends
        on the walk.
    partial : whether the graph contains a partial order that is not a list.
    equal : the rows of a list, and how many x each of them matches, at least and at most, if that is all that the graph
        says; otherwise None.
    """

    label: Ints
    arcs: tuple[Arc, ...]
    start: int
    finals: tuple[int, ...]
    hub: npt.NDArray[np.bool_]
    again: npt.NDArray[np.bool_]
    past: tuple[int, ...] | None = None
    partial: bool = False
    equal: tuple[Ints, int, int | None] | None = None

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def K(self) -> int:
        """The number of rows of Z."""
        return int(self.label.max()) + 1

    @cached_property
    def source(self) -> Ints:
        """(A,) the source of each arc."""
        return np.array([arc.source for arc in self.arcs], np.int64)

    @cached_property
    def target(self) -> Ints:
        """(A,) the target of each arc."""
        return np.array([arc.target for arc in self.arcs], np.int64)

    @cached_property
    def use(self) -> Ints:
        """(A,) the uses of each arc."""
        return np.array([arc.use for arc in self.arcs], np.int64)

    @cached_property
    def cost(self) -> npt.NDArray[np.float64]:
        """(A,) the cost of each arc."""
        return np.array([arc.cost for arc in self.arcs], np.float64)

    @cached_property
    def leaving(self) -> list[list[tuple[int, int, float]]]:
        """For each node, the target, use and cost of each arc that leaves it."""
        found: list[list[tuple[int, int, float]]] = [[] for _ in range(len(self))]
        for arc in self.arcs:
            found[arc.source].append((arc.target, arc.use, arc.cost))
        return found

    @cached_property
    def chain(self) -> Ints | None:
        """The rows of Z in order, if the graph is just a list; otherwise None."""
        V = len(self)
        plain = all(
            arc.source == v and arc.target == v + 1 and arc.use & STEP == STEP and not arc.cost
            for v, arc in enumerate(self.arcs)
        )
        simple = self.start == 0 and self.finals == (V - 1,) and not self.hub.any() and bool(self.again.all())
        return self.label[1:] if plain and simple and len(self.arcs) == V - 1 and V > 1 else None

    @property
    def rows(self) -> Ints | None:
        """The rows of Z in order, if the graph is a list, whatever its steps last; otherwise None."""
        return self.chain if self.equal is None else self.equal[0]

    def levels(self, uses: int) -> Ints:
        """(V,) the longest path to each node along arcs that consume no x and have one of these `uses`."""
        taken = uses & (SAME | DROP | PASS)
        found = levels_of(len(self), [(arc.source, arc.target) for arc in self.arcs if arc.use & taken])
        if found is None:
            raise ValueError("the arcs form a cycle; pass one of them in jumps= instead")
        return np.array(found, np.int64)

    def without_hubs(self) -> Graph:
        """The same graph with direct arcs instead of hubs, if this changes no value under any reducer.

        A hub can be replaced if its arc is the only one with that use into a node: the node then reduces exactly what
        the hub reduces. Other hubs stay.
        """
        found: Graph = self._direct
        return found

    @cached_property
    def _direct(self) -> Graph:
        if not self.hub.any():
            return self
        arcs = [direct for arc in self.arcs for direct in self._expanded(arc)]
        kept = ~self.hub | np.isin(np.arange(len(self)), [self.start, *self.finals])
        while True:
            needed = kept | np.isin(np.arange(len(self)), [arc.source for arc in arcs if kept[arc.target]])
            if (needed == kept).all():
                break
            kept = needed
        number = np.cumsum(kept) - 1
        return Graph(
            self.label[kept],
            tuple(
                arc._replace(source=int(number[arc.source]), target=int(number[arc.target]))
                for arc in arcs
                if kept[arc.target]
            ),
            int(number[self.start]),
            tuple(int(number[v]) for v in self.finals),
            self.hub[kept],
            self.again[kept],
            None if self.past is None else tuple(past for past, keep in zip(self.past, kept, strict=True) if keep),
            self.partial,
        )

    def _expanded(self, arc: Arc) -> list[Arc]:
        """The arc itself, or, if it leaves a hub, equivalent arcs that bypass the hub as far as possible."""
        if not self.hub[arc.source]:
            return [arc]
        alone = sum(use for use, n in self._ways[arc.target].items() if arc.use & use and n == 1)
        passing = [a for a in self._into[arc.source] if a.use & PASS]
        direct = [
            Arc(inner.source, arc.target, alone, arc.cost + inner.cost)
            for a in passing
            for inner in (self._expanded(a) if len(passing) == 1 else [a])
        ]
        rest = [arc._replace(use=arc.use & ~alone)] if arc.use & ~alone else []
        return direct * bool(alone) + rest

    @cached_property
    def _into(self) -> list[list[Arc]]:
        """The arcs into each node."""
        found: list[list[Arc]] = [[] for _ in range(len(self))]
        for arc in self.arcs:
            found[arc.target].append(arc)
        return found

    @cached_property
    def _ways(self) -> list[dict[int, int]]:
        """For each node, the number of arcs of each use that lead into it; `again` counts as one."""
        found: list[dict[int, int]] = [{AGAIN: 1} if again else {} for again in self.again]
        for arc in self.arcs:
            ways = found[arc.target]
            for use in (NEW, OTHER, SAME, DROP, AGAIN, PASS):
                if arc.use & use:
                    ways[use] = ways.get(use, 0) + 1
        return found

    def on(self, table: Recurrence) -> GraphLayout:
        """The layout of the graph for a table, cached."""
        found: GraphLayout | None = self._layouts.get(table)
        if found is None:
            found = self._layouts[table] = GraphLayout(self, table)
        return found

    @cached_property
    def _layouts(self) -> dict[Recurrence, GraphLayout]:
        return {}


class Gather(NamedTuple):
    """The arcs of one use into each node of a block, padded to equal numbers.

    arcs : (W, n) arc numbers, in order, −1 for padding; A + v means that v is its own predecessor.
    source : (W, n) the source node of each arc; V, which does not exist, for padding.
    cost : (W, n) the cost of each arc.
    """

    arcs: Ints
    source: Ints
    cost: npt.NDArray[np.float64]


class Block(NamedTuple):
    """Nodes that do not depend on each other: their numbers, whether they are hubs, and their gathers by use."""

    nodes: Ints
    hub: bool
    gathers: dict[int, Gather]


class GraphLayout:
    """A graph prepared for a table: blocks of nodes in topological order."""

    def __init__(self, graph: Graph, table: Recurrence) -> None:
        self.graph, self.table = graph, table
        self.uses = {use_of(e) for e in table.edges} - {0}
        taken = sum(self.uses) | PASS
        level = graph.levels(taken)
        self.depth = int(level.max()) + 1
        into: list[list[int]] = [[] for _ in range(len(graph))]
        for number, arc in enumerate(graph.arcs):
            if arc.use & taken:
                into[arc.target].append(number)
        self.source = np.concatenate([graph.source, np.arange(len(graph))])
        self.cost = np.concatenate([graph.cost, np.zeros(len(graph))])
        self.blocks: list[Block] = []
        for at in range(self.depth):
            for hub in (False, True):
                nodes = np.flatnonzero((level == at) & (graph.hub == hub))
                if len(nodes):
                    uses = [PASS] if hub else sorted(self.uses)
                    gathers = {use: self._gather(nodes, into, use) for use in uses}
                    self.blocks.append(Block(nodes, hub, gathers))

    def _gather(self, nodes: Ints, into: Sequence[Sequence[int]], use: int) -> Gather:
        graph = self.graph
        own = use == AGAIN
        rows = [
            [len(graph.arcs) + int(v)] * bool(own and graph.again[v]) + [k for k in into[v] if graph.arcs[k].use & use]
            for v in nodes
        ]
        arcs = np.full((max(1, *map(len, rows), 1), len(rows)), -1)
        for n, row in enumerate(rows):
            arcs[: len(row), n] = row
        there = arcs >= 0
        return Gather(
            arcs,
            np.where(there, self.source[arcs], len(graph)),
            np.where(there, self.cost[arcs], 0.0),
        )


def graph_of(
    label: Sequence[int],
    arcs: Sequence[Arc],
    finals: Sequence[int],
    *,
    start: int = 0,
    hub: Sequence[bool] | None = None,
    again: Sequence[bool] | None = None,
    **more: Any,
) -> Graph:
    """Build a `Graph` from plain lists."""
    V = len(label)
    hubs = np.zeros(V, bool) if hub is None else np.array(hub, bool)
    return Graph(
        np.array(label, np.int64),
        tuple(arcs),
        start,
        tuple(finals),
        hubs,
        ~hubs if again is None else np.array(again, bool),
        **more,
    )
