"""Values, best alignments, probabilities and samples of every kind of order, against the list of all alignments."""

import math
from collections import Counter

import numpy as np
import pytest

import dropdtw
import order_oracle
from dropdtw import executors
from dropdtw.tables.reducers import soft_min
from order_cases import (
    LASTING,
    MIXED,
    OPTIONS,
    ORDERS,
    POSETS,
    WALKS,
    Case,
    build,
    case,
    cases_of,
    fits,
    holds_any,
    random_poset,
    random_walks,
    skipped_if_it_counts_twice,
    some_orders,
)

GAMMA = 0.6


def feasible(cases):
    """Those that have at least one alignment."""
    return [c for c in cases if len(c.answer.which)]


def check_values(c, executor):
    answer = c.answer
    if not len(answer.which):
        with pytest.raises(ValueError, match=r"every alignment is forbidden|cannot each have"):
            dropdtw.solve(**c.given, executor=executor)
        return
    given = {**c.given, "executor": executor}
    assert dropdtw.cost(**given) == pytest.approx(answer.hard, abs=1e-9), c
    assert dropdtw.cost(**given, reducer="soft", gamma=GAMMA) == pytest.approx(answer.soft(GAMMA), abs=1e-9), c


def check_alignment(c, executor):
    a, answer = dropdtw.solve(**c.given, executor=executor), c.answer
    assert a.cost == pytest.approx(answer.hard, abs=1e-9)
    assert a.rescore() == pytest.approx(a.cost, abs=1e-9)
    check_shape(a)
    assert key(c, a) in keys(c), c
    if answer.unique:
        assert key(c, a) == keys(c)[answer.cost.argmin()], c


def check_shape(a):
    """Check that the views of an alignment agree: pairs by x, visits by x, and costs."""
    i, j = a.pairs.T
    assert (np.diff(j) >= 0).all()
    assert (np.diff(a.visit) >= 0).all()
    assert (a.walk[a.visit] == i).all()
    assert a.done.tolist() == [step for n, step in enumerate(a.walk) if n in set(a.visit.tolist())]
    assert [v.label for v in a.visits] == a.done.tolist()
    assert ((a.labels >= 0) == ~a.dropped_x).all()
    assert (a.paid_x == a.dropped_x).all()
    matched = Counter(a.done.tolist())
    walked = Counter(a.walk.tolist())
    assert a.paid_z.tolist() == [walked[z] - matched[z] for z in range(a.shape[0])]


def key(c, a):
    """The identity of an alignment: the x of each visit in turn; for steps in any order, regardless of their order."""
    xs = [tuple(a.pairs[a.visit == n, 1].tolist()) for n in range(len(a.walk))]
    return _key(c, zip(a.walk.tolist(), xs, strict=True))


def keys(c):
    """The identities of all alignments that the oracle lists, in its order."""
    every = c.answer.all
    N = every.used.shape[1]
    rows = ([tuple(j for j in range(N) if row >> j & 1) for row in every.rows[k]] for k in c.answer.which)
    ways = (every.ways[every.course[k]].steps for k in c.answer.which)
    return [_key(c, zip(way, row, strict=True)) for way, row in zip(ways, rows, strict=True)]


def _key(c, visits):
    return frozenset(Counter(visits).items()) if holds_any(c.said) else tuple(visits)


def check_probabilities(c, executor):
    p, answer = dropdtw.posterior(**c.given, gamma=GAMMA, executor=executor), c.answer
    every = answer.all
    expected = answer.probability(GAMMA) @ answer.cost
    assert p.expected_cost == pytest.approx(expected, abs=1e-9)
    assert p.log_partition == pytest.approx(-answer.soft(GAMMA) / GAMMA, abs=1e-9)
    for found, expected in (
        (p.match, every.match),
        (p.drop_x, ~every.used),
        (p.drop_z, every.dropped),
        (p.visit, every.visit),
    ):
        np.testing.assert_allclose(found, answer.mean(expected, GAMMA), atol=1e-9, err_msg=str(c))


def check_arcs(c, executor):
    """Check the mean arc cost, that the flow into a node equals the flow out of it, and how often each arc is taken."""
    problem, answer = c.problem(executor), c.answer
    graph = problem.graph
    found = executors.run(problem, soft_min(GAMMA), gradient=True).arcs
    assert len(found) == len(graph.arcs)
    assert found @ graph.cost == pytest.approx(answer.arc_cost(GAMMA), abs=1e-9), c
    into = np.bincount(graph.target, found, len(graph))
    out = np.bincount(graph.source, found, len(graph))
    inner = np.ones(len(graph), bool)
    inner[[graph.start, *graph.finals]] = False
    np.testing.assert_allclose(into[inner], out[inner], atol=1e-9)
    ended = (into - out)[list(graph.finals)].sum() + (0 if graph.start in graph.finals else (into - out)[graph.start])
    assert ended == pytest.approx(0, abs=1e-9) or graph.start in graph.finals
    if [arc[:2] for arc in graph.arcs] == arcs_said(c.said):  # no walks were merged
        np.testing.assert_allclose(found, answer.arcs(GAMMA, len(found)), atol=1e-9)


def arcs_said(said):
    """The arcs and jumps of a graph as its user gave them, in order; None for other orders."""
    if said[0] == "walks":
        return [arc[:2] for arc in (*said[2], *said[4])]
    if said[0] == "jumps":
        steps = list(range(said[1])) if isinstance(said[1], int) else said[1]
        return [(k, k + 1) for k in range(len(steps))] + [tuple(steps.index(s) + 1 for s in j[:2]) for j in said[2]]
    return None


def check_before(c, executor):
    p = dropdtw.posterior(**c.given, gamma=GAMMA, executor=executor)
    np.testing.assert_allclose(p.before, c.answer.before(GAMMA), atol=1e-9, err_msg=str(c))


def so_far_out(often, n, q):
    """The tail probability of this many successes, or more extreme, in n draws that each succeed with probability q."""
    counts = range(often, n + 1) if often >= n * q else range(often + 1)
    return sum(math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in counts)


def check_draws(c, n=80):
    """Samples are alignments with the right cost, and their frequencies fit their probabilities (error rate 10⁻⁷)."""
    answer = c.answer
    drawn = dropdtw.posterior(**c.given, gamma=GAMMA).sample(n, seed=0)
    shares, costs = Counter(), {}
    for k, q, cost in zip(keys(c), answer.probability(GAMMA), answer.cost, strict=True):
        shares[k] += q
        costs[k] = min(cost, costs.get(k, np.inf))  # the cheapest of the courses with the same visits
    often = Counter()
    for a in drawn:
        check_shape(a)
        often[key(c, a)] += 1
        assert a.cost == pytest.approx(costs[key(c, a)], abs=1e-9)
    for k, q in shares.items():
        assert so_far_out(often[k], n, q) > 1e-7, c


@some_orders(every=8)
def test_values_are_those_of_all_alignments(name, every, executor):
    for c in cases_of(name, every):
        check_values(c, executor)


@some_orders(every=8)
def test_best_alignment_is_the_best_of_all(name, every, executor):
    for c in feasible(cases_of(name, every)):
        check_alignment(c, executor)


@some_orders(every=8)
def test_probabilities_are_those_of_all_alignments(name, every, executor):
    for c in feasible(cases_of(name, every)):
        check_probabilities(c, executor)


@some_orders({k: v for k, v in ORDERS.items() if k != "permuted list"}, every=12)
def test_derivatives_by_arcs_are_how_often_they_are_taken(name, every, executor):
    for c in feasible(cases_of(name, every)):
        check_arcs(c, executor)


@some_orders(every=12)
def test_before_is_how_often_one_first_x_precedes_another(name, every, executor):
    partial = build(ORDERS[name]).is_partial
    for c in feasible(cases_of(name, every)):
        if partial and not c.options["many_to_one"]:
            check_before(c, executor)
        else:
            with pytest.raises(ValueError, match=r"estimate it from sample\(\)"):
                _ = dropdtw.posterior(**c.given, executor=executor).before


@pytest.mark.parametrize("said", [[0, 1, 2], [2, 0, 1], [0, ("any", 2, 1)], [("any", 2, 0), 1], [1, ("any", 0, 2)]])
@pytest.mark.parametrize("sides", [(True, True), (True, False)])
def test_before_knows_the_place_of_a_part_in_a_list(said, sides, executor):
    check_before(case(said, {"sides": sides, "many_to_one": False}), executor)


@some_orders({name: said for n, (name, said) in enumerate(ORDERS.items()) if n % 4 == 0}, every=32)
def test_draws_come_as_often_as_they_should(name, every):
    for c in feasible(cases_of(name, every)):
        check_draws(c)


@some_orders({name: said for n, (name, said) in enumerate(ORDERS.items()) if n % 3 == 0}, every=16)
def test_single_precision_stays_close_to_double(name, every, executor):
    for c in feasible(cases_of(name, every)):
        answer = c.answer
        given = c.given | {"C": c.C.astype(np.float32), "executor": executor}
        assert dropdtw.cost(**given) == pytest.approx(answer.hard, abs=1e-5)
        p = dropdtw.posterior(**given, gamma=GAMMA)
        assert p.match.dtype == np.float32
        np.testing.assert_allclose(p.match, answer.mean(answer.all.match, GAMMA), atol=1e-5)
        found = executors.run(c.problem(executor), soft_min(GAMMA), gradient=True).arcs
        single = dropdtw.solve(**given).problem
        by_arcs = executors.run(single, soft_min(GAMMA), gradient=True).arcs
        np.testing.assert_allclose(by_arcs, found, atol=1e-5)


@pytest.mark.parametrize("name", [*POSETS, *WALKS, *MIXED])
def test_forbidden_matches_and_drops_are_never_chosen(name, executor):
    said = {**POSETS, **WALKS, **MIXED}[name]
    for seed, sides in enumerate([(True, True)]):
        c = case(said, {"sides": sides, "many_to_one": holds_any(said)}, seed=seed, kind="holes")
        check_values(c, executor)
        if len(c.answer.which):
            check_alignment(c, executor)
            check_probabilities(c, executor)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(6, 60))])
def test_random_orders_answer_like_the_list_of_all_alignments(seed, executor):
    rng = np.random.default_rng(seed)
    said = [random_walks(rng), random_poset(rng, 4), random_poset(rng, 5)][seed % 3]
    with skipped_if_it_counts_twice():
        for k in rng.permutation(len(OPTIONS))[: 2 if seed < 6 else 12]:
            c = case(said, OPTIONS[k], N=int(rng.integers(2, 4)), seed=seed)
            check_values(c, executor)
            if len(c.answer.which):
                check_alignment(c, executor)
                check_probabilities(c, executor)
                if c.problem().graph is not None and c.problem().graph.chain is None:
                    check_arcs(c, executor)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ORDERS)
def test_four_x_answer_like_the_list_of_all_alignments(name, executor):
    said = ORDERS[name]
    for seed, options in enumerate(OPTIONS):
        if fits(said, options):
            c = case(said, options, N=4, seed=seed)
            check_values(c, executor)
            if len(c.answer.which):
                check_probabilities(c, executor)


def test_oracle_can_tell():
    """A wrong order, or a missing arc cost, changes the result, so the comparisons above are not vacuous."""
    c = case(("any", 0, 1, 2), {"sides": (True, False)})
    assert order_oracle.answer([0, 1, 2], c.C, c.drop_x).hard > c.answer.hard + 1e-3
    said = ("jumps", 2, [(1, 0, 0.5)])
    c, costlier = case(said, {"sides": (False, False)}), case(("jumps", 2, [(1, 0, 0.75)]), {"sides": (False, False)})
    assert c.answer.soft(1.0) < costlier.answer.soft(1.0) - 1e-3


@pytest.mark.parametrize("name", LASTING)
@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("kind", ["signed", "holes"])
def test_durations_limit_the_x_of_each_step(name, sides, kind, executor):
    for N, charged in ((3, False), (4, True), (5, False)):
        c = case(LASTING[name], {"sides": sides}, N, seed=N, kind=kind)
        options: dict = {"many_to_one": False, "contiguous": True}
        if charged and sides[0]:
            options |= {"open_x": 0.3}
        if charged and sides[1] and not holds_any(c.said):
            options |= {"open_z": 0.2}
        c = Case(c.said, c.C, c.drop_x, c.drop_z, options)
        check_values(c, executor)
        if len(c.answer.which):
            check_alignment(c, executor)
            check_probabilities(c, executor)
            if c.problem().graph.equal is None:  # otherwise the table counts, and there are no arcs to take
                check_arcs(c, executor)
