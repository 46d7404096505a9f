"""A fast path for small calls: two plain arrays of numbers or short vectors go straight to the compiled kernels.

A request is checked once and kept as a `_cpp.QuickRequest`. Later calls only check their two arrays and solve them. All
other input (lists, other precisions, rules, values that are not finite) takes the general path, which gives the
same result or raises an error that explains the problem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dropdtw.drops import lowered
from dropdtw.executors.protocol import Trace
from dropdtw.problem.charges import Charges
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec

try:
    import dropdtw._cpp as _cpp
    from dropdtw.executors.cpu import compiled
except ImportError:
    _cpp = None  # type: ignore[assignment]

_METRICS = {"auto": (2, 2), "euclidean": (2, 2), "sqeuclidean": (1, 1)}
"""The kernels' codes of the match cost of numbers and of vectors. They take few features, where "auto" is Euclidean."""

LARGEST = 1e37
"""Prices below this fit into every precision."""

CELLS = 1 << 16
"""The largest K · N; keep it equal to the limit in `quick.hpp`."""


def request(spec: Spec) -> _cpp.QuickRequest | None:
    """Return a request for hard minima in the form that the kernels keep; None if the fast path does not apply."""
    general = (spec.window, spec.mask, spec.threshold, spec.order, spec.missing, spec.executor, spec.per, spec.anchors)
    table = compiled(spec.table) if _cpp is not None else None
    metrics = _METRICS.get(spec.match) if isinstance(spec.match, str) else None
    drops = [lowered(rule) for rule in (spec.drop_x, spec.drop_z)]
    prices = [d.number if d.kind == "number" else None for d in drops]
    prices += [None if isinstance(c, str) else c for c in spec.charges]
    small = [p for p in prices if p is not None and (p == np.inf or abs(p) < LARGEST)]
    anything_fits = spec.method.slopes is None and spec.fits(1, 2) and spec.fits(2, 1)
    alike = spec.table.weights <= {1.0} and not spec.method.edits
    simple = all(option is None for option in general) and anything_fits and alike
    if not simple or table is None or metrics is None or len(small) < len(prices):
        return None
    drop_x, drop_z, *charges = small
    return _cpp.QuickRequest(*table, *metrics, drop_x, drop_z, tuple(charges))


def value(request: _cpp.QuickRequest, Z: Any, X: Any, limit: float) -> float | None:
    """Compute the hard value, +∞ if it exceeds the limit; None if the general path must run."""
    if type(Z) is not np.ndarray or type(X) is not np.ndarray:
        return None
    try:
        found: float = request.value(Z, X, limit)
    except TypeError:  # arrays that the kernels do not support
        return None
    if found != found:
        return None
    return found if found <= limit else np.inf


def trace(
    request: _cpp.QuickRequest, spec: Spec, Z: Any, X: Any
) -> tuple[Trace, Array, tuple[int, int], Spec, Callable[[], Problem]] | None:
    """Return an optimal alignment, its labels, shape and request, and a function that builds its problem.

    None if the general path must run.
    """
    if type(Z) is not np.ndarray or type(X) is not np.ndarray or not Z.ndim or not X.ndim:
        return None
    K, N = len(Z), len(X)
    if K * N > CELLS:
        return None
    out = np.empty(3 * (K + N) + N, np.int64)
    try:
        found, length, *charged = request.path(Z, X, out)
    except TypeError:
        return None
    if not found < np.inf:  # NaN, or no alignment: the general path explains why
        return None
    pairs = out[2 * N + K : 2 * N + K + 2 * length].reshape(length, 2)
    traced = Trace(found, pairs, out[N : 2 * N], out[2 * N : 2 * N + K], None, Charges(*charged))
    return traced, out[:N], (K, N), spec, partial(Problem.of_sequences, spec, Z.copy(), X.copy())
