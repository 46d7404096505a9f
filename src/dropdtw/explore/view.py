"""Data to draw: matrices downsampled to screen size, and curves that summarize the sequences."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dropdtw.problem.inputs import Array

FORBIDDEN: Final = 255
"""The gray level of a match that costs +∞."""

BINS: Final = 60


def blocks(n: int, most: int) -> Array:
    """The starts of at most `most` blocks of nearly equal length that partition n elements."""
    count = min(n, most)
    return np.arange(count) * n // count


def drawn_shape(shape: tuple[int, int], cells: int) -> tuple[int, int]:
    """Rows and columns of the drawn matrix: at most `cells` cells, no more than in `shape`; long sides shrink first.

    >>> drawn_shape((200, 2000), 1 << 22), drawn_shape((3000, 4000), 1 << 20), drawn_shape((2, 10**7), 1 << 20)
    ((200, 2000), (1024, 1024), (2, 524288))
    """
    K, N = shape
    side = int(cells**0.5)
    rows = min(K, max(side, cells // N))
    return rows, min(N, cells // rows)


def pooled(A: Array, cells: int, function: np.ufunc) -> Array:
    """Downsample a matrix to at most `cells` cells, each the minimum or maximum of a block."""
    rows, columns = drawn_shape((A.shape[0], A.shape[1]), cells)
    if rows < A.shape[0]:
        A = function.reduceat(A, blocks(A.shape[0], rows), axis=0)
    if columns < A.shape[1]:
        A = function.reduceat(A, blocks(A.shape[1], columns), axis=1)
    return A


def gray(C: Array, cells: int) -> tuple[Array, float, float]:
    """Match costs as bytes, with the costs `low` and `high` that are drawn as 0 and 254; +∞ is `FORBIDDEN`.

    A block of cells shows its lowest cost. The scale ignores the extreme half percent at either end.
    """
    small = pooled(C, cells, np.minimum)
    finite = small[np.isfinite(small)].astype(np.float64)
    low, high = (float(np.percentile(finite, p)) for p in (0.5, 99.5)) if finite.size else (0.0, 1.0)
    high = high if high > low else low + 1.0
    level = np.clip((np.where(np.isfinite(small), small, low) - low) / (high - low), 0, 1) * 254
    return np.where(np.isfinite(small), np.rint(level), FORBIDDEN).astype(np.uint8), low, high


def histogram(C: Array) -> dict[str, Any]:
    """Histograms of all match costs and of the best match cost of each x."""
    finite = C[np.isfinite(C)]
    if not finite.size:
        return {"low": 0.0, "high": 1.0, "all": [], "best": []}
    low, high = float(finite.min()), float(finite.max())
    best = C.min(axis=0)
    edges = (low, high if high > low else low + 1.0)
    return {
        "low": low,
        "high": high,
        "all": np.histogram(finite, BINS, edges)[0].tolist(),
        "best": np.histogram(best[np.isfinite(best)], BINS, edges)[0].tolist(),
    }


def curves(Z: Array | None, X: Array | None, C: Array | None, points: int = 2000) -> dict[str, Any]:
    """Up to three curves per sequence, in shared coordinates, with a description of all and a name for each."""
    if Z is None or X is None:
        assert C is not None
        z, x, what = C.min(axis=1)[:, None], C.min(axis=0)[:, None], "cost of the best match"
        parts = [what]
    elif Z.shape[1] <= 3:
        z, x, what = Z, X, "value" if Z.shape[1] == 1 else f"{Z.shape[1]} dimensions"
        parts = [what] if Z.shape[1] == 1 else [f"dimension {k}" for k in range(Z.shape[1])]
    else:
        z, x = _principal(Z, X)
        what = f"3 principal components of {Z.shape[1]} dimensions"
        parts = [f"component {k}" for k in range(1, 4)]
    return {"what": what, "parts": parts, "z": _thinned(z, points), "x": _thinned(x, points)}


def _principal(Z: Array, X: Array) -> tuple[Array, Array]:
    """Both sequences projected onto their joint principal components."""
    both = np.concatenate([Z, X]).astype(np.float64)
    center, scale = both.mean(axis=0), float(np.abs(both).max()) or 1.0
    # About 2,000 elements and the first 256 features are enough for a sketch.
    some = (both[:: max(1, len(both) // 2048), :256] - center[:256]) / scale
    axes = np.linalg.eigh(some.T @ some)[1][:, ::-1][:, :3]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    width = len(axes)
    z, x = (((A[:, :width] - center[:width]) / scale) @ axes for A in (Z, X))
    return z, x


def _thinned(A: Array, points: int) -> list[list[float | None]]:
    """The columns as lists of at most `points` block means, None where the mean is not finite."""
    starts = blocks(len(A), points)
    with np.errstate(invalid="ignore", over="ignore"):
        means = np.add.reduceat(A.astype(np.float64), starts) / np.diff(np.r_[starts, len(A)])[:, None]
    return [[float(f"{v:.5g}") if np.isfinite(v) else None for v in column] for column in means.T]
