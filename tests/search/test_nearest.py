"""Bounds never exceed the cost, and retrieval with bounds finds what brute force finds."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dropdtw
from cases import VARIANTS, cases, costs, name, spec_of
from dropdtw import Index, nearest
from dropdtw.costs import resolve
from dropdtw.problem.spec import Spec
from dropdtw.search import bounds
from dropdtw.search.index import bound_for, runs_of_size


@pytest.fixture(scope="module", autouse=True)
def few_at_a_time():
    """Make small corpora go through every part of the search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dropdtw.search.nearest.TRIAL", 16)
        patch.setattr("dropdtw.search.nearest.BLOCK", 512)
        patch.setattr("dropdtw.search.index.BLOCK", 512)
        yield


def split(variant):
    """The method and the options of a variant."""
    options = {k: v for k, v in variant.items() if k not in ("sides", "method")}
    return variant["method"], options


# --- Bounds -----------------------------------------------------------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_bound_is_below_the_cost(variant):
    """Every method and option, with costs of both signs, ties and +∞."""
    for case in cases(variant):
        p = bounds.prices(spec_of(variant, case.drop_x, case.drop_z))
        assert bounds.of_matrix(case.C, p) <= dropdtw.cost(**case.library()) + 1e-9


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(VARIANTS),
    st.integers(1, 9),
    st.integers(1, 9),
    st.lists(st.sampled_from(["positive", "signed", "tied", "holes"]), min_size=3, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_bound_is_below_the_cost_of_any_problem(variant, K, N, kinds, seed):
    rng = np.random.default_rng(seed)
    method, options = split(variant)
    C, d_x, d_z = (costs(kind, shape, rng) for kind, shape in zip(kinds, ((K, N), (N,), (K,)), strict=True))
    d_x, d_z = (d if side else None for d, side in zip((d_x, d_z), variant["sides"], strict=True))
    p = bounds.prices(spec_of(variant, d_x, d_z))
    try:
        cost = dropdtw.cost(C, d_x, d_z, method=method, **options)
    except ValueError:  # a shape without any alignment
        return
    assert bounds.of_matrix(C, p) <= cost + 1e-9
    assert bounds.of_matrix(C - rng.random(C.shape), p) <= cost + 1e-9  # bounds on C work as well


def test_bound_is_exact_where_columns_or_rows_decide():
    C = np.full((3, 4), 9.0)
    assert bounds.of_matrix(C, bounds.prices(Spec.of(0.5, 0.25))) == dropdtw.cost(C, 0.5, 0.25) == 2.75
    C[1] = 0.5
    assert bounds.of_matrix(C[1:2], bounds.prices(Spec.of())) == dropdtw.cost(C[1:2]) == 2.0
    assert bounds.of_matrix(np.full((2, 2), np.inf), bounds.prices(Spec.of(1.0))) == np.inf  # z cannot be dropped


def test_a_negative_column_counts_whole_only_where_it_may_be_taken_whole():
    C = -np.ones((2, 2))
    one = {"one_to_many": False, "many_to_one": False}
    assert bounds.of_matrix(C, bounds.prices(Spec.of(0.0, 0.0, **one))) == dropdtw.cost(C, 0, 0, **one) == -2
    several = bounds.of_matrix(C, bounds.prices(Spec.of(0.0, 0.0)))
    assert several <= dropdtw.cost(C, 0, 0) == -3
    assert bounds.of_matrix(C, bounds.prices(Spec.of(0.0, 0.0, method="needleman_wunsch"))) == -2


FREE = dropdtw.Recurrence(  # any x and z may be skipped for free, even if drop costs are given
    name="free",
    states=("match", "skip"),
    start="skip",
    final=("match", "skip"),
    edges=dropdtw.edges("match skip", to="match", moves="diag left top", cost="match")
    + dropdtw.edges("match skip", to="skip", moves="left", cost="free")
    + dropdtw.edges("match skip", to="skip", moves="top", cost="drop_z"),
)
BOTH = dropdtw.Recurrence(  # an x may pay its drop cost and still match a z further down
    name="both",
    states=("m",),
    start="m",
    final=("m",),
    edges=dropdtw.edges("m", to="m", moves="diag top", cost="match")
    + dropdtw.edges("m", to="m", moves="left", cost="drop_x"),
)
LONE = dropdtw.Recurrence(  # one drop cost covers an x and a z
    name="lone",
    states=("m",),
    start="m",
    final=("m",),
    edges=dropdtw.edges("m", to="m", moves="diag", cost="match")
    + dropdtw.edges("m", to="m", moves="diag", cost="drop_x"),
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([FREE, BOTH, LONE]),
    st.booleans(),
    st.integers(1, 7),
    st.integers(1, 7),
    st.lists(st.sampled_from(["positive", "signed", "tied", "holes"]), min_size=3, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_bound_of_a_table_of_ones_own_is_read_off_its_edges(table, turned, K, N, kinds, seed):
    """Bounds hold for new tables without extra code, because they are derived from the edges."""
    rng = np.random.default_rng(seed)
    own = table.transpose() if turned else table
    N = K if table is LONE else N
    C, d_x, d_z = (costs(kind, shape, rng) for kind, shape in zip(kinds, ((K, N), (N,), (K,)), strict=True))
    p = bounds.prices(Spec.of(d_x, d_z, method=own))
    assert bounds.of_matrix(C, p) <= dropdtw.cost(C, d_x, d_z, method=own) + 1e-9


def test_free_skips_of_a_table_of_ones_own_are_not_counted_as_drops():
    C = np.full((3, 5), 9.0)
    p = bounds.prices(Spec.of(1.0, 1.0, method=FREE))
    assert p.drop_x == 0
    assert bounds.of_matrix(C, p) == dropdtw.cost(C, 1.0, 1.0, method=FREE) == 3


def test_nearest_with_a_table_of_ones_own_prunes_and_is_brute_force():
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(12, 4)) + 9 * rng.normal(size=4) for _ in range(100)]
    found = check(corpus[5][2:9], corpus, 1, run=2, drop_x=5.0, drop_z=5.0, match="euclidean", method=FREE)
    assert found.pruned > 0.3


# --- Retrieval --------------------------------------------------------------------------------------------------


def brute(Z, corpus, k, **how):
    values = dropdtw.pairwise([Z], corpus, n_jobs=1, progress=False, **how)[0]
    best = np.lexsort((np.arange(len(values)), values))[:k]
    return best, values[best]


def check(Z, corpus, k, run=8, **how):
    found = nearest(Z, Index(corpus, run=run), k, n_jobs=1, progress=False, **how)
    indices, values = brute(Z, corpus, k, **how)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.costs, values)
    assert found.aligned + found.by_centers + found.by_frames == found.size == len(corpus)
    return found


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(VARIANTS),
    st.sampled_from(["cosine", "euclidean", "sqeuclidean"]),
    st.sampled_from([2, 3, 12]),
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 5),
    st.integers(1, 7),
    st.sampled_from(["smooth", "tied", "far", "zeros"]),
    st.sampled_from([-0.2, 0.0, 0.2, 0.7, 3.0, np.inf]),
    st.integers(0, 2**32 - 1),
)
def test_nearest_is_brute_force(variant, match, d, dtype, run, k, kind, price, seed):
    rng = np.random.default_rng(seed)
    method, options = split(variant)

    def sequence(length):
        if kind == "tied":
            return rng.integers(-1, 2, (length, d)).astype(dtype)
        X = rng.normal(size=(length, d)).cumsum(axis=0)
        X = X * 1e-3 + 1e3 * rng.normal(size=d) if kind == "far" else X
        X[rng.random(length) < (0.3 if kind == "zeros" else 0)] = 0
        return X.astype(dtype)

    Z = sequence(int(rng.integers(1, 9)))
    # Some tables have no alignment for some shapes; equal lengths work for all.
    entry = dropdtw.METHODS[method]
    square = entry.one_to_one or entry.slopes is not None or not (variant["one_to_many"] and variant["many_to_one"])
    corpus = [sequence(len(Z) if square else int(rng.integers(1, 9))) for _ in range(40)]
    corpus += corpus[:5]  # equal costs
    x, z = variant["sides"]
    per_z = np.full(len(Z), price) if np.isinf(price) else rng.uniform(0, 1, len(Z)) * price
    how = {"match": match, "method": method, "drop_x": price if x else None, "drop_z": per_z if z else None}
    check(Z, corpus, k, run, **how, **options)


def test_of_equal_costs_the_smaller_index_wins_whatever_its_bound():
    e = np.eye(3)
    swapped, spoiled = e[[1, 0]], e[[0, 2]]  # 0.6 each: one pair, two drops; the bound of the first is trivial
    found = check(e[:2], [spoiled, *[swapped] * 60], 1, drop_x=0.3, drop_z=0.3)
    assert found.indices.tolist() == [0]
    assert found.costs == pytest.approx(0.6)


@pytest.mark.parametrize("match", ["cosine", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("length", [1, 40])
def test_bounds_give_way_to_rounding(match, length):
    """An exact bound must not exceed the kernels' result for the same sum, not even by one bit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, length, 12)).astype(np.float32) * (1 if length == 1 else 9)
    index = Index(X, run=1)
    for how in ({}, {"drop_x": 0.1, "drop_z": 0.1}):
        bound = bound_for(X[0], index, resolve(match, 12), bounds.prices(Spec.of(**how)))
        costs = dropdtw.pairwise(X[:1], X, match=match, **how)[0]
        for level in (0, 1):
            found = bound(level, np.arange(300))
            assert (found <= costs).all()
            assert length > 1 or found == pytest.approx(costs, abs=1e-2)


def test_a_price_for_each_x():
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(9, 4)).cumsum(axis=0) for _ in range(80)]
    for drop_z in (None, 0.3, rng.random(7)):
        check(corpus[3][1:8], corpus, 3, run=4, drop_x=rng.random(9), drop_z=drop_z)


@pytest.mark.parametrize("match", ["cosine", "euclidean", "sqeuclidean"])
def test_most_of_a_corpus_is_not_aligned(match):
    """Bounds from centers prune what differs as a whole; bounds from frames prune what differs in parts."""
    rng = np.random.default_rng(0)
    corpus = [X + 6 * rng.normal(size=12) for X in rng.normal(size=(400, 24, 12)).cumsum(axis=1) * 0.05]
    found = check(corpus[7] + 0.01, corpus, 1, drop_x=0.3, drop_z=0.3, match=match)
    assert found.indices.tolist() == [7]
    assert found.pruned > 0.9
    assert found.by_centers > 300
    frames = [rng.normal(size=(24, 12)) for _ in range(400)]  # a run of these has no center
    found = check(frames[7] + 0.01, frames, 1, drop_x=0.3, drop_z=0.3, match=match)
    assert found.pruned > 0.9
    assert found.by_frames > 200


def test_where_no_bound_is_known_everything_is_aligned():
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(5, 3)) for _ in range(40)]
    own = dropdtw.Recurrence(
        states=("m",), start="m", final=("m",), edges=dropdtw.edges("m", to="m", moves="diag left top", cost="match")
    )
    for how in (
        {"match": "softmax", "drop_x": 0.3},
        {"match": lambda Z, X: Z @ X.T, "drop_x": 0.3},
        {"method": own, "match": "cosine"},
    ):
        found = check(corpus[0], corpus, 4, **how)
        assert found.pruned == 0
    huge = [X * 1e200 for X in corpus]
    large = [(X * 1e30).astype(np.float32) for X in corpus]  # their squares overflow in single precision
    assert check(large[0].astype(float), large, 4, match="euclidean").pruned == 0
    assert check(huge[0], huge, 4, match="euclidean").pruned == 0


def test_more_than_there_are_and_threads_and_lists(monkeypatch):
    monkeypatch.setattr("dropdtw.search.pairwise.ENOUGH", 0)  # use threads for small sequences too
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(n, 3)) for n in (3, 9, 1, 20, 4)] * 20
    all_of_them = nearest(corpus[1], corpus, 1000, 0.3, 0.3, n_jobs=2, progress=False)
    assert sorted(all_of_them.indices.tolist()) == list(range(100))
    seen = []
    two = nearest(corpus[1], corpus, 25, 0.3, 0.3, n_jobs=2, progress=lambda done, total: seen.append((done, total)))
    indices, values = brute(corpus[1], corpus, 25, drop_x=0.3, drop_z=0.3)
    assert two.indices.tolist() == indices.tolist()
    assert two.costs.tolist() == values.tolist()
    assert seen[-1] == (100, 100)
    assert len(Index(corpus)) == 100


def test_forbidden_sequences_come_last():
    """A window of 0 allows no DTW path for some shapes; these cost +∞ and keep the order of the corpus."""
    corpus = [np.eye(2)[[0, 0, 0, 1]], np.eye(2)[[0, 0, 1, 1]], np.eye(2), np.eye(2)[[1, 0]]]
    found = check(np.eye(2), corpus, 4, match="cosine", window=0)
    assert found.costs.tolist() == [0, 2, np.inf, np.inf]
    assert found.indices.tolist() == [2, 3, 0, 1]


NO = {
    "a percentile": ({"drop_x": "percentile:30"}, "drop_x is 'percentile:30', .* gives no bound before"),
    "a function": ({"drop_z": lambda C: 1.0}, "drop_z is <function .* which is computed from"),
    "a suggestion": ({"drop_x": "suggest"}, "drop_x is 'suggest', which is computed from"),
    "a threshold": ({"method": "lcss", "threshold": "percentile:30"}, "threshold is 'percentile:30', .* a number$"),
    "drops": ({"method": "dtw", "drop_x": 0.1}, "takes no drop costs"),
    "vector": ({"drop_x": [0.1, 0.2]}, r"drop_x has shape \(2,\), but there are 3 elements x_j"),
    "NaN": ({"drop_z": np.nan}, "drop_z has NaN"),
    "a match": ({"match": "cosinus"}, "match is 'cosinus'"),
    "a shape": ({"many_to_one": False}, "Z has 4 elements and X has 3, so the z cannot each have an x of their own"),
    "k": ({"k": 0}, "k is 0; give the number"),
    "jobs": ({"n_jobs": 0}, "n_jobs is 0"),
}


@pytest.mark.parametrize(("given", "words"), NO.values(), ids=NO)
def test_refused(given, words):
    with pytest.raises(ValueError, match=words):
        nearest(np.eye(4)[:, :3], [np.eye(3), np.eye(3) + 1], **given)


def test_refused_corpora():
    with pytest.raises(ValueError, match=r"corpus\[0\] has 3 features and corpus\[1\] has 2"):
        Index([np.eye(3), np.eye(2)])
    with pytest.raises(ValueError, match="corpus is empty"):
        Index([])
    with pytest.raises(ValueError, match=r"corpus\[1\] has NaN"):
        Index([[1.0], [np.nan]])
    with pytest.raises(ValueError, match="run is 0"):
        Index([[1.0]], run=0)
    with pytest.raises(ValueError, match="the query has 2 features and the corpus 3"):
        nearest(np.eye(2), [np.eye(3)])


def test_blocks_cover_everything_once():
    for sizes in ([5], [1, 1, 1], [9, 1, 9], [100, 1, 1]):
        covered = [k for part in runs_of_size(np.array(sizes), 4) for k in range(len(sizes))[part]]
        assert covered == list(range(len(sizes)))
    assert list(runs_of_size(np.empty(0, int), 4)) == []


@pytest.mark.parametrize("d", [1, 3, 12])
def test_an_index_answers_as_on_the_day_it_was_made(d):
    draw = np.random.default_rng(d)
    corpus = [draw.normal(size=(9, d)) for _ in range(30)]
    query = draw.normal(size=(7, d))
    before = dropdtw.nearest(query, [X.copy() for X in corpus], 5, 0.5, 0.5)
    index = dropdtw.Index(corpus)
    for X in corpus:
        X[...] = draw.normal(size=X.shape)
    found = dropdtw.nearest(query, index, 5, 0.5, 0.5)
    assert found.indices.tolist() == before.indices.tolist()
    assert found.costs.tolist() == before.costs.tolist()


def test_one_search_copies_no_corpus_and_an_index_only_what_can_change(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(6.0)[:, None])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    theirs = np.arange(4.0)[:, None]
    index = dropdtw.Index([mapped, theirs])
    assert [np.shares_memory(a, b) for a, b in zip(index.sequences, (mapped, theirs), strict=True)] == [True, False]
    made = []
    with mock.patch("dropdtw.search.nearest.search", lambda spec, query, index, *rest: made.append(index)):
        dropdtw.nearest(theirs, [theirs], 1)
    assert np.shares_memory(made[0].sequences[0], theirs)


@pytest.mark.parametrize("normalize", ["x", "z", "both", "path"])
def test_normalized_costs_rank_as_pairwise_does(normalize):
    rng = np.random.default_rng(6)
    corpus, query = [rng.normal(size=(n, 3)) for n in rng.integers(3, 30, 40)], rng.normal(size=(8, 3))
    how = {"drop_x": 0.7, "drop_z": 0.9, "normalize": normalize}
    expected = dropdtw.pairwise([query], corpus, **how)[0]
    for known in (corpus, dropdtw.Index(corpus)):
        found = dropdtw.nearest(query, known, 5, **how)
        assert found.indices.tolist() == np.argsort(expected, kind="stable")[:5].tolist()
        assert np.array_equal(found.costs, np.sort(expected)[:5])
        assert (found.aligned, found.pruned) == (40, 0)
    assert dropdtw.Aligner(**how).nearest(query, corpus, 5).indices.tolist() == found.indices.tolist()
    if normalize in ("x", "both"):
        plain = dropdtw.nearest(query, corpus, 5, drop_x=0.7, drop_z=0.9)
        assert plain.indices.tolist() != found.indices.tolist()
