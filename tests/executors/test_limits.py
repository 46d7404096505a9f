"""A hard value under a limit: bitwise exact up to the limit, otherwise above it, with less work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dropdtw
from cases import VARIANTS, costs, name, paid, spec_of
from dropdtw import executors
from dropdtw.costs import Match
from dropdtw.problem.match import Pair
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.search.pairwise import Comparison
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import hard_min

cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")

LISTS = [v for v in VARIANTS if not spec_of(v, 0.0, 0.0).on_graph]
"""The variants that run on a list, not on a graph."""

KINDS = st.sampled_from(["positive", "signed", "tied", "holes"])


def problem(variant, C, d_x, d_z, executor=None):
    """A variant with these costs; None if no alignment fits the shape, or if it needs a graph, which has no limit."""
    try:
        found = Problem.of_costs(spec_of(variant, d_x, d_z, executor=executor), C)
        return found if found.graph is None else None
    except ValueError as error:
        if "cannot each have" in str(error) or "no path of method" in str(error):
            return None
        raise


def value_of(p):
    return executors.run(p, hard_min).value


def within(p):
    """The value of a problem under a limit, as a function of the limit."""
    return lambda limit: executors.choose(p.table, p.executor).within(p.table, p.costs, limit)


def limits(full, rng):
    """Limits below, at and above a value, and far from it."""
    some = [full, np.nextafter(full, -np.inf), np.nextafter(full, np.inf), full * rng.normal(), 0.0, -1e300, 1e300]
    return [v for v in (*some, *(full + rng.normal(size=4)), np.inf, -np.inf) if not np.isnan(v)]


def check(within, full, rng):
    """Check the contract; return how many limits led to early abandoning."""
    given_up = 0
    for limit in limits(full, rng):
        value, spared = within(limit)
        if full <= limit:
            assert value == full
            assert spared == 0
        else:
            assert value > limit
            assert value in (full, np.inf)
        assert 0 <= spared < 1
        assert spared == 0 or value == np.inf
        given_up += spared > 0
    return given_up


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(LISTS),
    st.tuples(st.integers(1, 45), st.integers(1, 45)),
    st.tuples(KINDS, KINDS, KINDS),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["C", "F", "strided"]),
    st.integers(0, 2**32 - 1),
)
def test_a_value_up_to_the_limit_is_the_value(variant, shape, kinds, dtype, layout, seed):
    rng = np.random.default_rng(seed)
    K, N = shape
    C, d_x, d_z = (costs(kind, s, rng).astype(dtype) for kind, s in zip(kinds, ((K, N), (N,), (K,)), strict=True))
    C = np.repeat(C, 2, axis=1)[:, ::2] if layout == "strided" else np.asarray(C, order=layout)
    p = problem(variant, C, d_x, d_z)
    if p is not None:
        check(within(p), value_of(p), rng)


@pytest.mark.sweep
@pytest.mark.parametrize("variant", LISTS, ids=name)
def test_every_table(variant):
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (3, 17), (20, 20), (33, 9)):
        for kind in ("positive", "signed", "tied", "holes"):
            C, d_x, d_z = (costs(kind, s, rng) for s in (shape, shape[1:], shape[:1]))
            p = problem(variant, C, d_x, d_z)
            if p is not None:
                check(within(p), value_of(p), rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bound_that_is_exact_gives_way_to_rounding(dtype):
    """Only drops, or a single path: the lower bound of the rest is exact, but is summed in another order."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 60))
        d_x, d_z = (rng.random(n).astype(dtype) * 10.0 ** rng.integers(-3, 4) for _ in range(2))
        never = paid(np.full((n, n), np.inf, dtype), d_x, d_z)
        line = paid(np.where(np.eye(n) > 0, rng.random((n, n)), 9.0).astype(dtype), d_x * 0 + 9, d_z * 0 + 9)
        for table, c in ((recurrence.two_sided(), never), (recurrence.needleman_wunsch(), line)):
            full = cpu.run(table, hard_min, c).value
            assert cpu.within(table, c, full).value == full


@pytest.mark.sweep
@pytest.mark.parametrize("variant", [v for v in LISTS if "window" not in v], ids=name)
def test_what_costs_far_more_is_given_up_at_once(variant):
    """For every table, all columns and rows have a cost, so the sum of their lower bounds exceeds the limit."""
    rng = np.random.default_rng(0)
    C, d = 0.5 + rng.random((40, 40)), np.ones(40)
    C[rng.random(C.shape) < 0.1] = 0.1
    p = problem(variant, C, d, d)
    if p is None:
        return
    full = value_of(p)
    if variant["method"] in ("smith_waterman", "lcss"):  # the lower bound of the rest is 0, or −1 per element
        assert within(p)(-41.0) == (np.inf, pytest.approx(1, abs=0.1))
    else:
        assert np.isfinite(full)
        assert within(p)(0.05 * full) == (np.inf, pytest.approx(1, abs=0.1))


@pytest.mark.parametrize("shape", [(40, 40), (40, 80), (80, 40)])
def test_negative_costs_that_are_still_to_come_count(shape):
    """High costs at first are made up in the last column, the last row, or one that the path has already entered."""
    K, N = shape
    for place in ((K - 1, N - 1), (K - 1, 0), (0, N - 1), (20, 0), (0, 20)):
        C = np.full(shape, 0.1)
        C[0, 0], C[place] = 40, -40
        for table in (recurrence.dtw(), recurrence.two_sided(), recurrence.one_sided()):
            c = paid(C, np.full(N, 50.0), np.full(K, 50.0))
            full = cpu.run(table, hard_min, c).value
            assert cpu.within(table, c, full).value == full


def test_what_is_forbidden_is_given_up_at_once():
    C = np.ones((30, 30))
    C[17] = np.inf
    p = problem({"sides": (True, False), "method": "drop_dtw"}, C, np.ones(30), None)
    assert within(p)(1e9) == (np.inf, pytest.approx(1, abs=0.1))
    assert within(p)(np.inf) == (np.inf, 0)


def test_the_reference_does_not_look_at_limits():
    p = problem(VARIANTS[0], np.ones((3, 3)), np.ones(3), np.ones(3), "reference")
    assert within(p)(0.5) == (value_of(p), 0.0)


# --- Costs that arrive in strips ---------------------------------------------------------------------------


@pytest.mark.parametrize("match", ["cosine", "euclidean", "sqeuclidean", "softmax"])
@pytest.mark.parametrize("d", [3, 12])
def test_strips_and_costs_inside_kernels(match, d, monkeypatch):
    monkeypatch.setattr(cpu, "STRIPS_FROM", 0)
    monkeypatch.setattr(cpu, "STRIP", 0)
    rng = np.random.default_rng(0)
    given_up = 0
    for drops in ((0.6, None), (0.6, 0.6), (None, 0.6), (None, None), (-0.1, 0.5), (0.5, rng.normal(size=14))):
        for dtype in (np.float32, np.float64):
            Z, X = (rng.normal(size=(n, d)).astype(dtype) for n in (14, 600))
            p = Problem.of_sequences(Spec.of(*drops, match=match), Z, X)
            given_up += check(within(p), value_of(p), rng)
    assert given_up > 0


def test_of_costs_that_may_be_negative_nothing_is_known_in_advance(monkeypatch):
    """The first strip may be expensive, and later strips may more than make up for it."""
    monkeypatch.setattr(cpu, "STRIPS_FROM", 0)
    monkeypatch.setattr(cpu, "STRIP", 0)
    C = np.where(np.arange(900) < 400, 1.0, -1.0) * np.ones((3, 1))
    signed = Match("signed", lambda Z, X: C[:, X[:, 0].astype(int)], least=-np.inf)
    p = Problem.of_checked(Spec.of(method="dtw"), np.zeros((3, 1)), np.arange(900.0)[:, None], signed)
    full = value_of(p)
    assert full < 0
    assert within(p)(full) == (full, 0)


def test_columns_that_are_not_needed_are_not_computed(monkeypatch):
    asked = []
    original = Pair.part
    monkeypatch.setattr(Pair, "part", lambda self, i, j: asked.append(j.stop) or original(self, i, j))
    monkeypatch.setattr(cpu, "STRIPS_FROM", 0)
    monkeypatch.setattr(cpu, "STRIP", 0)
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(14, 12)), rng.normal(size=(5000, 12))
    p = Problem.of_sequences(Spec.of(method="dtw", match="cosine"), Z, X)
    full = value_of(p)
    assert max(asked) == 5000
    asked.clear()
    value, spared = within(p)(full / 4)
    assert value == np.inf
    assert max(asked) < 2500
    assert spared == pytest.approx(1 - max(asked) / 5000)


# --- Many at a time ---------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [v for v in LISTS if "window" not in v and v.get("method") not in ("wdtw", "ctc")]
    ),  # one weighs by position, the other looks for equal z
    st.sampled_from(["euclidean", "sqeuclidean"]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([(0.5, 0.5), (0.0, 0.3), (-0.2, 0.4), (0.4, -0.2), (np.inf, 0.3)]),
    st.integers(0, 2**32 - 1),
)
def test_lanes(variant, match, dtype, prices, seed):
    rng = np.random.default_rng(seed)
    spec = spec_of(variant, *prices, match=match)
    many = Comparison(spec, 2)
    Z = rng.normal(size=(20, 2)).astype(dtype)
    square = spec.method.one_to_one or not all(spec.matching[:2]) or spec.method.slopes is not None
    Xs = [rng.normal(size=(20 if square else n, 2)).astype(dtype) for n in rng.integers(1, 40, 40)]
    (full,), *_ = many.in_lanes([Z], Xs, match)
    finite = full[np.isfinite(full)]
    for limit in (*(np.quantile(finite, [0, 0.1, 0.5, 1]) if finite.size else ()), -1.0, 0.0):
        (values,), abandoned, spared = many.in_lanes([Z], Xs, match, limit=limit)
        below = full <= limit
        np.testing.assert_array_equal(values[below], full[below])
        assert (values[~below] > limit).all()
        assert np.isin(values, [*full, np.inf]).all()
        if spec.method.narrow is None:  # greedy drops leave pairs without an alignment, which may be abandoned or not
            assert abandoned == (np.isinf(values) & np.isfinite(full)).sum() + (np.isinf(full) & (spared > 0)).sum()
        assert 0 <= spared < 1


def test_lanes_with_negative_drop_costs():
    """Each dropped z lowers the cost, so the first rows give no bound for the last."""
    Z, Xs = np.zeros((40, 1)), [np.full((2, 1), 9.0)] * 50
    for drops in ((1.0, -1.0), (-1.0, 1.0)):
        many = Comparison(Spec.of(*drops), 1)
        for A, Bs in ((Z, Xs), (Xs[0], [Z] * 50)):
            full = many.in_lanes([A], Bs, "euclidean").values
            np.testing.assert_array_equal(many.in_lanes([A], Bs, "euclidean", limit=full[0, 0]).values, full)


def test_lanes_give_up():
    Z, Xs = np.zeros((40, 1)), [np.full((30, 1), 5.0)] * 50
    for price in (None, 3.0):
        many = Comparison(Spec.of(price, price), 1)
        values, abandoned, spared = many.in_lanes([Z], Xs, "euclidean", limit=10.0)
        assert np.isinf(values).all()
        assert abandoned == 50
        assert 0.7 < spared < 1


# --- Retrieval --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 16])
@pytest.mark.parametrize("match", ["cosine", "euclidean", "softmax"])
def test_nearest_gives_up_and_finds_the_same(d, match, monkeypatch):
    monkeypatch.setattr("dropdtw.search.nearest.TRIAL", 16)
    monkeypatch.setattr("dropdtw.search.nearest.LANES", 16)
    rng = np.random.default_rng(0)
    Z = 3 * rng.normal(size=(30, d))
    corpus = [Z + 0.01 * rng.normal(size=Z.shape) for _ in range(20)] + [
        3 * rng.normal(size=(30, d)) for _ in range(80)
    ]
    how = {"match": match, "drop_x": 50.0}
    found = dropdtw.nearest(Z, corpus, 3, n_jobs=1, progress=False, **how)
    values = dropdtw.pairwise([Z], corpus, progress=False, **how)[0]
    best = np.argsort(values, kind="stable")[:3]
    assert found.indices.tolist() == best.tolist()
    assert found.costs.tolist() == values[best].tolist()
    assert (found.abandoned > 0) is (found.spared > 0)
    assert found.aligned >= 3
    assert found.abandoned < found.aligned
    assert found.abandoned > 60 or found.pruned > 0.6
    assert found.abandoned > 60 or match != "softmax"


def test_sequences_of_the_same_shape_have_drop_costs_of_their_own():
    """A rule reads the match costs of each pair, although the rest of the setup is shared."""
    rng = np.random.default_rng(0)
    Zs, Xs = rng.normal(size=(3, 6, 12)), rng.normal(size=(4, 7, 12))
    for how in (
        {"drop_x": "percentile:30", "drop_z": 0.3},
        {"drop_z": lambda C: C.min(axis=0) + 0.1},
        {"drop_x": rng.random(7), "drop_z": rng.random(6)},
        {"method": "lcss", "threshold": "percentile:30"},
        {"method": "greedy", "drop_x": 0.6, "drop_z": 0.7},
        {"method": "otam", "match": "softmax"},
        {"drop_x": "logit:30", "match": "softmax"},
        {"drop_x": dropdtw.drops.LogitPercentile(30), "match": "softmax"},
        {"drop_x": dropdtw.drops.Percentile(30)},
        {"window": 3, "drop_x": 0.4},
    ):
        one_by_one = [[dropdtw.distance(Z, X, **how) for X in Xs] for Z in Zs]
        np.testing.assert_array_equal(dropdtw.pairwise(Zs, Xs, n_jobs=1, **how), one_by_one)


def test_many_shapes_are_not_all_remembered(monkeypatch):
    monkeypatch.setattr("dropdtw.search.pairwise.SHAPES", 3)
    rng = np.random.default_rng(0)
    Xs = [rng.normal(size=(n, 12)) for n in (3, 4, 5, 6, 3, 4, 7, 3)]
    many = Comparison(Spec.of(0.3), 12)
    for Z in Xs[:2]:
        for X in Xs:
            assert many.value(Z, X) == dropdtw.distance(Z, X, 0.3)
            assert len(many.prepared) <= 3
            assert all(p.costs.matrix.size == 0 for p in many.prepared.values())  # nor any match costs


def test_a_tie_is_not_given_up():
    """A candidate with a small index that comes last, ties with the k-th best and has an exact bound, still wins."""
    e = np.eye(40)
    crossed, alone = e[19::-1], np.concatenate([e[:1], e[20:39]])  # one pair and 38 drops each; the first bound is 0
    for k in (1, 3):
        found = dropdtw.nearest(e[:20], [alone, *[crossed] * 60], k, 0.25, 0.25, n_jobs=1, progress=False)
        assert found.indices.tolist() == list(range(k))
        assert found.costs.tolist() == [9.5] * k


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("odd", [np.float64(1), np.float32(1e25), np.float32(0)])
def test_nearest_of_mixed_precision_and_size_is_pairwise(d, odd, monkeypatch):
    """Both choose one precision and one kernel for all sequences together."""
    monkeypatch.setattr("dropdtw.search.nearest.LANES", 16)
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(5, d)).astype(np.float32) for _ in range(60)]
    corpus[57] = corpus[57] * odd
    for match in ("euclidean", "cosine"):
        how = {"match": match, "method": "dtw"}
        values = dropdtw.pairwise([corpus[3]], corpus, progress=False, **how)[0]
        for k in (10, 60):
            found = dropdtw.nearest(corpus[3], corpus, k, n_jobs=1, progress=False, **how)
            best = np.lexsort((np.arange(60), values))[:k]
            np.testing.assert_array_equal(found.indices, best)
            np.testing.assert_array_equal(found.costs, values[best])
