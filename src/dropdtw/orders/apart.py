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

from dropdtw.orders.graph import DROP, MOST_NODES, NEW, PASS, Arc, Graph, graph_of


def chain(groups: Sequence[int], skips: Sequence[float] | None) -> tuple[Graph, list[int]]:
    """Build the graph of groups of z that follow each other, and list the node of each group's first z.

    groups : the number of z of each group.   skips : what it costs to skip each group, as a whole; None: no skips.
        +∞ forbids it.
    """
    label, hub, arcs = [-1], [False], list[Arc]()
    after, first = 0, []
    for number, size in enumerate(groups):
        before = after
        first.append(len(label))
        for _ in range(size):
            arcs.append(Arc(after, len(label), NEW))
            after = len(label)
            label.append(len(label) - sum(hub) - 1)
            hub.append(False)
        if skips is not None:
            arcs.append(Arc(after, len(label), PASS))
            if skips[number] < inf:
                arcs.append(Arc(before, len(label), PASS, float(skips[number])))
            after = len(label)
            label.append(-1)
            hub.append(True)
    return graph_of(label, arcs, [after], hub=hub), first


def apart(graph: Graph, ids: Sequence[Any]) -> Graph:
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

    def without(node: int, name: Any) -> int | None:
        """The node itself, or what it collects apart from nodes with this id; None if nothing is left."""
        if not graph.hub[node]:
            return None if own[node] == name and label[node] >= 0 else node
        if name not in ends(node):
            return node
        if (node, name) not in copies:
            ways = [(without(arc.source, name), arc) for arc in into[node]]
            kept = [(source, arc) for source, arc in ways if source is not None]
            copies[node, name] = None
            if kept:
                if len(label) >= MOST_NODES:
                    raise ValueError(f"z with equal names need more than {MOST_NODES} nodes; align it in parts")
                copies[node, name] = len(label)
                arcs.extend(arc._replace(source=source, target=len(label)) for source, arc in kept)
                label.append(-1)
        return copies[node, name]

    for arc in graph.arcs:
        if not arc.use & NEW:
            arcs.append(arc)
            continue
        source = without(arc.source, own[arc.target])
        arcs.append(arc._replace(use=NEW | DROP if source == arc.source else NEW))
        if source is not None and source != arc.source:
            arcs.append(arc._replace(source=source, use=DROP))
    more = len(label) - len(graph)
    return graph_of(
        label,
        arcs,
        graph.finals,
        start=graph.start,
        hub=[*graph.hub.tolist(), *[True] * more],
        again=[*graph.again.tolist(), *[False] * more],
    )
