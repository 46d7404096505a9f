"""Softmax costs (paper Eq. 4) of similarities S (B, K, N), and their derivatives: one kernel each.

Sums run over tiles of R rows in a fixed order that does not depend on K, so padding does not change a single bit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import as_bits, jit, launch, wide
from dropdtw.executors.triton.rows import length_of

ROWS, COLUMNS = 16, 64


@triton.jit
def _finite(a):
    """Replace ±∞ by 0, so that differences from it are not NaN."""
    return tl.where(tl.abs(a) < float("inf"), a, 0.0)


@triton.jit
def _add_logs(a, b):
    """Compute log(e^a + e^b)."""
    base = _finite(tl.maximum(a, b))
    return base + tl.log(tl.exp(a - base) + tl.exp(b - base))


@triton.jit
def _drop_logit(own, level, b, N, j, inside, scale):
    """Compute the drop logit of each column: `own` (B, N), `level` (B,), or their sum."""
    found = tl.zeros(j.shape, scale.dtype)
    if own is not None:
        found = tl.load(own + b * N + j, mask=inside, other=0.0)
    if level is not None:
        found += tl.load(level + b)
    return found * scale


@jit("S first own level z_len x_len C drop total", "K N scale_bits epsilon_bits")
def softmax_forward(
    S, first, own, level, z_len, x_len, C, drop, total, K, N, scale_bits, epsilon_bits,
    DROPS: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Each program writes W columns of C; with DROPS also the drop costs, and log Σ exp for the backward pass."""
    INF: tl.constexpr = float("inf")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    scale = scale_bits.to(tl.float64, bitcast=True).to(DT)
    epsilon = epsilon_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    Kb = length_of(z_len, b, K)
    j = tl.program_id(1) * W + tl.arange(0, W)
    inside = j < length_of(x_len, b, N)
    S += b * K * N
    first += b * K
    top = tl.full([W], -INF, DT)
    for start in range(0, Kb, R):
        i = start + tl.arange(0, R)
        counted = (i < Kb) & (tl.load(first + i, mask=i < Kb, other=-1) == i)
        place = i.to(tl.int64)[:, None] * N + j[None, :]
        top = tl.maximum(top, tl.max(tl.load(S + place, mask=counted[:, None] & inside[None, :], other=-INF), 0))
    top = _finite(top * scale)
    powers = tl.zeros([W], DT)
    for start in range(0, Kb, R):
        i = start + tl.arange(0, R)
        counted = (i < Kb) & (tl.load(first + i, mask=i < Kb, other=-1) == i)
        place = i.to(tl.int64)[:, None] * N + j[None, :]
        s = tl.load(S + place, mask=counted[:, None] & inside[None, :], other=-INF)
        powers += tl.sum(tl.exp(s * scale - top[None, :]), 0)
    whole = top + tl.log(powers)
    if DROPS:
        logit = _drop_logit(own, level, b, N, j, inside, scale)
        whole = _add_logs(whole, logit)
        tl.store(drop + b * N + j, -tl.log(tl.exp(logit - whole) + epsilon), mask=inside)
        tl.store(total + b * N + j, whole, mask=inside)
    for start in range(0, Kb, R):
        i = start + tl.arange(0, R)
        there = (i < Kb)[:, None] & inside[None, :]
        like = tl.load(first + i, mask=i < Kb, other=0)
        s = tl.load(S + like.to(tl.int64)[:, None] * N + j[None, :], mask=there, other=0.0) * scale
        c = whole[None, :] - s
        if DROPS:
            c = -tl.log(tl.exp(-c) + epsilon)
        tl.store(C + b * K * N + i.to(tl.int64)[:, None] * N + j[None, :], c, mask=there)


@triton.jit
def _share(S, C, at, there, whole, scale, epsilon, DROPS: tl.constexpr):
    """Return the probability p of a row, and the derivative of log(p + ε) with respect to log p; 0 outside the item."""
    if DROPS:
        p = tl.exp(tl.load(S + at, mask=there, other=0.0) * scale - whole)
        return tl.where(there, p, 0.0), tl.where(there, p / (p + epsilon), 0.0)
    else:
        p = tl.exp(-tl.load(C + at, mask=there, other=0.0))
        return tl.where(there, p, 0.0), 1.0


@jit("by_c by_drop S C total first after own level z_len x_len by_s by_own", "K N scale_bits epsilon_bits")
def softmax_backward(
    by_c, by_drop, S, C, total, first, after, own, level, z_len, x_len, by_s, by_own,
    K, N, scale_bits, epsilon_bits, DROPS: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Each program writes W columns of the derivative with respect to S and, with DROPS, to `own`."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    scale = scale_bits.to(tl.float64, bitcast=True).to(DT)
    epsilon = epsilon_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    Kb = length_of(z_len, b, K)
    j = tl.program_id(1) * W + tl.arange(0, W)
    inside = j < length_of(x_len, b, N)
    first += b * K
    after += b * K
    by_c += b * K * N
    by_s += b * K * N
    if DROPS:
        S += b * K * N
    else:
        C += b * K * N
    whole = tl.zeros([W], DT)
    if DROPS:
        whole = tl.load(total + b * N + j, mask=inside, other=0.0)
    flow = tl.zeros([W], DT)  # derivative of log Σ exp, from all costs of a column
    for start in range(0, Kb, R):
        i = start + tl.arange(0, R)
        there = (i < Kb)[:, None] & inside[None, :]
        g = tl.load(by_c + i.to(tl.int64)[:, None] * N + j[None, :], mask=there, other=0.0)
        like = tl.load(first + i, mask=i < Kb, other=0).to(tl.int64)[:, None] * N + j[None, :]
        if DROPS:
            _, slope = _share(S, C, like, there, whole[None, :], scale, epsilon, DROPS)
            g = g * slope
        flow += tl.sum(g, 0)
    if DROPS:
        chance = tl.exp(_drop_logit(own, level, b, N, j, inside, scale) - whole)
        passed = tl.load(by_drop + b * N + j, mask=inside, other=0.0) * (chance / (chance + epsilon))
        flow += passed
        if by_own is not None:
            tl.store(by_own + b * N + j, tl.where(inside, (chance * flow - passed) * scale, 0.0), mask=j < N)
    for start in range(0, K, R):
        i = start + tl.arange(0, R)
        counted = (i < Kb) & (tl.load(first + i, mask=i < Kb, other=-1) == i)
        there = counted[:, None] & inside[None, :]
        at = i.to(tl.int64)[:, None] * N + j[None, :]
        g = tl.load(by_c + at, mask=there, other=0.0)
        more = tl.load(after + i, mask=counted, other=-1)
        while tl.max(more, 0) >= 0:  # later rows of the same kind add to their first
            later = more.to(tl.int64)[:, None] * N + j[None, :]
            g += tl.load(by_c + later, mask=(more >= 0)[:, None] & inside[None, :], other=0.0)
            more = tl.load(after + more, mask=more >= 0, other=-1)
        p, slope = _share(S, C, at, there, whole[None, :], scale, epsilon, DROPS)
        found = (p * flow[None, :] - g * slope) * scale
        tl.store(by_s + at, tl.where(there, found, 0.0), mask=(i < K)[:, None] & (j < N)[None, :])


EPSILON = 1e-5
"""Added to probabilities if a drop logit competes, as in `costs.softmax_with_drop`."""


def costs(
    S: Tensor,
    first: Tensor,
    gamma: float,
    own: Tensor | None,
    level: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Compute C (B, K, N) and, with a drop logit own (B, N) + level (B,), drop costs and log Σ exp, (B, N) each."""
    B, K, N = S.shape
    C = torch.empty_like(S)
    drops = own is not None or level is not None
    drop, total = (torch.empty(B, N, dtype=S.dtype, device=S.device) if drops else None for _ in range(2))
    tensors = (S, first, own, level, z_lengths, x_lengths, C, drop, total)
    bits = (as_bits(1.0 / gamma), as_bits(EPSILON))
    constants = (drops, wide(S), ROWS, COLUMNS)
    launch(softmax_forward, (B, -(-N // COLUMNS)), tensors, (K, N), constants, 4, bits)
    return C, drop, total


def costs_back(
    by_c: Tensor,
    by_drop: Tensor | None,
    S: Tensor | None,
    C: Tensor | None,
    total: Tensor | None,
    first: Tensor,
    after: Tensor,
    gamma: float,
    own: Tensor | None,
    level: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Compute the derivatives with respect to S and `own` from those with respect to C and the drop costs.

    S, total : given if a drop logit competes; C : given if none does.
    """
    B, K, N = by_c.shape
    by_s = torch.empty_like(by_c)
    by_own = None if own is None else torch.empty_like(own)
    tensors = (by_c, by_drop, S, C, total, first, after, own, level, z_lengths, x_lengths, by_s, by_own)
    bits = (as_bits(1.0 / gamma), as_bits(EPSILON))
    constants = (total is not None, wide(by_c), ROWS, COLUMNS)
    launch(softmax_backward, (B, -(-N // COLUMNS)), tensors, (K, N), constants, 4, bits)
    return by_s, by_own
