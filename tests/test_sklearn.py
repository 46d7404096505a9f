"""Estimators: scikit-learn's own checks, every shape of input, and the same answers as all pairs one by one."""

import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dropdtw
from dropdtw.sklearn import AlignmentKNeighborsClassifier, AlignmentTransformer, as_series, columns

RNG = np.random.default_rng(0)
T = np.linspace(0, 1, 12)
SHAPES = {"up": T, "down": 1 - T, "hill": 1 - np.abs(2 * T - 1)}


def noisy(n, seed, features=2):
    """Some series (n) of each class, of different lengths, each (t, features), and their labels."""
    rng = np.random.default_rng(seed)
    series, labels = [], []
    for _ in range(n):
        for name, shape in SHAPES.items():
            stretched = np.interp(np.linspace(0, 1, rng.integers(10, 16)), T, shape)
            series.append(stretched[:, None] * np.ones(features) + 0.05 * rng.normal(size=(len(stretched), features)))
            labels.append(name)
    return series, np.array(labels)


TRAIN, LABELS = noisy(5, 0)
TEST, TRUTH = noisy(4, 1)
SPOILED = [
    np.insert(s, [3] * 8 + [8] * 8, [[3.0, 3.0]] * 8 + [[-2.0, -2.0]] * 8, axis=0) for s in TEST
]  # high, then low
both = pytest.mark.parametrize("estimator", [AlignmentKNeighborsClassifier, AlignmentTransformer])


def answer(estimator, X):
    return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.transform(X)


# --- scikit-learn's own checks ----------------------------------------------------------------------------------

SERIES_DIFFER_IN_LENGTH = (
    "the columns of a table are time, and alignment compares series of any length: a wider table than that of fit "
    "is no mistake, which this check takes it for"
)
EXPECTED = {
    AlignmentKNeighborsClassifier: ("check_n_features_in_after_fitting", "check_classifiers_train"),
    AlignmentTransformer: ("check_n_features_in_after_fitting", "check_transformer_general"),
}


def failed(estimator, **options):
    """The checks that fail, with what they say; each must run."""
    found = check_estimator(estimator, on_fail=None, on_skip=None, **options)
    assert len(found) > 40
    return {each["check_name"]: each for each in found if each["status"] in ("failed", "xfail")}


@pytest.mark.filterwarnings("ignore")  # checks try inputs that scikit-learn itself warns of
@both
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
@pytest.mark.parametrize("estimator", [EqualLengthsClassifier, EqualLengthsTransformer])
def test_all_checks_of_scikit_learn_pass_with_equal_lengths(estimator):
    assert failed(estimator()) == {}


# --- Shapes of input --------------------------------------------------------------------------------------------


def forms(stack):
    """(layout, X) for the same series (n, t, d) in every form that holds them."""
    n = len(stack)
    objects = np.empty(n, object)
    objects[:] = list(stack)
    yield None, list(stack)
    yield None, tuple(stack)
    yield None, stack.tolist()
    yield None, objects
    yield "ntd", stack
    yield "ntd", list(stack)
    yield "nct", stack.transpose(0, 2, 1)
    yield "nct", list(stack.transpose(0, 2, 1))
    if stack.shape[2] == 1:
        flat = stack[:, :, 0]
        for layout in (None, "ntd", "nct"):  # series of numbers have no second axis to ask about
            yield layout, flat
            yield layout, flat.tolist()
            yield layout, list(flat)


@pytest.mark.parametrize("features", [1, 3])
def test_every_form_of_the_same_series_is_the_same(features):
    stack = RNG.normal(size=(4, 5, features))
    for layout, X in forms(stack):
        series = as_series(X, layout)
        assert len(series) == 4
        np.testing.assert_array_equal(series, stack)


@both
def test_estimators_take_every_form(estimator):
    stack, labels = RNG.normal(size=(6, 5, 3)), np.arange(6) % 2
    expected = answer(estimator().fit(list(stack), labels), list(stack))
    for layout, X in forms(stack):
        np.testing.assert_array_equal(answer(estimator(layout=layout).fit(X, labels), X), expected)


def test_series_of_different_lengths_are_taken():
    assert [s.shape for s in as_series([[1, 2, 3], [4, 5]])] == [(3, 1), (2, 1)]
    ragged = [np.zeros((2, 7)), np.zeros((2, 9))]
    assert [s.shape for s in as_series(ragged, "nct")] == [(7, 2), (9, 2)]


def test_padding_of_tslearn_is_cut_off():
    padded = np.full((2, 5, 2), np.nan)
    padded[0, :5], padded[1, :3] = 1, 2
    assert [len(s) for s in as_series(padded, "ntd")] == [5, 3]
    padded[0, 1, 0] = np.nan  # a hole is not padding
    with pytest.raises(ValueError, match=r"X\[0\] has NaN or infinity in element 1"):
        as_series(padded, "ntd")


def test_precision_is_kept():
    assert as_series(np.zeros((2, 3), np.float32))[0].dtype == np.float32
    assert as_series(np.zeros((2, 3), int))[0].dtype == np.float64


@pytest.mark.parametrize(("X", "layout", "says"), [
    (np.zeros((5, 3, 50)), None, r"shape \(5, 3, 50\).*two ways.*'ntd' for 5 series of 3 steps with 50 features"
     r".*'nct' for 5 series of 3 channels with 50 steps"),
    (np.zeros((5, 3, 50)), "tdn", "layout is 'tdn'; give 'ntd'"),
    (np.zeros((1, 2, 3, 4)), "ntd", r"shape \(1, 2, 3, 4\); give \(n, t\)"),
    ([np.zeros((2, 7)), np.zeros((2, 9))], None, r"X\[0\] has 7 features and X\[1\] has 9.*give layout='nct'"),
    ([np.zeros((7, 2)), np.zeros((9, 2))], "nct", r"X\[0\] has 7 features and X\[1\] has 9.*give layout='ntd'"),
    ([np.zeros((7, 2)), np.array([[1, np.nan]])], None, r"X\[1\] has NaN"),
    ([np.zeros((7, 2)), np.zeros((0, 2))], None, r"X\[1\] has shape \(0, 2\)"),
    ([], None, "at least one array|0 sample|1D array"),
    (np.zeros((0, 3, 2)), "ntd", "X is empty"),
    ([1.0, 2.0], None, "Reshape your data"),
])  # fmt: skip
def test_wrong_input_says_what_fits(X, layout, says):
    with pytest.raises(ValueError, match=says):
        as_series(X, layout)


@both
def test_other_features_than_those_of_fit_are_refused(estimator):
    fitted = estimator(layout="ntd").fit(np.zeros((4, 6, 3)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"series of fit have 3 features and X\[0\] has 6.*layout='nct'"):
        answer(fitted, np.zeros((4, 3, 6)))


@both
def test_a_second_fit_forgets_the_first(estimator):
    fitted = estimator().fit(np.zeros((4, 6)), [0, 1, 0, 1])
    assert fitted.n_features_in_ == 6
    fitted.fit(TRAIN, LABELS)
    assert not hasattr(fitted, "n_features_in_")
    assert fitted.n_channels_ == 2


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


def test_neighbours_of_training_series_are_others():
    knn = AlignmentKNeighborsClassifier(drop_x=0.3).fit(TRAIN, LABELS)
    costs, nearest = knn.kneighbors(n_neighbors=len(TRAIN) - 1)
    for k, row in enumerate(nearest):
        assert sorted([*row, k]) == list(range(len(TRAIN)))
    expected = [dropdtw.distance(TRAIN[k], TRAIN[0], 0.3, match="euclidean") for k in nearest[0]]
    np.testing.assert_allclose(costs[0], expected, rtol=1e-12)  # the one that is asked about is x
    with pytest.raises(ValueError, match=f"n_neighbors is {len(TRAIN)}; there are {len(TRAIN) - 1} training"):
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
    ({"n_neighbors": 0}, "n_neighbors is 0; there are 15"),
    ({"n_neighbors": 16}, "n_neighbors is 16; there are 15"),
    ({"n_neighbors": 1.5}, "n_neighbors is 1.5"),
    ({"weights": "cost"}, "weights is 'cost'; give 'uniform' or 'distance'"),
    ({"method": "dwt"}, "method is 'dwt'; choose one of"),
    ({"drop_x": "30"}, "drop_x is '30'"),
])  # fmt: skip
def test_wrong_parameters_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        AlignmentKNeighborsClassifier(**options).fit(TRAIN, LABELS).predict(TEST)


def test_lists_go_through_cross_validation_and_search():
    assert cross_val_score(AlignmentKNeighborsClassifier(), TRAIN, LABELS, cv=3).min() == 1
    search = GridSearchCV(AlignmentKNeighborsClassifier(n_jobs=1), {"drop_x": [0.3, 100.0]}, cv=3)
    search.fit([*TRAIN, *SPOILED], [*LABELS, *TRUTH])
    assert search.best_params_ == {"drop_x": 0.3}


@both
def test_clones_and_pickles_answer_alike(estimator):
    given = estimator(drop_x=0.3, drop_z=0.2, window=5)
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
    with pytest.raises(ValueError, match="prototypes have 1 features and the series of fit 2"):
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


# --- Tables, and imports ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["pairs", "x", "z", "segments"])
def test_columns_make_a_data_frame(of):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    a = dropdtw.solve(RNG.random((4, 9)), drop_x=0.3, drop_z=0.2)
    frame = pandas.DataFrame(columns(a, of))
    assert len(frame) == {"pairs": len(a.pairs), "x": 9, "z": 4, "segments": len(a.segments())}[of]


def test_columns_say_what_the_alignment_says():
    a = dropdtw.solve(RNG.random((4, 9)), drop_x=0.3, drop_z=0.2)
    pairs, x, z, runs = (columns(a, of) for of in ("pairs", "x", "z", "segments"))
    np.testing.assert_array_equal(np.transpose([pairs["z"], pairs["x"]]), a.pairs)
    paid = pairs["cost"].sum() + 0.3 * x["dropped"].sum() + 0.2 * z["dropped"].sum()
    assert paid == pytest.approx(a.cost)
    np.testing.assert_array_equal(x["label"], a.labels)
    np.testing.assert_array_equal(z["matches"], a.M.sum(axis=1))
    assert list(zip(runs["label"], runs["start"], runs["stop"], strict=True)) == a.segments()


def test_columns_of_empty_and_costless_alignments():
    nothing = dropdtw.solve(np.full((2, 3), 9.0), drop_x=1, drop_z=1)
    assert [len(c) for c in columns(nothing, "segments").values()] == [0, 0, 0]
    assert [len(c) for c in columns(nothing).values()] == [0, 0, 0]
    costless = dropdtw.Alignment.from_dict(dropdtw.solve([[0.1, 0.9]], drop_x=0.3).to_dict())
    assert list(columns(costless)) == ["z", "x"]
    with pytest.raises(ValueError, match="of is 'rows'; give 'pairs', 'x', 'z' or 'segments'"):
        columns(costless, "rows")


def test_scikit_learn_is_imported_only_when_asked_for():
    code = "import sys, dropdtw; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_missing_scikit_learn_is_named():
    code = "import sys; sys.modules['sklearn'] = None; import dropdtw.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("ImportError: dropdtw.sklearn needs scikit-learn: pip install 'dropdtw[sklearn]'\n")


# --- The example ------------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[1] / "examples" / "classify.py"
AEON = """
import numpy as np

def load_gunpoint(split):
    rng, n = np.random.default_rng(split == "train"), 30
    up = np.linspace(-1, 1, 40)
    return np.array([[(up if k % 2 else -up) + 0.1 * rng.normal(size=40)] for k in range(n)]), np.arange(n) % 2

def load_arrow_head(split):
    return 3 + np.random.default_rng(0).normal(size=(5, 1, 60)), None
"""


def test_spliced_series_keep_their_own_steps_in_order():
    splice = runpy.run_path(str(EXAMPLE))["splice"]
    series, foreign = np.arange(30.0)[:, None], [np.full((40, 1), -1.0)]
    for seed in range(20):
        for share in (0.0, 0.1, 0.4, 0.5):
            spliced = splice(series, foreign, share, np.random.default_rng(seed))
            np.testing.assert_array_equal(spliced[spliced[:, 0] >= 0], series)
            assert np.mean(spliced < 0) == pytest.approx(share, abs=0.02)


def test_least_of_the_best_drop_costs_is_chosen():
    choose = runpy.run_path(str(EXAMPLE))["least_of_the_best"]
    costs, scores = np.array([0.5, 0.1, 0.2, 1.0]), np.array([0.9, 0.8, 0.9, 0.7])
    assert choose({"param_drop_x": costs, "mean_test_score": scores}) == 2


def test_example_runs_and_draws(tmp_path):
    (tmp_path / "aeon").mkdir()
    (tmp_path / "aeon" / "__init__.py").touch()
    (tmp_path / "aeon" / "datasets.py").write_text(AEON)  # in place of a wheel of six megabytes
    command = [sys.executable, "-W", "error", str(EXAMPLE), "--runs", "2", "--plot", str(tmp_path / "curve.png")]
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "MPLBACKEND": "agg", "PYTHONUTF8": "1"}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("chosen") == 1
    assert "mean of 2 runs" in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["Drop-DTW"])
    assert [float(share.rstrip("%")) for share in row.split()[1:]] == pytest.approx([100] * 6, abs=7)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
