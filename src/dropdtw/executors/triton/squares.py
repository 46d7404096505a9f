"""Squared distances by differences, and their derivatives: nothing cancels, and equal elements are 0 apart."""

from __future__ import annotations

import torch
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import jit, launch, wide
from dropdtw.executors.triton.rows import length_of

ROWS, COLUMNS = 32, 64
FEATURES = 16
"""Squares that are added up in single precision; sums of more are added in double precision."""

MOST = 1 << 31
"""Differences B · K · N · d up to which this is quicker than matrix products, launches and all."""


@jit("Z X z_len x_len C", "K N d z_b z_k z_d x_b x_n x_d")
def squares_forward(
    Z, X, z_len, x_len, C, K, N, d, z_b, z_k, z_d, x_b, x_n, x_d,
    WIDE: tl.constexpr, LONG: tl.constexpr, D: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """A program writes R × W entries of C, D features at a time; LONG: sums of these are added in double precision."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    number = tl.program_id(0)
    tiles = (K + R - 1) // R
    b = (number // tiles).to(tl.int64)
    i = number % tiles * R + tl.arange(0, R)
    j = tl.program_id(1) * W + tl.arange(0, W)
    z_in = i < length_of(z_len, b, K)
    x_in = j < length_of(x_len, b, N)
    z_at = Z + b * z_b + i.to(tl.int64) * z_k
    x_at = X + b * x_b + j.to(tl.int64) * x_n
    total = tl.zeros([R, W], tl.float64 if LONG else DT)
    for start in range(0, d, D):
        part = tl.zeros([R, W], DT)
        for k in tl.static_range(D):
            real = tl.full([1], k, tl.int32) + start < d
            z = tl.load(z_at, mask=z_in & real, other=0.0).to(DT)
            x = tl.load(x_at, mask=x_in & real, other=0.0).to(DT)
            z_at += z_d
            x_at += x_d
            apart = z[:, None] - x[None, :]
            part += apart * apart
        total += part.to(total.dtype)
    place = C + b * K * N + i.to(tl.int64)[:, None] * N + j[None, :]
    tl.store(place, total.to(C.dtype.element_ty), mask=z_in[:, None] & x_in[None, :])


@jit("grad A Y a_len y_len out", "M N d g_b g_m g_n a_b a_m a_d y_b y_n y_d")
def squares_backward(
    grad, A, Y, a_len, y_len, out, M, N, d, g_b, g_m, g_n, a_b, a_m, a_d, y_b, y_n, y_d,
    WIDE: tl.constexpr, D: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """A program writes R rows and D features of 2 Σ_j g_ij (a_i − y_j); W at a time, so that padding changes no bit."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    number = tl.program_id(0)
    tiles = (M + R - 1) // R
    b = (number // tiles).to(tl.int64)
    i = number % tiles * R + tl.arange(0, R)
    f = tl.program_id(1) * D + tl.arange(0, D)
    a_in = i < length_of(a_len, b, M)
    Nb = length_of(y_len, b, N)
    place = A + b * a_b + i.to(tl.int64)[:, None] * a_m + f.to(tl.int64)[None, :] * a_d
    a = tl.load(place, mask=a_in[:, None] & (f < d)[None, :], other=0.0).to(DT)
    total = tl.zeros([R, D], DT)
    for start in range(0, Nb, W):
        j = start + tl.arange(0, W)
        g_at = grad + b * g_b + i.to(tl.int64)[:, None] * g_m + j.to(tl.int64)[None, :] * g_n
        g = tl.load(g_at, mask=a_in[:, None] & (j < Nb)[None, :], other=0.0).to(DT)
        y_at = Y + b * y_b + j.to(tl.int64)[:, None] * y_n + f.to(tl.int64)[None, :] * y_d
        y = tl.load(y_at, mask=(j < Nb)[:, None] & (f < d)[None, :], other=0.0).to(DT)
        total += tl.sum(g[:, :, None] * (a[:, None, :] - y[None, :, :]), 1)
    out_at = out + (b * M + i.to(tl.int64)[:, None]) * d + f[None, :]
    tl.store(out_at, (2 * total).to(out.dtype.element_ty), mask=(i < M)[:, None] & (f < d)[None, :])


def fits(Z: Tensor, X: Tensor) -> bool:
    """Whether differences are quicker than matrix products, or small d makes products lose digits."""
    return Z.shape[2] <= FEATURES or Z.numel() * X.shape[1] <= MOST


def costs(Z: Tensor, X: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None) -> Tensor:
    """C (B, K, N) = |z_i − x_j|² of Z (B, K, d) and X (B, N, d), in their precision; the padding is left as it is."""
    B, K, d = Z.shape
    N = X.shape[1]
    C = torch.empty(B, K, N, dtype=Z.dtype, device=Z.device)
    constants = (wide(Z), d > FEATURES, min(FEATURES, 1 << (d - 1).bit_length()), ROWS, COLUMNS)
    grid = (B * -(-K // ROWS), -(-N // COLUMNS))
    launch(squares_forward, grid, (Z, X, z_lengths, x_lengths, C), (K, N, d, *Z.stride(), *X.stride()), constants, 4)
    return C


def costs_back(grad: Tensor, A: Tensor, Y: Tensor, a_lengths: Tensor | None, y_lengths: Tensor | None) -> Tensor:
    """The derivative by A (B, M, d) where `grad` (B, M, N) is the one by |a_i − y_j|²; 0 in the padding."""
    B, M, d = A.shape
    N = Y.shape[1]
    out = torch.empty(B, M, d, dtype=A.dtype, device=A.device)
    D = min(16, 1 << (d - 1).bit_length())
    grid = (B * -(-M // 16), -(-d // D))
    numbers = (M, N, d, *grad.stride(), *A.stride(), *Y.stride())
    launch(squares_backward, grid, (grad, A, Y, a_lengths, y_lengths, out), numbers, (wide(A), D, 16, 16), 4)
    return out
