"""Validation of user-defined graphs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from dropdtw.orders.graph import MOST_NODES, STEP, Arc, graph_of
from dropdtw.orders.order import Order, as_cost, as_list, as_step, is_whole, shown


def checked(labels: Sequence[int], arcs: Iterable[Any], finals: Sequence[int], jumps: Iterable[Any]) -> Order:
    """See `orders.walks`."""
    steps = tuple(as_step(label) for label in as_list(labels, "the list of labels"))
    V = len(steps) + 1
    if not 1 < V <= MOST_NODES:
        raise ValueError(f"the graph has {V - 1} nodes besides its start; give 1 to {MOST_NODES - 1}")
    listed = as_list(arcs, "the list of arcs"), as_list(jumps, "the list of jumps")
    both = tuple(tuple(_arc(arc, V) for arc in said) for said in listed)
    ends = tuple(_node(n, V, "final node") for n in as_list(finals, "the list of final nodes"))
    if not ends or len(set(ends)) < len(ends):
        raise ValueError(f"finals is {shown(list(ends))}; give the nodes in which an alignment may end, each once")
    graph_of([-1, *steps], [Arc(a, b, STEP, cost) for a, b, cost in both[0]], ends).levels(STEP)  # raises on a cycle
    _check_reach(V, (*both[0], *both[1]), ends)
    return Order("walks", (steps, both[0], ends, both[1]))


def _node(n: Any, V: int, what: str) -> int:
    if not is_whole(n) or not 0 <= operator.index(n) < V:
        raise ValueError(f"{shown(n)} is not a {what}; the graph has nodes 0 (the start) to {V - 1}")
    return operator.index(n)


def _arc(said: Any, V: int) -> tuple[int, int, float]:
    try:
        a, b, *rest = said
        (cost,) = rest or (0.0,)
    except (TypeError, ValueError):
        raise ValueError(f"{shown(said)} is not an arc; give (from, to) or (from, to, cost)") from None
    source, target = _node(a, V, "node"), _node(b, V, "node")
    if target == 0:
        raise ValueError(f"the arc {(source, target)} leads to node 0, the start; give a target from 1 to {V - 1}")
    return source, target, as_cost(cost, f"cost of the arc {(source, target)}")


def _check_reach(V: int, arcs: Sequence[tuple[int, int, float]], finals: Sequence[int]) -> None:
    forth: dict[int, list[int]] = {}
    back: dict[int, list[int]] = {}
    for a, b, _ in arcs:
        forth.setdefault(a, []).append(b)
        back.setdefault(b, []).append(a)
    for what, begin, ways in (("from the start to", [0], forth), ("to a final node from", list(finals), back)):
        seen, todo = set(begin), list(begin)
        while todo:
            new = set(ways.get(todo.pop(), ())) - seen
            seen |= new
            todo += new
        lost = sorted(set(range(V)) - seen)
        if lost:
            raise ValueError(f"no walk leads {what} node {lost[0]}; add an arc, or remove the node")
