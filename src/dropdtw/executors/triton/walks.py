"""The kernels for graphs of steps: each program processes one item column by column, with one lane per node.

In a column, each source state is first reduced over the arcs into a node, with one `gather` per slot; then the
recurrence continues as on a list. Nodes that depend on others of their column are computed level by level.

The forward pass stores every column. The backward pass reads two of them at a time, reduces over arcs again, and
collects derivatives over the arcs *out* of each node, so it needs no atomic additions: the weight of an arc follows
from its own value and the notes of its target about the reduction (`nodes.collect_all`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from dropdtw.executors.triton.arcs import among, flag, listed
from dropdtw.executors.triton.cells import HARD, SMOOTH, charge_back, cost_back, flow_back
from dropdtw.executors.triton.layout import DROP_X, DROP_Z, MATCH, count, of, pays, plane
from dropdtw.executors.triton.memory import charges_of
from dropdtw.executors.triton.nodes import (
    added,
    collect_all,
    flow_into,
    leave,
    push,
    states_of,
    values_of_all,
    weigh,
    weigh_arcs,
    weights_of,
)

_TENSORS = [
    "C",
    "drop_x",
    "drop_z",
    "charges",
    "z_len",
    "x_len",
    "which",
    "nodes",
    "arcs",
    "arc_costs",
    "saved",
    "ends",
]
_NUMBERS = ["K", "N", "V", "c_b", "c_k", "c_n", "x_b", "x_n", "z_b", "z_n", "g_b", "rate_bits"]


def _jit(*tensors: str, numbers: tuple[str, ...] = ()):
    """Compile once per table and shape, without specializing on properties of the arguments."""
    return triton.jit(do_not_specialize=[*_NUMBERS, *numbers], do_not_specialize_on_alignment=[*_TENSORS, *tensors])


# --- Memory ---------------------------------------------------------------------------------------------------------


@triton.jit
def _slots(base, lane, first: tl.constexpr, n: tl.constexpr, L: tl.constexpr):
    found = ()
    for w in tl.static_range(n):
        found = found + (tl.load(base + (first + w) * L + lane),)
    return found


@triton.jit
def _column(saved, j, lane, inside, N, V, w, TABLE: tl.constexpr):
    """Load the stored states of column j, with ∞ for the others."""
    INF: tl.constexpr = float("inf")
    found = ()
    for s in tl.static_range(count(TABLE, "keep")):
        if of(TABLE, "keep", s):
            at = saved + (plane(TABLE, "keep", s) * (N + 1) + j).to(tl.int64) * V + lane
            found = found + (tl.load(at, mask=inside & (lane * 0 + j >= 0), other=INF),)
        else:
            found = found + (tl.full(w.shape, INF, w.dtype),)
    return found


@triton.jit
def _size(z_len, x_len, b, K, N, steps):
    """Return the length of an item's X, and whether its lengths are invalid or do not fit its order."""
    Kb = K
    Nb = N
    if z_len is not None:
        Kb = tl.load(z_len + b).to(tl.int32)
        Nb = tl.load(x_len + b).to(tl.int32)
    return Nb, (Kb < 1) | (Kb > K) | (Nb < 1) | (Nb > N) | (Kb != steps)


@triton.jit
def _about(nodes, lane, L: tl.constexpr):
    """Load the nodes of a graph: label, level, number of levels, and which nodes repeat, are hubs, or are the start."""
    bits = tl.load(nodes + 2 * L + lane)
    label, level = tl.load(nodes + lane), tl.load(nodes + L + lane)
    return label, level, tl.load(nodes + 4 * L + 1), (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0


@triton.jit
def _graph(which, b):
    if which is None:
        return b * 0
    else:
        return tl.load(which + b).to(tl.int64)


# --- The two passes -------------------------------------------------------------------------------------------------


@_jit("value")
def walk_forward(
    C, drop_x, drop_z, charges, z_len, x_len, which, nodes, arcs, arc_costs, saved, ends, value,
    K, N, V, c_b, c_k, c_n, x_b, x_n, z_b, z_n, rate_bits,
    TABLE: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr, GRADIENT: tl.constexpr, WIDE: tl.constexpr,
    L: tl.constexpr,
):  # fmt: skip
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = count(TABLE, "price")
    F: tl.constexpr = count(TABLE, "final")
    PLANES: tl.constexpr = flag(TABLE, "kept")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    g = _graph(which, b)
    lane = tl.arange(0, L)
    inside = lane < V
    nodes += g * (5 * L)
    arcs += g * ((flag(SHAPE, "total_in") + 2 * flag(SHAPE, "total_out")) * L)
    Nb, wrong = _size(z_len, x_len, b, K, N, tl.load(nodes + 4 * L))
    ends += b * F * V + lane
    if wrong:  # the lengths were not checked before
        if GRADIENT:
            for f in tl.static_range(F):
                tl.store(ends + f * V, tl.zeros([L], DT), mask=inside)
        tl.store(value + b, float("nan"))
        return
    label, level, depth, again, hub, start = _about(nodes, lane, L)
    rank = tl.load(nodes + 3 * L + lane)
    ins = _slots(arcs, lane, 0, flag(SHAPE, "total_in"), L)
    costs = ()
    if flag(SHAPE, "costs"):
        arc_costs += g * ((flag(SHAPE, "total_in") + flag(SHAPE, "total_out")) * L)
        costs = _slots(arc_costs, lane, 0, flag(SHAPE, "total_in"), L)
    labeled = label >= 0
    z = tl.load(drop_z + b * z_b + label * z_n, mask=labeled, other=INF).to(DT)
    paid = charges_of(charges, b, z, TABLE)
    match = C + b * c_b + label.to(tl.int64) * c_k
    drop_x += b * x_b
    saved += b * (PLANES * (N + 1).to(tl.int64)) * V

    nothing = tl.full([L], INF, DT)
    own = ()
    brought = ()
    for s in tl.static_range(S):
        own = own + (nothing,)
    for p in tl.static_range(count(SHAPE, "use")):
        brought = brought + (nothing,)
    c = nothing
    d = tl.min(nothing, axis=0)
    for j in range(0, Nb + 1):
        column = lane * 0 + j
        next_c = tl.load(match, mask=labeled & (column < Nb), other=INF).to(DT)
        next_d = tl.load(drop_x + j * x_n, mask=j < Nb, other=INF).to(DT)
        match += c_n
        origin = start & (column == 0)
        along = values_of_all(own, brought, again, ins, costs, rate, True, TABLE, SHAPE, REDUCER)
        if flag(SHAPE, "levels"):
            here = ()
            for s in tl.static_range(S):
                here = here + (nothing,)
            for at in range(0, depth):
                ready = values_of_all(here, along, again, ins, costs, rate, False, TABLE, SHAPE, REDUCER)
                entered = states_of(own, ready, c, d, z, paid, hub, origin, rate, TABLE, SHAPE, REDUCER)
                updated = ()
                for s in tl.static_range(S):
                    updated = updated + (tl.where(level == at, entered[s], here[s]),)
                here = updated
            own = here
        else:
            own = states_of(own, along, c, d, z, paid, hub, origin, rate, TABLE, SHAPE, REDUCER)
        if GRADIENT:
            for s in tl.static_range(S):
                if of(TABLE, "keep", s):
                    at_column = saved + (plane(TABLE, "keep", s) * (N + 1) + j).to(tl.int64) * V + lane
                    tl.store(at_column, own[s], mask=inside)
        c = next_c
        d = next_d

    # Reduce over final states and nodes, states first.
    low = tl.full([], INF, DT)
    lost = tl.full([], 0, tl.int32)
    last = ()
    for f in tl.static_range(F):
        v = tl.where(rank >= 0, own[of(TABLE, "final", f)], INF)
        last = last + (v,)
        low = tl.minimum(low, tl.min(tl.where(v != v, INF, v), axis=0))
        lost = tl.maximum(lost, tl.max((v != v).to(tl.int32), axis=0))
    found = low
    if REDUCER == HARD:
        first = tl.full([], 1 << 30, tl.int32)
        for f in tl.static_range(F):
            first = tl.minimum(first, tl.min(tl.where(last[f] == low, f * L + rank, 1 << 30), axis=0))
        if GRADIENT:
            for f in tl.static_range(F):
                is_end = (last[f] == low) & (f * L + rank == first) & (last[f] < INF)
                tl.store(ends + f * V, tl.where(is_end, 1.0, 0.0).to(DT), mask=inside)
    else:
        base = tl.where(low == INF, 0.0, low)
        total = tl.zeros([], DT)
        mean = tl.zeros([], DT)
        for f in tl.static_range(F):
            e = tl.exp2((base - last[f]) * rate)
            total += tl.sum(e, axis=0)
            if REDUCER == SMOOTH:
                mean += tl.sum(tl.where(e > 0, last[f] - base, 0.0) * e, axis=0)
        share = 1.0 / tl.where(low == INF, 1.0, total)
        mean = mean * share
        found = base + mean if REDUCER == SMOOTH else base - tl.log2(total) / rate
        found = tl.where(low == INF, INF, found)
        if GRADIENT:
            for f in tl.static_range(F):
                weight = weigh(last[f], base, mean, rate, REDUCER) * share
                tl.store(ends + f * V, tl.where(low < INF, weight, 0.0), mask=inside)
    tl.store(value + b, tl.where(lost > 0, float("nan"), found))


@_jit("grad", "by_match", "grad_x", "by_drop", "grad_charges")
def walk_backward(
    C, drop_x, drop_z, charges, z_len, x_len, which, nodes, arcs, arc_costs, saved, ends,
    grad, by_match, grad_x, by_drop, grad_charges,
    K, N, V, c_b, c_k, c_n, x_b, x_n, z_b, z_n, g_b, rate_bits,
    TABLE: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr, WIDE: tl.constexpr, L: tl.constexpr,
):  # fmt: skip
    """Compute derivatives of match costs (B, N, V) and drop_z (B, V) per node, of drop_x and charges per item."""
    INF: tl.constexpr = float("inf")
    S: tl.constexpr = count(TABLE, "price")
    F: tl.constexpr = count(TABLE, "final")
    P: tl.constexpr = count(TABLE, "kinds")
    PLANES: tl.constexpr = flag(TABLE, "kept")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    rate = rate_bits.to(tl.float64, bitcast=True).to(DT)
    b = tl.program_id(0).to(tl.int64)
    graph = _graph(which, b)
    lane = tl.arange(0, L)
    inside = lane < V
    nodes += graph * (5 * L)
    arcs += graph * ((flag(SHAPE, "total_in") + 2 * flag(SHAPE, "total_out")) * L)
    Nb, wrong = _size(z_len, x_len, b, K, N, tl.load(nodes + 4 * L))
    if wrong:
        return
    label, level, depth, again, hub, start = _about(nodes, lane, L)
    ins = _slots(arcs, lane, 0, flag(SHAPE, "total_in"), L)
    outs = _slots(arcs, lane, flag(SHAPE, "total_in"), flag(SHAPE, "total_out"), L)
    places = ()
    if REDUCER == HARD:
        places = _slots(
            arcs, lane, flag(SHAPE, "total_in") + flag(SHAPE, "total_out"), flag(SHAPE, "total_out"), L
        )  # fmt: skip
    costs = ()
    if flag(SHAPE, "costs"):
        arc_costs += graph * ((flag(SHAPE, "total_in") + flag(SHAPE, "total_out")) * L)
        costs = _slots(arc_costs, lane, 0, flag(SHAPE, "total_in") + flag(SHAPE, "total_out"), L)
    labeled = label >= 0
    z = tl.load(drop_z + b * z_b + label * z_n, mask=labeled, other=INF).to(DT)
    paid = charges_of(charges, b, z, TABLE)
    match = C + b * c_b + label.to(tl.int64) * c_k + (Nb - 1).to(tl.int64) * c_n
    drop_x += b * x_b
    grad_x += b * N
    saved += b * (PLANES * (N + 1).to(tl.int64)) * V
    by_match += (b * N + Nb - 1) * V + lane
    ends += b * F * V + lane
    out = tl.load(grad + b * g_b).to(DT)

    nothing = tl.zeros([L], DT)
    nowhere = tl.full([L], INF, DT)
    g = ()
    brought = ()
    by_charge = ()
    for s in tl.static_range(S):
        seed = nothing
        for f in tl.static_range(F):
            if of(TABLE, "final", f) == s:
                seed = tl.load(ends + f * V, mask=inside, other=0.0) * out
        g = g + (seed,)
    for p in tl.static_range(count(SHAPE, "use")):
        brought = brought + (nowhere,)
    for n in tl.static_range(P):
        by_charge = by_charge + (nothing,)
    by_z = nothing
    own = _column(saved, Nb, lane, inside, N, V, z, TABLE)
    last = _column(saved, Nb - 1, lane, inside, N, V, z, TABLE)
    c = tl.load(match, mask=labeled, other=INF).to(DT)
    d = tl.load(drop_x + (Nb - 1) * x_n).to(DT)
    for back in range(0, Nb + 1):
        j = Nb - back
        column = lane * 0 + j
        match -= c_n
        earlier = _column(saved, j - 2, lane, inside, N, V, z, TABLE)
        next_c = tl.load(match, mask=labeled & (column >= 2), other=INF).to(DT)
        next_d = tl.load(drop_x + (j - 2) * x_n, mask=j >= 2, other=INF).to(DT)
        origin = start & (column == 0)
        along, notes = collect_all(last, brought, again, ins, costs, rate, True, TABLE, SHAPE, REDUCER)
        ready, level_notes = collect_all(own, along, again, ins, costs, rate, False, TABLE, SHAPE, REDUCER)
        weights = weights_of(last, ready, c, d, z, paid, hub, origin, rate, TABLE, SHAPE, REDUCER)
        if flag(SHAPE, "levels"):
            arc_weights = ()
            for p in tl.static_range(count(SHAPE, "use")):
                found = (nothing,)
                if not of(SHAPE, "consumes", p) and of(SHAPE, "slots_in", p) > 0:
                    found = weigh_arcs(
                        own[of(SHAPE, "state", p)], level_notes[p], outs, places, costs, rate, p, SHAPE, REDUCER, L
                    )  # fmt: skip
                arc_weights = arc_weights + (found,)
            for up in range(0, depth):
                now = level == depth - 1 - up
                full = leave(g, weights, hub, origin, TABLE, SHAPE)
                more = g
                for p in tl.static_range(count(SHAPE, "use")):
                    if not of(SHAPE, "consumes", p) and of(SHAPE, "slots_in", p) > 0:
                        flow = tl.where(now, flow_into(g, full, weights, hub, p, TABLE, SHAPE), 0.0)
                        pushed = push(
                            flow, own[of(SHAPE, "state", p)], again, level_notes[p], arc_weights[p], outs, rate,
                            p, SHAPE, REDUCER,
                        )  # fmt: skip
                        more = added(more, pushed, of(SHAPE, "state", p))
                g = more
        full = leave(g, weights, hub, origin, TABLE, SHAPE)
        g_last = ()
        for s in tl.static_range(S):
            a = nothing
            for n in tl.static_range(among(SHAPE, "stays", s)):
                a = a + flow_back(TABLE, "all", listed(SHAPE, "stays", s, n), 0, full, weights)
            g_last = g_last + (a,)
        for p in tl.static_range(count(SHAPE, "use")):
            if of(SHAPE, "consumes", p) and (of(SHAPE, "own", p) or of(SHAPE, "slots_in", p) > 0):
                states = last[of(SHAPE, "state", p)]
                flow = flow_into(g, full, weights, hub, p, TABLE, SHAPE)
                along_out = weigh_arcs(
                    states, notes[p], outs, places, costs, rate, p, SHAPE, REDUCER, L
                )  # fmt: skip
                pushed = push(flow, states, again, notes[p], along_out, outs, rate, p, SHAPE, REDUCER)
                g_last = added(g_last, pushed, of(SHAPE, "state", p))
        tl.store(by_match, cost_back(MATCH, full, weights, "all", TABLE), mask=inside & (column >= 1))
        by_match -= V
        if pays(TABLE, DROP_X):
            dropped = tl.sum(cost_back(DROP_X, full, weights, "all", TABLE), axis=0)
            tl.store(grad_x + (j - 1), dropped, mask=j >= 1)
        if pays(TABLE, DROP_Z):
            by_z += cost_back(DROP_Z, full, weights, "all", TABLE)
        charged = ()
        for n in tl.static_range(P):
            charged = charged + (by_charge[n] + charge_back(n, full, weights, "all", TABLE),)
        by_charge = charged
        own = last
        last = earlier
        g = g_last
        c = next_c
        d = next_d
    if pays(TABLE, DROP_Z):
        tl.store(by_drop + b * V + lane, by_z, mask=inside)
    for n in tl.static_range(P):
        tl.store(grad_charges + b * 3 + of(TABLE, "kinds", n), tl.sum(by_charge[n], axis=0))


@_jit("parts", "members", "found", numbers=("room", "o_b", "o_k", "o_n", "most"))
def sum_labels(
    parts, z_len, x_len, which, nodes, members, found, K, N, room, V, o_b, o_k, o_n, most,
    ROWS: tl.constexpr, T: tl.constexpr, L: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Sum the derivatives (B, N, V) of nodes to those (B, K, N) of labels, in the order of the nodes.

    room : the columns of the batch.   PADDED : whether an item uses only `x_len` of its N columns.
    """
    b = tl.program_id(0).to(tl.int64)
    g = _graph(which, b)
    steps = tl.load(nodes + g * (5 * L) + 4 * L)
    Nb, wrong = _size(z_len, x_len, b, K, room, steps)
    if not PADDED:
        Nb = N
    k = tl.program_id(2) * ROWS + tl.arange(0, ROWS)[:, None]
    n = tl.program_id(1) * T + tl.arange(0, T)[None, :]
    Nb = tl.where(wrong, 0, Nb)
    there = (k < steps) & (n < Nb)
    total = tl.zeros([ROWS, T], parts.dtype.element_ty)
    parts += (b * N + n) * V
    members += (g * K + k) * most
    for m in range(0, most):
        node = tl.load(members + m, mask=k < K, other=-1)
        total += tl.load(parts + node, mask=there & (node >= 0), other=0.0)
    tl.store(found + b * o_b + k.to(tl.int64) * o_k + n.to(tl.int64) * o_n, total, mask=(k < K) & (n < N))
