"""Walks that visit the same steps are one alignment, at the cost of the cheapest."""

import warnings

import numpy as np
import pytest

import dropdtw
from dropdtw import orders
from dropdtw.problem.spec import Spec
from order_cases import case, random_walks

OPTIONS = [
    {"sides": (True, False), "many_to_one": False, "contiguous": True},
    {"sides": (True, False)},
    {"sides": (True, True)},
    {"sides": (False, False)},
]
TWICE = {
    "a jump to the next step": ("jumps", 2, [(0, 1)]),
    "a jump to the next step at a cost": ("jumps", 3, [(0, 1, 0.5), (2, 0, 0.25)]),
    "equal alternatives": ("one", [0, 1], [0, 1]),
    "alternatives that begin and end alike": ("one", [0, 1, 2], [0, 1, 0, 2], [0, 1, 2]),
    "equal alternatives in any order": ("one", ("any", 0, 1), ("any", 0, 1)),
    "a repeated repeat": ("repeat", ("repeat", 0, 0.0), 0.0),
    "repeats with two costs": ("repeat", ("repeat", [0, 1], 0.5), 0.25),
    "equal nodes": ("walks", [0, 0, 1], [(0, 1), (0, 2, 0.25), (1, 3, 0.5), (2, 3)], [3], []),
    "an arc and a jump": ("walks", [0, 1], [(0, 1), (1, 2)], [2], [(1, 2)]),
    "a loop beside a node": ("walks", [0, 1, 0], [(0, 1), (1, 2), (2, 3)], [1, 3], [(3, 1), (2, 1)]),
}


def three(said):
    """Arcs with a cost each, as the oracle wants them."""
    kind, *parts = said
    return (kind, *([(*arc, 0.0)[:3] if isinstance(arc, tuple) else arc for arc in p] if isinstance(p, list) else p
                    for p in parts)) if kind in ("jumps", "walks") else said  # fmt: skip


@pytest.mark.parametrize("said", TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_each_alignment_is_counted_once_at_its_lowest_cost(said, options, executor):
    said = three(said)
    if said[0] == "jumps":
        said = ("jumps", list(range(said[1])), said[2])
    for seed in range(3):
        c = case(said, options, seed=seed)
        for given, answer in ((c.given, c.answer), (c.free().given, c.free().answer)):
            found = dropdtw.cost(**given, reducer="soft", gamma=0.7, executor=executor)
            assert found == pytest.approx(answer.soft(0.7), rel=1e-9)
            assert dropdtw.cost(**given, executor=executor) == pytest.approx(answer.hard, rel=1e-9)


@pytest.mark.parametrize("said", TWICE.values(), ids=TWICE)
def test_draws_cost_what_their_posterior_expects(said):
    c = case(three(said) if said[0] == "walks" else said, OPTIONS[0], N=4)
    p = dropdtw.posterior(**c.given, gamma=0.5)
    costs = [a.cost for a in p.sample(4000, seed=0)]
    assert np.mean(costs) == pytest.approx(p.expected_cost, abs=5 * np.std(costs) / np.sqrt(len(costs)) + 1e-9)


@pytest.mark.parametrize("block", [0, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(1, 20))])
def test_random_graphs_count_each_alignment_once(block):
    rng = np.random.default_rng(block)
    for k in range(30):
        c = case(random_walks(rng), OPTIONS[k % len(OPTIONS)])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = dropdtw.cost(**c.given, reducer="soft", gamma=0.7)
        if caught:  # a walk may end in two nodes at different costs, which no graph of this form can say
            assert "reaches the same steps in several ways" in str(caught[0].message)
            assert found <= c.answer.soft(0.7) + 1e-9
        else:
            assert found == pytest.approx(c.answer.soft(0.7), rel=1e-9)


def test_a_jump_to_the_next_step_is_the_list():
    for options in ({"many_to_one": False}, {}, {"drop_z": 0.3}):
        C = np.random.default_rng(0).random((2, 4))
        found = dropdtw.posterior(C, drop_x=0.2, order=orders.jumps(2, [(0, 1)]), **options)
        assert found.cost == dropdtw.posterior(C, drop_x=0.2, **options).cost


def test_many_equal_ends_are_merged_at_once():
    n = 3000
    order = orders.walks([0] * n, [(0, v) for v in range(1, n + 1)], range(1, n + 1))
    assert len(order.graph(Spec.of(0.5).table)) == 2


def test_what_cannot_be_merged_is_said():
    with pytest.warns(UserWarning, match=r"one_of\(any_order\(0, 1\), \[1, 0\]\) reaches the same steps in several"):
        dropdtw.cost(np.zeros((2, 3)), 0.0, 0.0, order=orders.one_of(orders.any_order(0, 1), [1, 0]))
    ends = orders.walks([0, 0, 1], [(0, 1), (0, 2, 0.5), (1, 3), (2, 3)], [2, 3])  # walks end in node 2, not in 1
    with pytest.warns(UserWarning, match="soft minima and posteriors count such alignments several times"):
        dropdtw.cost(np.zeros((2, 3)), 0.0, order=ends)


def test_orders_without_equal_walks_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for order in (
            orders.one_of([0, 1], [0, 2]),
            orders.repeat([0, 1, 2]),
            orders.jumps(3, [(2, 0)]),
            orders.one_of(orders.any_order(0, 1, 2), [0, 1]),
            orders.one_of(orders.before(3, [(0, 1)]), [1, 0, 2]),
        ):
            dropdtw.cost(np.zeros((3, 3)), 0.0, order=order)
