"""Kernels on rows of sequences: find equal rows, clear the padding, and scale rows to length 1."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import jit, launch, wide


@triton.jit
def length_of(lengths, b, full):
    """Return the length of an item, clamped to the batch: it was not checked before."""
    if lengths is None:
        return full
    else:
        return tl.minimum(tl.load(lengths + b).to(tl.int32), full)


# --- Equal rows ---------------------------------------------------------------------------------------------------


@jit("Z ids z_len first after", "K d z_b z_k z_d")
def equal_rows(
    Z, ids, z_len, first, after, K, d, z_b, z_k, z_d,
    BY_ID: tl.constexpr, R: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Each program finds the first row that equals its own, and the next one; −1 for none, and in the padding."""
    number = tl.program_id(0)
    b = (number // K).to(tl.int64)
    i = number % K
    Kb = length_of(z_len, b, K)
    earliest = tl.where(i < Kb, i, -1)
    following = K
    if i < Kb:
        for start in range(0, Kb, R):
            j = start + tl.arange(0, R)
            same = (j < Kb) & (j != i)
            if BY_ID:
                same = same & (tl.load(ids + b * K + j, mask=same, other=-1) == tl.load(ids + b * K + i))
            else:
                at = i * 0
                left = tl.max(same.to(tl.int32), 0)
                while (at < d) & (left > 0):  # most rows differ in their first features
                    f = at + tl.arange(0, D)
                    own = tl.load(Z + b * z_b + i.to(tl.int64) * z_k + f.to(tl.int64) * z_d, mask=f < d, other=0.0)
                    place = Z + b * z_b + j.to(tl.int64)[:, None] * z_k + f.to(tl.int64)[None, :] * z_d
                    there = same[:, None] & (f < d)[None, :]
                    differ = there & (tl.load(place, mask=there, other=0.0) != own[None, :])  # NaN always differs
                    same = same & (tl.max(differ.to(tl.int32), 1) == 0)
                    left = tl.max(same.to(tl.int32), 0)
                    at += D
            earliest = tl.minimum(earliest, tl.min(tl.where(same, j, K), 0))
            following = tl.minimum(following, tl.min(tl.where(same & (j > i), j, K), 0))
    tl.store(first + number, earliest)
    tl.store(after + number, tl.where(following < K, following, -1))


def first_rows(Z: Tensor, ids: Tensor | None, z_lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """Find, for each row of Z (B, K, d), the first row of its kind, and the next or −1: (B, K) each, −1 in the padding.

    ids : (B, K) integers that identify the kinds; None: equal rows are of one kind.
    """
    B, K, d = Z.shape
    first, after = (torch.empty(B, K, dtype=torch.int32, device=Z.device) for _ in range(2))
    tensors = (Z, None if ids is None else ids.contiguous(), z_lengths, first, after)
    launch(equal_rows, (B * K, 1), tensors, (K, d, *Z.stride()), (ids is not None, 16, 32), num_warps=1)
    return first, after


# --- Padding ------------------------------------------------------------------------------------------------------


@triton.jit
def _copy(A, out, real, Z, X, half, row, d, a_d, z_d, x_n, x_d, CENTER: tl.constexpr, D: tl.constexpr):
    """Set out = a − origin if the row is not padding, otherwise 0; Z and X point to the start of the item."""
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        at = f.to(tl.int64)
        there = f < tl.where(real, d, 0)
        a = tl.load(A + at * a_d, mask=there, other=0.0)
        if CENTER:
            z = tl.load(Z + at * z_d, mask=there, other=0.0)
            x = tl.load(X + at * x_d, mask=there, other=0.0)
            y = tl.load(X + half * x_n + at * x_d, mask=there, other=0.0)
            a -= tl.maximum(tl.minimum(z, x), tl.minimum(tl.maximum(z, x), y))
        tl.store(out + row * d + f, a, mask=f < d)


@jit("Z X z_len x_len z_out x_out", "K N rows d z_b z_k z_d x_b x_n x_d")
def real_rows(
    Z, X, z_len, x_len, z_out, x_out, K, N, rows, d, z_b, z_k, z_d, x_b, x_n, x_d, CENTER: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """One program per row of Z, then one per row of X; `rows` counts those of Z.

    CENTER : subtract a point near most rows: the median, feature by feature, of the first z, the first x and the middle
        x, of which one may be an outlier.
    """
    number = tl.program_id(0).to(tl.int64)
    for_z = number < rows
    b = tl.where(for_z, number // K, (number - rows) // N)
    half = tl.maximum(length_of(x_len, b, N), 0).to(tl.int64) // 2
    Z += b * z_b
    X += b * x_b
    if for_z:
        i = number % K
        _copy(Z + i * z_k, z_out, i < length_of(z_len, b, K), Z, X, half, number, d, z_d, z_d, x_n, x_d, CENTER, D)
    else:
        row = number - rows
        j = row % N
        _copy(X + j * x_n, x_out, j < length_of(x_len, b, N), Z, X, half, row, d, x_d, z_d, x_n, x_d, CENTER, D)


def real_parts(
    Z: Tensor, X: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None, center: bool = False
) -> tuple[Tensor, Tensor]:
    """Return Z (B, K, d) and X (B, N, d) with their padding set to 0.

    center : subtract a central point, which reduces cancellation in products.
    """
    B, K, d = Z.shape
    N = X.shape[1]
    made = [torch.empty(B, n, d, dtype=Z.dtype, device=Z.device) for n in (K, N)]
    numbers = (K, N, B * K, d, *Z.stride(), *X.stride())
    tensors = (Z, X, z_lengths, x_lengths, *made)
    launch(real_rows, (B * (K + N), 1), tensors, numbers, (center, _tile(d)), num_warps=1)
    return made[0], made[1]


def real_part(A: Tensor, lengths: Tensor) -> Tensor:
    """Return A (B, L, d) with its padding set to 0."""
    B, L, d = A.shape
    out = torch.empty(B, L, d, dtype=A.dtype, device=A.device)
    numbers = (L, 1, B * L, d, *A.stride(), *A.stride())
    launch(real_rows, (B * L, 1), (A, A, lengths, None, out, out), numbers, (False, _tile(d)), num_warps=1)
    return out


# --- Units --------------------------------------------------------------------------------------------------------


@triton.jit
def _unit(A, out, inverse, real, row, at, d, a_d, DT: tl.constexpr, D: tl.constexpr):
    """Set out = a / |a| and inverse = 1 / |a|. Dividing by the largest element first avoids overflow and underflow.

    For padding, everything is 0.
    """
    features = tl.where(real, d, 0)
    largest = tl.zeros([], DT)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        a = tl.load(A + at + f.to(tl.int64) * a_d, mask=f < features, other=0.0)
        largest = tl.maximum(largest, tl.max(tl.abs(a), 0))
    largest = tl.where(largest > 0, largest, 1.0)
    total = tl.zeros([], DT)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        a = tl.load(A + at + f.to(tl.int64) * a_d, mask=f < features, other=0.0) / largest
        total += tl.sum(a * a, 0)
    norm = tl.sqrt(total)
    norm = tl.where(norm < 1e-12, 1e-12, norm)  # like torch.nn.functional.normalize; NaN stays NaN
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        a = tl.load(A + at + f.to(tl.int64) * a_d, mask=f < features, other=0.0) / largest
        tl.store(out + row * d + f, a / norm, mask=f < d)
    tl.store(inverse + row, tl.where(real, 1.0 / norm / largest, 0.0))


@jit("Z X z_len x_len z_out x_out inverse", "K N rows d z_b z_k z_d x_b x_n x_d")
def unit_rows(
    Z, X, z_len, x_len, z_out, x_out, inverse, K, N, rows, d, z_b, z_k, z_d, x_b, x_n, x_d,
    WIDE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """One program per row of Z, then one per row of X; `rows` counts those of Z."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    number = tl.program_id(0).to(tl.int64)
    if number < rows:
        b, i = number // K, number % K
        _unit(Z, z_out, inverse, i < length_of(z_len, b, K), number, b * z_b + i * z_k, d, z_d, DT, D)
    else:
        row = number - rows
        b, j = row // N, row % N
        _unit(X, x_out, inverse + rows, j < length_of(x_len, b, N), row, b * x_b + j * x_n, d, x_d, DT, D)


@triton.jit
def _unit_back(U, grad, inverse, out, row, d, DT: tl.constexpr, D: tl.constexpr):
    """Set out = (g − u (u · g)) / |a|."""
    along = tl.zeros([], DT)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        u = tl.load(U + row * d + f, mask=f < d, other=0.0)
        along += tl.sum(u * tl.load(grad + row * d + f, mask=f < d, other=0.0), 0)
    scale = tl.load(inverse + row)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        u = tl.load(U + row * d + f, mask=f < d, other=0.0)
        g = tl.load(grad + row * d + f, mask=f < d, other=0.0)
        tl.store(out + row * d + f, (u * along - g) * scale, mask=f < d)


@jit("ZU XU z_grad x_grad inverse z_out x_out", "rows d")
def unit_rows_back(
    ZU, XU, z_grad, x_grad, inverse, z_out, x_out, rows, d, WIDE: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    number = tl.program_id(0).to(tl.int64)
    if number < rows:
        _unit_back(ZU, z_grad, inverse, z_out, number, d, DT, D)
    else:
        _unit_back(XU, x_grad, inverse + rows, x_out, number - rows, d, DT, D)


def _tile(d: int) -> int:
    return min(1024, max(32, 1 << (d - 1).bit_length()))


def units(Z: Tensor, X: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Scale rows of Z (B, K, d) and X (B, N, d) to length 1 (0 for zero rows and padding); also return 1 / |rows|."""
    B, K, d = Z.shape
    N = X.shape[1]
    made = [torch.empty(B, n, d, dtype=Z.dtype, device=Z.device) for n in (K, N)]
    inverse = torch.empty(B * (K + N), dtype=Z.dtype, device=Z.device)
    numbers = (K, N, B * K, d, *Z.stride(), *X.stride())
    tensors = (Z, X, z_lengths, x_lengths, *made, inverse)
    launch(unit_rows, (B * (K + N), 1), tensors, numbers, (wide(Z), _tile(d)), num_warps=1)
    return made[0], made[1], inverse


def units_back(ZU: Tensor, XU: Tensor, inverse: Tensor, by_z: Tensor, by_x: Tensor) -> tuple[Tensor, Tensor]:
    """Convert derivatives −by_z and −by_x with respect to the unit rows to derivatives with respect to Z and X."""
    B, K, d = ZU.shape
    made = [torch.empty_like(A) for A in (ZU, XU)]
    tensors = (ZU, XU, by_z, by_x, inverse, *made)
    launch(unit_rows_back, (B * (K + XU.shape[1]), 1), tensors, (B * K, d), (wide(ZU), _tile(d)), num_warps=1)
    return made[0], made[1]
