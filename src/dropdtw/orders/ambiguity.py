"""Graphs of a user's own: checked, and tested for walks that cannot be told apart by their steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dropdtw.orders.graph import MOST_NODES, STEP, Arc, graph_of
from dropdtw.orders.order import Order, as_cost, as_step
from dropdtw.problem.warn import warn

MOST_PAIRS: Final = 1 << 20
"""Pairs of nodes that the test for ambiguity looks at; a graph with more goes untested."""


def checked(labels: Sequence[int], arcs: Iterable[Any], finals: Sequence[int], jumps: Iterable[Any]) -> Order:
    """See `orders.walks`."""
    steps = tuple(as_step(label) for label in labels)
    V = len(steps) + 1
    if not 1 < V <= MOST_NODES:
        raise ValueError(f"the graph has {V - 1} nodes besides its start; give 1 to {MOST_NODES - 1}")
    both = tuple(tuple(_arc(arc, V) for arc in listed) for listed in (arcs, jumps))
    ends = tuple(_node(n, V, "final node") for n in finals)
    if not ends or len(set(ends)) < len(ends):
        raise ValueError(f"finals is {list(finals)!r}; give the nodes in which an alignment may end, each once")
    listed = [Arc(a, b, STEP, cost) for a, b, cost in both[0]]
    graph_of([-1, *steps], listed, ends).levels(STEP)  # refuses a cycle
    _check_reach(V, (*both[0], *both[1]), ends)
    found = _ambiguous((-1, *steps), (*both[0], *both[1]), ends)
    if found:
        warn(
            f"two walks through the graph pass the same steps {', '.join(map(str, found))}: soft minima and posteriors "
            "count such an alignment twice; merge the nodes that they differ in",
            UserWarning,
        )
    return Order("walks", (steps, both[0], ends, both[1]))


def _node(n: Any, V: int, what: str) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__") or not 0 <= n < V:
        raise ValueError(f"{n!r} is no {what}; the graph has nodes 0 (the start) to {V - 1}")
    return int(n)


def _arc(said: Any, V: int) -> tuple[int, int, float]:
    try:
        a, b, *rest = said
        (cost,) = rest or (0.0,)
    except (TypeError, ValueError):
        raise ValueError(f"{said!r} is no arc; give (from, to) or (from, to, cost)") from None
    source, target = _node(a, V, "node"), _node(b, V, "node")
    if target == 0:
        raise ValueError(f"the arc {(source, target)} leads to node 0, the start, where nothing is matched")
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
    """The steps of two different walks from the start to a final node, if there are such."""
    out: dict[int, list[int]] = {}
    for a, b, _ in arcs:
        out.setdefault(a, []).append(b)
    # Two walks side by side, over pairs of nodes with equal labels; `apart`: whether they have differed yet.
    begin = (0, 0, False)
    came: dict[tuple[int, int, bool], tuple[int, int, bool] | None] = {begin: None}
    todo = [begin]
    for now in todo:
        a, b, apart = now
        if apart and a in finals and b in finals:
            steps = []
            at: tuple[int, int, bool] | None = now
            while at is not None and at != begin:
                steps.append(label[at[0]])
                at = came[at]
            return steps[::-1]
        for n, u in enumerate(out.get(a, ())):
            for m, v in enumerate(out.get(b, ())):
                following = (u, v, apart or u != v or (a == b and n != m))
                if label[u] == label[v] and following not in came:
                    came[following] = now
                    todo.append(following)
        if len(came) > MOST_PAIRS:
            return None
    return None
