"""Percentiles of each item of a batch (B, K, N), exactly and without sorting: one kernel.

The bits of a number, read as a whole number with those below 0 reversed, are in the order of the numbers. So a
bisection over whole numbers, which counts at each step how many entries are not above the middle, ends at the entry
of any rank.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import as_bits, jit, launch, wide
from dropdtw.executors.triton.rows import length_of

REGISTERS = 1 << 14
"""Entries of an item that one program keeps in registers, at most; of larger ones it reads tile by tile."""

LARGEST = 1 << 17
"""Entries of an item up to which one program is quicker than sorting, in a batch of 16 or less."""


@triton.jit
def _reversed(key, WIDE: tl.constexpr):
    """From bits to whole numbers in the order of the numbers, and from these to bits."""
    if WIDE:
        return key ^ ((key >> 63) & 0x7FFFFFFFFFFFFFFF)
    else:
        return key ^ ((key >> 31) & 0x7FFFFFFF)


@triton.jit
def _keys(A, first, start, K, N, Kb, Nb, most, WIDE: tl.constexpr, T: tl.constexpr):
    """A tile of entries as whole numbers in their order; `most` for padding and for what is not finite."""
    at = start + tl.arange(0, T)
    i = at // N
    there = (at < K * N) & (i < Kb) & (at % N < Nb)
    if first is not None:
        there = there & (tl.load(first + i, mask=there, other=-1) == i)
    a = tl.load(A + at, mask=there, other=float("inf"))
    there = there & (tl.abs(a) < float("inf"))
    key = _reversed(a.to(most.dtype, bitcast=True), WIDE)
    return tl.where(there, key, most)


@triton.jit
def _number(key, WIDE: tl.constexpr):
    return _reversed(key, WIDE).to(tl.float64 if WIDE else tl.float32, bitcast=True)


@jit("A first z_len x_len found", "K N p_bits")
def select(
    A, first, z_len, x_len, found, K, N, p_bits,
    LOGIT: tl.constexpr, ONE: tl.constexpr, WIDE: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """A program finds the percentile of an item.

    LOGIT : the k-th largest, as `costs.percentile_logit`; otherwise as `costs.percentile_drop`.
    ONE : whether one tile holds the item.
    """
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    KEY: tl.constexpr = tl.int64 if WIDE else tl.int32
    p = p_bits.to(tl.float64, bitcast=True)
    b = tl.program_id(0).to(tl.int64)
    Kb = length_of(z_len, b, K)
    Nb = length_of(x_len, b, N)
    A += b * K * N
    if first is not None:
        first += b * K
    most = tl.full([], 0x7FFFFFFFFFFFFFFF if WIDE else 0x7FFFFFFF, KEY)
    tile = _keys(A, first, 0, K, N, Kb, Nb, most, WIDE, T)
    low = tl.min(tile, 0)
    high = tl.max(tl.where(tile < most, tile, ~most), 0)
    count = tl.sum((tile < most).to(tl.int32), 0)
    if not ONE:
        for start in range(T, K * N, T):
            tile = _keys(A, first, start, K, N, Kb, Nb, most, WIDE, T)
            low = tl.minimum(low, tl.min(tile, 0))
            high = tl.maximum(high, tl.max(tl.where(tile < most, tile, ~most), 0))
            count += tl.sum((tile < most).to(tl.int32), 0)

    if LOGIT:
        place = count.to(tl.float64) * p / 100.0
        rank = tl.maximum(count - tl.maximum(place.to(tl.int32), 1), 0)
    else:
        place = tl.maximum(count - 1, 0).to(tl.float64) * p
        rank = place.to(tl.int32)
    while low < high:
        middle = (low & high) + ((low ^ high) >> 1)  # without overflow
        below = tl.sum((tile <= middle).to(tl.int32), 0)
        if not ONE:
            below = below * 0
            for start in range(0, K * N, T):
                tile = _keys(A, first, start, K, N, Kb, Nb, most, WIDE, T)
                below += tl.sum((tile <= middle).to(tl.int32), 0)
        low = tl.where(below > rank, low, middle + 1)
        high = tl.where(below > rank, middle, high)

    if LOGIT:
        value = tl.where(count > 0, _number(low, WIDE), float("-inf"))
    else:
        below = tl.sum((tile <= low).to(tl.int32), 0)
        above = tl.min(tl.where(tile > low, tile, most), 0)
        if not ONE:
            below = below * 0
            for start in range(0, K * N, T):
                tile = _keys(A, first, start, K, N, Kb, Nb, most, WIDE, T)
                below += tl.sum((tile <= low).to(tl.int32), 0)
                above = tl.minimum(above, tl.min(tl.where(tile > low, tile, most), 0))
        a = _number(low, WIDE)
        following = tl.where((below > rank + 1) | (rank + 1 >= count), a, _number(above, WIDE))
        part = (place - rank.to(tl.float64)).to(DT)
        value = tl.where(part > 0, a + part * (following - a), a)
        value = tl.where(count > 0, value, float("inf"))
    tl.store(found + b, value)


def fits(A: Tensor) -> bool:
    """Whether the kernel is quicker than sorting."""
    return A.shape[1] * A.shape[2] <= LARGEST * max(1, len(A) // 16) and A.shape[1] * A.shape[2] < 1 << 30


def percentile(
    A: Tensor,
    p: float,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    first: Tensor | None = None,
    logit: bool = False,
) -> Tensor:
    """The p-th percentile of the finite entries of each item of a contiguous batch (B, K, N): (B,).

    first : (B, K); rows that are not the first of their kind do not count.
    logit : the k-th largest, as `costs.percentile_logit`; otherwise as `costs.percentile_drop`.
    """
    B, K, N = A.shape
    found = torch.empty(B, dtype=A.dtype, device=A.device)
    T = min(REGISTERS, max(128, 1 << (K * N - 1).bit_length()))
    constants = (logit, K * N <= T, wide(A), T)
    bits = (as_bits(p if logit else p / 100),)
    launch(select, (B, 1), (A, first, z_lengths, x_lengths, found), (K, N), constants, max(1, min(16, T // 512)), bits)
    return found
