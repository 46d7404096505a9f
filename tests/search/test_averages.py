"""Averages: cheaper with every round, the mean of what they match, and blind to junk."""

from itertools import product

import numpy as np
import pytest

import dropdtw
import oracle
from dropdtw import barycenter, distance
from dropdtw.search.averages import AVERAGED


def ragged(seed=0, n=5, features=1, least=9):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(int(k), features)).cumsum(axis=0) for k in rng.integers(least, least + 5, n)]


OPTIONS = {
    "dba": {},
    "drops": {"drop_x": 0.8},
    "percentile": {"drop_x": "percentile:25"},
    "suggest": {"drop_x": "suggest"},
    "cosine": {"match": "cosine", "drop_x": 0.3},
    "runs": {"drop_x": 0.4, "open_x": 1.0},
    "suggested runs": {"drop_x": 0.4, "open_x": "suggest"},
    "warp": {"warp": 0.3, "drop_x": 1.0},
    "window": {"window": 0.5, "drop_x": 1.0},
    "exclusive": {"drop_x": 0.8, "many_to_one": False, "contiguous": True, "length": 7},
    "medoid": {"init": "medoid", "drop_x": 0.8},
    "short": {"length": 2, "drop_x": 0.8},
    "one element": {"length": 1},
    "weights": {"weights": [1, 0.5, 0, 3, 2], "drop_x": 0.8},
    "reference": {"executor": "reference", "drop_x": 0.8, "max_iter": 4},
    "negative drop cost": {"drop_x": -0.1},
} | {
    name: {"method": name, "length": 9} | ({"drop_x": 1.0} if dropdtw.METHODS[name].takes_drops else {})
    for name in AVERAGED
    if not name.endswith("P1")
}
every_way = pytest.mark.parametrize("how", OPTIONS.values(), ids=OPTIONS)


def price(Z, X, how):
    """What `barycenter` says that a series costs; rules, which are read off the first average, left out."""
    named = {k: v for k, v in how.items() if k not in ("init", "length", "weights", "max_iter")}
    return distance(Z, X, **({"match": "sqeuclidean"} | named))


@every_way
@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.filterwarnings("ignore:the cosine of one-dimensional")
def test_the_cost_never_rises_and_is_that_of_the_alignments(how, features):
    series = ragged(features=features)
    b = barycenter(series, **how)
    weights = np.asarray(how.get("weights", np.ones(5)))
    assert (np.diff(b.costs) <= 0).all()
    assert b.cost == b.costs[-1] == pytest.approx(weights @ [a.cost for a in b.alignments])
    for a, X in zip(b.alignments, series, strict=True):
        assert a.rescore() == pytest.approx(a.cost)
        assert a.shape == (len(b.average), len(X))
        assert not a.dropped_z.any()
    if not any(isinstance(value, str) and value in ("suggest", "percentile:25") for value in how.values()):
        assert b.cost == pytest.approx(weights @ [price(b.average, X, how) for X in series])


@every_way
@pytest.mark.filterwarnings("ignore:the cosine of one-dimensional")
def test_no_round_raises_the_cost(how):
    """Seen round by round, so that a round that raised it could not hide."""
    series, found = ragged(seed=3), []
    frozen = {k: v for k, v in how.items() if k not in ("init", "length", "max_iter")}
    start = barycenter(series, **(how | {"max_iter": 0}))
    if isinstance(how.get("drop_x"), str) or isinstance(how.get("open_x"), str):
        return  # restarting would read the rules anew
    Z, weights = start.average, np.asarray(how.get("weights", np.ones(5)))
    for _ in range(6):
        found.append(weights @ [price(Z, X, how) for X in series])
        alignments = barycenter(series, init=Z, **frozen, max_iter=0).alignments
        Z = means(Z, alignments, series, weights, how)
    assert (np.diff(found) <= 1e-9 * np.abs(found[:-1])).all()


@pytest.mark.parametrize("seed", [0, 18, 19])
def test_rounding_does_not_raise_the_cost_either(seed):
    """Differences of 10⁻⁶ between numbers of 10⁹: means are rounded by as much as they differ."""
    b = barycenter([1e-6 * X + 1e9 for X in ragged(seed=seed)], length=7, tol=0, max_iter=100)
    assert (np.diff(b.costs) <= 0).all()
    assert b.cost == pytest.approx(sum(a.rescore() for a in b.alignments))


def means(Z, alignments, series, weights, how):
    """Each z the mean of what matches it."""
    out = np.array(Z, float)
    vectors = series
    if how.get("match") == "cosine":
        vectors = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in series]
    for i in range(len(out)):
        parts = []
        for a, X, w in zip(alignments, vectors, weights, strict=True):
            times = np.ones(len(a.pairs)) if a.weights is None else a.weights
            parts += [(w * t, X[j]) for (z, j), t in zip(a.pairs.tolist(), times, strict=True) if z == i]
        each, values = zip(*parts, strict=True)
        if sum(each) > 0:
            out[i] = np.average(values, axis=0, weights=each)
    return out


@every_way
@pytest.mark.filterwarnings("ignore:the cosine of one-dimensional")
def test_an_average_that_has_settled_is_the_mean_of_what_it_matches(how):
    series = ragged(seed=1, features=2)
    b = barycenter(series, **({"max_iter": 500} | how), tol=0)
    if how.get("executor") != "reference":
        assert b.converged
        weights = np.asarray(how.get("weights", np.ones(5)))
        np.testing.assert_allclose(b.average, means(b.average, b.alignments, series, weights, how), atol=1e-9)


@pytest.mark.parametrize("drop", [None, 0.3, 2.0])
def test_all_averages_of_tiny_series_cost_as_much_at_least(drop):
    """Every choice of alignments has a best average; the cheapest of all is what `barycenter` cannot beat."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        series = [rng.normal(size=n) for n in (2, 3, 3)]
        best, best_Z = np.inf, None
        each = []
        for X in series:
            d = np.full(len(X), np.inf if drop is None else drop)
            each.append([M for M, cost in oracle.alignments(np.zeros((2, len(X))), d) if np.isfinite(cost)])
        for Ms in product(*each):
            M, X = np.concatenate(Ms, axis=1), np.concatenate(series)
            Z = (M * X).sum(axis=1) / M.sum(axis=1)
            cost = (M * (Z[:, None] - X) ** 2).sum() + (0 if drop is None else drop * (~M.any(axis=0)).sum())
            if cost < best:
                best, best_Z = cost, Z
        assert barycenter(series, drop_x=drop, length=2).cost >= best - 1e-12
        settled = barycenter(series, drop_x=drop, init=best_Z)
        np.testing.assert_allclose(settled.average, best_Z)
        assert settled.cost == pytest.approx(best)


def test_weights_count_series_several_times():
    series = ragged(seed=2)
    start = series[0]
    twice = barycenter([*series, series[1], series[4], series[4]], drop_x=0.5, init=start)
    weighted = barycenter(series, [1, 2, 1, 1, 3], 0.5, init=start)
    np.testing.assert_allclose(weighted.average, twice.average, atol=1e-9)
    without = barycenter(series[1:], drop_x=0.5, init=start)
    np.testing.assert_allclose(barycenter(series, [0, 1, 1, 1, 1], 0.5, init=start).average, without.average)


def test_the_order_of_series_does_not_matter():
    series = ragged(seed=4, features=2)
    np.testing.assert_allclose(
        barycenter(series, drop_x=0.5).average, barycenter(series[::-1], drop_x=0.5).average, atol=1e-9
    )


def test_one_series_is_its_own_average():
    X = ragged()[0]
    for init in ("mean", "medoid", X):
        b = barycenter([X], drop_x=0.5, init=init)
        np.testing.assert_allclose(b.average, X)
        assert b.cost == 0


def test_the_medoid_is_the_cheapest_of_the_series():
    series = ragged(seed=5)
    D = dropdtw.pairwise(series, drop_x=0.5, match="sqeuclidean")
    weights = np.array([1.0, 5.0, 1.0, 0.0, 2.0])
    b = barycenter(series, weights, 0.5, init="medoid", max_iter=0)
    np.testing.assert_array_equal(b.average, series[int((D @ weights).argmin())])
    assert b.cost == pytest.approx((D @ weights).min())


def junked(seed, n=16, junk=0.2):
    """Warped series of one shape, a fifth of each foreign; and the shape."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, 60)
    shape = np.sin(2 * np.pi * t) * np.exp(-t)
    series = []
    for _ in range(n):
        steps = rng.gamma(2.0, size=int(rng.integers(50, 70))).cumsum()
        X = np.interp((steps - steps[0]) / (steps[-1] - steps[0]), t, shape) + rng.normal(0, 0.03, len(steps))
        at, many = int(rng.integers(1, len(X))), round(len(X) * junk / (1 - junk))
        series.append(np.insert(X, at, rng.normal(rng.choice([-2, 2]), 0.3, many)))
    return series, shape


@pytest.mark.parametrize("seed", range(3))
def test_junk_in_the_series_is_not_in_the_average(seed):
    series, shape = junked(seed)
    error = {}
    for drop in (None, 0.02, "percentile:20"):
        b = barycenter(series, drop_x=drop)
        a = dropdtw.align(b.average, shape, match="sqeuclidean")
        error[drop] = np.sqrt(a.cost / len(a.pairs))
    assert error[None] > 0.2
    assert error[0.02] < 0.05
    assert error["percentile:20"] < 0.05
    b = barycenter(series, drop_x=0.02)
    assert np.mean([a.dropped_x.mean() for a in b.alignments]) == pytest.approx(0.2, abs=0.05)


def test_missing_elements_might_as_well_be_deleted():
    rng = np.random.default_rng(0)
    series = ragged(seed=6, features=2)
    holed, left = [], []
    for X in series:
        gone = rng.random(len(X)) < 0.3
        gone[0] = False
        holed.append(np.where(gone[:, None], np.nan, X))
        left.append(X[~gone])
    ours, theirs = barycenter(holed, drop_x=0.5, missing="drop"), barycenter(left, drop_x=0.5)
    np.testing.assert_array_equal(ours.average, theirs.average)
    np.testing.assert_array_equal(ours.costs, theirs.costs)
    for a, b, X in zip(ours.alignments, theirs.alignments, holed, strict=True):
        np.testing.assert_array_equal(a.missing_x, np.isnan(X).any(axis=1))
        np.testing.assert_array_equal(a.labels[~a.missing_x], b.labels)
        assert a.rescore() == pytest.approx(b.cost)
    each = rng.random(9)
    same = [np.where(rng.random(9) < 0.3, np.nan, rng.normal(size=9)) for _ in range(3)]
    b = barycenter(same, drop_x=each, missing="drop", length=4)
    expected = [distance(b.average, X[~np.isnan(X)], each[~np.isnan(X)], match="sqeuclidean") for X in same]
    assert b.cost == pytest.approx(sum(expected))


def test_starts_may_miss_elements_too():
    rng = np.random.default_rng(1)
    start = np.array([0.0, np.nan, 1.0, 2.0])
    series = [X[:, 0] for X in ragged(seed=8)]
    found = barycenter(series, drop_x=0.5, init=start, missing="drop")
    np.testing.assert_array_equal(found.average, barycenter(series, drop_x=0.5, init=[0.0, 1.0, 2.0]).average)
    with pytest.raises(ValueError, match=r"init has NaN .* missing='drop'"):
        barycenter(series, init=start)
    each = rng.random(9)
    holed = [np.where(rng.random(9) < 0.3, np.nan, rng.normal(size=9)) for _ in range(4)]
    there = [~np.isnan(X) for X in holed]
    D = [[distance(Z[z], X[x], each[x], match="sqeuclidean") for X, x in zip(holed, there, strict=True)]
         for Z, z in zip(holed, there, strict=True)]  # fmt: skip
    b = barycenter(holed, drop_x=each, init="medoid", missing="drop", max_iter=0)
    best = int(np.sum(D, axis=1).argmin())
    np.testing.assert_array_equal(b.average, holed[best][there[best]])
    assert b.cost == pytest.approx(sum(D[best]))


def test_answers_do_not_depend_on_threads_precision_or_form(monkeypatch):
    from dropdtw.search import pairwise

    series = [np.float32(X) for X in ragged(seed=7, features=2)]
    b = barycenter(series, drop_x=0.5, n_jobs=1)
    assert b.average.dtype == np.float64
    for X in ([X.tolist() for X in series], [X.astype(float) for X in series]):
        np.testing.assert_array_equal(barycenter(X, drop_x=0.5).average, b.average)
    monkeypatch.setattr(pairwise, "ENOUGH", 1)
    np.testing.assert_array_equal(barycenter(series, drop_x=0.5, n_jobs=3).average, b.average)


def test_numbers_give_numbers_and_input_stays():
    series = [X[:, 0] for X in ragged()]
    before = [X.copy() for X in series]
    b = barycenter(series, drop_x=0.5, init=series[0])
    assert b.average.shape == series[0].shape
    b.average[:] = 0
    for X, old in zip(series, before, strict=True):
        np.testing.assert_array_equal(X, old)
    assert barycenter([series[0], series[1][:, None]]).average.ndim == 2
    assert "5 series" in repr(b)


def test_progress_is_told():
    seen = []
    barycenter(ragged(), drop_x=0.5, max_iter=3, tol=0, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (20, 20)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_rounds_that_are_used_up_are_told():
    assert not barycenter(ragged(), max_iter=1, tol=0).converged
    assert len(barycenter(ragged(), max_iter=0).costs) == 1


X1, X2 = [[0.0, 1.0], [1.0, 1.0]], [[0.0], [1.0]]
WRONG = {
    "empty": (([],), {}, "series is empty; give at least one sequence"),
    "no list": ((3,), {}, "series is 3; give a list of sequences"),
    "NaN": (([[1.0, np.nan]],), {}, r"series\[0\] has NaN .* or give missing='drop'"),
    "features": (([X1, X2],), {}, r"series\[0\] has 2 features and series\[1\] has 1"),
    "match": (([X1],), {"match": "euclidean"}, "match is 'euclidean'; averages are known for 'sqeuclidean'"),
    "callable": (([X1],), {"match": lambda Z, X: Z @ X.T}, "averages are known for"),
    "method": (([X1],), {"method": "greedy"}, "method is 'greedy', for which the mean .* choose one of 'drop_dtw'"),
    "weights": (([X1], [1, 2]), {}, r"weights is \[1, 2\]; give 1 finite numbers ≥ 0"),
    "no weight": (([X1, X1], [0, 0]), {}, "not all 0"),
    "negative weight": (([X1, X1], [1, -1]), {}, "finite numbers ≥ 0"),
    "init": (([X1],), {"init": "random"}, "init is 'random'; give 'mean', 'medoid', or a series"),
    "init's features": (([X1],), {"init": X2}, "init has 1 features and the series have 2; both need"),
    "length": (([X1],), {"length": 0}, "length is 0; give the length of the average, 1 or more"),
    "length of a medoid": (([X1],), {"length": 3, "init": "medoid"}, "length applies only to init='mean'"),
    "max_iter": (([X1],), {"max_iter": -1}, "max_iter is -1; give the maximum number of rounds"),
    "tol": (([X1],), {"tol": np.nan}, "tol is nan; give a finite number ≥ 0"),
    "window": (([[0.0] * 9],), {"length": 2, "window": 0}, "the smallest window that allows one is"),
    "drop_x": (([X1],), {"drop_x": [1.0]}, r"drop_x has shape \(1,\), but there are 2 elements x_j"),
    "logit": (([X1],), {"drop_x": "logit:30"}, "drop_x is 'logit:30', a logit in the softmax cost"),
}


@pytest.mark.parametrize(("args", "options", "says"), WRONG.values(), ids=WRONG)
def test_messages_say_what_arrived_and_what_to_do(args, options, says):
    with pytest.raises(ValueError, match=says):
        barycenter(*args, **options)


def test_symbols_have_no_mean():
    with pytest.raises(ValueError, match=r"series holds symbols, which have no mean; use .*pairwise\(series"):
        dropdtw.barycenter(["GATTACA", "GATCA"])
