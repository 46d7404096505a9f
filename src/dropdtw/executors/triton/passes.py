"""The kernels: each program processes one pair of sequences, or a strip of its rows, forward or backward."""

from __future__ import annotations

import triton
import triton.language as tl

from dropdtw.executors.triton.cells import CHOICES, HARD, fold, pack, step, step_back, unpack
from dropdtw.executors.triton.layout import DROP_Z, count, is_turned, kind, of, packs, pays, planes
from dropdtw.executors.triton.memory import (
    advance,
    at_step,
    begun,
    charges_of,
    collect,
    costs_of,
    missing,
    receive,
    seats,
    send,
    side_by_side,
    slot,
    spread,
    state_at,
    word_at,
    write_down,
    write_word,
)

_TENSORS = ["C", "drop_x", "drop_z", "charges", "saved", "top", "queue", "z_len", "x_len"]
_NUMBERS = ["K", "N", "c_b", "c_k", "c_n", "x_b", "x_n", "z_b", "z_n", "slots", "rate_bits"]


def _jit(*tensors: str, numbers: tuple[str, ...] = ()):
    """Compile once per table, without specializing on properties of the arguments: `launch` relies on that."""
    return triton.jit(do_not_specialize=[*_NUMBERS, *numbers], do_not_specialize_on_alignment=[*_TENSORS, *tensors])


@triton.jit
def _place(queue, strips, STRIPS: tl.constexpr):
    """Return the number of pairs, the pair of this program, and the position of its strip.

    Programs draw their strips from a queue. Whatever the order in which the device starts programs, the strip that a
    program waits for belongs to a program that is already running, so there is no deadlock.
    """
    number = tl.program_id(0)
    if STRIPS:
        number = tl.atomic_add(queue, 1, sem="relaxed") + 1
    pairs = tl.num_programs(0) // strips
    return pairs.to(tl.int64), (number % pairs).to(tl.int64), number // pairs


@triton.jit
def _extent(z_len, x_len, b, strip, K, N, R: tl.constexpr, U: tl.constexpr):
    """Return the pair's size and whether it is invalid, and the strip's first step and number of blocks.

    The last step ends the last block, so the pair and the loop end together; the first block may start before step 0.
    """
    Kb = K
    Nb = N
    if z_len is not None:
        Kb = tl.load(z_len + b).to(tl.int32)
        Nb = tl.load(x_len + b).to(tl.int32)
    wrong = (Kb < 1) | (Kb > K) | (Nb < 1) | (Nb > N)
    rows = tl.minimum(Kb - strip * R, R)
    steps = rows + Nb
    blocks = tl.where(rows > 0, (steps + U - 1) // U, 0)
    return Kb, Nb, wrong, steps - U * blocks, blocks


@triton.jit
def _normalized(a, Kb, Nb, BY: tl.constexpr):
    """Divide a number by the pair's length that BY selects: see `LENGTHS`."""
    if BY == 0:
        return a
    else:
        length = (Nb if BY == 1 else Kb if BY == 2 else Kb + Nb).to(a.dtype)
        return a / length if a.dtype == tl.float64 else tl.div_rn(a, length)


@_jit("value")
def forward_pass(
    C, drop_x, drop_z, charges, saved, top, queue, value, z_len, x_len,
    K, N, c_b, c_k, c_n, x_b, x_n, z_b, z_n, slots, rate_bits,
    TABLE: tl.constexpr, REDUCER: tl.constexpr, STRIPS: tl.constexpr, GRADIENT: tl.constexpr,
    WIDE: tl.constexpr, UNIT: tl.constexpr, STRIDE: tl.constexpr, BY: tl.constexpr, R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """UNIT, STRIDE : whether c_n is 1, and the value of x_n (−1: any). Known strides need fewer registers."""
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = count(TABLE, "price")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    PACKED: tl.constexpr = packs(TABLE, REDUCER == HARD, U)
    PLANES: tl.constexpr = 1 if PACKED else planes(TABLE)
    if STRIDE != -1:
        x_n = STRIDE
    if UNIT:
        c_n = 1
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    area = K.to(tl.int64) * slots
    strips = (K + R - 1) // R
    pairs, b, strip = _place(queue, strips, STRIPS)
    ends = saved + pairs * (PLANES * area)
    Kb, Nb, wrong, begin, blocks = _extent(z_len, x_len, b, strip, K, N, R, U)
    if wrong:  # the lengths were not checked before
        if GRADIENT:
            for f in tl.static_range(count(TABLE, "final")):
                tl.store(ends + b * count(TABLE, "final") + f, 0.0)
        tl.store(value + b, float("nan"))
        return
    if blocks == 0:
        return

    lane = tl.arange(0, R)
    row = strip * R + lane
    inside = row < Kb
    z = tl.load(drop_z + b * z_b + row * z_n, mask=inside, other=INF).to(DT)
    o = charges_of(charges, b, z, TABLE)
    if STRIPS:
        top += (b * strips + strip) * (S * (N + 1))
    t = begin
    match = spread(C + b * c_b + row.to(tl.int64) * c_k + (t - lane - 1).to(tl.int64) * c_n, c_n, U)
    drop = spread(drop_x + b * x_b + (t - lane - 1) * x_n, x_n, U)
    states = spread(saved + b * (PLANES * area) + slot(t, lane, row, K, U), area, PLANES if GRADIENT else 0)
    below = top
    at = ()
    steps = ()
    if STRIPS:
        below += S * (N + 1)
        at, steps = seats(lane, N + 1, "up", TABLE, U, R)

    own = ()
    diag = ()
    for s in tl.static_range(S):
        own = own + (tl.full([R], INF, DT),)
        diag = diag + (tl.full([R], INF, DT),)
    c = spread(z, 0, U)
    d = c
    tops = receive(top, at, steps, t, Nb, strip > 0, z, INF, True)
    next_tops = tops
    last_row = tops
    for k in range(-1, blocks):  # the first iteration only loads
        t = begin + k * U
        next_c, next_d = costs_of(match, drop, t + U, lane, inside, Nb, z, TABLE)
        later_tops = receive(top, at, steps, t + 2 * U, Nb, strip > 0, z, INF, True)
        match = advance(match, U * c_n)
        drop = advance(drop, U * x_n)
        if k >= 0:
            word = tl.zeros([R], tl.int32)
            for u in tl.static_range(U):
                own, diag, choices, row_choices = step(
                    own, diag, c[u], d[u], z, o, at_step(tops, z, "up", TABLE, u, U, R), t + u, lane, strip == 0, rate,
                    TABLE, REDUCER, STRIPS, CHOICES if GRADIENT and PACKED else False,
                )  # fmt: skip
                if GRADIENT and PACKED:
                    word = pack(word, choices, row_choices, TABLE, u)
                last_row = collect(last_row, own, R - 1, lane, "up", TABLE, u, U, R)
            send(below, at, steps, t - (R - 1), Nb, Kb > (strip + 1) * R, last_row)
            if GRADIENT and PACKED:
                write_word(states[0], word, t + U, lane, inside, Nb, z, U)
            elif GRADIENT:
                write_down(states, begun(t + U, lane, Nb) & inside, own, diag, TABLE)
        if STRIPS:
            while missing(next_tops):
                next_tops = receive(top, at, steps, t + U, Nb, strip > 0, z, INF, True)
        states = advance(states, K)
        c, d, tops, next_tops = next_c, next_d, next_tops, later_tops
    if Kb <= (strip + 1) * R:
        last = ()
        for f in tl.static_range(count(TABLE, "final")):
            last = last + (tl.sum(tl.where(row == Kb - 1, own[of(TABLE, "final", f)], 0.0), axis=0),)
        found, weights = fold(last, rate, REDUCER, GRADIENT)
        tl.store(value + b, _normalized(found, Kb, Nb, BY))
        if GRADIENT:
            for f in tl.static_range(count(TABLE, "final")):
                tl.store(ends + b * count(TABLE, "final") + f, tl.where(found < INF, weights[f], 0.0))


@_jit("grad", "grad_c", "grad_x", "grad_z", "grad_rows", "grad_top", numbers=("g_k", "g_n", "g_b", "scale_bits"))
def backward_pass(
    C, drop_x, drop_z, charges, saved, top, queue, grad, grad_c, grad_x, grad_z, grad_rows, grad_top, z_len, x_len,
    K, N, c_b, c_k, c_n, x_b, x_n, z_b, z_n, g_k, g_n, g_b, slots, rate_bits, scale_bits,
    TABLE: tl.constexpr, REDUCER: tl.constexpr, STRIPS: tl.constexpr,
    WIDE: tl.constexpr, UNIT: tl.constexpr, STRIDE: tl.constexpr, BY: tl.constexpr, TILES: tl.constexpr,
    R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """Compute the derivatives of Σ grad · value or, if `grad` is None, of Σ scale · value.

    TILES : store the derivatives of C one block at a time, U consecutive columns of each row, not step by step.
    """
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = count(TABLE, "price")
    P: tl.constexpr = count(TABLE, "kinds")
    SENT: tl.constexpr = count(TABLE, "sent")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    PACKED: tl.constexpr = packs(TABLE, REDUCER == HARD, U)
    PLANES: tl.constexpr = 1 if PACKED else planes(TABLE)
    if STRIDE != -1:
        x_n = STRIDE
    if UNIT:
        c_n = 1
        g_n = 1
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    area = K.to(tl.int64) * slots
    strips = (K + R - 1) // R
    pairs, b, turn = _place(queue, strips, STRIPS)
    strip = strips - 1 - turn
    ends = saved + pairs * (PLANES * area)
    Kb, Nb, wrong, begin, blocks = _extent(z_len, x_len, b, strip, K, N, R, U)
    if wrong | (blocks == 0):
        return

    lane = tl.arange(0, R)
    row = strip * R + lane
    inside = row < Kb
    z = tl.load(drop_z + b * z_b + row * z_n, mask=inside, other=INF).to(DT)
    o = charges_of(charges, b, z, TABLE)
    if STRIPS:
        top += (b * strips + strip) * (S * (N + 1))
        grad_top += (b * strips + strip) * (SENT * (N + 1))
    t = begin + blocks * U
    p = t - U
    match = spread(C + b * c_b + row.to(tl.int64) * c_k + (p - lane - 1).to(tl.int64) * c_n, c_n, U)
    drop = spread(drop_x + b * x_b + (p - lane - 1) * x_n, x_n, U)
    states = spread(saved + b * (PLANES * area) + slot(t if PACKED else p, lane, row, K, U), area, PLANES)
    grad_c += b * K * N
    by_match = spread(grad_c + row.to(tl.int64) * g_k + (t - lane - 1).to(tl.int64) * g_n, g_n, 0 if TILES else U)
    by_drop = spread(grad_x + b * N + (t - lane - 1), 1, U)
    up_at, up_steps, at, steps = (), (), (), ()
    from_below = grad_top
    if STRIPS:
        from_below += SENT * (N + 1)
        up_at, up_steps = seats(lane, N + 1, "up", TABLE, U, R)
        at, steps = seats(lane, N + 1, "sent", TABLE, U, R)
    by_row = ()
    if is_turned(TABLE):
        grad_rows += b * (P * (N + 1))
        by_row = spread(grad_rows + (t - lane), N + 1, P, U)

    # Derivatives in transit to step t; `step_back` documents where each goes.
    nothing = tl.zeros([R], DT)
    g_own = ()
    zeros = ()
    by_x = nothing
    by_z = nothing
    by_rows = spread(nothing, 0, P)
    by_row_0 = spread(nothing, 0, 0 if is_turned(TABLE) else P)
    if grad is None:
        out = scale_bits.to(tl.float64, bitcast=True).to(DT)
    else:
        out = tl.load(grad + b * g_b).to(DT)
    out = _normalized(out, Kb, Nb, BY)
    for s in tl.static_range(S):
        seed = nothing
        for f in tl.static_range(count(TABLE, "final")):
            if of(TABLE, "final", f) == s:
                share = tl.load(ends + b * count(TABLE, "final") + f) * out
                seed = tl.where(row == Kb - 1, share, 0.0)
        g_own = g_own + (seed,)
        zeros = zeros + (nothing,)
    g_up, g_late, g_diag, g_row = zeros, zeros, zeros, zeros

    own = ()
    diag = ()
    for s in tl.static_range(S):
        own = own + (z,)
        diag = diag + (z,)
    c = spread(z, 0, U)
    d = c
    tops = receive(top, up_at, up_steps, t, Nb, (strip > 0) & (not PACKED), z, INF, False)
    word = tl.zeros([R], tl.int32)
    next_word = word
    more = Kb > (strip + 1) * R
    below = receive(from_below, at, steps, t - U - (R - 1), Nb, more, z, 0.0, True)
    sent = below
    for back in range(0, blocks + 1):  # the first iteration only loads
        t = begin + (blocks - back) * U
        if PACKED:
            next_word = word_at(states[0], t, lane, inside, Nb, z, U)
            next_own, next_diag, next_c, next_d, next_tops = own, diag, c, d, tops
        else:
            next_own, next_diag = state_at(states, begun(t - U, lane, Nb) & inside, z, TABLE)
            next_c, next_d = costs_of(match, drop, t - U, lane, inside, Nb, z, TABLE)
            next_tops = receive(top, up_at, up_steps, t - U, Nb, strip > 0, z, INF, False)
        states = advance(states, -K)
        match = advance(match, -U * c_n)
        drop = advance(drop, -U * x_n)
        if back > 0:
            next_below = receive(from_below, at, steps, t - U - (R - 1), Nb, more, z, 0.0, True)
            weights = ()
            row_weights = ()
            for u in tl.static_range(0 if PACKED else U):
                own, diag, w, r = step(
                    own, diag, c[u], d[u], z, o, at_step(tops, z, "up", TABLE, u, U, R), t + u, lane, strip == 0, rate,
                    TABLE, REDUCER, STRIPS, True,
                )  # fmt: skip
                weights = weights + (w,)
                row_weights = row_weights + (r,)
            if STRIPS:
                while missing(below):
                    below = receive(from_below, at, steps, t - (R - 1), Nb, more, z, 0.0, True)
            found = ()
            for u in tl.static_range(U - 1, -1, -1):
                if PACKED:
                    w = unpack(word, t + u == 1, z, "all", TABLE, u)
                    r = unpack(word, t + u == 1, z, "row", TABLE, u)
                else:
                    w = weights[u]
                    r = row_weights[u]
                g_own, g_up, g_late, g_diag, g_row, by_x, by_z, by_rows, by_row_0, by_c = step_back(
                    g_own, g_up, g_late, g_diag, g_row, by_x, by_z, by_rows, by_row_0, w, r,
                    at_step(below, z, "sent", TABLE, u, U, R), by_drop, by_row, t + u, lane, row, Nb,
                    TABLE, STRIPS, R, U, u,
                )  # fmt: skip
                sent = collect(sent, g_up + (by_x,) + g_late + by_rows, 0, lane, "sent", TABLE, u, U, R)
                if TILES:
                    found = (by_c,) + found
                else:
                    j = t + u - lane
                    tl.store(by_match[u], by_c, mask=(j >= 1) & (j <= Nb) & inside)
            send(grad_top, at, steps, t, Nb, strip > 0, sent)
            below = next_below
            if TILES:
                # Compute addresses where they are used: carrying a matrix of them would take a third more registers.
                i = tl.arange(0, R)[:, None]
                j = tl.arange(0, U)[None, :] + t - i
                there = (j >= 1) & (j <= Nb) & (strip * R + i < Kb)
                tl.store(grad_c + (strip * R + i).to(tl.int64) * g_k + (j - 1), side_by_side(found), mask=there)
        by_match = advance(by_match, -U * g_n)
        by_drop = advance(by_drop, -U)
        by_row = advance(by_row, -U)
        own, diag, word = next_own, next_diag, next_word
        c, d, tops = next_c, next_d, next_tops
    if pays(TABLE, DROP_Z):
        tl.store(grad_z + b * K + row, by_z, mask=inside)
    if not is_turned(TABLE):
        for n in tl.static_range(P):
            of_row = grad_rows + (b * P + n) * (K + 1) + row
            tl.store(of_row + 1, by_rows[n], mask=inside)
            tl.store(of_row, by_row_0[n], mask=row == 0)


@_jit("grad_rows", "grad_charges")
def sum_rows(grad_rows, grad_charges, K, TABLE: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr):
    """Sum the derivatives of charges over rows, R rows at a time, so that padding does not change a single bit."""
    b = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, R)
    for k in tl.static_range(3):
        total = tl.zeros([], tl.float64 if WIDE else tl.float32)
        if kind(TABLE, k) != -1:
            rows = grad_rows + (b * count(TABLE, "kinds") + kind(TABLE, k)) * (K + 1)
            for start in range(0, K + 1, R):
                total += tl.sum(tl.load(rows + start + row, mask=start + row <= K, other=0.0), axis=0)
        tl.store(grad_charges + b * 3 + k, total)
