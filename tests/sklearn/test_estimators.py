"""Estimators: scikit-learn's own checks, and the same answers as all pairs one by one."""

import dataclasses
import inspect
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dropdtw
from dropdtw import Aligner
from dropdtw.problem.options import OPTIONS
from dropdtw.sklearn import (
    AlignmentKMeans,
    AlignmentKNeighborsClassifier,
    AlignmentKNeighborsRegressor,
    AlignmentTransformer,
)
from sklearn_cases import LABELS, SHAPES, SPOILED, TEST, TRAIN, TRUTH, answer, both

# --- scikit-learn's own checks ----------------------------------------------------------------------------------

SERIES_DIFFER_IN_LENGTH = (
    "the columns of a table are time, and alignment compares series of any length: a wider table than that of fit "
    "is no mistake, which this check takes it for"
)
EXPECTED = {
    AlignmentKNeighborsClassifier: ("check_n_features_in_after_fitting", "check_classifiers_train"),
    AlignmentKNeighborsRegressor: ("check_n_features_in_after_fitting",),
    AlignmentTransformer: ("check_n_features_in_after_fitting", "check_transformer_general"),
}


def failed(estimator, **options):
    """The checks that fail, with what they say; each must run."""
    found = check_estimator(estimator, on_fail=None, on_skip=None, **options)
    assert len(found) > 40
    return {each["check_name"]: each for each in found if each["status"] in ("failed", "xfail")}


@pytest.mark.filterwarnings("ignore")  # checks try inputs that scikit-learn itself warns of
@pytest.mark.parametrize("estimator", EXPECTED)
def test_checks_of_scikit_learn_fail_only_over_lengths(estimator):
    found = failed(estimator(), expected_failed_checks=dict.fromkeys(EXPECTED[estimator], SERIES_DIFFER_IN_LENGTH))
    assert {name for name, each in found.items() if each["status"] == "failed"} == set()
    for each in found.values():  # for the reason given, and no other
        said = str(each["exception"])
        assert "number of features" in said or "n_features_in_" in said


class EqualLengths:
    """Makes an estimator refuse tables of another width: what scikit-learn's checks expect."""

    def _new_series(self, X):
        series = super()._new_series(X)
        length, expected = len(series[0]), getattr(self, "n_features_in_", len(series[0]))
        if length != expected:
            name = type(self).__name__
            raise ValueError(f"X has {length} features, but {name} is expecting {expected} features as input")
        return series


class EqualLengthsClassifier(EqualLengths, AlignmentKNeighborsClassifier):
    pass


class EqualLengthsTransformer(EqualLengths, AlignmentTransformer):
    pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("missing", [None, "drop"])
@pytest.mark.parametrize("estimator", [EqualLengthsClassifier, EqualLengthsTransformer])
def test_all_checks_of_scikit_learn_pass_with_equal_lengths(estimator, missing):
    assert failed(estimator(missing=missing)) == {}


# --- The classifier ---------------------------------------------------------------------------------------------

WAYS = {
    "dtw": {},
    "one drop": {"drop_x": 0.3},
    "two drops": {"drop_x": 0.3, "drop_z": 0.4},
    "percentile": {"drop_x": "percentile:30"},
    "cosine": {"match": "cosine", "drop_x": 0.2},
    "window": {"window": 0.4},
    "subsequence": {"method": "subsequence"},
    "exclusive": {"drop_x": 0.3, "drop_z": 0.3, "many_to_one": False, "contiguous": True},
    "lcss": {"method": "lcss", "threshold": 0.2},
    "charged": {"drop_x": 0.3, "drop_z": 0.4, "open_x": 0.5, "open_z": 0.2, "warp": 0.1},
    "suggested opening": {"drop_x": 0.3, "open_x": "suggest"},
}
every_way = pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)


@every_way
def test_distances_are_those_of_training_series_as_z(options):
    knn = AlignmentKNeighborsClassifier(**options).fit(TRAIN, LABELS)
    expected = [[dropdtw.distance(Z, X, **({"match": "euclidean"} | options)) for Z in TRAIN] for X in TEST]
    np.testing.assert_allclose(knn.distances(TEST), expected, rtol=1e-12)


@every_way
@pytest.mark.parametrize("k", [1, 3])
def test_votes_are_those_of_scikit_learn_with_these_distances(options, k):
    knn = AlignmentKNeighborsClassifier(k, **options).fit(TRAIN, LABELS)
    D = knn.distances(TEST)
    peer = KNeighborsClassifier(k, metric="precomputed").fit(np.zeros((len(TRAIN),) * 2), LABELS)
    if options.get("method") != "lcss":  # counts, whose many ties scikit-learn breaks otherwise, and refuses below 0
        np.testing.assert_allclose(knn.predict_proba(TEST), peer.predict_proba(D))
        np.testing.assert_array_equal(knn.predict(TEST), peer.predict(D))
    costs, nearest = knn.kneighbors(TEST)
    np.testing.assert_array_equal(costs, np.sort(D, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(D, nearest, 1), costs)


@every_way
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_predicted_numbers_are_those_of_scikit_learn_with_these_distances(options, weights):
    values = np.random.default_rng(1).normal(size=len(TRAIN))
    knn = AlignmentKNeighborsRegressor(3, weights=weights, **options).fit(TRAIN, values)
    D = AlignmentKNeighborsClassifier(**options).fit(TRAIN, LABELS).distances(TEST)
    if options.get("method") == "lcss":
        return  # counts, whose many ties scikit-learn breaks otherwise, and refuses below 0
    peer = KNeighborsRegressor(3, weights=weights, metric="precomputed").fit(np.zeros((len(TRAIN),) * 2), values)
    np.testing.assert_allclose(knn.predict(TEST), peer.predict(D))


def test_a_regressor_refuses_what_is_no_number():
    knn = AlignmentKNeighborsRegressor()
    with pytest.raises(ValueError, match="y is an array of dtype <U1; give one number per series"):
        knn.fit(TRAIN, ["a"] * len(TRAIN))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        knn.fit(TRAIN, [np.nan] * len(TRAIN))
    with pytest.raises(ValueError, match="weights is 'x'"):
        AlignmentKNeighborsRegressor(weights="x").fit(TRAIN, np.arange(len(TRAIN)))


def test_weights_by_distance():
    knn = AlignmentKNeighborsClassifier(3, weights="distance").fit([[0.0], [1.0], [5.0]], ["a", "b", "b"])
    np.testing.assert_allclose(knn.predict_proba([[0.5], [0.75]]), [
        np.array([2, 2 + 1 / 4.5]) / (4 + 1 / 4.5),
        np.array([1 / 0.75, 4 + 1 / 4.25]) / (1 / 0.75 + 4 + 1 / 4.25),
    ])  # fmt: skip
    np.testing.assert_array_equal(knn.predict_proba([[0.0]]), [[1, 0]])  # the very same outvotes all


def test_drops_keep_junk_from_deciding():
    dtw, drop = (AlignmentKNeighborsClassifier(drop_x=d).fit(TRAIN, LABELS) for d in (None, 0.3))
    assert dtw.score(TEST, TRUTH) == drop.score(TEST, TRUTH) == 1
    assert drop.score(SPOILED, TRUTH) == 1
    assert dtw.score(SPOILED, TRUTH) < 0.7  # to DTW, all that has a high before a low goes down


def test_an_opening_cost_is_paid_for_each_run_of_drops():
    plain, charged = (AlignmentKNeighborsClassifier(drop_x=0.25, open_x=o).fit([[0.0, 1.0]], ["a"]) for o in (0, 1))
    one, two = [0.0, 9.0, 9.0, 1.0], [0.0, 9.0, 1.0, 9.0]
    assert plain.distances([one, two]).tolist() == [[0.5], [0.5]]
    assert charged.distances([one, two]).tolist() == [[1.5], [2.5]]


def test_neighbors_of_training_series_are_others():
    knn = AlignmentKNeighborsClassifier(drop_x=0.3).fit(TRAIN, LABELS)
    costs, nearest = knn.kneighbors(n_neighbors=len(TRAIN) - 1)
    for k, row in enumerate(nearest):
        assert sorted([*row, k]) == list(range(len(TRAIN)))
    expected = [dropdtw.distance(TRAIN[k], TRAIN[0], 0.3, match="euclidean") for k in nearest[0]]
    np.testing.assert_allclose(costs[0], expected, rtol=1e-12)  # the one that is asked about is x
    with pytest.raises(ValueError, match=f"n_neighbors is {len(TRAIN)}, but there are {len(TRAIN) - 1} series"):
        knn.kneighbors(n_neighbors=len(TRAIN))


def test_what_cannot_be_aligned_has_no_vote():
    knn = AlignmentKNeighborsClassifier(2, match=lambda Z, X: np.where(Z == X.T, 0.0, np.inf)).fit(
        [[1.0, 2.0], [3.0, 4.0]], ["a", "b"]
    )
    np.testing.assert_array_equal(knn.predict_proba([[1.0, 1.0, 2.0]]), [[1, 0]])
    np.testing.assert_array_equal(knn.set_params(weights="distance").predict_proba([[1.0, 1.0, 2.0]]), [[1, 0]])
    with pytest.raises(ValueError, match="series 1 cannot be aligned with any training series"):
        knn.predict([[1.0, 2.0], [8.0, 9.0]])


@pytest.mark.parametrize(("options", "says"), [
    ({"n_neighbors": 0}, "n_neighbors is 0, but there are 15"),
    ({"n_neighbors": 16}, "n_neighbors is 16, but there are 15"),
    ({"n_neighbors": 1.5}, "n_neighbors is 1.5"),
    ({"weights": "cost"}, "weights is 'cost'; give 'uniform' or 'distance'"),
    ({"method": "dwt"}, "method is 'dwt'; did you mean 'dtw'"),
    ({"drop_x": "30"}, "drop_x is '30'"),
])  # fmt: skip
def test_wrong_parameters_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        AlignmentKNeighborsClassifier(**options).fit(TRAIN, LABELS).predict(TEST)


def test_an_aligner_stands_for_its_options():
    aligner = Aligner(0.5, 0.4, match="euclidean", window=0.5)
    given, said = (
        AlignmentKNeighborsClassifier(3, **how)
        for how in ({"aligner": aligner}, {"drop_x": 0.5, "drop_z": 0.4, "match": "euclidean", "window": 0.5})
    )
    np.testing.assert_array_equal(*(each.fit(TRAIN, LABELS).distances(TEST) for each in (given, said)))
    assert clone(given).aligner == aligner
    with pytest.raises(ValueError, match=r"drop_z is 0\.3, and aligner is given; put it into the aligner"):
        AlignmentKNeighborsClassifier(aligner=aligner, drop_z=0.3).fit(TRAIN, LABELS)
    with pytest.raises(ValueError, match=r"aligner is 3; give a dropdtw\.Aligner"):
        AlignmentKNeighborsClassifier(aligner=3).fit(TRAIN, LABELS)
    with pytest.raises(ValueError, match=r"drop_z is 0\.4, but no element of a center is dropped"):
        AlignmentKMeans(2, aligner=aligner.replace(match="auto", window=None)).fit(TRAIN)


@pytest.mark.parametrize("kind", [AlignmentKNeighborsClassifier, AlignmentTransformer, AlignmentKMeans])
def test_estimators_declare_options_as_the_aligner_does(kind):
    declared = {each.name: each for each in dataclasses.fields(kind) if each.name in OPTIONS}
    assert len(declared) > 8
    for name, each in declared.items():
        assert (each.default, each.type) == (OPTIONS[name].default, OPTIONS[name].type)


def test_aligners_are_searched_over():
    aligners = [Aligner(0.5), Aligner(0.5, window=0.3)]
    search = GridSearchCV(AlignmentKNeighborsClassifier(), {"aligner": aligners}, cv=2).fit(TRAIN, LABELS)
    assert search.best_estimator_.aligner in aligners


def test_lists_go_through_cross_validation_and_search():
    assert cross_val_score(AlignmentKNeighborsClassifier(), TRAIN, LABELS, cv=3).min() == 1
    search = GridSearchCV(AlignmentKNeighborsClassifier(n_jobs=1), {"drop_x": [0.3, 100.0]}, cv=3)
    search.fit([*TRAIN, *SPOILED], [*LABELS, *TRUTH])
    assert search.best_params_ == {"drop_x": 0.3}


@both
def test_clones_and_pickles_answer_alike(estimator):
    given = estimator(drop_x=0.3, drop_z=0.2, open_x=0.4, open_z="suggest", warp=0.1, window=5)
    fitted = given.fit(TRAIN, LABELS)
    assert clone(fitted).get_params() == given.get_params()
    np.testing.assert_array_equal(answer(pickle.loads(pickle.dumps(fitted)), TEST), answer(fitted, TEST))


# --- The transformer --------------------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("choose", ["spread", "random"])
def test_features_are_costs_of_prototypes(options, choose):
    transformer = AlignmentTransformer(4, choose=choose, random_state=0, **options).fit(TRAIN)
    chosen = transformer.prototype_indices_
    assert len(set(chosen.tolist())) == 4
    for k, prototype in zip(chosen, transformer.prototypes_, strict=True):
        np.testing.assert_array_equal(prototype, TRAIN[k])
    knn = AlignmentKNeighborsClassifier(**options).fit(TRAIN, LABELS)
    np.testing.assert_allclose(transformer.transform(TEST), knn.distances(TEST)[:, chosen], rtol=1e-12)
    again = AlignmentTransformer(4, choose=choose, random_state=0, **options).fit(TRAIN)
    np.testing.assert_array_equal(again.prototype_indices_, chosen)


@pytest.mark.parametrize("seed", range(5))
def test_spread_prototypes_are_of_every_kind(seed):
    transformer = AlignmentTransformer(3, random_state=seed).fit(TRAIN)
    assert {LABELS[k] for k in transformer.prototype_indices_} == set(SHAPES)


def test_each_spread_prototype_is_the_farthest_from_those_before():
    D = dropdtw.pairwise(TRAIN, match="euclidean")
    chosen = AlignmentTransformer(6, random_state=2).fit(TRAIN).prototype_indices_
    for k in range(1, 6):
        nearest = D[chosen[:k]].min(axis=0)
        assert nearest[chosen[k]] == pytest.approx(nearest.max())


def test_equal_series_are_still_as_many_prototypes():
    chosen = AlignmentTransformer(3, random_state=0).fit(np.zeros((5, 4))).prototype_indices_
    assert len(set(chosen.tolist())) == 3


@pytest.mark.parametrize("n", [None, 15, 100])
def test_all_series_may_be_prototypes(n):
    np.testing.assert_array_equal(AlignmentTransformer(n).fit(TRAIN).prototype_indices_, np.arange(15))


def test_prototypes_of_the_caller_are_used():
    own = [np.zeros((3, 2)), np.ones((5, 2))]
    transformer = AlignmentTransformer(prototypes=own).fit(TRAIN)
    assert transformer.prototype_indices_ is None
    expected = dropdtw.pairwise(own, TEST, match="euclidean").T
    np.testing.assert_array_equal(transformer.transform(TEST), expected)
    with pytest.raises(ValueError, match="prototypes have 1 features, but the series of fit have 2"):
        AlignmentTransformer(prototypes=[[1, 2, 3]]).fit(TRAIN)


@pytest.mark.parametrize(("options", "says"), [
    ({"n_prototypes": 0}, "n_prototypes is 0; give a whole number"),
    ({"n_prototypes": 2.5}, "n_prototypes is 2.5"),
    ({"choose": "best"}, "choose is 'best'; give 'spread' or 'random'"),
])  # fmt: skip
def test_wrong_choices_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        AlignmentTransformer(**options).fit(TRAIN)


def test_features_feed_other_estimators_and_data_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pipeline = make_pipeline(AlignmentTransformer(3, drop_x=0.3, random_state=0), KNeighborsClassifier(1))
    assert pipeline.fit(TRAIN, LABELS).score(TEST, TRUTH) == 1
    frame = AlignmentTransformer(3, random_state=0).set_output(transform="pandas").fit(TRAIN).transform(TEST)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == [f"alignmenttransformer{k}" for k in range(3)]


@pytest.mark.parametrize("as_list", [False, True])
def test_what_was_fitted_stays_when_the_callers_arrays_change(as_list):
    X = np.random.default_rng(0).normal(size=(6, 8))
    given, y = (list(X.copy()) if as_list else X.copy()), [0, 1] * 3
    knn = AlignmentKNeighborsClassifier().fit(given, y)
    maps = AlignmentTransformer(prototypes=given).fit(given)
    before = knn.distances(X), maps.transform(X)
    for row in given:
        row[...] = 0
    np.testing.assert_array_equal(knn.distances(X), before[0])
    np.testing.assert_array_equal(maps.transform(X), before[1])


@both
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"method": "zzz"}, "method is 'zzz'; choose one of"),
        ({"match": "manhattan"}, "match is 'manhattan'; choose one of"),
        ({"drop_x": "quantile:3"}, "drop_x is 'quantile:3'; give None"),
        ({"drop_z": 1.0, "method": "dtw"}, "method 'dtw' takes no drop costs"),
        ({"window": -1}, "window is -1; give an int"),
        ({"threshold": 0.5}, "method 'drop_dtw' takes no threshold"),
        ({"method": "lcss"}, "method 'lcss' needs threshold="),
        ({"n_jobs": 0}, "n_jobs is 0; give a number of threads"),
        ({"drop_x": 0.3, "open_x": -1}, "open_x is -1; give a finite number ≥ 0, or 'suggest'"),
        ({"drop_x": 0.3, "open_z": 1.0}, "open_z is 1.0, but no z may be dropped; give drop_z as well"),
        ({"method": "dtw", "open_x": 1.0}, "method 'dtw' takes no opening costs"),
        ({"warp": "suggest"}, "warp is 'suggest'; give a finite number ≥ 0"),
        ({"method": "symmetric2", "warp": 1.0}, "method 'symmetric2' takes no warp penalty"),
    ],
    ids=str,
)
def test_fit_refuses_what_no_prediction_could_use(estimator, wrong, says):
    with pytest.raises(ValueError, match=says):
        estimator(**wrong).fit(TRAIN, LABELS)


def test_a_misspelled_parameter_gets_the_closest_name():
    with pytest.raises(TypeError, match="AlignmentKMeans has no option n_cluster; did you mean n_clusters"):
        AlignmentKMeans(n_cluster=2)
    assert "n_clusters" in inspect.signature(AlignmentKMeans).parameters
