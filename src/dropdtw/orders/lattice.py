"""A partial order as a graph in which each alignment has exactly one walk.

An alignment of a partial order is the matrix M of its matches. It is valid if it is monotone along *some* linear order
of the steps that respects the partial order. Nodes are (I, v): the steps in the set I are done, and v was the last.
With these nodes alone, one M would have several walks: one for each position at which a dropped step can be passed, and
one for each order of incomparable steps that match the same single x. This does not affect hard minima, but soft minima
and probabilities would count M several times. So each M keeps only one walk, its normal form. The following uses two
terms: steps *above* u must come after u, and the *rank* is a fixed linear order of all steps that respects the partial
one.

- **Drops come as early as possible, by rank.** After a match of u, only steps above u may be dropped; at the start, any
  step may. A node records which steps may still be dropped now: those of higher rank than the last one dropped.
- **Among incomparable steps that match one x and nothing else, the lowest rank comes first.** A node records `late`,
  the steps that this rule puts before a step that has already matched the current x. A late step may match the current
  x only if it goes on to match another one (role `must`). If one z can match several x, a matched node with late steps
  has the role `single`: when it matches a second x, it moves to the node without late steps.

All nodes with the same set I can be followed by the same steps with a new x, so they share a hub.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dropdtw.orders.graph import AGAIN, DROP, MOST_NODES, NEW, PASS, SAME, Arc
from dropdtw.orders.poset import Poset

MOST_BITS: Final = 1 << 29
"""Maximum of nodes times steps. Each node stores some sets of steps as bits."""


class Moves(NamedTuple):
    """What a table can do.

    drops : drop a z.   top : match one x with several z.   left : match one z with several x.
    """

    drops: bool
    top: bool
    left: bool


class Key(NamedTuple):
    """The identity of a node.

    done : the set of steps that are done.   last : the last of them; −1 if there is none yet.
    droppable : the steps that may be dropped now.   late : the steps that may not be next to match this x and no other.
    role : "single": matched one x so far, and `late` is not empty; "must": has to match another x; "" otherwise.
    """

    done: int
    last: int
    droppable: int
    late: int
    role: str = ""


class Lattice(NamedTuple):
    """A compiled partial order.

    keys : the key of each node, None for a hub; node 0 is the start.   done : the steps done at each node.
    arcs : the arcs.   finals : the final nodes.
    """

    keys: list[Key | None]
    done: list[int]
    arcs: list[Arc]
    finals: list[int]


def lattice(poset: Poset, moves: Moves, limit: int = MOST_NODES) -> Lattice:
    """The graph of a partial order for tables with these moves."""
    return _LatticeBuilder(poset, moves, limit).build()


class _LatticeBuilder:
    def __init__(self, poset: Poset, moves: Moves, limit: int) -> None:
        self.poset, self.moves = poset, moves
        self.limit = min(limit, MOST_BITS // poset.n)
        self.number: dict[Key, int] = {}
        self.keys: list[Key | None] = []
        self.done: list[int] = []
        self.arcs: list[Arc] = []

    def build(self) -> Lattice:
        poset = self.poset
        if poset.sets_exceed(self.limit):
            raise self.too_many()
        start = Key(0, -1, self.reach(0, poset.full), 0)
        layer = {0: [self.node(start)]}
        finals: list[int] = []
        # A set is followed only by sets with one more step, so all nodes of a set are known when it is expanded.
        while layer:
            following: dict[int, list[int]] = {}
            for done, nodes in layer.items():
                self.expand(done, nodes, following)
                if done == poset.full:
                    finals += [n for n in nodes if self.key(n).role != "must"]
            layer = following
        return Lattice(self.keys, self.done, self.arcs, finals)

    def key(self, number: int) -> Key:
        found = self.keys[number]
        assert found is not None
        return found

    def node(self, key: Key, layer: dict[int, list[int]] | None = None) -> int:
        number = self.number.get(key)
        if number is None:
            number = self.number[key] = self.new(key, key.done)
            if layer is not None:
                layer.setdefault(key.done, []).append(number)
        return number

    def new(self, key: Key | None, done: int) -> int:
        if len(self.keys) >= self.limit:
            raise self.too_many()
        self.keys.append(key)
        self.done.append(done)
        return len(self.keys) - 1

    def too_many(self) -> ValueError:
        """The error for an order that needs too many nodes."""
        return ValueError(
            f"the order leaves too much open: up to {self.poset.free()} of {self.poset.n} steps are free at once (any "
            f"of them could come next), which needs more than {self.limit} nodes. Add pairs with before(); put steps "
            "that follow each other into a list inside any_order; or split the order at a step that all later ones "
            "wait for"
        )

    def expand(self, done: int, nodes: list[int], following: dict[int, list[int]]) -> None:
        """Add the arcs out of all nodes of a set. Nodes that continue a run of matches are appended to `nodes`."""
        for n in nodes:  # including those that this loop appends
            key = self.key(n)
            if key.role and self.moves.left:
                before = len(self.keys)
                continued = self.node(Key(done, key.last, key.droppable, 0))
                if len(self.keys) > before:
                    nodes.append(continued)
                self.arcs.append(Arc(n, continued, AGAIN))
        leaving = [n for n in nodes if self.key(n).role != "must"]
        steps = list(self.poset.members(self.poset.enabled(done)))
        if not steps:
            return
        entries = {v: self.entry(done, v, self.late_after_new_x(done, v)) for v in steps}
        if len(leaving) > 1:
            hub = self.new(None, done)
            self.arcs += [Arc(n, hub, PASS) for n in leaving]
            self.arcs += [Arc(hub, self.node(entry, following), NEW) for entry in entries.values()]
        for n in leaving:
            for v in steps:
                self.arcs_to(n, v, entries[v], NEW if len(leaving) == 1 else 0, following)

    def arcs_to(self, n: int, v: int, entry: Key, new: int, following: dict[int, list[int]]) -> None:
        """Add the arcs from node n to step v: for a match (with a new x only if no hub does that), and for a drop."""
        poset, key = self.poset, self.key(n)
        same: list[Key] = []
        if self.moves.top:
            if not key.late >> v & 1:
                late = key.late & poset.parallel[v] | poset.earlier[v] if key.last >= 0 else poset.earlier[v]
                same = [self.entry(key.done, v, self.enabled_among(key.done, v, late))]
            elif self.moves.left:
                same = [entry._replace(late=0, role="must")]
        if new:
            shared = SAME if same == [entry] else 0
            self.arcs.append(Arc(n, self.node(entry, following), NEW | shared))
            same = [] if shared else same
        self.arcs += [Arc(n, self.node(target, following), SAME) for target in same]
        if key.droppable >> v & 1:
            done = poset.with_step(key.done, v)
            later = key.droppable & ~poset.ranked_to(v)
            late = self.enabled_among(key.done, v, key.late & poset.parallel[v]) if self.moves.top else 0
            self.arcs.append(Arc(n, self.node(Key(done, v, self.reach(done, later), late), following), DROP))

    def entry(self, done: int, v: int, late: int) -> Key:
        """The node that a match of v enters."""
        more = self.poset.with_step(done, v)
        return Key(more, v, self.reach(more, self.poset.above[v]), late, "single" if late and self.moves.left else "")

    def late_after_new_x(self, done: int, v: int) -> int:
        """The late steps after a match of v with a new x."""
        return self.enabled_among(done, v, self.poset.earlier[v]) if self.moves.top else 0

    def enabled_among(self, done: int, v: int, steps: int) -> int:
        """The members of `steps` that may come next after v."""
        return steps & self.poset.enabled(self.poset.with_step(done, v))

    def reach(self, done: int, steps: int) -> int:
        """The members of `steps` that can be dropped from here on, one after the other, by rank.

        A member is blocked if a step before it is neither done nor a member. For every caller, a step between two
        members is itself a member. So the first step u that blocks a member has no member before it: everything before
        u is done, and u may come next. It is therefore enough to check the steps that may come next.
        """
        if not self.moves.drops:
            return 0
        found = steps & ~done
        for v in self.poset.members(self.poset.enabled(done) & ~steps):
            found &= ~self.poset.above[v]
        return found
