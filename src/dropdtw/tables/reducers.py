"""Reducers: the minimum, or a smooth version of it, over all edges that lead into a state.

A reducer takes an (E, n) array, E alternatives for each of n cells, and computes their (n,) values and the (E, n)
derivatives of these values, called weights. +∞ marks an alternative that does not exist; its weight is always 0. If no
alternative exists, the value is +∞ and every weight is 0. With γ = 0 every reducer is the hard minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dropdtw.problem.errors import OptionError, choices

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Reducer:
    """A minimum and its derivative. `value(v)` is (n,) and `weights(v)` is (E, n) for v of shape (E, n)."""

    name: str
    gamma: float
    value: Callable[[Array], Array] = field(compare=False)
    weights: Callable[[Array], Array] = field(compare=False)

    def __reduce__(self) -> Any:
        """Pickle by name and γ, because the functions themselves cannot be pickled."""
        return reducer, (self.name, self.gamma)


def _hard_weights(v: Array) -> Array:
    first = np.argmin(v, axis=0)  # the first among ties
    w = np.zeros_like(v)
    cells = np.arange(v.shape[1])
    w[first, cells] = np.isfinite(v[first, cells])
    return w


hard_min: Final = Reducer("hard", 0.0, lambda v: v.min(axis=0), _hard_weights)
"""min(v), with weight 1 on the first smallest alternative. With these weights the backward pass is the traceback."""


def soft_min(gamma: float = 1.0) -> Reducer:
    """−γ log Σ exp(−v/γ) (Cuturi & Blondel 2017); its weights are probabilities.

    >>> v = np.array([[1.0], [2.0], [np.inf]])
    >>> soft_min(1.0).value(v).round(4), soft_min(1.0).weights(v).round(4).ravel()
    (array([0.6867]), array([0.7311, 0.2689, 0.    ]))
    """
    if _checked(gamma) == 0:
        return hard_min

    def value(v: Array) -> Array:
        low, e = _exponentials(v, gamma)
        total = e.sum(axis=0)
        return np.where(total > 0, low - gamma * np.log(np.maximum(total, 1)), np.inf).astype(v.dtype)

    return Reducer("soft", gamma, value, lambda v: _probabilities(v, gamma))


def smooth_min(gamma: float = 1.0) -> Reducer:
    """The paper's smoothMin, v · softmax(−v/γ) (Eq. 7). Its weights sum to 1, but can be negative.

    >>> v = np.array([[1.0], [2.0], [np.inf]])
    >>> smooth_min(1.0).value(v).round(4), smooth_min(1.0).weights(v).round(4).ravel()
    (array([1.2689]), array([0.9277, 0.0723, 0.    ]))
    """
    if _checked(gamma) == 0:
        return hard_min

    def mean(v: Array) -> tuple[Array, Array, Array]:
        p = _probabilities(v, gamma)
        v = np.where(p > 0, v, 0)  # ∞ · 0 would be NaN
        return p, v, (p * v).sum(axis=0)

    def value(v: Array) -> Array:
        p, _, m = mean(v)
        return np.where(p.any(axis=0), m, np.inf).astype(v.dtype)

    def weights(v: Array) -> Array:
        p, v, m = mean(v)
        above = np.where(p > 0, v - m, 0) / max(gamma, float(np.finfo(v.dtype).tiny))
        return np.asarray(p * (1 - above), dtype=v.dtype)

    return Reducer("smooth", gamma, value, weights)


def reducer(name: str, gamma: float = 1.0) -> Reducer:
    """Return the reducer called `name`: "hard", "soft" or "smooth". Raises ValueError if name or gamma is invalid."""
    makers = {"hard": lambda _: hard_min, "soft": soft_min, "smooth": smooth_min}
    if not isinstance(name, str) or name not in makers:
        raise OptionError("reducer", name, choices(name, makers))
    return makers[name](_checked(gamma))


def _checked(gamma: float) -> float:
    if not isinstance(gamma, Real) or not 0 <= gamma < math.inf:
        raise OptionError("gamma", gamma, "give a finite number ≥ 0 (0 is the hard minimum)")
    return float(gamma)


def _exponentials(v: Array, gamma: float) -> tuple[Array, Array]:
    """The smallest value m of each cell (0 if none is finite), and exp(−(v − m)/γ)."""
    low = v.min(axis=0)
    low = np.where(np.isfinite(low), low, 0)
    info = np.finfo(v.dtype)  # in single precision, a tiny γ would become 0 and a huge one ∞
    gamma = min(max(gamma, float(info.tiny)), float(info.max))
    with np.errstate(over="ignore", under="ignore"):  # the quotient may overflow to ∞; its exponential is then 0
        return low, np.exp((low - v) / gamma)


def _probabilities(v: Array, gamma: float) -> Array:
    e = _exponentials(v, gamma)[1]
    total = e.sum(axis=0)
    return np.asarray(e / np.where(total > 0, total, 1), dtype=v.dtype)
