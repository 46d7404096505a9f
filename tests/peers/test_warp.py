"""The warp penalty: against ADTW in aeon and `penalty` in dtaidistance.

aeon adds `warp_penalty` to each step that repeats an element; values are plain sums of squared differences: it is our
`warp` with match="sqeuclidean". dtaidistance gives √Σ(differences²) and states its penalty in the same units, so each
such step adds penalty² under the root: warp = penalty². With inner_dist="euclidean" there is no root; its Python code
then adds the penalty itself, its C code still the square.

Values agree with both. Paths are compared with those of dtaidistance's C code only: aeon's `adtw_alignment_path` and
dtaidistance's `warping_path` in Python walk back without the penalty, and so return paths that cost more than the value
next to them. `distance_fast` is told not to prune, because its upper bound ignores the penalty: it returns inf for
values above the bound.
"""

import numpy as np
import pytest
from aeon.distances import adtw_alignment_path, adtw_distance, adtw_pairwise_distance
from dtaidistance import dtw, dtw_ndim
from pytest import approx

import dropdtw

LENGTHS = [(1, 1), (1, 6), (6, 1), (2, 2), (7, 12), (20, 20), (33, 21), (64, 65), (130, 90)]
PENALTIES = [0.0, 0.05, 0.4, 1.0, 3.0, 50.0]
SQUARED = {"method": "dtw", "match": "sqeuclidean"}
pytestmark = pytest.mark.filterwarnings("ignore:unsafe cast from uint64 to int64")  # Numba's, compiling aeon
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)


def series(seed, *features):
    rng = np.random.default_rng(seed)
    for K, N in LENGTHS:
        yield rng.normal(size=(K, *features)), rng.normal(size=(N, *features))
        yield rng.normal(size=(K, *features)).cumsum(axis=0), rng.normal(size=(N, *features)).cumsum(axis=0)


@every_penalty
def test_values_are_those_of_adtw_in_aeon(penalty, executor):
    for z, x in [*series(0), *series(1, 3)]:  # aeon puts channels first
        value = dropdtw.distance(z, x, **SQUARED, warp=penalty, executor=executor)
        assert value == approx(adtw_distance(z.T, x.T, warp_penalty=penalty), rel=1e-12)


@every_penalty
def test_all_pairs_are_those_of_aeon_and_dtaidistance(penalty, executor):
    rng = np.random.default_rng(2)
    A, B = (list(rng.normal(size=(n, 24)).cumsum(axis=1)) for n in (9, 7))
    ours = dropdtw.pairwise(A, B, **SQUARED, warp=penalty**2, executor=executor)
    np.testing.assert_allclose(ours, adtw_pairwise_distance(np.array(A), np.array(B), warp_penalty=penalty**2), 1e-12)
    among = dropdtw.pairwise(A, **SQUARED, warp=penalty**2, executor=executor) ** 0.5
    np.testing.assert_allclose(among, dtw.distance_matrix(A, penalty=penalty), 1e-12)


@every_penalty
def test_values_are_those_of_dtaidistance(penalty, executor):
    for z, x in series(3):
        value = dropdtw.distance(z, x, **SQUARED, warp=penalty**2, executor=executor) ** 0.5
        assert value == approx(dtw.distance(z, x, penalty=penalty), rel=1e-12)
        assert value == approx(dtw.distance_fast(z, x, penalty=penalty, use_pruning=False), rel=1e-12)
    for z, x in series(4, 3):
        value = dropdtw.distance(z, x, **SQUARED, warp=penalty**2, executor=executor) ** 0.5
        assert value == approx(dtw_ndim.distance(z, x, penalty=penalty), rel=1e-12)


@every_penalty
def test_without_the_root_dtaidistance_adds_the_penalty_itself_in_python_and_its_square_in_c(penalty, executor):
    absolute = {"method": "dtw", "match": "euclidean", "executor": executor}
    for z, x in series(5):
        in_python = dtw.distance(z, x, penalty=penalty, inner_dist="euclidean")
        assert dropdtw.distance(z, x, **absolute, warp=penalty) == approx(in_python, rel=1e-12)
        in_c = dtw.distance_fast(z, x, penalty=penalty, inner_dist="euclidean", use_pruning=False)
        assert dropdtw.distance(z, x, **absolute, warp=penalty**2) == approx(in_c, rel=1e-12)


@every_penalty
def test_paths_are_those_of_dtaidistance_in_c(penalty, executor):
    """Among series of random numbers the best path is unique."""
    for z, x in series(6):
        a = dropdtw.align(z, x, **SQUARED, warp=penalty**2, executor=executor)
        assert a.pairs.tolist() == [[int(i), int(j)] for i, j in dtw.warping_path_fast(z, x, penalty=penalty)]


def test_what_docs_migrating_says_of_peers_that_forget_the_penalty():
    """Should a newer version fail this, the page and this file have a warning less to give."""
    rng = np.random.default_rng(7)
    series = [(rng.normal(size=12), rng.normal(size=15)) for _ in range(50)]
    values = [dropdtw.distance(z, x, **SQUARED, warp=1.0) for z, x in series]
    paths = {
        "aeon": [adtw_alignment_path(z, x, warp_penalty=1.0)[0] for z, x in series],
        "dtaidistance": [dtw.warping_path(z, x, penalty=1.0) for z, x in series],
    }
    for found in paths.values():
        paid = [pays(np.array(path), z, x, warp=1.0) for path, (z, x) in zip(found, series, strict=True)]
        assert np.greater(paid, np.array(values) + 1e-9).any()
    assert np.isinf([dtw.distance_fast(z, x, penalty=1.0) for z, x in series]).any()


def pays(path, z, x, warp):
    """What a path costs: its squared differences, and the penalty for each pair that repeats an element."""
    repeats = (np.diff(path, axis=0) == 0).any(axis=1).sum()
    return ((z[path[:, 0]] - x[path[:, 1]]) ** 2).sum() + warp * repeats
