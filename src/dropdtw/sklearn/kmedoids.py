"""k-medoids under alignment: the centers are some of the series, found by swaps (PAM, Kaufman & Rousseeuw 1987)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dropdtw.problem.inputs import Array
from dropdtw.problem.spec import Spec
from dropdtw.sklearn.clusters import Clusterer, check_count, spread_out
from dropdtw.sklearn.estimator import AligningBothSides
from dropdtw.sklearn.panel import Panel


@dataclass(eq=False, repr=False, kw_only=True)
class AlignmentKMedoids(AligningBothSides, Clusterer):
    """Cluster series around medoids, which are some of the series, by the cost of aligning each with its medoid.

    Lowers the inertia, the sum of these costs, until no swap of a medoid for another series lowers it further. Medoids
    are Z and series are X: `drop_x` is the cost of dropping an element of a series, `drop_z` that of dropping an
    element of its medoid. Nothing is averaged, so any match cost, method and rule works. All n² pairs are aligned once,
    and their costs are cached.

    Parameters
    ----------
    n_clusters : the number of clusters.
    n_init : the number of starts, from series that are far apart (k-means++); the result with the lowest inertia is
        kept.
    max_iter : the maximum number of swaps.
    progress : as in `dropdtw.pairwise`.   random_state : as in scikit-learn.
    drop_x, drop_z, match, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, threshold,
        missing, aligner, layout, n_jobs : as in `AlignmentKNeighborsClassifier`.

    Attributes
    ----------
    medoid_indices_ : (k,) which series are medoids.   cluster_centers_ : the medoids, list of (t, d).
    labels_ : (n,) the cluster of each series.   inertia_ : the sum of costs.
    history_ : the inertia at the start and after each swap; it falls.   n_iter_ : the number of swaps made.

    >>> import numpy as np
    >>> from dropdtw.sklearn import AlignmentKMedoids
    >>> t = np.linspace(0, 1, 20)
    >>> spoiled = [np.insert(s, k, [junk] * 4) for k, junk in ((3, 6), (9, -5), (15, 9)) for s in (t, 1 - t)]
    >>> km = AlignmentKMedoids(2, drop_x=0.2, drop_z=0.2, random_state=0).fit(spoiled)
    >>> np.unique(km.labels_[::2]).size, np.unique(km.labels_[1::2]).size
    (1, 1)
    """

    n_init: int = 10
    max_iter: int = 300

    def _check_told(self, spec: Spec) -> None:
        check_count(self.n_init, "n_init", "the number of starts")
        check_count(self.max_iter, "max_iter", "the maximum number of swaps")

    def fit(self, X: Panel, y: object = None) -> Self:
        """Cluster the series of X.

        X : n series, in one of the shapes of `as_series`.   y : ignored.

        Returns the clusterer. Raises ValueError if a parameter or a series is invalid.
        """
        series = self._learn_clusters(X)
        D = self._aligned_by().pairwise(series, n_jobs=self.n_jobs, progress=self.progress)
        best: tuple[list[int], list[float]] | None = None
        for random in self._random_states(self.n_init):
            found = exchanged(D, spread_out(D, len(series), self.n_clusters, random), self.max_iter)
            if best is None or found[1][-1] < best[1][-1]:
                best = found
        assert best is not None
        self.medoid_indices_, self.history_ = np.array(best[0]), np.array(best[1])
        self.n_iter_ = len(best[1]) - 1
        self.cluster_centers_ = [series[s] for s in best[0]]
        self._label(series)
        return self


def exchanged(D: Array, medoids: list[int], most: int) -> tuple[list[int], list[float]]:
    """Swap a medoid for another series, the best swap first, as long as that lowers the inertia.

    D : (n, n) the cost of aligning series b, as X, with series a, as Z.   Returns the medoids, and the inertia at the
    start and after each of at most `most` swaps; +∞ counts as more than any finite cost.

    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 9.0, 10.0], [0.0, 1.0, 9.0, 10.0]))
    >>> exchanged(D, [0, 1], 10)
    ([2, 1], [17.0, 2.0])
    """
    medoids, n = list(medoids), len(D)
    finite = np.abs(D[np.isfinite(D)])
    D = np.where(np.isfinite(D), D, 2 * n * max(1.0, finite.max(initial=0)))
    history = [float(D[medoids].min(axis=0).sum())]
    for _ in range(most):
        at = D[medoids]
        costs = np.empty((len(medoids), n))
        for m in range(len(medoids)):
            others = np.delete(at, m, axis=0).min(axis=0, initial=np.inf)
            costs[m] = np.minimum(D, others).sum(axis=1)
        m, s = divmod(int(costs.argmin()), n)
        if not costs[m, s] < history[-1] - 1e-12 * abs(history[-1]):
            break
        medoids[m] = s
        history.append(float(D[medoids].min(axis=0).sum()))
    return medoids, history
