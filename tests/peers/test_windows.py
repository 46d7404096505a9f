"""Bands and parallelograms are those of tslearn, dtaidistance, librosa, aeon and dtw-python, cell by cell."""

from itertools import product

import numpy as np
import pytest
from aeon.distances import create_bounding_matrix
from dtaidistance import dtw as dtaidistance
from librosa.util import fill_off_diagonal
from tslearn.metrics import itakura_mask, sakoe_chiba_mask

from dropdtw import windows

SIZES = list(product([1, 2, 3, 4, 5, 7, 8, 12, 20, 33], repeat=2))
SHARES = [0.0, 0.1, 0.25, 0.3, 0.5, 0.77, 1.0]


@pytest.mark.parametrize("radius", [0, 1, 2, 5, 40])
def test_tslearn(radius):
    for K, N in SIZES:
        ours = windows.sakoe_chiba(K, N, radius, kind="tslearn")
        np.testing.assert_array_equal(ours, sakoe_chiba_mask(K, N, radius))


@pytest.mark.parametrize("width", [1, 2, 3, 6, 40])
def test_dtaidistance(width):
    """Cells that its table fills where every cell of the borders is free."""
    for K, N in SIZES:
        _, filled = dtaidistance.warping_paths(np.zeros(K), np.ones(N), window=width, psi=(K, K, N, N), psi_neg=False)
        ours = windows.sakoe_chiba(K, N, width, kind="dtaidistance")
        np.testing.assert_array_equal(ours, np.isfinite(filled[1:, 1:]))


@pytest.mark.parametrize("share", SHARES)
def test_librosa(share):
    for K, N in SIZES:
        kept = np.ones((K, N))
        fill_off_diagonal(kept, radius=share, value=0)
        np.testing.assert_array_equal(windows.sakoe_chiba(K, N, share, kind="librosa"), kept == 1)


@pytest.mark.parametrize("share", SHARES)
def test_aeon(share):
    for K, N in SIZES:
        ours = windows.sakoe_chiba(K, N, share, kind="aeon")
        np.testing.assert_array_equal(ours, create_bounding_matrix(K, N, window=share))


@pytest.mark.parametrize("slope", [1, 1.5, 2.0, 3.3, 10])
def test_itakura_of_tslearn(slope):
    """It refuses parallelograms that leave no way through."""
    compared = 0
    for K, N in SIZES:
        try:
            theirs = itakura_mask(K, N, slope)
        except RuntimeWarning:
            continue
        np.testing.assert_array_equal(windows.itakura(K, N, slope), theirs)
        compared += 1
    assert compared >= 10


@pytest.mark.parametrize("share", SHARES[1:])
def test_itakura_of_aeon(share):
    for K, N in SIZES:
        if min(K, N) >= 3 and int(share * min(K, N)) >= 1:
            theirs = create_bounding_matrix(K, N, itakura_max_slope=share)
            np.testing.assert_array_equal(windows.itakura(K, N, share, kind="aeon"), theirs)
