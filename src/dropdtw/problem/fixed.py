"""Drop costs that are known before any match cost is: what lower bounds and live streams can work with."""

from __future__ import annotations

import numpy.typing as npt

from dropdtw import drops
from dropdtw.drops import Constant, DropCost, PerElement


def fixed(drop: DropCost, name: str, why: str) -> npt.ArrayLike | None:
    """`drop` as a number or one number per element, None as it is; a rule that reads the match costs is refused.

    why : what goes wrong with a rule, for the error.

    >>> fixed(drops.Constant(0.3), "drop_x", "")
    0.3
    """
    rule = drops.resolve(drop, name)
    if isinstance(rule, Constant):
        return rule.value
    if isinstance(rule, PerElement):
        return rule.values
    if callable(rule) or isinstance(rule, drops.LogitPercentile):
        raise ValueError(
            f"{name} is {drop!r}, a rule that reads the match costs, {why}; give a number "
            "(dropdtw.suggest_drop finds one)"
        )
    return rule
