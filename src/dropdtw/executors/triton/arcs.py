"""Graphs in the form that kernels read: nodes as lanes, arcs as tables of lanes to gather from, and their shapes.

Each node has a lane. The last lane is a dummy that stays at ∞; unused slots of a node point to it. For each use, a node
has a fixed number of slots for incoming arcs, and a fixed number for outgoing arcs, along which derivatives propagate
back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from dropdtw.executors.triton.layout import DIAG, LEFT, MATCH, TableLayout, layout
from dropdtw.executors.triton.layout import SAME as STAYS
from dropdtw.orders.graph import AGAIN, DROP, NEW, OTHER, PASS, SAME, Graph
from dropdtw.tables.table import Recurrence

LANES: Final = 2048
"""Maximum number of lanes of a graph, including the dummy."""

SLOTS: Final = 32
"""Maximum number of arcs of one use into or out of a node."""

USES: Final = (NEW, OTHER, SAME, DROP, AGAIN, PASS)
CONSUMING: Final = NEW | OTHER | AGAIN
AGAIN_BIT, HUB_BIT, START_BIT = 1, 2, 4


@dataclass(frozen=True, eq=False)  # one per table and kind of graph, compared by identity
class Shape:
    """What kernels are specialized for: how a table uses arcs, and how many slots nodes have for them.

    An edge that takes an arc comes from a *pair*, the use of the arc and the state that it brings; with hubs, PASS and
    each state is a pair, too.

    use, state : of each pair.   edges : the edges that come from it.
    consumes, passes, own : whether it leads into the next column, belongs to a hub, and has the node itself as its
        first alternative.   single : whether there is only one alternative.
    first_in, slots_in, first_out, slots_out : where the slots of its use begin, and how many there are.
    pair : of each edge, −1 where it stays in its node.   stays : for each state, the edges that come from it in the
        same node and the column before.
    total_in, total_out : of all slots.
    levels : whether some nodes of a column depend on others.   hubs : whether there are any.   costs : whether any arc
        has a cost.
    """

    use: tuple[int, ...]
    state: tuple[int, ...]
    edges: tuple[tuple[int, ...], ...]
    consumes: tuple[bool, ...]
    passes: tuple[bool, ...]
    own: tuple[bool, ...]
    single: tuple[bool, ...]
    first_in: tuple[int, ...]
    slots_in: tuple[int, ...]
    first_out: tuple[int, ...]
    slots_out: tuple[int, ...]
    pair: tuple[int, ...]
    stays: tuple[tuple[int, ...], ...]
    into: tuple[int, ...]
    out: tuple[int, ...]
    levels: bool
    hubs: bool
    costs: bool

    @property
    def total_in(self) -> int:
        """The number of slots for arcs into a node."""
        return sum(self.into)

    @property
    def total_out(self) -> int:
        """The number of slots for arcs out of a node."""
        return sum(self.out)


@cache
def _shape(
    table: Recurrence, into: tuple[int, ...], out: tuple[int, ...], levels: bool, hubs: bool, costs: bool
) -> Shape:
    found = layout(table)
    edges = range(len(found.src))
    ways = [(_use(found, e), found.src[e]) for e in edges]
    kept = [(PASS, s) for s, keep in enumerate(found.keep) if keep and hubs]
    pairs = list(dict.fromkeys([way for way in ways if way[0]] + kept))
    at = [USES.index(use) for use, _ in pairs]
    return Shape(
        use=tuple(use for use, _ in pairs),
        state=tuple(state for _, state in pairs),
        edges=tuple(tuple(e for e in edges if ways[e] == pair) for pair in pairs),
        consumes=tuple(bool(use & CONSUMING) for use, _ in pairs),
        passes=tuple(use == PASS for use, _ in pairs),
        own=tuple(use == AGAIN for use, _ in pairs),
        single=tuple(into[n] + (use == AGAIN) == 1 for (use, _), n in zip(pairs, at, strict=True)),
        first_in=tuple(sum(into[:n]) for n in at),
        slots_in=tuple(into[n] for n in at),
        first_out=tuple(sum(out[:n]) for n in at),
        slots_out=tuple(out[n] for n in at),
        pair=tuple(pairs.index(way) if way[0] else -1 for way in ways),
        stays=tuple(
            tuple(e for e in edges if ways[e] == (0, s) and found.move[e] == LEFT.value)
            for s in range(len(found.start))
        ),
        into=into,
        out=out,
        levels=levels,
        hubs=hubs,
        costs=costs,
    )


def _use(found: TableLayout, e: int) -> int:
    """Return `orders.graph.use_of` of an edge."""
    move, match = found.move[e], found.cost[e] == MATCH.value
    if move == STAYS.value or (move == LEFT.value and not match):
        return 0
    if move == LEFT.value:
        return AGAIN
    if move == DIAG.value:
        return NEW if match else OTHER
    return SAME if match else DROP


class Stacked(NamedTuple):
    """The graphs of a batch as tensors.

    nodes : (graphs, 5, lanes): label, level, bits (again, hub, start), place among the final nodes (−1: none); then the
        number of steps and that of levels.
    arcs : (graphs, slots, lanes): lanes that arcs into a node come from; those that arcs out of it lead to; and the
        place of the latter among the arcs into their node.
    costs : of the first two of these; None where all are 0.
    members : (graphs, K, most): the lanes of each label, −1 for padding.
    """

    shape: Shape
    V: int
    lanes: int
    nodes: Tensor
    arcs: Tensor
    costs: Tensor | None
    members: Tensor


def fits(graph: Graph, table: Recurrence) -> bool:
    """Whether the kernels can run the graph."""
    found = _compact(graph, table)
    return len(found.graph) < LANES and max(*found.into, *found.out) <= SLOTS


class _Compact(NamedTuple):
    """A graph without its unnecessary hubs: for each use, the arcs into and out of each node, by number."""

    graph: Graph
    level: np.ndarray[Any, Any]
    into: tuple[int, ...]
    out: tuple[int, ...]
    ins: dict[int, list[list[int]]]
    outs: dict[int, list[list[int]]]


@lru_cache(maxsize=256)
def _compact(given: Graph, table: Recurrence) -> _Compact:
    graph = given.without_hubs()
    uses = graph.on(table).uses
    ins: dict[int, list[list[int]]] = {}
    outs: dict[int, list[list[int]]] = {}
    for use in USES:
        ins[use], outs[use] = [[] for _ in range(len(graph))], [[] for _ in range(len(graph))]
        if use in uses or use == PASS:
            for number, arc in enumerate(graph.arcs):
                if arc.use & use:
                    ins[use][arc.target].append(number)
                    outs[use][arc.source].append(number)
    into, out = (tuple(max(map(len, found[use])) for use in USES) for found in (ins, outs))
    return _Compact(graph, graph.levels(sum(uses) | PASS), into, out, ins, outs)


def _rounded(n: int) -> int:
    """Round up a number of slots, so that a few kernels serve many graphs."""
    return next(width for width in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, SLOTS) if n <= width)


@lru_cache(maxsize=64)
def shape_of(graphs: tuple[Graph, ...], table: Recurrence) -> tuple[Shape, int, int]:
    """Return the shape for some graphs, their maximum number of nodes, and the number of lanes."""
    found = [_compact(graph, table) for graph in graphs]
    into, out = (
        tuple(_rounded(max(getattr(one, side)[n] for one in found)) for n in range(len(USES)))
        for side in ("into", "out")
    )
    levels = any(one.level.max() > 0 for one in found)
    hubs = any(bool(one.graph.hub.any()) for one in found)
    costs = any(arc.cost != 0 for one in found for arc in one.graph.arcs)
    V = max(len(one.graph) for one in found)
    return _shape(table, into, out, levels, hubs, costs), V, max(32, 1 << V.bit_length())


@lru_cache(maxsize=64)
def stacked(graphs: tuple[Graph, ...], table: Recurrence, K: int, wide: bool, device: torch.device) -> Stacked:
    """Return graphs as tensors on a device, for batches of K rows."""
    shape, V, lanes = shape_of(graphs, table)
    found = [_compact(graph, table) for graph in graphs]
    width = sum(shape.into) + sum(shape.out)
    nodes = np.full((len(found), 5, lanes), -1, np.int32)
    arcs = np.full((len(found), width + sum(shape.out), lanes), lanes - 1, np.int32)
    arcs[:, width:] = -1
    costs = np.zeros((len(found), width, lanes))
    listed = [[np.flatnonzero(one.graph.label == k) for k in range(K)] for one in found]
    members = np.full((len(found), K, max(1, *(len(m) for own in listed for m in own), 1)), -1, np.int32)
    for g, one in enumerate(found):
        graph, n = one.graph, len(one.graph)
        nodes[g, 0, :n], nodes[g, 1, :n] = graph.label, one.level
        nodes[g, 2] = 0
        nodes[g, 2, :n] = AGAIN_BIT * graph.again + HUB_BIT * graph.hub
        nodes[g, 2, graph.start] += START_BIT
        nodes[g, 3, list(graph.finals)] = np.arange(len(graph.finals))
        nodes[g, 4, 0], nodes[g, 4, 1] = graph.K, one.level.max() + 1
        for k, own in enumerate(listed[g]):
            members[g, k, : len(own)] = own
        place: dict[tuple[int, int], int] = {}
        into, out = 0, sum(shape.into)
        for use, slots_in, slots_out in zip(USES, shape.into, shape.out, strict=True):
            own_first = int(use == AGAIN)  # a node's own value comes before those of its arcs
            for v in range(n):
                for w, number in enumerate(one.ins[use][v]):
                    arcs[g, into + w, v] = graph.arcs[number].source
                    costs[g, into + w, v] = graph.arcs[number].cost
                    place[use, number] = w + own_first
            for u in range(n):
                for w, number in enumerate(one.outs[use][u]):
                    arcs[g, out + w, u] = graph.arcs[number].target
                    arcs[g, out + w + sum(shape.out), u] = place[use, number]
                    costs[g, out + w, u] = graph.arcs[number].cost
            into, out = into + slots_in, out + slots_out
    dtype = torch.float64 if wide else torch.float32
    return Stacked(
        shape,
        V,
        lanes,
        torch.from_numpy(nodes).to(device),
        torch.from_numpy(arcs).to(device),
        torch.from_numpy(costs).to(device, dtype) if shape.costs else None,
        torch.from_numpy(members).to(device),
    )


@lru_cache(maxsize=64)
def numbers(which: Sequence[int], device: torch.device) -> Tensor:
    """Return the index of each item's graph as a tensor on a device."""
    return torch.tensor(which, dtype=torch.int32, device=device)


# Compile-time queries of a shape; see also `layout.of` and `layout.count`.


@triton.constexpr_function
def flag(shape, name):
    return getattr(shape, name)


@triton.constexpr_function
def among(shape, part, k):
    """Return how many edges a part of the shape lists for its k-th entry."""
    return len(getattr(shape, part)[k])


@triton.constexpr_function
def listed(shape, part, k, n):
    """Return the n-th of these edges."""
    return getattr(shape, part)[k][n]
