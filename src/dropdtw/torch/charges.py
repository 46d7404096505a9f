"""Charges of a batch: opening costs and the warp penalty, as numbers or as tensors that can be learned."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dropdtw.tables.table import CHARGES

Charge = float | Tensor
"""A number ≥ 0; or a tensor () or (B,), one number per item."""

Described = float | str
"""A number, or the description of a tensor, whose values are not read."""


class Unseen(float):
    """Placeholder for a tensor when a request is checked: it counts as nonzero and prints as a description."""

    def __new__(cls, words: str) -> Unseen:
        """Create a placeholder that error messages show as `words`."""
        made = super().__new__(cls, 1.0)
        made.words = words
        return made

    words: str

    def __repr__(self) -> str:
        return self.words


def described(value: Any, name: str) -> Described:
    """Return the number, or a description of the tensor; raise for anything else."""
    if isinstance(value, Tensor):
        return "a tensor"
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if number and 0 <= value < math.inf and (not isinstance(value, int) or value <= sys.float_info.max):
        return float(value)
    single = ", which works for single problems only" if isinstance(value, str) and value == "suggest" else ""
    raise ValueError(
        f"{name} is {value!r}{single}; for a batch, give a finite number ≥ 0, or a tensor () or (B,), one number "
        "per item"
    )


def given(*charges: Charge) -> bool:
    """Whether there is any charge; a tensor counts as one, whatever its values."""
    return any(isinstance(value, Tensor) or value != 0 for value in charges)


def for_spec(value: Described) -> float:
    """Return the charge in the form that `Spec.of` takes."""
    return Unseen(value) if isinstance(value, str) else value


def stack(charges: tuple[Charge, Charge, Charge], B: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Stack charges in the order of `CHARGES` into one tensor (B, 3), without a device synchronization."""
    columns = []
    for name, value in zip(CHARGES, charges, strict=True):
        if not isinstance(value, Tensor):
            if value > torch.finfo(dtype).max:
                raise ValueError(
                    f"{name} is {value!r}, which {str(dtype)[6:]} cannot hold; give the match costs as float64"
                )
            columns.append(torch.full((1,), float(value), dtype=dtype, device=device).expand(B))
            continue
        if value.ndim > 1 or (value.ndim == 1 and len(value) != B) or value.is_complex() or value.dtype == torch.bool:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)} and dtype {value.dtype}; give a number, "
                f"or a tensor () or ({B},) of numbers, one per item"
            )
        columns.append(value.to(device, dtype).expand(B))
    return torch.stack(columns, dim=1)
