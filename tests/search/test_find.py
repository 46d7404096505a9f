"""Occurrences of a query against exhaustive enumeration, executors against each other, and the laws of `find`."""

import os
import pickle
import signal as signals
import subprocess
import sys
import time
from itertools import product

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from cases import costs
from dropdtw.executors import EXECUTORS
from dropdtw.executors.protocol import Occurrences
from dropdtw.search import find as module

SHAPES = [(1, 1), (1, 4), (2, 2), (2, 3), (3, 4)]
OPTIONS = [
    {},
    {"drop_x": 1.0},
    {"drop_z": 1.0},
    {"drop_x": 1.0, "drop_z": 2.0},
    {"drop_x": 0.0, "drop_z": 1.0},
    {"drop_x": -1.0},
    {"drop_x": 1.0, "contiguous": True},
    {"drop_x": 1.0, "drop_z": 1.0, "one_to_many": False},
    {"drop_x": 1.0, "many_to_one": False},
    {"drop_x": 1.0, "drop_z": 1.0, "open_x": 0.5, "open_z": 0.25, "warp": 0.25},
    {"warp": 0.5},
]


def given(C):
    """The match cost that gives C, whatever the sequences: all of it, or the columns of the x that it is asked for."""
    return lambda Z, X: C[:, np.asarray(X[:, 0], int)]


def sought(C, **options):
    """`find` by match costs alone."""
    K, N = C.shape
    return dropdtw.find(np.zeros(K), np.arange(N), match=given(C), **options)


def blocks(Z, X):
    return np.abs(Z[:, None] - X[None]).sum(axis=2)


def enumerated(C, drop_x=None, drop_z=None, one_to_many=True, many_to_one=True, contiguous=False, **charges):
    """For every end j the least cost of a stretch that ends there, and its latest start: by listing all of them."""
    K, N = C.shape
    d_x, d_z = (np.inf if d is None else d for d in (drop_x, drop_z))
    best = [(np.inf, 0)] * N
    for M, repeats in zip(oracle.chains(K, N), oracle._repeats(K, N), strict=True):
        if not M.any() or (not one_to_many and (M.sum(1) > 1).any()) or (not many_to_one and (M.sum(0) > 1).any()):
            continue
        columns = np.flatnonzero(M.any(axis=0))
        start, end = columns[0], columns[-1]
        lost_x, lost_z = ~M.any(axis=0)[start : end + 1], ~M.any(axis=1)
        split = any((np.diff(np.flatnonzero(row)) > 1).any() for row in M)
        if (contiguous and split) or (lost_x.any() and d_x == np.inf) or (lost_z.any() and d_z == np.inf):
            continue
        cost = C[M].sum() + charges.get("warp", 0) * repeats
        for lost, price, opening in ((lost_x, d_x, "open_x"), (lost_z, d_z, "open_z")):
            runs = np.count_nonzero(np.diff(np.r_[0, lost.astype(int)]) == 1)
            cost += (price * lost.sum() if lost.any() else 0) + charges.get(opening, 0) * runs
        best[end] = min(best[end], (cost, -start))
    return [(cost, -start) for cost, start in best]


def chosen(ends, k=None, max_cost=np.inf, overlap=0.0):
    """The ends that the definition keeps, as (start, stop, cost): ends by (cost, j), each against all kept before."""
    kept = []
    for cost, j, start in sorted((cost, j, start) for j, (cost, start) in enumerate(ends)):
        if cost > max_cost or cost == np.inf or len(kept) == k:
            break
        stop = j + 1
        shared = [(min(stop, b) - max(start, a), min(stop - start, b - a)) for a, b, _ in kept]
        if all(common <= overlap * shorter for common, shorter in shared):
            kept.append((start, stop, cost))
    return kept


def plain(found):
    return [(o.start, o.stop, o.cost) for o in found]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_occurrences_are_those_of_the_definition(options, executor):
    """Whole costs, so that sums are exact and ties are many; −1 and +∞ among them."""
    rng = np.random.default_rng(0)
    for (K, N), kind in product(SHAPES, ("tied", "forbidden")):
        C = costs("tied", (K, N), rng) if kind == "tied" else rng.integers(0, 4, (K, N)).astype(float)
        if kind == "forbidden":
            C[rng.random(C.shape) < 0.3] = np.inf
        ends = enumerated(C, **options)
        for how in ({"max_cost": 99}, {"k": 2}, {"max_cost": 2, "overlap": 0.5}, {"k": 3, "max_cost": 4, "overlap": 1}):
            assert plain(sought(C, **options, **how, executor=executor)) == chosen(ends, **how)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_alignments_begin_and_end_with_a_match_and_cost_what_they_say(options, executor):
    rng = np.random.default_rng(1)
    for _ in range(4):
        C = rng.integers(0, 4, (3, 9)).astype(float)
        for o in sought(C, **options, k=4, overlap=0.5, executor=executor):
            a = o.alignment
            assert a.shape == (3, o.length)
            assert a.cost == approx(o.cost, abs=1e-12)
            assert a.rescore() == approx(o.cost, abs=1e-12)
            assert not a.dropped_x[0]
            assert not a.dropped_x[-1]


def test_executors_agree_on_long_signals_in_many_strips(monkeypatch):
    if "cpp" not in EXECUTORS:
        pytest.skip("the compiled executor is not installed")
    monkeypatch.setattr("dropdtw.executors.cpu.STRIP", 1 << 11)
    rng = np.random.default_rng(2)
    for dtype, (features, match) in product(
        (np.float64, np.float32), [(1, "sqeuclidean"), (3, "euclidean"), (12, blocks), (12, "cosine")]
    ):
        Z, X = rng.integers(-3, 4, (9, features)).astype(dtype), rng.integers(-3, 4, (530, features)).astype(dtype)
        options = {"match": match, "drop_x": 2.5, "drop_z": 1.5, "k": 20, "overlap": 0.25}
        a, b = (dropdtw.find(Z, X, **options, executor=executor) for executor in ("cpp", "reference"))
        assert len(a) == 20
        if match in ("sqeuclidean", blocks):  # sums are exact
            assert plain(a) == plain(b)
        else:
            assert [o.cost for o in a[:5]] == approx([o.cost for o in b[:5]], rel=1e-5)


def test_without_drops_the_best_is_the_subsequence(executor):
    rng = np.random.default_rng(3)
    for seed in range(5):
        Z, X = rng.normal(size=(6, 2)), rng.normal(size=(60, 2))
        best = dropdtw.find(Z, X, k=1, match="sqeuclidean", executor=executor)[0]
        whole = dropdtw.align(Z, X, method="subsequence", match="sqeuclidean", executor=executor)
        assert best.cost == approx(whole.cost, rel=1e-12), seed
        assert (best.start, best.stop) == (whole.pairs[0, 1], whole.pairs[-1, 1] + 1)
        assert np.array_equal(best.alignment.pairs + np.array([0, best.start]), whole.pairs)


def test_of_equal_occurrences_the_first_comes_first_and_the_shortest_counts(executor):
    signal = [5, 1, 1, 2, 2, 5, 1, 2, 5]
    assert plain(dropdtw.find([1, 2], signal, max_cost=0, executor=executor)) == [(2, 4, 0.0), (6, 8, 0.0)]


def test_planted_occurrences_come_back_whatever_lies_inside_them(executor):
    rng = np.random.default_rng(4)
    query, signal = np.sin(np.linspace(0, 6, 20)), 3 + rng.random(400)
    planted = [30, 120, 300]
    for place in planted:
        stretch = np.insert(query + 0.01 * rng.normal(size=20), 10, [9.0, 9.0])
        signal[place : place + 22] = stretch
    found = dropdtw.find(query, signal, max_cost=2.0, drop_x=0.5, executor=executor)
    assert sorted((o.start, o.stop) for o in found) == [(place, place + 22) for place in planted]
    assert all(np.flatnonzero(o.alignment.dropped_x).tolist() == [10, 11] for o in found)


def test_what_is_asked_for_is_what_comes_back():
    signal = np.tile([0.0, 1.0, 9.0], 40)
    assert len(dropdtw.find([0, 1], signal)) == module.DEFAULT_K
    assert len(dropdtw.find([0, 1], signal, max_cost=0)) == 40
    assert len(dropdtw.find([0, 1], signal, k=13, max_cost=0)) == 13
    assert dropdtw.find([100], signal, max_cost=1) == []
    assert dropdtw.find([[0.0, 1], [1, 1]], np.ones((5, 2)), match=lambda Z, X: np.full((len(Z), len(X)), np.inf)) == []


def test_a_rule_reads_the_whole_signal(executor):
    rng = np.random.default_rng(5)
    Z, X = rng.normal(size=(4, 3)), rng.normal(size=(80, 3))
    price = dropdtw.drops.percentile_drop(dropdtw.costs.cosine(Z, X), 20)
    by_rule, by_number = (
        dropdtw.find(Z, X, k=3, drop_x=d, match="cosine", executor=executor) for d in ("percentile:20", price)
    )
    assert plain(by_rule) == plain(by_number)
    assert by_rule[0].alignment.cost == approx(by_rule[0].cost)


def test_each_element_of_the_signal_may_have_a_drop_cost_of_its_own(executor):
    rng = np.random.default_rng(8)
    signal = np.array([9.0, 1, 5, 2, 9, 9, 1, 5, 2, 9])
    prices = np.array([9.0, 9, 0.25, 9, 9, 9, 9, 0.5, 9, 9])
    found = dropdtw.find([1, 2], signal, 2, drop_x=prices, executor=executor)
    assert plain(found) == [(1, 4, 0.25), (6, 9, 0.5)]
    query, signal, prices = rng.normal(size=5), rng.normal(size=60), rng.random(60)
    prices[rng.random(60) < 0.2] = np.inf
    for o in dropdtw.find(query, signal, 6, drop_x=prices, drop_z=rng.random(5), executor=executor):
        assert o.alignment.cost == approx(o.cost) == approx(o.alignment.rescore())
        assert np.isfinite(prices[o.start : o.stop][o.alignment.dropped_x]).all()


def test_occurrences_outlive_their_signal():
    query, signal = np.array([1.0, 2.0]), np.array([9.0, 1.0, 2.0, 9.0])
    found = dropdtw.find(query, signal, k=1)[0]
    query[:], signal[:] = 7, 7
    assert found.alignment.cost == 0
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.alignment.pairs.tolist() == [[0, 0], [1, 1]]


def test_missing_elements_might_as_well_have_been_deleted(executor):
    """The same occurrences at the same cost, in the caller's indices; drop costs of elements go along."""
    rng = np.random.default_rng(7)
    query, signal = rng.normal(size=6), rng.normal(size=80)
    query[2], signal[rng.random(80) < 0.2] = np.nan, np.nan
    there = np.flatnonzero(~np.isnan(signal))
    for price, part in ((0.5, 0.5), (each := rng.random(80), each[there])):
        options = {"k": 5, "drop_z": 0.7, "executor": executor}
        found = dropdtw.find(query, signal, drop_x=price, missing="drop", **options)
        wanted = dropdtw.find(query[~np.isnan(query)], signal[there], drop_x=part, **options)
        assert plain(found) == [(there[o.start], there[o.stop - 1] + 1, o.cost) for o in wanted]
        for o, other in zip(found, wanted, strict=True):
            assert o.alignment.shape == (6, o.length)
            assert o.alignment.cost == approx(other.alignment.cost)
            where = there[other.alignment.pairs[:, 1] + other.start]
            assert (o.alignment.pairs[:, 1] + o.start).tolist() == where.tolist()


def test_selection_is_the_definition_in_parts_too(monkeypatch):
    monkeypatch.setattr(module, "FIRST", 3)
    rng = np.random.default_rng(6)
    for overlap in (0.0, 0.3, 1.0):
        stop = np.arange(1, 201)
        begin = np.maximum(0, stop - rng.integers(1, 30, 200))
        cost = rng.integers(0, 20, 200).astype(float)
        found = module._best(Occurrences(cost, begin), None, 15.0, overlap)
        wanted = chosen(list(zip(cost, begin.tolist(), strict=True)), None, 15.0, overlap)
        assert list(found) == [(a, b) for a, b, _ in wanted]


def test_missing_values_leave_gaps_in_the_picture():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    import matplotlib.pyplot as plt

    from dropdtw import plot

    signal = np.array([9, 1, np.nan, 2, 9, np.nan, 1, 2])
    for given in (signal, np.ma.masked_invalid(signal)):
        ax = plot.occurrences(given, dropdtw.find([1, 2], given, 2, missing="drop"))
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), signal)
    long = np.where(np.arange(50_000) % 9 == 0, np.nan, 1.0)
    long[20_000:30_000] = np.nan
    assert np.isnan(plot.occurrences(long, []).lines[0].get_ydata()).mean() == approx(0.2, abs=0.01)
    plt.close("all")


def test_a_share_of_overlap_is_not_lost_to_rounding():
    """0.29 · 100 is 28.999999999999996, but 29 of 100 elements are a share of 0.29."""
    cost, begin = np.full(171, np.inf), np.zeros(171, int)
    cost[99], cost[170], begin[170] = 0.0, 1.0, 71
    ends = Occurrences(cost, begin)
    assert list(module._best(ends, None, np.inf, 0.29)) == [(0, 100), (71, 171)]
    assert list(module._best(ends, None, np.inf, 0.28)) == [(0, 100)]


def test_progress_counts_the_signal():
    seen = []
    dropdtw.find(np.zeros(3), np.zeros(1000), progress=lambda *said: seen.append(said))
    assert seen[-1] == (1000, 1000)


@pytest.mark.skipif(os.name != "posix", reason="on Windows, only a console sends Ctrl-C to another process")
def test_ctrl_c_is_answered():
    code = (
        "import signal, numpy as np, dropdtw\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "x = np.random.default_rng(0).normal(size=4_000_000)\n"
        "print('ready', flush=True)\n"
        "dropdtw.find(x[:2000], x, drop_x=1.0)\n"
    )
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "ready\n"
    time.sleep(0.5)
    running.send_signal(signals.SIGINT)
    _, said = running.communicate(timeout=60)
    assert "KeyboardInterrupt" in said


def test_warp_costs_nothing_where_no_match_repeats_an_element():
    rng = np.random.default_rng(0)
    Z, X = rng.random((3, 2)), rng.random((12, 2))
    one = {"one_to_many": False, "many_to_one": False, "drop_x": 0.3}
    free, charged = (dropdtw.find(Z, X, 3, warp=warp, **one) for warp in (0.0, 0.25))
    assert [(o.start, o.stop, o.cost) for o in charged] == [(o.start, o.stop, o.cost) for o in free]
