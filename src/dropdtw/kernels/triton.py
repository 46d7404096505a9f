"""The CUDA executor: one Triton kernel forward and one backward, for every table and reducer.

A program walks one pair of sequences along its anti-diagonals. Its *lanes* are rows i of the grid, so at step t lane
ℓ is in cell (ℓ + 1, t − ℓ), and all it needs lies in neighbouring lanes: `left` is its own last value, `up` is the
last value of the lane above, and `diag` is the last `up`. Column 0 is a column like any other; row 0 is computed
beside lane 0 (`_row_0`). Rows beyond the last lane belong to the next *strip*, which reads the last row of the strip
above it from memory; strips advance in *chunks* of steps, one launch for all that are ready.

Steps are taken in blocks of U, unrolled. The next block's costs are loaded while this one is computed, and its first
state is written down; the backward pass starts each block from there, computes it again with the weights of its
edges in registers, and pushes derivatives back along them. Nothing else of the grid is ever stored.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.recurrence import MOVES, Edge, Recurrence

_DIAG, _LEFT, _TOP, _SAME = (tl.constexpr(k) for k in range(4))
_MATCH, _DROP_X, _DROP_Z, _FREE = (tl.constexpr(k) for k in range(4))
_EVERYWHERE, _INSIDE, _BORDER = (tl.constexpr(k) for k in range(3))
_HARD, _SOFT, _SMOOTH = (tl.constexpr(k) for k in range(3))
_MOVE = {"diag": 0, "left": 1, "top": 2, "same": 3}
_COST = {"match": 0, "drop_x": 1, "drop_z": 2, "free": 3}
_KIND = {"hard": 0, "soft": 1, "smooth": 2}


@dataclass(frozen=True)
class Layout:
    """A table as kernels read it: numbers in place of names.

    src, dst, move, cost, where : of each edge, by destination and then in tie order.
    all, row : the numbers of all edges, and of those that matter on row 0.
    price : for each state, the cost that all edges into it pay, or −1 where they differ.
    start : whether a state may begin; final : the states that may end.
    up : whether a state is looked at from the row below; diag : whether diagonally, or along row 0.
    keep : whether a state is looked at from any other cell.
    """

    src: tuple[int, ...]
    dst: tuple[int, ...]
    move: tuple[int, ...]
    cost: tuple[int, ...]
    where: tuple[int, ...]
    all: tuple[int, ...]
    row: tuple[int, ...]
    price: tuple[int, ...]
    start: tuple[bool, ...]
    final: tuple[int, ...]
    up: tuple[bool, ...]
    diag: tuple[bool, ...]
    keep: tuple[bool, ...]

    @property
    def planes(self) -> int:
        """How many values per lane describe where a program stands."""
        return sum(self.keep) + sum(self.diag)


@cache
def layout(table: Recurrence) -> Layout:
    """The table as kernels read it."""
    number = {state: k for k, state in enumerate(table.states)}
    inside = _EVERYWHERE.value if table.border is None else _INSIDE.value
    border = table.border or ()
    listed: list[tuple[Edge, int]] = [(e, _EVERYWHERE.value if e in border else inside) for e in table.edges]
    listed += [(e, _BORDER.value) for e in border if e not in table.edges]
    listed.sort(key=lambda way: number[way[0].dst])  # stable: the tie order within a state stays
    src = tuple(number[e.src] for e, _ in listed)
    dst = tuple(number[e.dst] for e, _ in listed)

    on_row_0 = [
        k
        for k, (e, where) in enumerate(listed)
        if MOVES[e.move][0] == 0 and e.cost in ("drop_x", "free") and where != _INSIDE.value
    ]
    live = {number[s] for s in table.starts}
    while new := {dst[k] for k in on_row_0 if src[k] in live} - live:
        live |= new
    row = [k for k in on_row_0 if src[k] in live]

    def left_by(move: str, among: Iterable[int] = range(len(listed))) -> set[int]:
        return {src[k] for k in among if listed[k][0].move == move}

    states = range(len(table.states))
    paid = [{_COST[e.cost] for e, _ in listed if number[e.dst] == s} for s in states]
    diag = left_by("diag") | left_by("left", row)
    up = diag | left_by("top")
    keep = up | left_by("left")
    return Layout(
        src=src,
        dst=dst,
        move=tuple(_MOVE[e.move] for e, _ in listed),
        cost=tuple(_COST[e.cost] for e, _ in listed),
        where=tuple(where for _, where in listed),
        all=tuple(range(len(listed))),
        row=tuple(row),
        price=tuple(next(iter(p)) if len(p) == 1 else -1 for p in paid),
        start=tuple(s in table.starts for s in table.states),
        final=tuple(number[s] for s in table.final),
        up=tuple(s in up for s in states),
        diag=tuple(s in diag for s in states),
        keep=tuple(s in keep for s in states),
    )


# What kernels ask of a layout while they are compiled.


@triton.constexpr_function
def _of(table, part, k):
    return getattr(table, part)[k]


@triton.constexpr_function
def _count(table, part):
    return len(getattr(table, part))


@triton.constexpr_function
def _planes(table):
    return table.planes


@triton.constexpr_function
def _plane(table, part, s):
    """Where a state that is written down as `keep` or `diag` comes among all that are."""
    return sum(table.keep[:s]) if part == "keep" else sum(table.keep) + sum(table.diag[:s])


@triton.constexpr_function
def _edge(table, among, n):
    """The n-th edge of a list of edges ("all" or "row")."""
    return getattr(table, among)[n]


@triton.constexpr_function
def _into(table, among, s):
    """How many edges of a list lead into state s."""
    return sum(table.dst[e] == s for e in getattr(table, among))


@triton.constexpr_function
def _before(table, among, s):
    """How many edges of a list lead into states before s: where those into s begin."""
    return sum(table.dst[e] < s for e in getattr(table, among))


@triton.constexpr_function
def _places(table, among, part, value, move):
    edges = getattr(table, among)
    return [
        n for n, e in enumerate(edges) if getattr(table, part)[e] == value and (move is None or table.move[e] == move)
    ]


@triton.constexpr_function
def _many(table, among, part, value, move=None):
    """How many edges of a list have `value` as that part (and that move)."""
    return len(_places(table, among, part, value, move))


@triton.constexpr_function
def _nth(table, among, part, value, move, n):
    """The place in the list of the n-th such edge."""
    return _places(table, among, part, value, move)[n]


# --- Reducers -----------------------------------------------------------------------------------------------------


@triton.jit
def _reduce(v, rate, KIND: tl.constexpr, WEIGH: tl.constexpr):
    """The minimum of the alternatives v, and with WEIGH its derivatives; `rate` is log₂(e)/γ."""
    INF: tl.constexpr = float("inf")
    n: tl.constexpr = len(v)
    low = v[0]
    for k in tl.static_range(1, n):
        low = tl.minimum(low, v[k], propagate_nan=tl.PropagateNan.ALL)
    weights = ()
    value = low
    if n == 1:
        weights = (1.0,)
    elif KIND == _HARD:
        if WEIGH:
            free = low < INF
            for k in tl.static_range(n):
                here = free & (v[k] == low)
                weights = weights + (tl.where(here, 1.0, 0.0).to(low.dtype),)
                free = free & (v[k] != low)
    else:
        base = tl.where(low == INF, 0.0, low)
        total = tl.zeros_like(low)
        mean = tl.zeros_like(low)
        powers = ()
        above = ()
        for k in tl.static_range(n):
            e = tl.exp2((base - v[k]) * rate)
            total += e
            powers = powers + (e,)
            if KIND == _SMOOTH:
                u = tl.where(e > 0, v[k] - base, 0.0)  # ∞ · 0 is NaN: what has no weight has no say
                mean += u * e
                above = above + (u,)
        share = 1.0 / tl.where(low == INF, 1.0, total)
        if KIND == _SMOOTH:
            mean = mean * share
            value = base + mean
        else:
            value = base - tl.log2(total) / rate
        value = tl.where(low == INF, INF, value)
        if WEIGH:
            for k in tl.static_range(n):
                w = powers[k] * share
                if KIND == _SMOOTH:
                    w = w * (1.0 - (above[k] - mean) * (rate * 0.6931471805599453))
                weights = weights + (w,)
    return value, weights


# --- One step -----------------------------------------------------------------------------------------------------


@triton.jit
def _price(COST: tl.constexpr, c, d, z):
    if COST == _MATCH:
        return c
    elif COST == _DROP_X:
        return d
    else:
        return z


@triton.jit
def _arriving(TABLE: tl.constexpr, e: tl.constexpr, here, left, up, diag, c, d, z, j):
    """The value that one edge brings into its state."""
    INF: tl.constexpr = float("inf")
    if _of(TABLE, "move", e) == _DIAG:
        a = diag[_of(TABLE, "src", e)]
    elif _of(TABLE, "move", e) == _LEFT:
        a = left[_of(TABLE, "src", e)]
    elif _of(TABLE, "move", e) == _TOP:
        a = up[_of(TABLE, "src", e)]
    else:
        a = here[_of(TABLE, "src", e)]
    if _of(TABLE, "price", _of(TABLE, "dst", e)) == -1 and _of(TABLE, "cost", e) != _FREE:
        a = a + _price(_of(TABLE, "cost", e), c, d, z)
    if _of(TABLE, "where", e) == _INSIDE:
        a = tl.where(j == 0, INF, a)
    if _of(TABLE, "where", e) == _BORDER:
        a = tl.where(j == 0, a, INF)
    return a


@triton.jit
def _cells(left, up, diag, c, d, z, j, rate, TABLE: tl.constexpr, KIND: tl.constexpr, WEIGH: tl.constexpr):
    """The states of one cell per lane, and with WEIGH the weights of all edges."""
    INF: tl.constexpr = float("inf")
    here = ()
    weights = ()
    for s in tl.static_range(_count(TABLE, "price")):
        v = ()
        for n in tl.static_range(_into(TABLE, "all", s)):
            v = v + (_arriving(TABLE, _before(TABLE, "all", s) + n, here, left, up, diag, c, d, z, j),)
        if len(v) == 0:
            here = here + (tl.full(z.shape, INF, z.dtype),)
        else:
            value, w = _reduce(v, rate, KIND, WEIGH)
            if _of(TABLE, "price", s) != -1 and _of(TABLE, "price", s) != _FREE:
                value = value + _price(
                    _of(TABLE, "price", s), c, d, z
                )  # a price that all alternatives pay is paid once
            here = here + (value,)
            weights = weights + w
    return here, weights


@triton.jit
def _along_row_0(TABLE: tl.constexpr, e: tl.constexpr, here, left, d):
    if _of(TABLE, "move", e) == _LEFT:
        a = left[_of(TABLE, "src", e)]
    else:
        a = here[_of(TABLE, "src", e)]
    if _of(TABLE, "cost", e) == _DROP_X:
        a = a + d
    return a


@triton.jit
def _row_0(left, d, begins, rate, TABLE: tl.constexpr, KIND: tl.constexpr, WEIGH: tl.constexpr):
    """The states of cell (0, t), from those of (0, t − 1), and the weights of the edges of row 0 ordered by state."""
    INF: tl.constexpr = float("inf")
    here = ()
    weights = ()
    for s in tl.static_range(_count(TABLE, "start")):
        v = ()
        for n in tl.static_range(_into(TABLE, "row", s)):
            v = v + (_along_row_0(TABLE, _edge(TABLE, "row", _before(TABLE, "row", s) + n), here, left, d),)
        if len(v) == 0:
            value = tl.full(d.shape, INF, d.dtype)
        else:
            value, w = _reduce(v, rate, KIND, WEIGH)
            weights = weights + w
        if _of(TABLE, "start", s):
            value = tl.where(begins, 0.0, value)
        here = here + (value,)
    return here, weights


@triton.jit
def _step(
    own, diag, c, d, z, tops, t, lane, first, rate,
    TABLE: tl.constexpr, KIND: tl.constexpr, STRIPS: tl.constexpr, WEIGH: tl.constexpr,
):  # fmt: skip
    """All lanes one step on: their states, the states above them, and the weights of all edges."""
    INF: tl.constexpr = float("inf")
    row, row_weights = _row_0(diag, d, t == 0, rate, TABLE, KIND, WEIGH)
    up = ()
    above = tl.maximum(lane - 1, 0)
    for s in tl.static_range(_count(TABLE, "up")):
        if _of(TABLE, "up", s):
            border = row[s]
            if STRIPS:
                border = tl.where(first, border, tops[s])
            up = up + (tl.where(lane == 0, border, tl.gather(own[s], above, 0)),)
        else:
            up = up + (tl.full(z.shape, INF, z.dtype),)
    here, weights = _cells(own, up, diag, c, d, z, t - lane, rate, TABLE, KIND, WEIGH)
    return here, up, weights, row_weights


# --- Memory -------------------------------------------------------------------------------------------------------
#
# Addresses are carried from block to block and advanced, never computed where they are used: Triton's layout pass
# follows the arithmetic behind every computed address through the whole kernel, which makes compiling quadratic.


@triton.jit
def _spread(base, step, n: tl.constexpr, each: tl.constexpr = 1):
    """The addresses base, base + step, …, n of them, and of each so many in a row."""
    found = ()
    for s in tl.static_range(n):
        for u in tl.static_range(each):
            found = found + (base + (s * step + u),)
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
        for s in tl.static_range(_count(TABLE, "up")):
            if STRIPS and _of(TABLE, "up", s):
                there = (t + u >= 0) & (t + u <= Nb)
                above = above + (tl.load(top + s * (N + 1) + t + u, mask=there, other=INF),)
            else:
                above = above + (w,)
        tops = tops + (above,)
    return tops


@triton.jit
def _row_below(
    grad_top, t, N, Nb, more, w, TABLE: tl.constexpr, STRIPS: tl.constexpr, R: tl.constexpr, U: tl.constexpr
):
    """What the strip below has for the last lane in a block: for each step, by each state and by d_x."""
    S: tl.constexpr = _count(TABLE, "price")
    found = ()
    for u in tl.static_range(U):
        below = ()
        j = t + u - (R - 1)
        for s in tl.static_range(S + 1):
            if STRIPS:
                there = (j >= 0) & (j <= Nb) & more
                below = below + (tl.load(grad_top + (S + 1 + s) * (N + 1) + j, mask=there, other=0.0),)
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
    for s in tl.static_range(_count(TABLE, "keep")):
        if _of(TABLE, "keep", s):
            own = own + (tl.load(saved[_plane(TABLE, "keep", s)], mask=begun, other=INF),)
        else:
            own = own + (tl.full(w.shape, INF, w.dtype),)
    for s in tl.static_range(_count(TABLE, "diag")):
        if _of(TABLE, "diag", s):
            diag = diag + (tl.load(saved[_plane(TABLE, "diag", s)], mask=begun, other=INF),)
        else:
            diag = diag + (tl.full(w.shape, INF, w.dtype),)
    return own, diag


@triton.jit
def _write_down(saved, begun, own, diag, TABLE: tl.constexpr):
    """The counterpart of `_state_at`."""
    for s in tl.static_range(_count(TABLE, "keep")):
        if _of(TABLE, "keep", s):
            tl.store(saved[_plane(TABLE, "keep", s)], own[s], mask=begun)
        if _of(TABLE, "diag", s):
            tl.store(saved[_plane(TABLE, "diag", s)], diag[s], mask=begun)


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


_PLAIN = ["K", "N", "c_b", "c_k", "x_b", "z_b", "g_k", "slots", "launch", "chunk_blocks", "strip_0", "rate_bits"]
"""Integers whose value compiles no kernel of its own."""


@triton.jit(do_not_specialize=_PLAIN[:6] + _PLAIN[7:])
def _forward(
    C, drop_x, drop_z, z_len, x_len, value, ends, saved, top,
    K, N, c_b, c_k, c_n, x_b, z_b, slots, launch, chunk_blocks, strip_0, rate_bits,
    TABLE: tl.constexpr, KIND: tl.constexpr, RAGGED: tl.constexpr, STRIPS: tl.constexpr, GRADIENT: tl.constexpr,
    WIDE: tl.constexpr, R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = _count(TABLE, "price")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    PLANES: tl.constexpr = _planes(TABLE)
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    strip = strip_0 + tl.program_id(1)
    Kb = K
    Nb = N
    if RAGGED:
        Kb = tl.load(z_len + b).to(tl.int32)
        Nb = tl.load(x_len + b).to(tl.int32)
    rows = tl.minimum(Kb - strip * R, R)
    if rows <= 0:
        return
    steps = rows + Nb
    blocks = (steps + U - 1) // U
    begin = steps - U * blocks  # the last step ends the last block, so that the pair's end is the loop's end
    k0 = (launch - 2 * strip) * chunk_blocks
    k1 = tl.minimum(k0 + chunk_blocks, blocks)
    if k0 >= k1:
        return

    lane = tl.arange(0, R)
    row = strip * R + lane
    inside = row < Kb
    z = tl.load(drop_z + b * z_b + row, mask=inside, other=INF).to(DT)
    strips = (K + R - 1) // R
    plane = K.to(tl.int64) * slots
    top += (b * strips + strip) * (S * (N + 1))
    t = begin + k0 * U
    match = _spread(C + b * c_b + row.to(tl.int64) * c_k + (t - lane - 1).to(tl.int64) * c_n, c_n, U)
    drop = _spread(drop_x + b * x_b + (t - lane - 1), 1, U)
    states = _spread(saved + b * (PLANES * plane) + _slot(t, lane, row, K, U, GRADIENT), plane, PLANES)
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
        drop = _advance(drop, U)
        if k >= k0:
            for u in tl.static_range(U):
                own, diag, _, _ = _step(
                    own, diag, c[u], d[u], z, tops[u], t + u, lane, strip == 0, rate, TABLE, KIND, STRIPS, False
                )
                if STRIPS:
                    j = t + u - lane
                    wanted = (lane == R - 1) & (j >= 0) & (j <= Nb) & (row + 1 < Kb)
                    for s in tl.static_range(S):
                        if _of(TABLE, "up", s):
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
        for f in tl.static_range(_count(TABLE, "final")):
            last = last + (tl.sum(tl.where(lane == rows - 1, own[_of(TABLE, "final", f)], 0.0), axis=0),)
        found, weights = _reduce(last, rate, KIND, GRADIENT)
        tl.store(value + b, found)
        if GRADIENT:
            for f in tl.static_range(_count(TABLE, "final")):
                tl.store(ends + b * _count(TABLE, "final") + f, tl.where(found < INF, weights[f], 0.0))


@triton.jit
def _flow(TABLE: tl.constexpr, AMONG: tl.constexpr, n: tl.constexpr, SKIP: tl.constexpr, full, weights):
    """What goes back along the n-th edge of a list; `full` lacks the first SKIP states."""
    return weights[n] * full[_of(TABLE, "dst", _edge(TABLE, AMONG, n)) - SKIP]


@triton.jit
def _arrived(g, weights, AMONG: tl.constexpr, TABLE: tl.constexpr):
    """The derivative by each state of a cell: g from other cells, and what comes back along edges within the cell."""
    full = ()
    for s in tl.static_range(_count(TABLE, "price") - 1, -1, -1):
        a = g[s]
        for n in tl.static_range(_many(TABLE, AMONG, "src", s, _SAME)):
            a = a + _flow(TABLE, AMONG, _nth(TABLE, AMONG, "src", s, _SAME, n), s + 1, full, weights)
        full = (a,) + full
    return full


@triton.jit
def _back_by(MOVE: tl.constexpr, full, weights, AMONG: tl.constexpr, TABLE: tl.constexpr):
    """What goes back along the edges of one move, for each state it goes to."""
    back = ()
    for s in tl.static_range(_count(TABLE, "price")):
        a = tl.zeros_like(full[0])
        for n in tl.static_range(_many(TABLE, AMONG, "src", s, MOVE)):
            a = a + _flow(TABLE, AMONG, _nth(TABLE, AMONG, "src", s, MOVE, n), 0, full, weights)
        back = back + (a,)
    return back


@triton.jit
def _paid(COST: tl.constexpr, full, weights, AMONG: tl.constexpr, TABLE: tl.constexpr):
    """The derivative by one cost."""
    a = tl.zeros_like(full[0])
    for n in tl.static_range(_many(TABLE, AMONG, "cost", COST)):
        a = a + _flow(TABLE, AMONG, _nth(TABLE, AMONG, "cost", COST, None, n), 0, full, weights)
    return a


@triton.jit
def _step_back(
    g_own, g_up, g_diag, by_x, by_z, weights, row_weights, below, grad_x, grad_top, t, lane, row, Nb,
    TABLE: tl.constexpr, STRIPS: tl.constexpr, R: tl.constexpr, U: tl.constexpr, u: tl.constexpr,
):  # fmt: skip
    """All lanes one step back: the derivatives on their way to step t − 1, and the derivative by the match costs."""
    S: tl.constexpr = _count(TABLE, "price")
    j = t - lane
    g = ()
    for s in tl.static_range(S):
        a = g_own[s]
        if _of(TABLE, "up", s):
            a = a + _from_below(g_up[s], below[s], lane, STRIPS, R)
        g = g + (a,)
    full = _arrived(g, weights, "all", TABLE)
    by_c = _paid(_MATCH, full, weights, "all", TABLE)
    by_x = _from_below(by_x, below[S], lane, STRIPS, R) + _paid(_DROP_X, full, weights, "all", TABLE)
    by_z += _paid(_DROP_Z, full, weights, "all", TABLE)
    g_own = _back_by(_LEFT, full, weights, "all", TABLE)
    up = _back_by(_TOP, full, weights, "all", TABLE)
    diagonal = _back_by(_DIAG, full, weights, "all", TABLE)
    g_up = ()
    on_row_0 = ()
    for s in tl.static_range(S):
        a = up[s] + g_diag[s]
        g_up = g_up + (a,)
        on_row_0 = on_row_0 + (tl.where(row == 0, a, 0.0),)  # row 0 lies above the row of number 0
    full = _arrived(on_row_0, row_weights, "row", TABLE)
    along = _back_by(_LEFT, full, row_weights, "row", TABLE)
    g_diag = ()
    for s in tl.static_range(S):
        g_diag = g_diag + (diagonal[s] + along[s],)
    first = (lane == 0) & (j >= 0) & (j <= Nb)
    tl.store(grad_x[u], by_x + _paid(_DROP_X, full, row_weights, "row", TABLE), mask=first & (j >= 1) & (row == 0))
    if STRIPS:
        for s in tl.static_range(S):
            if _of(TABLE, "up", s):
                tl.store(grad_top[s * U + u], g_up[s], mask=first & (row > 0))
        tl.store(grad_top[S * U + u], by_x, mask=first & (row > 0))
    return g_own, g_up, g_diag, by_x, by_z, by_c


@triton.jit
def _from_below(value, strip_below, lane, STRIPS: tl.constexpr, R: tl.constexpr):
    """What the lane below has for this one; the last lane has it from the strip below."""
    moved = tl.gather(value, tl.minimum(lane + 1, R - 1), 0)
    if STRIPS:
        return tl.where(lane == R - 1, strip_below, moved)
    else:
        return tl.where(lane == R - 1, 0.0, moved)


@triton.jit(do_not_specialize=_PLAIN)
def _backward(
    C, drop_x, drop_z, z_len, x_len, ends, saved, top, grad, grad_c, grad_x, grad_z, carry, grad_top,
    K, N, c_b, c_k, c_n, x_b, z_b, g_k, g_n, slots, launch, chunk_blocks, strip_0, rate_bits,
    TABLE: tl.constexpr, KIND: tl.constexpr, RAGGED: tl.constexpr, STRIPS: tl.constexpr,
    WIDE: tl.constexpr, R: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = _count(TABLE, "price")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    PLANES: tl.constexpr = _planes(TABLE)
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    strip = strip_0 + tl.program_id(1)
    Kb = K
    Nb = N
    if RAGGED:
        Kb = tl.load(z_len + b).to(tl.int32)
        Nb = tl.load(x_len + b).to(tl.int32)
    rows = tl.minimum(Kb - strip * R, R)
    if rows <= 0:
        return
    steps = rows + Nb
    blocks = (steps + U - 1) // U
    begin = steps - U * blocks
    k0 = (launch - 2 * strip) * chunk_blocks
    k1 = tl.minimum(k0 + chunk_blocks, blocks)
    if k0 >= k1:
        return

    lane = tl.arange(0, R)
    row = strip * R + lane
    inside = row < Kb
    z = tl.load(drop_z + b * z_b + row, mask=inside, other=INF).to(DT)
    strips = (K + R - 1) // R
    plane = K.to(tl.int64) * slots
    top += (b * strips + strip) * (S * (N + 1))
    grad_top += (b * strips + strip) * ((S + 1) * (N + 1))
    carry += (b * strips + strip) * ((3 * S + 2) * R) + lane
    t = begin + k1 * U
    p = t - U
    match = _spread(C + b * c_b + row.to(tl.int64) * c_k + (p - lane - 1).to(tl.int64) * c_n, c_n, U)
    drop = _spread(drop_x + b * x_b + (p - lane - 1), 1, U)
    states = _spread(saved + b * (PLANES * plane) + _slot(p, lane, row, K, U, True), plane, PLANES)
    by_match = _spread(grad_c + b * K * N + row.to(tl.int64) * g_k + (t - lane - 1).to(tl.int64) * g_n, g_n, U)
    by_drop = _spread(grad_x + b * N + (t - lane - 1), 1, U)
    by_top = _spread(grad_top + (t - lane), N + 1, (S + 1) * STRIPS, U)

    # Derivatives on their way to step t: by each lane's own states, by the states above it (as `up` and as `diag`).
    nothing = tl.zeros([R], DT)
    g_own = ()
    g_up = ()
    g_diag = ()
    by_x = nothing
    by_z = nothing
    out = tl.load(grad + b).to(DT)
    for s in tl.static_range(S):
        seed = nothing
        for f in tl.static_range(_count(TABLE, "final")):
            if _of(TABLE, "final", f) == s:
                share = tl.load(ends + b * _count(TABLE, "final") + f) * out
                seed = tl.where((row == Kb - 1) & (t == steps), share, 0.0)
        g_own = g_own + (seed,)
        g_up = g_up + (nothing,)
        g_diag = g_diag + (nothing,)
    if STRIPS:
        if k1 < blocks:
            g_own = ()
            g_up = ()
            g_diag = ()
            for s in tl.static_range(S):
                g_own = g_own + (tl.load(carry + s * R),)
                g_up = g_up + (tl.load(carry + (S + s) * R),)
                g_diag = g_diag + (tl.load(carry + (2 * S + s) * R),)
            by_x = tl.load(carry + 3 * S * R)
            by_z = tl.load(carry + (3 * S + 1) * R)

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
        drop = _advance(drop, -U)
        if back > 0:
            below = _row_below(grad_top, t, N, Nb, Kb > (strip + 1) * R, z, TABLE, STRIPS, R, U)
            weights = ()
            row_weights = ()
            for u in tl.static_range(U):
                own, diag, w, r = _step(
                    own, diag, c[u], d[u], z, tops[u], t + u, lane, strip == 0, rate, TABLE, KIND, STRIPS, True
                )
                weights = weights + (w,)
                row_weights = row_weights + (r,)
            for u in tl.static_range(U - 1, -1, -1):
                g_own, g_up, g_diag, by_x, by_z, by_c = _step_back(
                    g_own, g_up, g_diag, by_x, by_z, weights[u], row_weights[u], below[u],
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
        for s in tl.static_range(S):
            tl.store(carry + s * R, g_own[s])
            tl.store(carry + (S + s) * R, g_up[s])
            tl.store(carry + (2 * S + s) * R, g_diag[s])
        tl.store(carry + 3 * S * R, by_x)
        tl.store(carry + (3 * S + 1) * R, by_z)
    else:
        tl.store(grad_z + b * K + row, by_z, mask=inside)


# --- Launching ----------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """How a batch is laid out: lanes, warps, strips of rows, blocks of steps per chunk, and the launches."""

    lanes: int
    warps: int
    strips: int
    chunk: int
    launches: tuple[tuple[int, int, int], ...]  # (number, first strip, count of strips)


INTERPRETED: Final = triton.knobs.runtime.interpret
"""Whether kernels run in Triton's interpreter, on CPU tensors, for tests (TRITON_INTERPRET=1)."""

BLOCK: Final = 8
"""Steps that are unrolled: between two states that are written down."""

LANES: Final = 64
"""Rows of one strip at most."""


@cache
def plan(K: int, N: int, lanes: int = LANES) -> Plan:
    """The plan for a batch of (K, N)."""
    R = max(32, min(lanes, 1 << (K - 1).bit_length()))
    strips = -(-K // R)
    blocks = -(-(min(R, K) + N) // BLOCK)
    if strips == 1:
        return Plan(R, max(1, R // 64), 1, blocks, ((0, 0, 1),))
    chunk = max(-(-(R + BLOCK) // BLOCK), 16)
    chunks = -(-blocks // chunk)
    found = []
    for q in range(chunks + 2 * (strips - 1)):
        low = max(0, -(-(q - chunks + 1) // 2))
        found.append((q, low, min(strips - 1, q // 2) - low + 1))
    return Plan(R, max(1, R // 64), strips, chunk, tuple(found))


class Saved(NamedTuple):
    """What the forward pass leaves for the backward pass."""

    ends: Tensor
    states: Tensor
    top: Tensor


def _constants(table: Recurrence, kind: str, gamma: float, wide: bool) -> dict[str, Any]:
    limit = 1e300 if wide else 1e37
    rate = 1.0 if kind == "hard" else min(math.log2(math.e) / gamma, limit)
    bits = struct.unpack("<q", struct.pack("<d", rate))[0]
    return {
        "TABLE": layout(table),
        "KIND": _KIND[kind],
        "WIDE": wide,
        "U": BLOCK,
        "rate_bits": bits,
    }


def forward(
    table: Recurrence,
    kind: str,
    gamma: float,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    lengths: tuple[Tensor, Tensor] | None,
    gradient: bool,
) -> tuple[Tensor, Saved]:
    """The values of a batch, (B,), and what `backward` needs."""
    table, C, drop_x, drop_z, lengths = _turned(table, C, drop_x, drop_z, lengths)
    B, K, N = C.shape
    found, layed = layout(table), plan(K, N)
    wide = C.dtype == torch.float64
    dtype = torch.float64 if wide else torch.float32
    value = torch.empty(B, dtype=dtype, device=C.device)
    strips = layed.strips > 1
    saved = room(table, C, gradient)
    z_len, x_len = lengths or (value, value)
    for number, first, count in layed.launches:
        _forward[(B, count)](
            C, drop_x, drop_z, z_len, x_len, value, saved.ends, saved.states, saved.top,
            K, N, C.stride(0), C.stride(1), C.stride(2), drop_x.stride(0), drop_z.stride(0),
            _slots(N, gradient), number, layed.chunk, first,
            RAGGED=lengths is not None, STRIPS=strips, GRADIENT=gradient, R=layed.lanes,
            num_warps=layed.warps, enable_fp_fusion=False,
            **_constants(table, kind, gamma, wide),
        )  # fmt: skip
    return value, saved


def backward(
    table: Recurrence,
    kind: str,
    gamma: float,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    lengths: tuple[Tensor, Tensor] | None,
    saved: Saved,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The derivatives of Σ grad · value by C, drop_x and drop_z."""
    make = torch.empty_like if lengths is None else torch.zeros_like  # padding has derivative 0
    grad_c = make(C, memory_format=torch.contiguous_format)
    wide = C.dtype == torch.float64
    dtype = torch.float64 if wide else torch.float32
    by_x = make(drop_x, dtype=dtype, memory_format=torch.contiguous_format)
    by_z = make(drop_z, dtype=dtype, memory_format=torch.contiguous_format)
    turned, D, first_drop, second_drop, lengths = _turned(table, C, drop_x, drop_z, lengths)
    G, first_out, second_out = (grad_c, by_x, by_z) if turned is table else (grad_c.mT, by_z, by_x)
    B, K, N = D.shape
    found, layed = layout(turned), plan(K, N)
    S = len(found.start)
    strips = layed.strips > 1
    rows = B * layed.strips if strips else 0
    carry = torch.empty(rows, 3 * S + 2, layed.lanes, dtype=dtype, device=C.device)
    grad_top = torch.empty(rows, S + 1, N + 1, dtype=dtype, device=C.device)
    z_len, x_len = lengths or (grad, grad)
    for number, first, count in reversed(layed.launches):
        _backward[(B, count)](
            D, first_drop, second_drop, z_len, x_len, saved.ends, saved.states, saved.top,
            grad, G, first_out, second_out, carry, grad_top,
            K, N, D.stride(0), D.stride(1), D.stride(2), first_drop.stride(0), second_drop.stride(0),
            G.stride(1), G.stride(2), _slots(N, True), number, layed.chunk, first,
            RAGGED=lengths is not None, STRIPS=strips, R=layed.lanes,
            num_warps=layed.warps, enable_fp_fusion=False,
            **_constants(turned, kind, gamma, wide),
        )  # fmt: skip
    return grad_c, by_x, by_z


def _turned(
    table: Recurrence, C: Tensor, drop_x: Tensor, drop_z: Tensor, lengths: tuple[Tensor, Tensor] | None
) -> tuple[Recurrence, Tensor, Tensor, Tensor, tuple[Tensor, Tensor] | None]:
    """The same problem with the shorter sequence along the lanes."""
    if C.shape[1] <= C.shape[2]:
        return table, C, drop_x, drop_z, lengths
    return table.transpose(), C.mT, drop_z, drop_x, lengths and (lengths[1], lengths[0])


def _slots(N: int, gradient: bool) -> int:
    return N // BLOCK + 1 if gradient else 1


def room(table: Recurrence, C: Tensor, gradient: bool) -> Saved:
    """Memory for what the forward pass writes down."""
    B, K, N = C.shape
    K, N = min(K, N), max(K, N)  # as `_turned` has it
    found, layed = layout(table), plan(K, N)
    dtype = torch.float64 if C.dtype == torch.float64 else torch.float32
    strips = layed.strips > 1
    kept = found.planes if gradient or strips else 0
    return Saved(
        C.new_empty(B if gradient else 0, len(found.final), dtype=dtype),
        C.new_empty(B, kept, _slots(N, gradient), K, dtype=dtype),
        C.new_empty(B * (layed.strips + 1) if strips else 0, len(found.start), N + 1, dtype=dtype),
    )
