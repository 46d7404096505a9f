"""Hostile orders raise quickly, with one line that says what is wrong, and never with another kind of error."""

import time
from itertools import pairwise

import numpy as np
import pytest

import dropdtw
from dropdtw import orders
from order_cases import POSETS, build

SECONDS = 5.0
"""Seconds of processor time, so that other load on the machine does not matter."""


def solved(order, N=3, **options):
    order = orders.as_order(order)
    return dropdtw.solve(np.zeros((order.K, N)), order=order, **options)


def chains(count, length):
    """Several parallel lists."""
    return [list(range(k * length, (k + 1) * length)) for k in range(count)]


def nested(n):
    """Nested partial orders."""
    found = 0
    for k in range(n):
        found = orders.any_order([found, 2 * k + 1], 2 * k + 2)
    return found


class NoNumber:
    """Resembles a step, but is not one."""

    __index__ = None


HOSTILE = {
    "a long cycle": lambda: orders.before(16000, [(v, (v + 1) % 16000) for v in range(16000)]),
    "10^6 pairs in cycles": lambda: orders.before(1001, ((a, b) for a in range(1000) for b in range(1001))),
    "pairs without end": lambda: orders.before(3, iter(lambda: (0, 1), None)),
    "jumps without end": lambda: orders.jumps(3, iter(lambda: (0, 1), None)),
    "steps without end": lambda: orders.as_order(iter(int, 1)),
    "10^5 steps": lambda: orders.before(10**5, []),
    "10^5 steps in a list": lambda: orders.as_order(range(10**5)),
    "10^7 steps in a list": lambda: orders.as_order([0] * 10**7),
    "10^30 steps": lambda: orders.before(10**30, []),
    "16,000 free steps": lambda: solved(orders.any_order(*range(16000)), drop_x=1, drop_z=1),
    "19 free steps": lambda: solved(orders.any_order(*range(19)), N=20, drop_x=1, many_to_one=False),
    "two chains of 8,000": lambda: solved(orders.any_order(*chains(2, 8000)), drop_x=1, drop_z=1),
    "two chains of 600": lambda: solved(orders.any_order(*chains(2, 600)), drop_x=1, drop_z=1),
    "six chains of 40": lambda: solved(orders.any_order(*chains(6, 40)), drop_x=1, drop_z=1),
    "8,000 free steps after 8,000": lambda: solved(
        orders.any_order([orders.any_order(*range(8000)), orders.any_order(*range(8000, 15999))], 15999), drop_x=1
    ),
    "lists 1,000 deep": lambda: nested_lists(1000),
    "a list inside itself": lambda: inside_itself(),
    "partial orders 1,000 deep": lambda: nested(1000),
    "a step that is none": lambda: orders.as_order([NoNumber()]),
    "numbers of two kinds": lambda: orders.before(3, np.array([[0.0, 1.0]])),
    "rows of three": lambda: orders.before(3, np.zeros((2, 300), int)),
    "a graph of 10^6 nodes": lambda: orders.walks([0] * 10**6, [], [1]),
    "a graph with nodes in arrays": lambda: orders.walks([0], [(np.array([0, 1]), 1)], [1]),
    "the steps of another Z": lambda: dropdtw.solve(np.zeros((3, 3)), order=range(16000)),
}


def nested_lists(n):
    found = [0]
    for _ in range(n):
        found = [found]
    return orders.as_order(found)


def inside_itself():
    found = [0]
    found.append(found)
    return orders.as_order(found)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_orders_get_one_line_soon(name):
    begun = time.process_time()
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - what it says is below
        HOSTILE[name]()
    assert time.process_time() - begun < SECONDS
    message = str(caught.value)
    assert "\n" not in message
    assert 20 < len(message) < 400


@pytest.mark.parametrize("build", ["19 free steps", "two chains of 600", "six chains of 40"])
def test_too_many_free_steps_are_counted_and_three_remedies_named(build):
    with pytest.raises(ValueError, match=r"up to \d+ of \d+ steps are free at once.*more than \d+ nodes") as caught:
        HOSTILE[build]()
    says = str(caught.value)
    free = {"19 free steps": 19, "two chains of 600": 2, "six chains of 40": 6}[build]
    assert f"up to {free} of" in says
    for remedy in (
        "Add pairs with before()",
        "into a list inside any_order",
        "split the order at a step",
    ):
        assert remedy in says


def test_large_orders_that_are_sound_are_taken():
    begun = time.process_time()
    everything = orders.before(400, ((a, b) for b in range(400) for a in range(b)))  # 79,800 pairs
    assert everything == orders.as_order(range(400))
    ten = solved(orders.any_order(*range(10)), N=10, many_to_one=False)
    assert len(ten.done) == 10
    pairs = orders.as_order([orders.any_order(2 * k, 2 * k + 1) for k in range(50)])  # two free at a time
    assert solved(pairs, N=2, drop_x=1, drop_z=0.5).cost == 0
    assert time.process_time() - begun < 4 * SECONDS


def test_antichains_have_the_size_that_the_design_states():
    table = dropdtw.solve(np.zeros((2, 3)), 1.0, many_to_one=False, contiguous=True).problem.table
    graph = orders.any_order(*range(12)).graph(table)
    assert (~graph.hub).sum() == 24_577  # 12 · 2¹¹ and the start


@pytest.mark.parametrize("name", ["N", "two chains of 2", "any of partial orders", "chain and a step"])
def test_no_two_nodes_have_the_same_future(name):
    table = dropdtw.solve(np.zeros((2, 3)), 1.0, 1.0).problem.table
    graph = build(POSETS[name]).graph(table)
    out = [
        frozenset((arc.target, arc.use) for arc in graph.arcs if arc.source == v) | {("final", v in graph.finals)}
        for v in range(len(graph))
    ]
    futures = [(int(graph.label[v]), bool(graph.again[v]), out[v]) for v in range(len(graph)) if not graph.hub[v]]
    assert len(set(futures)) == len(futures)


def test_no_arc_is_there_twice():
    table = dropdtw.solve(np.zeros((2, 3)), 1.0, 1.0).problem.table
    graph = orders.any_order(*range(5)).graph(table)
    arcs = [(arc.source, arc.target, use) for arc in graph.arcs for use in range(6) if arc.use >> use & 1]
    assert len(set(arcs)) == len(arcs)


@pytest.mark.parametrize("options", [{}, {"drop_z": 1.0}, {"drop_z": 1.0, "many_to_one": False}])
def test_a_chain_compiles_to_a_node_for_each_step(options):
    table = dropdtw.solve(np.zeros((3, 3)), 1.0, **options).problem.table
    from dropdtw.orders.lattice import Moves, lattice
    from dropdtw.orders.poset import Poset

    moves = Moves("drop_z" in options, table.matches_by("top"), table.matches_by("left"))
    found = lattice(Poset(6, list(pairwise(range(6)))), moves)
    assert len(found.keys) == 7
    assert len({arc[:2] for arc in found.arcs}) == 6
