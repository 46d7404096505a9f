"""Results for steps with an order: serialization, explanations, and samples from a posterior."""

import json
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from cases import same
from dropdtw import Alignment, orders, solve
from dropdtw.problem.spec import Spec
from dropdtw.results.walked import arcs_cost

rng = np.random.default_rng(7)
C, D_Z = rng.normal(size=(4, 7)), rng.normal(size=4)
ORDERS = {
    "any order": orders.any_order([0, 1], 2, 3),
    "diamond": orders.before(4, [(0, 1), (0, 2), (1, 3), (2, 3)]),
    "other list": [2, 0, 3, 1],
    "refrain": [0, 1, 0, 2, 0, 3],
    "choice": orders.one_of([0, 1], [2, 3], [1, 2, 0]),
    "loop": [0, orders.repeat([1, 2], 0.25), 3],
    "jumps": orders.jumps(4, [(3, 0, 0.5), (1, 1, 0.125), (0, 3)]),
    "walks": orders.walks([0, 1, 2, 3, 0], [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)], [4, 5], [(5, 1, 0.5)]),
}
every_order = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
both_sides = pytest.mark.parametrize("drop_z", [None, D_Z], ids=["x", "x and z"])


def through_json(a, **options):
    return Alignment.from_dict(json.loads(json.dumps(a.to_dict(**options), allow_nan=False)))


def found(order=ORDERS["any order"], drop_z=None, **more):
    return solve(C, 0.3, drop_z, order=order, **more)


# --- JSON -----------------------------------------------------------------------------------------------------------


@every_order
@both_sides
def test_the_walk_is_written_and_read(order, drop_z):
    a = found(order, drop_z)
    b = through_json(a)
    assert same(a, b)
    assert (b.walk.tolist(), b.visit.tolist()) == (a.walk.tolist(), a.visit.tolist())
    assert (b.visits, b.segments(), repr(b)) == (a.visits, a.segments(), repr(a))
    assert a._repr_html_() == b._repr_html_()


@every_order
@both_sides
def test_with_its_costs_the_order_comes_back(order, drop_z):
    a = found(order, drop_z)
    b = through_json(a, costs=True)
    assert b.problem.order == a.problem.order == orders.as_order(order)
    assert b.rescore() == approx(a.cost) == approx(a.rescore())
    for j in range(7):
        assert str(b.explain(j)) == str(a.explain(j))
    p, q = a.posterior(0.5), b.posterior(0.5)
    np.testing.assert_array_equal(p.match, q.match)
    np.testing.assert_array_equal(p.visit, q.visit)


@pytest.mark.parametrize("cost", [0.0, 0.25])
def test_a_drawn_alignment_pays_for_its_arcs(cost):
    for a in dropdtw.posterior(C, drop_x=0.3, order=orders.repeat([0, 1, 2, 3], cost)).sample(20, seed=0):
        again = len(a.walk) // 4 - 1
        assert a.cost == approx(C[tuple(a.pairs.T)].sum() + 0.3 * a.dropped_x.sum() + cost * again)
        assert through_json(a, costs=True).rescore() == approx(a.cost)


def test_a_list_said_as_an_order_is_written_as_before():
    assert found([0, 1, 2, 3]).to_dict(costs=True) == found(None).to_dict(costs=True)
    assert "walk" not in found(None).to_dict()


DAMAGE = {
    "walk outside": ({"walk": [0, 1, 2, 4]}, "its walk lies outside shape"),
    "negative": ({"walk": [0, 1, 2, -1]}, "its walk lies outside shape"),
    "no whole numbers": ({"walk": [0.5, 1, 2, 3]}, "its walk is not whole numbers"),
    "no list": ({"walk": "abc"}, "its walk is not whole numbers"),
    "visit missing": ({"visit": None}, "its visits are not whole numbers"),
    "walk missing": ({"walk": None}, "its walk is not whole numbers"),
    "few visits": ({"visit": [0]}, "it has 1 visits for"),
    "paid twice": ({"paid_z": [2, 0, 0, 0]}, "paid_z contradicts walk"),
    "paid but matched": ({"paid_z": [1, 0, 0, 0]}, "paid_z contradicts walk"),
}


@pytest.mark.parametrize(("damage", "why"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_walk_is_refused_in_one_line(damage, why):
    data = found().to_dict()
    with pytest.raises(ValueError, match=why) as error:
        Alignment.from_dict(data | damage)
    assert "\n" not in str(error.value)


def test_pairs_must_follow_their_walk():
    data = found().to_dict()
    backwards = data | {name: data[name][::-1] for name in ("pairs", "visit")}
    with pytest.raises(ValueError, match="its pairs cross, or repeat"):
        Alignment.from_dict(backwards)
    with pytest.raises(ValueError, match="visit contradicts pairs"):
        Alignment.from_dict(data | {"visit": [len(data["walk"]) - 1 - v for v in data["visit"]]})
    with pytest.raises(ValueError, match="its pairs cross, or repeat"):
        Alignment.from_dict({name: value for name, value in data.items() if name not in ("walk", "visit")})


def test_along_a_walk_x_never_goes_back_and_no_pair_comes_twice():
    data = dropdtw.solve([[9, 0], [0, 9]], order=orders.any_order(0, 1)).to_dict()
    assert (data["walk"], data["visit"], data["pairs"]) == ([1, 0], [0, 1], [[1, 0], [0, 1]])
    back = {"pairs": [[1, 1], [0, 0]], "labels": [0, 1]}
    twice = {"pairs": [[1, 0], [1, 0], [0, 1]], "visit": [0, 0, 1]}
    for damage in (back, twice):
        with pytest.raises(ValueError, match="its pairs cross, or repeat"):
            Alignment.from_dict(data | damage)


def test_the_walk_must_be_one_of_the_order():
    data = found(ORDERS["any order"], many_to_one=False, contiguous=True).to_dict(costs=True)
    place = {z: n for n, z in enumerate(data["walk"])}
    order = sorted(place, key=place.get, reverse=True)
    data["problem"]["order"] = {"list": [{"step": z} for z in order]}
    with pytest.raises(ValueError, match="its order allows no such walk"):
        Alignment.from_dict(data)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (None, "it has a walk without an order"),
        ({"list": [0, 1, 2, 3]}, "it has a walk without an order"),
        ({"list": [0, 1]}, "step"),
        ({"any": [0, 1, 2, 7]}, "7"),
        ({"steps": [0, 1, 2, 3], "before": [[0, 1], [1, 0]]}, "cycle"),
        ({"unknown": []}, "unknown"),
        ({}, "the order contains a dictionary"),
        (7, "not a step"),
        ("[" * 100_000, "JSON"),
    ],
    ids=str,
)
def test_a_hostile_order_is_refused_in_one_line(order, why):
    data = found().to_dict(costs=True)
    data["problem"]["order"] = order
    with pytest.raises(ValueError, match=why) as error:
        Alignment.from_dict(data)
    assert "\n" not in str(error.value)


def test_an_order_without_a_walk_is_refused():
    data = found(None).to_dict(costs=True)
    data["problem"]["order"] = {"any": [0, 1, 2, 3]}
    with pytest.raises(ValueError, match="its order has no walk"):
        Alignment.from_dict(data)
    windowed = solve(C, 0.3, window=5).to_dict(costs=True)
    windowed["problem"]["order"] = {"any": [0, 1, 2, 3]}
    with pytest.raises(ValueError, match="its steps have an order, but its table has a border or its costs have"):
        Alignment.from_dict(windowed)


def test_a_cost_of_other_arcs_is_not_read():
    data = solve([[0, 9, 0, 9], [9, 0, 9, 0]], order=orders.repeat([0, 1], 0.5)).to_dict(costs=True)
    assert Alignment.from_dict(data).cost == 0.5
    data["problem"]["order"]["cost"] = 0.25
    with pytest.raises(ValueError, match=r"its cost is 0\.5, but its pairs and drops cost 0\.25"):
        Alignment.from_dict(data)


@pytest.mark.parametrize(
    ("order", "walk", "xs", "paid"),
    [
        (orders.any_order(0, 1), [0, 1], [[0], [0]], 0.0),
        (orders.any_order(0, 1), [1, 0], [[0], [0]], None),  # the lowest number comes first
        (orders.any_order(0, 1), [1, 0], [[0], [0, 1]], 0.0),  # unless it matches another x
        (orders.any_order(0, 1), [1, 0], [[0, 1], [1]], 0.0),
        (orders.any_order(0, 1), [0], [[0]], None),
        (orders.any_order(0, 1), [0, 1, 0], [[0], [1], [2]], None),
        (orders.repeat([0, 1], 0.5), [0, 1, 0, 1, 0, 1], [[0], [1], [2], [2], [3], [4]], 1.0),
        (orders.repeat([0, 1], 0.5), [0, 1, 0, 1], [[0], [1], [1], [2]], None),  # each repetition begins with a new x
        (orders.repeat([0, 1], 0.5), [0, 1, 0, 1], [[0], [1], [], [2]], None),
        (orders.one_of([0, 1], 0), [0], [[0]], 0.0),
        (orders.jumps(2, [(0, 0, 0.25), (1, 0, 0.5)]), [0, 0, 1, 0, 1], [[0], [1], [2], [3], [3]], 0.75),
    ],
)
def test_what_a_walk_pays_for_its_arcs(order, walk, xs, paid):
    graph = Spec.of(1.0, order=order).graph(2)
    visit = [n for n, js in enumerate(xs) for _ in js]
    pairs = [(walk[n], j) for n, js in enumerate(xs) for j in js]
    assert arcs_cost(graph, np.array(walk), np.array(visit), np.array(pairs)) == paid


# --- What is said of a walk -----------------------------------------------------------------------------------------


def test_a_step_is_done_once_for_each_visit_from_its_first_match_to_its_last():
    a = solve([[9, 9, 9, 9, 0], [0, 0, 9, 0, 9]], 0.5, order=orders.any_order(0, 1))
    assert a.labels.tolist() == [1, 1, -1, 1, 0]
    assert a.done.tolist() == [1, 0]
    assert a.visits == [(1, 0, 4), (0, 4, 5)]


def test_a_step_that_matches_one_x_twice_has_one_segment_there():
    a = solve([[0.0, 9, 9], [9, 9, 0.0]], 1.0, order=[0, 0, 1])
    assert a.pairs.tolist() == [[0, 0], [0, 0], [1, 2]]
    assert a.segments() == [(0, 0, 1), (1, 2, 3)]
    assert a.visits == [(0, 0, 1), (0, 0, 1), (1, 2, 3)]
    assert a.explain(0).matched == (0,)
    assert a.warp_z([[10.0], [20.0]]).ravel().tolist() == approx([10, np.nan, 20], nan_ok=True)
    assert a.warp_x([[1.0], [2.0], [3.0]]).ravel().tolist() == [1, 3]


def test_steps_of_other_branches_are_not_dropped_but_not_taken():
    a = solve([[0, 9, 9], [9, 9, 9], [9, 9, 0], [9, 9, 9]], 1.0, 2.0, order=orders.one_of([0, 1, 2], 3))
    assert a.done.tolist() == [0, 2]
    assert a.reached_z.tolist() == [True, True, True, False]
    assert "1 z and 1 x dropped, 1 z not taken, done 0 2>" in repr(a)
    assert "done" not in repr(solve([[0.0]]))
    assert a._repr_html_().count("<g ") == 3
    assert ">not taken</span>" in a._repr_html_()
    assert "missing" not in a._repr_html_()


def test_a_long_walk_is_not_printed_in_full():
    a = solve(np.zeros((1, 30)), order=[0] * 30, many_to_one=False)
    assert repr(a).endswith("done 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 …>")


def test_warped_steps_lie_where_they_were_done():
    a = solve([[9, 9, 0], [0, 9, 9], [9, 0, 9]], order=orders.any_order(0, 1, 2))
    assert a.warp_z([[1.0], [2.0], [3.0]]).ravel().tolist() == [2, 3, 1]
    assert a.warp_x([[1.0], [2.0], [3.0]]).ravel().tolist() == [3, 1, 2]


# --- All alignments, listed -----------------------------------------------------------------------------------------

PAIRS = {"antichain": [], "V": [(1, 0), (1, 2)], "Lambda": [(0, 1), (2, 1)]}
FLAGS = [{"many_to_one": many, "contiguous": contiguous} for many in (True, False) for contiguous in (True, False)]
small = pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
options = pytest.mark.parametrize("options", FLAGS, ids=str)
C3, X3, Z3 = rng.normal(size=(3, 3)), np.abs(rng.normal(size=3)), np.abs(rng.normal(size=3))


def listed(pairs, d_x, d_z, **options):
    """Every M that is monotone along some order of three steps, with its cost, computed from lists only."""
    every = {}
    for way in permutations(range(3)):
        if all(way.index(a) < way.index(b) for a, b in pairs):
            back = np.argsort(way)
            z = None if d_z is None else d_z[list(way)]
            for M, cost in oracle.alignments(C3[list(way)], d_x, z, **options):
                every[M[back].tobytes()] = (M[back], cost)
    return list(every.values())


@small
@options
@pytest.mark.parametrize("d_z", [None, Z3], ids=["x", "x and z"])
def test_explanations_name_the_best_alignment_that_treats_x_otherwise(pairs, options, d_z):
    every = listed(pairs, X3, d_z, **options)
    a = solve(C3, X3, d_z, order=orders.before(3, pairs), **options)
    assert a.cost == approx(min(cost for _, cost in every))
    for j in range(3):
        e = a.explain(j)
        here = np.flatnonzero(a.M[:, j])
        assert sorted(e.matched) == here.tolist()
        others = [cost for M, cost in every if (not M[here, j].any() if len(here) else M[:, j].any())]
        assert e.alternative_cost == approx(min(others, default=np.inf))


def test_explanations_of_tables_that_skip_for_free():
    tail = dropdtw.Recurrence(
        name="open end",
        states=("match", "tail"),
        edges=dropdtw.edges("match", to="match", moves="diag left", cost="match")
        + dropdtw.edges("match tail", to="tail", moves="left", cost="free"),
        start="match",
        final=("match", "tail"),
    )
    costs = np.array([[0, 1, 2.0, 9], [9, 0, 0.5, 3]])
    for order in (orders.one_of([0, 1], [1, 0]), orders.repeat([0, 1], 0.25)):
        a = solve(costs, method=tail, order=order)
        assert a.labels.tolist() == [0, 1, -1, -1]
        e = a.explain(3)
        # x_3 can only be matched if x_2 is.
        assert (e.alternative, e.alternative_cost) == ((1,), 0 + 0 + 0.5 + 3)


@small
@options
def test_samples_follow_the_distribution(pairs, options):
    every = listed(pairs, X3, Z3, **options)
    weight = np.exp(-np.array([cost for _, cost in every]))
    weight /= weight.sum()
    draws = 1000
    p = dropdtw.posterior(C3, drop_x=X3, drop_z=Z3, order=orders.before(3, pairs), gamma=1, **options)
    seen = Counter(a.M.tobytes() for a in p.sample(draws, seed=0))
    assert set(seen) <= {M.tobytes() for M, _ in every}
    # Pearson's statistic over alignments that occur often enough; the others are pooled.
    counts = np.array([seen[M.tobytes()] for M, _ in every])
    often = weight * draws >= 5
    got, want = (np.append(v[often], v[~often].sum()) for v in (counts, weight * draws))
    freedom = int(often.sum())
    assert ((got - want) ** 2 / np.maximum(want, 1e-9))[want > 0].sum() < freedom + 5 * np.sqrt(2 * freedom)
    assert p.expected_cost == approx(weight @ [cost for _, cost in every])


@small
@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("d_z", [None, Z3], ids=["x", "x and z"])
def test_before_is_the_probability_of_that_order(pairs, contiguous, d_z):
    options = {"many_to_one": False, "contiguous": contiguous}
    every = listed(pairs, X3, d_z, **options)
    weight = np.exp(-np.array([cost for _, cost in every]))
    weight /= weight.sum()
    before, both = np.zeros((3, 3)), np.zeros((3, 3))
    for (M, _), w in zip(every, weight, strict=True):
        first = np.where(M.any(axis=1), M.argmax(axis=1), 99)
        there = first < 99
        both += w * (there[:, None] & there[None])
        before += w * (there[:, None] & there[None] & (first[:, None] < first[None]))
    found = dropdtw.posterior(C3, drop_x=X3, drop_z=d_z, order=orders.before(3, pairs), gamma=1, **options).before
    assert found == approx(before)
    np.fill_diagonal(both, 0)
    assert found + found.T == approx(both)  # no x matches several z, so no two z share their first x


@pytest.mark.parametrize("d_z", [None, Z3], ids=["x", "x and z"])
def test_before_holds_on_a_list_with_steps_in_any_order_inside(d_z):
    """The step after them is entered by the same arc, whether it is matched or dropped."""
    options = {"many_to_one": False, "contiguous": True}
    nested = dropdtw.posterior(C3, drop_x=X3, drop_z=d_z, order=[orders.any_order(0, 2), 1], **options)
    said = dropdtw.posterior(C3, drop_x=X3, drop_z=d_z, order=orders.before(3, PAIRS["Lambda"]), **options)
    assert nested.before == approx(said.before)


def test_before_is_refused_where_it_is_not_known():
    with pytest.raises(ValueError, match="several z may have the same first x"):
        _ = dropdtw.posterior(C3, drop_x=X3, order=orders.any_order(0, 1, 2)).before
    with pytest.raises(ValueError, match="steps that repeat"):
        _ = dropdtw.posterior(C3, drop_x=X3, order=orders.repeat([0, 1, 2]), many_to_one=False).before


def test_visits_and_costs_of_a_loop_are_those_of_its_draws():
    p = dropdtw.posterior(C[:2], drop_x=0.3, order=orders.repeat([0, 1], 0.25), gamma=0.5)
    drawn = p.sample(800, seed=3)
    times = np.array([np.bincount(a.walk, minlength=2) for a in drawn])
    error = times.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(times.mean(axis=0) - p.visit) < 5 * error).all()
    costs = np.array([a.cost for a in drawn])
    assert abs(costs.mean() - p.expected_cost) < 5 * costs.std() / np.sqrt(len(drawn))
    assert p.visit[0] == approx(p.visit[1])
    assert p.visit[0] > 1.5


def test_one_of_several_branches_is_visited():
    p = dropdtw.posterior(C, drop_x=0.3, drop_z=D_Z, order=orders.one_of([0, 1], 2, 3))
    assert p.visit[0] == approx(p.visit[1])
    assert p.visit[[0, 2, 3]].sum() == approx(1)
    assert (p.drop_z <= p.visit + 1e-12).all()
