"""Costs by the second: against the list of all alignments, their laws, and what is refused."""

import json

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from dropdtw import orders

LAWS = {"drop_x": 0.4, "method": "steps", "per": "second"}


def durations(times):
    """How long each x lasts: until the next one; the last one, as long as the median."""
    gaps = np.diff(times)
    return np.append(gaps, np.median(gaps))


@pytest.mark.parametrize("method", ["drop_dtw", "steps", "ctc", "dtw", "needleman_wunsch", "lcss"])
def test_the_costs_of_each_x_are_multiplied_by_its_duration(method, executor):
    rng = np.random.default_rng(0)
    for K, N in [(1, 4), (2, 5), (3, 4)]:
        C, d_x, d_z, times = rng.normal(size=(K, N)), rng.random(N), rng.random(K), np.cumsum(0.1 + rng.random(N))
        C[rng.random((K, N)) < 0.1] = np.inf
        lasting = durations(times)
        options = {"method": method, "executor": executor, "times": times, "per": "second"}
        known = {"method": method, "d_x": d_x * lasting}
        if method in ("drop_dtw", "steps", "needleman_wunsch"):
            options |= {"drop_x": d_x, "drop_z": d_z, "open_x": 0.2}
            known |= {"d_z": d_z, "open_x": 0.2}
        elif method == "ctc":
            options |= {"drop_x": d_x}
        elif method == "lcss":
            options |= {"threshold": 0.3}
        if method == "lcss":  # counts seconds
            found = [(M, -float((M * lasting).sum())) for M, _ in oracle.alignments(C, method="lcss", threshold=0.3)]
        else:
            found = oracle.alignments(C * lasting, ids=list(range(K)) if method == "ctc" else None, **known)
        if method == "ctc":
            options |= {"ids": list(range(K))}
        least = min((cost for _, cost in found), default=np.inf)
        assert dropdtw.cost(C, **options) == approx(least)
        if not found:
            continue
        a = dropdtw.solve(C, **options)
        assert a.cost == approx(least)
        assert a.rescore() == approx(least)
        assert any(np.array_equal(a.M, M) and cost == approx(least) for M, cost in found)
        p = dropdtw.posterior(C, gamma=0.3, **options)
        share = np.exp(-np.array([cost for _, cost in found]) / 0.3)
        expected = np.einsum("n,nij->ij", share / share.sum(), np.array([M for M, _ in found]))
        assert p.match == approx(expected, abs=1e-9)
        again = dropdtw.Alignment.from_dict(json.loads(json.dumps(a.to_dict(costs=True))))
        assert again.rescore() == approx(a.cost)


@pytest.mark.parametrize("r", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_higher_rate_changes_no_boundary(seed, r):
    """Each x r times, each with 1/r of its duration: if z are dropped free, or steps last at least r elements."""
    rng = np.random.default_rng(seed)
    Z, X = rng.normal(size=(4, 3)), rng.normal(size=(30, 3))
    times = np.cumsum(0.2 + rng.random(30))
    spans = np.stack([times, times + durations(times)], axis=1)
    finer = np.concatenate([np.linspace(*span, r + 1)[:-1] for span in spans])
    finer = np.stack([finer, np.append(finer[1:], spans[-1, 1])], axis=1)
    often = np.repeat(X, r, axis=0)
    for options, then in (
        ({"drop_z": 0.0}, {}),
        ({}, {"order": orders.lasting(range(4), at_least=r)}),
        ({"drop_z": 0.7}, {"order": orders.lasting(range(4), at_least=r)}),
    ):
        given = LAWS | {"drop_x": 1.5, **options}
        a = dropdtw.align(Z, X, times=spans, **given)
        b = dropdtw.align(Z, often, times=finer, **given, **then)
        assert b.labels.tolist() == np.repeat(a.labels, r).tolist()
        assert b.cost == approx(a.cost)
        assert [s.start_time for s in b.segments()] == approx([s.start_time for s in a.segments()])
    a, b = (dropdtw.distance(Z, each, times=at, **LAWS) for each, at in ((X, spans), (often, finer)))
    assert b <= a + 1e-9  # a step may keep a part of an x


def test_rules_read_the_costs_before():
    rng = np.random.default_rng(1)
    C, times = rng.random((3, 20)), np.cumsum(rng.random(20) + 0.1)
    a = dropdtw.solve(C, "percentile:30", method="steps", times=times, per="second")
    b = dropdtw.solve(C, np.percentile(C, 30), method="steps", times=times, per="second")
    assert (a.cost, a.labels.tolist()) == (b.cost, b.labels.tolist())
    assert dropdtw.solve(C, 0.3, times=times, per="second").problem.C.tolist() == C.tolist()


def test_one_element_per_second_changes_nothing():
    C = np.random.default_rng(2).random((3, 12))
    a, b = dropdtw.solve(C, 0.3, 0.2, fps=1, per="second"), dropdtw.solve(C, 0.3, 0.2)
    assert (a.cost, a.labels.tolist()) == (approx(b.cost), b.labels.tolist())
    assert dropdtw.cost(C, 0.3, fps=4, per="second") == approx(dropdtw.cost(C, 0.3) / 4)


def test_a_gap_counts_unless_ends_are_given():
    Z, X = [0.0, 1.0], [0.0, 9.0, 1.0]
    assert dropdtw.distance(Z, X, 0.5, times=[0, 1, 61], per="second") == 30
    ends = [[0, 1], [1, 2], [61, 62]]
    assert dropdtw.distance(Z, X, 0.5, times=ends, per="second") == 0.5
    free = [[0, 1], [1, 1], [61, 62]]  # an x without a duration costs nothing, even if it may not match
    assert dropdtw.solve([[0, np.inf, np.inf], [np.inf, np.inf, 0]], 0.5, times=free, per="second").cost == 0
    with pytest.raises(ValueError, match="forbidden"):
        dropdtw.solve([[0, np.inf, np.inf], [np.inf, np.inf, 0]], times=free, per="second")


def test_missing_x_take_their_durations_along():
    Z, X = [0.0, 1.0], [0.0, np.nan, 9.0, 1.0]
    given = {"drop_x": 0.5, "per": "second", "missing": "drop"}
    assert dropdtw.distance(Z, X, times=[0, 1, 11, 13], **given) == 1.0


def test_frames_with_a_time_index_need_no_times():
    pandas = pytest.importorskip("pandas")
    X = pandas.Series(
        [0.0, 9.0, 1.0], pandas.to_datetime(["2024-05-01T10:00:00", "2024-05-01T10:00:01", "2024-05-01T10:00:03"])
    )
    assert dropdtw.distance([0.0, 1.0], X, 0.5, per="second") == 1.0


def test_what_has_no_clock_is_refused():
    with pytest.raises(ValueError, match=r"nothing says how long each x lasts; give times or fps"):
        dropdtw.cost([[1.0, 2.0]], 0.5, per="second")
    with pytest.raises(ValueError, match="nothing says how long each x lasts"):
        dropdtw.align([1.0], [1.0, 2.0], 0.5, per="second", times=([1.0], None))
    with pytest.raises(ValueError, match="per is 'minute'; give 'second'"):
        dropdtw.Aligner(per="minute")
    aligner = dropdtw.Aligner(0.5, per="second")
    for call in (
        lambda: aligner.pairwise([[1.0], [2.0]]),
        lambda: aligner.find([1.0], [1.0, 2.0]),
        lambda: aligner.nearest([1.0], [[1.0, 2.0]]),
        lambda: aligner.online([1.0]),
    ):
        with pytest.raises(ValueError, match=r"per is 'second', which \w+ cannot use"):
            call()
    assert dropdtw.Aligner.from_dict(aligner.to_dict()) == aligner


def test_losses_say_what_to_multiply():
    pytest.importorskip("torch")
    from dropdtw.torch import DropDTWLoss

    with pytest.raises(ValueError, match="multiply C and the drop costs by the durations"):
        DropDTWLoss(dropdtw.Aligner(0.5, per="second"))
