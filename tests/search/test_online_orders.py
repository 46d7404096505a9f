"""A stream whose steps have an order ends with the batch result, and committed segments never change."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

import dropdtw
from cases import costs, same
from dropdtw import orders
from dropdtw.search.online import Online

ORDERS = {
    "antichain": orders.any_order(0, 1, 2, 3),
    "two lists": orders.any_order([0, 2], [3, 1]),
    "N": orders.before(4, [(0, 2), (1, 2), (1, 3)]),
    "recipe": [orders.any_order([0, 1], 2), 3],
    "other list": [2, 0, 3, 1],
    "list with a refrain": [0, 1, 0, 2, 3, 0],
    "choice": orders.one_of([0, 1, 2], [1, 3]),
    "loop": [0, orders.repeat([1, 2], 0.25), 3],
    "jumps": orders.jumps(4, [(3, 0, 0.5), (1, 1), (0, 2, 0.125)]),
    "walks": orders.walks([0, 1, 2, 3, 0], [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)], [4, 5], [(5, 1, 0.5)]),
}
OPTIONS = [
    {"method": "drop_dtw", "many_to_one": many, "one_to_many": one, "contiguous": contiguous, **charged}
    for many, one, contiguous in product((True, False), repeat=3)
    for charged in ({}, {"open_x": 0.5})
] + [{"method": name} for name in ("dtw", "subsequence", "needleman_wunsch")]
SIDES = [(True, False), (True, True), (False, True), (False, False)]


def table(C):
    return lambda Z, X: np.asarray(C)[Z[:, 0].astype(int)][:, X[:, 0].astype(int)]


def answer(ask):
    try:
        return ask()
    except ValueError as error:
        return str(error)


def equal(a, b):
    return same(a, b) and a.walk.tolist() == b.walk.tolist() and a.visit.tolist() == b.visit.tolist()


def check(order, options, sides, kind, N, beam, rng):
    """Push N frames; after each, the result equals the batch result and contains what was committed."""
    entry = dropdtw.METHODS[options["method"]]
    x, z = (side and entry.takes_drops for side in sides)
    C, d_z = costs(kind, (4, N), rng), costs(kind, (4,), rng) if z else None
    d_x = float(costs("positive", (), rng)) if x else None
    options = {name: value for name, value in options.items() if name != "open_x" or x}
    o = Online(np.arange(4), d_x, d_z, match=table(C), gamma=None, beam=beam, order=order, keep_costs=True, **options)
    before, decided = [], 0
    for j in range(N):
        o.push(j)
        now = o.committed
        assert set(before) <= set(now)
        assert decided <= o.decided <= j + 1
        before, decided = now, o.decided
        wanted = answer(lambda: dropdtw.solve(C[:, : j + 1], d_x, d_z, order=order, **options))  # noqa: B023
        found = answer(o.finish)
        if not isinstance(found, str):
            assert {s for s in found.segments() if s.stop < decided} == set(before)
            assert found.rescore() == approx(found.cost)
        if beam is None and isinstance(wanted, str):
            assert found == wanted
        elif beam is None:
            assert equal(found, wanted)
            assert found.visits == wanted.visits


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_a_stream_that_ends_now_is_the_batch(order):
    """All options; ties are broken the same way."""
    rng = np.random.default_rng(0)
    for number, options in enumerate(OPTIONS[::3]):
        for sides in SIDES[number % 2 :: 2]:
            check(order, options, sides, ["positive", "signed", "tied", "holes"][number % 4], 4, None, rng)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(list(ORDERS.values())),
    st.sampled_from(OPTIONS),
    st.sampled_from(SIDES),
    st.sampled_from(["positive", "signed", "tied", "holes"]),
    st.integers(1, 16),
    st.sampled_from([None, 0.0, 0.5, 2.0]),
    st.integers(0, 2**32 - 1),
)
def test_what_is_committed_never_changes(order, options, sides, kind, N, beam, seed):
    check(order, options, sides, kind, N, beam, np.random.default_rng(seed))


PAIRS = {"antichain": [], "N": [(0, 2), (1, 2), (1, 3)], "diamond": [(0, 1), (0, 2), (1, 3), (2, 3)]}


def prefixes(C, d_x, d_z, pairs, options):
    """The posteriors for each set of steps that an alignment may have begun with, with the steps' numbers."""
    for n in range(1, 5):
        for steps in combinations(range(4), n):
            if all(a in steps for a, b in pairs if b in steps):
                within = [(steps.index(a), steps.index(b)) for a, b in pairs if b in steps]
                kept = list(steps)
                z = None if d_z is None else d_z[kept]
                try:
                    yield (
                        kept,
                        dropdtw.posterior(C[kept], drop_x=d_x, drop_z=z, order=orders.before(n, within), **options),
                    )
                except ValueError:
                    continue  # fewer x than steps


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("z", [True, False])
def test_probabilities_are_those_of_all_alignments_with_a_beginning_of_the_order(pairs, many, z):
    rng = np.random.default_rng(1)
    C, d_x, d_z = rng.normal(size=(4, 5)), 0.6, rng.normal(size=4) if z else None
    options = {"many_to_one": many, "gamma": 0.7}
    o = Online(np.arange(4), d_x, d_z, match=table(C), order=orders.before(4, pairs), **options)
    for j in range(5):
        now = o.push(j)
        # Each posterior is weighted by the sum over its alignments; matching nothing is one more case.
        found = [(kept, p, np.exp(p.log_partition)) for kept, p in prefixes(C[:, : j + 1], d_x, d_z, pairs, options)]
        nothing = np.exp(-d_x * (j + 1) / 0.7)
        total = nothing + sum(weight for _, _, weight in found)
        match = np.zeros(4)
        for kept, p, weight in found:
            match[kept] += weight * p.match[:, j] / total
        assert now.match == approx(match, abs=1e-9)
        assert now.dropped == approx((nothing + sum(w * p.drop_x[j] for _, p, w in found)) / total, abs=1e-9)


def test_probabilities_on_a_loop_are_those_of_all_walks_so_far():
    rng = np.random.default_rng(2)
    C, d_x = rng.normal(size=(3, 5)), 0.6
    options = {"gamma": 0.7, "contiguous": True}
    o = Online(np.arange(3), d_x, match=table(C), order=orders.repeat([0, 1, 2], 0.5), **options)
    ring = [(0, 1), (1, 2), (2, 3)]
    ends = [orders.walks([0, 1, 2], ring, [n], jumps=[(3, 1, 0.5)]) for n in (1, 2, 3)]
    for j in range(5):
        now = o.push(j)
        found = [dropdtw.posterior(C[:, : j + 1], drop_x=d_x, order=end, **options) for end in ends]
        weights = np.array([np.exp(p.log_partition) for p in found])
        total = weights.sum() + np.exp(-d_x * (j + 1) / 0.7)
        assert now.match == approx(sum(w * p.match[:, j] for w, p in zip(weights, found, strict=True)) / total)


def test_the_step_is_the_last_of_the_cheapest_alignment_so_far():
    o = Online(np.eye(3), drop_x=0.3, gamma=None, order=orders.any_order(0, 1, 2))
    junk = -np.ones(3)
    stands = [o.push(x) for x in (junk, np.eye(3)[2], junk, np.eye(3)[0], np.eye(3)[1])]
    assert [now.step for now in stands] == [-1, 2, 2, 0, 1]
    assert [now.label for now in stands] == [-1, 2, -1, 0, 1]
    assert o.finish().done.tolist() == [2, 0, 1]


def test_a_beam_commits_what_was_done_in_another_order():
    rng = np.random.default_rng(0)
    Z = np.eye(6)
    truth = np.repeat([-1, 3, -1, 0, 4, -1, 1, 5, -1, 2, -1], 30)
    X = np.where(truth[:, None] < 0, -0.4, Z[truth]) + 0.05 * rng.normal(size=(len(truth), 6))
    order = orders.any_order([0, 1, 2], [3, 4, 5])
    how = {"drop_x": 0.3, "many_to_one": False, "contiguous": True, "order": order, "match": "cosine"}
    o = Online(Z, beam=3.0, gamma=None, **how)
    undecided = 0
    for x in X:
        o.push(x)
        undecided = max(undecided, len(o._stream.past))
    assert undecided < 170 < len(X)
    a = dropdtw.align(Z, X, **how)
    assert o.finish().labels.tolist() == a.labels.tolist() == truth.tolist()
    assert o.committed == a.segments()
    assert o.finish().done.tolist() == a.done.tolist() == [3, 0, 4, 1, 5, 2]


def test_an_order_that_is_the_list_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    plain, said = Online(np.eye(3), 0.3, 0.4), Online(np.eye(3), 0.3, 0.4, order=[0, 1, 2])
    for x in X:
        a, b = plain.push(x), said.push(x)
        assert (a[:3], a.match.tolist(), a.dropped) == (b[:3], b.match.tolist(), b.dropped)
    assert said.finish().walked is None


def test_orders_that_do_not_fit_are_refused_at_once():
    with pytest.raises(ValueError, match=r"Z has 2 steps.*Z has no step 2"):
        Online(np.eye(2), 0.3, order=orders.any_order(0, 1, 2))
    with pytest.raises(ValueError, match="open_z is 1"):
        Online(np.eye(3), 0.3, 0.3, open_z=1, order=orders.any_order(0, 1, 2))
