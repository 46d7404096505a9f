"""`max_cost`: values up to it are unchanged, to the last bit, and larger ones are +∞."""

import numpy as np
import pytest

import dropdtw
from cases import VARIANTS, cases, name
from dropdtw import orders
from dropdtw.executors import EXECUTORS

compiled = pytest.mark.skipif("cpp" not in EXECUTORS, reason="the compiled executor is not installed")

LENGTHS = (9, 14, 21, 33)
REQUESTS = {
    "numbers, in lanes": (1, {"drop_x": 0.4, "drop_z": 0.4, "match": "sqeuclidean"}),
    "plain DTW": (1, {}),
    "negative drop costs": (1, {"drop_x": -0.4, "drop_z": -0.1}),
    "vectors": (12, {"drop_x": 0.4, "match": "cosine"}),
    "a window": (3, {"match": "euclidean", "window": 0.7}),
    "a percentile": (3, {"drop_x": "percentile:40", "drop_z": "percentile:20", "match": "euclidean"}),
    "lcss": (2, {"method": "lcss", "threshold": 0.5, "match": "euclidean"}),
    "smith_waterman": (1, {"method": "smith_waterman", "drop_x": 0.5, "drop_z": 0.5, "match": lambda Z, X: Z * X.T}),
    "soft": (1, {"reducer": "soft", "gamma": 0.5}),
    "smooth": (4, {"reducer": "smooth", "gamma": 0.5, "drop_x": 0.3, "match": "cosine"}),
    "by pattern": (1, {"method": "symmetric2", "normalize": "pattern"}),
    "by pattern, of vectors": (12, {"method": "symmetric2", "normalize": "pattern", "match": "cosine"}),
    "the reference": (1, {"executor": "reference", "drop_x": 0.2}),
}
every_request = pytest.mark.parametrize(("d", "asked"), REQUESTS.values(), ids=REQUESTS)


def around(value):
    """Limits below, at and above a value."""
    near = (np.nextafter(value, -np.inf), value, np.nextafter(value, np.inf))
    return [limit for limit in (*near, value - 1, value + 1, 0.0, -np.inf, np.inf) if not np.isnan(limit)]


def sequences(d, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)).astype(dtype) for n in LENGTHS]


@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS, ids=name)
def test_a_cost_is_exact_up_to_the_limit_and_infinite_above(variant):
    for case in cases(variant)[::5]:
        full = dropdtw.cost(**case.library())
        for limit in around(full):
            assert dropdtw.cost(**case.library(max_cost=limit)) == (full if full <= limit else np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_request
def test_a_distance_is_exact_up_to_the_limit_and_infinite_above(d, asked, dtype):
    Z, X = sequences(d, dtype)[1:3]
    full = dropdtw.distance(Z, X, **asked)
    assert np.isfinite(full)
    for limit in around(full):
        assert dropdtw.distance(Z, X, max_cost=limit, **asked) == (full if full <= limit else np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_request
def test_pairs_are_exact_up_to_the_limit_and_infinite_above(d, asked, dtype):
    Zs = sequences(d, dtype)
    for Xs in (None, sequences(d, dtype, seed=1)):
        full = dropdtw.pairwise(Zs, Xs, n_jobs=1, **asked)
        for limit in (np.median(full), full.max(), full.min(), full.min() - 1, np.inf):
            expected = np.where(full <= limit, full, np.inf)
            np.testing.assert_array_equal(dropdtw.pairwise(Zs, Xs, n_jobs=1, max_cost=limit, **asked), expected)


def test_steps_with_an_order_have_a_limit_too():
    C = np.random.default_rng(0).random((4, 12))
    asked = {"drop_x": 0.2, "order": orders.before(4, [(0, 1), (0, 2), (1, 3), (2, 3)])}
    full = dropdtw.cost(C, **asked)
    for limit in around(full):
        assert dropdtw.cost(C, max_cost=limit, **asked) == (full if full <= limit else np.inf)


@compiled
def test_what_exceeds_the_limit_is_given_up(monkeypatch):
    """Distant sequences exceed the limit after a few cells, on every path."""
    from dropdtw.executors import cpu

    spared = []

    def watch(function, share):
        def call(*arguments, **named):
            found = function(*arguments, **named)
            spared.append(share(found))
            return found

        return call

    monkeypatch.setattr(cpu, "within", watch(cpu.within, lambda found: found.spared))
    monkeypatch.setattr(cpu, "pairwise", watch(cpu.pairwise, lambda found: found.spared))
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(200, 12)), rng.normal(size=(200, 12)) + 50
    assert dropdtw.distance(near, far, match="sqeuclidean", max_cost=10.0) == np.inf
    assert dropdtw.cost(dropdtw.costs.euclidean(near, far), max_cost=10.0) == np.inf
    assert dropdtw.pairwise([near], [far, far], match="cosine", max_cost=1e-3, n_jobs=1).min() == np.inf
    assert dropdtw.pairwise([near[:, 0]], [far[:, 0]] * 3, max_cost=10.0, n_jobs=1).min() == np.inf
    assert len(spared) >= 4
    assert min(spared) > 0.9


def test_a_limit_is_a_number():
    for wrong in ("10", np.nan, [1.0], True):
        for call in (lambda m: dropdtw.distance([0.0], [1.0], max_cost=m), lambda m: dropdtw.cost([[1.0]], max_cost=m)):
            with pytest.raises(ValueError, match="give the largest cost of interest, a number"):
                call(wrong)
    assert dropdtw.distance(np.zeros(3), np.ones(3), max_cost=2) == np.inf
    assert dropdtw.distance(np.zeros(3), np.ones(3), max_cost=np.float32(3)) == 3


def test_a_new_limit_checks_nothing_else_again():
    from dropdtw import aligner

    before = aligner._cached.cache_info().misses
    C = np.ones((2, 2))
    for limit in (1.5, 2.5, 3.5):
        dropdtw.cost(C, 0.7771, max_cost=limit)
    assert aligner._cached.cache_info().misses <= before + 1
