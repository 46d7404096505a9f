"""Reads and writes of the two passes, apart from their results: costs, states between blocks, rows between strips.

Addresses are carried from block to block and advanced, never computed where they are used: Triton's layout pass
follows the arithmetic behind every computed address through the whole kernel, which makes compiling quadratic.
"""

from __future__ import annotations

import triton
import triton.language as tl

from dropdtw.executors.triton.layout import count, flagged, nth_flag, of, of_scores, plane, seat


@triton.jit
def spread(base, stride, n: tl.constexpr, each: tl.constexpr = 1):
    """Return n addresses base, base + stride, …, with `each` consecutive entries at each of them."""
    found = ()
    for s in tl.static_range(n):
        for u in tl.static_range(each):
            found = found + (base + (s * stride + u),)
    return found


@triton.jit
def advance(addresses, by):
    moved = ()
    for u in tl.static_range(len(addresses)):
        moved = moved + (addresses[u] + by,)
    return moved


@triton.jit
def costs_of(match, drop, t, lane, inside, Nb, w, TABLE: tl.constexpr):
    """Load the costs of a block of steps that starts at t: tuples over the steps."""
    INF: tl.constexpr = float("inf")
    c = ()
    d = ()
    for u in tl.static_range(len(match)):
        j = t + u - lane
        there = (j >= 1) & (j <= Nb)
        if of_scores(TABLE):
            c = c + (-tl.load(match[u], mask=there & inside, other=-INF).to(w.dtype),)
        else:
            c = c + (tl.load(match[u], mask=there & inside, other=INF).to(w.dtype),)
        d = d + (tl.load(drop[u], mask=there, other=INF).to(w.dtype),)
    return c, d


# Strips exchange the numbers of a block of steps as vectors: one lane per step and number.


@triton.jit
def seats(lane, stride, PART: tl.constexpr, TABLE: tl.constexpr, U: tl.constexpr, R: tl.constexpr):
    """Return where the numbers that PART of a table flags lie in memory, and their steps in a block, as vectors."""
    n: tl.constexpr = flagged(TABLE, PART)
    at = ()
    steps = ()
    for g in tl.static_range((n * U + R - 1) // R):
        place = g * R + lane
        row = tl.zeros_like(lane)
        for m in tl.static_range(n):
            row = tl.where(place // U == m, nth_flag(TABLE, PART, m), row)
        at = at + (row * stride + place % U,)
        steps = steps + (tl.where(place < n * U, place % U, -(1 << 30)),)  # unused lanes are never in range
    return at, steps


@triton.jit
def receive(base, at, steps, t, Nb, more, like, other: tl.constexpr, VOLATILE: tl.constexpr):
    """Load the numbers of a block whose first column is t.   VOLATILE : another program writes them concurrently."""
    found = ()
    last = tl.where(more, Nb, -1)
    for g in tl.static_range(len(at)):
        there = (t + steps[g] >= 0) & (t + steps[g] <= last)
        a = tl.load(base + (at[g] + t), mask=there, other=other, volatile=VOLATILE)
        found = found + (a.to(like.dtype),)
    return found


@triton.jit
def missing(numbers):
    """Whether some number is not yet written: all its bits are set."""
    found = tl.full([], 0, tl.int32)
    for g in tl.static_range(len(numbers)):
        a = numbers[g]
        unwritten = a.to(tl.int64 if a.dtype == tl.float64 else tl.int32, bitcast=True) == -1
        found = found | tl.max(unwritten.to(tl.int32), 0)
    return found > 0


@triton.jit
def at_step(numbers, like, PART: tl.constexpr, TABLE: tl.constexpr, u: tl.constexpr, U: tl.constexpr, R: tl.constexpr):
    """Return the numbers of the u-th step, each in all lanes; `like` for those that are not exchanged."""
    found = ()
    for s in tl.static_range(count(TABLE, PART)):
        if len(numbers) > 0 and of(TABLE, PART, s):
            found = found + (_spread(numbers[seat(TABLE, PART, s, u, U) // R], seat(TABLE, PART, s, u, U) % R, R),)
        else:
            found = found + (like,)
    return found


@triton.jit
def _spread(a, where: tl.constexpr, R: tl.constexpr):
    return tl.gather(a, tl.full([R], where, tl.int32), 0)


@triton.jit
def collect(
    numbers, values, source: tl.constexpr, lane,
    PART: tl.constexpr, TABLE: tl.constexpr, u: tl.constexpr, U: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Add the values of a lane in the u-th step to what the strip sends."""
    found = ()
    for g in tl.static_range(len(numbers)):
        a = numbers[g]
        for s in tl.static_range(count(TABLE, PART)):
            if of(TABLE, PART, s) and seat(TABLE, PART, s, u, U) // R == g:
                a = tl.where(lane == seat(TABLE, PART, s, u, U) % R, _spread(values[s], source, R), a)
        found = found + (a,)
    return found


@triton.jit
def send(base, at, steps, t, Nb, more, numbers):
    """Store the numbers of a block whose first column is t; all bits set is reserved for "not yet written"."""
    last = tl.where(more, Nb, -1)
    for g in tl.static_range(len(numbers)):
        a = numbers[g]
        there = (t + steps[g] >= 0) & (t + steps[g] <= last)
        tl.store(base + (at[g] + t), tl.where(a != a, float("nan"), a), mask=there, cache_modifier=".cg")


@triton.jit
def charges_of(charges, b, w, TABLE: tl.constexpr):
    """Load the charges of a pair. If one is not a finite number ≥ 0, all become NaN: they were not checked before."""
    INF: tl.constexpr = float("inf")
    NAN: tl.constexpr = float("nan")
    if count(TABLE, "kinds") == 0:
        return ()
    else:
        x = tl.load(charges + b * 3).to(w.dtype)
        z = tl.load(charges + b * 3 + 1).to(w.dtype)
        again = tl.load(charges + b * 3 + 2).to(w.dtype)
        fine = (x >= 0) & (x < INF) & (z >= 0) & (z < INF) & (again >= 0) & (again < INF)
        return tl.where(fine, x, NAN), tl.where(fine, z, NAN), tl.where(fine, again, NAN)


@triton.jit
def state_at(saved, begun, w, TABLE: tl.constexpr):
    """Load what was stored at the start of a block: the states of each lane, and its `diag`."""
    INF: tl.constexpr = float("inf")
    own = ()
    diag = ()
    for s in tl.static_range(count(TABLE, "keep")):
        if of(TABLE, "keep", s):
            own = own + (tl.load(saved[plane(TABLE, "keep", s)], mask=begun, other=INF),)
        else:
            own = own + (tl.full(w.shape, INF, w.dtype),)
    for s in tl.static_range(count(TABLE, "diag")):
        if of(TABLE, "diag", s):
            diag = diag + (tl.load(saved[plane(TABLE, "diag", s)], mask=begun, other=INF),)
        else:
            diag = diag + (tl.full(w.shape, INF, w.dtype),)
    return own, diag


@triton.jit
def write_down(saved, begun, own, diag, TABLE: tl.constexpr):
    """Store what `state_at` loads."""
    for s in tl.static_range(count(TABLE, "keep")):
        if of(TABLE, "keep", s):
            tl.store(saved[plane(TABLE, "keep", s)], own[s], mask=begun)
        if of(TABLE, "diag", s):
            tl.store(saved[plane(TABLE, "diag", s)], diag[s], mask=begun)


@triton.jit
def word_at(word, t, lane, inside, Nb, w, U: tl.constexpr):
    """Load the word of the choices in the block of steps that ends at t; see `cells.pack`."""
    bits = tl.load(word, mask=_in_block(t, lane, Nb, U) & inside, other=0.0)
    return bits.to(tl.int64 if w.dtype == tl.float64 else tl.int32, bitcast=True).to(tl.int32)


@triton.jit
def write_word(at, word, t, lane, inside, Nb, w, U: tl.constexpr):
    """Store what `word_at` loads."""
    bits = word.to(tl.int64 if w.dtype == tl.float64 else tl.int32).to(w.dtype, bitcast=True)
    tl.store(at, bits, mask=_in_block(t, lane, Nb, U) & inside)


@triton.jit
def _in_block(t, lane, Nb, U: tl.constexpr):
    """Whether a lane has a cell in the block of steps that ends at t."""
    return (t > lane) & (t <= lane + Nb + U)


@triton.jit
def begun(t, lane, Nb):
    """Whether a lane's state matters at step t: the lane has begun, and it or the lane below has not ended."""
    return (t > lane) & (t <= lane + Nb + 1)


@triton.jit
def slot(t, lane, row, K, U: tl.constexpr):
    """Return where a lane's state at step t, the start of a block, is stored; each lane counts from its own start."""
    ahead = (t - lane - 1 + 4096 * U) // U - 4096  # rounds down even if a lane has not begun
    return ahead.to(tl.int64) * K + row


@triton.jit
def side_by_side(columns):
    """Join eight vectors over the lanes into the columns of one matrix; each lane already holds its row."""
    tl.static_assert(len(columns) == 8)
    even = tl.join(tl.join(columns[0], columns[4]), tl.join(columns[2], columns[6]))
    odd = tl.join(tl.join(columns[1], columns[5]), tl.join(columns[3], columns[7]))
    return tl.reshape(tl.join(even, odd), [columns[0].shape[0], 8])
