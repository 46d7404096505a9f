"""A few published results, and other libraries if they are installed."""

import numpy as np
import pytest
from pytest import approx

import dropdtw


def unlike(a, b, match, mismatch):
    return np.where(np.array(list(a))[:, None] == np.array(list(b))[None, :], match, mismatch)


def test_needleman_wunsch_of_the_textbook():
    """GCATGCG and GATTACA with +1, −1, −1 score 0 (the textbook example)."""
    assert dropdtw.cost(unlike("GCATGCG", "GATTACA", -1, 1), 1, 1, method="needleman_wunsch") == 0


def test_smith_waterman_of_the_textbook():
    """TGTTACGG and GGTTGACTA with +3, −3 and a gap of 2 score 13: GTT-AC over GTTGAC."""
    a = dropdtw.solve(unlike("TGTTACGG", "GGTTGACTA", -3, 3), 2, 2, method="smith_waterman")
    assert a.cost == -13
    assert ["TGTTACGG"[i] + "GGTTGACTA"[j] for i, j in a.pairs] == ["GG", "TT", "TT", "AA", "CC"]


def test_longest_common_subsequence_of_the_textbook():
    """BDCABA and ABCBDAB share four letters (Cormen et al., section on dynamic programming)."""
    assert dropdtw.cost(unlike("BDCABA", "ABCBDAB", 0, 1), method="lcss", threshold=0.5) == -4


def test_edit_distance_by_needleman_wunsch():
    assert dropdtw.cost(unlike("kitten", "sitting", 0, 1), 1, 1, method="needleman_wunsch") == 3


def test_otam_of_cao_takes_one_x_per_z():
    """With one_to_many=False a z matches only one x, as in the recursion of Cao et al.; x at both ends are free."""
    C = [[9, -1, -5, 9], [9, 9, 9, 1]]
    assert dropdtw.solve(C, method="otam").pairs.tolist() == [[0, 1], [0, 2], [1, 3]]
    assert dropdtw.solve(C, method="otam", one_to_many=False).pairs.tolist() == [[0, 2], [1, 3]]


def test_plain_dtw_against_dtaidistance():
    dtw = pytest.importorskip("dtaidistance.dtw", reason="dtaidistance is not installed")
    rng = np.random.default_rng(0)
    for K, N in [(1, 1), (5, 9), (40, 31)]:
        z, x = rng.normal(size=K), rng.normal(size=N)
        assert dropdtw.distance(z, x, match="sqeuclidean") == approx(dtw.distance(z, x) ** 2)
