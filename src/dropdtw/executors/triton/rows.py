"""Rows of sequences: which of them are equal, and each at length 1."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import jit, launch, wide


@triton.jit
def length_of(lengths, b, full):
    """The length of an item, never beyond the batch: nobody has looked at it before."""
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
    """A program finds the first row that equals its own, and the next one; −1 for none, and in the padding."""
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
                    differ = there & (tl.load(place, mask=there, other=0.0) != own[None, :])  # a NaN always does
                    same = same & (tl.max(differ.to(tl.int32), 1) == 0)
                    left = tl.max(same.to(tl.int32), 0)
                    at += D
            earliest = tl.minimum(earliest, tl.min(tl.where(same, j, K), 0))
            following = tl.minimum(following, tl.min(tl.where(same & (j > i), j, K), 0))
    tl.store(first + number, earliest)
    tl.store(after + number, tl.where(following < K, following, -1))


def first_rows(Z: Tensor, ids: Tensor | None, z_lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """For each row of Z (B, K, d) the first of its kind, and the next one or −1: (B, K) each, −1 in the padding.

    ids : (B, K) whole numbers, the kinds; None: equal rows are of one kind.
    """
    B, K, d = Z.shape
    first, after = (torch.empty(B, K, dtype=torch.int32, device=Z.device) for _ in range(2))
    tensors = (Z, None if ids is None else ids.contiguous(), z_lengths, first, after)
    launch(equal_rows, (B * K, 1), tensors, (K, d, *Z.stride()), (ids is not None, 16, 32), num_warps=1)
    return first, after


# --- Units --------------------------------------------------------------------------------------------------------


@triton.jit
def _unit(A, out, inverse, row, at, d, a_d, DT: tl.constexpr, D: tl.constexpr):
    """Out = a / |a|, and 1 / |a|; without the largest element divided out, squares would overflow or vanish."""
    largest = tl.zeros([], DT)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        a = tl.load(A + at + f.to(tl.int64) * a_d, mask=f < d, other=0.0)
        largest = tl.maximum(largest, tl.max(tl.abs(a), 0))
    largest = tl.where(largest > 0, largest, 1.0)
    total = tl.zeros([], DT)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        a = tl.load(A + at + f.to(tl.int64) * a_d, mask=f < d, other=0.0) / largest
        total += tl.sum(a * a, 0)
    norm = tl.sqrt(total)
    norm = tl.where(norm < 1e-12, 1e-12, norm)  # as torch.nn.functional.normalize; a NaN stays
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        a = tl.load(A + at + f.to(tl.int64) * a_d, mask=f < d, other=0.0) / largest
        tl.store(out + row * d + f, a / norm, mask=f < d)
    tl.store(inverse + row, 1.0 / norm / largest)


@jit("Z X z_out x_out inverse", "K N rows d z_b z_k z_d x_b x_n x_d")
def unit_rows(
    Z, X, z_out, x_out, inverse, K, N, rows, d, z_b, z_k, z_d, x_b, x_n, x_d, WIDE: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """A program for each row of Z, and then one for each row of X; `rows` are those of Z."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    number = tl.program_id(0).to(tl.int64)
    if number < rows:
        _unit(Z, z_out, inverse, number, number // K * z_b + number % K * z_k, d, z_d, DT, D)
    else:
        row = number - rows
        _unit(X, x_out, inverse + rows, row, row // N * x_b + row % N * x_n, d, x_d, DT, D)


@triton.jit
def _unit_back(U, grad, inverse, out, row, d, DT: tl.constexpr, D: tl.constexpr):
    """Out = (g − u (u · g)) / |a|."""
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


def units(Z: Tensor, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Z (B, K, d) and X (B, N, d) with rows of length 1, zero rows as they are; and 1 / lengths, first those of Z."""
    B, K, d = Z.shape
    N = X.shape[1]
    made = [torch.empty(B, n, d, dtype=Z.dtype, device=Z.device) for n in (K, N)]
    inverse = torch.empty(B * (K + N), dtype=Z.dtype, device=Z.device)
    numbers = (K, N, B * K, d, *Z.stride(), *X.stride())
    launch(unit_rows, (B * (K + N), 1), (Z, X, *made, inverse), numbers, (wide(Z), _tile(d)), num_warps=1)
    return made[0], made[1], inverse


def units_back(ZU: Tensor, XU: Tensor, inverse: Tensor, by_z: Tensor, by_x: Tensor) -> tuple[Tensor, Tensor]:
    """The derivatives by Z and X of a function whose derivatives by their units are −by_z and −by_x."""
    B, K, d = ZU.shape
    made = [torch.empty_like(A) for A in (ZU, XU)]
    tensors = (ZU, XU, by_z, by_x, inverse, *made)
    launch(unit_rows_back, (B * (K + XU.shape[1]), 1), tensors, (B * K, d), (wide(ZU), _tile(d)), num_warps=1)
    return made[0], made[1]
