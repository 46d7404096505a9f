"""Reduction and normalization of the values of a loss, and checks of its options."""

from __future__ import annotations

import math
from typing import Literal, get_args

from torch import Tensor

from dropdtw.tables.methods import MethodLike, look_up
from dropdtw.torch.batch import Pairs, count

Reduction = Literal["mean", "sum", "none"]
Normalize = Literal["x", "z", "both", "pattern"] | None


def reduce(values: Tensor, how: Reduction) -> Tensor:
    """Return the mean or the sum of the items' values (B,), or the values themselves."""
    return values.mean() if how == "mean" else values.sum() if how == "sum" else values


def normalized(values: Tensor, p: Pairs, by: Normalize) -> Tensor:
    """Divide each item's value by the length of its x, of its z, or of both together."""
    if by is None:
        return values
    length = 0 if by == "z" else count(p.given_x, p.x_lengths)
    return values / (length if by == "x" else length + count(p.given_z, p.z_lengths))


def check_reduction(reduction: Reduction) -> Reduction:
    """Raise unless this is a reduction."""
    if reduction not in get_args(Reduction):
        raise ValueError(f"reduction is {reduction!r}; choose 'mean', 'sum' or 'none' (one value per item)")
    return reduction


def divisor(by: Normalize, method: MethodLike) -> Normalize:
    """Return the length that "pattern" stands for; others unchanged. Raises unless `by` names a length."""
    if by == "pattern" and (norm := look_up(method).norm) is not None:
        return "both" if norm(1, 2) == 3 else "z"
    if by not in (None, "x", "z", "both"):
        raise ValueError(
            f"normalize is {by!r}; choose 'x', 'z' or 'both' (divide by that length), 'pattern' with a step pattern, "
            "or None"
        )
    return by


def check_number(value: float, name: str, least: str = "> 0") -> float:
    """Raise unless this is a finite number > 0, or ≥ 0 if `least` says so."""
    real = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not real or value < 0 or (value == 0 and least == "> 0"):
        raise ValueError(f"{name} is {value!r}; give a finite number {least}")
    return value
