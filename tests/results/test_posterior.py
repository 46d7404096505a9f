"""Sampling, temperature, and the posterior's summary numbers."""

from collections import Counter

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from cases import OF_COSTS

rng = np.random.default_rng(5)
C, D_X, D_Z = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)


@pytest.mark.parametrize("method", [m for m in OF_COSTS if m != "drop_dtw_paper"])
def test_samples_follow_the_distribution(method):
    entry = dropdtw.METHODS[method]
    drops = (D_X, D_Z) if entry.takes_drops else (None, None)
    options = {"method": method} | ({"threshold": 0.5} if entry.takes_threshold else {})
    draws = 4000
    found = Counter(
        a.M.tobytes() for a in dropdtw.posterior(C, drop_x=drops[0], drop_z=drops[1], **options).sample(draws, seed=0)
    )
    truth = oracle.alignments(C, *drops, **options)
    weight = np.exp(-np.array([cost for _, cost in truth]))
    weight /= weight.sum()
    assert set(found) <= {M.tobytes() for M, _ in truth}
    for (M, _), p in zip(truth, weight, strict=True):
        # Five standard errors for each of about a hundred alignments.
        assert found[M.tobytes()] / draws == approx(p, abs=5 * np.sqrt(p * (1 - p) / draws) + 1e-3)


def test_samples_are_alignments_that_cost_what_they_say():
    for a in dropdtw.posterior(C, drop_x=D_X, drop_z=D_Z).sample(20, seed=1):
        assert C[a.M].sum() + D_X[a.dropped_x].sum() + D_Z[a.dropped_z].sum() == approx(a.cost)


def test_cold_posterior_is_the_best_alignment():
    p = dropdtw.posterior(C, drop_x=D_X, drop_z=D_Z, gamma=1e-3)
    a = dropdtw.solve(C, D_X, D_Z)
    assert p.match == approx(a.M.astype(float))
    assert p.entropy == approx(0, abs=1e-6)
    assert p.cost == approx(a.cost)
    assert p.expected_cost == approx(a.cost)
    assert p.sample(1, seed=0)[0].labels.tolist() == a.labels.tolist()


def test_hot_posterior_believes_in_all_alignments_alike():
    p = dropdtw.posterior(C, drop_x=D_X, drop_z=D_Z, gamma=1e9)
    assert p.entropy == approx(np.log(104))
    assert p.match == approx(np.mean(oracle.chains(3, 3), axis=0), abs=1e-6)


def test_paper_table_counts_paths():
    """Algorithm 2 has eight paths for two alignments at 1×1: four for the match and four for the double drop."""
    p = dropdtw.posterior([[0.0]], drop_x=0.0, drop_z=0.0, method="drop_dtw_paper")
    assert p.log_partition == approx(np.log(8))
    assert p.match == approx(np.array([[0.5]]))


def test_gamma_zero_and_bad_counts_are_refused():
    with pytest.raises(ValueError, match=r"gamma is 0.*use dropdtw.solve"):
        dropdtw.posterior(C, drop_x=D_X, gamma=0)
    with pytest.raises(ValueError, match="gamma is -1"):
        dropdtw.posterior(C, drop_x=D_X, gamma=-1)
    with pytest.raises(ValueError, match="n is -2; give the number of alignments to draw"):
        dropdtw.posterior(C, drop_x=D_X).sample(-2)
    assert dropdtw.posterior(C, drop_x=D_X).sample(0) == []


@pytest.mark.parametrize("method", ["drop_dtw", "lcss", "greedy", "smith_waterman", "otam"])
def test_draws_are_made_from_the_costs_as_they_were(method):
    entry = dropdtw.METHODS[method]
    given = [C.copy(), *((D_X.copy(), D_Z.copy()) if entry.takes_drops else ())]
    threshold = 0.5 if entry.takes_threshold else None
    drops = dict(zip(("drop_x", "drop_z"), given[1:], strict=False))
    p = dropdtw.posterior(C=given[0], **drops, method=method, threshold=threshold, gamma=0.5)
    before = [(a.pairs.tolist(), a.cost) for a in p.sample(20, seed=1)]
    for array in given:
        array[...] = rng.normal(size=array.shape)
    assert [(a.pairs.tolist(), a.cost) for a in p.sample(20, seed=1)] == before


def test_a_read_only_view_of_a_writable_array_is_copied():
    theirs = C.copy()
    view = theirs[:, :]
    view.flags.writeable = False
    p = dropdtw.posterior(view, drop_x=D_X)
    theirs[...] = 9
    np.testing.assert_array_equal(p.problem.C, C)


def test_what_nobody_can_write_to_is_not_copied(tmp_path):
    np.save(tmp_path / "C.npy", C)
    mapped = np.load(tmp_path / "C.npy", mmap_mode="r")
    assert np.shares_memory(dropdtw.posterior(mapped, drop_x=D_X).problem.C, mapped)
    a = dropdtw.align(mapped, mapped, match="sqeuclidean")
    assert all(np.shares_memory(A, mapped) for A in a.problem.costs.match.sequences)
    private = np.load(tmp_path / "C.npy", mmap_mode="c")
    assert not np.shares_memory(dropdtw.posterior(private, drop_x=D_X).problem.C, private)
