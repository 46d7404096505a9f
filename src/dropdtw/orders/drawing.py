"""Layout of an order as boxes and arrows: plain data, independent of the drawing library.

Steps are boxes in layers; a step lies in a later layer than all steps that must come before it. Arrows show the
transitive reduction: those that follow from others are left out. A *dot* is a node without a step. It marks a choice at
the beginning or the end of the order, or a place where many arrows meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from dropdtw.orders.order import Order
from dropdtw.orders.poset import Poset, levels_of

BEFORE, EITHER, REPEAT, JUMP = "before", "either", "repeat", "jump"

CROWD: Final = 6
"""Minimum number of arrows between two groups of steps for which a dot replaces them."""
SWEEPS: Final = 6
"""Number of passes that sort each layer by its neighbors, to reduce crossings."""


class Node(NamedTuple):
    """A box, or a dot.

    step : the row of Z; −1 for a dot. A step that occurs several times has several boxes.
    layer : counted from 0.   row : its position in the layer; the middle of a layer is 0.
    """

    step: int
    layer: int
    row: float


class Arrow(NamedTuple):
    """An arrow between two nodes, given by their numbers.

    kind : "before"; "either", one of several alternatives; "repeat", back to the beginning of a repeated part; "jump".
    cost : the cost of taking it.
    bends : the points (layer, row) between its ends that it passes through, so that it crosses no box.
    """

    source: int
    target: int
    kind: str = BEFORE
    cost: float = 0.0
    bends: tuple[tuple[int, float], ...] = ()


class Drawing(NamedTuple):
    """Boxes, dots and arrows.

    Arrows of the kinds "repeat" and "jump" may lead anywhere, even from a box to itself. All others lead to later
    layers.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Arrow, ...]

    @property
    def size(self) -> tuple[int, float]:
        """The number of layers, and the number of rows in the fullest layer."""
        return 1 + max(node.layer for node in self.nodes), 1 + 2 * max(abs(node.row) for node in self.nodes)


def drawing(order: Order) -> Drawing:
    """Lay out the boxes and arrows of an order.

    >>> from dropdtw import orders
    >>> found = drawing(orders.before(3, [(0, 1), (1, 2), (0, 2)]))         # 0 before 2 follows from the others
    >>> [node.step for node in found.nodes], [edge[:2] for edge in found.edges]
    ([0, 1, 2], [(0, 1), (1, 2)])
    """
    sketch = _Sketch()
    firsts, lasts = sketch.add(order)
    sketch.one([end for end in firsts if end.kind == EITHER], last=False)
    sketch.one([end for end in lasts if end.kind == EITHER], last=True)
    return _placed(sketch.steps, sketch.edges)


class _End(NamedTuple):
    """A node where a part of an order begins or ends. Its kind is EITHER if it is one of several alternatives."""

    node: int
    kind: str = BEFORE


class _Sketch:
    """Nodes and edges, without positions."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.edges: list[Arrow] = []

    def node(self, step: int) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def join(self, lasts: Sequence[_End], firsts: Sequence[_End]) -> None:
        """Add arrows from the ends of one part to the beginnings of the next."""
        kinds = {end.kind for end in (*lasts, *firsts)}
        if min(len(lasts), len(firsts)) > 1 and (len(kinds) > 1 or len(lasts) * len(firsts) >= CROWD):
            dot = [_End(self.node(-1))]
            self.join(lasts, dot)
            self.join(dot, firsts)
            return
        self.edges += [
            Arrow(a.node, b.node, EITHER if EITHER in (a.kind, b.kind) else BEFORE) for a in lasts for b in firsts
        ]

    def one(self, ends: list[_End], last: bool) -> int:
        """Replace several ends by one node, adding a dot if necessary."""
        if len(ends) <= 1:
            return ends[0].node if ends else -1
        dot = self.node(-1)
        self.join(*((ends, [_End(dot)]) if last else ([_End(dot)], ends)))
        return dot

    def add(self, order: Order) -> tuple[list[_End], list[_End]]:
        """Add the nodes of an order. Returns where it begins and where it ends."""
        if order.kind == "step":
            end = [_End(self.node(order.parts[0]))]
            return end, end
        if order.kind == "before":
            return self.add_pairs(order)
        if order.kind == "jumps":
            steps, listed = order.parts
            at = {step: self.node(step) for step in steps}
            self.edges += [Arrow(at[a], at[b]) for a, b in pairwise(steps)]
            self.edges += [Arrow(at[a], at[b], JUMP, cost) for a, b, cost in listed]
            return [_End(at[steps[0]])], [_End(at[steps[-1]])]
        if order.kind == "walks":
            return self.add_walks(order)
        if order.kind == "lasting":
            return self.add(order.parts[0])
        if order.kind == "repeat":
            body, cost = order.parts
            firsts, lasts = self.add(body)
            first, last = self.one(firsts, last=False), self.one(lasts, last=True)
            self.edges.append(Arrow(last, first, REPEAT, cost))
            return [_End(first)], [_End(last)]
        ends = [self.add(part) for part in order.parts]
        if order.kind == "list":
            for (_, lasts), (firsts, _) in pairwise(ends):
                self.join(lasts, firsts)
            return ends[0][0], ends[-1][1]
        if order.kind == "one":
            ways = [(self.one(firsts, last=False), self.one(lasts, last=True)) for firsts, lasts in ends]
            return [_End(first, EITHER) for first, _ in ways], [_End(last, EITHER) for _, last in ways]
        return [end for firsts, _ in ends for end in firsts], [end for _, lasts in ends for end in lasts]

    def add_pairs(self, order: Order) -> tuple[list[_End], list[_End]]:
        steps, pairs = order.parts
        at = {step: self.node(step) for step in steps}
        number = {step: n for n, step in enumerate(steps)}
        poset = Poset(len(steps), [(number[a], number[b]) for a, b in pairs], steps)
        for u, followers in enumerate(poset.after):
            implied = 0
            for v in followers:
                implied |= poset.above[v]
            self.edges += [Arrow(at[steps[u]], at[steps[v]]) for v in followers if not implied >> v & 1]
        firsts = [_End(at[step]) for step in steps if not poset.below[number[step]]]
        return firsts, [_End(at[step]) for step in steps if not poset.above[number[step]]]

    def add_walks(self, order: Order) -> tuple[list[_End], list[_End]]:
        labels, arcs, finals, jumps = order.parts
        at = [self.node(-1), *(self.node(label) for label in labels)]
        out, into = Counter(a for a, *_ in arcs), Counter(b for _, b, _ in arcs)
        for a, b, cost in arcs:
            self.edges.append(Arrow(at[a], at[b], EITHER if max(out[a], into[b]) > 1 else BEFORE, cost))
        self.edges += [Arrow(at[a], at[b], JUMP, cost) for a, b, cost in jumps]
        several = len(finals) > 1 or out[finals[0]] > 0
        return [_End(at[0])], [_End(at[n], EITHER if several else BEFORE) for n in finals]


def _placed(steps: Sequence[int], edges: Sequence[Arrow]) -> Drawing:
    """Place nodes: the layer is the longest path from the start; rows keep neighbors close to each other."""
    ahead = [edge for edge in edges if edge.kind in (BEFORE, EITHER)]
    layer = levels_of(len(steps), [edge[:2] for edge in ahead]) or []  # there is no cycle
    columns: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for v, at in enumerate(layer):
        columns[at].append(v)
    long = sum(layer[edge.target] - layer[edge.source] - 1 for edge in ahead)
    bent: dict[Arrow, list[int]] = {}
    links: list[tuple[int, int]] = []
    count = len(steps)
    for edge in ahead:
        span = range(layer[edge.source] + 1, layer[edge.target])
        # A drawing this large is unreadable anyway, so straight arrows are good enough.
        passed = list(range(count, count + len(span))) if long <= 1000 + 4 * len(steps) else []
        for at, v in zip(span, passed, strict=False):
            columns[at].append(v)
        count += len(passed)
        bent[edge] = passed
        way = [edge.source, *passed, edge.target]
        links += pairwise(way)
    row = _rows(columns, links, count)
    nodes = tuple(Node(step, layer[v], row[v]) for v, step in enumerate(steps))
    return Drawing(
        nodes,
        tuple(
            edge._replace(bends=tuple((layer[edge.source] + k, row[v]) for k, v in enumerate(bent.get(edge, ()), 1)))
            for edge in edges
        ),
    )


def _rows(columns: Sequence[list[int]], links: Sequence[tuple[int, int]], n: int) -> list[float]:
    """Rows after sorting each layer by the mean row of its neighbors, alternating forward and backward passes."""
    near: list[tuple[list[int], list[int]]] = [([], []) for _ in range(n)]
    for a, b in links:
        near[b][0].append(a)
        near[a][1].append(b)
    row = [0.0] * n

    def settle(column: list[int]) -> None:
        for place, v in enumerate(column):
            row[v] = place - (len(column) - 1) / 2

    for column in columns:
        settle(column)
    for sweep in range(SWEEPS):
        side = sweep % 2
        for column in columns[:: -1 if side else 1]:
            mean = {v: sum(row[u] for u in near[v][side]) / len(near[v][side]) for v in column if near[v][side]}
            column.sort(key=lambda v: mean.get(v, row[v]))
            settle(column)
    return row
