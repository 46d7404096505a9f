"""Code shared by the clusterers: choosing seeds that are far apart, and assigning series to the cheapest center."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from numbers import Integral

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from dropdtw.problem.spec import Spec
from dropdtw.sklearn.estimator import AligningEstimator, CostFeatures
from dropdtw.sklearn.panel import Panel


@dataclass(eq=False, repr=False, kw_only=True)
class Clusterer(CostFeatures, ClusterMixin, AligningEstimator):  # type: ignore[misc]
    """An estimator that assigns each series (X) to the center (Z) that is cheapest to align with it."""

    n_clusters: int = field(default=8, kw_only=False)
    progress: Progress = None
    random_state: int | np.random.RandomState | None = None

    _own = "cluster_centers_"

    def _check_told(self, spec: Spec) -> None:
        """Raise on parameters that this clusterer does not support."""

    def _learn_clusters(self, X: Panel) -> list[Array]:
        """The series to be clustered."""
        check_count(self.n_clusters, "n_clusters", "the number of clusters")
        self._check_told(self._aligned_by().spec)
        series = self._learn_series(X)
        if len(series) < self.n_clusters:
            raise ValueError(
                f"n_samples={len(series)} series cannot make n_clusters={self.n_clusters} clusters; give fewer clusters"
            )
        self._n_features_out = self.n_clusters
        return series

    def _random_states(self, n: int) -> list[np.random.RandomState]:
        """A random generator for each of n starts."""
        random = check_random_state(self.random_state)
        return [np.random.RandomState(seed) for seed in random.randint(np.iinfo(np.int32).max, size=n)]

    def _label(self, series: list[Array]) -> None:
        """Assign each series of `fit` to a center, as `predict` would."""
        D = self._distances(self.cluster_centers_, series)
        self._refuse_lost(D)
        self.labels_, self.inertia_ = D.argmin(axis=0), float(D.min(axis=0).sum())

    def predict(self, X: Panel) -> Array:
        """Assign each series to its cheapest center, the first in case of ties.

        X : n series, in one of the shapes of `as_series`.

        Returns (n,) cluster numbers. Raises ValueError if a series cannot be aligned with any center.
        """
        D = self.transform(X)
        self._refuse_lost(D.T)
        return np.asarray(D.argmin(axis=1))

    def score(self, X: Panel, y: object = None) -> float:
        """Compute minus the sum of the costs of aligning each series with its cheapest center.

        X : n series.   y : ignored.

        Returns a float; higher is better. Raises ValueError if a series is invalid.
        """
        return -float(self.transform(X).min(axis=1).sum())

    @staticmethod
    def _refuse_lost(D: Array) -> None:
        lost = np.flatnonzero(np.isinf(D.min(axis=0)))
        if len(lost):
            raise ValueError(
                f"series {lost[0]} cannot be aligned with any center: every alignment is forbidden; widen the window, "
                "or give drop costs"
            )


class CostRows(dict[int, Array]):
    """Costs of all series with one of them as Z, cached."""

    def __init__(self, row: Callable[[int], Array]) -> None:
        super().__init__()
        self._row = row

    def __missing__(self, s: int) -> Array:
        self[s] = self._row(s)
        return self[s]


def spread_out(
    rows: CostRows | Array, n: int, k: int, random: np.random.RandomState, *, uniform: bool = False
) -> list[int]:
    """Choose k of n series that are far apart (k-means++).

    The probability of a draw grows with its cost to the seeds so far. Of a few draws, the one that lowers the sum of
    costs most becomes the next seed.

    rows : rows[s] (n,) is the cost of aligning each series with series s.   uniform : draw any k.
    """
    if uniform:
        return [int(s) for s in random.choice(n, k, replace=False)]
    chosen = [int(random.randint(n))]
    nearest = np.maximum(rows[chosen[0]], 0)
    while len(chosen) < k:
        chance = np.where(np.isfinite(nearest), nearest, 0)
        if np.isinf(nearest).any():  # a series that no seed can be aligned with must become a seed
            chance = np.isinf(nearest).astype(float)
        chance[chosen] = 0
        if not chance.any():  # all others equal a seed
            chance = np.ones(n)
            chance[chosen] = 0
        drawn = random.choice(n, 2 + int(log(k)), p=chance / chance.sum())
        closer = [np.minimum(nearest, np.maximum(rows[int(s)], 0)) for s in drawn]
        best = int(np.argmin([each.sum() for each in closer]))
        chosen.append(int(drawn[best]))
        nearest = closer[best]
    return chosen


def check_count(value: object, name: str, what: str) -> None:
    """Raise unless the value is a positive int."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}; give {what}, 1 or more")
