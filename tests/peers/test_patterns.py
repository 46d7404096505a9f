"""Step patterns against dtw-python: values, norms, paths, windows, and lengths that no path fits.

Z is its query (`index1`), X its reference (`index2`).
"""

import numpy as np
import pytest
from dtw import dtw
from pytest import approx

import dropdtw

PATTERNS = ["symmetric1", "symmetric2", "asymmetric", "symmetricP05", "symmetricP1", "symmetricP2", "asymmetricP1"]
SLOPES = {"asymmetric": (0, 2), "symmetricP05": (1 / 3, 3), "symmetricP2": (2 / 3, 1.5)}
SLOPES |= dict.fromkeys(("symmetricP1", "asymmetricP1"), (0.5, 2))
LENGTHS = [(1, 1), (2, 2), (2, 3), (5, 8), (8, 5), (13, 13), (21, 30), (40, 25), (64, 65), (120, 200)]
every_pattern = pytest.mark.parametrize("pattern", PATTERNS)


def fits(pattern, K, N):
    """Whether a path goes from corner to corner: Sakoe and Chiba's slopes."""
    least, most = SLOPES.get(pattern, (0, np.inf))
    return (K == 1 and N == 1) or (K > 1 and least * (K - 1) <= N - 1 <= most * (K - 1)) or most == np.inf


def costs(pattern, seed):
    """Random costs, so that the best path is unique, of every length that fits, some of them below 0."""
    rng = np.random.default_rng(seed)
    for K, N in LENGTHS:
        if fits(pattern, K, N):
            yield rng.random((K, N))
            yield rng.normal(size=(K, N))


def theirs(C, pattern, **options):
    return dtw(np.asarray(C, float), step_pattern=pattern, **options)


@every_pattern
def test_values_and_paths_are_those_of_dtw_python(pattern, executor):
    for C in costs(pattern, seed=0):
        peer = theirs(C, pattern)
        a = dropdtw.solve(C, method=pattern, executor=executor)
        assert a.cost == approx(peer.distance, rel=1e-12)
        assert dropdtw.cost(C, method=pattern, executor=executor) == approx(peer.distance, rel=1e-12)
        assert a.pairs.tolist() == np.stack([peer.index1, peer.index2], axis=1).tolist()


@every_pattern
def test_values_from_sequences_are_those_of_dtw_python(pattern, executor):
    rng = np.random.default_rng(1)
    for K, N in [(9, 12), (30, 30), (70, 50)]:
        for features in ((), (3,)):
            z, x = rng.normal(size=(K, *features)), rng.normal(size=(N, *features))
            value = dropdtw.distance(z, x, match="euclidean", method=pattern, executor=executor)
            assert value == approx(dtw(z, x, step_pattern=pattern).distance, rel=1e-12)
            pair = dropdtw.pairwise([z], [x], match="euclidean", method=pattern, executor=executor)
            assert pair.item() == approx(value, rel=1e-12)


@every_pattern
def test_normalized_values_are_those_of_dtw_python(pattern, executor):
    for C in costs(pattern, seed=2):
        normalized = theirs(C, pattern).normalizedDistance
        if pattern == "symmetric1":  # it has no norm: NaN there, an error here
            assert np.isnan(normalized)
            with pytest.raises(ValueError, match="normalize"):
                dropdtw.cost(C, method=pattern, normalize="pattern", executor=executor)
        else:
            value = dropdtw.cost(C, method=pattern, normalize="pattern", executor=executor)
            assert value == approx(normalized, rel=1e-12)


@every_pattern
def test_ties_leave_the_value_alone(pattern, executor):
    """With whole costs many paths tie: either library may take another one, but at the same cost, exactly."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        C = rng.integers(0, 3, (9, 12)).astype(float)
        assert dropdtw.solve(C, method=pattern, executor=executor).cost == theirs(C, pattern).distance


@every_pattern
def test_lengths_that_no_path_fits_are_errors_in_both(pattern, executor):
    rng = np.random.default_rng(4)
    for K in range(1, 9):
        for N in range(1, 9):
            C = rng.random((K, N))
            if fits(pattern, K, N):
                value = dropdtw.solve(C, method=pattern, executor=executor).cost
                assert value == approx(theirs(C, pattern).distance, rel=1e-12)
                continue
            with pytest.raises(ValueError, match="No warping path"):
                theirs(C, pattern)
            for door in (dropdtw.solve, dropdtw.cost):
                with pytest.raises(ValueError, match=pattern):
                    door(C, method=pattern, executor=executor)


@pytest.mark.parametrize("pattern", ["symmetric1", "symmetric2", "asymmetric"])
def test_a_window_is_the_slanted_band_of_dtw_python(pattern, executor):
    rng = np.random.default_rng(5)
    for K, N in [(9, 11), (30, 21), (50, 50)]:
        for width in (2, 4, 10):
            C = rng.random((K, N))
            peer = theirs(C, pattern, window_type="slantedband", window_args={"window_size": width})
            a = dropdtw.solve(C, method=pattern, window=width, executor=executor)
            assert a.cost == approx(peer.distance, rel=1e-12)
            assert a.pairs.tolist() == np.stack([peer.index1, peer.index2], axis=1).tolist()


@pytest.mark.parametrize("pattern", ["symmetricP1", "asymmetricP1"])
def test_only_in_dtw_python_may_the_middle_cell_of_a_double_step_leave_the_band(pattern, executor):
    """So its value is at most ours, and less where its path does."""
    rng = np.random.default_rng(6)
    left = 0
    for _ in range(50):
        C = rng.random((9, 11))
        peer = theirs(C, pattern, window_type="slantedband", window_args={"window_size": 2})
        value = dropdtw.cost(C, method=pattern, window=2, executor=executor)
        if (np.abs(peer.index2 - peer.index1 * 10 / 8) > 2).any():
            left += 1
            assert value > peer.distance
        else:
            assert value == approx(peer.distance, rel=1e-12)
    assert left
