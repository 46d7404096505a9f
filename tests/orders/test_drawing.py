"""Orders as boxes and arrows."""

import numpy as np
import pytest

from dropdtw import orders
from dropdtw.orders.drawing import Drawing, drawing
from dropdtw.orders.poset import Poset

ORDERS = [
    orders.as_order([0, 1, 2]),
    orders.before(4, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]),
    orders.before([7, 3, 5], [(7, 5)]),
    orders.as_order([orders.any_order(0, 1, 2), orders.any_order(3, 4, 5)]),
    orders.as_order([0, orders.one_of([1, 2], 3, orders.any_order(4, 5)), 6]),
    orders.one_of(orders.repeat([0, orders.any_order(1, 2)], 0.5), orders.jumps([3, 4, 5], [(5, 3, 1.0), (4, 4)])),
    orders.walks([0, 1, 0], [(0, 1), (1, 2), (2, 3), (1, 3, 0.25)], [1, 3], [(3, 1)]),
]


def reach(d: Drawing) -> set[tuple[int, int]]:
    """Pairs of steps such that arrows lead from the first to the second."""
    ways = np.eye(len(d.nodes), dtype=bool)
    for edge in d.edges:
        if edge.kind in ("before", "either"):
            ways[edge.source, edge.target] = True
    for _ in d.nodes:
        ways = ways @ ways
    pairs = np.argwhere(ways & ~np.eye(len(d.nodes), dtype=bool))
    return {(d.nodes[a].step, d.nodes[b].step) for a, b in pairs if d.nodes[a].step >= 0 <= d.nodes[b].step}


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_every_step_has_a_box_and_arrows_lead_to_later_layers(order):
    d = drawing(order)
    assert {node.step for node in d.nodes} - {-1} == set(order.steps)
    for edge in d.edges:
        if edge.kind in ("before", "either"):
            layers = [d.nodes[edge.source].layer, *(layer for layer, _ in edge.bends), d.nodes[edge.target].layer]
            assert layers == list(range(layers[0], layers[-1] + 1))
            assert len(layers) > 1


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_no_two_boxes_or_bends_share_a_place(order):
    d = drawing(order)
    places = [(node.layer, node.row) for node in d.nodes] + [place for edge in d.edges for place in edge.bends]
    assert len(set(places)) == len(places)


def test_arrows_of_a_partial_order_say_all_of_it_and_nothing_twice():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 8))
        pairs = [(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.4]
        order = orders.before(n, pairs)
        d, poset = drawing(order), Poset(n, pairs)
        assert reach(d) == {(a, b) for a in range(n) for b in range(n) if poset.above[a] >> b & 1}
        for edge in d.edges:
            rest = d._replace(edges=tuple(e for e in d.edges if e is not edge))
            assert reach(rest) < reach(d)


def test_arrows_say_what_is_chosen_repeated_and_jumped():
    d = drawing(orders.as_order([0, orders.one_of([1, 2], 3), 4]))
    said = {(d.nodes[e.source].step, d.nodes[e.target].step): e.kind for e in d.edges}
    assert said == {(0, 1): "either", (1, 2): "before", (0, 3): "either", (2, 4): "either", (3, 4): "either"}
    (back,) = [e for e in drawing(orders.repeat([0, 1, 2], 0.5)).edges if e.kind == "repeat"]
    assert (back.source, back.target, back.cost) == (2, 0, 0.5)
    (jump,) = [e for e in drawing(orders.jumps(3, [(2, 1, 0.25)])).edges if e.kind == "jump"]
    assert (jump.source, jump.target, jump.cost) == (2, 1, 0.25)


def test_a_choice_at_the_beginning_has_a_dot_to_begin_and_one_to_end():
    d = drawing(orders.one_of(0, 1))
    assert sorted(node.step for node in d.nodes) == [-1, -1, 0, 1]
    assert all(edge.kind == "either" for edge in d.edges)
    assert [node.step for node in drawing(orders.as_order([0, orders.one_of(1, 2)])).nodes] == [0, 1, 2, -1]
    assert all(node.step >= 0 for node in drawing(orders.any_order(0, 1)).nodes)


def test_many_arrows_meet_in_a_dot():
    d = drawing(orders.as_order([orders.any_order(*range(50)), orders.any_order(*range(50, 100))]))
    assert len(d.edges) == 100
    assert len(reach(d)) == 2500
