"""Kendall's tau and Recall@k against hand-worked examples and laws."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dropdtw.metrics import kendall_tau, recall_at_k


def column(*values):
    return np.array(values, dtype=float)[:, None]


def test_kendall_tau_worked_by_hand():
    # neighbors 0 2 1: of three pairs, two run forward and one backward
    assert kendall_tau(column(0, 2, 1), column(0.1, 1.1, 2.1)) == pytest.approx(1 / 3)
    # neighbors 0 0 1: two pairs run forward, one is tied on one side: τ-b = 2 / √(3 · 2)
    assert kendall_tau(column(0, 0.1, 1), column(0, 1)) == pytest.approx(2 / 6**0.5)
    # every frame is midway between two neighbors: the smaller index gives 0 1 2, the larger one 1 2 2
    assert kendall_tau(column(0, 2, 4), column(-1, 1, 3)) == 1


def test_kendall_tau_measures_euclidean_distance():
    # from (0, 0): 3.5 and √8, neighbor 1 (in city blocks 3.5 and 4, neighbor 0); from (0, 9): 5.5 and √53
    assert kendall_tau([[0, 0], [0, 9]], [[0, 3.5], [2, 2]]) == pytest.approx(-1)


@pytest.mark.parametrize("n", [2, 7, 40])
def test_kendall_tau_of_a_sequence_with_itself_and_its_reverse(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    assert kendall_tau(X, X) == pytest.approx(1)
    assert kendall_tau(X, X[::-1]) == pytest.approx(-1)
    assert kendall_tau(X + 8, X[::-1] + 8) == pytest.approx(-1)


def test_kendall_tau_is_zero_where_every_frame_has_the_same_neighbor():
    assert kendall_tau(column(0, 1, 2), column(3, 9)) == 0


def test_kendall_tau_says_how_to_get_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r"needs scipy: pip install 'dropdtw\[metrics\]'"):
        kendall_tau(column(0, 1), column(0, 1))


def test_importing_the_metrics_does_not_import_scipy():
    check = "import sys, dropdtw.metrics; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


DISTANCES = np.array([[0.1, 0.5, 0.9], [0.4, 0.4, 0.2], [0.3, 0.3, 0.3], [np.inf, 1.0, np.inf]])


def test_recall_at_k_worked_by_hand():
    # relevant: item 0, nearest; 0, behind 2, tied with 1; 1, tied with both; 0, behind 1, tied with 2
    assert [recall_at_k(DISTANCES, [0, 0, 1, 0], k) for k in (1, 2, 3)] == [1 / 4, 1 / 4, 1]
    # items 0 and 1 are both relevant for query 1, and only item 2 is nearer
    relevant = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=bool)
    assert [recall_at_k(DISTANCES, relevant, k) for k in (1, 2, 3)] == [2 / 4, 3 / 4, 3 / 4]


@given(
    arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.integers(0, 3)),
    st.data(),
)
def test_recall_at_k_is_that_of_the_worst_order_among_ties(distances, data):
    relevant = data.draw(arrays(bool, distances.shape))
    for k in range(1, distances.shape[1] + 1):
        ranked = [sorted(zip(d, r, strict=True))[:k] for d, r in zip(distances, relevant, strict=True)]
        found = [any(r for _, r in top) for top in ranked]  # False sorts before True: irrelevant first
        assert recall_at_k(distances, relevant, k) == pytest.approx(np.mean(found))


@given(st.integers(2, 6), st.floats(-5, 5))
def test_constant_distances_score_only_when_everything_is_returned(n, value):
    distances = np.full((n, n), value)
    assert recall_at_k(distances, np.arange(n), n - 1) == 0
    assert recall_at_k(distances, np.arange(n), n) == 1


def test_recall_at_k_is_perfect_on_a_zero_diagonal_and_takes_either_form():
    distances = 1 - np.eye(5)
    assert recall_at_k(distances, np.arange(5)) == 1
    assert recall_at_k(distances, np.eye(5, dtype=bool)) == 1
    assert recall_at_k(distances, (np.arange(5) + 1) % 5, k=4) == 0
