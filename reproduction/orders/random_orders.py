"""Random partial orders, and random sequences of steps that they allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dropdtw.orders.poset import Poset


def random_pairs(steps: Sequence[int], freedom: float, rng: np.random.Generator) -> list[tuple[int, int]]:
    """The pairs (a, b), a before b, of a random partial order that agrees with the list; equal steps stay in order.

    steps : the step at each position of the list.   freedom : how far steps can move, in positions; 0 keeps the list.

    A pair is kept if a second list, in which every step has moved randomly, agrees with the first.
    """
    moved = np.arange(len(steps)) + freedom * rng.normal(size=len(steps))
    return [
        (a, b)
        for b in range(len(steps))
        for a in range(b)
        if moved[a] < moved[b] or steps[a] == steps[b]
    ]  # fmt: skip


def random_extension(poset: Poset, rng: np.random.Generator) -> list[int]:
    """A random order that the partial order allows: repeatedly pick one of the steps that may come next."""
    found: list[int] = []
    done = 0
    while len(found) < poset.n:
        ready = list(poset.members(poset.enabled(done)))
        found.append(ready[int(rng.integers(len(ready)))])
        done = poset.with_step(done, found[-1])
    return found
