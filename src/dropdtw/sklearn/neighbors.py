"""A nearest-neighbor classifier and a regressor by alignment cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted, column_or_1d

from dropdtw.problem.inputs import Array
from dropdtw.sklearn.estimator import AligningBothSides
from dropdtw.sklearn.panel import Panel


@dataclass(eq=False, repr=False, kw_only=True)
class _Neighbors(AligningBothSides):
    """What the nearest neighbors of the training series say."""

    n_neighbors: int = field(default=1, kw_only=False)
    weights: Literal["uniform", "distance"] = "uniform"

    def _learn(self, X: Panel, y: npt.ArrayLike) -> Array:
        """Store the training series, and validate their labels or values (n,)."""
        if y is None:
            kind = "regressor" if isinstance(self, RegressorMixin) else "classifier"
            raise ValueError(f"this {kind} requires y to be passed, but the target y is None; give one per series")
        if self.weights not in ("uniform", "distance"):
            raise ValueError(f"weights is {self.weights!r}; give 'uniform' or 'distance'")
        series = self._learn_series(X)
        found = np.asarray(column_or_1d(y, warn=True))
        check_consistent_length(series, found)
        self.series_ = series
        return found

    def distances(self, X: Panel | None = None) -> Array:
        """Compute the cost of aligning each series with each training series.

        X : n series; None for the m training series themselves.

        Returns (n, m). Raises ValueError if a series is invalid.
        """
        check_is_fitted(self)
        if X is None:
            return self._distances(self.series_).T
        return self._distances(self.series_, self._new_series(X)).T

    def kneighbors(self, X: Panel | None = None, n_neighbors: int | None = None) -> tuple[Array, Array]:
        """Find the nearest training series of each series, nearest first; ties are sorted by index.

        X : n series; None finds the neighbors of each training series among the others.
        n_neighbors : k, how many to find; None for the parameter of the classifier.

        Returns their costs (n, k) and indices (n, k). Raises ValueError if there are fewer than k training series.
        """
        D = self.distances(X)
        if X is None:
            np.fill_diagonal(D, np.nan)  # sorted to the end, behind +∞
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        others = D.shape[1] - (X is None)
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= others:
            fits = f"give 1 to {others}" if others else "fit at least two series"
            raise ValueError(f"n_neighbors is {k!r}, but there are {others} series to choose from; {fits}")
        nearest = np.argsort(D, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(D, nearest, axis=1), nearest

    def _votes(self, X: Panel) -> tuple[Array, Array]:
        """The weights of the nearest training series, which sum to 1, and their indices, both (n, k)."""
        D, nearest = self.kneighbors(X)
        lost = np.flatnonzero(D[:, 0] == np.inf)
        if len(lost):
            raise ValueError(
                f"series {lost[0]} cannot be aligned with any training series: every alignment is forbidden; "
                "widen the window, or give drop costs"
            )
        votes = np.isfinite(D).astype(float)
        if self.weights == "distance":
            free = np.asarray(D <= 0)
            votes = np.where(free.any(axis=1, keepdims=True), free, 1 / np.where(free, 1, D))
        return votes / votes.sum(axis=1, keepdims=True), nearest


@dataclass(eq=False, repr=False, kw_only=True)
class AlignmentKNeighborsClassifier(ClassifierMixin, _Neighbors):  # type: ignore[misc]
    """Classify series by a vote of the training series that are cheapest to align with them. The search is exact.

    Training series are Z and series to classify are X: `drop_x` is the cost of dropping an element of the latter,
    `drop_z` that of dropping an element of a training series. Without drop costs this is nearest neighbors under DTW.
    Prefer numbers as drop costs: a percentile differs from pair to pair, so costs are not comparable.

    Parameters
    ----------
    n_neighbors : the number of training series that vote.
    weights : "uniform", or "distance" for votes of 1/cost (costs of 0 or less outvote all others).
    match, missing : as in `dropdtw.align`.
    drop_x, drop_z, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, threshold : as in
        `dropdtw.solve`.
    aligner : a `dropdtw.Aligner`, instead of these options; None uses them.
    layout : the order of axes, "ntd" or "nct"; required for arrays with three axes, see `dropdtw.sklearn.as_series`.
    n_jobs : the number of threads; None for one, −1 for all cores.

    Attributes
    ----------
    classes_ : (c,) the labels.   series_ : the training series, each (t, d).   n_channels_ : d.
    n_features_in_ : the number of columns if `fit` was given a table (n, t); later tables may be wider or narrower.

    >>> import numpy as np
    >>> from dropdtw.sklearn import AlignmentKNeighborsClassifier
    >>> up, down = np.arange(5.0), np.arange(5.0)[::-1]
    >>> knn = AlignmentKNeighborsClassifier(drop_x=0.5).fit([up, down], ["up", "down"])
    >>> knn.predict([[0, 1, 9, 9, 2, 3, 4], [4, -7, 3, 2, 2, 1, 0]]).tolist()
    ['up', 'down']
    """

    def fit(self, X: Panel, y: npt.ArrayLike) -> Self:
        """Store the training series and their labels.

        X : n series, in one of the shapes of `as_series`.   y : (n,) labels.

        Returns the classifier. Raises ValueError if a parameter, a series or a label is invalid.
        """
        labels = self._learn(X, y)
        check_classification_targets(labels)
        self.classes_, self._label = np.unique(labels, return_inverse=True)
        return self

    def predict_proba(self, X: Panel) -> Array:
        """Compute each class's fraction of the votes. Training series that cannot be aligned do not vote.

        X : n series.

        Returns (n, c). Raises ValueError if a series cannot be aligned with any training series.
        """
        votes, nearest = self._votes(X)
        found = np.zeros((len(votes), len(self.classes_)))
        np.add.at(found, (np.arange(len(votes))[:, None], self._label[nearest]), votes)
        return found

    def predict(self, X: Panel) -> Array:
        """Predict the label with the most votes; ties go to the first in `classes_`.

        X : n series.

        Returns (n,) labels. Raises ValueError if a series cannot be aligned with any training series.
        """
        found = self.predict_proba(X)
        return np.asarray(self.classes_[found.argmax(axis=1)])


@dataclass(eq=False, repr=False, kw_only=True)
class AlignmentKNeighborsRegressor(RegressorMixin, _Neighbors):  # type: ignore[misc]
    """Predict a number for each series: the mean over the training series that are cheapest to align with it.

    Parameters
    ----------
    All are those of `AlignmentKNeighborsClassifier`. With weights="distance", a value counts 1/cost (values at costs of
    0 or less alone count, if there are any).

    Attributes
    ----------
    series_ : the training series, each (t, d).   values_ : (n,) their values.   n_channels_ : d.
    n_features_in_ : the number of columns if `fit` was given a table (n, t); later tables may be wider or narrower.

    >>> import numpy as np
    >>> from dropdtw.sklearn import AlignmentKNeighborsRegressor
    >>> knn = AlignmentKNeighborsRegressor(drop_x=0.5).fit([np.arange(5.0), 3 * np.arange(5.0)], [1.0, 3.0])
    >>> knn.predict([[0, 1, 9, 9, 2, 3, 4], [0, 3, -7, 6, 9, 12]]).tolist()
    [1.0, 3.0]
    """

    def fit(self, X: Panel, y: npt.ArrayLike) -> Self:
        """Store the training series and their values.

        X : n series, in one of the shapes of `as_series`.   y : (n,) numbers.

        Returns the regressor. Raises ValueError if a parameter, a series or a value is invalid.
        """
        values = self._learn(X, y)
        if values.dtype.kind not in "iufb":
            raise ValueError(f"Unknown label type: y is an array of dtype {values.dtype}; give one number per series")
        assert_all_finite(values, input_name="y")
        self.values_ = values.astype(np.float64)
        return self

    def predict(self, X: Panel) -> Array:
        """Predict the weighted mean of the values of the nearest training series. Those that cannot be aligned count 0.

        X : n series.

        Returns (n,) numbers. Raises ValueError if a series cannot be aligned with any training series.
        """
        votes, nearest = self._votes(X)
        return np.asarray((votes * self.values_[nearest]).sum(axis=1))
