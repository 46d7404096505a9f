"""Validation of user-defined graphs, and a test for different walks that visit the same steps."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dropdtw.orders.graph import MOST_NODES, STEP, Arc, graph_of
from dropdtw.orders.order import Order, as_cost, as_list, as_step, is_whole, shown
from dropdtw.problem.warn import warn

MOST_PAIRS: Final = 1 << 20
"""Maximum number of pairs of arcs that the ambiguity test follows. It gives up on a graph with more."""


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
    found = _ambiguous((-1, *steps), (*both[0], *both[1]), ends)
    if found:
        warn(
            f"two walks through the graph visit the same steps {shown(found)[1:-1]}: soft minima and posteriors "
            "count such an alignment twice; merge the nodes in which the walks differ",
            UserWarning,
        )
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


def _ambiguous(label: Sequence[int], arcs: Sequence[tuple[int, int, float]], finals: Sequence[int]) -> list[int] | None:
    """The steps that two different walks from the start to a final node have in common; None if there are none."""
    out: list[dict[int, list[int]]] = [{} for _ in label]  # the successors of each node, by label
    for a, b, _ in arcs:
        out[a].setdefault(label[b], []).append(b)
    ends = set(finals)
    # Follow two walks in parallel, over pairs of nodes with equal labels; `apart`: whether they have differed so far.
    begin = (0, 0, False)
    came: dict[tuple[int, int, bool], tuple[int, int, bool] | None] = {begin: None}
    todo = [begin]
    tried = 0
    for now in todo:
        a, b, apart = now
        for step in out[a].keys() & out[b].keys():
            for n, u in enumerate(out[a][step]):
                for m, v in enumerate(out[b][step]):
                    following = (u, v, apart or u != v or (a == b and n != m))
                    if following not in came:
                        came[following] = now
                        todo.append(following)
                        if following[2] and u in ends and v in ends:
                            return _steps(label, came, following)
                tried += len(out[b][step])
                if tried > MOST_PAIRS:
                    return None
    return None


def _steps(label: Sequence[int], came: dict[Any, Any], at: Any) -> list[int]:
    """The steps on the path to a pair of nodes."""
    steps = []
    while came[at] is not None:
        steps.append(label[at[0]])
        at = came[at]
    return steps[::-1]
