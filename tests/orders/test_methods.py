"""Methods, charges and user-defined tables on orders, against the list of all alignments."""

from itertools import product

import numpy as np
import pytest

import dropdtw
import order_oracle
from dropdtw import executors
from dropdtw.tables.reducers import soft_min
from order_cases import MIXED, ORDERS, POSETS, WALKS, build, case, fits, holds_any, repeats_any, steps_of

GAMMA = 0.6
TAKEN = {name for name, entry in dropdtw.METHODS.items() if entry.takes_orders and not entry.takes_ids}  # see test_ctc
VARIANTS = {
    "dtw": {"method": "dtw", "warp": 0.125},
    "dtw, one to one": {"method": "dtw", "one_to_many": False},
    "otam": {"method": "otam", "one_to_many": False},
    "subsequence": {"method": "subsequence", "warp": 0.125},
    "free_begin": {"method": "free_begin", "warp": 0.125},
    "free_end": {"method": "free_end"},
    "needleman_wunsch": {"method": "needleman_wunsch", "sides": (True, True), "open_x": 0.5, "open_z": 0.25},
    "needleman_wunsch, x": {"method": "needleman_wunsch", "sides": (True, False), "open_x": 0.5},
    "lcss": {"method": "lcss", "threshold": 0.4},
    "greedy": {"method": "greedy", "sides": (True, True), "contiguous": True},
    "greedy, charged": {"method": "greedy", "sides": (True, False), "open_x": 0.5, "warp": 0.125},
    "steps": {"method": "steps", "sides": (True, True), "open_x": 0.5, "open_z": 0.25},
    "drop_dtw, both": {"sides": (True, True), "open_x": 0.5, "open_z": 0.25, "warp": 0.125},
    "drop_dtw, x": {"sides": (True, False), "open_x": 0.5, "warp": 0.125, "contiguous": True},
    "drop_dtw, z": {"sides": (False, True), "open_z": 0.25, "warp": 0.125},
    "drop_dtw, exclusive": {"sides": (True, True), "open_x": 0.5, "open_z": 0.25, "many_to_one": False},
}
DROPS_Z = {"needleman_wunsch", "needleman_wunsch, x", "lcss"}
"""Methods whose tables drop z even without drop_z."""


def cases(variant, names):
    """A variant on the orders that support it."""
    for seed, name in enumerate(names):
        options = {"sides": (False, False), **VARIANTS[variant]}
        if holds_any(ORDERS[name]):
            options.pop("open_z", None)
        drops = variant in DROPS_Z and repeats_any(ORDERS[name])
        if fits(ORDERS[name], options) and not drops:
            yield case(ORDERS[name], options, seed=seed)


def test_methods_that_take_orders_are_all_tried():
    assert {options.get("method", "drop_dtw") for options in VARIANTS.values()} == TAKEN


def check(c, executor):
    answer = c.answer
    if not len(answer.which):
        with pytest.raises(ValueError, match=r"every alignment is forbidden|cannot each have"):
            dropdtw.solve(**c.given, executor=executor)
        return
    given = c.given | {"executor": executor}
    a, p = dropdtw.solve(**given), dropdtw.posterior(**given, gamma=GAMMA)
    assert a.cost == dropdtw.cost(**given) == pytest.approx(answer.hard, abs=1e-9), c
    assert a.rescore() == pytest.approx(a.cost, abs=1e-9), c
    assert p.cost == pytest.approx(answer.soft(GAMMA), abs=1e-9), c
    assert p.expected_cost == pytest.approx(answer.probability(GAMMA) @ answer.cost, abs=1e-9), c
    every = answer.all
    for found, expected in ((p.match, every.match), (p.drop_x, ~every.used), (p.drop_z, every.dropped)):
        np.testing.assert_allclose(found, answer.mean(expected, GAMMA), atol=1e-9, err_msg=str(c))
    found = executors.run(c.problem(executor), soft_min(GAMMA), gradient=True).charges
    table = c.problem().table
    runs_z = {} if holds_any(c.said) else {"open_z": every.runs_z}  # steps in any order have no runs
    for name, counts in {"open_x": every.runs_x, "warp": every.repeats, **runs_z}.items():
        if table.pays_charge(name):
            assert getattr(found, name) == pytest.approx(answer.mean(counts, GAMMA), abs=1e-9), (name, c)


@pytest.mark.parametrize("variant", VARIANTS)
def test_methods_and_charges_answer_like_the_list_of_all_alignments(variant, executor):
    shift = list(VARIANTS).index(variant)
    names = [name for n, name in enumerate(ORDERS) if (n + shift) % 5 == 0]
    for c in cases(variant, names):
        check(c, executor)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_method_on_every_order(variant, name, executor):
    for c in cases(variant, [name]):
        check(c, executor)


@pytest.mark.parametrize("name", ["repeated antichain", "repeated list with any inside"])
@pytest.mark.parametrize("variant", sorted(DROPS_Z))
def test_tables_that_drop_z_refuse_to_repeat_steps_in_any_order(name, variant):
    options = {"sides": (False, False), **VARIANTS[variant]}
    options.pop("open_z", None)
    with pytest.raises(ValueError, match=r"repeats steps in any order.*use .*or repeat a list"):
        case(ORDERS[name], options).problem()


# --- Tables of one's own --------------------------------------------------------------------------------------------

LOCKSTEP = dropdtw.Recurrence(
    states=("m",),
    start="m",
    final=("m",),
    name="lockstep",
    edges=dropdtw.edges("m", to="m", moves="diag", cost="match")
    + dropdtw.edges("m", to="m", moves="diag", cost="drop_x"),
)
"""Each visit has one x, which matches it or pays its drop. A jump can be taken only for a match."""


@pytest.mark.parametrize("name", WALKS)
def test_jumps_lead_to_a_match_under_a_table_of_ones_own(name):
    rng = np.random.default_rng(0)
    K, N = steps_of(WALKS[name]), 4  # enough that each jump is taken
    C, drop_x = rng.normal(size=(K, N)), rng.random(N)
    costs = []
    for way in order_oracle.courses(WALKS[name], N):
        if len(way.steps) == N:
            alone = {v for group in way.fresh for v in [min(group)]}
            ways = [[C[z, j]] if j in alone else [C[z, j], drop_x[j]] for j, z in enumerate(way.steps)]
            costs += [way.cost + sum(chosen) for chosen in product(*ways)]
    given = {"C": C, "drop_x": drop_x, "method": LOCKSTEP, "order": build(WALKS[name])}
    soft = -GAMMA * np.log(np.exp(-np.array(costs) / GAMMA).sum()) if costs else np.inf
    assert dropdtw.cost(**given) == pytest.approx(min(costs, default=np.inf), abs=1e-9)
    assert dropdtw.cost(**given, reducer="soft", gamma=GAMMA) == pytest.approx(soft, abs=1e-9)


@pytest.mark.parametrize("name", [*POSETS, *MIXED])
def test_tables_of_ones_own_take_no_partial_orders(name):
    with pytest.raises(ValueError, match=r"'lockstep' does not support partial orders; use one of 'drop_dtw'"):
        dropdtw.cost(np.zeros((steps_of(ORDERS[name]), 3)), method=LOCKSTEP, order=build(ORDERS[name]))
