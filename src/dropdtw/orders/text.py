"""Read orders from dictionaries, JSON, or lines with blocks (`dropdtw.orders.blocks`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dropdtw.files import jsons
from dropdtw.files.sanitize import one_line
from dropdtw.orders.blocks import MARK, Line, Steps, read_blocks
from dropdtw.orders.order import (
    MOST_NESTED,
    MOST_STEPS,
    TOO_DEEP,
    Order,
    any_order,
    as_order,
    before,
    is_whole,
    jumps,
    lasting,
    one_of,
    repeat,
    walks,
)

FORMS: Final = (
    '{"before": [[0, 2]]}, {"list": […]}, {"any": […]}, {"one": […]}, {"repeat": …}, {"steps": …, "edges": …}'
)
ENDS: Final = ("START", "END")
"""The names of the nodes in CaptainCook4D's task graphs that are not steps."""


def parse(said: Any, steps: Sequence[str] | int | None = None) -> Order:
    """Read an order from a dictionary, a list, or a text: JSON, or one step per line with blocks.

    said : one of these, or the same as JSON text:
        - a list of parts that follow each other: `[0, {"any": [1, 2]}]`;
        - a dictionary as `Order.to_dict` writes it: `{"list": […]}`, `{"any": […]}`, `{"one": […]}`,
          `{"repeat": …, "cost": 0.5}`, `{"lasting": …, "between": [3, 5]}` (elements, null, or `{"seconds": 2}`),
          `{"list": […], "jumps": […]}`, `{"walks": […]}`. Parts may also be plain steps and lists;
        - `{"before": [[0, 2]]}`, with an optional entry `"steps"`: the number of steps, or a list of them;
        - a task graph of CaptainCook4D, `{"steps": {"0": "START", "1": …}, "edges": [[0, 1], …]}`. Its steps are
          numbered by ascending id, without START and END;
        - a text with one step per line. `any order:`, `one of:`, `optional:`, `repeat:` and `in order:` open an
          indented block.
    steps : the names of all steps, or their number. With names, the order may refer to steps by name.

    Returns an `Order`. Raises ValueError if the order cannot be read.

    >>> from dropdtw import orders
    >>> orders.parse({"before": [[0, 2]]})
    before(3, [(0, 2)])
    >>> orders.parse('{"any": [["open", "measure"], "warm"]}', ["warm", "open", "measure"])
    any_order([1, 2], 0)
    >>> orders.parse("one of:\\n  Add milk\\n  Add lemon")
    one_of(0, 1)
    """
    found = parse_steps(said, steps)
    return as_order(range(len(found.names))) if found.order is None else found.order


def parse_steps(said: Any, steps: Sequence[str] | int | None = None) -> Steps:
    """Like `parse`, but also return the names of the steps, if they are known, and which steps are optional.

    said, steps : as in `parse`.

    Returns `Steps`. Raises ValueError if the order cannot be read.

    >>> from dropdtw import orders
    >>> orders.parse_steps({"steps": ["boil", "warm", "pour"], "before": [["boil", "pour"], ["warm", "pour"]]})
    Steps(names=('boil', 'warm', 'pour'), order=before(3, [(0, 2), (1, 2)]), optional=())
    """
    known = _StepNames(steps)
    if isinstance(said, str):
        if said.lstrip("\ufeff \t\r\n")[:1] not in ("{", "[") or MARK.match(said.lstrip("\ufeff")):
            return _named(said, known)
        try:
            said = jsons.loads(said.lstrip("\ufeff"), parse_int=_whole)
        except ValueError as error:
            raise ValueError(f"the order is not valid JSON: {error}; correct it there") from None
    if isinstance(said, Order):
        order = said
    elif isinstance(said, Mapping) and "edges" in said:
        names, order = _task_graph(said, known)
        known = known if known.names else _StepNames(names)
    else:
        if isinstance(said, Mapping) and "before" in said and known.count is None:
            known = _named_inside(said) or known
        order = _order(said, known, 0)
    known.check(order)
    return Steps(known.names, order)


class _StepNames:
    """The steps that an order may refer to.

    names : empty if they are not known.   count : the number of steps; None if it is not known.
    """

    def __init__(self, steps: Sequence[str] | int | None) -> None:
        self.names: tuple[str, ...] = ()
        self.count: int | None = None
        if is_whole(steps):
            self.count = operator.index(steps)  # type: ignore[arg-type]
        elif steps is not None:
            self.names = tuple(steps) if isinstance(steps, Sequence) and not isinstance(steps, str) else ()
            self.count = len(self.names)
            if not self.names or not all(isinstance(name, str) for name in self.names):
                raise ValueError(f"steps is {_brief(steps)}; give a list of names, or the number of steps")
        self.most = MOST_STEPS if self.count is None else self.count
        self.number: dict[str, list[int]] = {}
        for n, name in enumerate(self.names):
            self.number.setdefault(_alike(name), []).append(n)

    def step(self, said: Any) -> int:
        """The number of the step that is given by number or by name."""
        if type(said) is int and 0 <= said < self.most:  # fast path: lists of pairs can be long
            return said
        if isinstance(said, str):
            at = self.number.get(_alike(said), [])
            if len(at) == 1:
                return at[0]
            if at:
                raise ValueError(
                    f"{_brief(said)} is the name of {len(at)} steps, including {at[0]} and {at[1]}; give the number, "
                    "or make the names unique"
                )
            if not self.names:
                raise ValueError(f"{_brief(said)} is a name, but the steps have no names; give steps by number")
            raise ValueError(
                f"{_brief(said)} is none of the {len(self.names)} steps; give one of their names, "
                f"such as {_brief(self.names[0])}"
            )
        if not is_whole(said) or not 0 <= said < self.most:
            names = ", or a name" if self.names else ""
            raise ValueError(f"{_brief(said)} is not a step; give a number from 0 to {self.most - 1}{names}")
        return operator.index(said)

    def check(self, order: Order) -> None:
        """Raise if an order leaves out a step, or refers to one that does not exist."""
        if self.count is None:
            return
        for n in order.steps:
            self.step(n)
        missing = sorted(set(range(self.count)) - set(order.steps))
        if missing:
            name = f" ({_brief(self.names[missing[0]])})" if self.names else ""
            raise ValueError(
                f"there are {self.count} steps, but the order does not name step {missing[0]}{name}; name each of them"
            )


def _order(said: Any, known: _StepNames, depth: int) -> Order:
    """The order that a part of a dictionary describes."""
    if depth > MOST_NESTED:
        raise ValueError(TOO_DEEP)
    if isinstance(said, list | tuple | range):
        return as_order(_parts(said, known, depth))
    if not isinstance(said, Mapping):
        if isinstance(said, str) or is_whole(said):
            return Order("step", (known.step(said),))
        raise ValueError(f"the order contains {_brief(said)}; give a step, a list, or one of {FORMS}")
    keys = frozenset(said)
    for names, make in MAKERS.items():
        if keys == frozenset(names) or (keys and keys == frozenset(names[:1])):
            return make(said, known, depth)
    raise ValueError(f"the order contains a dictionary with {_keys(said)}; give one of {FORMS}")


def _parts(said: Any, known: _StepNames, depth: int) -> list[Order]:
    return [_order(part, known, depth + 1) for part in _list(said, "a list of parts")]


def _list(said: Any, what: str) -> Sequence[Any]:
    if not isinstance(said, list | tuple | range):
        raise ValueError(f"the order has {_brief(said)} in place of {what}; give a list in brackets")
    return said


def _pairs(said: Any, step: Callable[[Any], int], what: str) -> list[tuple[Any, ...]]:
    """Pairs of steps, each with its further entries, such as a cost."""
    found = []
    for pair in _list(said, f"a list of {what}s"):
        if not isinstance(pair, list | tuple) or not 2 <= len(pair) <= (3 if what == "jump" else 2):
            raise ValueError(f"{_brief(pair)} is not a valid {what}; give [a, b] with two steps")
        found.append((step(pair[0]), step(pair[1]), *pair[2:]))
    return found


def _before(said: Mapping[str, Any], known: _StepNames, depth: int) -> Order:
    given = said.get("steps")
    pairs = _pairs(said["before"], known.step, "pair")
    if given is None:
        count = known.count or 1 + max((max(pair) for pair in pairs), default=-1)
        if not count:
            raise ValueError('there are neither pairs nor steps; add "steps": the number of steps')
        return before(count, pairs)
    if isinstance(given, list | tuple):
        return before([known.step(step) for step in given], pairs)
    if not is_whole(given) or not 1 <= given <= MOST_STEPS:
        raise ValueError(f'"steps" is {_brief(given)}; give the number of steps, 1 to {MOST_STEPS}, or a list of them')
    return before(given, pairs)


def _named_inside(said: Mapping[str, Any]) -> _StepNames | None:
    """The names of the steps, if the dictionary itself gives them."""
    given = said.get("steps")
    if isinstance(given, list | tuple) and given and all(isinstance(name, str) for name in given):
        names = _StepNames(given)
        for name in given:
            names.step(name)  # raises if a name occurs twice
        return names
    return None


def _jumps(said: Mapping[str, Any], known: _StepNames, depth: int) -> Order:
    if "jumps" not in said:
        return as_order(_parts(said["list"], known, depth))
    steps = [known.step(step) for step in _list(said["list"], "a list of steps")]
    return jumps(steps, _pairs(said["jumps"], known.step, "jump"))


def _walks(said: Mapping[str, Any], known: _StepNames, depth: int) -> Order:
    parts = _list(said["walks"], "a list of labels, arcs, finals and jumps")
    if len(parts) != 4:
        raise ValueError(f'"walks" has {len(parts)} parts; give labels, arcs, final nodes and jumps, each a list')
    labels, *lists = (_list(part, "a list") for part in parts)
    arcs, finals, leaps = lists
    return walks([known.step(label) for label in labels], arcs, finals, leaps)


def _repeat(said: Mapping[str, Any], known: _StepNames, depth: int) -> Order:
    return repeat(_order(said["repeat"], known, depth + 1), said.get("cost", 0.0))


def _lasting(said: Mapping[str, Any], known: _StepNames, depth: int) -> Order:
    limits = _list(said.get("between"), "two limits")
    if len(limits) != 2:
        raise ValueError(f'"between" is {_brief(limits)}; give [at_least, at_most], with null for no limit')
    least = 1 if limits[0] is None else limits[0]
    return lasting(_order(said["lasting"], known, depth + 1), at_least=least, at_most=limits[1])


MAKERS: Final[dict[tuple[str, ...], Callable[[Mapping[str, Any], _StepNames, int], Order]]] = {
    ("step",): lambda said, known, depth: Order("step", (known.step(said["step"]),)),
    ("any",): lambda said, known, depth: any_order(*_parts(said["any"], known, depth)),
    ("one",): lambda said, known, depth: one_of(*_parts(said["one"], known, depth)),
    ("list", "jumps"): _jumps,
    ("before", "steps"): _before,
    ("repeat", "cost"): _repeat,
    ("walks",): _walks,
    ("lasting", "between"): _lasting,
}
"""Functions that read a dictionary with these keys. The first key is required, the second optional."""


def _task_graph(said: Mapping[str, Any], known: _StepNames) -> tuple[tuple[str, ...], Order]:
    """Read a task graph of CaptainCook4D. Steps are matched to the known names, or, if some are unknown, by id."""
    nodes = said.get("steps")
    if set(said) != {"steps", "edges"} or not isinstance(nodes, Mapping):
        raise ValueError(
            f'a dictionary with "edges" has {_keys(said)}; give {{"steps": {{"1": "a text", …}}, "edges": …}}'
        )
    if len(nodes) > MOST_STEPS:
        raise ValueError(f"the order has {len(nodes)} steps; give at most {MOST_STEPS}")
    text: dict[int, str] = {}
    for key, name in nodes.items():
        node = _whole(key) if isinstance(key, str) and key.isdecimal() else key
        if not is_whole(node) or not isinstance(name, str) or node in text:
            raise ValueError(
                f"the step {_brief(key)}: {_brief(name)} is not a number with a text; number each step once"
            )
        text[node] = name
    listed = [node for node in sorted(text) if text[node] not in ENDS]
    if not listed:
        raise ValueError("the order has no steps besides START and END; give at least one")
    names = tuple(text[node] for node in listed)
    if known.count is not None and len(names) != known.count:
        raise ValueError(
            f"the order has {len(names)} steps, but there are {known.count}; give the order of these steps"
        )
    by_name = len({_alike(name) for name in names} & set(known.number)) == len(names)
    at = {node: known.step(text[node]) if by_name else n for n, node in enumerate(listed)}

    def node_of(value: Any) -> int:
        if not is_whole(value) or value not in text:
            raise ValueError(f"an edge names {_brief(value)}, which is not the id of a step; give an id that exists")
        return operator.index(value)

    pairs = []
    for a, b in _pairs(said["edges"], node_of, "edge"):
        if text[b] == "START" or text[a] == "END":
            raise ValueError(f"the edge [{a}, {b}] leads to START or away from END; leave it out")
        if a in at and b in at:
            pairs.append((at[a], at[b]))
    return names, before(len(names), pairs)


def _named(text: str, known: _StepNames) -> Steps:
    """Read the steps of a text, using the known names."""
    if not known.names:
        found = read_blocks(text)
        if known.count not in (None, len(found.names)):
            raise ValueError(
                f"the order has {len(found.names)} steps, but there are {known.count}; give each step one line"
            )
        return found

    def number(line: Line) -> int:
        try:
            return known.step(line.text)
        except ValueError as error:
            raise ValueError(f"line {line.number}: {error}") from None

    found = read_blocks(text, number)
    order = as_order(range(len(known.names))) if found.order is None else found.order
    known.check(order)
    return Steps(known.names, found.order, found.optional)


def _alike(name: str) -> str:
    """A normalized form of a name: names with the same form count as equal."""
    return " ".join(name.casefold().split())


def _whole(digits: str) -> int:
    """Parse an integer, but reject absurdly long ones."""
    if len(digits) > 18:
        raise ValueError(f"it contains a number with {len(digits)} digits")
    return int(digits)


def _keys(said: Mapping[Any, Any]) -> str:
    if not said:
        return "nothing in it"
    shown = ", ".join(_brief(key) for key, _ in zip(said, range(4), strict=False))
    return shown + ("" if len(said) <= 4 else f" and {len(said) - 4} more")


def _brief(value: Any) -> str:
    """The beginning of a value, on one line."""
    if isinstance(value, str):
        return repr(one_line(value[:60]) + ("…" if len(value) > 60 else ""))
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        return f"a dictionary of length {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of length {len(value)}" if len(value) > 4 else f"[{', '.join(_brief_inside(v) for v in value)}]"
    return one_line(repr(value)[:60])


def _brief_inside(value: Any) -> str:
    return f"a list of length {len(value)}" if isinstance(value, list | tuple) else _brief(value)
