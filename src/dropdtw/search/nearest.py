"""Exact nearest-neighbor search without aligning every sequence.

Lower bounds (`bounds.py`) prune most candidates: first bounds from the centers of short runs of frames, which an
`Index` computes once, then bounds from all frames. The remaining candidates are aligned, the most promising first,
until the k-th best cost is below every remaining bound. An alignment is abandoned as soon as it is certain to cost more
than the k-th best.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import numpy.typing as npt

from dropdtw.costs import MatchCost, cosine_of, unit_rows
from dropdtw.drops import DropCost
from dropdtw.executors.protocol import Values
from dropdtw.files.progress import Progress, reporter
from dropdtw.problem.errors import refuse_keywords
from dropdtw.problem.inputs import Array, as_drop_costs, as_sequence
from dropdtw.problem.match import MatchCosts, Matrix
from dropdtw.problem.options import MethodOptions, takes
from dropdtw.problem.spec import Spec
from dropdtw.search import bounds
from dropdtw.search.index import BLOCK, Index, bound_for
from dropdtw.search.pairwise import Comparison, all_pairs, thread_count, useful_threads

TRIAL = 256
"""Number of sequences for a trial. If bounds from frames prune next to nothing there, no more of them are computed."""

LANES = 256
"""Number of sequences per call of the kernels that align many at once."""

NARROW = 8
"""Maximum number of features for which aligning many at once is as fast as computing bounds."""

WORTH = 0.3
"""Minimum share of cells that early abandoning must save to stay enabled; 1 disables it."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The result of `dropdtw.nearest`: the nearest sequences, their costs, and how much work the search saved.

    indices : (k,) positions in the corpus, nearest first; ties are sorted by index.
    costs : (k,) the costs of aligning them with the query.
    aligned : the number of sequences that were aligned.
    size : the number of sequences in the corpus.
    by_centers, by_frames : the number of sequences pruned by coarse bounds, from the means of short runs of frames, and
        by fine bounds, from all frames.
    abandoned : the number of alignments that were abandoned because they were certain to cost more than the k-th best.
    spared : the fraction of the work on aligned sequences, in table cells, that early abandoning saved, 0 to 1.
    match : the name of the match cost that was used.

    >>> import dropdtw
    >>> found = dropdtw.nearest([0.0, 4.0], [[0.0, 1.0], [0.0, 5.0], [4.0, 5.0]], k=2, drop_x=2.0, drop_z=2.0)
    >>> found.indices, found.size
    (array([1, 0]), 3)
    """

    indices: Array
    costs: Array
    aligned: int
    size: int
    by_centers: int
    by_frames: int
    abandoned: int = 0
    spared: float = 0.0
    match: str = ""

    @property
    def pruned(self) -> float:
        """The fraction of the corpus that was never aligned, 0 to 1."""
        return 1 - self.aligned / self.size


@takes(MethodOptions)
def nearest(
    query: npt.ArrayLike,
    corpus: Index | Sequence[npt.ArrayLike],
    k: int = 10,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    *,
    match: MatchCost = "auto",
    normalize: str | None = None,
    n_jobs: int | None = -1,
    progress: Progress = None,
    executor: str | None = None,
    **options: Unpack[MethodOptions],
) -> Nearest:
    """Find the k sequences of a corpus that are cheapest to align with a query.

    The result is exact: it equals `pairwise([query], corpus, ...)`, sorted by cost, with ties sorted by index. It is
    faster because lower bounds prune sequences, which are then never aligned. Short vectors need no bounds: with
    Euclidean costs of up to 8 features, aligning is as fast, and alignments are abandoned early instead.

    Parameters
    ----------
    query : Z, (K, d) or (K,).
    corpus : the X, a list of sequences (N, d) or (N,); for many queries, a `dropdtw.Index` of them.
    k : how many sequences to find; all of them if the corpus has fewer.
    drop_x, drop_z : numbers, or one number per element. Rules such as "percentile:30" raise an error: evaluating
        them takes all match costs of a sequence, so a bound would save nothing. Use `dropdtw.pairwise` for them.
    match : as in `dropdtw.align`. Lower bounds exist for "cosine", "euclidean" and "sqeuclidean". With other match
        costs, and with the methods "ddtw", "erp" and "wdtw", every sequence is aligned.
    normalize : divides costs, as in `dropdtw.cost`, so that long sequences compete with short ones. Then every
        sequence is aligned.
    open_x, open_z, threshold : as in `dropdtw.solve`, but numbers only.
    method, one_to_many, many_to_one, contiguous, warp, window, executor : as in `dropdtw.solve`.
    n_jobs, progress : as in `dropdtw.pairwise`.

    Returns
    -------
    A `dropdtw.Nearest`: the indices (k,) and costs (k,) of the nearest sequences, nearest first.

    Raises
    ------
    ValueError : if an argument or a sequence is invalid, or if the lengths of a pair rule out every alignment.

    >>> import numpy as np, dropdtw
    >>> rng = np.random.default_rng(0)
    >>> corpus = [rng.normal(size=(20, 8)) for _ in range(200)]
    >>> found = dropdtw.nearest(corpus[7] + 0.1, corpus, k=1, drop_x=0.3, drop_z=0.3, match="cosine")
    >>> found.indices, found.pruned > 0.5
    (array([7]), True)
    """
    refuse_keywords(nearest, options)
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k is {k!r}; give the number of sequences to find, 1 or more")
    spec = Spec.of(drop_x, drop_z, match=match, normalize=normalize, executor=executor, **options)
    index = corpus if isinstance(corpus, Index) else Index.borrowing(corpus)
    return search(spec, query, index, int(k), n_jobs, progress)


def search(
    spec: Spec, query: npt.ArrayLike, index: Index, k: int, n_jobs: int | None = -1, progress: Progress = None
) -> Nearest:
    """See `nearest`."""
    corpus = index.sequences if index.symbols is None else index.symbols
    spec, coded = spec.encoded([query], corpus, lambda side, k: f"corpus[{k}]" if side else "query")
    if coded is not None:
        (query,) = coded.left.codes
        index = index if index.symbols is not None else Index.borrowing(coded.right.codes)
    Z = as_sequence(replace(index.columns).sort(query, "query"), "query")
    if Z.shape[1] != index.features:
        raise ValueError(
            f"the query has {Z.shape[1]} features and the corpus {index.features}; both need the same number"
        )
    p = bounds.prices(spec)
    no_costs = Matrix(np.empty((0, 0)))
    for N in np.unique(index.lengths):
        spec.check_fit(len(Z), int(N))
        for rule, side, length, element in ((spec.drop_x, "x", int(N), "x_j"), (spec.drop_z, "z", len(Z), "z_i")):
            if rule is not None:
                as_drop_costs(rule.price(no_costs, side), f"drop_{side}", length, element)
    if spec.normalize is not None:
        values = all_pairs(spec, [Z], index.sequences, n_jobs, progress)[0]
        best = np.argsort(values, kind="stable")[:k]
        name = spec.resolved(index.features).name
        return Nearest(best, values[best], len(index), len(index), 0, 0, match=name)
    found = _Search(Z, index, min(k, len(index)), Comparison(spec, index.features), thread_count(n_jobs), progress)
    bound = bound_for(Z, index, found.comparison.match, p) if spec.method.bounded and found.bounds_pay else None
    if bound is None:
        found.through(np.arange(len(index)), np.full(len(index), -np.inf))
        return found.result(0)
    coarse = bound(0, np.arange(len(index)))
    order = np.argsort(coarse, kind="stable")
    by_centers = start = 0
    width = max(TRIAL, 8 * found.k)
    while start < len(order):  # the first part holds the nearest, so the coarse bound prunes most of the later parts
        part = order[start : start + width]
        start, width = start + width, 4 * width
        left = part[coarse[part] <= found.worst]
        by_centers += len(part) - len(left)
        fine = np.maximum(bound(1, left), coarse[left]) if found.pays else coarse[left]
        by_fine = np.argsort(fine, kind="stable")
        found.through(left[by_fine], fine[by_fine])
    return found.result(by_centers)


class _Search:
    """The state of a search: the k best costs so far, and statistics."""

    def __init__(
        self, Z: Array, index: Index, k: int, comparison: Comparison, threads: int, progress: Progress = None
    ) -> None:
        self.Z, self.index, self.k, self.comparison, self.threads = Z, index, k, comparison, threads
        self.report = reporter("dropdtw.nearest", progress)
        self.pays = True
        self.gives_up = WORTH < 1
        self.metric = self._lanes_metric()
        if self.metric is None:
            self.threads = useful_threads(threads, len(Z) * float(index.lengths.mean()))
        spec = comparison.spec
        plain = (
            self.metric not in (None, "cosine")
            and comparison.has_lanes
            and spec.window is None
            and not spec.method.edits
        )
        self.bounds_pay = not plain or Z.shape[1] > NARROW
        self.chunk = max(k, (16 if self.bounds_pay else LANES) * self.threads)
        self.units = unit_rows(Z) if comparison.match.name == "cosine" and Z.shape[1] > 1 else None
        self.indices = np.empty(0, np.int64)
        self.costs = np.empty(0)
        self.aligned = self.abandoned = self.columns = self.tried = 0
        self.spared = self.promising = 0.0

    @property
    def worst(self) -> float:
        """The k-th best cost so far. Candidates that are certain to cost more can be pruned."""
        return float(self.costs[-1]) if len(self.costs) == self.k else np.inf

    def align(self, chosen: Array) -> None:
        """Align the chosen sequences, and keep the k best overall."""
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
        columns = [int(self.index.lengths[part].sum()) for part in parts]
        spared = sum(part.spared * n for part, n in zip(found, columns, strict=True))
        self.columns, self.spared = self.columns + sum(columns), self.spared + spared
        if limit < np.inf:
            self.tried += len(chosen)
            self.promising += len(chosen) * (spared / sum(columns) - WORTH)
            if self.metric is None and self.tried >= TRIAL:  # in lanes, early abandoning has almost no overhead
                self.gives_up = self.promising > 0
        self.report(self.aligned, len(self.index))

    def _costs(self, chosen: Array, limit: float) -> Values:
        Xs = [self.index.sequences[b] for b in chosen]
        if self.metric:
            # Use the precision that `pairwise` would use for the whole corpus.
            same = [X.astype(self.index.dtype, copy=False) for X in Xs]
            found = self.comparison.in_lanes([self.Z], same, self.metric, limit=limit)
            if found is not None:
                return found._replace(values=found.values[0])
        return self.comparison.one_by_one(self.Z, Xs, limit, lambda b: self._match(int(chosen[b])))

    def _lanes_metric(self) -> str | None:
        """The match cost's name if kernels can align many sequences at once; otherwise None."""
        match = self.comparison.match
        metric = "cosine" if match.name == "cosine" else self.index.kernel_metric(self.Z, match)
        tried = self.comparison.in_lanes([self.Z], self.index.sequences[:1], metric)
        return None if tried is None else metric

    def _match(self, b: int) -> MatchCosts | None:
        """The match costs of the query and sequence b, if cached vector lengths allow a shortcut; otherwise None."""
        X = self.index.sequences[b]
        small = len(self.Z) * len(X) <= BLOCK
        if self.units is None or X.dtype != self.Z.dtype or not small or (scale := self.index.scale(b)) is None:
            return None
        return Matrix(cosine_of(self.units, X, scale))

    def through(self, candidates: Array, bound: Array) -> None:
        """Align candidates, sorted by their bounds, until none of the rest can be among the k best."""
        start, width = 0, self.chunk
        while start < len(candidates) and bound[start] <= self.worst:  # ≤: on a tie, the smaller index wins
            part = slice(start, start + width)
            self.align(candidates[part][bound[part] <= self.worst])
            start += width
            width = max(width, min(2 * width, 128 * self.threads))
        self.pays = self.pays and bool(np.count_nonzero(bound <= self.worst) <= 0.8 * len(candidates))

    def result(self, by_centers: int) -> Nearest:
        size = len(self.index)
        if self.aligned < size:
            self.report(size, size)
        by_frames = size - self.aligned - by_centers
        spared = self.spared / self.columns
        work = (self.aligned, size, by_centers, by_frames, self.abandoned, spared)
        return Nearest(self.indices, self.costs, *work, match=self.comparison.match.name)
