"""What several libraries have: DTW, subsequence DTW, soft-DTW and LCSS."""

import numpy as np
import pytest
from aeon.distances import (
    ddtw_alignment_path,
    ddtw_distance,
    dtw_alignment_path,
    lcss_distance,
    soft_dtw_distance,
    wdtw_alignment_path,
    wdtw_distance,
)
from librosa.sequence import dtw as librosa_dtw
from pytest import approx
from scipy.spatial.distance import cdist
from tslearn import metrics as tslearn

import dropdtw

LENGTHS = [(1, 1), (1, 6), (6, 1), (7, 12), (20, 20), (33, 21), (90, 130)]
SQUARED = {"method": "dtw", "match": "sqeuclidean"}


def series(seed, *features):
    rng = np.random.default_rng(seed)
    for K, N in LENGTHS:
        yield rng.normal(size=(K, *features)), rng.normal(size=(N, *features))


def test_dtw_is_everyones(executor):
    for z, x in series(0, 2):
        a = dropdtw.align(z, x, **SQUARED, executor=executor)
        path, value = dtw_alignment_path(z.T, x.T)
        assert a.cost == approx(value, rel=1e-12)
        assert a.pairs.tolist() == [list(pair) for pair in path]
        path, root = tslearn.dtw_path(z, x)
        assert a.cost**0.5 == approx(root, rel=1e-12)
        assert a.pairs.tolist() == [[int(i), int(j)] for i, j in path]
        D, backwards = librosa_dtw(z.T, x.T, metric="sqeuclidean")
        assert a.cost == approx(D[-1, -1], rel=1e-12)
        assert a.pairs.tolist() == backwards[::-1].tolist()


def test_subsequences_are_those_of_librosa_and_tslearn(executor):
    rng = np.random.default_rng(1)
    for K, N in [(1, 5), (6, 20), (20, 60)]:
        z, x = rng.normal(size=(K, 2)), rng.normal(size=(N, 2))
        a = dropdtw.align(z, x, method="subsequence", match="sqeuclidean", executor=executor)
        D, backwards = librosa_dtw(z.T, x.T, metric="sqeuclidean", subseq=True)
        assert a.cost == approx(D[-1].min(), rel=1e-12)
        assert a.pairs.tolist() == backwards[::-1].tolist()
        path, root = tslearn.dtw_subsequence_path(z, x)
        assert a.cost**0.5 == approx(root, rel=1e-12)
        assert a.pairs.tolist() == [[int(i), int(j)] for i, j in path]


@pytest.mark.parametrize("gamma", [0.01, 0.5, 5.0])
def test_soft_dtw_is_that_of_tslearn_and_aeon(gamma, executor):
    """In aeon a value below 0 loses its sign."""
    for z, x in series(2, 2):
        value = dropdtw.distance(z, x, **SQUARED, reducer="soft", gamma=gamma, executor=executor)
        assert value == approx(tslearn.soft_dtw(z, x, gamma=gamma), rel=1e-10, abs=1e-10)
        assert abs(value) == approx(soft_dtw_distance(z.T, x.T, gamma=gamma), rel=1e-10, abs=1e-10)


def test_lcss_counts_pairs_up_to_the_threshold_as_tslearn_and_aeon(executor):
    lcss = {"method": "lcss", "match": "euclidean", "executor": executor}
    for z, x in series(3):
        count = -dropdtw.distance(z, x, **lcss, threshold=0.5)
        assert count / min(len(z), len(x)) == approx(tslearn.lcss(z, x, eps=0.5))
        assert 1 - count / min(len(z), len(x)) == approx(lcss_distance(z, x, epsilon=0.5))
    rng = np.random.default_rng(4)
    for K, N in [(5, 5), (8, 12), (30, 20)]:
        z, x = rng.integers(0, 9, K).astype(float), rng.integers(0, 9, N).astype(float)  # many at the threshold itself
        for eps in (0.0, 1.0, 2.0):
            count = -dropdtw.distance(z, x, **lcss, threshold=eps)
            assert count / min(K, N) == approx(tslearn.lcss(z, x, eps=eps))
            assert 1 - count / min(K, N) == approx(lcss_distance(z, x, epsilon=eps))


@pytest.mark.parametrize("method", ["ddtw", "wdtw"])
def test_ddtw_and_wdtw_are_those_of_aeon(method, executor):
    """Paths of derivatives count from the second element."""
    distance, path = {
        "ddtw": (ddtw_distance, ddtw_alignment_path),
        "wdtw": (wdtw_distance, wdtw_alignment_path),
    }[method]
    for z, x in series(5):
        if method == "wdtw" or min(len(z), len(x)) > 2:
            a = dropdtw.align(z, x, method=method, executor=executor)
            assert a.cost == approx(distance(z, x), rel=1e-12)
            assert dropdtw.distance(z, x, method=method, executor=executor) == approx(distance(z, x), rel=1e-12)
            first = 1 if method == "ddtw" else 0
            assert a.pairs.tolist() == [[int(i) + first, int(j) + first] for i, j in path(z, x)[0]]


@pytest.mark.parametrize("g", [0.01, 0.2, 1.0])
def test_wdtw_with_other_weights_is_that_of_aeon(g, executor):
    for z, x in series(6):
        assert dropdtw.distance(z, x, method=dropdtw.wdtw(g), executor=executor) == approx(wdtw_distance(z, x, g=g))


@pytest.mark.parametrize("metric", ["cityblock", "chebyshev", "correlation"])
def test_match_costs_are_those_of_scipy(metric):
    for z, x in series(7, 4):
        np.testing.assert_allclose(dropdtw.costs.MATCH_COSTS[metric](z, x), cdist(z, x, metric), rtol=0, atol=1e-12)
