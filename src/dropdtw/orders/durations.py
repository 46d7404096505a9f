"""Durations of steps: how many x a step lasts, at least and at most, in the graph of an order.

A step that lasts 3 to 5 elements becomes a chain of five copies, each with one x. The path leaves it after the third,
the fourth or the fifth. A step that lasts at least 3 has three copies, and stays in the last one. So a graph grows by
the longest count of each step, and every executor and loss works as before. A dropped step has a node of its own,
beside the copies, so it pays once.

A list of steps that all last equally long needs no copies of its steps. There, the states of the table count the x
(`recurrence.lasting`), which is much faster: see `as_list`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from math import ceil, floor

from dropdtw.orders.graph import AGAIN, DROP, MOST_NODES, PASS, Arc, Graph, Ints, graph_of
from dropdtw.tables import recurrence
from dropdtw.tables.table import Recurrence

Duration = int | timedelta
"""How long a step lasts: a number of elements, or a time."""

MOST_STATES = 200
"""Maximum number of x that the states of a table count."""


def check(table: Recurrence) -> None:
    """Raise unless the table gives each step one unbroken run of x, which durations count."""
    again = [e for e in table.edges if e.cost == "match" and e.move == "left"]
    if not again or table.matches_by("top") or any(e.src != e.dst for e in again):
        raise ValueError(
            "the order says how long steps last, and this method does not give each step one unbroken run of x; "
            "use method 'steps' or 'ctc' with one_to_many=True"
        )


def as_list(graph: Graph, table: Recurrence) -> tuple[Recurrence, Ints] | None:
    """The table and the rows of Z that compute a graph as a list, if it is one whose steps all last equally long."""
    if graph.chain is not None:
        return table, graph.chain
    if graph.equal is None:
        return None
    rows, least, most = graph.equal
    matched = {e.dst for e in table.edges if e.cost == "match"}
    own_state = len(matched) == 1 and all(e.cost == "match" for e in table.edges if e.dst in matched)
    return (recurrence.lasting(table, least, most), rows) if own_state and (most or least) <= MOST_STATES else None


def counted(least: Duration, most: Duration | None, period: float | None) -> tuple[int, int | None]:
    """Limits as numbers of elements that last `period` seconds each; None if that is not known."""

    def count(said: Duration, rounded: Callable[[float], int]) -> int:
        if not isinstance(said, timedelta):
            return said
        if period is None:
            raise ValueError(
                f"a step lasts {said.total_seconds():g} s, but the x have no uniform clock; give times= or fps= in "
                "which all last equally long (resample X, and fill in missing elements), or give numbers of elements"
            )
        exact = said.total_seconds() / period
        return round(exact) if abs(exact - round(exact)) < 1e-3 else rounded(exact)

    low, high = max(1, count(least, ceil)), None if most is None else count(most, floor)
    if high is not None and high < low:
        raise ValueError(
            f"a step would last at least {low} and at most {high} elements"
            + (f" of {period:g} s" if period is not None else "")
            + "; allow a wider range"
        )
    return low, high


def lasting(graph: Graph, durations: Mapping[int, tuple[int, int | None]], drops: bool) -> Graph:
    """The graph with each step repeated as often as it may last.

    drops : whether steps may be dropped.

    Raises ValueError if the graph would be too large.
    """
    limits = {durations.get(row, (1, None)) for row in graph.label[1:].tolist()}
    equal = None if graph.chain is None or len(limits) > 1 else (graph.chain, *limits.pop())
    label, hub, again = graph.label.tolist(), graph.hub.tolist(), graph.again.tolist()
    past = None if graph.past is None else list(graph.past)
    arcs: list[Arc] = []
    dropped: dict[int, int] = {}
    last: dict[int, int] = {}

    def node(like: int, *, is_hub: bool = False, repeats: bool = False) -> int:
        if len(label) >= MOST_NODES:
            raise ValueError(f"durations need more than {MOST_NODES} nodes; give shorter ones, or resample X")
        label.append(-1 if is_hub else label[like])
        hub.append(is_hub)
        again.append(repeats)
        if past is not None:
            past.append(past[like])
        return len(label) - 1

    for v in range(len(graph)):
        least, most = durations.get(label[v], (1, None))
        if (least, most) == (1, None):
            continue
        again[v] = False
        copies = [v]
        while len(copies) < (most or least):
            copies.append(node(v))
            arcs.append(Arc(copies[-2], copies[-1], AGAIN))
        again[copies[-1]] = most is None
        ends = copies[least - 1 :]
        if drops:
            dropped[v] = node(v)
            ends = [*ends, dropped[v]]
        last[v] = ends[0] if len(ends) == 1 else node(v, is_hub=True)
        arcs += [Arc(end, last[v], PASS) for end in ends] if len(ends) > 1 else []
    ways: list[Arc] = []
    for arc in graph.arcs:
        way = arc._replace(source=last.get(arc.source, arc.source))
        if arc.target in last and way.use & DROP:
            ways += [way._replace(target=dropped[arc.target], use=DROP)] if drops else []
            way = way._replace(use=way.use & ~DROP)
        ways.append(way)
    return graph_of(
        label,
        ways + arcs,
        [last.get(v, v) for v in graph.finals],
        start=graph.start,
        hub=hub,
        again=again,
        past=None if past is None else tuple(past),
        partial=graph.partial,
        equal=equal,
    )
