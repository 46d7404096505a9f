"""One column of all nodes, forward and backward: values that arrive over arcs, and derivatives that flow back.

As in `cells.py`, all data are tuples, over states, edges or pairs (`arcs.Shape`), of tensors over the lanes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from dropdtw.executors.triton.arcs import among, flag, listed
from dropdtw.executors.triton.cells import HARD, LN_2, SMOOTH, flow_back, fold, price_of
from dropdtw.executors.triton.layout import FREE, LEFT, SAME, before, count, into, many, nth, of

# --- Arcs -----------------------------------------------------------------------------------------------------------


@triton.jit
def _collect(values, again, ins, costs, rate, p: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr):
    """Compute what the arcs of pair p bring into each node: their minimum, and notes for `weigh`.

    For the hard minimum, the note is the index of the first smallest alternative (−2: none exists). Otherwise, the
    notes are the smallest alternative, the inverse of the sum of exponentials, and the mean distance from the smallest.
    A single alternative needs no notes.
    """
    INF: tl.constexpr = float("inf")
    v = ()
    if of(SHAPE, "own", p):
        v = v + (tl.where(again, values, INF),)
    for w in tl.static_range(of(SHAPE, "slots_in", p)):
        a = tl.gather(values, ins[of(SHAPE, "first_in", p) + w], 0)
        if flag(SHAPE, "costs"):
            a = a + costs[of(SHAPE, "first_in", p) + w]
        v = v + (a,)
    nothing = tl.full(values.shape, INF, values.dtype)
    if len(v) == 0:
        return nothing, (nothing,)
    else:
        low = v[0]
        for w in tl.static_range(1, len(v)):
            low = tl.minimum(low, v[w], propagate_nan=tl.PropagateNan.ALL)
        if of(SHAPE, "single", p):
            return low, (low,)
        elif REDUCER == HARD:
            chosen = tl.full(values.shape, -2, tl.int32)
            for w in tl.static_range(len(v) - 1, -1, -1):
                chosen = tl.where((v[w] == low) & (low < INF), w, chosen)
            return low, (chosen,)
        else:
            base = tl.where(low == INF, 0.0, low)
            total = tl.zeros_like(low)
            mean = tl.zeros_like(low)
            for w in tl.static_range(len(v)):
                e = tl.exp2((base - v[w]) * rate)
                total += e
                if REDUCER == SMOOTH:
                    mean += tl.where(e > 0, v[w] - base, 0.0) * e  # ∞ · 0 would be NaN
            share = 1.0 / tl.where(low == INF, 1.0, total)
            mean = mean * share
            found = base + mean if REDUCER == SMOOTH else base - tl.log2(total) / rate
            return tl.where(low == INF, INF, found), (base, share, mean)


@triton.jit
def weigh(v, base, mean, rate, REDUCER: tl.constexpr):
    """Compute the weight of an alternative v, without its share, from the notes of the node that it leads into."""
    e = tl.exp2((base - v) * rate)
    if REDUCER == SMOOTH:
        e = e * (1.0 - (tl.where(e > 0, v - base, 0.0) - mean) * (rate * LN_2))
    return e


@triton.jit
def weigh_arcs(
    values, notes, outs, places, costs, rate,
    p: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr, L: tl.constexpr,
):  # fmt: skip
    """Compute the weight, without the share, of each arc of pair p out of a node."""
    found = ()
    for w in tl.static_range(of(SHAPE, "slots_out", p)):
        to = outs[of(SHAPE, "first_out", p) + w]
        if of(SHAPE, "single", p):
            e = tl.where(to == L - 1, 0.0, 1.0).to(values.dtype)
        elif REDUCER == HARD:
            chosen = tl.gather(notes[0], to, 0)
            e = tl.where(chosen == places[of(SHAPE, "first_out", p) + w], 1.0, 0.0).to(values.dtype)
        else:
            v = values
            if flag(SHAPE, "costs"):
                v = v + costs[flag(SHAPE, "total_in") + of(SHAPE, "first_out", p) + w]
            mean = v
            if REDUCER == SMOOTH:
                mean = tl.gather(notes[2], to, 0)
            e = tl.where(to == L - 1, 0.0, weigh(v, tl.gather(notes[0], to, 0), mean, rate, REDUCER))
        found = found + (e,)
    return found


@triton.jit
def push(
    flow, values, again, notes, weights, outs, rate, p: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr
):  # fmt: skip
    """Collect the derivatives that flow back along the arcs of pair p in the nodes that the arcs come from."""
    INF: tl.constexpr = float("inf")
    back = tl.zeros_like(flow)
    sent = flow
    if REDUCER != HARD and not of(SHAPE, "single", p):
        sent = flow * notes[1]
    if of(SHAPE, "own", p):
        if of(SHAPE, "single", p):
            back = tl.where(again, flow, 0.0)
        elif REDUCER == HARD:
            back = tl.where(notes[0] == 0, flow, 0.0)
        else:
            back = weigh(tl.where(again, values, INF), notes[0], notes[2], rate, REDUCER) * sent
    for w in tl.static_range(of(SHAPE, "slots_out", p)):
        back += tl.gather(sent, outs[of(SHAPE, "first_out", p) + w], 0) * weights[w]
    return back


# --- One column -----------------------------------------------------------------------------------------------------


@triton.jit
def collect_all(
    known, brought, again, ins, costs, rate,
    CONSUMES: tl.constexpr, TABLE: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr,
):  # fmt: skip
    """Update `brought` from the states `known`, for the pairs that consume an x or for the others."""
    found = ()
    notes = ()
    for p in tl.static_range(count(SHAPE, "use")):
        if of(SHAPE, "consumes", p) == CONSUMES:
            value, noted = _collect(known[of(SHAPE, "state", p)], again, ins, costs, rate, p, SHAPE, REDUCER)
            found = found + (value,)
            notes = notes + (noted,)
        else:
            found = found + (brought[p],)
            notes = notes + ((brought[p],),)
    return found, notes


@triton.jit
def values_of_all(
    known, brought, again, ins, costs, rate,
    CONSUMES: tl.constexpr, TABLE: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr,
):  # fmt: skip
    """Compute the same without notes, which a loop would have to carry."""
    return collect_all(known, brought, again, ins, costs, rate, CONSUMES, TABLE, SHAPE, REDUCER)[0]


@triton.jit
def _arriving(TABLE: tl.constexpr, SHAPE: tl.constexpr, e: tl.constexpr, cell, last, brought, c, d, z, charges):
    """Compute the value that one edge brings into its state."""
    if of(SHAPE, "pair", e) != -1:
        a = brought[of(SHAPE, "pair", e)]
    elif of(TABLE, "move", e) == LEFT:
        a = last[of(TABLE, "src", e)]
    else:
        a = cell[of(TABLE, "src", e)]
    if of(TABLE, "price", of(TABLE, "dst", e)) == -1 and of(TABLE, "cost", e) != FREE:
        a = a + price_of(of(TABLE, "cost", e), of(TABLE, "weight", e), c, d, z)
    if of(TABLE, "plus", e) != -1:
        a = a + charges[of(TABLE, "plus", e)]
    return a


@triton.jit
def _enter(
    last, brought, c, d, z, charges, hub, origin, rate,
    TABLE: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr, WEIGH: tl.constexpr,
):  # fmt: skip
    """Compute the states of all nodes and, with WEIGH, the weights of all edges.

    last : the states of the previous column.   brought : what arcs bring, for each pair.   origin : whether alignments
    begin here.
    """
    INF: tl.constexpr = float("inf")
    cell = ()
    weights = ()
    for s in tl.static_range(count(TABLE, "price")):
        v = ()
        for n in tl.static_range(into(TABLE, "all", s)):
            v = v + (_arriving(TABLE, SHAPE, before(TABLE, "all", s) + n, cell, last, brought, c, d, z, charges),)
        value = tl.full(z.shape, INF, z.dtype)
        if len(v) > 0:
            value, w = fold(v, rate, REDUCER, WEIGH)
            weights = weights + w
            if of(TABLE, "price", s) != -1 and of(TABLE, "price", s) != FREE:
                # A price that all alternatives share is added once.
                value = value + price_of(of(TABLE, "price", s), of(TABLE, "times", s), c, d, z)
        if of(TABLE, "start", s):
            value = tl.where(origin, 0.0, value)
        cell = cell + (value,)
    if flag(SHAPE, "hubs"):
        here = ()
        for s in tl.static_range(count(TABLE, "price")):
            passed = tl.full(z.shape, INF, z.dtype)
            for p in tl.static_range(count(SHAPE, "use")):
                if of(SHAPE, "passes", p) and of(SHAPE, "state", p) == s:
                    passed = brought[p]
            here = here + (tl.where(hub, passed, cell[s]),)
        cell = here
    return cell, weights


@triton.jit
def states_of(
    last, brought, c, d, z, charges, hub, origin, rate, TABLE: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr
):  # fmt: skip
    """Compute the states of all nodes."""
    return _enter(last, brought, c, d, z, charges, hub, origin, rate, TABLE, SHAPE, REDUCER, False)[0]


@triton.jit
def weights_of(
    last, brought, c, d, z, charges, hub, origin, rate, TABLE: tl.constexpr, SHAPE: tl.constexpr, REDUCER: tl.constexpr
):  # fmt: skip
    """Compute the weights of all edges."""
    return _enter(last, brought, c, d, z, charges, hub, origin, rate, TABLE, SHAPE, REDUCER, True)[1]


@triton.jit
def leave(g, weights, hub, origin, TABLE: tl.constexpr, SHAPE: tl.constexpr):
    """Compute the derivative for each node state, with the flow along its inner edges; 0 at the origin and hubs."""
    full = ()
    for s in tl.static_range(count(TABLE, "price") - 1, -1, -1):
        a = g[s]
        if flag(SHAPE, "hubs"):
            a = tl.where(hub, 0.0, a)
        for n in tl.static_range(many(TABLE, "all", "src", s, SAME)):
            a = a + flow_back(TABLE, "all", nth(TABLE, "all", "src", s, SAME, n), s + 1, full, weights)
        if of(TABLE, "start", s):
            a = tl.where(origin, 0.0, a)
        full = (a,) + full
    return full


@triton.jit
def flow_into(g, full, weights, hub, p: tl.constexpr, TABLE: tl.constexpr, SHAPE: tl.constexpr):
    """Compute the derivatives that flow back to the arcs of pair p."""
    flow = tl.zeros_like(g[0])
    if of(SHAPE, "passes", p):
        flow = tl.where(hub, g[of(SHAPE, "state", p)], 0.0)
    for n in tl.static_range(among(SHAPE, "edges", p)):
        flow = flow + flow_back(TABLE, "all", listed(SHAPE, "edges", p, n), 0, full, weights)
    return flow


@triton.jit
def added(g, more, s: tl.constexpr):
    """Add `more` to the derivative for state s."""
    found = ()
    for k in tl.static_range(len(g)):
        if k == s:
            found = found + (g[k] + more,)
        else:
            found = found + (g[k],)
    return found
