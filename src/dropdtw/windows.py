"""Masks (K, N) for `mask=` that reproduce the bands of other libraries cell by cell, for any two lengths.

`window=` is this library's band, around the straight line between the corners. Other libraries measure widths
differently, and their bands follow a different line if the lengths differ. Combine masks with `&` and `|`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from dropdtw.problem.band import band
from dropdtw.problem.inputs import Array

__all__ = ["itakura", "sakoe_chiba"]


def sakoe_chiba(K: int, N: int, width: float, *, kind: str = "dropdtw") -> Array:
    """Mark the pairs near the diagonal, as a mask for `mask=`.

    K, N : the lengths of Z and X.
    width : the distance from the diagonal, in the units of the library that `kind` names.
    kind : the library whose band to reproduce.
        "dropdtw": around the line between the corners, |j − i (N−1)/(K−1)| ≤ width. An int counts columns; a float in
        [0, 1] is a fraction of N. The same as `window=width`. A single z (K = 1) is not limited.
        "tslearn": `sakoe_chiba_radius`, an int ≥ 0: all cells between the diagonal through (0, 0) and the diagonal
        through (K−1, N−1), and `width` more cells on either side. For K = N this is |i − j| ≤ width.
        "dtaidistance": `window`, an int ≥ 1; the band of tslearn with a radius of width − 1.
        "librosa": `band_rad`, a fraction in [0, 1] of the shorter length, rounded to r; the band of tslearn with a
        radius of r − 1.
        "aeon": `window`, a fraction in [0, 1] of the shorter length, around the diagonal. aeon rounds the
        diagonal to whole cells.

    Returns (K, N) bool, True where z_i may match x_j. Raises ValueError if a length, the width or the kind is invalid.

    >>> from dropdtw import windows
    >>> windows.sakoe_chiba(3, 5, 1, kind="tslearn").astype(int)
    array([[1, 1, 1, 1, 0],
           [1, 1, 1, 1, 1],
           [0, 1, 1, 1, 1]])
    >>> windows.sakoe_chiba(3, 5, 1).astype(int)                # as window=1
    array([[1, 1, 0, 0, 0],
           [0, 1, 1, 1, 0],
           [0, 0, 0, 1, 1]])
    """
    return _chosen(_BANDS, kind)(*_lengths(K, N), width)


def itakura(K: int, N: int, max_slope: float | None = None, *, kind: str = "tslearn") -> Array:
    """Mark the pairs inside Itakura's parallelogram between the corners, as a mask for `mask=`.

    K, N : the lengths of Z and X.
    max_slope : the slope of the steep sides, in the units of the library that `kind` names. The slope of the flat sides
        is its inverse. None means 2.0 for "tslearn"; "aeon" has no default.
    kind : the library whose parallelogram to reproduce.
        "tslearn": `itakura_max_slope`, a number ≥ 1, in units of the diagonal's own slope.
        "aeon": `itakura_max_slope`, a fraction in (0, 1]. The slope is this fraction of the shorter length, rounded
        down: 0.5 for lengths of 20 is a slope of 10. It must be at least 1, and both lengths at least 3.

    Returns (K, N) bool, True where z_i may match x_j. Raises ValueError if a length, the slope or the kind is invalid.

    >>> from dropdtw import windows
    >>> windows.itakura(4, 4).astype(int)
    array([[1, 0, 0, 0],
           [0, 1, 1, 0],
           [0, 1, 1, 0],
           [0, 0, 0, 1]])
    """
    mark = _chosen(_PARALLELOGRAMS, kind)
    if max_slope is None and kind == "aeon":
        raise ValueError(
            "max_slope is None, but kind='aeon' has no default; give a fraction in (0, 1], like aeon's "
            "itakura_max_slope"
        )
    return mark(*_lengths(K, N), 2.0 if max_slope is None else max_slope)


def _window(K: int, N: int, width: float) -> Array:
    return _rows(N, *band(K, N, width))


def _between_diagonals(K: int, N: int, radius: int) -> Array:
    """Mark the pairs at most `radius` below the lower and above the upper of the two diagonals through the corners."""
    above = np.arange(N) - np.arange(K)[:, None]
    return (min(0, N - K) - radius <= above) & (above <= max(0, N - K) + radius)


def _tslearn(K: int, N: int, width: float) -> Array:
    return _between_diagonals(K, N, _count(width, 0, "the radius"))


def _dtaidistance(K: int, N: int, width: float) -> Array:
    return _between_diagonals(K, N, _count(width, 1, "the window") - 1)


def _librosa(K: int, N: int, width: float) -> Array:
    return _between_diagonals(K, N, int(np.round(_fraction(width) * min(K, N))) - 1)


def _aeon(K: int, N: int, width: float) -> Array:
    if K > N:
        return _aeon(N, K, width).T
    fraction = _fraction(width)
    if fraction == 1:
        return np.ones((K, N), bool)
    # A staircase of max(K, N) + 1 steps; each step marks the nearby rows in its column.
    along = np.arange(N + 1) / (N + 1)
    row, column = (np.floor(along * length).astype(np.int64) for length in (K, N))
    near = np.abs(np.arange(K) - row[:, None]) <= int(fraction * K)
    mask = np.zeros((N, K), bool)
    np.logical_or.at(mask, column, near)
    return mask.T


def _itakura_tslearn(K: int, N: int, max_slope: float) -> Array:
    if not _is_number(max_slope) or not 1 <= max_slope < np.inf:
        raise ValueError(f"max_slope is {max_slope!r}; give a number ≥ 1, like tslearn's itakura_max_slope")
    steep, flat = float(max_slope) * (K / N), 1 / float(max_slope) * (K / N)
    j = np.arange(N)
    first = np.ceil(np.maximum(np.round(flat * j, 2), np.round((K - 1) - steep * (N - 1) + steep * j, 2)))
    last = np.minimum(np.round(steep * j, 2), np.round((K - 1) - flat * (N - 1) + flat * j, 2))
    return _rows(K, first, np.floor(last + 1)).T


def _itakura_aeon(K: int, N: int, max_slope: float) -> Array:
    if not _is_number(max_slope) or not 0 < max_slope <= 1 or min(K, N) < 3:
        raise ValueError(
            f"max_slope is {max_slope!r} for {K} × {N}; give a fraction in (0, 1], like aeon's itakura_max_slope, "
            "and lengths of at least 3"
        )
    slope = np.floor(max_slope * (min(K, N) / 100) * 100)
    if slope < 1:
        raise ValueError(
            f"max_slope is {max_slope!r}, which is less than one element of {min(K, N)}; "
            f"give at least {1 / min(K, N):.2g}"
        )
    steep, flat = max(slope * ((N - 1) / (K - 2)), 1.0), min(1 / slope * ((N - 2) / (K - 1)), 1.0)
    i, back = np.arange(K), np.arange(K) - K + 1
    first = np.ceil(np.maximum(np.round(flat * i, 2), np.round(steep * back + N - 1, 2)))
    stop = np.floor(np.minimum(np.round(steep * i + 1, 2), np.round(flat * back + N, 2)))
    if steep == 1:  # only where K > N: one pair per row
        stop = first + 1
    return _rows(N, np.clip(first, 0, N), np.clip(stop, 0, N))


_BANDS: Final[dict[str, Callable[[int, int, float], Array]]] = {
    "dropdtw": _window,
    "tslearn": _tslearn,
    "dtaidistance": _dtaidistance,
    "librosa": _librosa,
    "aeon": _aeon,
}
_PARALLELOGRAMS: Final[dict[str, Callable[[int, int, float], Array]]] = {
    "tslearn": _itakura_tslearn,
    "aeon": _itakura_aeon,
}


def _rows(N: int, start: Array, stop: Array) -> Array:
    """Return the mask whose row i is True for start[i] ≤ j < stop[i]."""
    j = np.arange(N)
    return np.asarray((start[:, None] <= j) & (j < stop[:, None]))


def _chosen(kinds: dict[str, Callable[[int, int, float], Array]], kind: str) -> Callable[[int, int, float], Array]:
    if kind not in kinds:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(map(repr, kinds))}")
    return kinds[kind]


def _lengths(K: int, N: int) -> tuple[int, int]:
    for name, length in (("K", K), ("N", N)):
        if not isinstance(length, (int, np.integer)) or isinstance(length, bool) or length < 1:
            raise ValueError(f"{name} is {length!r}; give the length of a sequence, an int ≥ 1")
    return int(K), int(N)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _count(width: float, least: int, name: str) -> int:
    if not isinstance(width, (int, np.integer)) or isinstance(width, bool) or width < least:
        raise ValueError(f"width is {width!r}; give {name} as an int ≥ {least}")
    return int(width)


def _fraction(width: float) -> float:
    if not _is_number(width) or not 0 <= width <= 1:
        raise ValueError(f"width is {width!r}; give a fraction of the shorter length, from 0 to 1")
    return float(width)
