"""An index of sequences for repeated searches, and lower bounds on the cost of aligning a query with each of them.

The bound (1) of `bounds.py` needs a lower bound on the match costs of every column and row. A coarse one comes from the
centers of short runs of frames, by (2), a finer one from all frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dropdtw.costs import Match, row_lengths, unit_rows
from dropdtw.problem.inputs import Array, Columns, owned
from dropdtw.problem.symbols import Side, symbolic
from dropdtw.search import bounds
from dropdtw.search.bounds import Prices
from dropdtw.search.pairwise import as_sequences

BLOCK = 1 << 18
"""Maximum number of distances held at once: few enough to stay in a core's cache."""


@dataclass(frozen=True, eq=False)
class _Level:
    """Points that represent the frames of all sequences.

    points : (M, d), centers of runs of frames, or the frames themselves.
    radius : (M,) the distance within which the frames of a point lie.   count : (M,) the number of these frames.
    starts : (n,) where the points of each sequence begin.   reach : (n,) the largest radius of each sequence.
    """

    points: Array
    radius: Array
    count: Array
    starts: Array
    reach: Array

    def of(self, chosen: Array) -> _Level:
        """The points of the chosen sequences."""
        ends = np.r_[self.starts[1:], len(self.points)][chosen]
        if (self.starts[chosen[1:]] == ends[:-1]).all():  # adjacent sequences need no copy
            a, b = int(self.starts[chosen[0]]), int(ends[-1])
            return _Level(
                self.points[a:b], self.radius[a:b], self.count[a:b], self.starts[chosen] - a, self.reach[chosen]
            )
        lengths = ends - self.starts[chosen]
        starts = np.cumsum(lengths) - lengths
        at = np.arange(lengths.sum()) + np.repeat(self.starts[chosen] - starts, lengths)
        return _Level(self.points[at], self.radius[at], self.count[at], starts, self.reach[chosen])


class Index:
    """A set of sequences, prepared once for many calls of `dropdtw.nearest`.

    sequences : a list of arrays, (length, d) or (length,), or of strings or lists of symbols. Arrays are copied,
        except read-only memory maps and others that nobody can write to.
    run : how many consecutive frames are summarized by their mean. Coarse lower bounds use these means. Short runs give
        tighter bounds but take longer. If frames hardly change over time, long runs are better.

    Its attribute `sequences` is the list of validated sequences (length, d), `lengths` (n,) holds their lengths, and
    `features` is d. `len(index)` is the number of sequences.

    Raises ValueError if the sequences are invalid or differ in their number of features.

    >>> import dropdtw
    >>> index = dropdtw.Index([[0.0, 1.0], [0.0, 5.0], [4.0, 5.0]])
    >>> dropdtw.nearest([0.0, 4.0], index, k=2, drop_x=2.0, drop_z=2.0).indices
    array([1, 0])
    """

    def __init__(self, sequences: Sequence[npt.ArrayLike], *, run: int = 4) -> None:
        if not isinstance(run, (int, np.integer)) or run < 1:
            raise ValueError(f"run is {run!r}; give the number of frames to summarize by their mean, 1 or more")
        self._prepare(sequences, run, owned)

    @classmethod
    def borrowing(cls, sequences: Sequence[npt.ArrayLike]) -> Index:
        """An index for a single search, which does not copy the caller's arrays."""
        index = cls.__new__(cls)
        index._prepare(sequences)
        return index

    def _prepare(
        self, sequences: Sequence[npt.ArrayLike], run: int = 4, kept: Callable[[Array], Array] = lambda X: X
    ) -> None:
        self.symbols: Side | None = None
        self.columns = Columns()
        if isinstance(sequences, Sequence) and not isinstance(sequences, str) and any(map(symbolic, sequences)):
            self.symbols = Side.of(sequences, "corpus[{}]".format, {})
            sequences = self.symbols.codes
        self.sequences = [kept(X) for X in as_sequences(sequences, "corpus", columns=self.columns)]
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

    def kernel_metric(self, Z: Array, match: Match) -> str | None:
        """The match cost's name if the compiled kernels may compute it for the query and all sequences, else None."""
        return match.kernel_metric(Z, self.extremes.astype(self.dtype))

    def scale(self, b: int) -> Array | None:
        """Factors that turn the frames of sequence b into unit vectors; None if lengths over- or underflow or are 0."""
        if b not in self._scales and (lengths := row_lengths(self.sequences[b])) is not None:
            self._scales[b] = 1 / lengths
        return self._scales.get(b)

    def levels(self, angles: bool) -> tuple[_Level, _Level]:
        """The centers of runs, and all frames, for angles or for Euclidean distances. Cached."""
        if angles not in self._levels:
            frames = np.concatenate([X.astype(self.dtype, copy=False) for X in self.sequences])
            if angles:
                frames = unit_rows(frames)
            ends = np.cumsum(self.lengths)
            starts = ends - self.lengths
            ones = np.ones(len(frames))
            every = _Level(frames, np.zeros(len(frames)), ones, starts, np.zeros(len(self)))
            self._levels[angles] = (_centers(every, self.lengths, self.run, angles), every)
        return self._levels[angles]


def _centers(every: _Level, lengths: Array, run: int, angles: bool) -> _Level:
    """The mean of each run of frames, and the distance of the frames from it."""
    runs = -(-lengths // run)
    first = np.cumsum(runs) - runs
    begins = np.arange(runs.sum()) * run + np.repeat(every.starts - first * run, runs)
    count = np.diff(np.r_[begins, len(every.points)]).astype(np.float64)
    points = np.add.reduceat(every.points, begins, axis=0) / count[:, None].astype(every.points.dtype)
    if angles:
        points = unit_rows(points)
    distance = np.empty(len(every.points))
    which = np.repeat(np.arange(len(points)), count.astype(np.int64))
    for part in _slices(len(distance), max(1, BLOCK // points.shape[1])):
        frames, centers = every.points[part], points[which[part]]
        if angles:
            cosine = np.einsum("nd,nd->n", frames, centers, dtype=np.float64)
            distance[part] = np.arccos(np.clip(cosine - _rounding(points), -1, 1))
        else:
            apart = np.sqrt(((frames - centers).astype(np.float64) ** 2).sum(axis=1))
            distance[part] = apart + _rounding(points) * np.abs(frames).max(initial=0)
    radius = np.maximum.reduceat(distance, begins)
    return _Level(points, radius, count, first, np.maximum.reduceat(radius, first))


def _rounding(points: Array) -> float:
    """An upper bound on the rounding error of the product of two unit vectors of this precision and length."""
    return float(4 * (points.shape[1] + 8) * np.finfo(points.dtype).eps)


class Bound:
    """The bound (1) of `bounds.py` for one query and any sequences of an index, from lower bounds (2) on C.

    Distances are reduced before they become costs, which is valid because f is non-decreasing. The lowest cost of a
    column is that of its nearest z. For a row we use its nearest center and the largest radius of the sequence. Every
    step leaves a margin for rounding errors in the distances, in the match costs of the kernels, and in their sums.
    """

    def __init__(self, Z: Array, index: Index, match: str, p: Prices) -> None:
        self.index, self.match, self.p = index, match, p
        self.angles = match == "cosine"
        self.Z = (unit_rows(Z) if self.angles else Z).astype(np.result_type(Z, index.dtype))
        eps = max(index.epsilon, float(np.finfo(Z.dtype).eps))
        self.slack = 4 * (Z.shape[1] + 8) * eps
        negative = np.minimum(np.asarray(p.drop_z, np.float64), 0).sum() * (1 if np.ndim(p.drop_z) else len(Z))
        lost = np.minimum(np.asarray(p.drop_x, np.float64), 0).sum()
        self.negative = -negative - lost * (1 if np.ndim(p.drop_x) else index.lengths)
        self.sums = 4 * (len(Z) + index.lengths) * eps

    def __call__(self, level: int, chosen: Array) -> Array:
        """The bounds of the chosen sequences. level : 0 uses the centers, 1 all frames."""
        points = self.index.levels(self.angles)[level]
        found = np.empty(len(chosen))
        size = np.diff(np.r_[points.starts, len(points.points)])[chosen] * len(self.Z)
        for part in runs_of_size(size, BLOCK):
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
        """−cos of the angle, or the squared distance, computed by a matrix product."""
        near = (-self.Z if self.angles else -2 * self.Z) @ points.T
        if not self.angles:
            squares = (points**2).sum(axis=1)
            own = (self.Z**2).sum(axis=1)
            near += squares
            near += own[:, None]
            near -= self.slack * (squares.max() + own.max())
        return np.asarray(near)

    def _cost(self, near: Array, radius: Array) -> Array:
        """A lower bound on the cost of a pair with this nearness whose x lies within `radius` of the point."""
        near = near.astype(np.float64)
        if self.angles:
            cosine = np.minimum(self.slack - near, 1)
            closest = cosine
            if radius.any():  # cos(θ − r), without computing the angle θ
                aside = np.sqrt(np.maximum(1 - cosine**2, 0))
                closest = np.where(cosine < np.cos(radius), cosine * np.cos(radius) + aside * np.sin(radius), 1)
            return np.asarray(np.maximum(1 - self.slack - closest, 0))
        apart = np.maximum(np.sqrt(np.maximum(near, 0)) - radius, 0) * (1 - self.slack)
        return np.asarray(apart if self.match == "euclidean" else apart**2)


def bound_for(Z: Array, index: Index, match: Match, p: Prices) -> Bound | None:
    """The bound for a request; None if this match cost has no bound."""
    with np.errstate(over="ignore"):
        alike = Z.astype(index.dtype, copy=False)  # frames are squared in the precision of the index
    if (
        match.name == "cosine" or index.kernel_metric(alike, match) is not None
    ):  # otherwise squares overflow or underflow
        return Bound(Z, index, match.name, p)
    return None


def _slices(length: int, width: int) -> Iterator[slice]:
    return (slice(start, start + width) for start in range(0, length, width))


def runs_of_size(sizes: Array, most: int) -> Iterable[slice]:
    """Runs of consecutive entries whose sizes add up to about `most`."""
    group = np.cumsum(sizes) // most
    edges = np.r_[0, np.flatnonzero(np.diff(group)) + 1, len(sizes)]
    return (slice(int(a), int(b)) for a, b in pairwise(edges) if b > a)
