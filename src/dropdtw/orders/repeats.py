"""Graphs for the table of CTC, in which the same z may not follow itself at once.

An arc's `use` says how a z may follow another one: `NEW` after a dropped x, `DROP` at once, by way of the table's state
`gate`. Nodes with the same id have `NEW` only. Between them there may be hubs, and what they collect depends on the
walk. So a hub that leads from an id to the same id gets a copy without the nodes of that id.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf
from typing import Any

from dropdtw.orders.graph import AGAIN, DROP, MOST_NODES, NEW, PASS, Arc, Graph, graph_of


def chain(groups: Sequence[int], skips: Sequence[float] | None, *, gaps: bool = False) -> tuple[Graph, list[int]]:
    """Build the graph of groups of z that follow each other, and list the node of each group's first z.

    groups : the number of z of each group.   skips : what it costs to skip each group, as a whole; None: no skips.
        +∞ forbids it.
    gaps : whether the z after the last group, row sum(groups), may stand in each gap: before the first, between, and
        after the last of the groups that are not skipped, at most once in each.
    """
    label, hub, arcs = [-1], [False], list[Arc]()
    between = sum(groups)

    def node(row: int, *sources: tuple[int, float]) -> int:
        """A node of its own, or, for row −1, a hub."""
        label.append(row)
        hub.append(row < 0)
        use = PASS if row < 0 else NEW
        arcs.extend(Arc(source, len(label) - 1, use, cost) for source, cost in sources if cost < inf)
        return len(label) - 1

    # What a group may follow: the groups before it, and the gap between them and it.
    ends = [0, node(between, (0, 0.0))] if gaps else [0]
    row, first = 0, []
    for number, size in enumerate(groups):
        before = ends
        first.append(len(label))
        last = node(row, *((end, 0.0) for end in before))
        for n in range(1, size):
            last = node(row + n, (last, 0.0))
        row += size
        ends = [last, node(between, (last, 0.0))] if gaps else [last]
        if skips is not None:
            cost = float(skips[number])
            ends = [node(-1, (end, 0.0), (past, cost)) for end, past in zip(ends, before, strict=True)]
    return graph_of(label, arcs, ends, hub=hub), first


def forbid_repeats(graph: Graph, ids: Sequence[Any]) -> Graph:
    """Let each z follow others at once, but not one with the same id. Numbers of nodes stay the same.

    graph : its arcs that match, use NEW, say which z may follow which.   ids : (K,).

    Raises ValueError if the graph has cycles, or would be too large.
    """
    own = [ids[row] if row >= 0 else None for row in graph.label.tolist()]
    into: list[list[Arc]] = [[] for _ in own]
    for arc in graph.arcs:
        if arc.use & PASS:
            into[arc.target].append(arc)
    follows = {own[arc.target] for arc in graph.arcs if arc.use & NEW}
    label, arcs = graph.label.tolist(), list[Arc]()
    copies: dict[tuple[int, Any], int | None] = {}

    @cache
    def ends(hub: int) -> frozenset[Any]:
        """The ids that a hub collects; those that nothing follows do not matter."""
        found = (ends(arc.source) if graph.hub[arc.source] else {own[arc.source]} for arc in into[hub])
        return frozenset().union(*found) & (follows | {None})

    def known(node: int, name: Any) -> tuple[int | None] | None:
        """The node itself, or its copy apart from nodes with this id, as a tuple; None if that is to be made."""
        if not graph.hub[node]:
            return (None if own[node] == name and label[node] >= 0 else node,)
        if name not in ends(node):
            return (node,)
        return (copies[node, name],) if (node, name) in copies else None

    def without(node: int, name: Any) -> int | None:
        """What a node collects apart from nodes with this id; None if nothing is left."""
        waiting = [node]  # not by recursion: a long text has a long chain of hubs
        while waiting:
            hub = waiting[-1]
            before = [arc.source for arc in into[hub] if known(arc.source, name) is None]
            if known(hub, name) is None and not before:
                ways = [(known(arc.source, name), arc) for arc in into[hub]]
                kept = [(way[0], arc) for way, arc in ways if way is not None and way[0] is not None]
                copies[hub, name] = len(label) if kept else None
                if kept:
                    if len(label) >= MOST_NODES:
                        raise ValueError(f"z with equal names need more than {MOST_NODES} nodes; align it in parts")
                    arcs.extend(arc._replace(source=source, target=len(label)) for source, arc in kept)
                    label.append(-1)
            if known(hub, name) is None:
                waiting += before
            else:
                waiting.pop()
        found = known(node, name)
        assert found is not None
        return found[0]

    gates: dict[int, int] = {}
    for arc in graph.arcs:
        if not arc.use & NEW:
            arcs.append(arc)
            continue
        source, gate = without(arc.source, own[arc.target]), arc.target
        if not graph.again[gate]:  # it may not match twice (`durations`), so it has its gate beside it
            if gate not in gates:
                gates[gate] = len(label)
                label.append(label[gate])
                arcs.append(Arc(gates[gate], gate, AGAIN))
            gate = gates[gate]
        if source == arc.source and gate == arc.target:
            arcs.append(arc._replace(use=NEW | DROP))
            continue
        arcs.append(arc._replace(use=NEW))
        if source is not None:
            arcs.append(arc._replace(source=source, target=gate, use=DROP))
    more = range(len(graph), len(label))
    return graph_of(
        label,
        arcs,
        graph.finals,
        start=graph.start,
        hub=[*graph.hub.tolist(), *(label[v] < 0 for v in more)],
        again=[*graph.again.tolist(), *(False for _ in more)],
    )
