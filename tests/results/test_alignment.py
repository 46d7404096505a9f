"""Alignments: their views agree, their arrays are read-only, and their explanations are correct."""

import math
from dataclasses import FrozenInstanceError
from itertools import groupby

import numpy as np
import pytest

import cases
import dropdtw
import oracle
from cases import OF_COSTS, arguments, same, solved
from dropdtw import Segment, align, solve
from dropdtw.results.alignment import INTERNAL

every_method = pytest.mark.parametrize("method", OF_COSTS)


# --- The views agree --------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("seed", range(4))
def test_views_agree_with_the_pairs(method, seed):
    a = solved(method, seed=seed)
    pairs = [tuple(pair) for pair in a.pairs.tolist()]
    assert pairs == sorted(set(pairs))
    assert a.M.dtype == bool
    assert [tuple(pair) for pair in np.argwhere(a.M).tolist()] == pairs
    np.testing.assert_array_equal(a.dropped_x, ~a.M.any(axis=0))
    np.testing.assert_array_equal(a.dropped_z, ~a.M.any(axis=1))
    assert (np.diff(a.pairs, axis=0) >= 0).all()  # no two pairs cross
    np.testing.assert_array_equal(a.labels < 0, a.dropped_x)


@pytest.mark.parametrize("seed", range(8))
def test_label_is_the_cheapest_z_and_of_equals_the_first(seed):
    C = np.random.default_rng(seed).integers(-3, 1, (6, 4))  # negative and tied: one x takes many z
    a = solve(C, drop_x=1)
    assert a.M.sum(axis=0).max() > 1
    for j, label in enumerate(a.labels):
        matching = [(C[i, j], i) for i in range(6) if a.M[i, j]]
        assert label == (min(matching)[1] if matching else -1)


def test_label_of_tied_z_is_the_smaller_i():
    np.testing.assert_array_equal(solve([[1], [0], [0]]).labels, [1])


def runs(M):
    """The unbroken runs of each row, found by scanning it."""
    for i, row in enumerate(M):
        for matched, run in groupby(range(len(row)), key=lambda j, row=row: bool(row[j])):
            if matched:
                columns = list(run)
                yield Segment(i, columns[0], columns[-1] + 1)


@every_method
@pytest.mark.parametrize("seed", range(4))
def test_segments_are_the_runs_of_M(method, seed):
    a = solved(method, seed=seed, K=5, N=9)
    assert a.segments() == list(runs(a.M))
    assert sum(s.length for s in a.segments()) == len(a.pairs)


def test_segment_breaks_at_a_dropped_x():
    assert solve([[0, 9, 0, 0]], drop_x=1).segments() == [Segment(0, 0, 1), Segment(0, 2, 4)]


def test_segments_share_an_x_that_matches_several_z():
    assert solve([[0], [0]]).segments() == [Segment(0, 0, 1), Segment(1, 0, 1)]


def test_nothing_matched():
    a = solve(np.ones((2, 3)), drop_x=0.1, drop_z=0.1)
    assert a.pairs.shape == (0, 2)
    assert a.segments() == []
    assert a.labels.tolist() == [-1, -1, -1]
    assert not a.M.any()
    assert a.dropped_x.all()
    assert a.dropped_z.all()
    assert a.rescore() == pytest.approx(0.5)


@every_method
def test_repr_counts(method):
    a = solved(method)
    assert repr(a) == (
        f"<Alignment by {method} of 4 z with 7 x: cost {a.cost:.6g}, {len(a.pairs)} pairs, "
        f"{sum(~a.M.any(axis=1))} z and {sum(~a.M.any(axis=0))} x dropped>"
    )


def test_samples_are_alignments_too():
    C, drop_x, drop_z = np.random.default_rng(0).random((3, 5)), np.arange(5) / 5, np.arange(3) / 3
    for a in dropdtw.posterior(C, drop_x=drop_x, drop_z=drop_z).sample(20, seed=0):
        assert a.cost == pytest.approx(C[a.M].sum() + drop_x[a.dropped_x].sum() + drop_z[a.dropped_z].sum())
        assert a.segments() == list(runs(a.M))
        np.testing.assert_array_equal(a.labels < 0, a.dropped_x)


# --- Arrays are safe --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pairs", "labels", "M", "paid_x", "paid_z"])
def test_arrays_are_read_only(name):
    array = getattr(solved(), name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_alignments_do_not_change():
    with pytest.raises(FrozenInstanceError):
        solved().cost = 0


def strided(array):
    """The same numbers, read-only and not contiguous."""
    wide = np.full([2 * n for n in array.shape], np.nan, array.dtype)
    view = wide[tuple(slice(None, None, -2) for _ in array.shape)]
    view[...] = array
    view.flags.writeable = False
    return view


@every_method
def test_solve_takes_read_only_and_strided_costs_and_leaves_them_alone(method):
    given = arguments(method, 4, 7, np.random.default_rng(1))
    views = {k: strided(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    a = solve(**views)
    assert same(a, solve(**given))
    for k, v in given.items():
        np.testing.assert_array_equal(views[k], v)
    a.explain(0)
    dropdtw.posterior(**views)
    assert dropdtw.cost(**views) == dropdtw.cost(**given)


@pytest.mark.parametrize("match", ["cosine", "softmax", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("d", [3, 12])
def test_align_takes_read_only_and_strided_sequences_and_leaves_them_alone(match, d):
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(4, d)), rng.normal(size=(6, d))
    a, b = align(strided(Z), strided(X), 0.5, match=match), align(Z, X, 0.5, match=match)
    assert a.cost == pytest.approx(b.cost)
    np.testing.assert_array_equal(a.pairs, b.pairs)


def test_alignment_keeps_the_costs_it_was_made_from():
    C, drop_x = np.array([[0.0, 5.0, 0.0]]), np.ones(3)
    a = solve(C, drop_x)
    C[:], drop_x[:] = 7, 7
    assert a.rescore() == a.cost
    assert a.explain(1).price == 1


@pytest.mark.parametrize("match", ["cosine", "softmax", "euclidean", "sqeuclidean"])
def test_alignment_keeps_the_sequences_it_was_made_from(match):
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(3, 2)), rng.normal(size=(5, 2))
    a = align(Z, X, 0.5, match=match)
    Z[:], X[:] = 7, -7
    assert a.rescore() == pytest.approx(a.cost)
    assert a.explain(0).cost == a.cost


# --- Warping ----------------------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_warp_is_the_mean_of_the_matched(method, seed):
    a = solved(method, seed=seed)
    rng = np.random.default_rng(seed)
    Z, X = rng.normal(size=(4, 3)), rng.normal(size=(7, 3))
    on_x, on_z = a.warp_z(Z), a.warp_x(X)
    for j in range(7):
        expected = Z[a.M[:, j]].mean(axis=0) if a.M[:, j].any() else np.full(3, np.nan)
        np.testing.assert_allclose(on_x[j], expected)
    for i in range(4):
        expected = X[a.M[i]].mean(axis=0) if a.M[i].any() else np.full(3, np.nan)
        np.testing.assert_allclose(on_z[i], expected)


HALF = [[0, 9, 9, 9, 0], [9, 9, 9, 9, 9], [9, 9, 9, 0, 9]]  # x_1 and x_2 are dropped, x_4 too; z_1 is dropped


def test_warp_keeps_the_shape_of_an_element():
    a = solve(HALF, 1, 1)
    assert a.warp_z(np.ones(3)).shape == (5,)
    assert a.warp_z(np.ones((3, 2, 4))).shape == (5, 2, 4)
    assert a.warp_x(np.ones((5, 2, 4))).shape == (3, 2, 4)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (math.nan, [0.5, math.nan, math.nan, 2.5, math.nan]),
        (0.25, [0.5, 0.25, 0.25, 2.5, 0.25]),
        (0, [0.5, 0, 0, 2.5, 0]),
        (-1, [0.5, -1, -1, 2.5, -1]),
        ("linear", [0.5, 0.5 + 2 / 3, 0.5 + 4 / 3, 2.5, 2.5]),
    ],
)
def test_fill_stands_where_x_is_dropped(fill, expected):
    a = solve(HALF, 1, 1)
    assert a.labels.tolist() == [0, -1, -1, 2, -1]
    np.testing.assert_allclose(a.warp_z([0.5, 1.5, 2.5], fill=fill), expected)
    np.testing.assert_allclose(a.warp_z([[0.5, 5], [1.5, 6], [2.5, 7]], fill=fill)[:, 0], expected)


def test_linear_fill_works_on_each_feature():
    a = solve(HALF, 1, 1)
    warped = a.warp_x([[0, 10], [0, 0], [0, 0], [4, 20], [0, 0]], fill="linear")
    np.testing.assert_allclose(warped, [[0, 10], [2, 15], [4, 20]])


def test_linear_fill_of_nothing_is_nan():
    a = solve(np.full((2, 3), np.inf), 1, 1)
    assert np.isnan(a.warp_z([1, 2], fill="linear")).all()


# --- Explanations -----------------------------------------------------------------------------------------------

EXPLAINED = [v for v in cases.VARIANTS if v["one_to_many"] == v["many_to_one"]]


@pytest.mark.sweep
@pytest.mark.parametrize("variant", EXPLAINED, ids=cases.name)
def test_explanation_is_the_best_alignment_that_treats_x_otherwise(variant):
    for case in cases.cases(variant, seed=1)[::5]:  # a step of 5 covers every shape and every kind of costs
        listed = oracle.alignments(**case.oracle())
        if not listed:
            continue
        a = solve(**case.library())
        for j in range(case.C.shape[1]):
            e = a.explain(j)
            here = a.M[:, j]
            others = [(c, M[:, j]) for M, c in listed if (not M[here, j].any() if here.any() else M[:, j].any())]
            assert e.matched == tuple(np.flatnonzero(here))
            assert e.cost == a.cost
            assert e.margin >= -1e-12
            if not others:
                assert e.alternative is None
                assert e.alternative_cost == np.inf
                continue
            best = min(c for c, _ in others)
            assert e.alternative_cost == pytest.approx(best)
            assert e.alternative in {tuple(np.flatnonzero(column)) for c, column in others if c <= best + 1e-9}


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_price_is_what_x_pays(method, seed):
    a = solved(method, seed=seed)
    costs = a.problem.costs
    for j in range(7):
        weights = 1 if a.weights is None else a.weights[a.pairs[:, 1] == j]
        matched = (weights * costs.matrix[a.M[:, j], j]).sum()
        paid = matched if a.M[:, j].any() else a.paid_x[j] and costs.drop_x[j]
        assert a.explain(j).price == pytest.approx(paid)


def test_prices_of_all_x_and_drops_of_z_are_the_cost():
    a = solved()
    of_z = sum(d for d, dropped in zip(a.problem.costs.drop_z, a.dropped_z, strict=True) if dropped)
    assert sum(a.explain(j).price for j in range(7)) + of_z == pytest.approx(a.cost)


def test_negative_index_counts_from_the_end():
    a = solved()
    for j in range(7):
        assert a.explain(j - 7) == a.explain(j)
        assert a.explain(j - 7).j == j


@pytest.mark.parametrize(
    ("C", "drop_x", "j", "text"),
    [
        (
            [[0, 1]],
            3,
            1,
            "x_1 is matched to z_0 for 1; dropping it instead would change the total from 1 to 3 (margin 2)",
        ),
        (
            [[0, 5]],
            3,
            1,
            "x_1 is dropped for 3; matching it to z_0 instead would change the total from 3 to 5 (margin 2)",
        ),
        ([[0], [1]], None, 0, "x_0 is matched to z_0 and z_1 for 1; there is no alignment that treats it differently"),
    ],
)
def test_explanation_in_words(C, drop_x, j, text):
    assert str(solve(C, drop_x).explain(j)) == text


def test_free_skips_on_a_border_are_explained_too():
    table = dropdtw.Recurrence(  # DTW of z_0 with a suffix of X
        name="suffix",
        states=("m",),
        edges=dropdtw.edges("m", to="m", moves="diag left", cost="match"),
        start="m",
        final=("m",),
        border=dropdtw.edges("m", to="m", moves="left", cost="free"),
    )
    a = solve([[5, 0, 1]], method=table)
    assert a.labels.tolist() == [-1, -1, 0]
    e = a.explain(0)
    assert (e.matched, e.alternative, e.alternative_cost) == ((), (0,), 6)


@pytest.mark.parametrize("huge", [1e17, -1e17, 1e300])
@pytest.mark.parametrize("method", ["smith_waterman", "subsequence", "drop_dtw"])
def test_explanations_are_exact_beside_huge_costs(huge, method):
    C = np.random.default_rng(3).normal(size=(4, 5)).round(1)
    C[0, 4] = huge
    drops = {} if method == "subsequence" else {"drop_x": 0.5, "drop_z": 0.5}
    a = solve(C, method=method, **drops)
    listed = oracle.alignments(C, *drops.values(), method=method)
    for j in np.flatnonzero(a.dropped_x):
        best = min((c for M, c in listed if M[:, j].any()), default=np.inf)
        assert a.explain(j).alternative_cost == pytest.approx(best, rel=1e-12)


def test_an_alternative_that_avoids_a_huge_cost_costs_what_its_own_pairs_cost():
    e = solve([[-1.0, -0.8, 1e17]], 9.0, 9.0, method="smith_waterman").explain(1)
    assert (e.matched, e.alternative, e.alternative_cost) == ((), (0,), -0.8)


def test_the_best_match_of_an_x_with_several_z_is_found_where_skips_are_free():
    C = np.array([[3.0, 1.0, 5.0], [2.0, -4.0, 2.0], [5.0, 1.0, -9.0]])
    table = dropdtw.Recurrence(  # any monotone matches; everything else is free
        name="free",
        states=("m", "x", "z"),
        edges=dropdtw.edges("m x z", to="m", moves="diag", cost="match")
        + dropdtw.edges("m", to="m", moves="left top", cost="match")
        + dropdtw.edges("m x", to="x", moves="left", cost="free")
        + dropdtw.edges("m x z", to="z", moves="top", cost="free"),
        start="m",
        final=("m", "x", "z"),
    )
    a = solve(C, method=table)
    assert (a.cost, a.labels.tolist()) == (-13.0, [-1, 1, 2])
    e = a.explain(0)
    assert (e.alternative, e.alternative_cost) == ((1,), -11.0)


@pytest.mark.parametrize("executor", [None, "reference"])
def test_charges_are_counted_in_plain_numbers(executor):
    a = dropdtw.solve([[0.1, 0.9, 0.2, 0.9]], drop_x=0.3, open_x=0.05, executor=executor)
    assert repr(a.charged) == "Charges(open_x=2.0, open_z=0.0, warp=1.0)"


def test_dir_lists_what_users_use_and_nothing_that_serves_the_library_alone():
    a = dropdtw.solve([[0.1, 0.9]], drop_x=0.3)
    shown = {name for name in dir(a) if not name.startswith("_")}
    everything = {name for name in object.__dir__(a) if not name.startswith("_")}
    assert everything - shown == {name for name in INTERNAL if not name.startswith("_")}
    assert {"cost", "pairs", "M", "labels", "dropped_x", "segments", "rescore", "explain", "plot", "to_dict"} <= shown
    assert not [name for name in shown if not hasattr(a, name)]


@pytest.mark.sweep
@pytest.mark.parametrize("variant", EXPLAINED, ids=cases.name)
def test_a_z_is_explained_by_the_best_alignment_that_treats_it_otherwise(variant):
    for case in cases.cases(variant, seed=2)[::5]:
        listed = oracle.alignments(**case.oracle())
        if not listed:
            continue
        a = solve(**case.library())
        for i in range(case.C.shape[0]):
            e, here = a.explain(z=i), a.M[i]
            others = [(c, M[i]) for M, c in listed if (not M[i][here].any() if here.any() else M[i].any())]
            assert (e.side, e.j, e.cost, e.matched) == ("z", i, a.cost, tuple(np.flatnonzero(here)))
            assert e == a.explain(z=i - case.C.shape[0])
            assert e.margin >= -1e-12
            best = min((c for c, _ in others), default=np.inf)
            assert e.alternative_cost == pytest.approx(best)
            alternatives = {tuple(np.flatnonzero(row)) for c, row in others if c <= best + 1e-9}
            assert e.alternative in (alternatives or {None})


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_price_is_what_a_z_pays(method, seed):
    a = solved(method, seed=seed)
    costs = a.problem.costs
    for i in range(a.shape[0]):
        weights = 1 if a.weights is None else a.weights[a.pairs[:, 0] == i]
        matched = (weights * costs.matrix[i, a.M[i]]).sum()
        paid = matched if a.M[i].any() else a.paid_z[i] and costs.drop_z[i]
        assert a.explain(z=i).price == pytest.approx(paid)


@pytest.mark.parametrize(
    ("C", "drop_z", "z", "text"),
    [
        (
            [[0, 0, 0, 9, 9], [9, 9, 9, 1, 9]],
            4,
            0,
            "z_0 is matched to x_0 to x_2 for 0; dropping it instead would change the total from 10 to 41 (margin 31)",
        ),
        (
            [[0, 3], [5, 5]],
            1,
            1,
            "z_1 is dropped for 1; matching it to x_1 instead would change the total from 4 to 5 (margin 1)",
        ),
        ([[0, 1]], None, 0, "z_0 is matched to x_0 and x_1 for 1; there is no alignment that treats it differently"),
    ],
)
def test_explanation_of_a_z_in_words(C, drop_z, z, text):
    assert str(solve(C, None, drop_z).explain(z=z)) == text


def test_a_z_that_the_walk_does_not_take_is_explained():
    C = [[0, 9, 9], [9, 0, 9], [9, 4, 9], [9, 9, 0]]
    a = solve(C, order=[0, dropdtw.orders.one_of(1, 2), 3], method="steps")
    assert str(a.explain(z=2)) == (
        "z_2 is not on the walk; matching it to x_1 instead would change the total from 0 to 4 (margin 4)"
    )
    assert a.explain(z=1).alternative == ()
