"""k-means under alignment: the centers are averages that leave out junk (`dropdtw.barycenter`)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dropdtw.aligner import Aligner
from dropdtw.drops import spelled
from dropdtw.files.progress import reporter
from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array
from dropdtw.problem.missing import present
from dropdtw.problem.spec import Spec
from dropdtw.search.averages import Averaging, check_averaged, check_tolerance, resampled_mean
from dropdtw.search.pairwise import thread_count
from dropdtw.sklearn.clusters import Clusterer, CostRows, check_count, spread_out
from dropdtw.sklearn.panel import Panel

FIRST_ROUNDS = 5
"""Number of rounds after which two candidate starts for a center are compared."""


@dataclass(eq=False, repr=False, kw_only=True)
class AlignmentKMeans(Clusterer):
    """Cluster series by the cost of aligning them with averages, which leave out the junk in the series.

    Minimizes the inertia: the sum, over all series, of the cost of aligning each with its center. Two steps alternate:
    assign each series to its cheapest center, then move each center to the mean of the elements it matches. Neither can
    raise the inertia. Centers are Z and series are X: `drop_x` is the cost of dropping an element of a series. Without
    drops this is k-means under DTW.

    Parameters
    ----------
    n_clusters : the number of clusters.
    init : "k-means++" starts from series that are far apart, "random" from random series. Or a list of `n_clusters`
        series of your own.
    n_init : the number of starts; the result with the lowest inertia is kept.
    max_iter : the maximum number of rounds.
    tol : stop when a round lowers the inertia by at most this fraction.
    drop_x : a number, on the scale of `match`; for "sqeuclidean" it is a squared distance. None drops nothing. Rules
        such as "percentile:30" raise an error: they give a different number for each center, so costs would not be
        comparable. `dropdtw.suggest_drop`, with the same `match`, finds a number.
    match : "sqeuclidean", or "cosine" for vectors whose direction alone matters.
    progress : as in `dropdtw.pairwise`.   random_state : as in scikit-learn.
    open_x : a number; the extra cost of each run of drops.   method : one of those of `dropdtw.barycenter`.
    one_to_many, many_to_one, contiguous, warp, window, missing, aligner, layout, n_jobs : as in
        `AlignmentKNeighborsClassifier`.

    Attributes
    ----------
    cluster_centers_ : list of (t, d).   labels_ : (n,) the cluster of each series.   inertia_ : the sum of costs.
    history_ : the inertia at the start and after each round; it never rises.   n_iter_ : the number of rounds.

    >>> import numpy as np
    >>> from dropdtw.sklearn import AlignmentKMeans
    >>> t = np.linspace(0, 1, 20)
    >>> spoiled = [np.insert(s, k, [junk] * 4) for k, junk in ((3, 6), (9, -5), (15, 9)) for s in (t, 1 - t)]
    >>> km = AlignmentKMeans(2, drop_x=0.05, random_state=0).fit(spoiled)
    >>> np.unique(km.labels_[::2]).size, np.unique(km.labels_[1::2]).size
    (1, 1)
    >>> [bool(abs(center).max() <= 1) for center in km.cluster_centers_]
    [True, True]
    """

    init: Literal["k-means++", "random"] | Panel = "k-means++"
    n_init: int = 3
    max_iter: int = 50
    tol: float = 1e-4

    def _check_told(self, spec: Spec) -> None:
        check_averaged(spec)
        if spec.drop_z is not None:
            raise OptionError("drop_z", spec.drop_z.said, "leave it out", ", but no element of a center is dropped")
        spec.refuse_rules("so it differs from center to center and costs cannot be compared")
        if spec.drop_x is not None and spelled(spec.drop_x) is None:
            raise ValueError(f"drop_x is {spec.drop_x.said!r}; clusters need one number for all steps of all series")
        check_count(self.max_iter, "max_iter", "the maximum number of rounds")
        check_count(self.n_init, "n_init", "the number of starts")
        check_tolerance(self.tol)
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise ValueError(
                f"init is {self.init!r}; give 'k-means++', 'random', or a list of {self.n_clusters} series"
            )

    def fit(self, X: Panel, y: object = None) -> Self:
        """Cluster the series of X.

        X : n series, in one of the shapes of `as_series`.   y : ignored.

        Returns the clusterer. Raises ValueError if a parameter or a series is invalid.
        """
        series = self._learn_clusters(X)
        left = [present(each, f"X[{k}]", self._missing)[0].astype(np.float64) for k, each in enumerate(series)]
        rows = CostRows(lambda s: self._between([left[s]], left)[0])
        given = None if isinstance(self.init, str) else self._given_centers(self.init)
        tries = 1 if given is not None else self.n_init
        report = reporter("AlignmentKMeans", self.progress)
        best: _Found | None = None
        for k, random in enumerate(self._random_states(tries)):
            if given is not None:
                centers = given
            else:
                seeds = spread_out(rows, len(left), self.n_clusters, random, uniform=self.init == "random")
                centers = self._first_centers([left[s] for s in seeds], left)
            tell = lambda done, k=k: report(k * self.max_iter + done, tries * self.max_iter)  # noqa: E731
            found = self._run(centers, left, tell)
            if best is None or found.history[-1] < best.history[-1]:
                best = found
        assert best is not None
        self.cluster_centers_, self.history_ = best.centers, np.array(best.history)
        self.n_iter_ = len(best.history) - 1
        self._label(left)
        if len(np.unique(self.labels_)) < self.n_clusters:
            warnings.warn(
                f"only {len(np.unique(self.labels_))} of {self.n_clusters} clusters have series, because equal series "
                "count as one; give fewer clusters",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _given_centers(self, init: Any) -> list[Array]:
        given = self._read(init, "init")
        centers = [present(each, f"init[{c}]", self._missing)[0].astype(np.float64) for c, each in enumerate(given)]
        if len(centers) != self.n_clusters or centers[0].shape[1] != self.n_channels_:
            raise ValueError(
                f"init has {len(centers)} series with {_features(centers[0].shape[1])}; give {self.n_clusters} series "
                f"(one per cluster) with {_features(self.n_channels_)} each"
            )
        return centers

    def _between(self, seeds: list[Array], series: list[Array]) -> Array:
        """Costs of series with seeds. Seeds may contain junk as well, so both sides can drop, at the same cost."""
        return self._with_seeds().pairwise(seeds, series, n_jobs=self.n_jobs, progress=False)

    def _with_seeds(self) -> Aligner:
        aligner = self._aligned_by()
        return aligner.replace(drop_z=aligner.drop_x, open_z=aligner.open_x)

    def _aligned_by(self) -> Aligner:
        found = super()._aligned_by()
        return found.replace(match="sqeuclidean") if found.match == "auto" else found

    def _first_centers(self, seeds: list[Array], series: list[Array]) -> list[Array]:
        """Initial centers: the mean of each seed's series, or the seed without junk, whichever gives lower inertia."""
        labels = self._between(seeds, series).argmin(axis=0)
        centers = []
        for c, seed in enumerate(seeds):
            members = [X for X, label in zip(series, labels, strict=True) if label == c]
            if not members:
                centers.append(seed)
                continue
            trimmed = self._fitting(self._trimmed(seed, members), series)
            starts = (trimmed, resampled_mean(members, np.ones(len(members)), len(trimmed)))
            settled = [self._averaging(Z, members).settle(Z, FIRST_ROUNDS, self.tol) for Z in starts]
            centers.append(min(settled, key=lambda found: found[2][-1])[0])
        return centers

    def _trimmed(self, seed: Array, members: list[Array]) -> Array:
        """The seed without the steps that most of its series have no match for."""
        aligner = self._with_seeds()
        if aligner.drop_x is None:
            return seed
        lost = np.mean([aligner.align(seed, X).dropped_z for X in members], axis=0) > 0.5
        trimmed = seed[~lost]
        if not len(trimmed) or not all(self._aligned_by().spec.fits(len(trimmed), len(X)) for X in members):
            return seed
        return (
            trimmed if np.isfinite(self._distances([trimmed], members)).all() else seed
        )  # a narrow window may forbid it

    def _fitting(self, Z: Array, series: list[Array]) -> Array:
        """Z, shortened to the shortest series if each of its steps needs a step of its own."""
        spec, lengths = self._aligned_by().spec, [len(X) for X in series]
        fits = spec.fits(len(Z), min(lengths)) and spec.fits(len(Z), max(lengths))
        return Z if fits else resampled_mean([Z], np.ones(1), min(lengths))

    def _averaging(self, Z: Array, members: list[Array]) -> Averaging:
        spec = self._aligned_by().spec
        return Averaging([spec] * len(members), Z, members, np.ones(len(members)), thread_count(self.n_jobs))

    def _run(self, centers: list[Array], series: list[Array], tell: Any) -> _Found:
        """Lloyd's rounds from some centers."""
        centers, labels, inertia = self._assigned(centers, series)
        history = [inertia]
        for done in range(1, self.max_iter + 1):
            moved = []
            for c, Z in enumerate(centers):
                members = [X for X, label in zip(series, labels, strict=True) if label == c]
                if members:
                    averaging = self._averaging(Z, members)
                    Z = averaging.mean(Z, averaging.aligned(Z)[1])
                moved.append(Z)
            moved, labels, inertia = self._assigned(moved, series)
            small = not history[-1] - inertia > self.tol * abs(history[-1])
            if inertia > history[-1]:  # only by rounding: keep the previous centers
                break
            centers = moved
            history.append(inertia)
            tell(done)
            if small:
                break
        tell(self.max_iter)
        return _Found(centers, history)

    def _assigned(self, centers: list[Array], series: list[Array]) -> tuple[list[Array], Array, float]:
        """The cheapest center of each series, and the inertia; an empty center moves to the most expensive series."""
        centers = list(centers)
        D = self._distances(centers, series)
        for c in range(len(centers)):
            if (D.argmin(axis=0) != c).all():
                centers[c] = self._fitting(series[int(D.min(axis=0).argmax())].copy(), series)
                D[c] = self._distances([centers[c]], series)[0]
        self._refuse_lost(D)
        return centers, D.argmin(axis=0), float(D.min(axis=0).sum())


def _features(count: int) -> str:
    return f"{count} feature{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class _Found:
    """Centers, and the inertia at the start and after each round."""

    centers: list[Array]
    history: list[float]
