"""Small calls go straight to the kernels and give the same results, only faster."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dropdtw
from dropdtw.executors import quick

pytest.importorskip("dropdtw._cpp")

RNG = np.random.default_rng(18)
OPTIONS = [
    {},
    {"drop_x": 0.4},
    {"drop_z": 0.3},
    {"drop_x": 0.4, "drop_z": 0.3},
    {"drop_x": 1, "drop_z": np.float64(0.3), "contiguous": True},
    {"drop_x": 0.4, "drop_z": 0.3, "one_to_many": False, "many_to_one": False},
    {"drop_x": 0.2, "open_x": 0.5, "warp": 0.1},
    {"drop_z": 0.2, "open_z": 0.5},
    {"drop_x": 0.2, "drop_z": 0.2, "open_x": 0.5, "open_z": 0.2, "warp": 0.1},
    {"drop_x": 0.2, "drop_z": 0.2, "method": "needleman_wunsch", "open_x": 0.1},
    {"drop_x": 0.2, "drop_z": 0.2, "method": "smith_waterman"},
    {"drop_x": 0.2, "drop_z": 0.2, "method": "drop_dtw_paper"},
    {"method": "dtw"},
    {"method": "subsequence"},
    {"method": "symmetric2"},
    {"drop_x": 9.0, "drop_z": 9.0, "method": "greedy"},
    {"drop_x": "percentile:30"},
    {"drop_x": np.inf},
]


def pair(d: int, dtype: type, K: int = 7, N: int = 11) -> tuple[np.ndarray, np.ndarray]:
    if d == 0:
        return RNG.integers(0, 4, K).astype(dtype), RNG.integers(0, 4, N).astype(dtype)
    return RNG.normal(size=(K, d)).astype(dtype), RNG.normal(size=(N, d)).astype(dtype)


def general(call, Z, X, **options):
    """Compute the same on the general path, by passing lists and naming `executor`."""
    return call(Z, X, executor="cpp", **options)


def taken(monkeypatch) -> list[bool]:
    """Record for each call from now on whether it took the fast path."""
    found: list[bool] = []
    for name in ("value", "trace"):
        way = getattr(quick, name)
        monkeypatch.setattr(quick, name, lambda *a, way=way: (answer := way(*a), found.append(answer is not None))[0])
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("d", "dtype"), [*product((0, 1, 3, 8, 9), (np.float64, np.float32))])
def test_a_quick_call_is_the_general_one_to_the_last_bit(options, d, dtype):
    for match in ("auto", "sqeuclidean") if d != 3 else ("auto", "euclidean", "sqeuclidean"):
        Z, X = pair(d, dtype)
        given = {"match": match, **options}
        assert dropdtw.distance(Z, X, **given) == general(dropdtw.distance, Z, X, **given)
        a, b = dropdtw.align(Z, X, **given), general(dropdtw.align, Z, X, **given)
        assert a.cost == b.cost
        assert a.shape == b.shape
        assert a.method == b.method
        assert a.charged == b.charged
        for part in ("pairs", "labels", "paid_x", "paid_z", "dropped_x", "dropped_z", "M", "walk", "visit"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
        assert a.rescore() == b.rescore()
        assert a.to_dict(costs=True) == b.to_dict(costs=True)
        assert str(a.explain(3)) == str(b.explain(3))


def test_plain_arrays_take_the_quick_way_and_nothing_else_does(monkeypatch):
    Z, X = pair(1, np.float64)
    found = taken(monkeypatch)
    dropdtw.distance(Z, X)
    dropdtw.align(Z[:, 0], X[:, 0], drop_x=0.3)
    dropdtw.align(*pair(8, np.float64))
    assert found == [True] * 3
    del found[:]
    dropdtw.distance(Z.tolist(), X.tolist())
    dropdtw.distance(Z.astype(np.float32), X)
    dropdtw.distance(Z, np.repeat(X, 2)[::2, None])
    dropdtw.distance(np.asfortranarray(np.repeat(Z, 2, axis=1)), np.repeat(X, 2, axis=1))
    dropdtw.distance(1e-80 * Z, 1e-80 * X)  # squares would underflow
    dropdtw.distance(np.zeros(300), np.zeros(300))
    dropdtw.distance(*pair(9, np.float64))
    assert found == [False] * 7
    dropdtw.align(Z, X, drop_x=np.full(len(X), 0.3))
    dropdtw.align(Z, X, drop_x="percentile:30")
    assert len(found) == 7  # not even tried


@pytest.mark.parametrize(
    ("Z", "X", "options", "message"),
    [
        ([np.nan, 1.0], [1.0], {}, "Z has NaN or infinity in element 0"),
        ([1.0], [np.inf], {}, "X has NaN or infinity"),
        (np.ones((2, 3)), np.ones((2, 2)), {"match": "euclidean"}, "features"),
        (np.ones(0), np.ones(2), {}, "at least one element"),
        (np.array(1.0), np.ones(2), {}, "give one sequence"),
        (np.ones((1, 1, 1)), np.ones((1, 1, 1)), {}, "give one sequence"),
        ([1.0], [1.0], {"drop_x": np.nan}, "NaN"),
        ([1.0], [1.0], {"drop_x": -np.inf}, "-inf"),
        ([1.0], [1.0], {"drop_x": True}, "drop_x"),
        ([1.0], [1.0], {"method": "nonesuch"}, "method is 'nonesuch'"),
        (np.ones(3), np.ones(2), {"many_to_one": False}, "cannot each have an x"),
    ],
)
def test_what_is_wrong_is_said_as_ever(Z, X, options, message):
    for call in (dropdtw.distance, dropdtw.align):
        with pytest.raises(ValueError, match=message):
            call(np.asarray(Z, float), np.asarray(X, float), **options)


def test_where_every_alignment_is_forbidden_align_says_so_and_distance_is_infinite():
    Z, X = np.zeros(3), np.zeros(2)
    options = {"method": "needleman_wunsch", "drop_x": 0.5, "drop_z": np.inf}
    assert dropdtw.distance(Z, X, **options) == np.inf
    with pytest.raises(ValueError, match="every alignment is forbidden"):
        dropdtw.align(Z, X, **options)


def test_float32_refuses_a_drop_cost_that_it_cannot_hold():
    Z, X = pair(1, np.float32)
    with pytest.raises(ValueError, match="float32 cannot hold"):
        dropdtw.distance(Z, X, drop_x=1e39)


def test_an_alignment_keeps_its_costs_whatever_becomes_of_the_arrays():
    Z, X = pair(2, np.float64)
    a = dropdtw.align(Z, X, match="euclidean", drop_x=0.4)
    before = a.rescore()
    b = dropdtw.align(Z, X, match="euclidean", drop_x=0.4)
    Z[:], X[:] = 0, 0
    assert b.rescore() == before == pytest.approx(b.cost)


def test_arrays_are_left_alone_and_results_cannot_be_written_to():
    Z, X = pair(1, np.float64)
    kept = Z.copy(), X.copy()
    Z.flags.writeable = X.flags.writeable = False
    a = dropdtw.align(Z, X, drop_x=0.4)
    np.testing.assert_array_equal(Z, kept[0])
    np.testing.assert_array_equal(X, kept[1])
    with pytest.raises(ValueError, match="read-only"):
        a.pairs[0] = 0
