"""Squared distances from differences, without cancellation and exactly 0 for equal elements; and their derivatives."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton import rows
from dropdtw.executors.triton.launch import jit, launch, wide
from dropdtw.executors.triton.rows import length_of

ROWS, COLUMNS = 32, 64
FEATURES = 16
"""Number of squares summed in single precision; these partial sums are added in double precision."""

MOST = 1 << 31
"""Maximum number of differences B · K · N · d for which this beats matrix products, including launch overhead."""


@jit("Z X z_len x_len C", "K N d z_b z_k z_d x_b x_n x_d")
def squares_forward(
    Z, X, z_len, x_len, C, K, N, d, z_b, z_k, z_d, x_b, x_n, x_d,
    WIDE: tl.constexpr, LONG: tl.constexpr, D: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Each program writes R × W entries of C, D features at a time; LONG: add partial sums in double precision."""
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


@triton.jit
def _combine(grad, A, P, M, N, d, b, i, g_m, g_n, DT: tl.constexpr, D: tl.constexpr, R: tl.constexpr, W: tl.constexpr):
    """Set P = 2 (Σ_j g_ij a_i − P_i) for R rows of an item, W columns or D features at a time."""
    inside = i < M
    total = tl.zeros([R], DT)
    for start in range(0, N, W):
        j = start + tl.arange(0, W)
        at = grad + i.to(tl.int64)[:, None] * g_m + j.to(tl.int64)[None, :] * g_n
        total += tl.sum(tl.load(at, mask=inside[:, None] & (j < N)[None, :], other=0.0), 1)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        at = (b * M + i.to(tl.int64)[:, None]) * d + f[None, :]
        there = inside[:, None] & (f < d)[None, :]
        a, p = tl.load(A + at, mask=there, other=0.0), tl.load(P + at, mask=there, other=0.0)
        tl.store(P + at, 2 * (total[:, None] * a - p), mask=there)


@jit("grad Z X by_z by_x", "K N d g_b g_m g_n z_tiles")
def combine_products(
    grad, Z, X, by_z, by_x, K, N, d, g_b, g_m, g_n, z_tiles,
    WIDE: tl.constexpr, D: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """One program per R rows of Z, then one per R rows of X; `z_tiles` counts the programs for Z in all items."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    number = tl.program_id(0)
    if number < z_tiles:
        each = (K + R - 1) // R
        b = (number // each).to(tl.int64)
        i = number % each * R + tl.arange(0, R)
        _combine(grad + b * g_b, Z, by_z, K, N, d, b, i, g_m, g_n, DT, D, R, W)
    else:
        number -= z_tiles
        each = (N + R - 1) // R
        b = (number // each).to(tl.int64)
        j = number % each * R + tl.arange(0, R)
        _combine(grad + b * g_b, X, by_x, N, K, d, b, j, g_n, g_m, DT, D, R, W)


def fits(Z: Tensor, X: Tensor) -> bool:
    """Whether differences are faster than matrix products, or d is so small that products lose accuracy."""
    return Z.shape[2] <= FEATURES or Z.numel() * X.shape[1] <= MOST


def costs(Z: Tensor, X: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None) -> Tensor:
    """Compute C (B, K, N) = |z_i − x_j|² of Z (B, K, d) and X (B, N, d) in their precision; padding is not written."""
    B, K, d = Z.shape
    N = X.shape[1]
    C = torch.empty(B, K, N, dtype=Z.dtype, device=Z.device)
    constants = (wide(Z), d > FEATURES, min(FEATURES, 1 << (d - 1).bit_length()), ROWS, COLUMNS)
    grid = (B * -(-K // ROWS), -(-N // COLUMNS))
    launch(squares_forward, grid, (Z, X, z_lengths, x_lengths, C), (K, N, d, *Z.stride(), *X.stride()), constants, 4)
    return C


def costs_back(
    grad: Tensor, Z: Tensor, X: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None, z_too: bool = True
) -> tuple[Tensor | None, Tensor]:
    """Compute the derivatives with respect to Z and X from `grad` (B, K, N), that of |z_i − x_j|², 0 in the padding.

    Uses matrix products of centered elements, like `costs.sqeuclidean_back`.
    """
    z, x = rows.real_parts(Z, X, z_lengths, x_lengths, center=True)
    by_z, by_x = torch.bmm(grad, x) if z_too else None, torch.bmm(grad.mT, z)
    B, K, d = Z.shape
    N = X.shape[1]
    z_tiles = B * -(-K // 16) if z_too else 0
    grid = (z_tiles + B * -(-N // 16), 1)
    numbers = (K, N, d, *grad.stride(), z_tiles)
    tensors = (grad, z, x, by_x if by_z is None else by_z, by_x)
    launch(combine_products, grid, tensors, numbers, (wide(Z), 64, 16, 32), 4)
    return by_z, by_x
