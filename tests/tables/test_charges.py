"""Opening costs and the warp penalty: what pays them, how often, and that a charge of 0 changes nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import dropdtw
import oracle
from cases import VARIANTS, cases, costs, name, spec_of
from dropdtw import executors
from dropdtw.problem.problem import Problem
from dropdtw.results.alignment import Alignment
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import reducer

CHARGED = [v for v in VARIANTS if {"open_x", "open_z", "warp"} & set(v)]
OPENING = [v for v in CHARGED if {"open_x", "open_z"} & set(v)]
PLAIN = [v for v in VARIANTS if v not in CHARGED and any(v["sides"])]


def runs(used):
    """The number of runs of False."""
    return sum(not here and (j == 0 or used[j - 1]) for j, here in enumerate(used))


def assert_pays(a, options):
    """The law: the cost minus matches and drops equals the charges for runs and repeats."""
    p = a.problem.costs
    matched = (p.matrix[tuple(a.pairs.T)] * (1 if a.weights is None else a.weights)).sum()
    dropped = p.drop_x[a.paid_x > 0].sum() + p.drop_z[a.paid_z > 0].sum()
    repeats = (np.diff(a.pairs, axis=0) == 0).any(axis=1).sum() if len(a.pairs) else 0
    local = options["method"] == "smith_waterman"
    inside = [slice(*(np.flatnonzero(u)[[0, -1]] + [0, 1]) if u.any() else (0, 0)) for u in (a.M.any(0), a.M.any(1))]
    used = [u[part] if local else u for u, part in zip((a.M.any(0), a.M.any(1)), inside, strict=True)]
    expected = (
        options.get("open_x", 0) * runs(used[0])
        + options.get("open_z", 0) * runs(used[1])
        + options.get("warp", 0) * repeats
    )
    assert a.cost - matched - dropped == approx(expected, abs=1e-12)
    assert a.rescore() == approx(a.cost, abs=1e-12)


@pytest.mark.sweep
@pytest.mark.parametrize("variant", CHARGED, ids=name)
def test_what_is_left_of_the_cost_is_charged_to_runs_and_repeats(variant, executor):
    for case in cases(variant, seed=2)[::3]:
        if oracle.alignments(**case.oracle()):
            a = dropdtw.solve(**case.library(executor=executor))
            assert_pays(a, case.options)
            for draw in a.posterior(0.5).sample(2, seed=0):
                assert_pays(draw, case.options)


@pytest.mark.sweep
@pytest.mark.parametrize("variant", [v for v in PLAIN if dropdtw.METHODS[v["method"]].takes_opening], ids=name)
def test_charges_of_nothing_change_nothing(variant, executor):
    """A table with charges of 0 has the same values, paths and path counts as the table without charges."""
    rng = np.random.default_rng(0)
    C, d_x, d_z = rng.random((4, 4)), rng.random(4), rng.random(4)
    for zero in (0.0, 1.0):
        plain, charged = (
            Problem.of_costs(spec_of(variant, zero * d_x, zero * d_z, charged=c, executor=executor), zero * C)
            for c in (False, True)
        )
        assert charged.table.pays_charge("open_x") or charged.table.pays_charge("open_z")
        for fold in (reducer("hard"), reducer("soft", 0.7), reducer("smooth", 0.7)):
            ours, theirs = (executors.run(p, fold, gradient=True) for p in (charged, plain))
            assert ours.value == approx(theirs.value, abs=1e-13)
            for part in ("match", "drop_x", "drop_z"):
                assert getattr(ours, part) == approx(getattr(theirs, part), abs=1e-12)


@pytest.mark.parametrize("method", [m for m, entry in dropdtw.METHODS.items() if entry.takes_opening])
def test_a_zero_runs_the_table_that_charges_nothing(method):
    for zero in (0, 0.0, np.float32(0)):
        spec = dropdtw.problem.spec.Spec.of(1, 1, method=method, open_x=zero, open_z=zero, warp=zero)
        assert spec.table is dropdtw.problem.spec.Spec.of(1, 1, method=method).table


def test_every_run_pays_once_at_the_borders_and_inside_the_match_of_one_z(executor):
    C = [[9, 0, 9, 9, 0, 9]]  # z_0 matches x_1 and x_4: runs before, between and after
    a = dropdtw.solve(C, drop_x=1, open_x=0.25, executor=executor)
    assert a.labels.tolist() == [-1, 0, -1, -1, 0, -1]
    assert a.cost == 4 + 3 * 0.25
    assert a.charged.open_x == 3


def test_free_skips_open_nothing(executor):
    C = np.full((4, 5), 9.0)
    C[1, 1] = C[3, 3] = -5
    a = dropdtw.solve(C, 1, 1, method="smith_waterman", open_x=0.5, open_z=0.25, executor=executor)
    assert a.pairs.tolist() == [[1, 1], [3, 3]]
    assert a.cost == -10 + 1 + 1 + 0.5 + 0.25


def test_greedy_drops_as_ever_and_then_pays_for_the_runs(executor):
    rng = np.random.default_rng(0)
    C = rng.random((5, 12))
    before = dropdtw.solve(C, 0.2, method="greedy", executor=executor)
    after = dropdtw.solve(C, 0.2, method="greedy", open_x=3.0, executor=executor)
    np.testing.assert_array_equal(before.dropped_x, after.dropped_x)
    assert after.cost == approx(before.cost + 3 * runs(~before.dropped_x))


@given(st.sampled_from(OPENING), st.integers(0, 2**16), st.floats(0.01, 5))
def test_a_higher_opening_cost_lowers_no_value_and_opens_no_more_runs(variant, seed, factor):
    rng = np.random.default_rng(seed)
    C, d_x, d_z = costs("signed", (5, 7), rng), rng.random(7), rng.random(5)
    options = {k: v for k, v in variant.items() if k not in ("open_x", "open_z")}
    openings = [{k: v * scale for k, v in variant.items() if k in ("open_x", "open_z")} for scale in (1, 1 + factor)]
    found = []
    for opening in openings:
        spec = spec_of(options, d_x, d_z, **opening)
        try:
            found.append(Alignment.of(Problem.of_costs(spec, C)))
        except ValueError:
            return
    cheap, dear = found
    paid = [
        sum(o.get(k, 0) * getattr(a.charged, k) for k in ("open_x", "open_z"))
        for o, a in zip(openings, found, strict=True)
    ]
    assert dear.cost >= cheap.cost - 1e-9
    assert paid[1] <= (1 + factor) * paid[0] + 1e-9  # every opening adds that much


def test_an_inserted_passage_comes_back_in_one_piece(executor):
    """Junk that occasionally resembles the rest: without an opening cost, stray matches break it up."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(60, 4))
    junk = rng.normal(size=(40, 4))
    X = np.concatenate([Z[:30], junk, Z[30:]]) + 0.2 * rng.normal(size=(100, 4))
    drops = {"drop_x": 0.2, "drop_z": 0.2, "match": "cosine", "executor": executor}
    torn = dropdtw.align(Z, X, **drops)
    whole = dropdtw.align(Z, X, **drops, open_x=1.0, open_z=1.0)
    suggested = dropdtw.align(Z, X, **drops, open_x="suggest", open_z="suggest")
    assert torn.charged == (0, 0, 0)
    assert runs(~torn.dropped_x) == 4
    for a in (whole, suggested):
        assert np.flatnonzero(a.dropped_x).tolist() == list(range(30, 70))


def test_a_suggested_drop_cost_sets_no_opening_cost():
    rng = np.random.default_rng(0)
    C = rng.random((4, 30))
    assert dropdtw.solve(C, "suggest").problem.costs.charges == (0, 0, 0)
    charges = dropdtw.solve(C, "suggest", open_x="suggest").problem.costs.charges
    assert charges.open_x > 0 == charges.open_z


def test_a_user_table_may_charge():
    edges = dropdtw.edges
    table = dropdtw.Recurrence(
        states=("m", "d"),
        edges=edges("m d", to="m", moves="diag", cost="match")
        + edges("m", to="d", moves="left", cost="drop_x", plus="open_x")
        + edges("d", to="d", moves="left", cost="drop_x"),
        start="m",
        final=("m", "d"),
    )
    a = dropdtw.solve([[0, 9, 9, 9], [9, 9, 9, 0]], 1, method=table, open_x=0.5)
    assert (a.cost, a.charged.open_x) == (2.5, 1)
    assert dropdtw.solve([[0, 9, 9, 9], [9, 9, 9, 0]], 1, method=table).cost == 2


@pytest.mark.parametrize(
    ("edge", "says"),
    [
        (("m", "m", "diag", "match", 0.0), "the weight is 0.0; give a finite number > 0"),
        (("m", "m", "diag", "match", -1.0), "the weight is -1.0"),
        (("m", "m", "diag", "match", np.inf), "the weight is inf"),
        (("m", "m", "diag", "match", "2"), "the weight is '2'"),
        (("m", "m", "left", "free", 2.0), "a weight has no effect on a free edge"),
        (("m", "m", "left", "match", 1.0, "open_x"), "'open_x' to 'drop_x'"),
        (("m", "m", "left", "drop_x", 1.0, "open_z"), "plus is 'open_z', which does not fit 'drop_x'"),
        (("m", "m", "left", "drop_x", 1.0, "toll"), "these can be added: 'open_x' to 'drop_x'"),
        (("m", "m", "diag", "match", 1.0, "warp"), "repeats no element"),
    ],
)
def test_edges_that_make_no_sense_are_refused(edge, says):
    with pytest.raises(ValueError, match=says):
        dropdtw.Recurrence(states=("m",), edges=(dropdtw.Edge(*edge),), start="m", final=("m",))


@pytest.mark.parametrize(
    "table", [recurrence.one_sided(charged=True), recurrence.two_sided(charged=True), recurrence.asymmetric_p1()]
)
def test_exchanging_twice_is_the_table_itself(table):
    assert table.transpose().transpose().edges == table.edges
    swapped = {e.plus for e in table.transpose().edges}
    assert swapped == {{"open_x": "open_z", "open_z": "open_x"}.get(e.plus, e.plus) for e in table.edges}


def test_explanations_name_the_run_that_is_opened():
    a = dropdtw.solve([[0.1, 0.9, 0.8, 0.2]], drop_x=0.3, open_x=0.05)
    assert (a.explain(1).opening, a.explain(2).opening) == (0.05, 0)
    assert "x_1 is dropped for 0.3 and opens a run of drops for 0.05; matching it to z_0 instead" in str(a.explain(1))


def test_charges_come_back_from_a_dictionary():
    a = dropdtw.solve([[0.1, 0.9, 0.8, 0.2]], drop_x=0.3, open_x=0.05, warp=0.01)
    data = a.to_dict(costs=True)
    b = Alignment.from_dict(data)
    assert (b.charged, b.problem.costs.charges, b.problem.table) == (
        a.charged,
        a.problem.costs.charges,
        a.problem.table,
    )
    assert b.rescore() == a.rescore()
    data["charged"]["open_x"] = 2.0
    with pytest.raises(ValueError, match="its pairs and drops cost"):
        Alignment.from_dict(data)


@pytest.mark.parametrize("method", oracle.PATTERNS)
def test_normalized_values_are_divided_by_what_all_paths_weigh(method):
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(5, 1)), rng.normal(size=(6, 1))
    norm = dropdtw.METHODS[method].norm
    if norm is None:
        return
    a = dropdtw.align(Z, X, method=method)
    assert dropdtw.distance(np.zeros(5), np.ones(6), method=method, normalize="pattern") in (
        approx(1 - (norm(5, 6) == 11) / 11),  # the first cell counts once, where a diagonal step counts twice
    )
    assert dropdtw.distance(Z, X, method=method, normalize="pattern") == approx(a.cost / norm(5, 6))
    many = dropdtw.pairwise([Z, X], method=method, normalize="pattern")
    assert many[0, 1] == approx(a.cost / norm(5, 6))
