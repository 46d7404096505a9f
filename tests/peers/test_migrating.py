"""The numbers that docs/migrating.md gives for other libraries; its doctests give ours."""

import numpy as np
import parasail
from aeon.distances import adtw_distance, dtw_distance
from Bio.Align import PairwiseAligner
from dtaidistance import dtw as dtaidistance
from dtw import dtw
from pytest import approx
from tslearn import metrics as tslearn

A, B = np.array([0.0, 1, 2, 1, 0]), np.array([0.0, 0, 1, 4, 1, 0])


def test_tslearn_dtaidistance_and_aeon():
    assert tslearn.dtw(A, B) == dtaidistance.distance(A, B) == 2
    assert tslearn.soft_dtw(A, B, gamma=0.5) == approx(3.5582, abs=5e-5)
    assert tslearn.lcss(A, B, eps=0.5) == 0.8
    assert dtaidistance.distance(A, B, penalty=0.5) == approx(2.0616, abs=5e-5)
    assert dtw_distance(A, B) == 4
    assert adtw_distance(A, B, warp_penalty=0.5) == 4.5


def test_dtw_python():
    values = {"symmetric1": 2, "symmetric2": 3, "asymmetric": 1, "symmetricP1": 6, "asymmetricP1": 2.5}
    assert {pattern: dtw(A, B, step_pattern=pattern).distance for pattern in values} == values
    assert dtw(A, B).distance == 3  # symmetric2 is its default
    assert dtw(A, B).normalizedDistance == approx(0.2727, abs=5e-5)


def test_parasail_and_biopython():
    z, x = "GATTACAGATTACA", "GATTAGATTA"
    matrix = parasail.matrix_create("ACGT", 2, -3)
    assert parasail.nw(z, x, 5, 1, matrix).score == 8
    assert parasail.sw(z, x, 5, 1, matrix).score == 14
    scores = {"match_score": 2, "mismatch_score": -3, "open_gap_score": -5, "extend_gap_score": -1}
    assert PairwiseAligner(mode="global", **scores).score(z, x) == 8
    assert PairwiseAligner(mode="local", **scores).score(z, x) == 14
