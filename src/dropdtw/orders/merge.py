"""Merge equal walks, so that soft minima and posteriors count no alignment twice.

A walk through a graph is a word. Each letter is the use of an arc and the step that it leads to, and equal words are
equal alignments. So we make the graph deterministic, as an automaton: a node of the new graph stands for all nodes that
the same word leads to. Each has a surplus, by which it costs more than the cheapest of them, so that an alignment
costs what its cheapest walk costs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

from dropdtw.orders.graph import AGAIN, DROP, NEW, OTHER, PASS, SAME, Arc, Graph, graph_of

MOST_MERGED: Final = 1 << 12
"""Maximum number of nodes that are compared. Larger graphs stay as they are."""

Group = dict[int, float]
"""Nodes that the same word leads to, with their surplus."""


class Merged(NamedTuple):
    """A graph in which each word is one walk.

    repeats : whether several walks of the graph (not of the original, if they were merged) spell the same word.
    """

    graph: Graph
    repeats: bool


def merged(graph: Graph) -> Merged:
    """The graph with equal walks merged; the graph itself if there are none, or if the result would be too large."""
    groups: list[Group] = [{graph.start: 0.0}]
    number = {_key(groups[0]): 0}
    label, again, finals = [-1], [False], []
    arcs: dict[tuple[int, int, float], int] = {}
    repeats = stuck = False
    for g, group in enumerate(groups):
        letters, ends, twice = _after(graph, group)
        repeats |= twice
        if ends is not None:
            finals.append(g)
        stuck |= (ends or 0.0) > 0  # a final node cannot carry a cost
        if len(groups) > MOST_MERGED:
            return Merged(graph, repeats)
        for (use, step), nodes in letters.items():
            least = min(nodes.values())
            rest = {v: paid - least for v, paid in nodes.items()}
            target = number.setdefault(_key(rest), len(groups))
            if target == len(groups):
                groups.append(rest)
                label.append(step)
                again.append(False)
            if use == AGAIN and target == g and least == 0:
                again[g] = True
            else:
                arcs[g, target, least] = arcs.get((g, target, least), 0) | use
    if not repeats or stuck:
        return Merged(graph, repeats)
    again[0] = bool(graph.again[graph.start])
    listed = [Arc(source, target, uses, cost) for (source, target, cost), uses in arcs.items()]
    return Merged(graph_of(label, listed, finals, again=again, partial=graph.partial), False)


def _key(group: Group) -> tuple[tuple[int, float], ...]:
    return tuple(sorted((v, round(surplus, 12)) for v, surplus in group.items()))


def _after(graph: Graph, group: Group) -> tuple[dict[tuple[int, int], Group], float | None, bool]:
    """What follows a group: the nodes of each letter, the least surplus at which walks may end, if they may, and
    whether two walks spell the same word.
    """
    here, twice = _with_hubs(graph, group)
    found: dict[tuple[int, int], Group] = defaultdict(dict)
    for u, paid in here.items():
        ways = [(v, uses & ~PASS, cost) for v, uses, cost in graph.leaving[u]]
        ways += [(u, AGAIN, 0.0)] * bool(graph.again[u] and graph.label[u] >= 0)
        for v, uses, cost in ways:
            for use in (NEW, OTHER, SAME, DROP, AGAIN):
                if uses & use:
                    nodes = found[use, int(graph.label[v])]
                    twice |= v in nodes
                    nodes[v] = min(paid + cost, nodes.get(v, paid + cost))
    ends = [here[v] for v in graph.finals if v in here]
    return found, min(ends, default=None), twice or len(ends) > 1


def _with_hubs(graph: Graph, group: Group) -> tuple[Group, bool]:
    """The nodes and the hubs that they lead to, and whether a hub is reached twice."""
    found, twice = dict(group), False
    todo = list(group)
    for u in todo:
        for v, uses, cost in graph.leaving[u]:
            if uses & PASS:
                twice |= v in found
                if found[u] + cost < found.get(v, float("inf")):
                    found[v] = found[u] + cost
                    todo.append(v)
    return found, twice
