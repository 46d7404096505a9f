"""Partial orders of steps 0 … n − 1. Sets of steps are the bits of an integer."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence


def levels_of(n: int, pairs: Iterable[tuple[int, int]]) -> list[int] | None:
    """For each of n nodes, the number of pairs (a, b) on the longest path to it; None if there is a cycle.

    >>> levels_of(3, [(0, 2), (2, 1), (0, 1)])
    [0, 2, 1]
    """
    after: list[list[int]] = [[] for _ in range(n)]
    waits, level = [0] * n, [0] * n
    for a, b in pairs:
        after[a].append(b)
        waits[b] += 1
    ready = [v for v in range(n) if not waits[v]]
    for u in ready:  # including those that this loop appends
        for v in after[u]:
            level[v] = max(level[v], level[u] + 1)
            waits[v] -= 1
            if not waits[v]:
                ready.append(v)
    return level if len(ready) == n else None


class Poset:
    """Steps, and which come before which.

    below, above : for each step, the set of all steps before it, and of all steps after it.
    rank : a fixed linear order that respects the partial one; among steps that may come next, the smallest is first.
    """

    def __init__(self, n: int, pairs: Iterable[tuple[int, int]], names: Sequence[int] | None = None) -> None:
        self.n = n
        self.full = (1 << n) - 1
        after: list[set[int]] = [set() for _ in range(n)]
        for a, b in pairs:
            after[a].add(b)
        waits = [0] * n
        for followers in after:
            for b in followers:
                waits[b] += 1
        ready = [v for v in range(n) if not waits[v]]
        self.by_rank: list[int] = []
        self.below = [0] * n
        while ready:
            u = heapq.heappop(ready)
            self.by_rank.append(u)
            for v in after[u]:
                self.below[v] |= self.below[u] | 1 << u
                waits[v] -= 1
                if not waits[v]:
                    heapq.heappush(ready, v)
        if len(self.by_rank) < n:
            cycle = " before ".join(str(v if names is None else names[v]) for v in _cycle(after, waits))
            raise ValueError(f"the order has a cycle, {cycle}; remove one of these pairs, or use repeat or jumps")
        self.rank = [0] * n
        for k, v in enumerate(self.by_rank):
            self.rank[v] = k
        self.above = [0] * n
        for u in reversed(self.by_rank):
            for v in after[u]:
                self.above[u] |= self.above[v] | 1 << v
        self.after = [tuple(sorted(followers)) for followers in after]
        self.parallel = [self.full & ~(self.above[v] | self.below[v] | 1 << v) for v in range(n)]
        self._ranked: list[int] = []
        ranked = 0
        for v in self.by_rank:
            ranked |= 1 << v
            self._ranked.append(ranked)
        self.earlier = [self.parallel[v] & self.ranked_to(v) for v in range(n)]
        self._enabled: dict[int, int] = {0: sum(1 << v for v in range(n) if not self.below[v])}

    def ranked_to(self, v: int) -> int:
        """The steps whose rank is at most that of v."""
        return self._ranked[self.rank[v]]

    @property
    def is_chain(self) -> bool:
        """Whether every two steps are comparable."""
        return not any(self.parallel)

    def members(self, steps: int) -> Iterator[int]:
        """The steps of a set, by rank."""
        found = []
        while steps:
            low = steps & -steps
            found.append(low.bit_length() - 1)
            steps ^= low
        return iter(sorted(found, key=self.rank.__getitem__))

    def free(self) -> int:
        """How many steps, at least, may come next at the same time: the size of the largest layer."""
        height = levels_of(self.n, [(u, v) for u, followers in enumerate(self.after) for v in followers]) or ()
        return max(Counter(height).values())

    def sets_exceed(self, most: int) -> bool:
        """Whether there are more than `most` sets of steps that can be done at some time.

        Each such set consists of some pairwise incomparable steps and all steps below them, so we count the sets of
        pairwise incomparable steps.
        """
        count, todo = 1, [self.full]
        while todo:
            others = todo.pop()
            while others:
                low = others & -others
                others ^= low
                count += 1
                if count > most:
                    return True
                todo.append(others & self.parallel[low.bit_length() - 1])
        return False

    def enabled(self, done: int) -> int:
        """The steps that may come next once the set `done` is done."""
        return self._enabled[done]

    def with_step(self, done: int, v: int) -> int:
        """The set `done` with v added. Also caches which steps may come next after it."""
        more = done | 1 << v
        if more not in self._enabled:
            now = self._enabled[done] & ~(1 << v)
            for w in self.after[v]:
                if not self.below[w] & ~more:
                    now |= 1 << w
            self._enabled[more] = now
        return more


def _cycle(after: Sequence[Iterable[int]], waits: Sequence[int]) -> list[int]:
    """A cycle: steps that each come before the next, with the first repeated at the end.

    waits : 0 for steps that are certainly in no cycle.   A long cycle is shortened.
    """
    before: dict[int, int] = {}
    for u, followers in enumerate(after):
        if waits[u]:
            for v in followers:
                if waits[v]:
                    before[v] = u
    v = next(iter(before))
    seen: dict[int, int] = {}
    while v not in seen:
        seen[v] = len(seen)
        v = before[v]
    found = [u for u, k in seen.items() if k >= seen[v]][::-1]
    return [found[-1], *found] if len(found) < 6 else [found[-1], *found[:4]]
