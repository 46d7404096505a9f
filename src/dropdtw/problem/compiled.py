"""Match costs from the compiled kernel, about as fast as a matrix product. Functions return None if it is missing."""

from __future__ import annotations

import os

import numpy as np

from dropdtw.problem.inputs import Array

try:
    import dropdtw._cpp as _cpp
except ImportError:
    _cpp = None  # type: ignore[assignment]

_METRIC = {"sqeuclidean": 1, "euclidean": 2, "cosine": 3}

LARGE = 1 << 26
"""Minimum K · N · d for using several threads."""


def match_costs(metric: str, Z: Array, X: Array, scale: Array | None = None) -> Array | None:
    """C (K, N) of two validated sequences of equal precision.

    Each cost is summed over the features in order, so it does not depend on the other rows and columns.

    scale : (N,), for "cosine" with unit vectors Z: factors that turn the rows of X into unit vectors. None if they are
        unit vectors already.
    """
    if _cpp is None:
        return None
    C = np.empty((len(Z), len(X)), Z.dtype)
    threads = _threads() if C.size * Z.shape[1] >= LARGE else 1
    _cpp.match_costs(_METRIC[metric], np.ascontiguousarray(Z), np.ascontiguousarray(X), scale, threads, C)
    return C


def row_lengths(A: Array) -> Array | None:
    """The Euclidean lengths of the rows: 0 where squares underflow, +∞ where they overflow."""
    if _cpp is None:
        return None
    out = np.empty(len(A), A.dtype)
    _cpp.row_lengths(np.ascontiguousarray(A), out)
    return out


def _threads() -> int:
    """The number of threads of a matrix product: all cores, unless an environment variable limits them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        said = os.environ.get(name, "")
        if said.isdecimal() and int(said) > 0:
            return min(cores, int(said))
    return cores
