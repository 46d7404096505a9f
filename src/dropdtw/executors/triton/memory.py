"""Reads and writes of the two passes, apart from their results: costs, states between blocks, rows between strips.

Addresses are carried from block to block and advanced, never computed where they are used: Triton's layout pass
follows the arithmetic behind every computed address through the whole kernel, which makes compiling quadratic.
"""

from __future__ import annotations

import triton
import triton.language as tl

from dropdtw.executors.triton.layout import count, of, plane


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
def costs_of(match, drop, t, lane, inside, Nb, w):
    """Load the costs of a block of steps that starts at t: tuples over the steps."""
    INF: tl.constexpr = float("inf")
    c = ()
    d = ()
    for u in tl.static_range(len(match)):
        j = t + u - lane
        there = (j >= 1) & (j <= Nb)
        c = c + (tl.load(match[u], mask=there & inside, other=INF).to(w.dtype),)
        d = d + (tl.load(drop[u], mask=there, other=INF).to(w.dtype),)
    return c, d


@triton.jit
def pass_on(at, a, mask):
    """Write a number that another program waits for; all bits set is reserved for "not yet written"."""
    tl.store(at, tl.where(a != a, float("nan"), a), mask=mask, cache_modifier=".cg")


@triton.jit
def missing(values, PRESENT: tl.constexpr, TABLE: tl.constexpr):
    """Whether some value of a block is not yet written; `PRESENT` lists the values of each step that are read."""
    found = tl.full([], 0, tl.int1)
    for u in tl.static_range(len(values)):
        for s in tl.static_range(count(TABLE, PRESENT)):
            if of(TABLE, PRESENT, s):
                a = values[u][s]
                found = found | (a.to(tl.int64 if a.dtype == tl.float64 else tl.int32, bitcast=True) == -1)
    return found


@triton.jit
def row_above(
    top, t, N, Nb, more, w, TABLE: tl.constexpr, STRIPS: tl.constexpr, U: tl.constexpr, VOLATILE: tl.constexpr
):  # fmt: skip
    """Load the states of the row above the strip in a block's columns: for each step, a tuple over the states.

    VOLATILE : another program writes them concurrently.
    """
    INF: tl.constexpr = float("inf")
    tops = ()
    for u in tl.static_range(U):
        above = ()
        for s in tl.static_range(count(TABLE, "up")):
            if STRIPS and of(TABLE, "up", s):
                there = (t + u >= 0) & (t + u <= Nb) & more
                above = above + (tl.load(top + s * (N + 1) + t + u, mask=there, other=INF, volatile=VOLATILE),)
            else:
                above = above + (w,)
        tops = tops + (above,)
    return tops


@triton.jit
def row_below(
    grad_top, t, N, Nb, more, w,
    TABLE: tl.constexpr, STRIPS: tl.constexpr, R: tl.constexpr, U: tl.constexpr, VOLATILE: tl.constexpr,
):  # fmt: skip
    """Load what the strip below sends to the last lane in a block, for each step: see `TableLayout.sent`.

    VOLATILE : it may not be written yet. Otherwise the compiler may move the load to where the value is used.
    """
    SENT: tl.constexpr = count(TABLE, "sent")
    CACHE: tl.constexpr = "" if VOLATILE else ".cg"  # the L1 cache may be stale
    found = ()
    for u in tl.static_range(U):
        below = ()
        j = t + u - (R - 1)
        there = (j >= 0) & (j <= Nb) & more
        for s in tl.static_range(SENT):
            if STRIPS and of(TABLE, "sent", s):
                at = grad_top + (SENT + s) * (N + 1) + j
                a = tl.load(at, mask=there, other=0.0, cache_modifier=CACHE, volatile=VOLATILE)
                below = below + (a,)
            else:
                below = below + (w,)
        found = found + (below,)
    return found


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
