"""Clusters: scikit-learn's own checks, inertia that never rises, an oracle over all subsets, junk that is ignored."""

import pickle
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

import dropdtw
from dropdtw.sklearn import AlignmentKMeans, AlignmentKMedoids
from dropdtw.sklearn.clusters import spread_out
from dropdtw.sklearn.kmedoids import exchanged
from sklearn_cases import LABELS, TEST, TRAIN

both = pytest.mark.parametrize("estimator", [AlignmentKMeans, AlignmentKMedoids])


def spoiled(seed):
    """The training series with a passage of junk in each, at any place and any level but theirs."""
    rng = np.random.default_rng(seed)
    levels = rng.choice([-3.0, -2.0, 3.0, 4.0], len(TRAIN))
    junk = [level + rng.normal(0, 0.3, (8, 2)) for level in levels]
    return [np.insert(s, [int(rng.integers(1, len(s)))] * 8, j, axis=0) for s, j in zip(TRAIN, junk, strict=True)]


# --- scikit-learn's own checks ------------------------------------------------------------------------------------


class EqualLengths:
    """Makes an estimator refuse tables of another width: what scikit-learn's checks expect."""

    def _new_series(self, X):
        series = super()._new_series(X)
        length, expected = len(series[0]), getattr(self, "n_features_in_", len(series[0]))
        if length != expected:
            name = type(self).__name__
            raise ValueError(f"X has {length} features, but {name} is expecting {expected} features as input")
        return series


class EqualLengthsKMeans(EqualLengths, AlignmentKMeans):
    pass


class EqualLengthsKMedoids(EqualLengths, AlignmentKMedoids):
    pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [EqualLengthsKMeans, EqualLengthsKMedoids])
def test_all_checks_of_scikit_learn_pass_with_equal_lengths(estimator):
    found = check_estimator(estimator(n_clusters=2, n_init=1, max_iter=3), on_fail=None, on_skip=None)
    assert len(found) > 40
    assert {each["check_name"]: each["exception"] for each in found if each["status"] in ("failed", "xfail")} == {}


# --- What both do -------------------------------------------------------------------------------------------------

WAYS = {
    "dtw": {},
    "drops": {"drop_x": 0.1},
    "runs": {"drop_x": 0.05, "open_x": 0.1},
    "window": {"drop_x": 0.2, "window": 0.5},
    "exclusive": {"drop_x": 0.1, "many_to_one": False},
    "warp": {"warp": 0.05},
    "cosine": {"match": "cosine", "drop_x": 0.1},
    "subsequence": {"method": "subsequence"},
}
every_way = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)


def centers_first(estimator, options):
    """What `pairwise` is told to say what the estimator says."""
    default = "sqeuclidean" if estimator is AlignmentKMeans else "euclidean"
    return {"match": default} | options


@both
@every_way
@pytest.mark.parametrize("k", [1, 3, 15])
def test_inertia_never_rises_and_is_the_sum_of_costs(estimator, options, k):
    if options.get("many_to_one") is False and estimator is AlignmentKMedoids:
        options = options | {"drop_z": 0.1}  # a longer series has to fit a shorter one
    found = estimator(k, n_init=1, random_state=0, **options).fit(TRAIN)
    assert (np.diff(found.history_) <= 0).all()
    D = dropdtw.pairwise(found.cluster_centers_, TRAIN, **centers_first(estimator, options))
    np.testing.assert_allclose(found.transform(TRAIN), D.T)
    np.testing.assert_array_equal(found.labels_, D.argmin(axis=0))
    assert found.inertia_ == pytest.approx(D.min(axis=0).sum(), abs=1e-9)
    assert found.inertia_ == pytest.approx(found.history_[-1], abs=1e-9)
    assert found.score(TRAIN) == pytest.approx(-found.inertia_, abs=1e-9)
    assert found.n_iter_ == len(found.history_) - 1
    np.testing.assert_array_equal(found.predict(TRAIN), found.labels_)
    np.testing.assert_array_equal(found.predict(TEST), found.transform(TEST).argmin(axis=1))
    assert len(found.cluster_centers_) == k


def test_no_series_is_a_seed_twice():
    """Costs of a series with itself above 0, as rounding gives."""
    for seed in range(20):
        random = np.random.RandomState(seed)
        D = random.random_sample((6, 6)) + np.eye(6)
        assert len(set(spread_out(D, 6, 5, random))) == 5


@both
def test_more_starts_are_never_worse_and_all_are_repeatable(estimator):
    few, many = (estimator(3, n_init=n, drop_x=0.1, random_state=5).fit(TRAIN) for n in (1, 4))
    assert many.inertia_ <= few.inertia_  # the first start is the same
    again = estimator(3, n_init=4, drop_x=0.1, random_state=5).fit(TRAIN)
    np.testing.assert_array_equal(again.labels_, many.labels_)
    np.testing.assert_array_equal(again.history_, many.history_)
    for a, b in zip(again.cluster_centers_, many.cluster_centers_, strict=True):
        np.testing.assert_array_equal(a, b)
    threads = clone(again).set_params(n_jobs=-1).fit(TRAIN)
    np.testing.assert_array_equal(threads.labels_, many.labels_)


@both
@pytest.mark.parametrize("seed", range(3))
def test_junk_does_not_decide(estimator, seed):
    d = {"drop_x": 0.05} if estimator is AlignmentKMeans else {"drop_x": 0.2, "drop_z": 0.2}
    plain, dropping = (estimator(3, random_state=seed, **how).fit(spoiled(seed)) for how in ({}, d))
    assert adjusted_rand_score(LABELS, dropping.labels_) == 1
    assert adjusted_rand_score(LABELS, plain.labels_) < 0.7
    assert adjusted_rand_score(LABELS, dropping.predict(TRAIN)) == 1


def test_centers_hold_no_junk():
    found = AlignmentKMeans(3, drop_x=0.05, random_state=0).fit(spoiled(0))  # all else lies in [0, 1]
    for center in found.cluster_centers_:
        assert -0.3 < center.min() < center.max() < 1.3
        assert len(center) <= max(map(len, TRAIN))  # junk in the seed took no place


@both
def test_missing_steps_might_as_well_be_deleted(estimator):
    rng = np.random.default_rng(0)
    there = [rng.random(len(s)) > 0.25 for s in TRAIN]
    holed = [np.where(t[:, None], s, np.nan) for s, t in zip(TRAIN, there, strict=True)]
    left = [s[t] for s, t in zip(TRAIN, there, strict=True)]
    ours = estimator(3, drop_x=0.1, missing="drop", random_state=0).fit(holed)
    theirs = estimator(3, drop_x=0.1, random_state=0).fit(left)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_array_equal(ours.transform(holed), theirs.transform(left))
    np.testing.assert_array_equal(ours.predict(holed), ours.labels_)
    with pytest.raises(ValueError, match=r"X\[\d+\] has NaN .* missing='drop'"):
        theirs.predict(holed)


@both
def test_equal_series_still_make_clusters(estimator):
    found = estimator(2, random_state=0)
    if estimator is AlignmentKMeans:
        with pytest.warns(UserWarning, match="only 1 of 2 clusters have series"):
            found.fit(np.zeros((5, 4)))
    else:
        found.fit(np.zeros((5, 4)))
    assert found.inertia_ == 0


@both
def test_clones_and_pickles_answer_alike_and_arrays_stay(estimator):
    given = [s.copy() for s in TRAIN]
    fitted = estimator(3, drop_x=0.1, random_state=0).fit(given)
    assert clone(fitted).get_params() == fitted.get_params()
    before = fitted.transform(TEST)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(TEST), before)
    for s, original in zip(given, TRAIN, strict=True):
        np.testing.assert_array_equal(s, original)
        s[...] = 0
    np.testing.assert_array_equal(fitted.transform(TEST), before)


@both
def test_progress_is_told(estimator):
    seen = []
    estimator(2, n_init=2, random_state=0, progress=lambda done, total: seen.append((done, total))).fit(TRAIN)
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_transformed_series_are_named():
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = AlignmentKMeans(2, random_state=0).set_output(transform="pandas").fit(TRAIN).transform(TEST)
    assert list(frame.columns) == ["alignmentkmeans0", "alignmentkmeans1"]


@both
@pytest.mark.parametrize(("wrong", "says"), [
    ({"n_clusters": 0}, "n_clusters is 0; give the number of clusters, 1 or more"),
    ({"n_clusters": 2.5}, "n_clusters is 2.5"),
    ({"n_clusters": 16}, "n_samples=15 series cannot make n_clusters=16 clusters; give fewer"),
    ({"n_init": 0}, "n_init is 0; give the number of starts, 1 or more"),
    ({"max_iter": 0}, "max_iter is 0; give the maximum number of"),
    ({"method": "zzz"}, "method is 'zzz'; choose one of"),
    ({"missing": "fill"}, "missing is 'fill'; give 'drop'"),
    ({"n_jobs": 0}, "n_jobs is 0; give a number of threads"),
])  # fmt: skip
def test_wrong_parameters_are_named(estimator, wrong, says):
    with pytest.raises(ValueError, match=says):
        estimator(**({"n_clusters": 2} | wrong)).fit(TRAIN)


# --- k-means ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wrong", "says"), [
    ({"drop_x": "percentile:20"}, "drop_x is 'percentile:20', .* differs from center to center"),
    ({"drop_x": 0.1, "open_x": "suggest"}, "open_x is 'suggest', which is computed from the match"),
    ({"drop_x": [0.1] * 12}, "clusters need one number for all steps of all series"),
    ({"match": "euclidean"}, "averages are known for 'sqeuclidean'"),
    ({"method": "smith_waterman"}, "for which the mean of the matches is not the best average"),
    ({"tol": -1}, "tol is -1; give a finite number ≥ 0"),
    ({"init": "best"}, "init is 'best'; give 'k-means.*', 'random', or a list of 2 series"),
    ({"init": [[0.0, 1.0]] * 3}, r"3 series with 1 feature; give 2 series \(one per cluster\) with 2 features each"),
])  # fmt: skip
def test_wrong_averages_are_named(wrong, says):
    with pytest.raises(ValueError, match=says):
        AlignmentKMeans(**({"n_clusters": 2} | wrong)).fit(TRAIN)


def test_centers_are_averages_of_their_series():
    found = AlignmentKMeans(3, drop_x=0.1, tol=0, max_iter=300, random_state=0).fit(TRAIN)
    for c, center in enumerate(found.cluster_centers_):
        members = [s for s, label in zip(TRAIN, found.labels_, strict=True) if label == c]
        settled = dropdtw.barycenter(members, drop_x=0.1, init=center)
        np.testing.assert_allclose(settled.average, center, atol=1e-6)


@pytest.mark.parametrize("init", ["k-means++", "random", "given"])
def test_every_start_finds_three_shapes(init):
    start = [TRAIN[0], TRAIN[1], TRAIN[2]] if init == "given" else init
    found = AlignmentKMeans(3, init=start, n_init=10, random_state=0).fit(TRAIN)
    assert adjusted_rand_score(LABELS, found.labels_) == 1


def test_given_centers_may_miss_steps():
    start = [np.insert(TRAIN[c], 3, np.nan, axis=0) for c in range(3)]
    found = AlignmentKMeans(3, init=start, missing="drop").fit(TRAIN)
    expected = AlignmentKMeans(3, init=TRAIN[:3]).fit(TRAIN)
    np.testing.assert_array_equal(found.history_, expected.history_)


def test_one_cluster_is_the_barycenter():
    found = AlignmentKMeans(1, drop_x=0.1, init=[TRAIN[0]], tol=0, max_iter=200).fit(TRAIN)
    np.testing.assert_allclose(found.cluster_centers_[0], dropdtw.barycenter(TRAIN, None, 0.1, init=TRAIN[0], tol=0,
                                                                              max_iter=200).average)  # fmt: skip


def test_a_center_without_series_moves_to_the_one_that_costs_most():
    far = np.full((12, 2), 9.0)
    start = [TRAIN[0], np.full((12, 2), -50.0), np.full((12, 2), -60.0)]
    found = AlignmentKMeans(3, init=start, random_state=0).fit([*TRAIN, far])
    assert len(np.unique(found.labels_)) == 3
    assert (found.labels_ == found.labels_[-1]).sum() == 1
    assert (np.diff(found.history_) <= 0).all()


# --- k-medoids ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
def test_medoids_are_the_best_of_all_subsets(k):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        series = [rng.normal(size=int(n)).cumsum() for n in rng.integers(3, 7, 7)]
        how = {"drop_x": 0.4, "drop_z": float(rng.random())}
        D = np.array([[dropdtw.distance(Z, X, match="euclidean", **how) for X in series] for Z in series])
        best = min(D[list(chosen)].min(axis=0).sum() for chosen in combinations(range(7), k))
        found = AlignmentKMedoids(k, random_state=0, **how).fit(series)
        assert found.inertia_ == pytest.approx(best)
        assert D[found.medoid_indices_].min(axis=0).sum() == pytest.approx(best)
        for s, center in zip(found.medoid_indices_, found.cluster_centers_, strict=True):
            np.testing.assert_array_equal(center[:, 0], series[s])


@pytest.mark.parametrize("seed", range(20))
def test_no_exchange_of_one_medoid_helps(seed):
    rng = np.random.default_rng(seed)
    n, k = 12, int(rng.integers(1, 6))
    D = rng.random((n, n))  # no distances at all, and not symmetric
    np.fill_diagonal(D, 0)
    start = rng.choice(n, k, replace=False).tolist()
    medoids, history = exchanged(D, start, 100)
    assert len(set(medoids)) == k
    assert (np.diff(history) < 0).all()
    inertia = D[medoids].min(axis=0).sum()
    assert history[-1] == inertia
    for m in range(k):
        for s in range(n):
            other = [*medoids[:m], s, *medoids[m + 1 :]]
            assert D[other].min(axis=0).sum() >= inertia - 1e-9


def test_series_that_cannot_be_aligned_get_medoids_first():
    D = np.full((6, 6), np.inf)
    for some in ((0, 1), (2, 3), (4, 5)):  # three groups that have nothing to do with each other
        D[np.ix_(some, some)] = [[0, 3], [3, 0]]
    medoids, history = exchanged(D, [0, 1, 2], 10)
    assert sorted(m // 2 for m in medoids) == [0, 1, 2]
    assert history[-1] == 9
    assert (np.diff(history) < 0).all()


def test_medoids_take_rules_and_functions():
    for options in ({"drop_x": "percentile:30"}, {"method": "lcss", "threshold": 0.2}, {"match": "cosine"},
                    {"match": lambda Z, X: np.abs(Z[:, None] - X).sum(axis=2)}):  # fmt: skip
        found = AlignmentKMedoids(3, random_state=0, **options).fit(TRAIN)
        assert (np.diff(found.history_) <= 0).all()


def test_series_that_cannot_be_aligned_are_named():
    forbid = {"match": lambda Z, X: np.where(Z == X.T, 0.0, np.inf)}
    with pytest.raises(ValueError, match="series 2 cannot be aligned with any center"):
        AlignmentKMedoids(2, random_state=0, **forbid).fit([[0.0], [1.0]]).predict([[0.0], [1.0], [5.0]])
    with pytest.raises(ValueError, match="cannot be aligned with any center"):
        AlignmentKMedoids(1, random_state=0, **forbid).fit([[0.0], [1.0], [2.0]])
