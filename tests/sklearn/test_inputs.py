"""What the estimators take and give: series in every usual form, tables of columns, and the example."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import dropdtw
from dropdtw.sklearn import as_series, columns
from sklearn_cases import LABELS, RNG, TRAIN, answer, both

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

EXAMPLE = Path(__file__).parents[2] / "examples" / "classify.py"
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
    places = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": places, "MPLBACKEND": "agg", "PYTHONUTF8": "1"}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("chosen") == 1
    assert "mean of 2 runs" in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["Drop-DTW"])
    assert [float(share.rstrip("%")) for share in row.split()[1:]] == pytest.approx([100] * 6, abs=7)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("layout", ["ntd", "nct"])
@pytest.mark.parametrize("axes", [2, 3])
def test_masked_values_are_refused(axes, layout):
    X = np.random.default_rng(0).normal(size=(4, 6, 3)[:axes])
    X[1, 2] = -9999
    masked = np.ma.masked_equal(X, -9999)
    at = "X" if axes == 2 else "X\\[1\\]"
    with pytest.raises(ValueError, match=f"{at} has masked values, the first at .*; remove them or fill"):
        as_series(masked, layout)
    with pytest.raises(ValueError, match="has masked values"):
        as_series(list(masked), layout)
    plain = as_series(np.ma.array(X), layout)
    assert all((a == b).all() for a, b in zip(plain, as_series(X, layout), strict=True))


# --- Missing steps ----------------------------------------------------------------------------------------------


def with_gaps(seed=0):
    """The training series with some steps missing, and what is left of them."""
    rng = np.random.default_rng(seed)
    holed, left = [], []
    for series in TRAIN:
        there = rng.random(len(series)) > 0.3
        there[0] = True
        holed.append(np.where(there[:, None], series, np.nan))
        left.append(series[there])
    return holed, left


def seeded(estimator, **options):
    """An estimator that makes the same choices each time."""
    made = estimator(**options)
    return made.set_params(random_state=0) if "random_state" in made.get_params() else made


@both
def test_missing_steps_might_as_well_be_deleted(estimator):
    holed, left = with_gaps()
    ours, theirs = seeded(estimator, drop_x=0.3, missing="drop"), seeded(estimator, drop_x=0.3)
    for given in (holed, left):
        for fresh in (holed, left):
            found = answer(ours.fit(given, LABELS), fresh)
            np.testing.assert_array_equal(found, answer(theirs.fit(left, LABELS), left))


@both
def test_tables_may_have_gaps(estimator):
    table = np.random.default_rng(0).normal(size=(15, 8))
    table[np.random.default_rng(1).random(table.shape) < 0.3] = np.nan
    left = [row[~np.isnan(row)] for row in table]
    found = answer(seeded(estimator, missing="drop").fit(table, LABELS), table)
    np.testing.assert_array_equal(found, answer(seeded(estimator).fit(left, LABELS), left))
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(table)
    np.testing.assert_array_equal(answer(seeded(estimator, missing="drop").fit(frame, LABELS), frame), found)


@both
def test_gaps_are_refused_unless_asked_for(estimator):
    holed, left = with_gaps()
    with pytest.raises(ValueError, match=r"X\[0\] has NaN .* or give missing='drop' to leave out those with NaN"):
        estimator().fit(holed, LABELS)
    with pytest.raises(ValueError, match=r"X\[0\] has NaN .* or give missing='drop'"):
        answer(estimator().fit(left, LABELS), holed)
    with pytest.raises(ValueError, match="such series or fill them in, or give missing='drop'"):
        estimator().fit(np.full((15, 4), np.nan), LABELS)
    with pytest.raises(ValueError, match=r"every element of X\[2\] has NaN, .* remove this sequence"):
        estimator(missing="drop").fit(np.array([[1.0] * 4, [2.0] * 4, [np.nan] * 4]), [0, 1, 0])
    with pytest.raises(ValueError, match="missing is 'fill'; give 'drop'"):
        estimator(missing="fill").fit(left, LABELS)


def test_padding_is_cut_off_and_gaps_are_left_out():
    stack = np.array([[[0.0], [np.nan], [1.0], [np.nan]], [[0.0], [1.0], [2.0], [3.0]]])
    assert [len(s) for s in as_series(stack, "ntd", missing="drop")] == [3, 4]
