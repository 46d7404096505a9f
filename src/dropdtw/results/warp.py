"""Resample one sequence on the time axis of another: the mean of the elements that each element matches."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from dropdtw.problem.inputs import Array, as_floats


def warp(
    values: npt.ArrayLike, name: str, pairs: Array, shape: tuple[int, ...], fill: float | Literal["linear"]
) -> Array:
    """The mean of the `values` (shape[0], …) paired with each of the shape[1] targets."""
    A = as_floats(values, name)
    n, m = shape
    if A.ndim == 0 or len(A) != n:
        raise ValueError(f"{name} has shape {A.shape}, but {n} elements were aligned; give {name} as it was aligned")
    if isinstance(fill, str) and fill != "linear":
        raise ValueError(f"fill is {fill!r}; give a number for dropped elements, or 'linear' to interpolate")
    source, target = np.unique(pairs, axis=0).T  # a repeated z may match the same x twice
    total = np.zeros((m, *A.shape[1:]))
    np.add.at(total, target, A[source])
    count = np.bincount(target, minlength=m)
    have = count > 0
    out = np.full(total.shape, np.nan if fill == "linear" else fill, np.float64)
    out[have] = total[have] / count[have].reshape(-1, *[1] * (A.ndim - 1))
    if fill == "linear" and have.any():
        flat = out.reshape(m, -1)
        for column in flat.T:
            column[~have] = np.interp(np.flatnonzero(~have), np.flatnonzero(have), column[have])
    return out
