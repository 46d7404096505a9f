"""Averages without drops: DBA as tslearn and aeon have it, from the same start."""

import numpy as np
import pytest
from aeon.clustering.averaging import elastic_barycenter_average
from tslearn.barycenters import dtw_barycenter_averaging, dtw_barycenter_averaging_petitjean
from tslearn.utils import to_time_series_dataset

from dropdtw import barycenter

pytestmark = pytest.mark.filterwarnings("ignore")


def walks(seed, lengths, features):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, features)).cumsum(axis=0) for n in lengths]


@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.parametrize("lengths", [(12,) * 6, (9, 14, 11, 17, 12)])
@pytest.mark.parametrize("theirs", [dtw_barycenter_averaging, dtw_barycenter_averaging_petitjean])
def test_averages_are_those_of_tslearn(features, lengths, theirs):
    for seed in range(3):
        series = walks(seed, lengths, features)
        start = series[0][:9]
        expected = theirs(to_time_series_dataset(series), init_barycenter=start, barycenter_size=9, max_iter=200, tol=0)
        found = barycenter(series, init=start, max_iter=200, tol=0)
        np.testing.assert_allclose(found.average, expected, atol=1e-6)


def test_weights_are_those_of_tslearn():
    series, weights = walks(5, (9, 14, 11), 2), np.array([0.2, 0.5, 0.3])
    expected = dtw_barycenter_averaging(
        to_time_series_dataset(series), init_barycenter=series[0], weights=weights, max_iter=200, tol=0
    )
    found = barycenter(series, weights, init=series[0], max_iter=200, tol=0)
    np.testing.assert_allclose(found.average, expected, atol=1e-6)


@pytest.mark.parametrize("features", [1, 3])
def test_averages_are_those_of_aeon(features):
    for seed in range(3):
        series = walks(seed, (12,) * 6, features)
        stack = np.stack([X.T for X in series])
        expected = elastic_barycenter_average(
            stack, distance="dtw", init_barycenter=series[0].T.copy(), max_iters=200, tol=0.0
        )
        found = barycenter(series, init=series[0], max_iter=200, tol=0)
        np.testing.assert_allclose(found.average, expected.T, atol=1e-6)
