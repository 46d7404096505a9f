"""Match costs by the compiled kernel, at about the speed of a matrix product; None where nothing is compiled."""

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
"""Products K · N · d from which threads share the work."""


def match_costs(metric: str, Z: Array, X: Array, scale: Array | None = None) -> Array | None:
    """C (K, N) of two checked sequences of one precision.

    Each cost is a sum over the features in their order, whatever the rest of C.

    scale : (N,) for "cosine", of unit vectors Z: what makes the rows of X unit vectors. None: they are.
    """
    if _cpp is None:
        return None
    C = np.empty((len(Z), len(X)), Z.dtype)
    threads = _threads() if C.size * Z.shape[1] >= LARGE else 1
    _cpp.match_costs(_METRIC[metric], np.ascontiguousarray(Z), np.ascontiguousarray(X), scale, threads, C)
    return C


def row_lengths(A: Array) -> Array | None:
    """The Euclidean lengths of the rows: 0 where squares vanish, +∞ where they overflow."""
    if _cpp is None:
        return None
    out = np.empty(len(A), A.dtype)
    _cpp.row_lengths(np.ascontiguousarray(A), out)
    return out


def _threads() -> int:
    """As many as a matrix product would take: all cores, unless the environment says otherwise."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        said = os.environ.get(name, "")
        if said.isdecimal() and int(said) > 0:
            return min(cores, int(said))
    return cores
