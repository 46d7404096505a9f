"""Small calls: two plain arrays of numbers or short vectors go straight to the compiled kernels.

A request is checked once and kept as a *door* (`_cpp.Door`); after that a call looks at its two arrays and solves them.
Whatever is not plain (lists, other precisions, rules, values that are not finite) goes the general way, which gives the
same answer, or says what is wrong.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from dropdtw.drops import Constant, Rule
from dropdtw.executors.emit import locate
from dropdtw.executors.protocol import Trace
from dropdtw.problem.charges import Charges
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec

try:
    import dropdtw._cpp as _cpp
except ImportError:
    _cpp = None  # type: ignore[assignment]

_METRICS = {"auto": (2, 0), "euclidean": (2, 2), "sqeuclidean": (1, 1)}
"""How kernels number the match cost of numbers, and that of vectors; 0: they cannot compute it."""

LARGEST = 1e37
"""Prices below this fit into every precision."""

CELLS = 1 << 16
"""The largest K · N; `quick.hpp` has the same."""


@lru_cache(maxsize=512, typed=True)
def _door(*request: Any) -> tuple[_cpp.Door, Spec] | None:
    """A door for what `Spec.of` takes first and what it charges; None where there is none."""
    *first, open_x, open_z, warp = request
    spec = Spec.of(*first, open_x=open_x, open_z=open_z, warp=warp)
    place = locate(spec.table)
    metrics = _METRICS.get(spec.match) if isinstance(spec.match, str) else None
    prices = [*map(_price, (spec.drop_x, spec.drop_z)), *(None if isinstance(c, str) else c for c in spec.charges)]
    plain = [p for p in prices if p is not None and (p == np.inf or abs(p) < LARGEST)]
    anything_fits = spec.method.slopes is None and spec.fits(1, 2) and spec.fits(2, 1)
    alike = spec.table.weights <= {1.0} and not spec.method.edits
    if _cpp is None or place is None or metrics is None or len(plain) < len(prices) or not (anything_fits and alike):
        return None
    drop_x, drop_z, *charges = plain
    return _cpp.Door(*place, *metrics, drop_x, drop_z, tuple(charges)), spec


def _price(rule: Rule | None) -> float | None:
    """The one drop cost of a side, +∞ where it drops nothing; None where there is no such number."""
    if rule is None:
        return np.inf
    return rule.plain() if isinstance(rule, Constant) else None


def _open(Z: Any, X: Any, request: tuple[Any, ...]) -> tuple[_cpp.Door, Spec] | None:
    if type(Z) is not np.ndarray or type(X) is not np.ndarray:
        return None
    try:
        return _door(*request)
    except TypeError:  # what cannot be hashed, such as a drop cost per element
        return None


def value(Z: Any, X: Any, limit: float, *request: Any) -> float | None:
    """The hard value, +∞ where it exceeds the limit; None where the general way has to be gone."""
    door = _open(Z, X, request)
    if door is None:
        return None
    try:
        found: float = door[0].value(Z, X, limit)
    except TypeError:  # other arrays than kernels take
        return None
    if found != found:
        return None
    return found if found <= limit else np.inf


def trace(Z: Any, X: Any, *request: Any) -> tuple[Trace, Array, tuple[int, int], str, Any] | None:
    """A best alignment, its labels, its shape, its method, and what makes its problem; None as in `value`."""
    door = _open(Z, X, request)
    if door is None or not Z.ndim or not X.ndim:
        return None
    K, N = len(Z), len(X)
    if K * N > CELLS:
        return None
    out = np.empty(3 * (K + N) + N, np.int64)
    try:
        found, length, *charged = door[0].path(Z, X, out)
    except TypeError:
        return None
    if not found < np.inf:  # NaN, or no alignment: the general way says why
        return None
    spec = door[1]
    pairs = out[2 * N + K : 2 * N + K + 2 * length].reshape(length, 2)
    traced = Trace(found, pairs, out[N : 2 * N], out[2 * N : 2 * N + K], None, Charges(*charged))
    return traced, out[:N], (K, N), spec.method.name, partial(Problem.of_sequences, spec, Z.copy(), X.copy())
