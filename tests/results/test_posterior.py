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
        a.M.tobytes()
        for a in dropdtw.posterior(C, drop_x=drops[0], drop_z=drops[1], gamma=1, **options).sample(draws, seed=0)
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


# --- The default temperature --------------------------------------------------------------------------------------


def test_the_default_gamma_is_two_thirds_of_the_spread_of_the_match_costs():
    costs = rng.random((4, 9))
    costs[0, 3:5] = np.inf
    expected = np.sqrt(np.mean((costs[costs < np.inf] - costs[costs < np.inf].mean()) ** 2)) * 2 / 3
    p, q = dropdtw.posterior(costs, drop_x=0.3), dropdtw.posterior(costs, drop_x=0.3, gamma=expected)
    assert p.gamma == approx(expected)
    assert p.match == approx(q.match)
    assert dropdtw.solve(costs, 0.3).posterior().gamma == p.gamma == dropdtw.Aligner(0.3).posterior(costs).gamma


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_unit_and_the_zero_of_costs_do_not_matter(scale):
    costs = rng.random((3, 8))
    p = dropdtw.posterior(costs, drop_x=0.4, drop_z=0.5, method="steps")
    q = dropdtw.posterior(costs * scale, drop_x=0.4 * scale, drop_z=0.5 * scale, method="steps")
    assert q.gamma == approx(scale * p.gamma)
    assert q.match == approx(p.match)
    assert dropdtw.posterior(costs - 7, method="needleman_wunsch", drop_x=1, drop_z=1).gamma == approx(p.gamma)


def test_logarithms_of_probabilities_keep_gamma_1():
    Z, X = rng.normal(size=(3, 4)), rng.normal(size=(7, 4))
    assert dropdtw.posterior(Z, X, match="softmax:0.5", drop_x=2.0).gamma == 1
    assert dropdtw.align(Z, X, 2.0, match="softmax").posterior().gamma == 1
    assert dropdtw.posterior(rng.random((3, 7)), drop_x=2.0, method="ctc").gamma == 1
    assert dropdtw.posterior(Z, X, match="cosine", drop_x=2.0).gamma != 1


@pytest.mark.parametrize("costs", [[[0.3, 0.3]], [[0.3]], [[1e300, -1e300]]], ids=str)
def test_costs_without_a_finite_spread_get_gamma_1(costs):
    assert dropdtw.posterior(costs, drop_x=0.3).gamma == 1


# --- Credible intervals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["cpp", "reference"])
@pytest.mark.parametrize("method", ["drop_dtw", "steps", "needleman_wunsch", "smith_waterman", "subsequence", "otam"])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_intervals_are_quantiles_over_all_alignments(method, level, executor):
    random = np.random.default_rng(int(100 * level))
    costs = random.normal(size=(3, 4))
    drops = {"drop_x": 0.3, "drop_z": 0.4} if dropdtw.METHODS[method].takes_drops else {}
    p = dropdtw.posterior(costs, **drops, method=method, gamma=0.8, executor=executor)
    truth = oracle.alignments(costs, *drops.values(), method=method)
    weight = np.exp(-np.array([cost for _, cost in truth]) / 0.8)
    weight /= weight.sum()
    for i, found in enumerate(p.intervals(level)):
        matched = np.array([M[i].any() for M, _ in truth])
        assert found.label == i
        assert found.probability == approx(weight[matched].sum())
        share = weight[matched] / weight[matched].sum()
        ends = np.array([np.flatnonzero(M[i])[[0, -1]] for M, _ in truth if M[i].any()])
        places = np.add(ends, (0, 1))
        for (low, high), place in zip((found.start, found.stop), places.T, strict=True):
            assert share[place < low].sum() <= (1 - level) / 2 + 1e-9
            assert share[place > high].sum() <= (1 - level) / 2 + 1e-9
            assert share[place <= low].sum() > (1 - level) / 2 - 1e-9  # no shorter interval has both properties
            assert share[place >= high].sum() > (1 - level) / 2 - 1e-9


def test_intervals_have_times_and_the_indices_of_the_caller():
    Z, X = [0.0, 5.0], [0.0, np.nan, 0.1, 5.1, np.nan, 5.0]
    p = dropdtw.align(Z, X, 1.0, missing="drop", fps=2, method="steps").posterior(0.01)
    assert [(f.start, f.stop) for f in p.intervals()] == [((0, 0), (3, 3)), ((3, 3), (6, 6))]
    assert [(f.start_time, f.stop_time) for f in p.intervals()] == [((0, 0), (1.5, 1.5)), ((1.5, 1.5), (3, 3))]
    assert dropdtw.posterior([[0.0]]).intervals()[0].start_time is None


def test_a_z_that_cannot_match_has_no_interval():
    found = dropdtw.posterior([[0.1, 0.2], [np.inf, np.inf]], drop_z=0.5, drop_x=0.5).intervals()[1]
    assert (found.probability, found.start, found.stop) == (0, None, None)


def test_intervals_follow_an_order():
    costs = [[9, 9, 0, 0.0], [0, 0, 9, 9]]
    p = dropdtw.posterior(costs, gamma=0.1, order=dropdtw.orders.any_order(0, 1), method="steps")
    assert [(f.start, f.stop) for f in p.intervals()] == [((2, 2), (4, 4)), ((0, 0), (2, 2))]


def test_a_posterior_has_a_short_repr():
    assert repr(dropdtw.posterior(np.eye(40), gamma=0.5, method="steps")) == (
        "<Posterior by steps of 40 z with 40 x: γ 0.5, entropy 0 nats, expected cost 40>"
    )
