"""Exact percentiles of each item of a batch (B, K, N), without sorting.

Read as integers, with the negative ones reversed, the bits of floating-point numbers have the same order as the
numbers. For a small item, one program keeps all entries in registers and finds the entry of a given rank by bisection
over integers. For a larger item, many programs run a radix select: they count how often each value of the highest eight
bits occurs, which gives these bits for the entry of that rank, then continue with the next eight bits among the entries
that share this prefix, and so on.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import as_bits, jit, launch, wide
from dropdtw.executors.triton.rows import length_of

REGISTERS = 1 << 14
"""Maximum number of entries of an item that one program keeps in registers."""

TILE, MOST_TILES, PROGRAMS = 2048, 16, 1024
"""Entries that a program counts per iteration; its maximum number of iterations; and the programs that fill a GPU."""

BINS = 256


@triton.jit
def _reversed(key, WIDE: tl.constexpr):
    """Convert bits to integers that have the order of the numbers, and back."""
    if WIDE:
        return key ^ ((key >> 63) & 0x7FFFFFFFFFFFFFFF)
    else:
        return key ^ ((key >> 31) & 0x7FFFFFFF)


@triton.jit
def _keys(A, first, z_len, x_len, start, K, N, Kb, Nb, most, WIDE: tl.constexpr, T: tl.constexpr):
    """Load a tile of entries as order-preserving integers; `most` for padding and for entries that are not finite."""
    at = start + tl.arange(0, T)
    there = at < K * N
    if z_len is not None or x_len is not None or first is not None:
        i = at // N
        there = there & (i < Kb) & (at % N < Nb)
        if first is not None:
            there = there & (tl.load(first + i, mask=there, other=-1) == i)
    a = tl.load(A + at, mask=there, other=float("inf"))
    there = there & (tl.abs(a) < float("inf"))
    key = _reversed(a.to(most.dtype, bitcast=True), WIDE)
    return tl.where(there, key, most)


@triton.jit
def _number(key, WIDE: tl.constexpr):
    return _reversed(key, WIDE).to(tl.float64 if WIDE else tl.float32, bitcast=True)


@triton.jit
def _rank(count, p, LOGIT: tl.constexpr):
    """Return the rank of the percentile among `count` entries, and its fraction toward the next entry."""
    if LOGIT:
        place = count.to(tl.float64) * p / 100.0
        return tl.maximum(count - tl.maximum(place.to(tl.int32), 1), 0), place * 0
    else:
        place = tl.maximum(count - 1, 0).to(tl.float64) * p
        rank = place.to(tl.int32)
        return rank, place - rank.to(tl.float64)


@triton.jit
def _percentile(low, following, count, part, DT: tl.constexpr, LOGIT: tl.constexpr, WIDE: tl.constexpr):
    """Compute the percentile from the entry of its rank and the next one."""
    a = _number(low, WIDE)
    if LOGIT:
        return tl.where(count > 0, a, float("-inf"))
    else:
        part = part.to(DT)
        return tl.where(count > 0, tl.where(part > 0, a + part * (_number(following, WIDE) - a), a), float("inf"))


# --- Small items --------------------------------------------------------------------------------------------------


@jit("A first z_len x_len found", "K N p_bits")
def select(
    A, first, z_len, x_len, found, K, N, p_bits, LOGIT: tl.constexpr, WIDE: tl.constexpr, T: tl.constexpr
):  # fmt: skip
    """Each program finds the percentile of one item, which fits into one tile.

    LOGIT : the k-th largest, as `costs.percentile_logit`; otherwise as `costs.percentile_drop`.
    """
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    KEY: tl.constexpr = tl.int64 if WIDE else tl.int32
    b = tl.program_id(0).to(tl.int64)
    if first is not None:
        first += b * K
    most = tl.full([], 0x7FFFFFFFFFFFFFFF if WIDE else 0x7FFFFFFF, KEY)
    Kb, Nb = length_of(z_len, b, K), length_of(x_len, b, N)
    tile = _keys(A + b * K * N, first, z_len, x_len, 0, K, N, Kb, Nb, most, WIDE, T)
    low = tl.min(tile, 0)
    high = tl.max(tl.where(tile < most, tile, ~most), 0)
    count = tl.sum((tile < most).to(tl.int32), 0)
    rank, part = _rank(count, p_bits.to(tl.float64, bitcast=True), LOGIT)
    while low < high:
        middle = (low & high) + ((low ^ high) >> 1)  # without overflow
        below = tl.sum((tile <= middle).to(tl.int32), 0)
        low = tl.where(below > rank, low, middle + 1)
        high = tl.where(below > rank, middle, high)
    below = tl.sum((tile <= low).to(tl.int32), 0)
    above = tl.min(tl.where(tile > low, tile, most), 0)
    following = tl.where((below > rank + 1) | (rank + 1 >= count), low, above)
    tl.store(found + b, _percentile(low, following, count, part, DT, LOGIT, WIDE))


# --- Large items --------------------------------------------------------------------------------------------------


@triton.jit
def _descend(counts, prefix, rank, BINS: tl.constexpr):
    """Return the next eight bits of the entry of that rank among those with this prefix, and its new rank."""
    n = tl.load(counts + tl.arange(0, BINS))
    below = tl.cumsum(n, 0)
    digit = tl.sum((below <= rank).to(tl.int32), 0)
    before = tl.sum(tl.where(tl.arange(0, BINS) < digit, n, 0), 0)
    return prefix * BINS + digit, rank - before


@triton.jit
def _count(counts, key, prefix, shift, valid, WIDE: tl.constexpr, BINS: tl.constexpr):
    """Count the next eight bits of all keys that begin with `prefix`."""
    begins = ((key >> shift) >> 8) == prefix  # shifting by the full width at once would be undefined
    digit = ((key >> shift) & (BINS - 1)).to(tl.int32)
    n = tl.histogram(digit, BINS, mask=valid & begins)
    place = tl.arange(0, BINS)
    tl.atomic_add(counts + place, n, mask=n > 0, sem="relaxed")


@jit("A first z_len x_len counts begun found", "K N m tiles p_bits")
def count_digits(
    A, first, z_len, x_len, counts, begun, found, K, N, m, tiles, p_bits,
    LOGIT: tl.constexpr, WIDE: tl.constexpr, T: tl.constexpr, BINS: tl.constexpr,
):  # fmt: skip
    """Pass m: programs count the m-th eight bits of their tiles; after all passes the percentile is known.

    counts : (B, passes, 2, BINS), initially 0, for the rank of the percentile and, once they differ, for the next rank.
    begun : (B, passes + 1, 2, 2), the prefix of these entries, and their rank among the entries with that prefix.
    """
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    KEY: tl.constexpr = tl.int64 if WIDE else tl.int32
    UNSIGNED: tl.constexpr = tl.uint64 if WIDE else tl.uint32
    PASSES: tl.constexpr = 8 if WIDE else 4
    b = tl.program_id(0).to(tl.int64)
    Kb, Nb = length_of(z_len, b, K), length_of(x_len, b, N)
    if first is not None:
        first += b * K
    counts += b * PASSES * 2 * BINS
    begun += b * (PASSES + 1) * 4
    prefix = tl.zeros([], tl.int64)
    other = tl.zeros([], tl.int64)
    if m > 0:
        count = tl.sum(tl.load(counts + tl.arange(0, BINS)), 0)
        rank, part = _rank(count, p_bits.to(tl.float64, bitcast=True), LOGIT)
        next_rank = tl.minimum(rank + 1, tl.maximum(count - 1, 0))
        if m > 1:
            known = begun + (m - 1) * 4
            prefix = tl.load(known)
            rank = tl.load(known + 1).to(tl.int32)
            other = tl.load(known + 2)
            next_rank = tl.load(known + 3).to(tl.int32)
        last = counts + (m - 1) * 2 * BINS
        apart = (prefix != other).to(tl.int32)
        prefix, rank = _descend(last, prefix, rank, BINS)
        other, next_rank = _descend(last + apart * BINS, other, next_rank, BINS)
        if tl.program_id(1) == 0:
            known = begun + m * 4
            tl.store(known, prefix)
            tl.store(known + 1, rank.to(tl.int64))
            tl.store(known + 2, other)
            tl.store(known + 3, next_rank.to(tl.int64))
        if m == PASSES:
            least = tl.full([], -0x8000000000000000 if WIDE else -0x80000000, tl.int64).to(KEY)
            low, following = prefix.to(KEY) ^ least, other.to(KEY) ^ least
            tl.store(found + b, _percentile(low, following, count, part, DT, LOGIT, WIDE))
    if m < PASSES:
        most = tl.full([], 0x7FFFFFFFFFFFFFFF if WIDE else 0x7FFFFFFF, KEY)
        here = counts + m * 2 * BINS
        shift = (PASSES - 1 - m) * 8
        for n in range(tiles):
            start = (tl.program_id(1) * tiles + n) * T
            key = _keys(A + b * K * N, first, z_len, x_len, start, K, N, Kb, Nb, most, WIDE, T)
            valid = key < most
            digits = key.to(UNSIGNED, bitcast=True) ^ (most + 1).to(UNSIGNED, bitcast=True)
            _count(here, digits, prefix, shift, valid, WIDE, BINS)
            if prefix != other:
                _count(here + BINS, digits, other, shift, valid, WIDE, BINS)


def percentile(
    A: Tensor,
    p: float,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    first: Tensor | None = None,
    logit: bool = False,
) -> Tensor:
    """Compute the p-th percentile of the finite entries of each item of a contiguous batch (B, K, N): (B,).

    first : (B, K); rows that are not the first of their kind do not count.
    logit : the k-th largest, as `costs.percentile_logit`; otherwise as `costs.percentile_drop`.
    """
    B, K, N = A.shape
    found = torch.empty(B, dtype=A.dtype, device=A.device)
    bits = (as_bits(p if logit else p / 100),)
    given = (A, first, z_lengths, x_lengths)
    if K * N <= REGISTERS:
        T = max(128, 1 << (K * N - 1).bit_length())
        launch(select, (B, 1), (*given, found), (K, N), (logit, wide(A), T), max(1, min(16, T // 512)), bits)
        return found
    passes = 8 if wide(A) else 4
    counts = torch.zeros(B, passes, 2, BINS, dtype=torch.int32, device=A.device)
    begun = torch.empty(B, passes + 1, 2, 2, dtype=torch.int64, device=A.device)
    whole = -(-K * N // TILE)
    tiles = max(1, min(MOST_TILES, B * whole // PROGRAMS))
    for m in range(passes + 1):
        grid = (B, -(-whole // tiles) if m < passes else 1)
        tensors, numbers = (*given, counts, begun, found), (K, N, m, tiles)
        launch(count_digits, grid, tensors, numbers, (logit, wide(A), TILE, BINS), 4, bits)
    return found
