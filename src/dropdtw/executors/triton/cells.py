"""One step of all lanes, forward and backward: the computation between a cell and its neighbors.

All data are tuples, over states or edges, of tensors over the lanes. Loops over the tuples are unrolled at compile
time.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

from dropdtw.executors.triton.layout import (
    BORDER,
    DIAG,
    DROP_X,
    DROP_Z,
    FREE,
    INSIDE,
    LEFT,
    MATCH,
    SAME,
    TOP,
    before,
    chosen,
    count,
    digits,
    edge,
    into,
    is_turned,
    many,
    nth,
    of,
    pays,
    shift,
)

LN_2 = tl.constexpr(math.log(2))
HARD, SOFT, SMOOTH = (tl.constexpr(k) for k in range(3))
CHOICES = tl.constexpr(2)
REDUCER_NUMBER = {"hard": 0, "soft": 1, "smooth": 2}


INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


# --- Reducers -----------------------------------------------------------------------------------------------------


@triton.jit
def _reciprocal(a):
    """Compute 1 / a for 1 ≤ a ≤ the number of alternatives, without the range checks of a general division."""
    if a.dtype == tl.float64 or INTERPRETED:
        return 1.0 / a
    else:
        asm: tl.constexpr = "rcp.approx.ftz.f32 $0, $1;"
        return tl.inline_asm_elementwise(asm, "=f,f", [a], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _exp2(a):
    """Compute 2^a for a ≤ 0, with an error of two units in the last place and 0 for denormal results."""
    if a.dtype == tl.float64 or INTERPRETED:
        return tl.exp2(a)
    else:
        asm: tl.constexpr = "ex2.approx.ftz.f32 $0, $1;"
        return tl.inline_asm_elementwise(asm, "=f,f", [a], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _log2(a):
    """Compute log₂ a for a ≥ 1, with an error of 2⁻²² up to 2, and of as much relative to the result beyond.

    The exact function is a polynomial of twenty dependent operations. Each step of an alignment waits for it.
    """
    if a.dtype == tl.float64 or INTERPRETED:
        return tl.log2(a)
    else:
        asm: tl.constexpr = "lg2.approx.ftz.f32 $0, $1;"
        return tl.inline_asm_elementwise(asm, "=f,f", [a], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def fold(v, rate, REDUCER: tl.constexpr, WEIGH: tl.constexpr):
    """Compute the minimum of the alternatives v and, with WEIGH, its derivatives; `rate` is log₂(e)/γ.

    WEIGH is CHOICES: of a hard minimum, return the number of the first smallest alternative instead, if there are two.
    """
    INF: tl.constexpr = float("inf")
    n: tl.constexpr = len(v)
    low = v[0]
    for k in tl.static_range(1, n):
        low = tl.minimum(low, v[k], propagate_nan=tl.PropagateNan.ALL)
    weights = ()
    value = low
    if n == 1:
        if WEIGH != CHOICES:
            weights = (1.0,)
    elif REDUCER == HARD:
        if WEIGH == CHOICES:
            choice = tl.full(low.shape, n - 1, tl.int32)
            for k in tl.static_range(n - 2, -1, -1):
                choice = tl.where(v[k] == low, k, choice)
            weights = (choice,)
        elif WEIGH:
            free = low < INF
            for k in tl.static_range(n):
                here = free & (v[k] == low)
                weights = weights + (tl.where(here, 1.0, 0.0).to(low.dtype),)
                free = free & (v[k] != low)
    elif n == 2:
        # One of the two exponents is 0, so one exponential suffices, which shortens the critical path of each step.
        gap = tl.where(low == INF, 0.0, tl.abs(v[0] - v[1]))
        e = _exp2(-gap * rate)
        share = _reciprocal(1.0 + e)
        less = e * share
        if REDUCER == SMOOTH:
            gap = tl.where(e > 0, gap, 0.0)  # ∞ · 0 would be NaN
            value = low + gap * less
        else:
            value = low - _log2(1.0 + e) * (1.0 / rate)
        if WEIGH:
            if REDUCER == SMOOTH:
                slope = gap * less * share * (rate * LN_2)
                share = share + slope
                less = less - slope
            weights = (tl.where(v[0] <= v[1], share, less), tl.where(v[0] <= v[1], less, share))
    else:
        base = tl.where(low == INF, 0.0, low)
        total = tl.zeros_like(low)
        mean = tl.zeros_like(low)
        powers = ()
        above = ()
        for k in tl.static_range(n):
            e = _exp2((base - v[k]) * rate)
            total += e
            powers = powers + (e,)
            if REDUCER == SMOOTH:
                u = tl.where(e > 0, v[k] - base, 0.0)  # ∞ · 0 would be NaN
                mean += u * e
                above = above + (u,)
        share = _reciprocal(tl.where(low == INF, 1.0, total))
        if REDUCER == SMOOTH:
            mean = mean * share
            value = base + mean
        else:
            value = base - _log2(total) * (1.0 / rate)
        value = tl.where(low == INF, INF, value)
        if WEIGH:
            for k in tl.static_range(n):
                w = powers[k] * share
                if REDUCER == SMOOTH:
                    w = w * (1.0 - (above[k] - mean) * (rate * LN_2))
                weights = weights + (w,)
    return value, weights


# --- One step -----------------------------------------------------------------------------------------------------


@triton.jit
def _times(WEIGHT: tl.constexpr, a):
    if WEIGHT == 1:
        return a
    else:
        return a * WEIGHT


@triton.jit
def price_of(COST: tl.constexpr, WEIGHT: tl.constexpr, c, d, z):
    if COST == MATCH:
        return _times(WEIGHT, c)
    elif COST == DROP_X:
        return _times(WEIGHT, d)
    else:
        return _times(WEIGHT, z)


@triton.jit
def _arriving(TABLE: tl.constexpr, e: tl.constexpr, here, left, up, diag, c, d, z, charges, j):
    """Compute the value that one edge brings into its state."""
    INF: tl.constexpr = float("inf")
    if of(TABLE, "move", e) == DIAG:
        a = diag[of(TABLE, "src", e)]
    elif of(TABLE, "move", e) == LEFT:
        a = left[of(TABLE, "src", e)]
    elif of(TABLE, "move", e) == TOP:
        a = up[of(TABLE, "src", e)]
    else:
        a = here[of(TABLE, "src", e)]
    if of(TABLE, "price", of(TABLE, "dst", e)) == -1 and of(TABLE, "cost", e) != FREE:
        a = a + price_of(of(TABLE, "cost", e), of(TABLE, "weight", e), c, d, z)
    if of(TABLE, "plus", e) != -1:
        a = a + charges[of(TABLE, "plus", e)]
    if of(TABLE, "where", e) == INSIDE:
        a = tl.where(j == 0, INF, a)
    if of(TABLE, "where", e) == BORDER:
        a = tl.where(j == 0, a, INF)
    return a


@triton.jit
def _cells(
    left, up, diag, c, d, z, charges, j, rate, TABLE: tl.constexpr, REDUCER: tl.constexpr, WEIGH: tl.constexpr
):  # fmt: skip
    """Compute the states of one cell per lane and, with WEIGH, the weights of all edges."""
    INF: tl.constexpr = float("inf")
    here = ()
    weights = ()
    for s in tl.static_range(count(TABLE, "price")):
        v = ()
        for n in tl.static_range(into(TABLE, "all", s)):
            v = v + (_arriving(TABLE, before(TABLE, "all", s) + n, here, left, up, diag, c, d, z, charges, j),)
        if len(v) == 0:
            here = here + (tl.full(z.shape, INF, z.dtype),)
        else:
            value, w = fold(v, rate, REDUCER, WEIGH)
            if of(TABLE, "price", s) != -1 and of(TABLE, "price", s) != FREE:
                # A price that all alternatives share is added once.
                value = value + price_of(of(TABLE, "price", s), of(TABLE, "times", s), c, d, z)
            here = here + (value,)
            weights = weights + w
    return here, weights


@triton.jit
def _along_row_0(TABLE: tl.constexpr, n: tl.constexpr, START: tl.constexpr, here, left, d, charges):
    """Compute the value that the n-th edge of row 0 brings. START: it leaves the origin, where its source is 0."""
    e: tl.constexpr = edge(TABLE, "row", n)
    if START:
        a = tl.zeros_like(d)
    elif of(TABLE, "move", e) == LEFT:
        a = left[of(TABLE, "row_left", of(TABLE, "src", e))]
    else:
        a = here[of(TABLE, "src", e)]
    if of(TABLE, "cost", e) == DROP_X:
        a = a + _times(of(TABLE, "weight", e), d)
    if of(TABLE, "plus", e) != -1:
        a = a + charges[of(TABLE, "plus", e)]
    return a


@triton.jit
def _row_0(left, d, charges, begins, leaves, rate, TABLE: tl.constexpr, REDUCER: tl.constexpr, WEIGH: tl.constexpr):
    """Compute the states of cell (0, t) from those of (0, t − 1), and the weights of the edges of row 0 by state.

    begins, leaves : whether t is 0, and whether it is 1.
    """
    INF: tl.constexpr = float("inf")
    here = ()
    weights = ()
    for s in tl.static_range(count(TABLE, "start")):
        v = ()
        for n in tl.static_range(into(TABLE, "row", s)):
            v = v + (
                _along_row_0(TABLE, before(TABLE, "row", s) + n, of(TABLE, "opens", s) == n, here, left, d, charges),
            )
        if len(v) == 0:
            value = tl.full(d.shape, INF, d.dtype)
        elif of(TABLE, "opens", s) == -1:
            value, w = fold(v, rate, REDUCER, WEIGH)
            weights = weights + w
        else:
            turn = leaves == (of(TABLE, "opens", s) == 0)
            value = tl.where(turn, v[0], v[1])
            if WEIGH != CHOICES:
                weights = weights + (tl.where(turn, 1.0, 0.0).to(d.dtype), tl.where(turn, 0.0, 1.0).to(d.dtype))
        if of(TABLE, "start", s):
            value = tl.where(begins, 0.0, value)
        here = here + (value,)
    return here, weights


@triton.jit
def step(
    own, diag, c, d, z, charges, tops, t, lane, first, rate,
    TABLE: tl.constexpr, REDUCER: tl.constexpr, STRIPS: tl.constexpr, WEIGH: tl.constexpr,
):  # fmt: skip
    """Advance all lanes by one step; return their states, the states above them, and the weights of all edges."""
    INF: tl.constexpr = float("inf")
    row, row_weights = _row_0(diag, d, charges, t == 0, t == 1, rate, TABLE, REDUCER, WEIGH)
    up = ()
    above = tl.maximum(lane - 1, 0)
    for s in tl.static_range(count(TABLE, "up")):
        if of(TABLE, "up", s):
            border = row[s]
            if STRIPS:
                border = tl.where(first, border, tops[s])
            up = up + (tl.where(lane == 0, border, tl.gather(own[s], above, 0)),)
        else:
            up = up + (tl.full(z.shape, INF, z.dtype),)
    here, weights = _cells(own, up, diag, c, d, z, charges, t - lane, rate, TABLE, REDUCER, WEIGH)
    return here, up, weights, row_weights


@triton.jit
def pack(word, choices, row_choices, TABLE: tl.constexpr, u: tl.constexpr):
    """Add the choices of the u-th step of a block to its word."""
    STEP: tl.constexpr = u * shift(TABLE, "row", count(TABLE, "price"))
    for s in tl.static_range(count(TABLE, "price")):
        if digits(TABLE, "all", s) > 0:
            word = word | (choices[chosen(TABLE, "all", s)] << (STEP + shift(TABLE, "all", s)))
        if digits(TABLE, "row", s) > 0:
            word = word | (row_choices[chosen(TABLE, "row", s)] << (STEP + shift(TABLE, "row", s)))
    return word


@triton.jit
def _unpack(word, leaves, w, s: tl.constexpr, AMONG: tl.constexpr, TABLE: tl.constexpr, u: tl.constexpr):
    """Return the weights of the edges into one state, see `unpack`."""
    n: tl.constexpr = into(TABLE, AMONG, s)
    bits: tl.constexpr = digits(TABLE, AMONG, s)
    weights = ()
    if n == 1:
        weights = (1.0,)
    elif bits > 0:
        place: tl.constexpr = u * shift(TABLE, "row", count(TABLE, "price")) + shift(TABLE, AMONG, s)
        choice = (word >> place) & ((1 << bits) - 1)
        for k in tl.static_range(n):
            weights = weights + (tl.where(choice == k, 1.0, 0.0).to(w.dtype),)
    elif n == 2:
        turn = leaves == (of(TABLE, "opens", s) == 0)
        weights = (tl.where(turn, 1.0, 0.0).to(w.dtype), tl.where(turn, 0.0, 1.0).to(w.dtype))
    return weights


@triton.jit
def unpack(word, leaves, w, AMONG: tl.constexpr, TABLE: tl.constexpr, u: tl.constexpr):
    """Return the weights, 0 or 1, of all edges of a list in the u-th step of a block, from the word of its choices.

    leaves : as in `_row_0`.   w : a tensor of the type of weights.
    """
    weights = ()
    for s in tl.static_range(count(TABLE, "price")):
        weights = weights + _unpack(word, leaves, w, s, AMONG, TABLE, u)
    return weights


# --- One step back ------------------------------------------------------------------------------------------------


@triton.jit
def flow_back(TABLE: tl.constexpr, AMONG: tl.constexpr, n: tl.constexpr, SKIP: tl.constexpr, full, weights):
    """Compute the derivative that flows back along the n-th edge of a list; `full` lacks the first SKIP states."""
    return weights[n] * full[of(TABLE, "dst", edge(TABLE, AMONG, n)) - SKIP]


@triton.jit
def _arrived(g, weights, AMONG: tl.constexpr, TABLE: tl.constexpr):
    """Compute the derivative for each state of a cell: g from other cells, plus the flow along edges within it."""
    full = ()
    for s in tl.static_range(count(TABLE, "price") - 1, -1, -1):
        a = g[s]
        for n in tl.static_range(many(TABLE, AMONG, "src", s, SAME)):
            a = a + flow_back(TABLE, AMONG, nth(TABLE, AMONG, "src", s, SAME, n), s + 1, full, weights)
        full = (a,) + full
    return full


@triton.jit
def _back_by(MOVE: tl.constexpr, full, weights, AMONG: tl.constexpr, TABLE: tl.constexpr):
    """Compute the derivatives that flow back along the edges of one move, for each state that receives them."""
    back = ()
    for s in tl.static_range(count(TABLE, "price")):
        a = tl.zeros_like(full[0])
        for n in tl.static_range(many(TABLE, AMONG, "src", s, MOVE)):
            a = a + flow_back(TABLE, AMONG, nth(TABLE, AMONG, "src", s, MOVE, n), 0, full, weights)
        back = back + (a,)
    return back


@triton.jit
def cost_back(COST: tl.constexpr, full, weights, AMONG: tl.constexpr, TABLE: tl.constexpr):
    """Compute the derivative with respect to one cost."""
    a = tl.zeros_like(full[0])
    for n in tl.static_range(many(TABLE, AMONG, "cost", COST)):
        flow = flow_back(TABLE, AMONG, nth(TABLE, AMONG, "cost", COST, None, n), 0, full, weights)
        a = a + _times(of(TABLE, "weight", edge(TABLE, AMONG, nth(TABLE, AMONG, "cost", COST, None, n))), flow)
    return a


@triton.jit
def charge_back(p: tl.constexpr, full, weights, AMONG: tl.constexpr, TABLE: tl.constexpr):
    """Compute the derivative with respect to the p-th charge of the table."""
    a = tl.zeros_like(full[0])
    for n in tl.static_range(many(TABLE, AMONG, "plus", of(TABLE, "kinds", p))):
        a = a + flow_back(TABLE, AMONG, nth(TABLE, AMONG, "plus", of(TABLE, "kinds", p), None, n), 0, full, weights)
    return a


@triton.jit
def _charges_back(
    by_rows, by_row_0, full, weights, full_0, weights_0, below, store, first, lane, row,
    TABLE: tl.constexpr, STRIPS: tl.constexpr, R: tl.constexpr, U: tl.constexpr, u: tl.constexpr,
):  # fmt: skip
    """Accumulate the derivatives with respect to charges for each row of the problem.

    A batch may hold the problem with rows and columns swapped. Sums must be bitwise the same in both cases, so each row
    of the problem is summed separately, from right to left. If it is a row of the kernel, it has its own lane. If it is
    a column, its sum moves up from lane to lane and is stored from the first one.
    """
    rows = ()
    row_0 = ()
    for p in tl.static_range(count(TABLE, "kinds")):
        if is_turned(TABLE):
            a = _from_below(by_rows[p], below[2 * count(TABLE, "price") + 1 + p], lane, STRIPS, R)
            a = a + charge_back(p, full, weights, "all", TABLE)
            tl.store(store[p * U + u], a + charge_back(p, full_0, weights_0, "row", TABLE), mask=first & (row == 0))
            rows = rows + (a,)
        else:
            rows = rows + (by_rows[p] + charge_back(p, full, weights, "all", TABLE),)
            if many(TABLE, "row", "plus", of(TABLE, "kinds", p)) > 0:
                row_0 = row_0 + (by_row_0[p] + charge_back(p, full_0, weights_0, "row", TABLE),)
            else:
                row_0 = row_0 + (by_row_0[p],)
    return rows, row_0


@triton.jit
def step_back(
    g_own, g_up, g_late, g_diag, g_row, by_x, by_z, by_rows, by_row_0, weights, row_weights, below,
    grad_x, grad_rows, t, lane, row, Nb,
    TABLE: tl.constexpr, STRIPS: tl.constexpr, R: tl.constexpr, U: tl.constexpr, u: tl.constexpr,
):  # fmt: skip
    """Move all lanes one step back; return the derivatives in transit to step t − 1 and those of the match costs.

    g_own goes to the lane's own cell, and g_row does the same on row 0; g_up and g_late go to the lane above; g_diag
    goes to the lane above one step later. The left and lower contributions are added first and the diagonal one last,
    so the sum is bitwise the same if rows and columns are swapped.
    """
    S: tl.constexpr = count(TABLE, "price")
    j = t - lane
    g = ()
    for s in tl.static_range(S):
        a = g_own[s]
        if of(TABLE, "top", s):
            a = a + _from_below(g_up[s], below[s], lane, STRIPS, R)
        if of(TABLE, "diag", s):
            a = a + _from_below(g_late[s], below[S + 1 + s], lane, STRIPS, R)
        g = g + (a,)
    full = _arrived(g, weights, "all", TABLE)
    by_c = cost_back(MATCH, full, weights, "all", TABLE)
    by_x = _from_below(by_x, below[S], lane, STRIPS, R) + cost_back(DROP_X, full, weights, "all", TABLE)
    by_z += cost_back(DROP_Z, full, weights, "all", TABLE)
    g_own = _back_by(LEFT, full, weights, "all", TABLE)
    g_up = _back_by(TOP, full, weights, "all", TABLE)
    g_late = g_diag
    g_diag = _back_by(DIAG, full, weights, "all", TABLE)
    on_row_0 = ()
    for s in tl.static_range(S):
        a = g_row[s] + g_up[s] + g_late[s]
        on_row_0 = on_row_0 + (tl.where(row == 0, a, 0.0),)  # row 0 lies above the row of number 0
    full_0 = _arrived(on_row_0, row_weights, "row", TABLE)
    g_row = _back_by(LEFT, full_0, row_weights, "row", TABLE)
    first = (lane == 0) & (j >= 0) & (j <= Nb)
    by_rows, by_row_0 = _charges_back(
        by_rows, by_row_0, full, weights, full_0, row_weights, below, grad_rows, first, lane, row,
        TABLE, STRIPS, R, U, u,
    )  # fmt: skip
    if pays(TABLE, DROP_X):
        by_drop = by_x + cost_back(DROP_X, full_0, row_weights, "row", TABLE)
        tl.store(grad_x[u], by_drop, mask=first & (j >= 1) & (row == 0))
    return g_own, g_up, g_late, g_diag, g_row, by_x, by_z, by_rows, by_row_0, by_c


@triton.jit
def _from_below(value, strip_below, lane, STRIPS: tl.constexpr, R: tl.constexpr):
    """Return what the lane below sends to this one; the last lane receives it from the strip below."""
    moved = tl.gather(value, tl.minimum(lane + 1, R - 1), 0)
    if STRIPS:
        return tl.where(lane == R - 1, strip_below, moved)
    else:
        return tl.where(lane == R - 1, 0.0, moved)
