"""Drop costs: what leaving an element out costs (paper Section 3.4), fixed or read off the match costs.

Wherever the library takes `drop_x` or `drop_z`, it takes

- None: the element may not be dropped;
- a number, or one number per element (+∞: this one may not be dropped);
- a rule: a string ("percentile:30", "logit:30"), an object of this module, or any function of the match costs C
  that returns a number or one number per *column* of C. For `drop_z` it is given Cᵀ, so columns are always the
  elements to be dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from dropdtw.arrays import Array

DropCost = None | str | npt.ArrayLike | Callable[[Array], npt.ArrayLike]


def percentile_drop(C: Array, p: float) -> float:
    """The p-th percentile of the finite entries of C (paper Eq. 5); +∞ where none is finite.

    C : (K, N) match costs.   p : 0..100, ascending: p = 30 makes 30 % of the pairs cheaper than a drop; a lower p
    drops more.

    >>> percentile_drop(np.array([[1.0, 2.0], [3.0, np.inf]]), 50)
    2.0
    """
    finite = C[np.isfinite(C)]
    return float(np.percentile(finite, p)) if finite.size else np.inf


@dataclass(frozen=True)
class Constant:
    """The same drop cost for every element."""

    value: float

    def __call__(self, C: Array) -> float:
        """The cost of dropping any column of C."""
        return self.value


@dataclass(frozen=True)
class PerElement:
    """One drop cost per element."""

    values: tuple[float, ...]

    def __call__(self, C: Array) -> tuple[float, ...]:
        """The cost of dropping each column of C."""
        return self.values


@dataclass(frozen=True)
class Percentile:
    """The p-th percentile of the match costs, for every element alike (paper Eq. 5)."""

    p: float

    def __post_init__(self) -> None:
        _check_percentile(self.p)

    def __call__(self, C: Array) -> float:
        """The cost of dropping any column of C."""
        return percentile_drop(C, self.p)


@dataclass(frozen=True)
class LogitPercentile:
    """A drop logit inside the softmax match cost: dropping competes with the steps for each x_j.

    The logit is the k-th largest similarity z·x of all pairs, k = max(1, ⌊p/100 · number of pairs⌋): it joins the
    softmax as one more row, and C = −log(p_i + ε), d_x = −log(p_drop + ε). So the drop cost differs from x to x,
    and a larger p lowers the logit and drops less. Needs `match="softmax"`; for `drop_x` only.
    """

    p: float
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        _check_percentile(self.p)

    def logits(self, S: Array) -> Array:
        """The drop logit for similarities S (U, N) of the unique z, as a scalar array."""
        k = max(1, int(self.p * S.size / 100))
        return np.asarray(np.partition(S.ravel(), S.size - k)[S.size - k])


Rule = Callable[[Array], npt.ArrayLike]


def resolve(drop: DropCost, name: str) -> npt.ArrayLike | Rule | LogitPercentile | None:
    """`drop` with a rule's string replaced by the rule."""
    if not isinstance(drop, str):
        return drop
    kind, _, p = drop.partition(":")
    rules: dict[str, Callable[[float], Rule | LogitPercentile]] = {
        "percentile": Percentile,
        "logit": LogitPercentile,
    }
    try:
        return rules[kind](float(p))
    except (KeyError, ValueError):
        raise ValueError(
            f"{name} is {drop!r}; give None, a number, one number per element, 'percentile:30' or 'logit:30' "
            "(0 to 100), or a rule from dropdtw.drops"
        ) from None


def _check_percentile(p: float) -> None:
    if not isinstance(p, Real) or not 0 <= p <= 100:
        raise ValueError(f"the percentile is {p!r}; give a number from 0 to 100 (not 0 to 1)")
