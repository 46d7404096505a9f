"""If every alignment is forbidden, values are infinite; alignments raise an error that gives a window that works."""

import re

import numpy as np
import pytest

import dropdtw
from cases import OF_COSTS
from dropdtw import align, cost, distance, pairwise, posterior, solve

Z, X = np.eye(2), np.ones((3, 2))

must_match = pytest.mark.parametrize("method", [name for name in OF_COSTS if dropdtw.METHODS[name].must_match_z])
may_be_empty = pytest.mark.parametrize("method", [name for name in OF_COSTS if not dropdtw.METHODS[name].must_match_z])


def forbid(Z, X):
    return np.full((len(Z), len(X)), np.inf)


@must_match
@pytest.mark.parametrize("reducer", ["hard", "soft", "smooth"])
def test_values_of_the_impossible_are_infinite(method, reducer):
    options = {"method": method, "reducer": reducer}
    assert cost(forbid(Z, Z), **options) == np.inf
    assert distance(Z, Z, match=forbid, **options) == np.inf
    np.testing.assert_array_equal(pairwise([Z, Z], match=forbid, **options), np.full((2, 2), np.inf))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_masked_match_is_forbidden(dtype):
    hidden = np.array([[0, 0, 1, 0], [0, 0, 0, 0]], bool)
    C = np.array([[5, 2, -9999, 4], [6, 1, 2, 3]], dtype)
    masked, forbidden = np.ma.array(C, mask=hidden), np.where(hidden, np.inf, C)
    for given in (masked, list(masked)):
        np.testing.assert_array_equal(solve(given, 9.0).problem.C, forbidden)
        assert cost(given, "percentile:50") == cost(forbidden, "percentile:50")
    assert C[0, 2] == -9999
    assert (masked.mask == hidden).all()
    assert distance(np.eye(2), np.ones((4, 2)), 9.0, match=lambda Z, X: masked) == cost(forbidden, 9.0)


def test_a_masked_array_without_a_masked_value_is_plain_data():
    Z = np.ma.masked_equal([[0.0, 1.0], [2.0, 3.0]], -9999.0)
    assert distance(Z, Z.data + 1, np.ma.array([0.5, 0.5])) == distance(Z.data, Z.data + 1, 0.5)


@must_match
def test_answers_to_the_impossible_are_errors(method):
    for ask in (
        lambda: solve(forbid(Z, Z), method=method),
        lambda: align(Z, Z, match=forbid, method=method),
        lambda: posterior(forbid(Z, Z), method=method),
    ):
        with pytest.raises(ValueError, match=r"^every alignment is forbidden"):
            ask()


@may_be_empty
def test_methods_with_an_empty_alignment_find_it(method):
    threshold = 1 if dropdtw.METHODS[method].takes_threshold else None
    a = solve(forbid(Z, X), method=method, threshold=threshold)
    assert a.cost == (dropdtw.METHODS[method].drop_cost or 0) * (len(Z) + len(X))
    assert len(a.pairs) == 0
    assert posterior(forbid(Z, X), method=method, threshold=threshold).drop_x.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "method", [name for name in OF_COSTS if dropdtw.METHODS[name].must_match_z and dropdtw.METHODS[name].slopes is None]
)
@pytest.mark.parametrize("shape", [(3, 9), (4, 11), (6, 8)])
@pytest.mark.parametrize("early", [True, False])
def test_least_window_is_the_least(method, shape, early):
    K, N = shape
    detour = np.full(shape, np.inf)  # one path, as far from the diagonal as possible
    detour[0 if early else -1, : N - K + 1 if early else None] = 0.5
    detour[range(K), range(N - K, N) if early else range(K)] = 0.5
    options = {"method": method} | ({"drop_x": 2} if dropdtw.METHODS[method].takes_drops else {})
    feasible = [np.isfinite(cost(detour, window=w, **options)) for w in range(N)]
    with pytest.raises(ValueError, match="fits into this window") as caught:
        solve(detour, window=0, **options)
    least = int(re.search(r"the smallest window that allows one is (\d+)", str(caught.value))[1])
    assert feasible[least]
    assert not any(feasible[:least])
    assert solve(detour, window=least, **options).rescore() < np.inf


def test_a_window_of_any_size_is_no_window():
    C = np.random.default_rng(0).random((3, 7))
    for window in (7, 10**9, 10**400):
        assert dropdtw.cost(C, 0.3, window=window) == dropdtw.cost(C, 0.3)
