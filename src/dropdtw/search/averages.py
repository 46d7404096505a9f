"""The average of many series, each of which may contain junk: DBA (Petitjean et al. 2011) on alignments that drop.

Two steps alternate: align every series X with the average Z, dropping what does not belong; then replace each z_i by
the mean of all x that match it. Neither step can raise Σ_s w_s · cost(Z, X_s): the first finds the best alignments for
Z, the second the best Z for these alignments. Elements of the average are never dropped, because a dropped element
would never be updated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Real
from typing import Final, Literal, Unpack

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw import executors
from dropdtw.costs import unit_rows
from dropdtw.drops import DropCost
from dropdtw.executors.protocol import Trace
from dropdtw.files.progress import Progress, Report, reporter
from dropdtw.problem.charges import Opening
from dropdtw.problem.errors import refuse_keywords
from dropdtw.problem.inputs import Array, Columns, as_floats
from dropdtw.problem.missing import Kept, Places, present, reads_places, restricted
from dropdtw.problem.options import MoveOptions, takes
from dropdtw.problem.problem import Problem, between
from dropdtw.problem.spec import Spec
from dropdtw.problem.symbols import symbolic
from dropdtw.results.alignment import Alignment
from dropdtw.search.pairwise import all_pairs, as_sequences, thread_count, useful_threads
from dropdtw.tables.table import Recurrence

Init = Literal["mean", "medoid"] | npt.ArrayLike

CENTERS: Final[dict[str, Callable[[Array], Array]]] = {"sqeuclidean": lambda X: X, "cosine": unit_rows}
"""Match costs under which the mean is the cheapest average, and the vectors to take the mean of."""

AVERAGED: Final = (
    *("drop_dtw", "drop_dtw_paper", "dtw", "otam", "subsequence", "free_begin", "free_end", "needleman_wunsch"),
    *("symmetric1", "symmetric2", "asymmetric", "symmetricP05", "symmetricP1", "symmetricP2", "asymmetricP1"),
)
"""Methods that use the match costs unchanged, and match every element of the average."""


@dataclass(frozen=True, eq=False)
class Barycenter:
    """The result of `dropdtw.barycenter`.

    average : (K, d), or (K,) if all series are one-dimensional.
    cost : Σ_s w_s · cost of aligning series s with the average.
    costs : (rounds + 1,), that sum at the start and after each round; it never rises.
    alignments : the alignment of each series (X) with the average (Z); `labels` is −1 where an element was dropped.
    converged : whether the last round lowered the cost by at most the fraction `tol`. If not, the search stopped at
        `max_iter`.
    match : the name of the match cost that was used.

    >>> import dropdtw
    >>> dropdtw.barycenter([[0.0, 2.0], [2.0, 4.0]]).average
    array([1., 3.])
    """

    average: Array
    cost: float
    costs: Array
    alignments: list[Alignment]
    converged: bool
    match: str

    def __repr__(self) -> str:
        how = "converged" if self.converged else "not converged"
        dropped = np.mean([a.dropped_x.mean() for a in self.alignments])
        return (
            f"<Barycenter of {len(self.alignments)} series, shape {self.average.shape}: cost {self.cost:.6g}, "
            f"{dropped:.1%} of a series dropped, {how} in {len(self.costs) - 1} rounds>"
        )


@takes(MoveOptions)
def barycenter(
    series: Sequence[npt.ArrayLike],
    weights: npt.ArrayLike | None = None,
    drop_x: DropCost = None,
    *,
    init: Init = "mean",
    length: int | None = None,
    match: Literal["auto", "sqeuclidean", "cosine"] = "auto",
    method: str | Recurrence = "drop_dtw",
    open_x: Opening = 0.0,
    window: float | None = None,
    max_iter: int = 50,
    tol: float = 1e-6,
    n_jobs: int | None = -1,
    progress: Progress = None,
    executor: str | None = None,
    missing: str | None = None,
    **options: Unpack[MoveOptions],
) -> Barycenter:
    """Average many series and leave out their junk: find the series that is cheapest to align with all of them.

    Minimizes Σ_s w_s · distance(Z, X_s, drop_x, ...) over Z (K, d), up to a local minimum. Without drops this is DTW
    barycenter averaging (DBA). The result is deterministic.

    Parameters
    ----------
    series : the X_s, each (t, d) or (t,); their lengths may differ.
    weights : (n,) numbers ≥ 0, the weight of each series. None: equal weights.
    drop_x : the cost of dropping an element of a series, on the scale of `match`; for "sqeuclidean" it is a squared
        distance. A rule such as "percentile:20" is evaluated once, on the match costs of each series with the initial
        average. None drops nothing.
    init : the initial average. "mean" is the mean of all series, stretched to the same length. "medoid" is the series
        that is cheapest to align with all others. Or pass a series (K, d) of your own.
    length : K, for "mean" only. None uses the median of the lengths.
    match : "sqeuclidean", which "auto" means here, or "cosine" for vectors whose direction alone matters.
    missing : as in `dropdtw.align`.
    method : "drop_dtw", "drop_dtw_paper", "dtw", "otam", "subsequence", "free_begin", "free_end", "needleman_wunsch", a
        step pattern such as "symmetric2", or your own `dropdtw.Recurrence`. With other methods, the mean of the matched
        elements is not the best average.
    one_to_many, many_to_one, contiguous, open_x, warp, window, executor : as in `dropdtw.solve`.
    max_iter : the maximum number of rounds.   tol : stop when a round lowers the cost by at most this fraction.
    n_jobs, progress : as in `dropdtw.pairwise`.

    Returns
    -------
    A `dropdtw.Barycenter`: the average, its cost, and the alignment of each series with it.

    Raises
    ------
    ValueError : if an argument or a series is invalid, or if a series cannot be aligned with the average.

    >>> import numpy as np, dropdtw
    >>> wave = np.sin(np.linspace(0, 6, 30))
    >>> spoiled = [np.insert(wave, k, [4.0, 5.0, 4.0]) for k in (5, 12, 20)]      # three elements of junk in each
    >>> b = dropdtw.barycenter(spoiled, drop_x=0.1, length=30)
    >>> bool(abs(b.average).max() < 1.1), bool(abs(dropdtw.barycenter(spoiled).average).max() > 2)
    (True, True)
    >>> [int(a.dropped_x.sum()) for a in b.alignments]
    [3, 3, 3]
    """
    refuse_keywords(barycenter, options)
    spec = Spec.of(
        drop_x,
        match="sqeuclidean" if match == "auto" else match,
        method=method,
        open_x=open_x,
        window=window,
        missing=missing,
        executor=executor,
        **options,
    )
    check_averaged(spec)
    if isinstance(max_iter, bool) or not isinstance(max_iter, (int, np.integer)) or max_iter < 0:
        raise ValueError(f"max_iter is {max_iter!r}; give the maximum number of rounds, 0 or more")
    check_tolerance(tol)
    missing_in: list[Places | None] = []

    def checked(values: npt.ArrayLike, name: str) -> Array:
        X, there = present(values, name, missing)
        missing_in.append(there)
        return X.astype(np.float64)

    if isinstance(series, Sequence) and not isinstance(series, str) and any(map(symbolic, series)):
        raise ValueError(
            "series holds symbols, which have no mean; use the series that is cheapest to align with all others, "
            "series[pairwise(series, ...).sum(axis=1).argmin()], or dropdtw.sklearn.AlignmentKMedoids"
        )
    columns = Columns()
    Xs = as_sequences(series, "series", checked, columns)
    for s, X in enumerate(Xs):
        if X.shape[1] != Xs[0].shape[1]:
            raise ValueError(
                f"series[0] has {Xs[0].shape[1]} features and series[{s}] has {X.shape[1]}; "
                "all need the same number, as (length, d)"
            )
    w = _weights(weights, len(Xs))
    report = reporter("dropdtw.barycenter", progress)
    threads = thread_count(n_jobs)
    Z = _start(spec, series, Xs, w, columns.sort(init, "init"), length, n_jobs)
    kept = [Kept.of(Z, None, X, there) for X, there in zip(Xs, missing_in, strict=True)]
    averaging = Averaging([spec if k is None else restricted(spec, k) for k in kept], Z, Xs, w, threads)
    average, traces, history, converged = averaging.settle(Z, int(max_iter), tol, report)
    alignments = [
        Alignment.from_trace(replace(problem, kept=k), trace)
        for problem, k, trace in zip(averaging.problems(average), kept, traces, strict=True)
    ]
    flat = average[:, 0] if all(np.ndim(X) == 1 for X in series) else average
    return Barycenter(flat, history[-1], np.array(history), alignments, converged, averaging.match.name)


class Averaging:
    """The series to average, and the steps of the algorithm. Drop costs are computed once, from the first average.

    specs : the request for the alignment with each series.   Z : (K, d) the first average.
    series : (t, d) each, in double precision.   weights : (n,) the weight of each.
    """

    def __init__(self, specs: list[Spec], Z: Array, series: list[Array], weights: Array, threads: int = 1) -> None:
        self.series, self.weights = series, weights
        self.match = match_costs.resolve(specs[0].match, Z.shape[1])
        self.match.check_features(Z.shape[1])
        self.vectors = [CENTERS[self.match.name](X) for X in series]
        self._priced = [Problem.of_checked(spec, Z, X, self.match) for spec, X in zip(specs, series, strict=True)]
        cells = len(Z) * sum(map(len, series)) / len(series)
        self.threads = useful_threads(threads, cells) if specs[0].executor != "reference" else 1

    def problems(self, Z: Array) -> list[Problem]:
        """The problem of each series with an average of the same length as the first."""
        found = []
        for problem, X in zip(self._priced, self.series, strict=True):
            costs = problem.costs._replace(match=between(Z, X, self.match))
            found.append(replace(problem, costs=costs, given=costs))
        return found

    def aligned(self, Z: Array, report: Callable[[], None] = lambda: None) -> tuple[float, list[Trace]]:
        """The cost of an average, and its best alignment with each series."""

        def trace(problem: Problem) -> Trace:
            found = executors.trace(problem)
            if not np.isfinite(found.value):
                raise executors.no_alignment(problem)
            report()
            return found

        problems = self.problems(Z)
        if self.threads == 1:
            traces = [trace(problem) for problem in problems]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                traces = list(pool.map(trace, problems))
        return float(sum(w * t.value for w, t in zip(self.weights, traces, strict=True))), traces

    def mean(self, Z: Array, traces: list[Trace]) -> Array:
        """The average that is cheapest for given alignments: each z the mean of all x that match it."""
        total, count = np.zeros_like(Z), np.zeros(len(Z))
        for X, w, found in zip(self.vectors, self.weights, traces, strict=True):
            i, j = found.pairs.T
            each = w * (np.ones(len(i)) if found.weights is None else found.weights)
            np.add.at(total, i, each[:, None] * X[j])
            count += np.bincount(i, each, len(Z))
        have = (count > 0) & (total.any(axis=1) if self.match.name == "cosine" else True)
        return np.asarray(np.where(have[:, None], total / np.where(have, count, 1)[:, None], Z))

    def settle(
        self, Z: Array, rounds: int, tol: float, report: Report = lambda done, total: None
    ) -> tuple[Array, list[Trace], list[float], bool]:
        """The average after the last round, its alignments, the cost at each round, and whether it converged."""
        done, total = 0, (rounds + 1) * len(self.series)

        def one() -> None:
            nonlocal done
            done += 1
            report(min(done, total), total)

        cost, traces = self.aligned(Z, one)
        history, converged = [cost], False
        for _ in range(rounds):
            closer = self.mean(Z, traces)
            cost, next_traces = self.aligned(closer, one)
            converged = not history[-1] - cost > tol * abs(history[-1])
            if cost > history[-1]:  # only by rounding: keep the previous average
                break
            Z, traces = closer, next_traces
            history.append(cost)
            if converged:
                break
        if done < total:
            report(total, total)
        return Z, traces, history, converged


def resampled_mean(series: list[Array], weights: Array, length: int) -> Array:
    """(length, d): the weighted mean of series (t, d) after stretching all of them to one length.

    >>> resampled_mean([np.array([[0.0], [2.0]]), np.array([[4.0]])], np.array([1.0, 1.0]), 3).ravel()
    array([2. , 2.5, 3. ])
    """
    at = np.linspace(0, 1, length)
    stretched = [np.stack([np.interp(at, np.linspace(0, 1, len(X)), x) for x in X.T], axis=1) for X in series]
    return np.asarray(np.average(stretched, axis=0, weights=weights))


def usual_length(series: list[Array]) -> int:
    """The lower median of the lengths."""
    return int(np.percentile([len(X) for X in series], 50, method="lower"))


def check_averaged(spec: Spec) -> None:
    """Raise on requests for which the mean of the matched elements is not the best average."""
    if not isinstance(spec.match, str) or spec.match not in CENTERS:
        raise ValueError(
            f"match is {spec.match!r}; averages are known for 'sqeuclidean' (the mean) and 'cosine' (the mean of "
            "directions)"
        )
    if spec.method.name not in AVERAGED and (spec.method.built_in or spec.method.edits):
        raise ValueError(
            f"method is {spec.method.name!r}, for which the mean of the matches is not the best average; choose one of "
            f"{', '.join(map(repr, AVERAGED))}"
        )


def check_tolerance(tol: float) -> None:
    """Raise on an invalid tolerance."""
    if isinstance(tol, bool) or not isinstance(tol, Real) or not 0 <= tol < np.inf:
        raise ValueError(f"tol is {tol!r}; give a finite number ≥ 0, the fraction of the cost at which to stop")


def _start(
    spec: Spec,
    series: Sequence[npt.ArrayLike],
    Xs: list[Array],
    w: Array,
    init: Init,
    length: int | None,
    n_jobs: int | None,
) -> Array:
    """The first average; Xs are the series without their missing elements."""
    if length is not None:
        if not isinstance(init, str) or init != "mean":
            raise ValueError("length applies only to init='mean'; any other init has its own length, so leave it out")
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
            raise ValueError(f"length is {length!r}; give the length of the average, 1 or more")
    if isinstance(init, str):
        if init == "mean":
            return resampled_mean(Xs, w, usual_length(Xs) if length is None else int(length))
        if init == "medoid":
            # Drop costs of elements go by their places, so these pairs need the missing elements too.
            D = all_pairs(spec, series if reads_places(spec) else Xs, None, n_jobs, False)
            with np.errstate(invalid="ignore"):  # 0 · ∞, for a series of weight 0
                total = np.where(w > 0, D * w, 0).sum(axis=1)
            return Xs[int(total.argmin())].copy()
        raise ValueError(f"init is {init!r}; give 'mean', 'medoid', or a series (K, d) to start from")
    Z = present(init, "init", spec.missing)[0].astype(np.float64)
    if Z.shape[1] != Xs[0].shape[1]:
        raise ValueError(
            f"init has {Z.shape[1]} features and the series have {Xs[0].shape[1]}; both need the same number"
        )
    return Z


def _weights(weights: npt.ArrayLike | None, n: int) -> Array:
    if weights is None:
        return np.ones(n)
    w = as_floats(weights, "weights").astype(np.float64)
    if w.shape != (n,) or not (np.isfinite(w) & (w >= 0)).all() or not w.any():
        raise ValueError(f"weights is {weights!r}; give {n} finite numbers ≥ 0, one per series, not all 0")
    return w
