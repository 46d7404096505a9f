"""The compiled executor against the reference: every table, reducer and precision, at awkward sizes."""

import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

import dropdtw
from cases import VARIANTS, costs, name, paid, spec_of
from dropdtw import METHODS, Recurrence, edges
from dropdtw.executors import EXECUTORS, reference
from dropdtw.problem.band import band
from dropdtw.problem.match import Pair
from dropdtw.problem.problem import Problem
from dropdtw.tables import recurrence
from dropdtw.tables.methods import Matching
from dropdtw.tables.reducers import hard_min, reducer

cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")

# Sizes around the vector widths (8 doubles, 16 floats), odd sizes, and long and flat shapes.
SIZES = [(1, 1), (1, 40), (40, 1), (2, 7), (7, 8), (8, 9), (9, 15), (15, 16), (16, 17), (17, 31), (33, 32), (39, 40)]
EPSILON = {np.float32: 2.0**-23, np.float64: 2.0**-52}
precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def problem(variant, K, N, kind, dtype=np.float64, seed=0, **more):
    """Return the table and the costs of a variant at a size, or None if no alignment fits the shape."""
    rng = np.random.default_rng([seed, K, N])
    x, z = variant["sides"]
    drops = [costs(kind, (n,), rng).astype(dtype) if side else None for n, side in ((N, x), (K, z))]
    try:
        found = Problem.of_costs(spec_of(variant, *drops, **more), costs(kind, (K, N), rng).astype(dtype))
    except ValueError as error:
        if "cannot each have" in str(error) or "no path of method" in str(error):
            return None
        raise
    return found.table, found.costs


def problems(variant, kind, dtype=np.float64):
    return [p for size in SIZES if (p := problem(variant, *size, kind, dtype)) is not None]


def in_double(costs):
    return paid(
        *(part.astype(np.float64) for part in (costs.matrix, costs.drop_x, costs.drop_z)), costs.band, costs.charges
    )


def assert_as_exact_as_the_reference(found, table, fold, costs):
    """The error is at most twice the reference's error in the same precision, or a few units in the last place."""
    gradient = found.match.size > 0
    truth = reference.run(table, fold, in_double(costs), gradient=gradient)
    plain = truth if costs.dtype == np.float64 else reference.run(table, fold, costs, gradient=gradient)
    unit = EPSILON[costs.dtype.type] * max(1, *costs.shape)
    if np.isinf(truth.value):
        assert found.value == np.inf
        return
    assert abs(found.value - truth.value) <= 2 * abs(plain.value - truth.value) + 4 * unit * max(1, abs(truth.value))
    scale = 1 + abs(truth.value) / max(fold.gamma, 1e-9) if fold.gamma else 1
    for part in ("match", "drop_x", "drop_z"):
        mine, theirs, true = (getattr(r, part) for r in (found, plain, truth))
        if gradient:
            assert np.abs(mine - true).max() <= 2 * np.abs(theirs - true).max() + 8 * unit * scale, part


@pytest.mark.sweep
@precisions
@pytest.mark.parametrize("kind", ["signed", "holes"])
@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_hard_values_and_alignments(variant, kind, dtype):
    for table, c in problems(variant, kind, dtype)[:: 1 if kind == "holes" else 2]:
        value = cpu.run(table, hard_min, c).value
        found = cpu.trace(table, c)
        assert found.value == value
        assert_as_exact_as_the_reference(cpu.run(table, hard_min, c), table, hard_min, c)
        if np.isfinite(value):
            weights = 1 if found.weights is None else found.weights
            total = (weights * c.matrix[tuple(found.pairs.T)]).sum(dtype=float)
            charged = (np.array(found.charges), np.array(c.charges))
            for count, price in ((found.drop_x, c.drop_x), (found.drop_z, c.drop_z), charged):
                total += (count[count > 0] * price[count > 0]).sum(dtype=float)
            assert total == approx(value, rel=1e-5 if dtype is np.float32 else 1e-12, abs=1e-4)


@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_ties_are_broken_as_in_the_reference(variant):
    """Small whole costs are exact, so both executors see the same ties and must take the same path."""
    for table, c in problems(variant, "tied"):
        ours, theirs = cpu.trace(table, c), reference.trace(table, c)
        assert ours.value == theirs.value
        for a, b in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.sweep
@precisions
@pytest.mark.parametrize("kind", ["soft", "smooth"])
@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_soft_values_and_gradients(variant, kind, dtype):
    fold = reducer(kind, 0.5)
    for table, c in problems(variant, "holes" if kind == "soft" else "signed", dtype)[::3]:
        assert_as_exact_as_the_reference(cpu.run(table, fold, c, gradient=True), table, fold, c)
        assert cpu.run(table, fold, c).value == cpu.run(table, fold, c, gradient=True).value


@pytest.mark.parametrize("gamma", [1e-300, 1e-30, 1e-6, 1e3, 1e30])
@pytest.mark.parametrize("kind", ["soft", "smooth"])
def test_extreme_temperatures(kind, gamma):
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        c = paid(*(costs("holes", shape, rng).astype(dtype) for shape in ((9, 17), (17,), (9,))))
        found = cpu.run(recurrence.two_sided(), reducer(kind, gamma), c, gradient=True)
        expected = reference.run(recurrence.two_sided(), reducer(kind, gamma), c, gradient=True)
        assert found.value == approx(expected.value, rel=1e-5)
        for part in found[1:]:
            assert np.isfinite(part).all()


# --- Blocks: states that are not stored are recomputed ----------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS[::3], ids=name)
def test_path_in_little_memory_is_the_same_path(variant, monkeypatch):
    for size in ((5, 70), (70, 5), (40, 40)):
        p = problem(variant, *size, "tied")
        if p is not None:
            whole = cpu.trace(*p)
            monkeypatch.setattr(cpu, "BUDGET", 0)
            blocks = cpu.trace(*p)
            monkeypatch.undo()
            assert whole.value == blocks.value
            for a, b in zip(whole[1:], blocks[1:], strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS[::5], ids=name)
@pytest.mark.parametrize("kind", ["soft", "smooth"])
def test_gradient_in_blocks(variant, kind):
    """A problem whose states, more than 1 MiB, are too large to store at once."""
    states = len(problem(variant, 5, 5, "positive")[0].states)
    K = int(np.sqrt((1 << 20) / 8 / states))
    variant = {**variant, "window": 0.5} if "window" in variant else variant
    p = problem(variant, K, K + 7, "positive") or problem(variant, K + 1, K + 1, "positive")
    assert states * (p[1].shape[0] + 1) * (p[1].shape[1] + 1) * 8 > 1 << 20
    fold = reducer(kind, 1.0)
    found, expected = (run(*p[:1], fold, p[1], gradient=True) for run in (cpu.run, reference.run))
    assert found.value == approx(expected.value, rel=1e-10)
    for part in ("match", "drop_x", "drop_z"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part), atol=1e-9)


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "euclidean", "softmax"])
@pytest.mark.parametrize("d", [1, 3, 8, 9, 30])
@precisions
def test_costs_from_sequences_in_strips_and_in_kernels(metric, d, dtype, monkeypatch):
    if metric == "cosine" and d == 1:
        pytest.skip("a cosine of numbers is only their signs")
    rng = np.random.default_rng(d)
    Z, X = (rng.normal(size=(n, d)).astype(dtype) for n in (13, 90))
    monkeypatch.setattr(cpu, "STRIPS_FROM", 0)
    both = {"drop_x": 0.6, "drop_z": 0.6}
    charged = both | {"open_x": 0.5, "open_z": 0.3, "warp": 0.1}
    for drops in ({"drop_x": 0.6}, {"drop_z": 0.6}, both, charged, {}, {"method": "otam"}):
        for window in (None, 0.4):
            a = dropdtw.align(Z, X, match=metric, window=window, executor="cpp", **drops)
            b = dropdtw.align(Z, X, match=metric, window=window, executor="reference", **drops)
            assert a.cost == approx(b.cost, rel=1e-4 if dtype is np.float32 else 1e-10)
            assert a.rescore() == approx(a.cost, rel=1e-4)
            value = dropdtw.distance(Z, X, match=metric, window=window, executor="cpp", **drops)
            assert value == approx(a.cost, rel=1e-5)


def test_strips_are_never_whole_and_tracing_back_needs_no_rows_below_the_path(monkeypatch):
    """A long problem is aligned without ever materializing all of its match costs."""
    shapes = []
    original = Pair.part

    def part(self, rows, columns):
        found = original(self, rows, columns)
        shapes.append(found.shape)
        return found

    monkeypatch.setattr(Pair, "part", part)
    monkeypatch.setattr(cpu, "STRIPS_FROM", 0)
    monkeypatch.setattr(cpu, "STRIP", 1 << 16)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(100, 16))
    X = np.repeat(Z, 700, axis=0)
    X[::10] = rng.normal(size=(7000, 16))
    a = dropdtw.align(Z, X, drop_x=0.2)
    assert a.dropped_x[::10].mean() > 0.95
    assert (a.labels[1::10] == np.repeat(np.arange(100), 70)).all()
    assert max(width for _, width in shapes) < 2000
    computed = sum(height * width for height, width in shapes)
    assert computed < 1.6 * 100 * 70_000  # once forward, and half of it again


# --- Inputs ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_strided_reversed_and_read_only_matrices(data):
    K, N = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))
    rng = np.random.default_rng(0)
    big = rng.normal(size=(2 * K + 1, 3 * N + 1))
    C = big[1::2, 1::3]
    if data.draw(st.booleans()):
        C = C[::-1]
    if data.draw(st.booleans()):
        C = np.asfortranarray(C)
    if data.draw(st.booleans()):
        C = C[:, ::-1]
    C.flags.writeable = False
    expected = dropdtw.solve(np.array(C, order="C"), 0.3, 0.3, executor="reference")
    assert dropdtw.cost(C, 0.3, 0.3, executor="cpp") == approx(expected.cost)


def test_misaligned_and_foreign_byte_order():
    rng = np.random.default_rng(0)
    C = rng.normal(size=(6, 7))
    raw = np.zeros((6, 7), dtype=[("flag", "i1"), ("cost", "<f8")])
    raw["cost"] = C
    expected = dropdtw.cost(C, 0.3)
    assert dropdtw.cost(raw["cost"], 0.3, executor="cpp") == expected
    assert dropdtw.cost(C.astype(">f8"), 0.3, executor="cpp") == expected


# --- Bands, lanes, interruptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0, 3, *(pytest.param(w, marks=pytest.mark.exhaustive) for w in (1, 20))])
@pytest.mark.parametrize("size", [(30, 30), (10, 50), (50, 10), (1, 20), (20, 1), (33, 64)])
def test_narrow_bands(size, width):
    rng = np.random.default_rng(1)
    K, N = size
    for make in (
        recurrence.dtw,
        recurrence.one_sided,
        recurrence.subsequence,
        recurrence.two_sided,
        recurrence.algorithm_2,
        recurrence.needleman_wunsch,
        recurrence.smith_waterman,
    ):
        for table in (make(), make().transpose()):
            if not cpu.supports(table):
                continue
            for fold in (hard_min, reducer("soft", 0.3), reducer("smooth", 0.3)):
                c = paid(rng.normal(size=size), rng.normal(size=N), rng.normal(size=K), band(K, N, width))
                found, expected = (run(table, fold, c, gradient=True) for run in (cpu.run, reference.run))
                assert found.value == approx(expected.value, abs=1e-9)
                assert cpu.run(table, fold, c).value == approx(found.value, abs=1e-12)
                for part in ("match", "drop_x", "drop_z") if np.isfinite(found.value) else ():
                    np.testing.assert_allclose(getattr(found, part), getattr(expected, part), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_lanes_equal_single_pairs(metric, d, dtype):
    rng = np.random.default_rng(d)
    lengths = [5, 1, 16, 17, 3, 40, 2, 31, 9, 9, 9, 1, 8, 33, 20, 4, 12, 7]
    many, few = ([rng.normal(size=(n, d)).astype(dtype) for n in ns] for ns in (lengths, (1, 33, 6)))
    for method, drops in (
        ("drop_dtw", {}),
        ("drop_dtw", {"drop_x": 0.7}),
        ("drop_dtw", {"drop_z": 0.7}),
        ("drop_dtw", {"drop_x": 0.7, "drop_z": 0.4}),
        ("drop_dtw_paper", {"drop_x": 0.7, "drop_z": 0.4}),
        ("needleman_wunsch", {"drop_x": 0.7, "drop_z": 0.4}),
        ("smith_waterman", {"drop_x": 0.7, "drop_z": 0.4}),
    ):
        for lists in ((few,), (many, few), (few, many)):
            options = {"match": metric, "method": method, **drops}
            left, right = (lists * 2)[:2]
            expected = [[dropdtw.distance(Z, X, executor="cpp", **options) for X in right] for Z in left]
            for n_jobs in (1, 2):
                found = dropdtw.pairwise(*lists, n_jobs=n_jobs, executor="cpp", **options)
                np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-12)
        symmetric = dropdtw.pairwise(many, n_jobs=2, **options)
        np.testing.assert_allclose(symmetric, dropdtw.pairwise(many, many, **options), rtol=1e-4)


def test_a_users_table_runs_on_compiled_kernels():
    own = Recurrence(states=("m",), edges=edges("m", to="m", moves="diag", cost="match"), start="m", final=("m",))
    for executor in (None, "cpp", "reference"):
        assert dropdtw.cost(np.eye(2), method=own, executor=executor) == 2


def test_every_built_in_table_has_a_kernel():
    for variant in VARIANTS:
        matching = Matching(*[variant[k] for k in list(variant)[2:5]])
        for charged in (False, True):
            assert cpu.supports(METHODS[variant["method"]].table(*variant["sides"], matching, charged)), name(variant)
    assert next(iter(EXECUTORS)) == "cpp"


def interrupt_after(seconds):
    timer = threading.Timer(seconds, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("work", ["one pair", "many pairs", "long pairs", "strips"])
def test_ctrl_c_is_answered(work):
    """Ctrl-C takes effect within about a second, however long one pair takes."""
    # A shell starts background jobs with SIGINT ignored, and Python does not change that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = np.random.default_rng(0)
    long = rng.normal(size=60_000).astype(np.float32)
    many = [rng.normal(size=(400, 1)).astype(np.float32) for _ in range(1500)]
    few = list(rng.normal(size=(32, 12_000, 1)).astype(np.float32))
    wide = rng.normal(size=(60_000, 20)).astype(np.float32)
    jobs = {
        "one pair": lambda: dropdtw.distance(long, long, match="sqeuclidean", reducer="soft"),
        "many pairs": lambda: dropdtw.pairwise(many, match="sqeuclidean", n_jobs=2),
        "long pairs": lambda: dropdtw.pairwise(few, match="sqeuclidean", n_jobs=2),
        "strips": lambda: dropdtw.distance(wide, wide),
    }
    timer = interrupt_after(0.5)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            jobs[work]()
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 2.5  # the work itself takes much longer
