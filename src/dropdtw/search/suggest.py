"""A drop cost proposed from the match costs themselves: where the best matches end and chance begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw.api import solve
from dropdtw.costs import MatchCost
from dropdtw.problem.inputs import Array, as_match_costs, as_pair
from dropdtw.problem.problem import band
from dropdtw.tables.methods import Options

CELLS: Final = 1 << 22
"""Match costs that are looked at; of longer sequences, every n-th x stands for its neighbours."""

ONE_GROUP: Final = 2 / np.pi
"""The share of its variance that a bell curve loses when it is cut in the middle: no gap at all."""


@dataclass(frozen=True)
class Suggestion:
    """A drop cost and how far to trust it. Made by `dropdtw.suggest_drop`.

    percentile : for drop_x="percentile:…", which moves with the costs of other sequences.
    constant : the same drop cost as a number.
    confidence : 0 to 1: how clear the gap is, and how little the alignment depends on where in it the cost lies.
    why : the reasons, in a sentence.
    """

    percentile: float
    constant: float
    confidence: float
    why: str

    @property
    def rule(self) -> str:
        """What to give as `drop_x`, "percentile:12.5"."""
        return f"percentile:{self.percentile:g}"


def suggest_drop(
    Z: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    *,
    match: MatchCost = "cosine",
    drop_z: bool = False,
    one_to_many: bool = True,
    many_to_one: bool = True,
    contiguous: bool = False,
    window: float | None = None,
) -> Suggestion:
    """Propose a drop cost for two sequences, or for match costs.

    Junk matches something too, by chance, about as well as a real element matches a z that it does not belong to. So
    the cost of each x's best match is put beside the cost of its best match elsewhere in Z, and the drop cost goes
    where these numbers fall into two groups most clearly (Otsu's threshold). How sure that is depends on the gap
    between the groups and on how many x are labelled alike for every drop cost in the middle half of it.

    Parameters
    ----------
    Z, X : (K, d) and (N, d), as in `dropdtw.align`; without X, Z is C (K, N), as in `dropdtw.solve`.
    drop_z : whether z will be droppable as well, at the same cost.
    others : those of the alignment that is meant; they decide which matches compete.

    >>> import numpy as np, dropdtw
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(3, 16))
    >>> X = np.concatenate([rng.normal(size=(9, 16)), np.repeat(Z, 5, axis=0) + rng.normal(size=(15, 16)) / 2])
    >>> found = dropdtw.suggest_drop(Z, X)
    >>> round(found.constant, 2), found.rule, round(found.confidence, 1)
    (0.48, 'percentile:22.22', 0.7)
    >>> dropdtw.align(Z, X, drop_x=found.constant).labels
    array([-1, -1, -1, -1, -1, -1, -1, -1, -1,  0,  0,  0,  0,  0,  1,  1,  1,
            1,  1,  2,  2,  2,  2,  2])
    """
    C = _costs(Z, X, match, window)
    finite = C[np.isfinite(C)]
    constant, explained, values = _threshold(C, finite)
    if explained is None:
        return Suggestion(100.0, constant, 0.0, "every x matches equally well everywhere, so nothing tells junk apart")
    below, above = float(values[values <= constant].mean()), float(values[values > constant].mean())
    percentile = round(100 * float((finite <= constant).mean()), 2)
    gap = float(np.clip((explained - ONE_GROUP) / (1 - ONE_GROUP), 0, 1))
    options = Options(one_to_many, many_to_one, contiguous)
    steady = _steadiness(C, np.linspace((below + constant) / 2, (above + constant) / 2, 5), drop_z, options)
    verdict = "far apart" if gap > 0.5 else "close together" if gap > 0.2 else "hardly apart"
    why = (
        f"good matches cost about {below:.3g} and chance ones about {above:.3g}: the two groups are {verdict}; "
        f"{steady:.0%} of the x get the same label wherever in the middle half between them the drop cost lies"
    )
    few = min(1.0, int(np.isfinite(C).any(axis=0).sum()) / 10)  # of a handful of elements nothing is sure
    return Suggestion(percentile, constant, float(np.sqrt(gap * steady)) * few, why)


def constant(
    Z: npt.ArrayLike, X: npt.ArrayLike | None = None, *, match: MatchCost = "cosine", window: float | None = None
) -> float:
    """The drop cost of `suggest_drop` alone; how far to trust it takes most of the time."""
    C = _costs(Z, X, match, window)
    return _threshold(C, C[np.isfinite(C)])[0]


def _threshold(C: Array, finite: Array) -> tuple[float, float | None, Array]:
    """The drop cost, the share of variance it explains (None: all is alike), and the costs that it divides."""
    if not finite.size:
        raise ValueError("every match is forbidden (+inf), so there is nothing to choose a drop cost from")
    best, other = _best_and_other(C)
    values = np.concatenate([best, other])
    if np.ptp(values) <= 1e-9 * max(1.0, float(np.abs(values).max())):
        return float(finite.max()), None, values
    return *otsu(values), values


def otsu(values: Array) -> tuple[float, float]:
    """The threshold that splits numbers into the two groups that differ most, and the share of variance it explains.

    >>> threshold, explained = otsu(np.array([0.0, 0.1, 0.9, 1.0]))
    >>> threshold, round(explained, 2)
    (0.5, 0.99)
    """
    v = np.sort(np.asarray(values, np.float64))
    n, total = len(v), np.cumsum(v)
    k = np.arange(1, n)
    apart = k * (n - k) / n * (total[:-1] / k - (total[-1] - total[:-1]) / (n - k)) ** 2
    i = int(apart.argmax())
    return float((v[i] + v[i + 1]) / 2), float(apart[i] / ((v - v.mean()) ** 2).sum())


def _costs(Z: npt.ArrayLike, X: npt.ArrayLike | None, match: MatchCost, window: float | None) -> Array:
    """The match costs of at most `CELLS` pairs, +∞ outside the window."""
    if X is None:
        C = as_match_costs(Z)
        (K, N), columns = C.shape, slice(None, None, _stride(*C.shape))
        C = C[:, columns]
    else:
        A, B = as_pair(Z, X)
        (K, N), columns = (len(A), len(B)), slice(None, None, _stride(len(A), len(B)))
        C = match_costs.resolve(match)(A, B[columns])
    if window is not None:
        start, stop = (limit[:, None] for limit in band(K, N, window))
        j = np.arange(N)[columns]
        C = np.where((start <= j) & (j < stop), C, np.inf)
    return C


def _stride(K: int, N: int) -> int:
    return max(1, min(-(-K * N // CELLS), N // (2 * K)))


def _best_and_other(C: Array) -> tuple[Array, Array]:
    """For each x the cost of its best match, and of its best match elsewhere: neighbours of the best are too alike."""
    K = len(C)
    near = np.abs(np.arange(K)[:, None] - C.argmin(axis=0)) <= K // 8
    best, other = C.min(axis=0), np.where(near, np.inf, C).min(axis=0)
    return best[np.isfinite(best)], other[np.isfinite(other)]


def _steadiness(C: Array, prices: Array, drop_z: bool, o: Options) -> float:
    """The share of x that get the same label at each of several drop costs."""

    def labels(price: float, z: bool) -> Array:
        moves = {"one_to_many": o.one_to_many, "many_to_one": o.many_to_one, "contiguous": o.contiguous}
        return solve(C, price, price if z else None, **moves).labels  # type: ignore[arg-type]

    try:
        found = [labels(float(price), drop_z) for price in prices]
    except ValueError:  # not every z can be matched: the alignment itself will say so
        found = [labels(float(price), True) for price in prices]
    return float((np.array(found) == found[0]).all(axis=0).mean())
