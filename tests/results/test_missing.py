"""Missing elements behave as if they had been deleted, but indices refer to the caller's sequences."""

import json

import numpy as np
import pytest

import dropdtw
import oracle
from dropdtw import Alignment, align, distance, orders, pairwise
from dropdtw.costs import Softmax

NAN = np.nan
METHODS = {
    method: {"method": method}
    | ({"drop_x": 0.4, "drop_z": 0.5} if entry.takes_drops else {})
    | ({"threshold": 0.4} if entry.takes_threshold else {})
    for method, entry in dropdtw.METHODS.items()
}
OPTIONS = {
    "one-sided": {"drop_x": 0.3},
    "percentile": {"drop_x": "percentile:30", "drop_z": "percentile:60"},
    "suggest": {"drop_x": "suggest"},
    "function": {"drop_x": lambda C: C.mean(axis=0)},
    "window": {"window": 2},
    "share": {"window": 0.4, "drop_x": 0.3, "drop_z": 0.3},
    "charged": {"drop_x": 0.2, "drop_z": 0.3, "open_x": 0.4, "open_z": 0.2, "warp": 0.1},
    "suggested opening": {"drop_x": 0.2, "open_x": "suggest"},
    "exclusive": {"drop_x": 0.3, "drop_z": 0.3, "many_to_one": False, "contiguous": True},
    "softmax": {"match": "softmax", "drop_x": "logit:30"},
    "cosine": {"match": "cosine", "drop_x": 0.3},
    "callable": {"match": lambda Z, X: np.abs(Z[:, None] - X).sum(axis=2), "drop_x": 0.4},
    "reference": {"drop_x": 0.3, "executor": "reference"},
}
every_way = pytest.mark.parametrize("how", (METHODS | OPTIONS).values(), ids=METHODS | OPTIONS)


def sequence(rng, length, features):
    """Numbers or vectors, some of them missing: whole elements, or a single feature."""
    A = rng.normal(size=(length, features))
    holes = rng.random(length) < 0.3
    holes[rng.integers(length)] = False
    A[holes, rng.integers(features, size=holes.sum())] = NAN
    return A, np.flatnonzero(~holes)


def problems(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        features = int(rng.integers(1, 3))
        N = int(rng.integers(8, 12))
        (Z, z), (X, x) = sequence(rng, int(rng.integers(5, 8)), features), sequence(rng, N, features)
        yield Z, X, z, x


def fits(Z, X, how):
    try:
        align(Z, X, **how)
    except ValueError:  # too steep for a step pattern, or no alignment inside the window
        return False
    return True


@every_way
@pytest.mark.filterwarnings("ignore:the cosine of one-dimensional")
def test_missing_elements_might_as_well_be_deleted(how):
    tried = 0
    for Z, X, z, x in problems(12):
        if not fits(Z[z], X[x], how):
            continue
        tried += 1
        a, b = align(Z, X, missing="drop", **how), align(Z[z], X[x], **how)
        assert a.cost == b.cost
        assert a.rescore() == pytest.approx(a.cost, rel=1e-12)
        assert distance(Z, X, missing="drop", **how) == pytest.approx(b.cost, rel=1e-12)
        assert a.shape == (len(Z), len(X))
        np.testing.assert_array_equal(a.pairs, np.stack([z[b.pairs[:, 0]], x[b.pairs[:, 1]]], axis=1))
        np.testing.assert_array_equal(a.labels[x], np.where(b.labels < 0, -1, z[b.labels]))
        np.testing.assert_array_equal(a.dropped_x[x], b.dropped_x)
        np.testing.assert_array_equal(a.dropped_z[z], b.dropped_z)
        assert a.charged == b.charged
        np.testing.assert_array_equal(np.flatnonzero(~a.missing_x), x)
        np.testing.assert_array_equal(np.flatnonzero(~a.missing_z), z)
        assert (a.labels[a.missing_x] == -1).all()
        assert not (a.dropped_x & a.missing_x).any()
        assert not a.M[:, a.missing_x].any()
        assert not a.M[a.missing_z].any()
        assert [tuple(s) for s in a.segments()] == [(z[i], x[s], x[t - 1] + 1) for i, s, t in b.segments()]
        assert [tuple(s) for s in a.visits] == [(z[i], x[s], x[t - 1] + 1) for i, s, t in b.visits]
    assert tried > 3


def test_the_cost_is_that_of_all_alignments_of_what_is_left():
    for Z, X, z, x in problems(8, seed=1):
        Z, X, z, x = Z[:4], X[:5], z[z < 4], x[x < 5]
        if not len(z) or not len(x):
            continue
        C = np.linalg.norm(Z[z][:, None] - X[x], axis=2)
        found = distance(Z, X, 0.3, 0.4, match="euclidean", missing="drop")
        assert found == pytest.approx(oracle.hard(C, np.full(len(x), 0.3), np.full(len(z), 0.4)), rel=1e-12)


def test_a_mask_is_of_all_elements_missing_ones_too():
    rng = np.random.default_rng(8)
    fitting = 0
    for Z, X, z, x in problems(12, seed=4):
        mask = rng.random((len(Z), len(X))) < 0.7
        for how in ({"method": "dtw"}, {"drop_x": 0.3, "drop_z": 0.4}, {"drop_x": "percentile:40", "drop_z": 0.4}):
            expected = distance(Z[z], X[x], mask=mask[np.ix_(z, x)], **how)
            assert distance(Z, X, mask=mask, missing="drop", **how) == expected
            if np.isfinite(expected):
                fitting += 1
                a = align(Z, X, mask=mask, missing="drop", **how)
                assert a.cost == pytest.approx(expected, rel=1e-12)
                assert mask[tuple(a.pairs.T)].all()
    assert fitting > 20
    with pytest.raises(ValueError, match=r"mask has shape \(1, 2\), but there are 1 × 3 pairs; .* missing elements"):
        align([0.0], [0.0, NAN, 1.0], mask=[[True, True]], missing="drop")


def test_a_run_of_drops_goes_on_across_a_missing_element():
    X = [0.0, 9.0, NAN, 9.0, 1.0]
    a = align([0.0, 1.0], X, drop_x=0.1, open_x=1.0, missing="drop")
    assert a.charged.open_x == 1
    assert a.cost == pytest.approx(1.2)


def test_a_segment_goes_on_across_a_missing_element():
    a = align([0.0, 5.0], [0.0, NAN, 0.0, 5.0], missing="drop")
    assert [tuple(s) for s in a.segments()] == [(0, 0, 3), (1, 3, 4)]
    np.testing.assert_array_equal(a.labels, [0, -1, 0, 1])


def test_drop_costs_and_ids_of_each_element_stay_with_it():
    rng = np.random.default_rng(3)
    for Z, X, z, x in problems(10, seed=2):
        d_x, d_z = rng.random(len(X)), rng.random(len(Z))
        ids = rng.integers(0, 3, len(Z))
        for match, left in (("euclidean",) * 2, (Softmax(ids=tuple(ids)), Softmax(ids=tuple(ids[z])))):
            expected = distance(Z[z], X[x], d_x[x], d_z[z], match=match if match == "euclidean" else left)
            assert distance(Z, X, d_x, d_z, match=match, missing="drop") == expected
            together = pairwise([Z, Z], [X], d_x, d_z, match=match, missing="drop")
            np.testing.assert_array_equal(together, [[expected], [expected]])


@every_way
@pytest.mark.filterwarnings("ignore:the cosine of one-dimensional")
def test_all_pairs_are_those_of_what_is_left(how):
    rng = np.random.default_rng(5)
    for features in (1, 2):
        Zs, zs = zip(*(sequence(rng, n, features) for n in (8, 9, 10)), strict=True)
        Xs, xs = zip(*(sequence(rng, n, features) for n in (10, 10, 9, 8)), strict=True)
        Zs, Xs = [*Zs, rng.normal(size=(7, features))], [*Xs, rng.normal(size=(8, features))]
        zs, xs = [*zs, slice(None)], [*xs, slice(None)]
        left = [Z[z] for Z, z in zip(Zs, zs, strict=True)], [X[x] for X, x in zip(Xs, xs, strict=True)]
        if how.get("method") in dropdtw.METHODS and dropdtw.METHODS[how["method"]].slopes is not None:
            continue  # too steep for some pair
        expected = pairwise(*left, **how)
        np.testing.assert_array_equal(pairwise(Zs, Xs, missing="drop", **how), expected)
        np.testing.assert_array_equal(pairwise(Zs, missing="drop", **how), pairwise(left[0], **how))


def test_normalized_values_divide_by_what_is_left():
    Z, X = [0.0, NAN, 1.0, 3.0], [0.0, 1.0, NAN, NAN, 2.0]
    how = {"method": "symmetric2", "normalize": "pattern"}
    expected = distance([0.0, 1.0, 3.0], [0.0, 1.0, 2.0], **how)
    assert distance(Z, X, missing="drop", **how) == expected
    assert pairwise([Z], [X], missing="drop", **how) == expected


def test_masked_values_are_missing_too():
    X = np.ma.masked_equal([[0.0, 0.0], [1.0, -9.0], [1.0, 1.0]], -9.0)
    Z = [[0.0, 0.0], [1.0, 1.0]]
    a = align(Z, X, match="euclidean", missing="drop")
    np.testing.assert_array_equal(a.missing_x, [False, True, False])
    assert a.cost == 0
    assert distance(Z, list(X), match="euclidean", missing="drop") == 0


def test_without_missing_elements_the_option_changes_nothing():
    for _, _, z, x in problems(3):
        Z, X = np.arange(len(z)) * 1.0, np.arange(len(x)) % 4 * 1.0
        a, b = align(Z, X, 0.3, missing="drop"), align(Z, X, 0.3)
        assert a.kept is None
        np.testing.assert_array_equal(a.pairs, b.pairs)
        assert a.cost == b.cost


def test_input_is_not_changed():
    Z, X = np.array([0.0, NAN, 1.0]), np.array([NAN, 0.0, 1.0])
    before = Z.copy(), X.copy()
    align(Z, X, missing="drop")
    np.testing.assert_array_equal(Z, before[0])
    np.testing.assert_array_equal(X, before[1])


# --- What else an alignment says ----------------------------------------------------------------------------------


CASES = METHODS | {"charged": OPTIONS["charged"], "window": OPTIONS["share"]}
every_case = pytest.mark.parametrize("how", CASES.values(), ids=CASES)


def problem(how):
    """The first problem that fits: Z, X, and which of their elements are there."""
    return next(p for p in problems(40, seed=7) if len(p[2]) >= 4 and fits(p[0][p[2]], p[1][p[3]], how))


@every_case
def test_explanations_are_those_of_what_is_left(how):
    Z, X, z, x = problem(how)
    a, b = align(Z, X, missing="drop", **how), align(Z[z], X[x], **how)
    for place, j in enumerate(x.tolist()):
        ours, theirs = a.explain(j), b.explain(place)
        assert (ours.j, ours.price, ours.cost, ours.alternative_cost, ours.opening) == (
            *(j, theirs.price, theirs.cost, theirs.alternative_cost, theirs.opening),
        )
        assert ours.matched == tuple(z[list(theirs.matched)].tolist())
        expected = None if theirs.alternative is None else tuple(z[list(theirs.alternative)].tolist())
        assert ours.alternative == expected
    for j in np.flatnonzero(a.missing_x).tolist():
        assert str(a.explain(j)) == f"x_{j} is missing: it matches nothing and costs nothing"
        assert a.explain(j).missing


@every_case
@pytest.mark.parametrize("costs", [False, True])
def test_alignments_with_missing_elements_come_back_from_json(how, costs):
    Z, X, _, x = problem(how)
    a = align(Z, X, missing="drop", **how)
    b = Alignment.from_dict(json.loads(json.dumps(a.to_dict(costs=costs), allow_nan=False)))
    for name in ("cost", "shape", "charged", "method"):
        assert getattr(a, name) == getattr(b, name)
    for name in ("pairs", "labels", "paid_x", "paid_z", "missing_x", "missing_z", "dropped_x", "dropped_z", "walk"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.segments() == b.segments()
    assert repr(a) == repr(b)
    if costs:
        assert b.rescore() == pytest.approx(a.cost)
        j = int(x[0])
        assert str(b.explain(j)) == str(a.explain(j))


@every_case
def test_posteriors_are_those_of_what_is_left(how):
    Z, X, z, x = problem(how)
    p, q = (align(A, B, **how, **more).posterior(0.3) for A, B, more in ((Z, X, {"missing": "drop"}), (Z[z], X[x], {})))
    assert p.match.shape == (len(Z), len(X))
    np.testing.assert_array_equal(p.match[np.ix_(z, x)], q.match)
    np.testing.assert_array_equal(p.drop_x[x], q.drop_x)
    np.testing.assert_array_equal(p.drop_z[z], q.drop_z)
    assert p.match.sum() == pytest.approx(q.match.sum())
    assert (p.drop_x.sum(), p.drop_z.sum()) == pytest.approx((q.drop_x.sum(), q.drop_z.sum()))
    assert (p.cost, p.entropy) == (q.cost, q.entropy)
    for ours, theirs in zip(p.sample(5, seed=0), q.sample(5, seed=0), strict=True):
        np.testing.assert_array_equal(ours.pairs, np.stack([z[theirs.pairs[:, 0]], x[theirs.pairs[:, 1]]], axis=1))
        assert ours.cost == theirs.cost


def test_steps_in_other_orders_leave_out_missing_x():
    C = np.array([[9, 9, 0], [0, 9, 9], [9, 0, 9.0]])
    X = np.array([0.0, NAN, 1.0, 2.0])
    how = {"match": lambda Z, X: C, "order": orders.any_order(0, 1, 2)}
    a = align([0.0, 1.0, 2.0], X, missing="drop", **how)
    np.testing.assert_array_equal(a.labels, [1, -1, 2, 0])
    assert a.done.tolist() == [1, 2, 0]
    assert [tuple(v) for v in a.visits] == [(1, 0, 1), (2, 2, 3), (0, 3, 4)]
    assert a.rescore() == a.cost == 0
    b = Alignment.from_dict(a.to_dict(costs=True))
    assert b.done.tolist() == [1, 2, 0]
    assert b.rescore() == 0
    np.testing.assert_array_equal(
        align([0.0, 1.0], X, order=[0, 1], missing="drop").labels, align([0.0, 1.0], X, missing="drop").labels
    )


def test_a_list_of_steps_may_miss_some():
    a = align([0.0, NAN, 1.0], [0.0, 1.0], order=[0, 1, 2], missing="drop")
    np.testing.assert_array_equal(a.labels, [0, 2])
    assert a.walk.tolist() == [0, 2]


def test_warped_sequences_are_filled_where_something_is_missing():
    a = align([0.0, NAN, 2.0], [0.0, NAN, 2.0], missing="drop")
    np.testing.assert_array_equal(a.warp_z([0.0, NAN, 2.0], fill=-1), [0, -1, 2])
    np.testing.assert_array_equal(a.warp_x([0.0, NAN, 2.0], fill="linear"), [0, 1, 2])


def test_pictures_cross_out_what_is_missing():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from dropdtw import plot

    Z, X = np.array([0.0, NAN, 1.0]), np.array([0.0, NAN, NAN, 5.0, 1.0])
    a = align(Z, X, drop_x=0.5, missing="drop")
    ax = a.plot()
    image = ax.images[0].get_array()
    assert np.ma.getmaskarray(np.ma.masked_invalid(image))[[1, 0], [0, 2]].all()
    crossed = [patch.get_bbox().intervalx.tolist() for patch in ax.patches if patch.get_hatch() == "xxx"]
    assert [0.5, 2.5] in crossed
    assert "2 x and 1 z missing" in ax.get_title()
    assert "1 of 5 x" in ax.get_title()
    links = [line for line in plot.linked(Z, X, a).lines if line.get_alpha() == 0.45]
    assert len(links) == len(a.pairs)
    assert all(np.isfinite(line.get_xydata()).all() for line in links)
    plt.close("all")
    assert "1 z and 2 x missing" in repr(a)
    assert "1 z and 2 x missing" in a._repr_html_()
    assert ">missing</span>" in a._repr_html_()
    assert "not taken" not in a._repr_html_()


def test_columns_tell_missing_from_dropped():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from dropdtw.sklearn import columns

    a = align([0.0, NAN, 1.0], [0.0, NAN, 5.0, 1.5], drop_x=0.6, missing="drop")
    assert columns(a)["cost"].tolist() == [0, 0.5]
    assert columns(a, "x")["dropped"].tolist() == [False, False, True, False]
    assert columns(a, "x")["missing"].tolist() == [False, True, False, False]
    assert columns(a, "z")["missing"].tolist() == [False, True, False]
