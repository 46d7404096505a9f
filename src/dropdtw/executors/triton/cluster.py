"""L_clust of similarities S = Z Xᵀ (B, K, N): two kernels for value and derivative.

With A = softmax over j of S / γ, the pooled frames are X̂ = A X, so that their products with the steps are
T = X̂ Zᵀ = A Sᵀ: the loss depends on S alone. Let G be its derivative with respect to T. Then the one with respect to S
is Gᵀ A + A ∘ (G S − h) / γ, where h_i = Σ_k G_ik T_ik. Only rows that are the first of their kind count.

Sums run over tiles of R rows and W columns in a fixed order that does not depend on K and N, so padding does not change
a single bit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import as_bits, jit, launch, wide
from dropdtw.executors.triton.rows import length_of

ROWS = 16


@triton.jit
def _product(a, b, WIDE: tl.constexpr):
    """A bᵀ of tiles [R, W] and [Q, W]."""
    if WIDE:
        return tl.sum(a[:, None, :] * b[None, :, :], 2)
    else:
        return tl.dot(a, tl.trans(b), input_precision="ieee")


@triton.jit
def _is_first(first, i, K):
    return (i < K) & (tl.load(first + i, mask=i < K, other=-1) == i)


@triton.jit
def _shares(S, whole, i, j, there, N, scale):
    """Return entries of S and of A = exp(S / γ − whole); 0 outside the item."""
    s = tl.load(S + i.to(tl.int64)[:, None] * N + j[None, :], mask=there, other=0.0)
    return s, tl.where(there, tl.exp(s * scale - whole[:, None]), 0.0)


@jit("S first x_len T whole contrast flow each", "K N scale_bits contrast_bits")
def pool(
    S, first, x_len, T, whole, contrast, flow, each, K, N, scale_bits, contrast_bits,
    CONTRASTIVE: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Each program writes R rows of T and the following values per row.

    whole : log Σ_j exp(S / γ).   each : the row's contribution to the loss.   flow : h, without the factor that all
    rows of an item share.   contrast : log Σ_k exp(T / γ_contrast), with CONTRASTIVE.
    """
    INF: tl.constexpr = float("inf")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    scale = scale_bits.to(tl.float64, bitcast=True).to(DT)
    sharpness = contrast_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * R + tl.arange(0, R)
    Nb = length_of(x_len, b, N)
    S += b * K * N
    first += b * K
    counted = _is_first(first, i, K)
    top = tl.full([R], -INF, DT)
    for start in range(0, Nb, W):
        j = start + tl.arange(0, W)
        at = S + i.to(tl.int64)[:, None] * N + j[None, :]
        top = tl.maximum(top, tl.max(tl.load(at, mask=counted[:, None] & (j < Nb)[None, :], other=-INF), 1))
    top = tl.where(tl.abs(top) < INF, top * scale, 0.0)
    powers = tl.zeros([R], DT)
    for start in range(0, Nb, W):
        j = start + tl.arange(0, W)
        powers += tl.sum(_shares(S, top, i, j, counted[:, None] & (j < Nb)[None, :], N, scale)[1], 1)
    total = top + tl.log(powers)

    largest = tl.full([R], -INF, DT)
    powers = tl.zeros([R], DT)
    weighted = tl.zeros([R], DT)
    own = tl.zeros([R], DT)
    for begin in range(0, K, R):
        k = begin + tl.arange(0, R)
        also = _is_first(first, k, K)
        t = tl.zeros([R, R], DT)
        for start in range(0, Nb, W):
            j = start + tl.arange(0, W)
            _, a = _shares(S, total, i, j, counted[:, None] & (j < Nb)[None, :], N, scale)
            at = S + k.to(tl.int64)[:, None] * N + j[None, :]
            s = tl.load(at, mask=also[:, None] & (j < Nb)[None, :], other=0.0)
            t += _product(a, s, WIDE)
        both = counted[:, None] & also[None, :]
        same = both & (i[:, None] == k[None, :])
        place = T + b * K * K + i.to(tl.int64)[:, None] * K + k[None, :]
        tl.store(place, tl.where(both, t, 0.0), mask=(i < K)[:, None] & (k < K)[None, :])
        own += tl.sum(tl.where(same, t, 0.0), 1)
        if CONTRASTIVE:
            logit = tl.where(both, t * sharpness, -INF)
            higher = tl.maximum(largest, tl.max(logit, 1))
            base = tl.where(tl.abs(higher) < INF, higher, 0.0)
            power = tl.exp(logit - base[:, None])
            fade = tl.exp(largest - base)
            powers = powers * fade + tl.sum(power, 1)
            weighted = weighted * fade + tl.sum(tl.where(both, power * t, 0.0), 1)
            largest = higher
        else:
            off = tl.where(both, t - tl.where(same, 1.0, 0.0), 0.0)
            powers += tl.sum(off * off, 1)
            weighted += tl.sum(off * t, 1)
    row = b * K + i
    if CONTRASTIVE:
        sum_k = tl.where(tl.abs(largest) < INF, largest, 0.0) + tl.log(powers)
        tl.store(contrast + row, sum_k, mask=i < K)
        weighted = weighted / powers - own
        powers = sum_k - own * sharpness
    powers = tl.where(counted, powers, 0.0)
    tl.store(whole + row, total, mask=i < K)
    tl.store(flow + row, weighted, mask=i < K)
    tl.store(each + row, tl.where(Nb > 0, powers, float("nan")), mask=i < K)


@triton.jit
def _slope(T, contrast, i, k, both, K, sharpness, CONTRASTIVE: tl.constexpr):
    """Compute G_ik (rows i, columns k), without the factor that all rows of an item share."""
    t = tl.load(T + i.to(tl.int64)[:, None] * K + k.to(tl.int64)[None, :], mask=both, other=0.0)
    if CONTRASTIVE:
        t = tl.exp(t * sharpness - tl.load(contrast + i, mask=i < K, other=0.0)[:, None])
    return tl.where(both, t - tl.where(i[:, None] == k[None, :], 1.0, 0.0), 0.0)


@jit("S first x_len T whole contrast flow each value by_s", "K N scale_bits contrast_bits")
def spread(
    S, first, x_len, T, whole, contrast, flow, each, value, by_s, K, N, scale_bits, contrast_bits,
    CONTRASTIVE: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Compute the value of an item and, if requested, the derivative with respect to S: W columns per program."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    scale = scale_bits.to(tl.float64, bitcast=True).to(DT)
    sharpness = contrast_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    first += b * K
    count = tl.zeros([], tl.int32)
    total = tl.zeros([], DT)
    for begin in range(0, K, R):
        i = begin + tl.arange(0, R)
        count += tl.sum(_is_first(first, i, K).to(tl.int32), 0)
        total += tl.sum(tl.load(each + b * K + i, mask=i < K, other=0.0), 0)
    if CONTRASTIVE:
        found = total / count.to(DT)
        norm = sharpness / count.to(DT)
    else:
        found = tl.sqrt(total)
        norm = tl.where(found == 0, 0.0, 1.0 / found)  # the derivative at 0 is 0
    if tl.program_id(1) == 0:
        tl.store(value + b, found)
    if by_s is not None:
        j = tl.program_id(1) * W + tl.arange(0, W)
        inside = j < length_of(x_len, b, N)
        S += b * K * N
        T += b * K * K
        whole += b * K
        flow += b * K
        if CONTRASTIVE:
            contrast += b * K
        for begin in range(0, K, R):
            i = begin + tl.arange(0, R)
            counted = _is_first(first, i, K)
            through_s = tl.zeros([R, W], DT)
            through_a = tl.zeros([R, W], DT)
            for start in range(0, K, R):
                k = start + tl.arange(0, R)
                also = _is_first(first, k, K)
                total_k = tl.load(whole + k, mask=also, other=0.0)
                s, a = _shares(S, total_k, k, j, also[:, None] & inside[None, :], N, scale)
                g = _slope(T, contrast, i, k, counted[:, None] & also[None, :], K, sharpness, CONTRASTIVE)
                through_a += _product(g, tl.trans(s), WIDE)
                g = _slope(T, contrast, k, i, also[:, None] & counted[None, :], K, sharpness, CONTRASTIVE)
                through_s += _product(tl.trans(g), tl.trans(a), WIDE)
            total_i = tl.load(whole + i, mask=counted, other=0.0)
            there = counted[:, None] & inside[None, :]
            _, a = _shares(S, total_i, i, j, there, N, scale)
            h = tl.load(flow + i, mask=counted, other=0.0)
            slope = (through_s + scale * a * (through_a - h[:, None])) * norm
            at = by_s + b * K * N + i.to(tl.int64)[:, None] * N + j[None, :]
            tl.store(at, tl.where(there, slope, 0.0), mask=(i < K)[:, None] & (j < N)[None, :])


def clustering(
    S: Tensor, first: Tensor, x_lengths: Tensor | None, gamma: float, gamma_contrast: float | None, gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """Compute the loss (B,) of contiguous similarities S (B, K, N), and its derivative with respect to them.

    first : (B, K), for each row the first row of its kind; −1 in the padding.
    gamma_contrast : None for the Frobenius norm.
    """
    B, K, N = S.shape
    W = 16 if wide(S) else 64
    T = torch.empty(B, K, K, dtype=S.dtype, device=S.device)
    whole, flow, each = torch.empty(3, B, K, dtype=S.dtype, device=S.device).unbind()
    contrast = None if gamma_contrast is None else torch.empty(B, K, dtype=S.dtype, device=S.device)
    value = torch.empty(B, dtype=S.dtype, device=S.device)
    by_s = torch.empty_like(S) if gradient else None
    bits = as_bits(1.0 / gamma), as_bits(1.0 / (gamma_contrast or 1.0))
    constants = (gamma_contrast is not None, wide(S), ROWS, W)
    tensors = (S, first, x_lengths, T, whole, contrast, flow, each)
    launch(pool, (B, -(-K // ROWS)), tensors, (K, N), constants, 4, bits)
    launch(spread, (B, -(-N // W) if gradient else 1), (*tensors, value, by_s), (K, N), constants, 4, bits)
    return value, by_s
