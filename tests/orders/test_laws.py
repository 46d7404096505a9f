"""Laws of orders: what a constraint, a renumbering, or a list given as an order may change, and what it may not."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import dropdtw
from dropdtw import executors, orders
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import hard_min, smooth_min, soft_min
from order_cases import FLAGS, MIXED, OPTIONS, ORDERS, POSETS, REPEATED, WALKS, build, case, fits, holds_any, steps_of

REDUCERS = [hard_min, soft_min(0.4), smooth_min(0.4)]
every_reducer = pytest.mark.parametrize("reducer", REDUCERS, ids=lambda reducer: reducer.name)
hard_and_soft = pytest.mark.parametrize("reducer", ["hard", "soft"])


def outcome(function, *args, **options):
    """The result of a call, or the text of its error."""
    try:
        return function(*args, **options)
    except ValueError as error:
        return str(error)


# --- Constraints ----------------------------------------------------------------------------------------------------

TIGHTER = [
    (("any", 0, 1, 2), ("before", 3, [(2, 0)])),
    (("before", 3, [(2, 0)]), ("before", 3, [(2, 0), (2, 1)])),
    (("before", 3, [(2, 0), (2, 1)]), [2, ("any", 0, 1)]),
    (("before", 4, [(0, 2), (1, 2), (1, 3)]), ("before", 4, [(0, 2), (1, 2), (1, 3), (0, 3)])),
    (("any", [0, 1], [2, 3]), ("before", 4, [(0, 1), (2, 3), (0, 2)])),
    (("before", 4, [(0, 1), (2, 3), (0, 2)]), [0, 1, 2, 3]),
    (("any", [0, 1], [2, 3]), [2, 0, 1, 3]),
    (("repeat", [0, 1], 0.0), [0, 1]),
    (("jumps", 3, [(2, 0, 0.1), (1, 0, 0.2)]), ("jumps", 3, [(2, 0, 0.1)])),
    (("jumps", 3, [(2, 0, 0.1)]), ("jumps", 3, [(2, 0, 0.3)])),
    (("repeat", ("any", 0, 1), 0.2), ("repeat", [1, 0], 0.2)),
]


@hard_and_soft
@pytest.mark.parametrize("pair", range(len(TIGHTER)))
def test_a_constraint_never_lowers_the_cost(pair, reducer, executor):
    looser, tighter = TIGHTER[pair]
    for seed, options in enumerate(OPTIONS[pair % 7 :: 7]):
        if fits(looser, options):
            loose, tight = (case(said, options, seed=seed) for said in (looser, tighter))
            more = {"reducer": reducer, "gamma": 0.5, "executor": executor}
            a, b = (outcome(dropdtw.cost, **c.given, **more) for c in (loose, tight))
            assert isinstance(b, str) or a <= b + 1e-9, (options, a, b)


@hard_and_soft
def test_alternatives_cost_no_more_than_each_of_them(reducer, executor):
    rng = np.random.default_rng(0)
    for options in FLAGS:
        C = rng.normal(size=(3, 5))
        more = {"drop_x": rng.random(5), "reducer": reducer, "gamma": 0.5, "executor": executor, **options}
        parts = [[0, 1, 2], [2, 1, 0], [1, 0, 2]]
        each = np.array([dropdtw.cost(C, order=part, **more) for part in parts])
        both = dropdtw.cost(C, order=orders.one_of(*parts), **more)
        expected = each.min() if reducer == "hard" else -0.5 * np.log(np.exp(-each / 0.5).sum())
        assert both == pytest.approx(expected, abs=1e-9)


@hard_and_soft
def test_any_order_is_every_order_of_single_matches(reducer, executor):
    """If every x matches at most once and every step is matched, an antichain has the alignments of all its lists."""
    C = np.random.default_rng(1).normal(size=(3, 4))
    more = {"drop_x": 0.2, "many_to_one": False, "reducer": reducer, "gamma": 0.5, "executor": executor}
    each = np.array([dropdtw.cost(C, order=list(way), **more) for way in permutations(range(3))])
    expected = each.min() if reducer == "hard" else -0.5 * np.log(np.exp(-each / 0.5).sum())
    assert dropdtw.cost(C, order=orders.any_order(0, 1, 2), **more) == pytest.approx(expected, abs=1e-9)


# --- Other numbers for the steps ------------------------------------------------------------------------------------


def relabeled(said, names):
    """The same order with renumbered steps."""
    if isinstance(said, int):
        return names[said]
    if isinstance(said, list):
        return [relabeled(part, names) for part in said]
    kind, *parts = said
    if kind in ("before", "jumps"):
        steps = range(parts[0]) if isinstance(parts[0], int) else parts[0]
        return kind, [names[n] for n in steps], [(names[a], names[b], *more) for a, b, *more in parts[1]]
    if kind == "walks":
        return kind, [names[n] for n in parts[0]], *parts[1:]
    if kind == "repeat":
        return kind, relabeled(parts[0], names), parts[1]
    return kind, *(relabeled(part, names) for part in parts)


@pytest.mark.parametrize("name", ORDERS)
def test_other_numbers_for_the_steps_change_nothing(name, executor):
    said = ORDERS[name]
    rng = np.random.default_rng(len(name))
    names = [int(n) for n in rng.permutation(steps_of(said))]
    for options in [o for o in OPTIONS if fits(said, o)][:: 13 if holds_any(said) else 25]:
        c = case(said, options, seed=3)
        other = {**c.given, "order": build(relabeled(said, names)), "executor": executor}
        back = np.argsort(names)
        other |= {"C": c.C[back], "drop_z": None if c.drop_z is None else c.drop_z[back]}
        ours = outcome(dropdtw.posterior, **c.given, executor=executor, gamma=0.5)
        theirs = outcome(dropdtw.posterior, **other, gamma=0.5)
        if isinstance(ours, str):
            assert ours == theirs
            continue
        assert theirs.cost == pytest.approx(ours.cost, abs=1e-9)
        np.testing.assert_allclose(theirs.match[names], ours.match, atol=1e-9)
        np.testing.assert_allclose(theirs.visit[names], ours.visit, atol=1e-9)
        assert dropdtw.cost(**other) == pytest.approx(dropdtw.cost(**c.given, executor=executor), abs=1e-9)


# --- Lists ----------------------------------------------------------------------------------------------------------

LISTS = {
    "a list": [0, 1, 2],
    "before": ("before", 3, [(0, 1), (1, 2)]),
    "before, with more than needed": ("before", 3, [(0, 2), (1, 2), (0, 1)]),
    "lists in a list": [[0], [1, 2]],
    "one_of one": ("one", [0, 1, 2]),
    "any_order of one": ("any", [0, 1, 2]),
    "no jumps": ("jumps", 3, []),
    "walks": ("walks", [0, 1, 2], [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0)], [3], []),
}


def identical(a, b):
    """Whether two results are identical to the last bit."""
    return all(np.array_equal(one, other) for one, other in zip(a[:5], b[:5], strict=True))


@pytest.mark.filterwarnings("ignore:any_order.* leaves nothing free")
@every_reducer
@pytest.mark.parametrize("name", LISTS)
def test_a_list_given_as_an_order_is_no_order_to_the_last_bit(name, reducer, executor):
    for seed, options in enumerate(OPTIONS[:: 5 if name == "walks" else 11]):
        plain, ordered = (case([0, 1, 2], options, N=4, seed=seed).given for _ in range(2))
        plain["order"], ordered["order"] = None, build(LISTS[name])
        a, b = (outcome(dropdtw.solve, **given, executor=executor) for given in (plain, ordered))
        if isinstance(a, str):
            assert b == a or (name == "walks" and isinstance(b, str))  # for a graph, lengths do not determine this
            continue
        assert identical(*(executors.run(x.problem, reducer, gradient=True) for x in (a, b)))
        assert a.cost == b.cost
        for view in ("pairs", "labels", "paid_x", "paid_z", "walk", "visit", "done"):
            np.testing.assert_array_equal(getattr(a, view), getattr(b, view))
        assert a.visits == b.visits
        p, q = (dropdtw.posterior(**given, gamma=0.5, executor=executor) for given in (plain, ordered))
        for view in ("match", "drop_x", "drop_z", "visit"):
            np.testing.assert_array_equal(getattr(p, view), getattr(q, view))
        assert p.log_partition == q.log_partition
        assert p.expected_cost == q.expected_cost
        assert [x.pairs.tolist() for x in p.sample(5, seed=0)] == [x.pairs.tolist() for x in q.sample(5, seed=0)]


def test_a_list_given_as_an_order_costs_the_same_between_sequences(executor):
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(3, 2)), rng.normal(size=(6, 2))
    for more in ({"drop_x": 0.5}, {"drop_x": "percentile:30", "drop_z": 0.4, "reducer": "soft"}, {"method": "otam"}):
        assert dropdtw.distance(Z, X, order=[0, 1, 2], executor=executor, **more) == dropdtw.distance(
            Z, X, executor=executor, **more
        )
    for permuted in ([2, 0, 1], [1, 1, 0, 2]):
        assert dropdtw.distance(Z, X, 0.5, order=permuted, executor=executor) == dropdtw.distance(
            Z[permuted], X, 0.5, executor=executor
        )


@pytest.mark.parametrize("rows", [[2, 0, 1], [0, 1, 0], [1, 1, 0]])
@every_reducer
def test_another_list_is_its_rows_to_the_last_bit(rows, reducer, executor):
    for seed, options in enumerate(OPTIONS[::7]):
        c = case(rows, options, N=4, seed=seed)
        gathered = {**c.given, "order": None, "C": c.C[rows], "executor": executor}
        gathered["drop_z"] = None if c.drop_z is None else c.drop_z[rows]
        a, b = outcome(dropdtw.solve, **gathered), outcome(dropdtw.solve, **c.given, executor=executor)
        if isinstance(a, str) or isinstance(b, str):
            assert a == b or "cannot each have" in a
            continue
        assert a.cost == b.cost
        assert b.pairs.tolist() == [[rows[i], j] for i, j in a.pairs.tolist()]
        assert b.walk.tolist() == rows
        assert b.visit.tolist() == a.pairs[:, 0].tolist()
        one, other = (executors.run(x.problem, reducer, gradient=True) for x in (a, b))
        assert one.value == other.value
        expected = np.zeros_like(other.match)
        np.add.at(expected, rows, one.match)
        np.testing.assert_array_equal(other.match, expected)
        np.testing.assert_array_equal(one.drop_x, other.drop_x)
        np.testing.assert_array_equal(other.drop_z, np.bincount(rows, one.drop_z, len(other.drop_z)))


@every_reducer
def test_the_graph_of_a_list_is_the_list_to_rounding(reducer):
    """A chain that is run as a graph, instead of as a list, gives the same result."""
    for seed, options in enumerate(OPTIONS[::3]):
        c = case([2, 0, 1], options, seed=seed)
        problem = c.problem("reference")
        by_rows = executors.run(problem, reducer, gradient=True)
        by_nodes = executors.graphs.run(problem.table, problem.graph, reducer, problem.costs, gradient=True)
        assert by_rows.value == pytest.approx(by_nodes.value, abs=1e-12)
        if np.isfinite(by_rows.value):
            for one, other in zip(by_rows[1:4], by_nodes[1:4], strict=True):
                np.testing.assert_allclose(one, other, atol=1e-12)


# --- Derivatives ----------------------------------------------------------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize("reducer", [soft_min(0.4), smooth_min(0.4)], ids=lambda reducer: reducer.name)
@pytest.mark.parametrize("name", [name for name in ORDERS if name != "permuted list"])
def test_derivatives_are_finite_differences(name, reducer, executor):
    said = ORDERS[name]
    h = 1e-5
    allowed = [o for o in OPTIONS if fits(said, o) and (o["sides"][0] or o["one_to_many"])]  # others allow none
    shift = list(ORDERS).index(name)
    for options in (allowed[(11 * shift) % len(allowed)],):
        problem = case(said, options, N=4, seed=shift).problem(executor)
        found = executors.run(problem, reducer, gradient=True)
        if not np.isfinite(found.value):
            continue
        rng = np.random.default_rng(shift)
        costs = problem.costs
        direction = [rng.normal(size=part.shape) for part in (costs.matrix, costs.drop_x, costs.drop_z)]
        by_arcs = rng.normal(size=len(problem.graph.arcs))

        def moved(t, problem=problem, costs=costs, direction=direction, by_arcs=by_arcs):
            match, drop_x, drop_z = direction
            other = costs.with_match(costs.matrix + t * match)
            other = other._replace(drop_x=costs.drop_x + t * drop_x, drop_z=costs.drop_z + t * drop_z)
            graph = problem.graph
            arcs = tuple(arc._replace(cost=arc.cost + t * d) for arc, d in zip(graph.arcs, by_arcs, strict=True))
            graph = graph if graph.chain is not None else replace(graph, arcs=arcs)
            return executors.run(replace(problem.paying(other), graph=graph), reducer).value

        slope = (moved(h) - moved(-h)) / (2 * h)
        expected = sum(
            (part * way)[np.isfinite(part)].sum() for part, way in zip(found[1:4], direction, strict=True)
        ) + (0 if problem.graph.chain is not None else found.arcs @ by_arcs)
        assert slope == pytest.approx(expected, abs=1e-6), options


@pytest.mark.parametrize("name", [*POSETS, *WALKS, *MIXED, *REPEATED])
def test_smooth_minima_approach_hard_ones_from_above(name, executor):
    said = ORDERS[name]
    c = case(said, {"sides": (True, False)}, N=4, seed=1)
    hard = dropdtw.cost(**c.given, executor=executor)
    assert dropdtw.cost(**c.given, executor=executor, reducer="smooth", gamma=1e-4) == pytest.approx(hard, abs=1e-6)
    assert dropdtw.cost(**c.given, executor=executor, reducer="smooth", gamma=0.5) >= hard - 1e-9


@pytest.mark.parametrize("drop_z", [None, 0.2])
@pytest.mark.parametrize("many_to_one", [True, False])
def test_a_jump_forward_enters_with_a_match_of_a_later_x_even_in_a_list(drop_z, many_to_one):
    """Node 2 can only be jumped to, so its step may be neither dropped nor matched to the x of the step before it."""
    C = np.array([[0.9, 0.9, 0.9, 0.9, 0.0], [0.9, 0.9, 0.9, 0.9, 0.1]])
    order = dropdtw.orders.walks([0, 1], [(0, 1)], [2], jumps=[(1, 2)])
    price = None if drop_z is None else [drop_z, np.inf]
    wanted = dropdtw.cost(C, 0.3, price, many_to_one=False)
    found = dropdtw.cost(C, 0.3, drop_z, many_to_one=many_to_one, order=order)
    assert found == pytest.approx(wanted)
    if many_to_one or drop_z is not None:
        assert found > dropdtw.cost(C, 0.3, drop_z, many_to_one=many_to_one) + 0.01


@pytest.mark.parametrize("options", [{}, {"many_to_one": False}], ids=["shared x", "exclusive"])
@pytest.mark.parametrize("table", [recurrence.one_sided, recurrence.two_sided])
def test_an_order_of_one_step_is_a_list(table, options):
    """Lists run on kernels of their own, which are faster than those for graphs."""
    assert orders.before(1, []).graph(table(**options)).chain.tolist() == [0]
