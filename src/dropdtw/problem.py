"""What an executor is given and what it gives back: the seam between the API and every executor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dropdtw.arrays import Array


class Costs(NamedTuple):
    """What one alignment pays: match costs (K, N), drop costs (N,) and (K,), and where it may match.

    `band` is None or (start, stop), two (K,) integer arrays: z_i may match x_j only for start[i] ≤ j < stop[i].
    """

    match: Array
    drop_x: Array
    drop_z: Array
    band: tuple[Array, Array] | None = None

    def banded(self) -> Array:
        """The match costs with +∞ outside the band."""
        if self.band is None:
            return self.match
        j = np.arange(self.match.shape[1])
        start, stop = (limit[:, None] for limit in self.band)
        return np.where((start <= j) & (j < stop), self.match, np.inf).astype(self.match.dtype)


class Result(NamedTuple):
    """The value, and its derivatives by `Costs.match`, `Costs.drop_x` and `Costs.drop_z`: empty unless asked for."""

    value: float
    match: Array = np.empty(0)
    drop_x: Array = np.empty(0)
    drop_z: Array = np.empty(0)


class Trace(NamedTuple):
    """A best alignment: its value, its pairs (L, 2), and how often each x_j and z_i is paid for as dropped."""

    value: float
    pairs: Array
    drop_x: Array
    drop_z: Array


def band(K: int, N: int, window: float) -> tuple[Array, Array]:
    """Where z_i may match under a Sakoe–Chiba window: columns start[i] ≤ j < stop[i].

    The window runs along the straight line between the corners, |j − i (N − 1)/(K − 1)| ≤ w. An int is w, a count of
    columns; a float in (0, 1] is a share of N. One row (K = 1) is the line itself and is not limited.

    >>> start, stop = band(3, 5, 1)
    >>> start.tolist(), stop.tolist()
    ([0, 1, 3], [2, 4, 5])
    """
    width = _width(N, window)
    if K == 1:
        return np.zeros(1, np.int64), np.full(1, N)
    # In units of 1/(K − 1) columns the line is integral: no rounding decides whether a cell is inside.
    centre = np.arange(K) * (N - 1)
    reach = np.floor(width * (K - 1) + 1e-9)
    start = -((reach - centre) // (K - 1))
    stop = (centre + reach) // (K - 1) + 1
    return np.maximum(start, 0).astype(np.int64), np.minimum(stop, N).astype(np.int64)


def _width(N: int, window: float) -> float:
    if isinstance(window, (int, np.integer)) and not isinstance(window, bool) and window >= 0:
        return int(window)
    if isinstance(window, (float, np.floating)) and 0 < window <= 1:
        return float(window) * N
    raise ValueError(
        f"window is {window!r}; give an int ≥ 0 (columns on each side of the diagonal), "
        "a float in (0, 1] (a share of N), or None"
    )
