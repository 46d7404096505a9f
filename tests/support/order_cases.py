"""Small orders of every kind, in the oracle's notation, and problems with them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

import order_oracle
from dropdtw import orders
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec

POSETS: dict[str, Any] = {
    "antichain of 3": ("any", 0, 1, 2),
    "antichain of 4": ("any", 0, 1, 2, 3),
    "V": ("before", 3, [(0, 1), (0, 2)]),
    "Lambda": ("before", 3, [(0, 2), (1, 2)]),
    "N": ("before", 4, [(0, 2), (1, 2), (1, 3)]),
    "two chains of 2": ("any", [0, 1], [2, 3]),
    "diamond": ("before", 4, [(0, 1), (0, 2), (1, 3), (2, 3)]),
    "shuffled N": ("before", 4, [(3, 0), (1, 0), (1, 2)]),
    "shuffled diamond": ("before", 4, [(2, 3), (2, 0), (3, 1), (0, 1)]),
    "chain and a step": ("any", [2, 0, 3], 1),
    "a step, then any, then a step": [1, ("any", 3, 0), 2],
    "any, then any": [("any", 3, 1), ("any", 0, 2)],
    "any of partial orders": ("any", [0, ("any", 1, 2)], 3),
}
WALKS: dict[str, Any] = {
    "permuted list": [2, 0, 1],
    "alternatives": [0, ("one", 1, [2, 3])],
    "alternatives of equal ends": ("one", [0, 1], [2, 1], [0, 2]),
    "bypass": ("walks", [0, 1, 2], [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0), (1, 3, 0.2)], [3], []),
    "several ends": ("walks", [0, 1, 2], [(0, 1, 0.0), (1, 2, 0.3), (0, 3, 0.1), (3, 2, 0.0)], [2, 1], []),
    "loop of one": [0, ("repeat", 1, 0.1), 2],
    "repeat sign": [("repeat", [0, 1], 0.4), 2],
    "repeated alternatives": ("repeat", ("one", 0, [1, 2]), 0.25),
    "loops inside a loop": ("repeat", [0, ("repeat", 1, 0.5)], 0.25),
    "same step twice": [0, 1, 0],
    "same step on two nodes": ("walks", [0, 1, 0], [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0), (1, 3, 0.0)], [3, 2], []),
    "jump to the start": ("jumps", 3, [(2, 0, 0.5)]),
    "jumps forth and back": ("jumps", [1, 0, 2], [(2, 1, 0.5), (1, 2, 0.25), (0, 0, 0.125)]),
    "jumps on a graph": (
        "walks",
        [0, 1, 2],
        [(0, 1, 0.0), (1, 2, 0.0), (1, 3, 0.1)],
        [2, 3],
        [(2, 3, 0.2), (3, 1, 0.3)],
    ),
}
MIXED: dict[str, Any] = {
    "alternatives in any order": ("one", ("any", 0, 1), 2),
    "any, then alternatives": [("any", 0, 2), ("one", 1, 3)],
    "alternatives, then any": [("one", 3, 1), ("any", 0, 2)],
    "any, then a loop": [("any", 0, 1), ("repeat", 2, 0.25)],
    "any, then any, then alternatives": [("any", 0, 1), ("any", 2, 3), ("one", 4, 5)],
}
REPEATED: dict[str, Any] = {
    "repeated antichain": ("repeat", ("any", 0, 1), 0.3),
    "repeated list with any inside": ("repeat", [2, ("any", 0, 1)], 0.3),
    "a step, then a repeated antichain": [1, ("repeat", ("any", 0, 2), 0.1)],
    "repeated alternatives in any order": ("repeat", ("one", ("any", 0, 1), 2), 0.2),
}
"""Steps in any order inside a loop, which work only without drop_z."""

ORDERS: dict[str, Any] = {**POSETS, **WALKS, **MIXED, **REPEATED}
FLAGS = [
    dict(zip(("one_to_many", "many_to_one", "contiguous"), flags, strict=True))
    for flags in product((True, False), repeat=3)
]
OPTIONS = [{"sides": sides, **flags} for sides in product((True, False), repeat=2) for flags in FLAGS]
"""All 32 combinations of one_to_many, many_to_one, contiguous, and the sides that may be dropped."""


def build(said: Any) -> orders.Order:
    """The order that the oracle's tuples describe, built with the library."""
    return _built(repr(said))


@functools.cache
def _built(text: str) -> orders.Order:
    said = eval(text)  # lists cannot be hashed, but their text can
    if isinstance(said, int):
        return orders.as_order(said)
    if isinstance(said, list):
        return orders.as_order([build(part) for part in said])
    kind, *parts = said
    if kind == "before":
        return orders.before(*parts)
    if kind == "jumps":
        return orders.jumps(*parts)
    if kind == "walks":
        return orders.walks(*parts)
    if kind == "repeat":
        return orders.repeat(build(parts[0]), parts[1])
    if kind == "lasting":
        return orders.lasting(build(parts[0]), at_least=parts[1], at_most=parts[2])
    return {"any": orders.any_order, "one": orders.one_of}[kind](*map(build, parts))


LASTING: dict[str, Any] = {
    "all at least 2": ("lasting", [0, 1], 2, None),
    "all 2 to 3": ("lasting", [0, 1], 2, 3),
    "all exactly 2, in another order": ("lasting", [1, 0], 2, 2),
    "all at most 2, a step twice": ("lasting", [0, 1, 0], 1, 2),
    "one at least 2": [0, ("lasting", 1, 2, None), 2],
    "at most 1": [("lasting", 0, 1, 1), 1],
    "2 to 3, then 1 to 2": [("lasting", 0, 2, 3), ("lasting", 1, 1, 2)],
    "exactly 2, in any order": ("any", ("lasting", 0, 2, 2), [1, ("lasting", 2, 1, 2)]),
    "partial order": ("lasting", ("before", 3, [(0, 2), (1, 2)]), 1, 2),
    "alternatives": ("one", ("lasting", 0, 3, None), [("lasting", 1, 1, 1), 2]),
    "repeats": ("repeat", [("lasting", 0, 2, None), 1], 0.3),
    "a step twice": [("lasting", 0, 1, 2), 1, 0],
    "jumps": ("lasting", ("jumps", 2, [(1, 0, 0.5)]), 1, 2),
    "walks": ("lasting", ("walks", [0, 1, 0], [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.1), (1, 3, 0.0)], [3, 2], []), 2, 2),
}


def holds_any(said: Any) -> bool:
    """Whether it contains steps that may come in any order."""
    return isinstance(said, (list, tuple)) and (said[:1] in (("any",), ("before",)) or any(map(holds_any, said)))


def repeats_any(said: Any) -> bool:
    """Whether it repeats steps in any order."""
    return isinstance(said, (list, tuple)) and (
        (said[:1] == ("repeat",) and holds_any(said)) or any(map(repeats_any, said))
    )


def steps_of(said: Any) -> int:
    """The number of rows of Z."""
    return build(said).K


@dataclass(frozen=True)
class Case:
    """A problem with an order, in the form of the library and in that of the oracle."""

    said: Any
    C: np.ndarray
    drop_x: np.ndarray | None
    drop_z: np.ndarray | None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `dropdtw.solve` and similar functions."""
        return {"C": self.C, "drop_x": self.drop_x, "drop_z": self.drop_z, "order": build(self.said), **self.options}

    def problem(self, executor: str | None = None) -> Problem:
        given = {**self.given, "executor": executor}
        return Problem.of_costs(Spec.of(**{k: v for k, v in given.items() if k != "C"}), self.C)

    @functools.cached_property
    def answer(self) -> order_oracle.Answer:
        """All alignments, enumerated by the oracle."""
        return order_oracle.answer(self.said, self.C, self.drop_x, self.drop_z, **self.options)

    def free(self) -> Case:
        """The same if everything is free except arcs."""
        x, z = (None if d is None else 0 * d for d in (self.drop_x, self.drop_z))
        return Case(self.said, 0 * self.C, x, z, self.options)


def case(said: Any, options: dict[str, Any], N: int = 3, seed: int = 0, kind: str = "signed") -> Case:
    """An order with some options and random costs."""
    rng = np.random.default_rng(seed)
    K = steps_of(said)
    x, z = options.get("sides", (False, False))
    C, d_x, d_z = rng.normal(size=(K, N)), rng.random(N), rng.random(K)
    if kind == "holes":
        C[rng.random((K, N)) < 0.2], d_x[rng.random(N) < 0.2], d_z[rng.random(K) < 0.2] = np.inf, np.inf, np.inf
    more = {name: value for name, value in options.items() if name != "sides"}
    return Case(said, C, d_x if x else None, d_z if z else None, more)


def fits(said: Any, options: dict[str, Any]) -> bool:
    """Whether an order supports these options."""
    return not (options["sides"][1] and repeats_any(said))


def enough(name: str, every: int) -> list[dict[str, Any]]:
    """Some of the option sets that an order supports; different orders get different ones, to cover all of them."""
    shift = list(ORDERS).index(name)
    return [o for k, o in enumerate(OPTIONS) if fits(ORDERS[name], o) and (k + 5 * (k // 8) + shift) % every == 0]


def random_poset(rng: np.random.Generator, K: int) -> Any:
    """A partial order of shuffled steps."""
    names = [int(n) for n in rng.permutation(K)]
    pairs = [(names[a], names[b]) for a in range(K) for b in range(a + 1, K) if rng.random() < rng.choice([0.2, 0.5])]
    return "before", K, pairs


@contextlib.contextmanager
def skipped_if_it_counts_twice() -> Iterator[None]:
    """Skip the test at the warning that an order counts some alignments several times, unlike the oracle."""
    try:
        yield
    except UserWarning as warning:
        if "reaches the same steps in several ways" not in str(warning):
            raise
        pytest.skip("the order warns that it counts some alignments several times")


def random_walks(rng: np.random.Generator, most: int = 4) -> Any:
    """A graph of shuffled steps in which every node is on a walk."""
    V = int(rng.integers(2, most + 1))
    K = int(rng.integers(1, min(V, 3) + 1))
    labels = [int(n) for n in rng.permutation([*range(K), *rng.integers(0, K, V - K)])]

    def cost() -> float:
        return float(rng.choice([0.0, 0.25, 0.5]))

    arcs = [(int(rng.integers(0, v)), v, cost()) for v in range(1, V + 1)]
    arcs += [(a, b, cost()) for a in range(V) for b in range(a + 1, V + 1) if rng.random() < 0.3]
    jumps = [(a, b, cost()) for a in range(1, V + 1) for b in range(1, V + 1) if rng.random() < 0.12]
    ends = {v for v in range(1, V + 1) if not any(a == v for a, _, _ in arcs)}
    finals = sorted(ends | {int(rng.integers(1, V + 1))})
    arcs = list({arc[:2]: arc for arc in arcs}.values())
    return "walks", labels, arcs, finals, list({jump[:2]: jump for jump in jumps}.values())


@functools.cache
def cases_of(name: str, every: int) -> list[Case]:
    """An order with every n-th of its option sets."""
    return [case(ORDERS[name], options, seed=seed) for seed, options in enumerate(enough(name, every))]


def some_orders(which: dict[str, Any] = ORDERS, every: int = 8) -> Any:
    """Parametrize a test by orders, with some of their option sets, or with all of them if the run is exhaustive."""
    thin = [pytest.param(name, every, id=name) for name in which]
    full = [pytest.param(name, 1, id=f"{name}, every option", marks=pytest.mark.exhaustive) for name in which]
    return pytest.mark.parametrize(("name", "every"), thin + full)
