"""Suggest a drop cost from the match costs: a cost between good matches and chance matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Never

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw.costs import MatchCost
from dropdtw.drops import Band, gap, sampled
from dropdtw.problem.band import band
from dropdtw.problem.errors import refuse_keywords
from dropdtw.problem.inputs import Array, as_match_costs
from dropdtw.problem.match import MatchCosts, Matrix
from dropdtw.problem.missing import without_missing
from dropdtw.problem.options import takes
from dropdtw.problem.problem import Problem, between
from dropdtw.problem.spec import Spec
from dropdtw.results.alignment import Alignment
from dropdtw.tables.methods import Matching, MethodLike, look_up

TRUSTED: Final = 0.5
"""A confidence below this is reported."""

ONE_GROUP: Final = 2 / np.pi
"""Splitting a normal distribution in the middle explains this share of its variance. A share this low means no gap."""


@dataclass(frozen=True)
class Suggestion:
    """A drop cost and how far to trust it. Returned by `dropdtw.suggest_drop`.

    percentile : the percentage of the match costs up to `constant`. `drop_x=found.rule` uses this percentile on other
        sequences. Even on these, its number can differ a little from `constant`, because percentiles are interpolated.
    constant : the drop cost as a number.
    confidence : 0 to 1. High if the costs of good matches and of chance matches are far apart, and if most drop costs
        between them give the same alignment. With fewer than ten x, it is reduced in proportion.
    why : the reasons, in one sentence.

    >>> import dropdtw
    >>> found = dropdtw.suggest_drop([[0.1, 0.9, 0.8], [0.9, 0.2, 0.9]])
    >>> found.constant, found.rule
    (0.5, 'percentile:33.33')
    """

    percentile: float
    constant: float
    confidence: float
    why: str

    @property
    def rule(self) -> str:
        """A value for `drop_x`, such as "percentile:12.5"."""
        return f"percentile:{self.percentile:g}"


@takes()
def suggest_drop(
    Z: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    *,
    match: MatchCost = "auto",
    drop_z: bool = False,
    method: MethodLike = "drop_dtw",
    one_to_many: bool = True,
    many_to_one: bool = True,
    contiguous: bool = False,
    window: float | None = None,
    missing: str | None = None,
    **unknown: Never,
) -> Suggestion:
    """Suggest a drop cost for two sequences, or for match costs.

    The drop cost should lie between the costs of good matches and those of chance matches. Each x contributes two
    costs: that of its best match, and the lowest one among the z that are more than K // 8 rows away from it, which is
    a chance match. Junk has only chance matches. The drop cost is the threshold that splits all these costs most
    clearly into two groups (Otsu's threshold). The confidence depends on how far apart the groups are, and on how many
    x keep their label for every drop cost in the middle half of the gap between them.

    Parameters
    ----------
    Z, X : (K, d) and (N, d), as in `dropdtw.align`. Without X, pass the match costs C (K, N) of `dropdtw.solve` as Z.
    drop_z : whether you will allow z to be dropped as well, at the same cost.
    match, missing, method, one_to_many, many_to_one, contiguous, window : the options that you will align with, as in
        `dropdtw.align`. Of the method, only the matches that it allows count.

    Returns
    -------
    A `dropdtw.Suggestion`: the drop cost as a number and as a percentile, the confidence, and the reasons.

    Raises
    ------
    ValueError : if an argument is invalid, or if every match is forbidden.

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
    refuse_keywords(suggest_drop, unknown)
    costs = _match_costs(Z, X, match, missing)
    limits = None if window is None else band(*costs.shape, window)
    return suggestion(costs, limits, drop_z, look_up(method).allowed(Matching(one_to_many, many_to_one, contiguous)))


def suggestion(costs: MatchCosts, limits: Band, drop_z: bool, matching: Matching) -> Suggestion:
    """See `suggest_drop`. limits : the x that each z_i may match, as in `dropdtw.problem.costs.Costs`."""
    C = sampled(costs, limits)
    found = gap(C)
    constant, values = found.threshold, found.values
    if found.explained is None:
        return Suggestion(
            100.0, constant, 0.0, "every x matches equally well everywhere, so nothing distinguishes junk"
        )
    below, above = float(values[values <= constant].mean()), float(values[values > constant].mean())
    percentile = round(100 * float((C[np.isfinite(C)] <= constant).mean()), 2)
    clear = float(np.clip((found.explained - ONE_GROUP) / (1 - ONE_GROUP), 0, 1))
    prices = np.linspace((below + constant) / 2, (above + constant) / 2, 5)
    steady = _steadiness(C, prices.tolist(), drop_z, matching._asdict())
    verdict = "are clearly separated" if clear > 0.5 else "are weakly separated" if clear > 0.2 else "overlap widely"
    why = (
        f"good matches cost about {below:.3g} and chance ones about {above:.3g}; the two groups {verdict}; "
        f"{steady:.0%} of the x get the same label for every drop cost in the middle half of the gap"
    )
    few = min(1.0, int(np.isfinite(C).any(axis=0).sum()) / 10)  # with fewer than ten elements, less confidence
    return Suggestion(percentile, constant, float(np.sqrt(clear * steady)) * few, why)


def _match_costs(Z: npt.ArrayLike, X: npt.ArrayLike | None, match: MatchCost, missing: str | None) -> MatchCosts:
    if X is None:
        return Matrix(as_match_costs(Z))
    spec, coded = Spec.of(match=match, missing=missing).encoded([Z], [X], lambda side, k: "ZX"[side])
    if coded is not None:
        (Z,), (X,) = coded.left.codes, coded.right.codes
    spec, A, B, _ = without_missing(spec, Z, X)
    found = match_costs.resolve(spec.match, A.shape[1])
    found.check_features(A.shape[1])
    return between(A, B, found)


def _steadiness(C: Array, prices: list[float], drop_z: bool, matching: dict[str, bool]) -> float:
    """The share of x that get the same label for all of these drop costs."""

    def labels(price: float, z: bool) -> Array:
        spec = Spec.of(price, price if z else None, **matching)  # type: ignore[arg-type]
        return Alignment.of(Problem.of_costs(spec, C)).labels

    try:
        found = [labels(price, drop_z) for price in prices]
    except ValueError:  # not every z can be matched; the alignment itself will raise
        found = [labels(price, True) for price in prices]
    return float((np.array(found) == found[0]).all(axis=0).mean())
