"""The nearest of many sequences, exactly, without aligning all of them.

Lower bounds (`bounds.py`) rule most candidates out: first from the centres of short runs of frames, computed once for
a `Corpus`; then, for what is left, from all frames. What survives is aligned, the most promising first, until the k-th
best cost is below every bound that remains; and an alignment that is sure to cost more than that is not finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dropdtw.costs import MatchCost, _lengths, _unit, cosine_of, kernel_metric
from dropdtw.drops import DropCost
from dropdtw.files.progress import Progress, reporter
from dropdtw.problem.fixed import fixed
from dropdtw.problem.inputs import Array, as_drop_costs, as_sequence
from dropdtw.problem.prepare import check_fit
from dropdtw.problem.problem import Values
from dropdtw.search import bounds
from dropdtw.search.bounds import Prices
from dropdtw.search.pairwise import Request, _sequences, _threads, some_in_lanes, some_one_by_one, useful_threads
from dropdtw.tables.methods import Options
from dropdtw.tables.recurrence import Recurrence
from dropdtw.tables.reducers import hard_min

BLOCK = 1 << 18
"""Distances that are held at a time: few enough to stay in a core's cache."""


TRIAL = 256
"""Sequences that are looked at first; where their frames rule out next to nothing, the others are not asked."""


LANES = 256
"""Sequences that kernels for many at a time are given at once."""


WORTH = 0.3
"""The share of cells that a limit must spare, so that looking for a reason to give up is worth its time; 1: never."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """What `nearest` found.

    indices : (k,) places in the corpus, nearest first; of equal costs the smaller index first.
    costs : (k,) what aligning them costs.
    aligned : how many sequences were aligned.
    size : how many there are.
    by_centres, by_frames : how many were ruled out by the bound from centres, and from frames.
    abandoned : how many of those that were aligned were given up on the way, sure to cost more than the k-th best.
    spared : the share of cells of their tables that this spared, of all that were aligned.
    """

    indices: Array
    costs: Array
    aligned: int
    size: int
    by_centres: int
    by_frames: int
    abandoned: int = 0
    spared: float = 0.0

    @property
    def pruned(self) -> float:
        """The share of the corpus that was not aligned."""
        return 1 - self.aligned / self.size


@dataclass(frozen=True, eq=False)
class _Level:
    """Points that stand for frames: (M, d) centres, the distance within which their frames lie, how many these are.

    starts : (n,) where the points of each sequence begin.   reach : (n,) the largest radius of each sequence.
    """

    points: Array
    radius: Array
    count: Array
    starts: Array
    reach: Array

    def of(self, chosen: Array) -> _Level:
        """The points of some of the sequences."""
        ends = np.r_[self.starts[1:], len(self.points)][chosen]
        if (self.starts[chosen[1:]] == ends[:-1]).all():  # neighbours need no picking
            a, b = int(self.starts[chosen[0]]), int(ends[-1])
            return _Level(
                self.points[a:b], self.radius[a:b], self.count[a:b], self.starts[chosen] - a, self.reach[chosen]
            )
        lengths = ends - self.starts[chosen]
        starts = np.cumsum(lengths) - lengths
        at = np.arange(lengths.sum()) + np.repeat(self.starts[chosen] - starts, lengths)
        return _Level(self.points[at], self.radius[at], self.count[at], starts, self.reach[chosen])


class Corpus:
    """Sequences to search in, prepared once for many queries of `nearest`.

    sequences : a list of (length, d).
    run : how many frames in a row share a centre. Short runs bound better and take longer; frames that hardly change
        bear long ones.

    >>> import dropdtw.search.nearest as r
    >>> corpus = r.Corpus([[0.0, 1.0], [0.0, 5.0], [4.0, 5.0]])
    >>> r.nearest([0.0, 4.0], corpus, k=2, drop_x=2.0, drop_z=2.0, match="euclidean").indices
    array([1, 0])
    """

    def __init__(self, sequences: Sequence[npt.ArrayLike], *, run: int = 4) -> None:
        if not isinstance(run, (int, np.integer)) or run < 1:
            raise ValueError(f"run is {run!r}; give the number of frames that share a centre, 1 or more")
        self.sequences = _sequences(sequences, "corpus")
        self.run = int(run)
        self.features = self.sequences[0].shape[1]
        for k, X in enumerate(self.sequences):
            if X.shape[1] != self.features:
                raise ValueError(
                    f"corpus[0] has {self.features} features and corpus[{k}] has {X.shape[1]}; "
                    "all need the same number, as (length, d)"
                )
        self.lengths = np.array([len(X) for X in self.sequences])
        self.dtype = np.result_type(*{X.dtype for X in self.sequences})
        self.extremes = np.array([max(X.max() for X in self.sequences), min(X.min() for X in self.sequences)])
        self.epsilon = max(float(np.finfo(X.dtype).eps) for X in self.sequences)
        self._levels: dict[bool, tuple[_Level, _Level]] = {}
        self._scales: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self.sequences)

    def scale(self, b: int) -> Array | None:
        """What makes unit vectors of the frames of a sequence; None where lengths overflow, vanish or are 0."""
        if b not in self._scales and (lengths := _lengths(self.sequences[b])) is not None:
            self._scales[b] = 1 / lengths
        return self._scales.get(b)

    def levels(self, angles: bool) -> tuple[_Level, _Level]:
        """The centres of runs, and all frames: by angles between them, or by Euclidean distance."""
        if angles not in self._levels:
            frames = np.concatenate([X.astype(self.dtype, copy=False) for X in self.sequences])
            if angles:
                frames = _unit(frames)
            ends = np.cumsum(self.lengths)
            starts = ends - self.lengths
            ones = np.ones(len(frames))
            every = _Level(frames, np.zeros(len(frames)), ones, starts, np.zeros(len(self)))
            self._levels[angles] = (_centres(every, self.lengths, self.run, angles), every)
        return self._levels[angles]


def _centres(every: _Level, lengths: Array, run: int, angles: bool) -> _Level:
    """The mean of each run of frames, and how far from it they lie."""
    runs = -(-lengths // run)
    first = np.cumsum(runs) - runs
    begins = np.arange(runs.sum()) * run + np.repeat(every.starts - first * run, runs)
    count = np.diff(np.r_[begins, len(every.points)]).astype(np.float64)
    points = np.add.reduceat(every.points, begins, axis=0) / count[:, None].astype(every.points.dtype)
    if angles:
        points = _unit(points)
    distance = np.empty(len(every.points))
    which = np.repeat(np.arange(len(points)), count.astype(np.int64))
    for part in _slices(len(distance), max(1, BLOCK // points.shape[1])):
        frames, centres = every.points[part], points[which[part]]
        if angles:
            cosine = np.einsum("nd,nd->n", frames, centres, dtype=np.float64)
            distance[part] = np.arccos(np.clip(cosine - _rounding(points), -1, 1))
        else:
            apart = np.sqrt(((frames - centres).astype(np.float64) ** 2).sum(axis=1))
            distance[part] = apart + _rounding(points) * np.abs(frames).max(initial=0)
    radius = np.maximum.reduceat(distance, begins)
    return _Level(points, radius, count, first, np.maximum.reduceat(radius, first))


def _rounding(points: Array) -> float:
    """How far off a product of two unit vectors of this precision and length may be, and more."""
    return float(4 * (points.shape[1] + 8) * np.finfo(points.dtype).eps)


def nearest(
    query: npt.ArrayLike,
    corpus: Corpus | Sequence[npt.ArrayLike],
    k: int = 10,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    match: MatchCost = "cosine",
    method: str | Recurrence = "drop_dtw",
    one_to_many: bool = True,
    many_to_one: bool = True,
    contiguous: bool = False,
    window: float | None = None,
    threshold: DropCost = None,
    n_jobs: int | None = -1,
    progress: Progress = None,
    executor: str | None = None,
) -> Nearest:
    """Find the k sequences of a corpus that are cheapest to align with a query.

    The answer is that of `pairwise([query], corpus, ...)`, sorted, of equal costs the smaller index first; most
    sequences are not aligned, since a lower bound on their cost rules them out.

    query : Z (K, d).   corpus : the X, a list of sequences or, for many queries, a `Corpus`.
    drop_x, drop_z : numbers, or one number per element. A percentile is another number for every sequence, so nothing
        can be ruled out by it: rules are refused; `pairwise` takes them.
    others : as in `pairwise`. Bounds are known for the match costs "cosine", "euclidean" and "sqeuclidean" and for all
        methods by name; otherwise every sequence is aligned.

    >>> import numpy as np, dropdtw.search.nearest as r
    >>> rng = np.random.default_rng(0)
    >>> corpus = [rng.normal(size=(20, 8)) for _ in range(200)]
    >>> found = r.nearest(corpus[7] + 0.1, corpus, k=1, drop_x=0.3, drop_z=0.3)
    >>> found.indices, found.pruned > 0.5
    (array([7]), True)
    """
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k is {k!r}; give how many sequences to find, 1 or more")
    if not isinstance(corpus, Corpus):
        corpus = Corpus(corpus)
    Z = as_sequence(query, "query")
    if Z.shape[1] != corpus.features:
        raise ValueError(f"the query has {Z.shape[1]} features and the corpus {corpus.features}; both need the same")
    options = Options(one_to_many, many_to_one, contiguous, window, threshold)
    p = bounds.prices(drop_x, drop_z, method, options)
    request = Request(match, drop_x, drop_z, options, method, hard_min, executor)
    for N in np.unique(corpus.lengths):
        check_fit(len(Z), int(N), drop_x is None, drop_z is None, options, method)
        for d, name, length, element in ((drop_x, "drop_x", int(N), "x_j"), (drop_z, "drop_z", len(Z), "z_i")):
            if d is not None and p is not None:
                as_drop_costs(fixed(d, name, ""), name, length, element)  # type: ignore[arg-type]
    search = _Search(Z, corpus, min(int(k), len(corpus)), request, _threads(n_jobs), progress)
    bound = None if search.metric else _bound_for(Z, corpus, match, p)
    if bound is None:
        search.through(np.arange(len(corpus)), np.full(len(corpus), -np.inf))
        return search.result(0)
    coarse = bound(0, np.arange(len(corpus)))
    order = np.argsort(coarse, kind="stable")
    by_centres = start = 0
    width = max(TRIAL, 8 * search.k)
    while start < len(order):  # the first part has the nearest, so that centres suffice for most of the next ones
        part = order[start : start + width]
        start, width = start + width, 4 * width
        hopeful = part[coarse[part] <= search.worst]
        by_centres += len(part) - len(hopeful)
        fine = np.maximum(bound(1, hopeful), coarse[hopeful]) if search.pays else coarse[hopeful]
        by_fine = np.argsort(fine, kind="stable")
        search.through(hopeful[by_fine], fine[by_fine])
    return search.result(by_centres)


class _Search:
    """The best costs so far."""

    def __init__(
        self, Z: Array, corpus: Corpus, k: int, request: Request, threads: int, progress: Progress = None
    ) -> None:
        self.Z, self.corpus, self.k, self.request, self.threads = Z, corpus, k, request, threads
        self.report = reporter("dropdtw.nearest", progress)
        self.pays = True
        self.gives_up = WORTH < 1
        self.metric = self._lanes_metric()
        if self.metric is None:
            self.threads = useful_threads(threads, len(Z) * float(corpus.lengths.mean()))
        self.chunk = max(k, (LANES if self.metric else 16) * self.threads)
        self.units = _unit(Z) if request.match == "cosine" and Z.shape[1] > 1 else None
        self.indices = np.empty(0, np.int64)
        self.costs = np.empty(0)
        self.aligned = self.abandoned = self.columns = self.tried = 0
        self.spared = self.promising = 0.0

    @property
    def worst(self) -> float:
        """The k-th best cost: what is surely above it is not among the answers."""
        return float(self.costs[-1]) if len(self.costs) == self.k else np.inf

    def align(self, chosen: Array) -> None:
        """Align some sequences, and keep the k best of all."""
        limit = self.worst if self.gives_up else np.inf
        parts = [part for part in np.array_split(chosen, self.threads) if len(part)]
        if len(parts) == 1:
            found = [self._costs(parts[0], limit)]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                found = list(pool.map(lambda part: self._costs(part, limit), parts))
        indices = np.concatenate([self.indices, *parts])
        costs = np.concatenate([self.costs, *(part.values for part in found)])
        best = np.lexsort((indices, costs))[: self.k]
        self.indices, self.costs = indices[best], costs[best]
        self.aligned += len(chosen)
        self.abandoned += sum(part.abandoned for part in found)
        columns = [int(self.corpus.lengths[part].sum()) for part in parts]
        spared = sum(part.spared * n for part, n in zip(found, columns, strict=True))
        self.columns, self.spared = self.columns + sum(columns), self.spared + spared
        if limit < np.inf:
            self.tried += len(chosen)
            self.promising += len(chosen) * (spared / sum(columns) - WORTH)
            if self.metric is None and self.tried >= TRIAL:  # lanes look almost for nothing
                self.gives_up = self.promising > 0
        self.report(self.aligned, len(self.corpus))

    def _costs(self, chosen: Array, limit: float) -> Values:
        Xs = [self.corpus.sequences[b] for b in chosen]
        if self.metric:
            # In the precision that `pairwise` would take for all of them.
            same = [X.astype(self.corpus.dtype, copy=False) for X in Xs]
            found = some_in_lanes(self.Z, same, self.request, self.metric, limit)
            assert found is not None
            return found
        return some_one_by_one(self.Z, Xs, self.request, limit, lambda k: self._match(int(chosen[k])))

    def _lanes_metric(self) -> str | None:
        """The match cost where kernels take many sequences at a time, as fast as any bound; otherwise None."""
        metric = kernel_metric(self.request.match, self.Z, self.corpus.extremes.astype(self.corpus.dtype))
        tried = some_in_lanes(self.Z, self.corpus.sequences[:1], self.request, metric)
        return None if tried is None else metric

    def _match(self, b: int) -> Array | None:
        """The match costs of the query and a sequence where what they need of each alone is known; otherwise None."""
        X = self.corpus.sequences[b]
        small = len(self.Z) * len(X) <= BLOCK
        if self.units is None or X.dtype != self.Z.dtype or not small or (scale := self.corpus.scale(b)) is None:
            return None
        return cosine_of(self.units, X, scale)

    def through(self, candidates: Array, bound: Array) -> None:
        """Align candidates, sorted by their bounds, as long as one of them may be among the k best."""
        start, width = 0, self.chunk
        while start < len(candidates) and bound[start] <= self.worst:  # equal: the smaller index would win
            part = slice(start, start + width)
            self.align(candidates[part][bound[part] <= self.worst])
            start += width
            width = max(width, min(2 * width, 128 * self.threads))
        self.pays = self.pays and bool(np.count_nonzero(bound <= self.worst) <= 0.8 * len(candidates))

    def result(self, by_centres: int) -> Nearest:
        size = len(self.corpus)
        if self.aligned < size:
            self.report(size, size)
        by_frames = size - self.aligned - by_centres
        spared = self.spared / self.columns
        return Nearest(self.indices, self.costs, self.aligned, size, by_centres, by_frames, self.abandoned, spared)


class _Bound:
    """The bound (1) of `bounds.py` for one query and any sequences of a corpus, from lower bounds (2) on C.

    Distances are reduced before they become costs, which is allowed because f never falls: the least cost of a column
    is that of its nearest z, and the least of a row that of its nearest centre, with the largest radius of them all.
    Each step gives way to rounding, in the distances, in the match costs that kernels see, and in their sums.
    """

    def __init__(self, Z: Array, corpus: Corpus, match: str, p: Prices) -> None:
        self.corpus, self.match, self.p = corpus, match, p
        self.angles = match == "cosine"
        self.Z = (_unit(Z) if self.angles else Z).astype(np.result_type(Z, corpus.dtype))
        eps = max(corpus.epsilon, float(np.finfo(Z.dtype).eps))
        self.slack = 4 * (Z.shape[1] + 8) * eps
        negative = np.minimum(np.asarray(p.drop_z, np.float64), 0).sum() * (1 if np.ndim(p.drop_z) else len(Z))
        lost = np.minimum(np.asarray(p.drop_x, np.float64), 0).sum()
        self.negative = -negative - lost * (1 if np.ndim(p.drop_x) else corpus.lengths)
        self.sums = 4 * (len(Z) + corpus.lengths) * eps

    def __call__(self, level: int, chosen: Array) -> Array:
        points = self.corpus.levels(self.angles)[level]
        found = np.empty(len(chosen))
        size = np.diff(np.r_[points.starts, len(points.points)])[chosen] * len(self.Z)
        for part in _blocks(size, BLOCK):
            found[part] = self._of(points.of(chosen[part]))
        return found - self._margin(found, chosen)

    def _margin(self, found: Array, chosen: Array) -> Array:
        of_each = self.negative if np.ndim(self.negative) == 0 else self.negative[chosen]
        return np.asarray(np.where(np.isfinite(found), self.sums[chosen] * (np.abs(found) + 2 * of_each), 0))

    def _of(self, some: _Level) -> Array:
        near = self._nearness(some.points)  # (K, M): smaller is nearer
        columns = self._cost(near.min(axis=0), some.radius)
        rows = self._cost(np.minimum.reduceat(near, some.starts, axis=1), some.reach)
        return bounds.split(columns, rows.T, some.count, some.starts, self.p)

    def _nearness(self, points: Array) -> Array:
        """−cos of the angle, or the squared distance, as a matrix product gives them."""
        near = (-self.Z if self.angles else -2 * self.Z) @ points.T
        if not self.angles:
            squares = (points**2).sum(axis=1)
            own = (self.Z**2).sum(axis=1)
            near += squares
            near += own[:, None]
            near -= self.slack * (squares.max() + own.max())
        return np.asarray(near)

    def _cost(self, near: Array, radius: Array) -> Array:
        """What a pair at this nearness costs at least when its x lies within `radius` of the point."""
        near = near.astype(np.float64)
        if self.angles:
            cosine = np.minimum(self.slack - near, 1)
            closest = cosine
            if radius.any():  # cos(θ − r), without the angle
                aside = np.sqrt(np.maximum(1 - cosine**2, 0))
                closest = np.where(cosine < np.cos(radius), cosine * np.cos(radius) + aside * np.sin(radius), 1)
            return np.asarray(np.maximum(1 - self.slack - closest, 0))
        apart = np.maximum(np.sqrt(np.maximum(near, 0)) - radius, 0) * (1 - self.slack)
        return np.asarray(apart if self.match == "euclidean" else apart**2)


def _bound_for(Z: Array, corpus: Corpus, match: MatchCost, p: Prices | None) -> _Bound | None:
    """The bound for a request, None where there is none to be had."""
    if p is None or not isinstance(match, str) or match not in ("cosine", "euclidean", "sqeuclidean"):
        return None
    if match != "cosine" and kernel_metric(match, Z, corpus.extremes.astype(corpus.dtype)) is None:
        return None  # squares would overflow, or vanish
    return _Bound(Z, corpus, match, p)


def _slices(length: int, width: int) -> Iterator[slice]:
    return (slice(start, start + width) for start in range(0, length, width))


def _blocks(sizes: Array, most: int) -> Iterable[slice]:
    """Runs of neighbours whose sizes sum to `most` or little more."""
    group = np.cumsum(sizes) // most
    edges = np.r_[0, np.flatnonzero(np.diff(group)) + 1, len(sizes)]
    return (slice(int(a), int(b)) for a, b in pairwise(edges) if b > a)
