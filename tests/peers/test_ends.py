"""Free ends against dtaidistance's psi and dtw-python's open ends; occurrences against dtaidistance's search."""

import numpy as np
import pytest
from dtaidistance import dtw as dtaidistance
from dtaidistance.subsequence.dtw import subsequence_alignment
from dtw import dtw
from pytest import approx

import dropdtw

LENGTHS = [(1, 5), (6, 6), (9, 14), (20, 13), (30, 41)]
PSI = [(0, 0, 2, 0), (0, 0, 0, 3), (0, 0, 2, 2), (1, 0, 0, 0), (2, 1, 0, 0), (1, 2, 2, 1), (2, 2, 2, 2)]


def series(seed):
    rng = np.random.default_rng(seed)
    for K, N in LENGTHS:
        yield rng.normal(size=K), rng.normal(size=N)


@pytest.mark.parametrize("psi", PSI, ids=str)
def test_limits_are_psi_of_dtaidistance(psi, executor):
    """There psi is (begin, end) of the first series, then of the second, and the value is a root."""
    method = dropdtw.free_ends(x=psi[2:], z=psi[:2])
    compared = 0
    for z, x in series(0):
        if sum(psi[:2]) >= len(z) or sum(psi[2:]) >= len(x):
            continue
        compared += 1
        value = dropdtw.distance(z, x, method=method, match="sqeuclidean", executor=executor)
        assert value**0.5 == approx(dtaidistance.distance(z, x, psi=list(psi)), rel=1e-12)
        a = dropdtw.align(z, x, method=method, match="sqeuclidean", executor=executor)
        assert a.cost == approx(value, rel=1e-12)
    assert compared >= 3


def test_limits_go_together_with_the_penalty_of_dtaidistance(executor):
    """A step that repeats an element costs penalty² there."""
    for z, x in list(series(1))[2:]:
        method = dropdtw.free_ends(x=(2, 3), z=(0, 1))
        value = dropdtw.distance(z, x, method=method, match="sqeuclidean", warp=0.25, executor=executor)
        assert value**0.5 == approx(dtaidistance.distance(z, x, psi=[0, 1, 2, 3], penalty=0.5), rel=1e-12)


@pytest.mark.parametrize("ends", [(True, True), (True, False), (False, True)], ids=str)
def test_open_begin_and_end_are_those_of_dtw_python(ends):
    """dtw-python opens ends only with patterns that count each z once. No compiled kernel has these tables."""
    method = dropdtw.free_ends(x=ends, steps="asymmetric")
    for z, x in series(2):
        try:
            peer = dtw(z, x, step_pattern="asymmetric", open_begin=ends[0], open_end=ends[1])
        except ValueError:  # no path, as their slopes are limited
            assert dropdtw.distance(z, x, method=method) == np.inf
            continue
        a = dropdtw.align(z, x, method=method, match="euclidean")
        assert a.cost == approx(peer.distance, rel=1e-12)
        assert a.pairs.tolist() == np.stack([peer.index1, peer.index2], axis=1).tolist()
        value = dropdtw.distance(z, x, method=method, match="euclidean", normalize="pattern")
        assert value == approx(peer.normalizedDistance, rel=1e-12)


def test_every_end_costs_what_dtaidistance_says(executor):
    """Its matching function is the root of the cost by the length of the query; it charges warping unless penalty=0."""
    rng = np.random.default_rng(3)
    for K, N in [(3, 20), (8, 60)]:
        z, x = rng.normal(size=K), rng.normal(size=N)
        peer = subsequence_alignment(z, x, penalty=0, use_c=True)
        ours = np.full(N, np.inf)
        for o in dropdtw.find(z, x, max_cost=np.inf, overlap=1, match="sqeuclidean", executor=executor):
            ours[o.stop - 1] = o.cost
        assert np.sqrt(ours) / K == approx(np.asarray(peer.matching), rel=1e-10)
        best = peer.best_match()
        first = dropdtw.find(z, x, k=1, match="sqeuclidean", executor=executor)[0]
        assert list(best.segment) == [first.start, first.stop - 1]
