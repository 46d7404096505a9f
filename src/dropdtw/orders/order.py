"""The user's description of the order of steps: an immutable `Order`, built by the functions of `dropdtw.orders`.

Steps are the rows of Z, numbered from 0. Wherever an order is expected, a list means "in this order".
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Union

import numpy as np

from dropdtw.orders.durations import Duration, counted
from dropdtw.problem.warn import warn

if TYPE_CHECKING:
    from dropdtw.orders.graph import Graph
    from dropdtw.tables.table import Recurrence

OrderLike = Union["Order", int, Sequence["OrderLike"]]
"""What `order=` takes: an `Order`, a step (a row number of Z), or a list of these, which follow each other."""

# Limits, so that hostile or mistaken input is rejected soon, before it takes long or exhausts memory or the stack.
MOST_STEPS: Final = 1 << 14
MOST_PAIRS: Final = 1 << 22
MOST_NESTED: Final = 64
TOO_DEEP: Final = f"orders are nested more than {MOST_NESTED} deep; flatten them"


@dataclass(frozen=True, repr=False)
class Order:
    """Which steps may follow which. Built by `before`, `any_order`, `one_of`, `repeat`, `jumps` and similar functions.

    Orders with the same content are equal and have the same hash. `to_dict` turns one into a dictionary that JSON can
    hold, and `parse` reads it. `steps` are the rows of Z that it refers to.

    kind, parts : its kind, such as "any" or "list", and its parts. Use the functions above instead of setting these.

    >>> from dropdtw import orders
    >>> orders.any_order([0, 1], 2)
    any_order([0, 1], 2)
    """

    kind: str
    parts: tuple[Any, ...]

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The steps that it refers to, ascending, each once."""
        return tuple(sorted(set(self._steps())))

    @property
    def K(self) -> int:
        """The number of rows that Z must have."""
        return self.steps[-1] + 1

    def _steps(self) -> Iterable[int]:
        if self.kind in ("before", "jumps", "walks"):
            return self.parts[0]  # type: ignore[no-any-return]
        if self.kind == "step":
            return self.parts
        return (step for part in self._inner for step in part.steps)

    @property
    def _inner(self) -> tuple[Order, ...]:
        """The orders that it contains."""
        return self.parts[:1] if self.kind in ("repeat", "lasting") else self.parts

    @cached_property
    def is_partial(self) -> bool:
        """Whether it is a partial order: it has no alternatives and no repeats."""
        if self.kind in ("step", "before"):
            return True
        if self.kind == "lasting":
            return self._inner[0].is_partial
        listed = [step for part in self._inner for step in part._steps()] if self.kind in ("list", "any") else []
        return bool(listed) and len(set(listed)) == len(listed) and all(part.is_partial for part in self._inner)

    @cached_property
    def holds_partial(self) -> bool:
        """Whether it contains `any_order` or `before`, so that some steps may come in any order."""
        return self.kind in ("any", "before") or any(
            part.holds_partial for part in self.parts if isinstance(part, Order)
        )

    @cached_property
    def returns(self) -> bool:
        """Whether it has repeats or jumps, so that a step may follow a later one."""
        if self.kind == "walks":
            return bool(self.parts[3])
        return self.kind in ("repeat", "jumps") or any(part.returns for part in self.parts if isinstance(part, Order))

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is the default order: all steps one after the other."""
        listed = self.parts if self.kind == "list" else (self,)
        return all(part.kind == "step" and part.parts[0] == n for n, part in enumerate(listed))

    @cached_property
    def durations(self) -> dict[int, tuple[Duration, Duration | None]]:
        """How long each step lasts, at least and at most, if that is limited. Raises ValueError on a contradiction."""
        found: dict[int, tuple[Duration, Duration | None]] = {}
        for part in self.parts if self.kind in ("list", "any", "one", "repeat", "lasting") else ():
            for step, limits in part.durations.items() if isinstance(part, Order) else ():
                if found.setdefault(step, limits) != limits:
                    raise ValueError(
                        f"step {step} lasts {_span_of(*found[step])} in one place and {_span_of(*limits)} in another; "
                        "give it one duration"
                    )
        if self.kind == "lasting":
            found = dict.fromkeys(self.steps, self.parts[1:]) | found
        return found

    def in_elements(self, period: float | None) -> Order:
        """The same order with times as numbers of elements, which last `period` seconds each.

        Raises ValueError if that is not known (None).
        """
        if not any(isinstance(limit, timedelta) for limits in self.durations.values() for limit in limits):
            return self
        if self.kind == "lasting":
            part, least, most = self.parts
            return Order("lasting", (part.in_elements(period), *counted(least, most, period)))
        inner = (part.in_elements(period) if isinstance(part, Order) else part for part in self.parts)
        return Order(self.kind, tuple(inner))

    def check_steps(self, K: int) -> None:
        """Raise ValueError unless the order refers to exactly the steps 0 … K − 1."""
        if self.steps != tuple(range(K)):
            missing = sorted(set(range(K)) - set(self.steps))
            what = (
                f"it lacks step {missing[0]}; name each step of Z"
                if missing
                else f"Z has no step {self.steps[-1]}; leave it out, or add a row to Z"
            )
            raise ValueError(f"Z has {K} steps, 0 to {K - 1}, but the order is {shown(self)}: {what}")

    @cached_property
    def depth(self) -> int:
        """How deeply orders are nested."""
        if self.kind in ("step", "before", "jumps", "walks"):
            return 1
        return 1 + max(part.depth for part in self._inner)

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs (a, b), a before b, that generate the partial order: all others follow from them."""
        return list(self._pairs)

    @cached_property
    def _pairs(self) -> tuple[tuple[int, int], ...]:
        if self.kind == "step":
            return ()
        if self.kind == "before":
            return self.parts[1]  # type: ignore[no-any-return]
        found = [pair for part in self._inner for pair in part._pairs]
        if self.kind == "list":
            for a, b in zip(self._inner, self._inner[1:], strict=False):
                last, first = a._ends(1), b._ends(0)
                if len(found) + len(last) * len(first) > MOST_PAIRS:
                    raise ValueError(
                        f"each of {len(last)} steps comes before each of {len(first)}, so the order has more than "
                        f"{MOST_PAIRS} pairs; put a single step between the two groups, or put steps of a group that "
                        "follow each other into a list"
                    )
                found += [(u, v) for u in last for v in first]
        return tuple(found)

    def _ends(self, side: int) -> list[int]:
        """The steps of a partial order that have no step before them (side 0), or none after them (side 1)."""
        if self.kind in ("list", "lasting"):
            return self._inner[-side]._ends(side)
        if self.kind == "any":
            return [step for part in self._inner for step in part._ends(side)]
        inner = {pair[1 - side] for pair in self._pairs}
        return [step for step in self.steps if step not in inner]

    def graph(self, table: Recurrence) -> Graph:
        """The graph of this order for a table, cached. Raises ValueError if it would be too large."""
        from dropdtw.orders.compile import compiled

        return compiled(self, table)

    def to_dict(self) -> dict[str, Any]:
        """The order as a dictionary that JSON can hold; `parse` reads it."""
        if self.kind == "step":
            return {"step": self.parts[0]}
        if self.kind == "before":
            return {"steps": list(self.parts[0]), "before": [list(pair) for pair in self.parts[1]]}
        if self.kind == "jumps":
            return {"list": list(self.parts[0]), "jumps": [list(jump) for jump in self.parts[1]]}
        if self.kind == "walks":
            return {"walks": [list(part) for part in self.parts]}
        if self.kind == "repeat":
            return {"repeat": self.parts[0].to_dict(), "cost": self.parts[1]}
        if self.kind == "lasting":
            limits = [
                {"seconds": each.total_seconds()} if isinstance(each, timedelta) else each for each in self.parts[1:]
            ]
            return {"lasting": self.parts[0].to_dict(), "between": limits}
        return {self.kind: [part.to_dict() for part in self.parts]}

    def __repr__(self) -> str:
        if self.kind == "step":
            return str(self.parts[0])
        if self.kind == "list":
            return f"[{', '.join(map(repr, self.parts))}]"
        if self.kind in ("before", "jumps"):
            steps, listed = self.parts
            plain = steps == tuple(range(len(steps)))
            return f"{self.kind}({len(steps) if plain else list(steps)}, {_shortened(listed)})"
        if self.kind == "walks":
            return f"walks({', '.join(map(repr, map(list, self.parts)))})"
        if self.kind == "repeat":
            body, cost = self.parts
            return f"repeat({body!r})" if cost == 0 else f"repeat({body!r}, {cost!r})"
        if self.kind == "lasting":
            inner, least, most = self.parts
            given = {} if least == 1 else {"at_least": least}
            given |= {} if most is None else {"at_most": most}
            return f"lasting({inner!r}, {', '.join(f'{name}={limit!r}' for name, limit in given.items())})"
        return f"{self.kind}{'_order' if self.kind == 'any' else '_of'}({', '.join(map(repr, self.parts))})"


def _shortened(listed: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, listed[:20]))
    return f"[{shown}, … {len(listed) - 20} more]" if len(listed) > 20 else f"[{shown}]"


# --- Builders -------------------------------------------------------------------------------------------------------


def as_order(said: Any, name: str = "order", inside: int = 0) -> Order:
    """Turn a step, a list or an order into an `Order`.

    said : a row number of Z, a list of parts that follow each other, or an order.
    name : what to call it in error messages.   inside : the current depth of nesting.

    Raises ValueError if it is none of these.

    >>> from dropdtw import orders
    >>> orders.as_order([2, 0, 1])
    [2, 0, 1]
    """
    if isinstance(said, Order):
        return said
    if is_whole(said):
        return Order("step", (as_step(said),))
    if inside > MOST_NESTED:
        raise ValueError(TOO_DEEP)
    if isinstance(said, (str, bytes, Mapping)) or not isinstance(said, Iterable):
        raise ValueError(
            f"{name} is {shown(said)}; give an order from dropdtw.orders, or a list of steps (row numbers of Z) "
            "that follow each other; orders.parse reads text and JSON"
        )
    return _joined("list", [as_order(part, name, inside + 1) for part in as_list(said, name)])


def before(steps: int | Sequence[int], pairs: Iterable[tuple[int, int]]) -> Order:
    """Build a partial order: for each pair (a, b), a comes before b. Unrelated steps may come in any order.

    steps : the number of steps, or a list of their numbers.   pairs : (a, b) means that a comes before b.

    Returns an `Order`. Raises ValueError if a step is invalid, or if the pairs form a cycle.

    >>> from dropdtw import orders
    >>> orders.before(4, [(0, 1), (0, 2), (1, 3), (2, 3)])          # first 0, then 1 and 2 in either order, then 3
    before(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    """
    from dropdtw.orders.poset import Poset

    listed = _numbered(steps)
    known = {step: n for n, step in enumerate(listed)}
    found: dict[tuple[int, int], None] = {}
    for pair in as_list(pairs, "the list of pairs"):
        try:
            a, b = pair
            a, b = as_step(a), as_step(b)
        except (TypeError, ValueError):
            raise ValueError(f"{shown(pair)} is not a pair of steps; give (a, b) for 'a comes before b'") from None
        for step in (a, b):
            if step not in known:
                raise ValueError(f"the pair {(a, b)} names step {step}, but the steps are {_span(listed)}")
        found[a, b] = None
    poset = Poset(len(listed), [(known[a], known[b]) for a, b in found], listed)
    if poset.is_chain and len(listed) > 1:
        return _joined("list", [Order("step", (listed[v],)) for v in poset.by_rank])
    return Order("before", (tuple(listed), tuple(found)))


def any_order(*parts: OrderLike) -> Order:
    """Build an order in which all parts occur, in any sequence.

    Parts may interleave: the first step of one part may be followed by the first step of another.

    parts : steps, lists of steps that follow each other, or partial orders. No step may occur twice.

    Returns an `Order`. Raises ValueError if a part is not a partial order.

    >>> from dropdtw import orders
    >>> orders.any_order([0, 1], 2, [3, 4])
    any_order([0, 1], 2, [3, 4])
    """
    listed = [as_order(part, "a part of any_order") for part in parts]
    if len(listed) == 1 and listed[0].kind == "list" and len(listed[0].parts) > 1:
        warn(
            f"any_order({shown(listed[0])}) leaves nothing free, because a list is a fixed order; give its elements "
            "one by one, as in any_order(0, 1, 2) or any_order(*notes)"
        )
    for part in listed:
        if not part.is_partial:
            raise ValueError(
                f"any_order contains {shown(part)}, in which a step may come twice or not at all; one_of, repeat, "
                "jumps and walks may not be part of a partial order"
            )
    return _joined("any", listed)


def one_of(*parts: OrderLike) -> Order:
    """Build an order of alternatives: one of the parts, whichever fits best. Steps of the other parts cost nothing.

    parts : steps, lists or orders.

    Returns an `Order`. Raises ValueError if a part is invalid.

    >>> from dropdtw import orders
    >>> orders.one_of([0, 1], 2)
    one_of([0, 1], 2)
    """
    return _joined("one", [as_order(part, "a part of one_of") for part in parts])


def repeat(part: OrderLike, cost: float = 0.0) -> Order:
    """Build an order that repeats a part one or more times. Each repetition begins with a match.

    part : a step, a list or an order.   cost : the cost of each repetition after the first pass, ≥ 0.

    Returns an `Order`. Raises ValueError if the part or the cost is invalid.

    >>> from dropdtw import orders
    >>> orders.repeat([0, 1], 0.5)
    repeat([0, 1], 0.5)
    """
    return _bounded(Order("repeat", (as_order(part, "the part of repeat"), as_cost(cost, "cost of repeat"))))


def lasting(part: OrderLike, *, at_least: Duration = 1, at_most: Duration | None = None) -> Order:
    """Build an order that limits how long steps last: how many x in a row a step matches.

    A step that is dropped matches none, and pays its drop once. Needs `method="steps"` or "ctc", in which each step
    takes one unbroken run of x.

    part : a step, a list or an order. The limits hold for each of its steps that has none of its own yet.
    at_least, at_most : numbers of x, ≥ 1, or times (timedelta of Python, NumPy or pandas). Times need x that all last
        equally long, according to `times=` or `fps=`. None: no limit.

    The graph of the order has as many copies of each step as it may last: `at_most`, or, without it, `at_least`. Time
    and memory grow with the sum of these, which may be up to 2¹⁸.

    Returns an `Order`. Raises ValueError if the part or a limit is invalid.

    >>> import dropdtw
    >>> C = [[0, 9, 9, 0.8, 0.8, 9], [9, 9, 9, 9, 9, 0]]
    >>> dropdtw.solve(C, drop_x=1, method="steps").labels
    array([ 0, -1, -1, -1, -1,  1])
    >>> dropdtw.solve(C, drop_x=1, method="steps", order=[dropdtw.orders.lasting(0, at_least=2), 1]).labels
    array([-1, -1, -1,  0,  0,  1])
    """
    inner, least = as_order(part, "the part of lasting"), _as_duration(at_least, "at_least")
    most = None if at_most is None else _as_duration(at_most, "at_most")
    if most is not None and type(least) is type(most) and most < least:  # type: ignore[operator]
        raise ValueError(f"a step would last {_span_of(least, most)}; at_most must not be less than at_least")
    if (least, most) == (1, None):
        return inner
    found = _bounded(Order("lasting", (inner, least, most)))
    _ = found.durations  # raises on a contradiction
    return found


def _as_duration(value: Any, name: str) -> Duration:
    """Turn the caller's duration into a number of elements or a timedelta, or raise. JSON has {"seconds": number}."""
    if is_whole(value) and not isinstance(value, np.timedelta64) and 1 <= operator.index(value) <= MOST_PAIRS:
        return operator.index(value)
    seconds = 0.0
    if isinstance(value, Mapping) and set(value) == {"seconds"}:
        seconds = as_cost(value["seconds"], f"time of {name}")
    elif isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, np.timedelta64) and np.datetime_data(value)[0] not in ("Y", "M", "generic"):
        seconds = float(value / np.timedelta64(1, "s"))
    if 1e-6 <= seconds < 1e9:
        return timedelta(seconds=seconds)
    raise ValueError(
        f"{name} is {shown(value)}; give a number of elements, 1 or more, or a time such as timedelta(seconds=2)"
    )


def _span_of(least: Duration, most: Duration | None) -> str:
    said = [
        f"{limit.total_seconds():g} s" if isinstance(limit, timedelta) else str(limit) for limit in (least, most or 0)
    ]
    return f"at least {said[0]}" if most is None else f"{said[0]} to {said[1]}"


def jumps(steps: int | Sequence[int], arcs: Iterable[tuple[int, int] | tuple[int, int, float]]) -> Order:
    """Build a list of steps with jumps: after step a, a later x may match step b, at a cost.

    steps : the number of steps, or a list of their numbers, in order.
    arcs : the jumps, (a, b) or (a, b, cost), with cost ≥ 0. An alignment still ends with the last step.

    Returns an `Order`. Raises ValueError if a step or a jump is invalid, or if a jump is listed twice.

    >>> from dropdtw import orders
    >>> orders.jumps(8, [(7, 0, 0.5)])                              # from the last step back to the first
    jumps(8, [(7, 0, 0.5)])
    """
    listed = _numbered(steps)
    known = set(listed)
    found = []
    for arc in as_list(arcs, "the list of jumps"):
        try:
            a, b, *rest = arc
            a, b = as_step(a), as_step(b)
            (cost,) = rest or (0.0,)
        except (TypeError, ValueError):
            raise ValueError(f"{shown(arc)} is not a jump; give (from, to) or (from, to, cost)") from None
        if not {a, b} <= known:
            raise ValueError(f"the jump {(a, b)} names a step that is not among the steps {_span(listed)}")
        found.append((a, b, as_cost(cost, f"cost of the jump {(a, b)}")))
    if len({jump[:2] for jump in found}) < len(found):
        raise ValueError("a jump is listed twice; keep the cheaper one")
    if not found:
        return _joined("list", [Order("step", (step,)) for step in listed])
    return Order("jumps", (tuple(listed), tuple(found)))


def walks(
    labels: Sequence[int],
    arcs: Iterable[tuple[int, int] | tuple[int, int, float]],
    finals: Sequence[int],
    jumps: Iterable[tuple[int, int] | tuple[int, int, float]] = (),
) -> Order:
    """Build an order from your own graph. Node 0 is the start; node n ≥ 1 stands for step labels[n − 1].

    labels : the step of each node except the start.
    arcs : (from, to) or (from, to, cost), without a cycle.
    finals : the nodes in which an alignment may end.
    jumps : (from, to) or (from, to, cost). They may form cycles. A jump always leads to a match with a later x.

    Walks that visit the same steps count as one, at the cost of the cheapest.

    Returns an `Order`. Raises ValueError if the graph is invalid, for example if arcs form a cycle.

    >>> from dropdtw import orders
    >>> orders.walks([0, 1, 0], [(0, 1), (1, 2), (2, 3), (1, 3)], [3])      # step 0, possibly step 1, step 0 again
    walks([0, 1, 0], [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0), (1, 3, 0.0)], [3], [])
    """
    from dropdtw.orders.user_graph import checked

    return checked(labels, arcs, finals, jumps)


def from_networkx(graph: Any) -> Order:
    """Build a partial order from a networkx DiGraph whose nodes are steps and whose edges mean "comes before".

    graph : the directed graph; its nodes are row numbers of Z.

    Returns an `Order`. Raises ValueError if the graph is not directed, has a cycle, or has nodes that are not steps.

    For example, `from_networkx(networkx.DiGraph([(0, 2), (1, 2)]))` equals `before(3, [(0, 2), (1, 2)])`.
    """
    if not getattr(graph, "is_directed", lambda: False)():
        raise ValueError(f"{graph!r} is not a directed graph; give a networkx.DiGraph whose edges mean 'comes before'")
    return before(sorted(as_step(node) for node in graph.nodes), graph.edges)


def _joined(kind: str, parts: Sequence[Order]) -> Order:
    """Join parts into one order of a kind. Nested orders of the same kind are flattened; a single part is returned."""
    if not parts:
        raise ValueError("an order has an empty part; leave it out, or give its steps")
    if kind in ("list", "any", "one"):
        parts = [inner for part in parts for inner in (part.parts if part.kind == kind else (part,))]
    if len(parts) == 1:
        return parts[0]
    found = Order(kind, tuple(parts))
    if kind == "any" and not found.is_partial:
        twice = Counter(step for part in parts for step in part._steps()).most_common(1)[0][0]
        raise ValueError(f"step {twice} is in any_order twice; name each step once, or use repeat")
    return _bounded(found)


def _bounded(order: Order) -> Order:
    if order.depth > MOST_NESTED:
        raise ValueError(TOO_DEEP)
    return order


def _numbered(steps: int | Sequence[int]) -> list[int]:
    if is_whole(steps):
        if not 1 <= steps <= MOST_STEPS:  # type: ignore[operator]
            raise ValueError(f"there are {steps} steps; give 1 to {MOST_STEPS}")
        return list(range(operator.index(steps)))  # type: ignore[arg-type]
    found = [as_step(step) for step in as_list(steps, "steps", "a number of steps, or a list of them")]
    if not found:
        raise ValueError("an order has an empty part; leave it out, or give its steps")
    if len(set(found)) < len(found):
        twice = Counter(found).most_common(1)[0][0]
        raise ValueError(f"step {twice} is listed twice; name each step once, or use repeat")
    return found


def is_whole(value: Any) -> bool:
    """Whether a value is a single integer."""
    return callable(getattr(value, "__index__", None)) and not isinstance(value, bool) and not hasattr(value, "__len__")


def as_list(value: Any, name: str, fits: str = "a list") -> list[Any]:
    """Turn the caller's iterable into a list, or raise. fits : what to give instead, for error messages."""
    try:
        found = None if isinstance(value, (str, bytes, dict)) else list(islice(value, MOST_PAIRS + 1))
    except TypeError:
        found = None
    if found is None:
        raise ValueError(f"{name} is {shown(value)}; give {fits}")
    if len(found) > MOST_PAIRS:
        raise ValueError(
            f"{name} has more than {MOST_PAIRS} entries; leave out those that follow from others, or split it"
        )
    return found


def as_step(value: Any) -> int:
    """Turn the caller's value into a step number, or raise."""
    if type(value) is int and 0 <= value < MOST_STEPS:  # fast path: lists of pairs can be long
        return value
    if not is_whole(value) or not 0 <= operator.index(value) < MOST_STEPS:
        raise ValueError(f"{shown(value)} is not a step; steps are row numbers of Z, 0 to {MOST_STEPS - 1}")
    return operator.index(value)


def as_cost(value: Any, name: str) -> float:
    """Turn the caller's value into the cost of an arc, or raise."""
    try:
        found = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        found = math.inf
    if not 0 <= found < math.inf:
        raise ValueError(f"the {name} is {shown(value)}; give a finite number ≥ 0")
    return found


def shown(value: Any) -> str:
    """The caller's value on one short line."""
    said = " ".join(repr(value).split())
    return said if len(said) < 80 else said[:76] + " …"


def _span(steps: Sequence[int]) -> str:
    if list(steps) == list(range(len(steps))):
        return f"0 to {len(steps) - 1}"
    return ", ".join(map(str, steps[:10])) + (" …" if len(steps) > 10 else "")
