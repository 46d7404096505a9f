"""Drop costs: what leaving an element out costs (paper Section 3.4), fixed or read off the match costs.

Wherever the library takes `drop_x` or `drop_z`, it takes

- None: the element may not be dropped;
- a number, or one number per element (+∞: this one may not be dropped);
- a rule: a string ("percentile:30", "logit:30"), an object of this module, or any function of the match costs C
  that returns a number or one number per *column* of C. For `drop_z` it is given Cᵀ, so columns are always the
  elements to be dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from dropdtw.problem.inputs import Array

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


def percentile_of_strips(strips: Callable[[], Iterable[Array]], sample: Array, p: float) -> float:
    """As `percentile_drop`, of match costs that come in strips, without ever holding all of them.

    strips : gives the strips anew each time it is called.   sample : some of the costs, to know where to look.

    >>> C = np.arange(100.0).reshape(10, 10)
    >>> percentile_of_strips(lambda: (C[:, :7], C[:, 7:]), C[:, ::4], 30), percentile_drop(C, 30)
    (29.7, 29.7)
    """
    known = sample[np.isfinite(sample)]
    aside = 2.0
    while True:  # count what is below a bracket around the percentile, and keep what is in it
        low = np.percentile(known, p - aside) if known.size and p > aside else -np.inf
        high = np.percentile(known, p + aside) if known.size and p + aside < 100 else np.finfo(sample.dtype).max
        count = below = 0
        kept = []
        for strip in strips():
            count += int(np.count_nonzero(strip < np.inf))
            below += int(np.count_nonzero(strip < low))
            kept.append(strip[(strip >= low) & (strip <= high)])
        if not count:
            return np.inf
        inside = np.concatenate(kept)
        del kept
        rank = (count - 1) * (p / 100)
        first, second = int(np.floor(rank)), int(np.ceil(rank))
        if below <= first and second < below + len(inside):
            inside.partition([first - below, second - below])
            a, b = float(inside[first - below]), float(inside[second - below])
            share = rank - first
            return a + (b - a) * share if share < 0.5 else b - (b - a) * (1 - share)  # as NumPy rounds it
        aside *= 4


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
