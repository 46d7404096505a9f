"""Long sums in single precision: as exact as the costs they add up, in every table and with any blocks."""

import numpy as np
import pytest
from pytest import approx

import dropdtw
from cases import paid
from dropdtw.problem.band import band
from dropdtw.problem.spec import Spec
from dropdtw.search.pairwise import Comparison
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import hard_min, reducer

cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")

LONG = 1 << 14  # number of elements from which sums count as long
TABLES = [
    recurrence.dtw(),
    recurrence.dtw(one_to_many=False),
    recurrence.one_sided(),
    recurrence.one_sided(contiguous=True).transpose(),
    recurrence.two_sided(),
    recurrence.algorithm_2(),
    recurrence.subsequence(),
    recurrence.needleman_wunsch(),
    recurrence.smith_waterman(),
]
tables = pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)


def sequences(kind, K, N):
    """Return Z, X and a drop cost of x: X is Z with noise and junk, or junk that is dropped, or noise."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(K, 1)).astype(np.float32)
    if kind == "repeated":
        X = np.repeat(Z, -(-N // K), axis=0)[:N] + 0.3 * rng.normal(size=(N, 1)).astype(np.float32)
        X[::5] = 3 * rng.normal(size=X[::5].shape)
        return Z, X.astype(np.float32), 0.3
    if kind == "dropped":
        X = np.full((N, 1), 50, np.float32)
        X[::1000] = 0.3
        return Z, X, 0.1
    return Z, rng.normal(size=(N, 1)).astype(np.float32), 0.1


def in_double(d):
    """Convert a price in single precision to double precision."""
    return None if d is None else float(np.float32(d))


def assert_exact(kind, K, N, lanes=True):
    Z, X, d_x = sequences(kind, K, N)
    for d_z in (None, 0.2):
        how = {"match": "sqeuclidean", "drop_x": d_x, "drop_z": d_z}
        doubles = how | {"drop_x": in_double(d_x), "drop_z": in_double(d_z)}
        truth = dropdtw.distance(Z.astype(np.float64), X.astype(np.float64), **doubles)
        assert dropdtw.distance(Z, X, **how) == approx(truth, rel=1e-6)
        found = dropdtw.align(Z, X, **how)
        assert found.cost == approx(truth, rel=1e-6)
        assert found.cost == approx(found.rescore(), rel=1e-6)
        assert found.rescore() == approx(truth, rel=1e-7)
        if lanes:
            assert dropdtw.pairwise([Z], [X], **how)[0, 0] == approx(truth, rel=1e-6)


@pytest.mark.parametrize("kind", ["repeated", "dropped", "noise"])
@pytest.mark.parametrize("K", [1, 20])
def test_single_precision_agrees_with_double_on_long_sequences(kind, K):
    assert_exact(kind, K, 200_000)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["repeated", "dropped", "noise"])
@pytest.mark.parametrize("shape", [(1, 5_000_000), (20, 5_000_000), (1000, 1_000_000)])
def test_single_precision_agrees_with_double_on_the_longest_sequences(kind, shape):
    assert_exact(kind, *shape, lanes=shape[0] < 1000)


def problem(K, N, seed=0, window=None, holes=0.0):
    """Costs of a long problem in single precision, and the same in double."""
    rng = np.random.default_rng(seed)
    C, d_x, d_z = (rng.random(shape, np.float32) for shape in ((K, N), N, K))
    C[rng.random(C.shape) < holes] = np.inf
    d_x[:], d_z[: K // 2] = 0.3, 0.1
    limits = None if window is None else band(K, N, window)
    return paid(C, d_x, d_z, limits), paid(*(a.astype(np.float64) for a in (C, d_x, d_z)), limits)


SHAPES = [
    {"K": 7, "N": LONG},
    {"K": LONG, "N": 7},
    {"K": 200, "N": LONG},
    {"K": 400, "N": LONG, "window": 0.05},
    pytest.param({"K": LONG // 2, "N": LONG // 2, "window": 20}, marks=pytest.mark.exhaustive),
    pytest.param({"K": LONG - 3000, "N": 5000, "window": 30}, marks=pytest.mark.exhaustive),
    {"K": 50, "N": LONG, "holes": 0.3},
]


@tables
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_paths_and_derivatives_of_every_table(table, shape):
    folds = [hard_min, reducer("soft", 0.5)]
    if min(shape["K"], shape["N"]) < 100:  # smooth minima of many rows amplify rounding, in double precision too
        folds.append(reducer("smooth", 0.5))
    single, double = problem(**shape)
    for fold in folds:
        value = cpu.run(table, fold, single).value
        truth = cpu.run(table, fold, double).value
        if not np.isfinite(truth):
            assert value == np.inf
            continue
        # Soft minima subtract entropy from costs, so the sums may be small.
        size = abs(truth) + (1e-3 if fold is hard_min else 1e-2) * max(single.shape)
        assert value == approx(truth, abs=1e-6 * size)
        if fold is hard_min:
            found = cpu.trace(table, single)
            assert found.value == value
            total = single.matrix[tuple(found.pairs.T)].sum(dtype=float)
            for count, price in ((found.drop_x, single.drop_x), (found.drop_z, single.drop_z)):
                total += (count * price).sum(dtype=float)
            assert total == approx(value, abs=1e-6 * size)
        elif min(single.shape) < 100:
            ours, theirs = (cpu.run(table, fold, c, gradient=True) for c in (single, double))
            assert ours.value == value
            for part in ("match", "drop_x", "drop_z"):
                np.testing.assert_allclose(
                    getattr(ours, part), getattr(theirs, part), atol=1e-4 if fold.name == "soft" else 1e-3
                )


@tables
def test_blocks_of_any_width_round_alike(table, monkeypatch):
    """The value, the low-memory path and the derivatives use different block sizes."""
    for shape in ({"K": 60, "N": LONG + 5}, {"K": 300, "N": LONG, "window": 0.02}):
        single, _ = problem(**shape)
        value = cpu.run(table, hard_min, single).value
        whole = cpu.trace(table, single)
        monkeypatch.setattr(cpu, "BUDGET", 0)
        blocks = cpu.trace(table, single)
        monkeypatch.undo()
        assert whole.value == blocks.value == value
        for a, b in zip(whole[1:], blocks[1:], strict=True):
            np.testing.assert_array_equal(a, b)


@tables
def test_a_long_value_up_to_the_limit_is_the_value(table):
    for shape in ({"K": 30, "N": LONG}, {"K": 30, "N": LONG, "window": 0.1}):
        single, _ = problem(**shape)
        full = cpu.run(table, hard_min, single).value
        if np.isfinite(full):
            assert cpu.within(table, single, full) == (full, 0)
            assert cpu.within(table, single, np.nextafter(full, np.inf)) == (full, 0)
            value, _ = cpu.within(table, single, full - 0.5 * abs(full) - 1)
            assert value in (full, np.inf)
    assert table.name != "dtw" or cpu.within(table, problem(30, LONG)[0], 1.0)[1] > 0.5


def test_long_values_in_strips_under_a_limit(monkeypatch):
    monkeypatch.setattr(cpu, "STRIPS_FROM", 0)
    monkeypatch.setattr(cpu, "STRIP", 0)
    rng = np.random.default_rng(0)
    Z, X = (rng.normal(size=(n, 12)).astype(np.float32) for n in (20, LONG))
    spec = Spec.of(0.4, match="cosine")
    costs = Comparison(spec, 12).costs(Z, X)
    full = cpu.run(spec.table, hard_min, costs).value
    assert full == approx(
        dropdtw.distance(Z.astype(np.float64), X.astype(np.float64), in_double(0.4), match="cosine"), rel=1e-6
    )
    assert cpu.within(spec.table, costs, full) == (full, 0)
    value, spared = cpu.within(spec.table, costs, full / 4)
    assert (value, spared > 0.5) == (np.inf, True)


@pytest.mark.parametrize("method", ["dtw", "drop_dtw", "drop_dtw_paper", "needleman_wunsch", "smith_waterman"])
@pytest.mark.parametrize("d", [1, 3])
def test_long_lanes_agree_with_double_and_with_no_regard_to_company(method, d):
    """Short and long pairs share lanes; each value is bitwise the same as on its own."""
    rng = np.random.default_rng(0)
    Zs = [rng.normal(size=(n, d)).astype(np.float32) for n in (1, 67, 130)]
    lengths = [LONG - 130, LONG - 67, LONG - 66, LONG, 40, LONG - 1, LONG + 63, LONG + 64, 300]
    Xs = [rng.normal(size=(n, d)).astype(np.float32) for n in lengths]
    drops = {} if method == "dtw" else {"drop_x": 0.7, "drop_z": 0.4}
    how = {"match": "sqeuclidean", "method": method, "progress": False}
    found = dropdtw.pairwise(Zs, Xs, **how, **drops)
    doubles = ([a.astype(np.float64) for a in many] for many in (Zs, Xs))
    truth = dropdtw.pairwise(*doubles, **how, **{side: in_double(price) for side, price in drops.items()})
    long = np.add.outer([len(Z) for Z in Zs], lengths) >= LONG
    np.testing.assert_allclose(found[long], truth[long], rtol=1e-6, atol=1e-4)
    for a, Z in enumerate(Zs):
        alone = [dropdtw.pairwise([Z], [X], **how, **drops)[0, 0] for X in Xs]
        np.testing.assert_array_equal(found[a], alone)


@pytest.mark.parametrize("method", ["dtw", "drop_dtw", "drop_dtw_paper", "needleman_wunsch", "smith_waterman"])
def test_short_sums_round_alike_in_lanes_and_alone(method):
    """Lanes compute match costs along with the sums, a single pair before them: both round the cost, then the sum."""
    rng = np.random.default_rng(0)
    Zs, Xs = ([rng.normal(size=(n, 1)).astype(np.float32) for n in ns] for ns in ((1, 40, 97), (3, 60, 150, 151, 299)))
    how = {"match": "sqeuclidean", "method": method} | ({} if method == "dtw" else {"drop_x": 0.7, "drop_z": 0.4})
    alone = [[np.float32(dropdtw.distance(Z, X, **how)) for X in Xs] for Z in Zs]
    np.testing.assert_array_equal(dropdtw.pairwise(Zs, Xs, **how), alone)


def test_long_lanes_give_up():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(90, 1)).astype(np.float32)
    Xs = [rng.normal(size=(LONG, 1)).astype(np.float32) for _ in range(20)]
    for price in (None, 0.3):
        many = Comparison(Spec.of(price, price), 1)
        full = many.in_lanes([Z], Xs, "euclidean").values[0]
        for limit in (*full[:4], np.median(full)):
            (values,), _, spared = many.in_lanes([Z], Xs, "euclidean", limit=limit)
            np.testing.assert_array_equal(values[full <= limit], full[full <= limit])
            assert (values[full > limit] > limit).all()
        (values,), abandoned, spared = many.in_lanes([Z], Xs, "euclidean", limit=1.0)
        assert (np.isinf(values).all(), abandoned, spared > 0) == (True, 20, True)
