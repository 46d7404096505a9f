"""What the estimators share: the parameters of an alignment, and distances between lists of series."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dropdtw.api import pairwise
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost
from dropdtw.problem.charges import Opening
from dropdtw.problem.inputs import Array, owned
from dropdtw.problem.spec import Spec
from dropdtw.search.pairwise import thread_count
from dropdtw.sklearn.panel import Layout, Panel, as_series, as_table, check_features, finite, is_collection
from dropdtw.tables.methods import MethodLike

PARAMETERS = (
    *("drop_x", "drop_z", "match", "method"),
    *("one_to_many", "many_to_one", "contiguous", "open_x", "open_z", "warp", "window", "threshold"),
    *("missing", "n_jobs"),
)
"""Parameters of `dropdtw.pairwise` that estimators accept; some accept fewer."""


class Aligner(BaseEstimator):  # type: ignore[misc]
    """An estimator that compares series by aligning them. The series of `fit` are Z; those of `predict` are X."""

    drop_x: DropCost
    drop_z: DropCost
    match: MatchCost
    method: MethodLike
    open_x: Opening
    open_z: Opening
    warp: float
    missing: str | None
    layout: Layout
    n_jobs: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.missing is not None
        return tags

    def _learn_series(self, X: Panel) -> list[Array]:
        """Validate the parameters and the series of `fit`, and store their number of features."""
        thread_count(self.n_jobs)
        self._spec()
        for known in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            self.__dict__.pop(known, None)
        if not is_collection(X):
            as_table(X, self.missing)
            validate_data(self, X, skip_check_array=False, dtype=None, ensure_all_finite=finite(self.missing))
        series = [owned(each) for each in as_series(X, self.layout, missing=self.missing)]
        self.n_channels_ = series[0].shape[1]
        return series

    def _new_series(self, X: Panel) -> list[Array]:
        """Series to compare with those of `fit`: any length, the same number of features."""
        series = as_series(X, self.layout, missing=self.missing)
        check_features(series, self.n_channels_, "the series of fit have", self.layout)
        return series

    def _distances(self, Zs: list[Array], Xs: list[Array] | None = None) -> Array:
        """(len(Zs), len(Xs)) alignment costs."""
        return pairwise(Zs, Xs, progress=False, **self._told())

    def _told(self) -> dict[str, Any]:
        """The parameters that `pairwise` takes."""
        return {name: getattr(self, name) for name in PARAMETERS if hasattr(self, name)}

    def _spec(self) -> Spec:
        """The parameters as one validated request."""
        return Spec.of(**{name: value for name, value in self._told().items() if name != "n_jobs"})
