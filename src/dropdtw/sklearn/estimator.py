"""What the estimators share: the parameters of an alignment, and distances between lists of series."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dropdtw.aligner import Aligner
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost
from dropdtw.problem.charges import Opening
from dropdtw.problem.errors import OptionError, refuse_unknown
from dropdtw.problem.inputs import Array, Columns, owned
from dropdtw.problem.options import OPTIONS
from dropdtw.search.pairwise import thread_count
from dropdtw.sklearn.panel import Layout, Panel, as_series, as_table, check_features, finite, is_collection
from dropdtw.tables.methods import MethodLike


@dataclass(eq=False, repr=False, kw_only=True)
class AligningEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that compares series by aligning them. The series of `fit` are Z; those of `predict` are X."""

    aligner: Aligner | None = None
    drop_x: DropCost = None
    match: MatchCost = "auto"
    method: MethodLike = "drop_dtw"
    one_to_many: bool = True
    many_to_one: bool = True
    contiguous: bool = False
    open_x: Opening = 0.0
    warp: float = 0.0
    window: float | None = None
    missing: str | None = None
    layout: Layout = None
    n_jobs: int | None = None

    def __new__(cls, *values: Any, **options: Any) -> Self:
        """Refuse unknown parameters with the closest known one."""
        refuse_unknown(options, cls._get_param_names(), cls.__name__)
        made: Self = super().__new__(cls)
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self._missing is not None
        return tags

    def _learn_series(self, X: Panel) -> list[Array]:
        """Validate the parameters and the series of `fit`, and store their number of features."""
        thread_count(self.n_jobs)
        self._aligned_by()
        for known in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            self.__dict__.pop(known, None)
        if not is_collection(X):
            as_table(X, self._missing)
            validate_data(self, X, skip_check_array=False, dtype=None, ensure_all_finite=finite(self._missing))
        self._columns = Columns()
        series = [owned(each) for each in self._read(X, "X", self._columns)]
        self.n_channels_ = series[0].shape[1]
        return series

    def _new_series(self, X: Panel) -> list[Array]:
        """Series to compare with those of `fit`: any length, the same number of features."""
        series = self._read(X)
        check_features(series, self.n_channels_, "the series of fit have", self.layout)
        return series

    def _read(self, X: Panel, name: str = "X", columns: Columns | None = None) -> list[Array]:
        """The series of a collection, data frames with the columns of `fit`."""
        columns = columns or replace(self._columns)
        return as_series(X, self.layout, name, missing=self._missing, columns=columns)

    def _distances(self, Zs: list[Array], Xs: list[Array] | None = None) -> Array:
        """(len(Zs), len(Xs)) alignment costs."""
        return self._aligned_by().pairwise(Zs, Xs, n_jobs=self.n_jobs, progress=False)

    def _aligned_by(self) -> Aligner:
        """`aligner`, or the one with the other parameters. Raises ValueError if both are given."""
        own = {each.name: each.default for each in fields(self) if each.name in OPTIONS}
        if self.aligner is None:
            return Aligner(**{name: getattr(self, name) for name in own})
        if not isinstance(self.aligner, Aligner):
            raise OptionError("aligner", self.aligner, "give a dropdtw.Aligner, or leave it out")
        for name, default in own.items():
            value = getattr(self, name)
            if not (value is default or (isinstance(value, type(default)) and value == default)):
                raise OptionError(
                    name, value, "put it into the aligner, or leave out aligner", ", and aligner is given"
                )
        return self.aligner

    @property
    def _missing(self) -> str | None:
        """What to do with missing elements."""
        return self.missing if self.aligner is None else self.aligner.missing


class CostFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """An estimator whose features of a series are the costs of aligning it with some series of its own."""

    _own: str
    """The attribute that holds these series."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]  # costs are float64 for series of any dtype
        return tags

    def transform(self, X: Panel) -> Array:
        """Compute the cost of aligning each series with each center or prototype.

        X : n series, in one of the shapes of `as_series`.

        Returns (n, k). Raises ValueError if a series is invalid.
        """
        check_is_fitted(self)
        costs: Array = self._distances(getattr(self, self._own), self._new_series(X)).T
        return costs


@dataclass(eq=False, repr=False, kw_only=True)
class AligningBothSides(AligningEstimator):
    """An estimator that may drop elements of both series."""

    drop_z: DropCost = None
    open_z: Opening = 0.0
    threshold: DropCost = None
