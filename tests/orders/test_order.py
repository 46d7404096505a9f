"""Orders as values: immutable, compared by content, serializable, and picklable."""

import copy
import dataclasses
import json
import multiprocessing
import pickle

import numpy as np
import pytest

import dropdtw
from dropdtw import orders
from order_cases import ORDERS, build, random_poset, random_walks, steps_of

every_order = pytest.mark.parametrize("name", ORDERS)


def drawn(seed):
    rng = np.random.default_rng(seed)
    return build(random_poset(rng, 5)), build(random_walks(rng))


EVERY = [*(build(said) for said in ORDERS.values()), *(order for seed in range(10) for order in drawn(seed))]


def solve_elsewhere(order):
    return dropdtw.cost(np.eye(order.K), 0.5, order=order)


def test_orders_are_immutable():
    order = orders.any_order([0, 1], 2)
    for change in ({"kind": "one"}, {"parts": ()}):
        for name, value in change.items():
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(order, name, value)
    for order in EVERY:
        assert type(order.parts) is tuple


def test_changing_what_an_order_was_made_of_does_not_change_it():
    pairs, labels, arcs = [(0, 2)], [0, 1], [(0, 1), (1, 2)]
    one, other = orders.before(3, pairs), orders.walks(labels, arcs, [2])
    said = repr(one), repr(other)
    pairs.append((1, 2))
    labels[0] = 1
    arcs.pop()
    assert (repr(one), repr(other)) == said


def test_orders_that_say_the_same_in_the_same_words_are_equal():
    for one, other in zip(EVERY, [*(build(said) for said in ORDERS.values())], strict=False):
        assert one == other
        assert hash(one) == hash(other)
    assert len({orders.any_order(0, 1), orders.any_order(0, 1), orders.any_order(1, 0)}) == 2
    assert len(set(map(repr, ORDERS.values()))) == len({build(said) for said in ORDERS.values()})


def test_equal_means_the_same_problem():
    a, b = orders.before(3, [(0, 1), (1, 2)]), orders.as_order([0, 1, 2])
    assert a == b == orders.jumps(3, []) == orders.as_order([[0], [1, [2]]])
    assert orders.any_order(orders.any_order(0, 1), 2) == orders.any_order(0, 1, 2)
    assert orders.one_of(orders.one_of(0, 1), 2) == orders.one_of(0, 1, 2)
    assert orders.any_order(3) == orders.one_of([3]) == orders.as_order(3)
    assert orders.before(3, [(0, 1)]) != orders.before(3, [(1, 0)])
    assert orders.before(3, [(0, 1)]) == orders.before(np.int64(3), np.array([[0, 1], [0, 1]]))
    assert orders.repeat(0, 1) == orders.repeat(0, 1.0) != orders.repeat(0, 2)


@every_order
def test_repr_reads_back(name):
    order = build(ORDERS[name])
    assert orders.as_order(eval(repr(order), vars(orders).copy())) == order


@pytest.mark.filterwarnings("ignore:two walks")
def test_repr_of_random_orders_reads_back():
    for seed in range(20):
        for order in drawn(seed):
            assert orders.as_order(eval(repr(order), vars(orders).copy())) == order


@every_order
def test_copies_and_pickles_are_equal(name):
    order = build(ORDERS[name])
    _ = order.steps, order.is_partial  # fill the cached properties first
    for other in (pickle.loads(pickle.dumps(order)), copy.copy(order), copy.deepcopy(order)):
        assert other == order
        assert hash(other) == hash(order)
        assert other.steps == order.steps


def test_orders_travel_to_other_processes():
    sent = [build(ORDERS[name]) for name in ("antichain of 3", "repeat sign", "bypass", "any, then alternatives")]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(solve_elsewhere, sent) == [solve_elsewhere(order) for order in sent]


@every_order
def test_to_dict_is_json_and_tells_orders_apart(name):
    said = build(ORDERS[name]).to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == json.loads(json.dumps(said))
    others = [build(other).to_dict() for key, other in ORDERS.items() if key != name]
    assert said not in others


@every_order
def test_steps_and_pairs_are_what_was_said(name):
    order = build(ORDERS[name])
    assert order.steps == tuple(range(steps_of(ORDERS[name])))
    order.check_steps(order.K)
    if order.is_partial:
        pairs = order.pairs()
        assert {step for pair in pairs for step in pair} <= set(order.steps)
        assert orders.before(order.K, pairs).is_partial


def test_pairs_say_all_of_a_partial_order():
    rng = np.random.default_rng(0)
    for _ in range(3):
        C = rng.normal(size=(4, 5))
        nested = orders.any_order([0, orders.any_order(1, 2)], 3)
        flat = orders.before(4, nested.pairs())
        assert dropdtw.cost(C, 0.3, 0.2, order=nested, reducer="soft") == pytest.approx(
            dropdtw.cost(C, 0.3, 0.2, order=flat, reducer="soft"), abs=1e-12
        )


def test_a_graph_is_compiled_once_for_each_kind_of_table():
    table = dropdtw.solve(np.zeros((3, 3)), 1.0).problem.table
    one, other = orders.any_order(0, 1, 2), orders.any_order(0, 1, 2)
    assert one.graph(table) is other.graph(table)
    assert one.graph(table).on(table) is one.graph(table).on(table)


def test_networkx_graphs_are_partial_orders():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([(0, 2), (1, 2)])
    assert orders.from_networkx(graph) == orders.before(3, [(0, 2), (1, 2)])


def test_any_order_of_one_list_warns_that_it_is_a_list():
    with pytest.warns(UserWarning, match=r"any_order\(\[0, 1, 2\]\) leaves nothing free.* or any_order\(\*notes\)"):
        assert orders.any_order(range(3)) == orders.as_order([0, 1, 2])
