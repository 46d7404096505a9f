"""The public surface: its names, its documentation, its import cost, and that all of it runs."""

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dropdtw
from cases import OF_COSTS

PUBLIC = {
    *("align", "alignments", "solve", "distance", "cost", "pairwise", "posterior", "suggest_drop"),
    *("Aligner", "Alignment", "Segment", "Posterior", "Suggestion"),
    *("nearest", "Nearest", "Index", "Online", "StreamState", "find", "Occurrence", "Occurrences"),
    *("barycenter", "Barycenter"),
    *("METHODS", "free_ends", "erp", "wdtw", "Recurrence", "Edge", "edges"),
    *("costs", "drops", "orders", "windows"),
}
every_method = pytest.mark.parametrize("method", OF_COSTS)


def test_surface_is_what_we_mean_to_offer():
    assert set(dropdtw.__all__) == PUBLIC
    assert len(dropdtw.__all__) == len(PUBLIC)
    assert all(hasattr(dropdtw, name) for name in PUBLIC)


def test_modules_that_need_extras_are_imported_on_first_use():
    program = (
        "import sys, dropdtw; assert 'dropdtw.metrics' not in sys.modules; "
        "print(dropdtw.metrics.__name__, 'plot' in dir(dropdtw), hasattr(dropdtw, 'plots'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dropdtw.metrics", "True", "False"]


def documented():
    """Every public function, class and method, by its name."""
    for name in sorted(PUBLIC - {"METHODS"}):
        thing = getattr(dropdtw, name)
        yield name, thing
        if inspect.isclass(thing) or inspect.ismodule(thing):
            for part, value in vars(thing).items():
                own = getattr(value, "__module__", None) == getattr(thing, "__name__", None) or inspect.isclass(thing)
                wrapped = getattr(value, "func", getattr(value, "__func__", value))  # cached_property, classmethod
                if not part.startswith("_") and own and (callable(wrapped) or isinstance(value, property)):
                    yield f"{name}.{part}", value


@pytest.mark.parametrize("thing", [pytest.param(thing, id=name) for name, thing in documented()])
def test_public_things_have_docstrings(thing):
    assert len((inspect.getdoc(thing) or "").strip()) > 10


def test_docstrings_of_parts_are_found():
    names = {name for name, _ in documented()}
    assert {"Alignment.M", "Alignment.segments", "Alignment.from_dict", "costs.cosine", "drops.Percentile"} <= names


def explained():
    """What the pages of the reference explain, by page."""
    for page in sorted((Path(__file__).parents[1] / "docs" / "api").glob("*.md")):
        names = re.findall(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        yield from (pytest.param(name, id=f"{page.stem}-{name}") for name in names)


@pytest.mark.parametrize("name", list(explained()))
def test_names_in_the_reference_exist(name):
    """Sooner than `make docs` says it."""
    extra = {"torch": "torch", "sklearn": "sklearn", "corpus": "pyarrow"}.get(name.split(".")[1])
    if extra:
        pytest.importorskip(extra)
    assert pydoc.locate(name) is not None


@pytest.mark.parametrize("method", dropdtw.METHODS)
def test_methods_have_summaries(method):
    assert len(dropdtw.METHODS[method].summary) > 20


def test_registry_says_which_costs_a_method_takes():
    assert {name for name, entry in dropdtw.METHODS.items() if not entry.takes_drops} == {
        *("dtw", "otam", "subsequence", "free_begin", "free_end", "lcss", "edr", "erp", "ddtw", "wdtw"),
        *("symmetric1", "asymmetric", "asymmetricP1"),
    }
    opening = {"drop_dtw", "steps", "greedy", "needleman_wunsch", "smith_waterman"}
    opening |= {"symmetric2", "symmetricP05", "symmetricP1", "symmetricP2"}
    assert {name for name, entry in dropdtw.METHODS.items() if entry.takes_opening} == opening
    assert {name for name, entry in dropdtw.METHODS.items() if entry.takes_threshold} == {"lcss", "edr"}


@pytest.mark.parametrize("function", ["cost", "distance", "pairwise"])
def test_gamma_is_1_unless_said(function):
    C, Z = [[0.1, 0.9], [0.8, 0.2]], [[0.1, 0.9], [0.8, 0.2]]
    first = {"cost": (C,), "distance": (Z, Z), "pairwise": ([Z],)}[function]
    for reducer in ("soft", "smooth"):
        values = [getattr(dropdtw, function)(*first, reducer=reducer, **gamma) for gamma in ({}, {"gamma": 1.0})]
        assert np.array_equal(*values)
        assert not np.array_equal(values[0], getattr(dropdtw, function)(*first, reducer=reducer, gamma=0.5))


@pytest.mark.parametrize("function", ["solve", "align", "cost", "distance", "posterior", "pairwise"])
def test_options_are_the_same_everywhere(function):
    ours, solves = (inspect.signature(getattr(dropdtw, f)).parameters for f in (function, "solve"))
    # a single one cannot fit every pair
    missing = {"order", "mask", "ids", "anchors", "per", "times", "fps"} if function == "pairwise" else set()
    assert missing.isdisjoint(ours)
    for name, parameter in solves.items():
        if name != "C" and name not in missing:
            assert (ours[name].default, ours[name].annotation) == (parameter.default, parameter.annotation)


def test_import_needs_numpy_alone():
    heavy = "{'matplotlib', 'scipy', 'torch', 'rich', 'typer', 'pandas', 'sklearn', 'starlette', 'lightning_fabric'}"
    code = f"import sys, dropdtw; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


# --- Everything runs --------------------------------------------------------------------------------------------


def problem(method, dtype=np.float64, scale=1.0):
    entry = dropdtw.METHODS[method]
    rng = np.random.default_rng(0)
    given = {"C": (scale * rng.uniform(-0.5, 1, (4, 6))).astype(dtype), "method": method}
    if entry.takes_drops:
        given |= {"drop_x": 0.3 * scale, "drop_z": 0.4 * scale}
    return given | ({"threshold": 0.3 * scale} if entry.takes_threshold else {})


@every_method
def test_every_method_answers_every_question(method, executor):
    given = problem(method) | {"executor": executor}
    a, p = dropdtw.solve(**given), dropdtw.posterior(**given, gamma=0.1)
    assert a.method == method
    assert a.rescore() == pytest.approx(a.cost)
    assert dropdtw.cost(**given) == pytest.approx(a.cost)
    assert dropdtw.cost(**given, reducer="soft", gamma=0.1) == pytest.approx(p.cost)
    assert p.cost <= a.cost + 1e-12
    for probabilities in (p.match, p.drop_x, p.drop_z):
        assert probabilities.min() >= -1e-12
        assert probabilities.max() <= 1 + 1e-12
    assert np.isfinite(dropdtw.cost(**given, reducer="smooth", gamma=0.1))
    assert dropdtw.cost(**given, reducer="smooth", gamma=1e-6) == pytest.approx(a.cost)


@every_method
def test_single_precision_stays_close_to_double(method, executor):
    single, double = (problem(method, dtype) | {"executor": executor} for dtype in (np.float32, np.float64))
    a, b = dropdtw.solve(**single), dropdtw.solve(**double)
    assert a.cost == pytest.approx(b.cost, abs=1e-5)
    np.testing.assert_array_equal(a.pairs, b.pairs)
    p, q = dropdtw.posterior(**single, gamma=0.1), dropdtw.posterior(**double, gamma=0.1)
    np.testing.assert_allclose(p.match, q.match, atol=1e-4)
    np.testing.assert_allclose(p.drop_x, q.drop_x, atol=1e-4)


@every_method
@pytest.mark.parametrize("dtype", [np.int64, np.int8, list])
def test_integers_are_numbers(method, dtype):
    given = problem(method, np.int64, scale=10)
    as_floats = given | {"C": given["C"].astype(float)}
    given["C"] = given["C"].tolist() if dtype is list else given["C"].astype(dtype)
    a, b = dropdtw.solve(**given), dropdtw.solve(**as_floats)
    assert a.cost == b.cost
    np.testing.assert_array_equal(a.pairs, b.pairs)


@every_method
def test_half_precision_is_taken_as_it_is(method):
    given = problem(method, np.float16)
    wider = given | {"C": given["C"].astype(np.float32)}
    assert dropdtw.cost(**given) == dropdtw.cost(**wider)


@every_method
def test_sequences_answer_like_their_costs(method):
    rng = np.random.default_rng(1)
    Z, X = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    given = {k: v for k, v in problem(method).items() if k != "C"}
    C = dropdtw.costs.cosine(Z, X) - 0.5

    def match(Z, X):
        return dropdtw.costs.cosine(Z, X) - 0.5

    a, b = dropdtw.align(Z, X, match=match, **given), dropdtw.solve(C, **given)
    assert a.cost == b.cost == dropdtw.distance(Z, X, match=match, **given)
    np.testing.assert_array_equal(a.pairs, b.pairs)


@every_method
def test_answers_are_plain_numbers_and_arrays(method):
    given = problem(method, np.float32)
    a = dropdtw.solve(**given)
    assert type(a.cost) is float
    assert type(dropdtw.cost(**given)) is float
    assert a.pairs.dtype.kind == a.labels.dtype.kind == "i"
    assert a.M.dtype == a.dropped_x.dtype == a.dropped_z.dtype == bool
    assert (a.pairs.shape[1], a.M.shape, a.labels.shape) == (2, (4, 6), (6,))
    assert (a.dropped_x.shape, a.dropped_z.shape) == ((6,), (4,))


@pytest.mark.parametrize(("share", "columns"), [(0.25, 2), (0.5, 4), (1.0, 8), (0.3, 2)])
def test_window_as_a_share_is_that_share_of_the_columns(share, columns):
    C = np.random.default_rng(0).random((8, 8))
    by_share, by_count = (dropdtw.solve(C, 0.2, 0.2, window=w).problem.costs.banded() for w in (share, columns))
    np.testing.assert_array_equal(by_share, by_count)
    i, j = np.indices(C.shape)
    np.testing.assert_array_equal(np.isfinite(by_share), abs(i - j) <= columns)


def test_lcss_counts_a_pair_at_the_threshold_and_none_above_it():
    assert dropdtw.cost([[0.5]], method="lcss", threshold=0.5) == -1
    assert dropdtw.cost([[0.5]], method="lcss", threshold=0.49) == 0
    assert dropdtw.cost([[0.5, np.inf]], method="lcss", threshold=np.inf) == -1  # forbidden pairs never count
    assert dropdtw.cost([[np.inf]], method="lcss", threshold=np.inf) == 0


def test_a_window_of_no_width_is_the_line_between_the_corners():
    C = np.random.default_rng(1).random((6, 6))
    for nothing in (0, 0.0, np.float32(0)):
        assert dropdtw.cost(C, window=nothing) == pytest.approx(np.trace(C))
        assert dropdtw.solve(C, window=nothing).pairs.tolist() == [[k, k] for k in range(6)]


def test_greedy_keeps_what_matches_as_cheaply_as_it_is_dropped():
    a = dropdtw.solve([[1.0, 1.0], [1.0, 1.0]], drop_x=[1, 0.9], drop_z=[1, 0.9], method="greedy")
    assert a.pairs.tolist() == [[0, 0]]
