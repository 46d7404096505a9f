"""Estimators take strings and lists of symbols: the distances are those of `pairwise`."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import dropdtw
from dropdtw.sklearn import AlignmentKNeighborsClassifier, as_series

WORDS = ["GATTACA", "CATTAGA", "TTTGGG", "TTTGG"]


def test_a_classifier_of_strings():
    how = {"drop_x": 1.0, "drop_z": 1.0, "method": "needleman_wunsch"}
    knn = AlignmentKNeighborsClassifier(**how).fit(WORDS, [0, 0, 1, 1])
    assert np.array_equal(knn.distances(["GATACA", "TTTG"]), dropdtw.pairwise(["GATACA", "TTTG"], WORDS, **how))
    assert knn.predict(["GATACA", list("TTTG")]).tolist() == [0, 1]


def test_symbols_become_arrays_of_objects():
    first, second = as_series(["ab", [("a", 1), None]])
    assert first.tolist() == [["a"], ["b"]]
    assert second.tolist() == [[("a", 1)], [None]]
