"""Bands: the matches that a window or a mask allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array

WIDEST = 1 << 40
"""Maximum width in columns. No real problem is this wide, and products with larger numbers could overflow."""


def band(K: int, N: int, window: float) -> tuple[Array, Array]:
    """The columns that z_i may match under a Sakoe–Chiba window: start[i] ≤ j < stop[i].

    The window runs along the straight line between the corners, |j − i (N − 1)/(K − 1)| ≤ w. An int is w in columns;
    a float in [0, 1] is a fraction of N. A single row (K = 1) is the line itself and is not limited.

    >>> start, stop = band(3, 5, 1)
    >>> start.tolist(), stop.tolist()
    ([0, 1, 3], [2, 4, 5])
    """
    width = window_width(N, window)
    if K == 1:
        return np.zeros(1, np.int64), np.full(1, N)
    # In units of 1/(K − 1) columns the line has integer coordinates, so rounding cannot move a cell across the edge.
    center = np.arange(K) * (N - 1)
    reach = np.floor(width * (K - 1) + 1e-9)
    start = -((reach - center) // (K - 1))
    stop = (center + reach) // (K - 1) + 1
    return np.maximum(start, 0).astype(np.int64), np.minimum(stop, N).astype(np.int64)


def limits_of(mask: Array) -> tuple[Array, Array] | None:
    """Convert a mask to a band start[i] ≤ j < stop[i]; None if it does not have that form.

    Each row of a band is one unbroken run, and neither limit decreases from row to row.
    """
    start, count = mask.argmax(axis=1), np.count_nonzero(mask, axis=1)
    stop = mask.shape[1] - mask[:, ::-1].argmax(axis=1)
    unbroken = bool(count.all()) and bool((stop - start == count).all())
    if not unbroken or (np.diff(start) < 0).any() or (np.diff(stop) < 0).any():
        return None
    return start.astype(np.int64), stop.astype(np.int64)


def in_both(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """The intersection of two bands, which is a band too, with empty rows where they do not overlap."""
    start = np.maximum(a[0], b[0])
    return start, np.maximum(start, np.minimum(a[1], b[1]))


def window_width(N: Any, window: float) -> Any:
    """The half-width w of a window for N columns (N is a number, or a tensor of numbers)."""
    if isinstance(window, (int, np.integer)) and not isinstance(window, bool) and window >= 0:
        return min(int(window), WIDEST)
    if isinstance(window, (float, np.floating)) and 0 <= window <= 1:
        return float(window) * N
    raise OptionError(
        "window",
        window,
        "give an int ≥ 0 (columns on each side of the diagonal), a float in [0, 1] (a fraction of N)",
        in_python=", or None",
    )
