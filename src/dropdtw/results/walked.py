"""The cost of a walk's arcs, recomputed from the steps it visits. Used to validate and to rescore a walk."""

from __future__ import annotations

import numpy as np

from dropdtw.orders.graph import AGAIN, DROP, NEW, OTHER, PASS, SAME, Graph
from dropdtw.problem.inputs import Array


def arcs_cost(graph: Graph, walk: Array, visit: Array, pairs: Array) -> float | None:
    """The arc cost of the cheapest path through the graph that visits the z of `walk` with these matches.

    visit : the entry of `walk` that each pair belongs to.   Returns None if there is no such path.
    """
    matches: list[list[int]] = [[] for _ in walk]
    for number, j in zip(visit.tolist(), pairs[:, 1].tolist(), strict=True):
        matches[number].append(j)
    here = {graph.start: 0.0}
    last = -1
    for z, xs in zip(walk.tolist(), matches, strict=True):
        uses = DROP | OTHER if not xs else SAME if xs[0] == last else NEW | SAME
        here = _follow(graph, _through_hubs(graph, here), uses, z)
        for _ in xs[1:]:
            stay = {v: cost for v, cost in here.items() if graph.again[v]}
            for v, cost in _follow(graph, here, AGAIN, z).items():
                stay[v] = min(cost, stay.get(v, np.inf))
            here = stay
        last = xs[-1] if xs else last
    here = _through_hubs(graph, here)
    return min((here[v] for v in graph.finals if v in here), default=None)


def _follow(graph: Graph, here: dict[int, float], uses: int, z: int) -> dict[int, float]:
    """The nodes of z that arcs with one of the `uses` lead to, and the lowest cost of reaching each."""
    found: dict[int, float] = {}
    for u, paid in here.items():
        for v, use, cost in graph.leaving[u]:
            if use & uses and graph.label[v] == z and paid + cost < found.get(v, np.inf):
                found[v] = paid + cost
    return found


def _through_hubs(graph: Graph, here: dict[int, float]) -> dict[int, float]:
    """The given nodes and all hubs that can be reached from them, with the lowest cost of each."""
    found = dict(here)
    todo = list(here)
    while todo:
        u = todo.pop()
        for v, use, cost in graph.leaving[u]:
            if use & PASS and found[u] + cost < found.get(v, np.inf):
                found[v] = found[u] + cost
                todo.append(v)
    return found
