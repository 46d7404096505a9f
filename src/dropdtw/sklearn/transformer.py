"""Features from series: the costs of aligning each with a few prototypes."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from dropdtw.problem.inputs import Array, owned
from dropdtw.sklearn.estimator import AligningBothSides, CostFeatures
from dropdtw.sklearn.panel import Panel


@dataclass(eq=False, repr=False, kw_only=True)
class AlignmentTransformer(CostFeatures, AligningBothSides):
    """Replace each series by the costs of aligning it with prototypes, as features for any estimator.

    Prototypes are Z and series to transform are X: `drop_x` is the cost of dropping an element of the latter.

    Parameters
    ----------
    n_prototypes : the maximum number of training series that become prototypes; None for all.
    choose : "spread" starts with a random series and repeatedly adds the one that is farthest from the prototypes so
        far. "random" draws prototypes at random.
    prototypes : series of your own; `n_prototypes` and `choose` are then ignored.
    random_state : as in scikit-learn.
    drop_x, drop_z, match, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, threshold,
        missing, aligner, layout, n_jobs : as in `AlignmentKNeighborsClassifier`.

    Attributes
    ----------
    prototypes_ : list of (t, d).   prototype_indices_ : (k,) their indices in X; None for series of your own.

    >>> import numpy as np
    >>> from dropdtw.sklearn import AlignmentTransformer
    >>> t = np.linspace(0, 1, 5)
    >>> AlignmentTransformer(prototypes=[t, 1 - t], drop_x=0.2).fit([t]).transform([t, 1 - t, np.r_[t, 9]]).round(2)
    array([[0. , 2.3],
           [2.3, 0. ],
           [0.2, 2.5]])
    """

    n_prototypes: int | None = field(default=10, kw_only=False)
    choose: Literal["spread", "random"] = "spread"
    prototypes: Panel | None = None
    random_state: int | np.random.RandomState | None = None

    _own = "prototypes_"

    def fit(self, X: Panel, y: object = None) -> Self:
        """Choose the prototypes among the series of X.

        X : n series, in one of the shapes of `as_series`.   y : ignored.

        Returns the transformer. Raises ValueError if a parameter or a series is invalid.
        """
        series = self._learn_series(X)
        self.prototype_indices_ = None
        if self.prototypes is not None:
            self.prototypes_ = self._own_prototypes(self.prototypes)
        else:
            self.prototype_indices_ = self._choice(series)
            self.prototypes_ = [series[k] for k in self.prototype_indices_]
        self._n_features_out = len(self.prototypes_)
        return self

    def _own_prototypes(self, prototypes: Panel) -> list[Array]:
        series = [owned(each) for each in self._read(prototypes, "prototypes")]
        if series[0].shape[1] != self.n_channels_:
            raise ValueError(
                f"prototypes have {series[0].shape[1]} features, but the series of fit have {self.n_channels_}; "
                "both need the same number"
            )
        return series

    def _choice(self, series: list[Array]) -> Array:
        n = len(series)
        k = n if self.n_prototypes is None else self.n_prototypes
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"n_prototypes is {self.n_prototypes!r}; give a whole number ≥ 1, or None for all")
        if self.choose not in ("spread", "random"):
            raise ValueError(f"choose is {self.choose!r}; give 'spread' or 'random'")
        if k >= n:
            return np.arange(n)
        random = check_random_state(self.random_state)
        if self.choose == "random":
            return np.asarray(random.choice(n, k, replace=False))
        chosen = [int(random.randint(n))]
        nearest = np.full(n, np.inf)
        while len(chosen) < k:
            nearest = np.minimum(nearest, self._distances([series[chosen[-1]]], series)[0])
            nearest[chosen] = -np.inf  # never twice, even if all others are as close
            chosen.append(int(nearest.argmax()))
        return np.array(chosen)
