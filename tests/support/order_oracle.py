"""Brute-force oracle for orders of steps: enumerates every alignment, without dynamic programming or library code.

An order is given as plain tuples: a step is a number, a list means "in this order", and otherwise

    ("any", part, …)   ("before", steps, pairs)   ("one", part, …)   ("repeat", part, cost)
    ("jumps", steps, [(a, b, cost), …])           ("walks", labels, arcs, finals, jumps)
    ("lasting", part, at_least, at_most), at_most None for no limit

It is expanded into *courses*, one for each choice of alternatives and each number of repetitions. A course consists of
visits, each to a step, and a partial order of them. An alignment is a course with the x of each visit, such that the
x never decrease along *some* linear extension. Each alignment is listed once.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Course:
    """One way through an order, after all choices.

    steps : the step of each visit.   pairs : (a, b) where visit a comes before visit b.
    fresh : sets of visits; the first visit of each must match a new x.
    cost : the cost of the arcs.   taken : how often each arc of ("walks", …) or ("jumps", …) is taken.
    """

    steps: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    fresh: tuple[frozenset[int], ...] = ()
    cost: float = 0.0
    taken: tuple[int, ...] = ()

    def then(self, other: Course, *, beside: bool = False) -> Course:
        """Combine two courses: the other one follows, or runs in parallel if `beside`."""
        n = len(self.steps)
        moved = tuple((a + n, b + n) for a, b in other.pairs)
        across = () if beside else tuple((a, n + b) for a in range(n) for b in range(len(other.steps)))
        fresh = tuple(frozenset(v + n for v in group) for group in other.fresh)
        return Course(
            self.steps + other.steps,
            self.pairs + moved + across,
            self.fresh + fresh,
            self.cost + other.cost,
            self.taken + other.taken,
        )


def courses(order: Any, most: int) -> Iterator[Course]:
    """Every course with at most this many visits that need a new x."""
    if isinstance(order, int):
        yield Course((order,))
        return
    if isinstance(order, list):
        order = ("list", *order)
    kind, *parts = order
    if kind == "lasting":
        yield from courses(parts[0], most)
    elif kind in ("list", "any"):
        yield from _together(parts, most, kind == "any")
    elif kind == "one":
        for part in parts:
            yield from courses(part, most)
    elif kind == "before":
        steps = list(range(parts[0])) if isinstance(parts[0], int) else list(parts[0])
        yield Course(tuple(steps), tuple((steps.index(a), steps.index(b)) for a, b in parts[1]))
    elif kind == "repeat":
        yield from _passes(parts[0], parts[1], most)
    elif kind == "jumps":
        steps = list(range(parts[0])) if isinstance(parts[0], int) else list(parts[0])
        chain = [(n, n + 1, 0.0) for n in range(len(steps))]
        back = [(steps.index(a) + 1, steps.index(b) + 1, cost) for a, b, cost in parts[1]]
        yield from _walks(steps, chain, [len(steps)], back, most)
    else:
        yield from _walks(*parts, most)


def _together(parts: list[Any], most: int, beside: bool) -> Iterator[Course]:
    if not parts:
        yield Course()
        return
    for first in courses(parts[0], most):
        for rest in _together(parts[1:], most - len(first.fresh), beside):
            yield first.then(rest, beside=beside)


def _passes(body: Any, cost: float, most: int, done: Course | None = None) -> Iterator[Course]:
    for once in courses(body, most):
        if done is not None:
            everything = frozenset(range(len(once.steps)))
            once = replace(once, fresh=(everything, *once.fresh), cost=once.cost + cost)
        if len(once.fresh) <= most:
            now = once if done is None else done.then(once)
            yield now
            if len(once.fresh) < most:
                yield from _passes(body, cost, most - len(once.fresh), now)


def _walks(labels: Any, arcs: Any, finals: Any, jumps: Any, most: int) -> Iterator[Course]:
    """Every walk through a graph that starts at node 0."""
    ways = [(*arc, k >= len(arcs)) for k, arc in enumerate([*arcs, *jumps])]

    def go(v: int, taken: list[int], left: int) -> Iterator[Course]:
        if v in finals:
            steps = tuple(labels[ways[k][1] - 1] for k in taken)
            fresh = tuple(frozenset([n]) for n, k in enumerate(taken) if ways[k][3])
            ordered = tuple((a, b) for b in range(len(steps)) for a in range(b))
            yield Course(steps, ordered, fresh, sum(ways[k][2] for k in taken), tuple(taken))
        for k, (a, b, _, jump) in enumerate(ways):
            if a == v and (left or not jump):
                yield from go(b, [*taken, k], left - jump)

    yield from go(0, [], most)


def extensions(course: Course) -> Iterator[tuple[int, ...]]:
    """Every linear order of the visits that respects their partial order."""
    n = len(course.steps)

    def go(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == n:
            yield done
        for v in range(n):
            if v not in done and all(a in done for a, b in course.pairs if b == v):
                yield from go((*done, v))

    yield from go(())


def fillings(course: Course, N: int) -> set[tuple[int, ...]]:
    """Every choice of x for each visit (as bits, 0 if dropped) that never decreases along some order of the visits."""
    found = set()
    for way in extensions(course):
        alone = {min(group, key=way.index) for group in course.fresh}

        def go(at: int, last: int, rows: dict[int, int], way: tuple[int, ...] = way, alone: set[int] = alone) -> None:
            if at == len(way):
                found.add(tuple(rows[v] for v in range(len(way))))
                return
            v = way[at]
            if v not in alone:
                go(at + 1, last, {**rows, v: 0})
            first = last + 1 if v in alone else max(last, 0)
            for xs in range(1, 1 << (N - first)):
                row = xs << first
                go(at + 1, row.bit_length() - 1, {**rows, v: row})

        go(0, -1, {})
    return found


def durations(order: Any) -> dict[int, tuple[int, float]]:
    """How many x each step matches, at least and at most, unless it is dropped."""
    if isinstance(order, list):
        order = ("list", *order)
    if isinstance(order, int) or order[0] not in ("list", "any", "one", "repeat", "lasting"):
        return {}
    parts = [part for part in order[1:] if isinstance(part, (list, tuple))]
    found = {step: limits for part in parts for step, limits in durations(part).items()}
    if order[0] == "lasting":
        steps = {step for way in courses(order[1], 3) for step in way.steps}
        found = dict.fromkeys(steps, (order[2], math.inf if order[3] is None else order[3])) | found
    return found


def _lasts(way: Course, rows: tuple[int, ...], limits: dict[int, tuple[int, float]]) -> bool:
    wanted = (limits.get(step, (1, math.inf)) for step in way.steps)
    return all(not row or least <= row.bit_count() <= most for row, (least, most) in zip(rows, wanted, strict=True))


class Listed(NamedTuple):
    """Every alignment of an order with N x, for any options: n of them.

    course : (n,) indices into `ways`.   rows : the x of each visit, as bits.
    match : (n, K, N) how often a step matches an x.   dropped, visit : (n, K) how often it is dropped, and visited.
    used : (n, N) whether an x is matched.   first : (n, K) the first x of a step, N if it has none.
    repeats : (n,) matches that repeat an element.   runs_x, runs_z : (n,) runs of unmatched x, of dropped visits.
    once, apart, unbroken : (n,) no visit has several x; no x has several visits; no visit has a gap between its x.
    """

    ways: list[Course]
    rows: list[tuple[int, ...]]
    course: np.ndarray
    match: np.ndarray
    dropped: np.ndarray
    visit: np.ndarray
    used: np.ndarray
    first: np.ndarray
    repeats: np.ndarray
    runs_x: np.ndarray
    runs_z: np.ndarray
    once: np.ndarray
    apart: np.ndarray
    unbroken: np.ndarray


def _runs(missing: list[bool]) -> int:
    return sum(now and not before for before, now in zip([False, *missing], missing, strict=False))


@functools.lru_cache(maxsize=256)
def _listed(said: str, K: int, N: int) -> Listed:
    limits = durations(eval(said))
    ways = list(courses(eval(said), N))  # lists cannot be hashed, but their text can
    once: dict[Any, tuple[int, tuple[int, ...]]] = {}  # walks through the same steps are one, at the lowest cost
    for c, way in sorted(enumerate(ways), key=lambda each: each[1].cost):
        for filling in sorted(filter(lambda rows, way=way: _lasts(way, rows, limits), fillings(way, N))):
            once.setdefault((way.steps, filling), (c, filling))
    rows = sorted(once.values())
    n = len(rows)
    match, dropped, visit = np.zeros((n, K, N), int), np.zeros((n, K), int), np.zeros((n, K), int)
    used, first = np.zeros((n, N), bool), np.full((n, K), N)
    more: list[list[Any]] = []
    for k, (c, filling) in enumerate(rows):
        columns = np.zeros(N, int)
        for step, xs in zip(ways[c].steps, filling, strict=True):
            at = [j for j in range(N) if xs >> j & 1]
            visit[k, step] += 1
            dropped[k, step] += not at
            match[k, step, at] += 1
            columns[at] += 1
            first[k, step] = min(first[k, step], *at, N)
        used[k] = columns > 0
        sizes = [xs.bit_count() for xs in filling if xs]
        spans = [xs.bit_length() - ((xs & -xs).bit_length() - 1) for xs in filling if xs]
        shared = int(np.maximum(columns - 1, 0).sum())
        more.append(
            [
                sum(sizes) - len(sizes) + shared,
                _runs([not c for c in columns]),
                _runs([not xs for xs in filling]),
                max(sizes, default=0) <= 1,
                shared == 0,
                sizes == spans,
            ]
        )
    table = np.array(more, int).reshape(n, 6).T
    course = np.array([c for c, _ in rows], int)
    flags = (column.astype(bool) for column in table[3:])
    return Listed(ways, [r for _, r in rows], course, match, dropped, visit, used, first, *table[:3], *flags)


def listed(order: Any, K: int, N: int) -> Listed:
    """Every alignment of an order of K steps with N x."""
    return _listed(repr(order), K, N)


@dataclass(frozen=True)
class Answer:
    """The alignments that a method and its options allow (`which`, among `all`), and their costs."""

    all: Listed
    which: np.ndarray
    cost: np.ndarray

    @property
    def hard(self) -> float:
        return float(self.cost.min(initial=math.inf))

    @property
    def unique(self) -> bool:
        """Whether one alignment is strictly better than all others."""
        return bool((self.cost < self.hard + 1e-6).sum() == 1)

    def soft(self, gamma: float) -> float:
        if len(self.cost) == 0:
            return math.inf
        return self.hard - gamma * math.log(math.fsum(np.exp((self.hard - self.cost) / gamma)))

    def probability(self, gamma: float) -> np.ndarray:
        """The probability of each alignment."""
        p = np.exp((self.hard - self.cost) / gamma)
        return p / p.sum()

    def mean(self, of: np.ndarray, gamma: float) -> np.ndarray:
        """The expected value of a number that each listed alignment has."""
        return np.tensordot(self.probability(gamma), of[self.which].astype(float), 1)

    def before(self, gamma: float) -> np.ndarray:
        """(K, K) the probability that both steps are matched and the first one's first x comes before the other's."""
        first = self.all.first
        N = self.all.used.shape[1]
        earlier = (first[:, :, None] < first[:, None, :]) & (first[:, None, :] < N)
        return self.mean(earlier, gamma)

    def arcs(self, gamma: float, count: int) -> np.ndarray:
        """(count,) the expected number of times that each arc of a graph is taken."""
        taken = [Counter(way.taken) for way in self.all.ways]
        often = np.array([[t[k] for k in range(count)] for t in taken]).reshape(len(taken), count)
        return self.mean(often[self.all.course], gamma)

    def arc_cost(self, gamma: float) -> float:
        """The expected cost of the arcs."""
        costs = np.array([way.cost for way in self.all.ways])
        return float(self.mean(costs[self.all.course], gamma))


def _paid(counts: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Σ counts · prices over all axes but the first (avoids inf · 0)."""
    return np.where(counts > 0, counts * np.where(counts > 0, prices, 0), 0.0).reshape(len(counts), -1).sum(axis=1)


def answer(
    order: Any,
    C: np.ndarray,
    d_x: Any = None,
    d_z: Any = None,
    *,
    method: str = "drop_dtw",
    one_to_many: bool = True,
    many_to_one: bool = True,
    contiguous: bool = False,
    threshold: float = math.nan,
    open_x: float = 0.0,
    open_z: float = 0.0,
    warp: float = 0.0,
) -> Answer:
    """The alignments of an order that a method allows, each with its cost. A drop cost of None forbids drops."""
    C = np.asarray(C, float)
    K, N = C.shape
    found = listed(order, K, N)
    keep = np.ones(len(found.course), bool)
    if method == "steps":
        method, many_to_one, contiguous = "drop_dtw", False, True
    one_to_one = method in ("needleman_wunsch", "lcss")
    keep &= found.once | (one_to_many and not one_to_one)
    keep &= found.apart | (many_to_one and not one_to_one)
    keep &= found.unbroken | (not contiguous)
    if method in ("dtw", "subsequence", "otam", "free_begin", "free_end"):
        keep &= ~found.dropped.any(axis=1)
        d_x, d_z = None, None
    if method in ("subsequence", "otam", "free_begin", "free_end"):
        d_x = 0.0
        keep &= {"free_begin": found.used[:, -1], "free_end": found.used[:, 0]}.get(method, True)
        before = np.logical_or.accumulate(found.used, axis=1)
        after = np.logical_or.accumulate(found.used[:, ::-1], axis=1)[:, ::-1]
        keep &= ~(before & after & ~found.used).any(axis=1)
    if method == "lcss":
        C, d_x, d_z = np.where(threshold > C, -1.0, np.inf), 0.0, 0.0
    dx = np.broadcast_to(np.asarray(np.inf if d_x is None else d_x, float), (N,))
    dz = np.broadcast_to(np.asarray(np.inf if d_z is None else d_z, float), (K,))
    if method == "greedy":
        keep &= (found.used == (C.min(axis=0) <= dx)).all(axis=1)
        kept = C.min(axis=1) <= dz
        keep &= np.where(kept, found.dropped == 0, found.dropped == found.visit).all(axis=1)
    cost = np.array([way.cost for way in found.ways])[found.course] + _paid(found.match, C)
    cost = cost + _paid(~found.used, dx) + _paid(found.dropped, dz)
    cost = cost + open_x * found.runs_x + open_z * found.runs_z + warp * found.repeats
    which = np.flatnonzero(keep & (cost < np.inf))
    return Answer(found, which, cost[which])


def matrices(K: int, N: int, pairs: list[tuple[int, int]]) -> set[tuple[int, ...]]:
    """Every boolean matrix, as the bits of its rows, that is monotone along some linear extension of a partial order.

    The same as `fillings`, computed the other way round: all matrices, minus those that no extension allows.
    """
    ways = list(extensions(Course(tuple(range(K)), tuple(pairs))))
    bits = (np.arange(1 << K * N)[:, None] >> np.arange(K * N)) & 1
    found = set()
    for M in bits.astype(bool).reshape(-1, K, N):
        xs = [np.flatnonzero(row) for row in M]
        for way in ways:
            matched = [xs[v] for v in way if len(xs[v])]
            if all(a[-1] <= b[0] for a, b in itertools.pairwise(matched)):
                found.add(tuple(int(sum(1 << j for j in row)) for row in xs))
                break
    return found
