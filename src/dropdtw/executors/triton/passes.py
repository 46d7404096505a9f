"""The two kernels: a program walks one pair of sequences, or a strip of its rows, forwards or backwards."""

from __future__ import annotations

import triton
import triton.language as tl

from dropdtw.executors.triton.cells import fold, step, step_back
from dropdtw.executors.triton.layout import DROP_Z, count, is_sent, of, pays, plane, planes

# --- Memory -------------------------------------------------------------------------------------------------------
#
# Addresses are carried from block to block and advanced, never computed where they are used: Triton's layout pass
# follows the arithmetic behind every computed address through the whole kernel, which makes compiling quadratic.


@triton.jit
def _spread(base, stride, n: tl.constexpr, each: tl.constexpr = 1):
    """The addresses base, base + stride, …, n of them, and of each so many in a row."""
    found = ()
    for s in tl.static_range(n):
        for u in tl.static_range(each):
            found = found + (base + (s * stride + u),)
    return found


@triton.jit
def _advance(addresses, by):
    moved = ()
    for u in tl.static_range(len(addresses)):
        moved = moved + (addresses[u] + by,)
    return moved


@triton.jit
def _costs(match, drop, t, lane, inside, Nb, w):
    """What a block of steps from t on pays: tuples over the steps."""
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
def _row_above(top, t, N, Nb, w, TABLE: tl.constexpr, STRIPS: tl.constexpr, U: tl.constexpr):
    """The states of the row above the strip in a block's columns: for each step, a tuple over the states."""
    INF: tl.constexpr = float("inf")
    tops = ()
    for u in tl.static_range(U):
        above = ()
        for s in tl.static_range(count(TABLE, "up")):
            if STRIPS and of(TABLE, "up", s):
                there = (t + u >= 0) & (t + u <= Nb)
                above = above + (tl.load(top + s * (N + 1) + t + u, mask=there, other=INF),)
            else:
                above = above + (w,)
        tops = tops + (above,)
    return tops


@triton.jit
def _row_below(
    grad_top, t, N, Nb, more, w, TABLE: tl.constexpr, STRIPS: tl.constexpr, R: tl.constexpr, U: tl.constexpr
):  # fmt: skip
    """What the strip below has for the last lane in a block: for each step `g_up`, by d_x, and `g_late`."""
    S: tl.constexpr = count(TABLE, "price")
    found = ()
    for u in tl.static_range(U):
        below = ()
        j = t + u - (R - 1)
        there = (j >= 0) & (j <= Nb) & more
        for s in tl.static_range(2 * S + 1):
            if STRIPS and is_sent(TABLE, s):
                below = below + (tl.load(grad_top + (2 * S + 1 + s) * (N + 1) + j, mask=there, other=0.0),)
            else:
                below = below + (w,)
        found = found + (below,)
    return found


@triton.jit
def _state_at(saved, begun, w, TABLE: tl.constexpr):
    """What was written down at the start of a block: the states of each lane, and its `diag`."""
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
def _write_down(saved, begun, own, diag, TABLE: tl.constexpr):
    """The counterpart of `_state_at`."""
    for s in tl.static_range(count(TABLE, "keep")):
        if of(TABLE, "keep", s):
            tl.store(saved[plane(TABLE, "keep", s)], own[s], mask=begun)
        if of(TABLE, "diag", s):
            tl.store(saved[plane(TABLE, "diag", s)], diag[s], mask=begun)


@triton.jit
def _begun(t, lane, Nb):
    """Whether a lane's state matters at step t: it has begun, and it or the lane below is not past its end."""
    return (t > lane) & (t <= lane + Nb + 1)


@triton.jit
def _slot(t, lane, row, K, U: tl.constexpr, KEEP_ALL: tl.constexpr):
    """Where a lane's state at step t, the start of a block, is written down: each lane counts from its own start."""
    if KEEP_ALL:
        ahead = (t - lane - 1 + 4096 * U) // U - 4096  # rounded down, also where a lane has yet to begin
        return ahead.to(tl.int64) * K + row
    else:
        return row.to(tl.int64)


# --- The two passes -----------------------------------------------------------------------------------------------


_TENSORS = ["C", "drop_x", "drop_z", "saved", "top", "z_len", "x_len"]
_NUMBERS = ["K", "N", "c_b", "c_k", "c_n", "x_b", "x_n", "z_b", "z_n", "slots", "launch", "chunk_blocks", "strip_0"]
_NUMBERS += ["rate_bits"]


def _jit(*tensors: str, numbers: tuple[str, ...] = ()):
    """Compile once for each table, and not again for each property of an argument: `launch` counts on that."""
    return triton.jit(do_not_specialize=[*_NUMBERS, *numbers], do_not_specialize_on_alignment=[*_TENSORS, *tensors])


@triton.jit
def _extent(z_len, x_len, K, N, launch, chunk_blocks, strip_0, R: tl.constexpr, U: tl.constexpr):
    """Which pair and strip; the pair's size and whether it is wrong; the strip's first step and its count of blocks.

    Last, the blocks [k0, k1) of this launch. The last step ends the last block, so that the pair's end is the loop's
    end; the first may begin before step 0.
    """
    b = tl.program_id(0).to(tl.int64)
    strip = strip_0 + tl.program_id(1)
    Kb = K
    Nb = N
    if z_len is not None:
        Kb = tl.load(z_len + b).to(tl.int32)
        Nb = tl.load(x_len + b).to(tl.int32)
    wrong = (Kb < 1) | (Kb > K) | (Nb < 1) | (Nb > N)
    rows = tl.minimum(Kb - strip * R, R)
    steps = rows + Nb
    blocks = tl.where(rows > 0, (steps + U - 1) // U, 0)
    k0 = (launch - 2 * strip) * chunk_blocks
    return b, strip, Kb, Nb, wrong, steps - U * blocks, blocks, k0, tl.minimum(k0 + chunk_blocks, blocks)


@_jit("value")
def forward_pass(
    C, drop_x, drop_z, saved, top, value, z_len, x_len,
    K, N, c_b, c_k, c_n, x_b, x_n, z_b, z_n, slots, launch, chunk_blocks, strip_0, rate_bits,
    TABLE: tl.constexpr, REDUCER: tl.constexpr, STRIPS: tl.constexpr, GRADIENT: tl.constexpr,
    WIDE: tl.constexpr, UNIT: tl.constexpr, R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = count(TABLE, "price")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    PLANES: tl.constexpr = planes(TABLE)
    if UNIT:
        c_n = 1
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    area = K.to(tl.int64) * slots
    ends = saved + tl.num_programs(0).to(tl.int64) * (PLANES * area)
    b, strip, Kb, Nb, wrong, begin, blocks, k0, k1 = _extent(z_len, x_len, K, N, launch, chunk_blocks, strip_0, R, U)
    if wrong:  # nobody has looked at the lengths before
        if GRADIENT:
            for f in tl.static_range(count(TABLE, "final")):
                tl.store(ends + b * count(TABLE, "final") + f, 0.0)
        tl.store(value + b, float("nan"))
        return
    if k0 >= k1:
        return

    lane = tl.arange(0, R)
    row = strip * R + lane
    inside = row < Kb
    z = tl.load(drop_z + b * z_b + row * z_n, mask=inside, other=INF).to(DT)
    strips = (K + R - 1) // R
    top += (b * strips + strip) * (S * (N + 1))
    t = begin + k0 * U
    match = _spread(C + b * c_b + row.to(tl.int64) * c_k + (t - lane - 1).to(tl.int64) * c_n, c_n, U)
    drop = _spread(drop_x + b * x_b + (t - lane - 1) * x_n, x_n, U)
    states = _spread(saved + b * (PLANES * area) + _slot(t, lane, row, K, U, GRADIENT), area, PLANES)
    last_row = _spread(top + S * (N + 1) + (t - U - lane), N + 1, S * STRIPS, U)

    own = ()
    diag = ()
    for s in tl.static_range(S):
        own = own + (tl.full([R], INF, DT),)
        diag = diag + (tl.full([R], INF, DT),)
    if STRIPS:
        own, diag = _state_at(states, _begun(t, lane, Nb) & inside, z, TABLE)
    c = _spread(z, 0, U)
    d = c
    tops = _row_above(top, t, N, Nb, z, TABLE, STRIPS, U)
    for k in range(k0 - 1, k1):  # the first round only loads
        t = begin + k * U
        next_c, next_d = _costs(match, drop, t + U, lane, inside, Nb, z)
        next_tops = _row_above(top, t + U, N, Nb, z, TABLE, STRIPS, U)
        match = _advance(match, U * c_n)
        drop = _advance(drop, U * x_n)
        if k >= k0:
            for u in tl.static_range(U):
                own, diag, _, _ = step(
                    own, diag, c[u], d[u], z, tops[u], t + u, lane, strip == 0, rate, TABLE, REDUCER, STRIPS, False
                )
                if STRIPS:
                    j = t + u - lane
                    wanted = (lane == R - 1) & (j >= 0) & (j <= Nb) & (row + 1 < Kb)
                    for s in tl.static_range(S):
                        if of(TABLE, "up", s):
                            tl.store(last_row[s * U + u], own[s], mask=wanted)
            if GRADIENT:
                _write_down(states, _begun(t + U, lane, Nb) & inside, own, diag, TABLE)
        if GRADIENT:
            states = _advance(states, K)
        last_row = _advance(last_row, U)
        c, d, tops = next_c, next_d, next_tops
    if STRIPS and not GRADIENT:
        _write_down(states, inside, own, diag, TABLE)
    if (k1 == blocks) & (Kb <= (strip + 1) * R):
        last = ()
        for f in tl.static_range(count(TABLE, "final")):
            last = last + (tl.sum(tl.where(row == Kb - 1, own[of(TABLE, "final", f)], 0.0), axis=0),)
        found, weights = fold(last, rate, REDUCER, GRADIENT)
        tl.store(value + b, found)
        if GRADIENT:
            for f in tl.static_range(count(TABLE, "final")):
                tl.store(ends + b * count(TABLE, "final") + f, tl.where(found < INF, weights[f], 0.0))


@triton.jit
def _loaded(at, n: tl.constexpr, stride: tl.constexpr):
    found = ()
    for s in tl.static_range(n):
        found = found + (tl.load(at + s * stride),)
    return found


@triton.jit
def _stored(at, values, stride: tl.constexpr):
    for s in tl.static_range(len(values)):
        tl.store(at + s * stride, values[s])


@_jit("grad", "grad_c", "grad_x", "grad_z", "carry", "grad_top", numbers=("g_k", "g_n", "g_b"))
def backward_pass(
    C, drop_x, drop_z, saved, top, grad, grad_c, grad_x, grad_z, carry, grad_top, z_len, x_len,
    K, N, c_b, c_k, c_n, x_b, x_n, z_b, z_n, g_k, g_n, g_b, slots, launch, chunk_blocks, strip_0, rate_bits,
    TABLE: tl.constexpr, REDUCER: tl.constexpr, STRIPS: tl.constexpr,
    WIDE: tl.constexpr, UNIT: tl.constexpr, R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = count(TABLE, "price")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    PLANES: tl.constexpr = planes(TABLE)
    if UNIT:
        c_n = 1
        g_n = 1
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    area = K.to(tl.int64) * slots
    ends = saved + tl.num_programs(0).to(tl.int64) * (PLANES * area)
    b, strip, Kb, Nb, wrong, begin, blocks, k0, k1 = _extent(z_len, x_len, K, N, launch, chunk_blocks, strip_0, R, U)
    if wrong | (k0 >= k1):
        return

    lane = tl.arange(0, R)
    row = strip * R + lane
    inside = row < Kb
    z = tl.load(drop_z + b * z_b + row * z_n, mask=inside, other=INF).to(DT)
    strips = (K + R - 1) // R
    top += (b * strips + strip) * (S * (N + 1))
    grad_top += (b * strips + strip) * ((2 * S + 1) * (N + 1))
    carry += (b * strips + strip) * ((5 * S + 2) * R) + lane
    t = begin + k1 * U
    p = t - U
    match = _spread(C + b * c_b + row.to(tl.int64) * c_k + (p - lane - 1).to(tl.int64) * c_n, c_n, U)
    drop = _spread(drop_x + b * x_b + (p - lane - 1) * x_n, x_n, U)
    states = _spread(saved + b * (PLANES * area) + _slot(p, lane, row, K, U, True), area, PLANES)
    by_match = _spread(grad_c + b * K * N + row.to(tl.int64) * g_k + (t - lane - 1).to(tl.int64) * g_n, g_n, U)
    by_drop = _spread(grad_x + b * N + (t - lane - 1), 1, U)
    by_top = _spread(grad_top + (t - lane), N + 1, (2 * S + 1) * STRIPS, U)

    # Derivatives on their way to step t; `step_back` says where each goes.
    nothing = tl.zeros([R], DT)
    g_own = ()
    zeros = ()
    by_x = nothing
    by_z = nothing
    out = tl.load(grad + b * g_b).to(DT)
    for s in tl.static_range(S):
        seed = nothing
        for f in tl.static_range(count(TABLE, "final")):
            if of(TABLE, "final", f) == s:
                share = tl.load(ends + b * count(TABLE, "final") + f) * out
                seed = tl.where((row == Kb - 1) & (k1 == blocks), share, 0.0)
        g_own = g_own + (seed,)
        zeros = zeros + (nothing,)
    g_up, g_late, g_diag, g_row = zeros, zeros, zeros, zeros
    if STRIPS:
        if k1 < blocks:
            g_own = _loaded(carry, S, R)
            g_up = _loaded(carry + S * R, S, R)
            g_late = _loaded(carry + 2 * S * R, S, R)
            g_diag = _loaded(carry + 3 * S * R, S, R)
            g_row = _loaded(carry + 4 * S * R, S, R)
            by_x = tl.load(carry + 5 * S * R)
            by_z = tl.load(carry + (5 * S + 1) * R)

    own = ()
    diag = ()
    for s in tl.static_range(S):
        own = own + (z,)
        diag = diag + (z,)
    c = _spread(z, 0, U)
    d = c
    tops = _row_above(top, t, N, Nb, z, TABLE, STRIPS, U)
    for back in range(0, k1 - k0 + 1):  # the first round only loads
        t = begin + (k1 - back) * U
        next_own, next_diag = _state_at(states, _begun(t - U, lane, Nb) & inside, z, TABLE)
        next_c, next_d = _costs(match, drop, t - U, lane, inside, Nb, z)
        next_tops = _row_above(top, t - U, N, Nb, z, TABLE, STRIPS, U)
        states = _advance(states, -K)
        match = _advance(match, -U * c_n)
        drop = _advance(drop, -U * x_n)
        if back > 0:
            below = _row_below(grad_top, t, N, Nb, Kb > (strip + 1) * R, z, TABLE, STRIPS, R, U)
            weights = ()
            row_weights = ()
            for u in tl.static_range(U):
                own, diag, w, r = step(
                    own, diag, c[u], d[u], z, tops[u], t + u, lane, strip == 0, rate, TABLE, REDUCER, STRIPS, True
                )
                weights = weights + (w,)
                row_weights = row_weights + (r,)
            for u in tl.static_range(U - 1, -1, -1):
                g_own, g_up, g_late, g_diag, g_row, by_x, by_z, by_c = step_back(
                    g_own, g_up, g_late, g_diag, g_row, by_x, by_z, weights[u], row_weights[u], below[u],
                    by_drop, by_top, t + u, lane, row, Nb, TABLE, STRIPS, R, U, u,
                )  # fmt: skip
                j = t + u - lane
                tl.store(by_match[u], by_c, mask=(j >= 1) & (j <= Nb) & inside)
        by_match = _advance(by_match, -U * g_n)
        by_drop = _advance(by_drop, -U)
        by_top = _advance(by_top, -U)
        own, diag = next_own, next_diag
        c, d, tops = next_c, next_d, next_tops
    if STRIPS and k0 > 0:
        _stored(carry, g_own + g_up + g_late + g_diag + g_row + (by_x, by_z), R)
    elif pays(TABLE, DROP_Z):
        tl.store(grad_z + b * K + row, by_z, mask=inside)
