"""Compile orders to graphs: the nodes of each part are appended after those of the parts before it."""

from __future__ import annotations

from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import combinations

from dropdtw.orders import durations
from dropdtw.orders.graph import MOST_NODES, NEW, PASS, STEP, Arc, Graph, graph_of
from dropdtw.orders.lattice import Moves, lattice
from dropdtw.orders.merge import Merged, merged
from dropdtw.orders.order import Order, shown
from dropdtw.orders.poset import Poset
from dropdtw.problem.errors import MismatchError
from dropdtw.problem.warn import warn
from dropdtw.tables.table import Recurrence


def compiled(order: Order, table: Recurrence) -> Graph:
    """The graph of an order for a table."""
    moves = Moves(any(e.cost == "drop_z" for e in table.edges), table.matches_by("top"), table.matches_by("left"))
    if order.durations:
        durations.check(table)
    return _compiled(order, moves)


@lru_cache(maxsize=64)
def _compiled(order: Order, moves: Moves) -> Graph:
    builder = _GraphBuilder(moves)
    found = Merged(builder.graph(builder.add(order, builder.node(-1, 0))), False)
    if builder.chosen:
        found = merged(found.graph)
    if found.repeats or _overlap(order, moves):
        warn(
            f"the order {shown(order)} reaches the same steps in several ways, and is too large or too mixed to merge "
            "them: soft minima and posteriors count such alignments several times; make its alternatives differ",
            UserWarning,
        )
    if not order.durations:
        return found.graph
    limits = {step: durations.counted(*each, None) for step, each in order.durations.items()}
    return durations.lasting(found.graph, limits, moves.drops)


def _overlap(order: Order, moves: Moves) -> bool:
    """Whether alternatives allow the same alignments in different words: steps in any order, beside another order."""
    if not (moves.drops or moves.top):
        return False  # matches alone spell an alignment in one way
    inner = [part for part in order.parts if isinstance(part, Order)]
    partial = [part for part in inner if part.is_partial] if order.kind == "one" else []
    return any(_overlap(part, moves) for part in inner) or any(
        a != b and a.steps == b.steps and (a.holds_partial or b.holds_partial) and _agree(a, b)
        for a, b in combinations(partial, 2)
    )


def _agree(a: Order, b: Order) -> bool:
    """Whether some sequence of the steps satisfies both partial orders."""
    after: dict[int, set[int]] = {}
    for first, then in (*a.pairs(), *b.pairs()):
        after.setdefault(then, set()).add(first)
    try:
        TopologicalSorter(after).prepare()
    except CycleError:
        return False
    return True


class _GraphBuilder:
    """Collects nodes and arcs."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.label: list[int] = []
        self.past: list[int] = []
        self.hub: list[bool] = []
        self.again: list[bool] = []
        self.arcs: list[Arc] = []
        self.partial = False
        self.chosen = False  # whether the steps done at a node depend on the walk

    def graph(self, finals: list[int]) -> Graph:
        return graph_of(
            self.label,
            self.arcs,
            finals,
            hub=self.hub,
            again=self.again,
            past=None if self.chosen else tuple(self.past),
            partial=self.partial,
        )

    def node(self, label: int, past: int, *, hub: bool = False, again: bool = True) -> int:
        if len(self.label) >= MOST_NODES:
            raise ValueError(f"the order needs more than {MOST_NODES} nodes; use fewer or smaller parts")
        self.label.append(label)
        self.past.append(past)
        self.hub.append(hub)
        self.again.append(again and not hub)
        return len(self.label) - 1

    def merged(self, nodes: list[int]) -> int:
        """One node that stands for several: the node itself, or a hub."""
        if len(nodes) == 1:
            return nodes[0]
        found = self.node(-1, self.past[nodes[0]], hub=True)
        self.arcs += [Arc(n, found, PASS) for n in nodes]
        return found

    def add(self, order: Order, entry: int) -> list[int]:
        """Build an order after node `entry`. Returns the nodes in which it may end."""
        if order.kind == "step" or (order.kind == "before" and len(order.steps) == 1):
            (step,) = order.steps
            found = self.node(step, self.past[entry] | 1 << step)
            self.arcs.append(Arc(entry, found, STEP))
            return [found]
        if order.kind == "list":
            exits = [entry]
            for part in order.parts:
                exits = self.add(part, self.merged(exits))
            if not order.is_partial and len(order.steps) < len(list(order._steps())):
                self.chosen = True  # a step that is listed twice may be at its first or its second place
            return exits
        if order.kind in ("any", "before"):
            return self.add_partial(order, entry)
        if order.kind == "lasting":
            return self.add(order.parts[0], entry)
        self.chosen = True
        if order.kind == "one":
            return [end for part in order.parts for end in self.add(part, entry)]
        if order.kind == "repeat":
            return self.add_loop(order, entry)
        if order.kind == "jumps":
            return self.add_jumps(order, entry)
        return self.add_walks(order, entry)

    def add_partial(self, order: Order, entry: int) -> list[int]:
        steps = order.steps
        number = {step: n for n, step in enumerate(steps)}
        poset = Poset(len(steps), [(number[a], number[b]) for a, b in order.pairs()], steps)
        found = lattice(poset, self.moves, MOST_NODES - len(self.label))
        self.partial = True
        nodes = [entry]
        in_a_row = steps == tuple(range(steps[0], steps[0] + len(steps)))
        sets: dict[int, int] = {}
        for key, done in zip(found.keys[1:], found.done[1:], strict=True):
            if done not in sets:
                sets[done] = done << steps[0] if in_a_row else sum(1 << steps[n] for n in poset.members(done))
            past = self.past[entry] | sets[done]
            if key is None:
                nodes.append(self.node(-1, past, hub=True))
            else:
                nodes.append(self.node(steps[key.last], past, again=not key.role))
        self.arcs += [Arc(nodes[arc.source], nodes[arc.target], arc.use, arc.cost) for arc in found.arcs]
        return [nodes[n] for n in found.finals]

    def add_loop(self, order: Order, entry: int) -> list[int]:
        body, cost = order.parts
        if self.moves.drops and body.holds_partial:
            raise MismatchError(
                "the order repeats steps in any order, and {drop_z} or the method allows dropping them, so it is "
                "ambiguous in which round a step is dropped; use method 'drop_dtw' without {drop_z}, or repeat a list"
            )
        begun = len(self.arcs)
        exits = self.add(body, entry)
        first = [arc for arc in self.arcs[begun:] if arc.source == entry and arc.use & NEW]
        back = self.merged(exits)
        self.arcs += [Arc(back, arc.target, NEW, arc.cost + cost) for arc in first]
        return exits

    def add_jumps(self, order: Order, entry: int) -> list[int]:
        steps, listed = order.parts
        at = {}
        last = entry
        for step in steps:
            (at[step],) = self.add(Order("step", (step,)), last)
            last = at[step]
        self.arcs += [Arc(at[a], at[b], NEW, cost) for a, b, cost in listed]
        return [last]

    def add_walks(self, order: Order, entry: int) -> list[int]:
        labels, arcs, finals, jumps = order.parts
        nodes = [entry, *(self.node(label, 0) for label in labels)]
        for use, listed in ((STEP, arcs), (NEW, jumps)):
            self.arcs += [Arc(nodes[a], nodes[b], use, cost) for a, b, cost in listed]
        return [nodes[n] for n in finals]
