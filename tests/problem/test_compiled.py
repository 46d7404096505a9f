"""The compiled match costs: each equals its formula up to the last bits, at every position of the matrix."""

import os

import numpy as np
import pytest

from dropdtw import costs
from dropdtw.problem import compiled

pytestmark = pytest.mark.skipif(compiled._cpp is None, reason="the compiled executor is not installed")

SIZES = [(1, 1, 1), (3, 70, 2), (4, 16, 7), (5, 33, 8), (9, 129, 17), (2, 64, 33), (61, 67, 40), (8, 5, 130)]
every_precision = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def pair(K, N, d, dtype, offset=0.0):
    rng = np.random.default_rng(K + 7 * N + 31 * d)
    return tuple((rng.normal(size=(n, d)) + offset).astype(dtype) for n in (K, N))


def exactly(Z, X):
    """Squared distances of these numbers, in higher precision."""
    gaps = Z.astype(np.longdouble)[:, None] - X.astype(np.longdouble)[None]
    return (gaps**2).sum(axis=2)


@every_precision
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_squares_lose_nothing_by_cancelling(size, offset, dtype):
    """Every cost has a small relative error, even if z ≈ x far from 0: one rounding per term."""
    Z, X = pair(*size, dtype, offset)
    X[0] = np.nextafter(Z[0], np.inf)
    expected, eps = exactly(Z, X), np.finfo(dtype).eps
    for name, of in (("sqeuclidean", lambda v: v), ("euclidean", np.sqrt)):
        C = compiled.match_costs(name, Z, X)
        assert C.dtype == dtype
        assert (np.abs(C - of(expected)) <= (size[2] + 2) * eps * of(expected)).all()


@every_precision
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_cosines_of_scaled_rows(size, dtype):
    Z, X = pair(*size, dtype)
    units, lengths = costs.unit_rows(Z), compiled.row_lengths(X)
    wide, other = units.astype(np.longdouble), X.astype(np.longdouble)
    other = other / np.sqrt((other**2).sum(axis=1, keepdims=True))
    expected = np.clip(1 - wide @ other.T, 0, 2)
    bound = (size[2] + 4) * np.finfo(dtype).eps
    assert np.abs(compiled.match_costs("cosine", units, X, 1 / lengths) - expected).max() <= bound
    assert np.abs(compiled.match_costs("cosine", units, costs.unit_rows(X)) - expected).max() <= bound


@every_precision
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_a_cost_does_not_depend_on_the_rest_of_the_matrix(metric, dtype):
    Z, X = pair(13, 150, 21, dtype)
    scale = np.random.default_rng(0).random(150).astype(dtype)
    C = compiled.match_costs(metric, Z, X, scale)
    for rows, columns in ((slice(3, 4), slice(0, 150)), (slice(0, 13), slice(37, 98)), (slice(5, 11), slice(149, 150))):
        part = compiled.match_costs(metric, Z[rows], X[columns], scale[columns])
        np.testing.assert_array_equal(part, C[rows, columns])


@every_precision
def test_squares_are_symmetric_to_the_last_bit(dtype):
    Z, X = pair(20, 50, 24, dtype)
    np.testing.assert_array_equal(
        compiled.match_costs("sqeuclidean", Z, X), compiled.match_costs("sqeuclidean", X, Z).T
    )


@every_precision
def test_rows_may_lie_anywhere_and_be_read_only(dtype):
    Z, X = pair(7, 30, 12, dtype)
    C = compiled.match_costs("sqeuclidean", Z, X)
    wide = np.zeros((30, 24), dtype)
    wide[:, ::2] = X
    Z.flags.writeable = False
    for laid_out in (wide[:, ::2], np.asfortranarray(X), X[::-1][::-1]):
        np.testing.assert_array_equal(compiled.match_costs("sqeuclidean", Z, laid_out), C)


def test_threads_share_a_large_matrix_and_change_nothing(monkeypatch):
    Z, X = pair(700, 1500, 130, np.float32)
    counts = []
    real = compiled._cpp.match_costs
    stand_in = type("Cpp", (), {"match_costs": lambda *a: (counts.append(a[4]), real(*a))})
    monkeypatch.setattr(compiled, "_cpp", stand_in)
    for asked in ("1", "2"):
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", asked)
        C = compiled.match_costs("sqeuclidean", Z, X)
        np.testing.assert_array_equal(C[::300], compiled.match_costs("sqeuclidean", Z[::300], X))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert counts == [1, 1, min(2, cores), 1]


@every_precision
@pytest.mark.parametrize("d", [1, 7, 16, 33])
def test_lengths_of_rows(d, dtype):
    A = pair(9, 1, d, dtype)[0]
    np.testing.assert_allclose(compiled.row_lengths(A), np.linalg.norm(A.astype(float), axis=1), rtol=1e-6)
    A[2], A[4] = 0, np.finfo(dtype).max
    assert compiled.row_lengths(A)[[2, 4]].tolist() == [0, np.inf]
