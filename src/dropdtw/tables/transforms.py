"""How methods transform the given costs. Works on arrays and tensors: `costs.xp` is NumPy or PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np


def counts(xp: Any, match: Any, threshold: Any) -> Any:
    """LCSS: a pair up to the threshold costs −1. All other pairs are forbidden, and so are pairs that cost +∞."""
    near = (match <= threshold) & (match < np.inf)
    return xp.where(near, xp.full_like(match, -1), xp.full_like(match, np.inf))


def greedy(costs: Any) -> Any:
    """Decide the drops first: an element is dropped if every match costs more than dropping it; others must match."""
    xp, match = costs.xp, costs.banded()
    never = xp.full_like(match, np.inf)
    lost_x = xp.amin(match, axis=-2) > costs.drop_x
    lost_z = xp.amin(match, axis=-1) > costs.drop_z
    return costs.with_match(xp.where(lost_x[..., None, :] | lost_z[..., :, None], never, costs.matrix))._replace(
        drop_x=xp.where(lost_x, costs.drop_x, never[..., 0, :]),
        drop_z=xp.where(lost_z, costs.drop_z, never[..., :, 0]),
    )


def gates(costs: Any, ids: Any = None) -> Any:
    """CTC: what z_i pays to follow z_{i−1} at once, as its drop cost: +∞ if both are the same, 0 otherwise.

    ids : (K,) or (B, K), equal for the same z. None: z with equal match costs are the same.
    """
    xp, C = costs.xp, costs.matrix
    if ids is not None:
        equal = ids[..., 1:] == ids[..., :-1]
    else:
        differ = C[..., 1:, :] != C[..., :-1, :]
        if costs.lengths is not None:
            differ = differ & (_count(xp, C[:, :1], -1) <= costs.lengths[1][:, None, None])
        equal = ~differ.any(-1)
    free = xp.zeros_like(costs.drop_z)
    later = xp.where(equal, xp.full_like(free[..., 1:], np.inf), free[..., 1:])
    return costs._replace(drop_z=xp.concatenate([free[..., :1], later], -1))


def weigh(costs: Any, g: float) -> Any:
    """WDTW: the match costs times 1 / (1 + exp(−g (|i − j| − n/2))), where n is the longer length."""
    xp, C = costs.xp, costs.matrix
    apart = xp.abs(_count(xp, C[..., :, :1], -2) - _count(xp, C[..., :1, :], -1))
    if (lengths := getattr(costs, "lengths", None)) is not None:
        weight = _weights(xp, g, apart, xp.maximum(*lengths)[:, None, None])
    else:  # compute the max(K, N) distinct weights once, and index them by |i − j|
        K, N = C.shape[-2:]
        first = C[(0,) * (C.ndim - 2)]
        weight = _weights(xp, g, _count(xp, first[:, 0] if K > N else first[0], -1) - 1, max(K, N))[apart]
    finite = np.inf > C
    return costs.with_match(xp.where(finite, xp.where(finite, C, 0.0) * xp.asarray(weight, dtype=C.dtype), C))


def _count(xp: Any, like: Any, axis: int) -> Any:
    """1, 2, … along an axis."""
    return xp.cumsum(xp.ones_like(like, dtype=xp.int64), axis)


def _weights(xp: Any, g: float, apart: Any, longest: Any) -> Any:
    """1 / (1 + e^−u) for u = g (apart − longest/2), computed as e^min(u, 0) / (1 + e^−|u|), which cannot overflow."""
    u = g * (xp.asarray(apart, dtype=xp.float64) - longest / 2)
    return xp.exp((u - xp.abs(u)) / 2) / (1 + xp.exp(-xp.abs(u)))


def differs(xp: Any, match: Any, threshold: Any) -> Any:
    """EDR: a pair costs 0 up to the threshold and 1 above it; a cost of +∞ stays forbidden."""
    either = xp.where(match <= threshold, xp.zeros_like(match), xp.ones_like(match))
    return xp.where(match < np.inf, either, match)


def slopes(A: Any) -> Any:
    """Keogh and Pazzani's derivative, ((a_i − a_{i−1}) + (a_{i+1} − a_{i−1}) / 2) / 2; the ends copy their neighbor."""
    back, forth = A[1:-1] - A[:-2], (A[2:] - A[:-2]) / 2
    return np.pad((back + forth) / 2, ((1, 1), (0, 0)), mode="edge")


def without_ends(costs: Any) -> Any:
    """DDTW: the first and the last element have no derivative, so they match nothing and are dropped for free."""
    C = costs.matrix.copy()
    C[[0, -1]] = C[:, [0, -1]] = np.inf
    x, z = np.full_like(costs.drop_x, np.inf), np.full_like(costs.drop_z, np.inf)
    x[[0, -1]] = z[[0, -1]] = 0
    return costs.with_match(C)._replace(drop_x=x, drop_z=z)


def too_short(K: int, N: int) -> str | None:
    """DDTW: why sequences of these lengths have no derivatives; None if they have."""
    return None if min(K, N) >= 3 else f"Z has {K} elements and X has {N}, but derivatives need at least 3 in each"
