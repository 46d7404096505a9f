"""One call for each possible mistake in the order of steps."""

from datetime import timedelta
from unittest import mock

import numpy as np

import dropdtw
from dropdtw import orders, posterior, solve
from error_calls import case

C3 = np.zeros((3, 4))
BETWEEN = {"at_least": timedelta(seconds=1.2), "at_most": timedelta(seconds=1.8)}
FREE = orders.any_order(0, 1, 2)
SKIPPING = dropdtw.Recurrence(
    states=("m",),
    start="m",
    final=("m",),
    name="skipping",
    edges=dropdtw.edges("m", to="m", moves="diag", cost="match") + dropdtw.edges("m", to="m", moves="top", cost="free"),
)
EMPTY = ("an order has an empty part", "leave it out, or give its steps")
DEEP = ("orders are nested more than 64 deep", "flatten them")


def nested(n):
    found = [0]
    for _ in range(n):
        found = [found]
    return found


def repeated(n):
    found = 0
    for _ in range(n):
        found = orders.repeat(found)
    return found


def few_copies():
    with mock.patch("dropdtw.orders.repeats.MOST_NODES", 8):
        solve(C3, 1.0, 0.5, method="ctc", ids=[1, 2, 1])


def with_few_nodes(order):
    """Compile an order that no other test uses, because graphs are cached."""
    with mock.patch("dropdtw.orders.compile.MOST_NODES", 20):
        solve(np.zeros((orders.as_order(order).K, 2)), 1, 1, order=order)


BUILT = {
    "order, text": case(
        lambda: solve(C3, order="any"), "order is 'any'", "give an order from dropdtw.orders, or a list"
    ),
    "order, a dictionary": case(lambda: solve(C3, order={"any": [0]}), "order is {'any': [0]}", "or a list of steps"),
    "order, a flag": case(lambda: solve(C3, order=True), "order is True", "or a list of steps (row numbers of Z)"),
    "order, text inside": case(lambda: orders.any_order(0, "b"), "a part of any_order is 'b'", "or a list of steps"),
    "order, array of none": case(lambda: solve(C3, order=np.array(2)), "order is array(2)", "give a list"),
    "order, no end": case(lambda: orders.as_order(iter(int, 1)), "order has more than 4194304 entries", "or split it"),
    "order, text repeated": case(lambda: orders.repeat("x"), "the part of repeat is 'x'", "or a list of steps"),
    "order, no pairs": case(lambda: orders.before(3, None), "the list of pairs is None", "give a list"),
    "order, nested lists": case(lambda: orders.as_order(nested(1000)), *DEEP),
    "order, nested": case(lambda: repeated(1000), *DEEP),
    "order, no steps": case(lambda: orders.before([], []), *EMPTY),
    "order, empty": case(lambda: solve(C3, order=[]), *EMPTY),
    "order, empty any_order": case(orders.any_order, *EMPTY),
    "order, empty inside": case(lambda: orders.one_of(0, []), *EMPTY),
    "order, twice": case(lambda: orders.any_order([0, 1], 1), "step 1 is in any_order twice", "or use repeat"),
    "order, listed twice": case(lambda: orders.before([0, 0], []), "step 0 is listed twice", "name each step once"),
    "order, how many": case(lambda: orders.before(0, []), "there are 0 steps", "give 1 to 16384"),
    "order, too many": case(lambda: orders.jumps(10**5, []), "there are 100000 steps", "give 1 to 16384"),
    "order, no number": case(lambda: orders.before(2.5, []), "steps is 2.5", "or a list of them"),
    "order, no step": case(lambda: orders.as_order([-1]), "-1 is not a step", "steps are row numbers of Z, 0 to 16383"),
    "order, no pair": case(
        lambda: orders.before(3, [(0, 1, 2)]), "(0, 1, 2) is not a pair", "give (a, b) for 'a comes"
    ),
    "order, flags": case(lambda: orders.before(3, [(True, 2)]), "(True, 2) is not a pair of steps", "give (a, b)"),
    "order, unknown": case(lambda: orders.before(3, [(0, 7)]), "(0, 7) names step 7", "the steps are 0 to 2"),
    "order, unknown of few": case(lambda: orders.before([4, 7], [(4, 5)]), "names step 5", "the steps are 4, 7"),
    "order, cycle": case(lambda: orders.before(3, [(0, 1), (1, 0)]), "a cycle, 1 before 0 before 1", "use repeat or"),
    "order, itself": case(lambda: orders.before([5], [(5, 5)]), "a cycle, 5 before 5", "remove one of these pairs"),
    "order, choice in any_order": case(
        lambda: orders.any_order(orders.one_of(0, 1), 2),
        "any_order contains one_of(0, 1)",
        "may not be part of a partial order",
    ),
    "order, cost": case(lambda: orders.repeat(0, np.nan), "cost of repeat is nan", "give a finite number ≥ 0"),
    "order, cost of 10^400": case(lambda: orders.repeat(0, 10**400), "cost of repeat is 1000", "give a finite number"),
    "order, no jump": case(
        lambda: orders.jumps(3, [(0,)]), "(0,) is not a jump", "give (from, to) or (from, to, cost)"
    ),
    "order, jump of": case(lambda: orders.jumps(3, [(0, 3)]), "the jump (0, 3) names a step", "the steps 0 to 2"),
    "order, jump cost": case(lambda: orders.jumps(3, [(2, 0, -1)]), "the jump (2, 0) is -1", "give a finite number"),
    "order, jump twice": case(lambda: orders.jumps(3, [(2, 0), (2, 0)]), "a jump is listed twice", "the cheaper one"),
    "order, no duration": case(
        lambda: orders.lasting(0, at_least=0), "at_least is 0", "give a number of elements, 1 or more, or a time"
    ),
    "order, contrary limits": case(
        lambda: orders.lasting(0, at_least=3, at_most=2), "a step would last 3 to 2", "at_most must not be less"
    ),
    "order, two durations": case(
        lambda: solve(C3, 1, order=[orders.lasting(0, at_least=2), 1, orders.lasting([0, 2], at_most=3)]),
        "step 0 lasts at least 2 in one place and 1 to 3 in another",
        "give it one duration",
    ),
    "order, no clock": case(
        lambda: solve(C3, 1, method="steps", order=orders.lasting([0, 1, 2], at_least=timedelta(seconds=2))),
        "a step lasts 2 s, but the x have no uniform clock",
        "resample X, and fill in missing elements",
    ),
    "order, limits between elements": case(
        lambda: solve(C3, 1, method="steps", order=orders.lasting([0, 1, 2], **BETWEEN), fps=1),
        "at least 2 and at most 1 elements of 1 s",
        "allow a wider range",
    ),
    "order, duration of another method": case(
        lambda: solve(C3, 1, order=orders.lasting([0, 1, 2], at_least=2)),
        "this method does not give each step one unbroken run of x",
        "use method 'steps' or 'ctc'",
    ),
    "order, long durations": case(
        lambda: solve(C3, 1, method="steps", order=orders.lasting([0, 1, 2], at_least=1 << 17)),
        "durations need more than 262144 nodes",
        "give shorter ones, or resample X",
    ),
    "order, networkx": case(lambda: orders.from_networkx([(0, 1)]), "not a directed graph", "give a networkx.DiGraph"),
}

GRAPHS = {
    "graph, no nodes": case(lambda: orders.walks([], [], [0]), "0 nodes besides its start", "give 1 to 262143"),
    "graph, no node": case(lambda: orders.walks([0], [(0, 2)], [1]), "2 is not a node", "nodes 0 (the start) to 1"),
    "graph, no end": case(
        lambda: orders.walks([0], [(0, 1)], [7]), "7 is not a final node", "nodes 0 (the start) to 1"
    ),
    "graph, no ends": case(lambda: orders.walks([0], [(0, 1)], []), "finals is []", "an alignment may end, each once"),
    "graph, no arc": case(
        lambda: orders.walks([0], [0], [1]), "0 is not an arc", "give (from, to) or (from, to, cost)"
    ),
    "graph, arc cost": case(lambda: orders.walks([0], [(0, 1, np.inf)], [1]), "the arc (0, 1) is inf", "a finite"),
    "graph, to the start": case(
        lambda: orders.walks([0], [(0, 1), (1, 0)], [1]), "leads to node 0, the start", "from 1 to 1"
    ),
    "graph, cycle": case(lambda: orders.walks([0], [(0, 1), (1, 1)], [1]), "form a cycle", "in jumps= instead"),
    "graph, lost": case(lambda: orders.walks([0, 0], [(0, 1)], [1]), "from the start to node 2", "add an arc, or"),
    "graph, no way on": case(lambda: orders.walks([0, 0], [(0, 1), (0, 2)], [1]), "a final node from node 2", "add"),
    "graph, large": case(
        lambda: with_few_nodes([0] * 21), "the order needs more than 20 nodes", "fewer or smaller parts"
    ),
    "graph, wide": case(lambda: with_few_nodes(orders.any_order([3, 1], 0, 2)), "more than 19 nodes", "Add pairs"),
}

COMBINED = {
    "order, missing": case(lambda: solve(C3, order=[0, 1]), "it lacks step 2", "name each step of Z"),
    "order, more": case(lambda: solve(C3, order=[0, 1, 2, 3]), "Z has no step 3", "leave it out"),
    "order, window": case(lambda: solve(C3, window=1, order=FREE), "window is 1, a band", "leave it out"),
    "order, open_z": case(lambda: solve(C3, 1, 1, open_z=2, order=FREE), "open_z is 2", "give the steps as a list"),
    "order, loop": case(lambda: solve(C3, 1, 1, order=orders.repeat(FREE)), "drop_z or the method", "or repeat a list"),
    "order, free": case(
        lambda: solve(np.zeros((25, 9)), 1, 1, order=orders.any_order(*range(25))),
        "up to 25 of 25 steps are free at once",
        "Add pairs with before(); put steps that follow each other into a list inside any_order; or",
    ),
    "order, pairs": case(
        lambda: orders.as_order([orders.any_order(*range(3000)), orders.any_order(*range(3000, 6000))]).pairs(),
        "each of 3000 steps comes before each of 3000",
        "put a single step between the two groups",
    ),
    "before, shared": case(lambda: posterior(C3, order=FREE).before, "with many_to_one", "estimate it from sample()"),
    "before, repeated": case(
        lambda: posterior(C3, many_to_one=False, order=orders.repeat([0, 1, 2])).before,
        "`before` is not defined for steps that repeat",
        "estimate it from sample()",
    ),
    "before, ctc": case(
        lambda: posterior(C3, drop_x=1.0, method="ctc", ids=[1, 2, 3]).before,
        "'ctc' does not support `before`",
        "sample()",
    ),
    "ctc, repeats": case(
        lambda: solve(C3, 1.0, method="ctc", order=orders.repeat([0, 1, 2])),
        "'ctc' supports no repeats and jumps",
        "use 'steps', or write the repetitions out",
    ),
    "ctc, drop_z": case(
        lambda: solve(C3, 1.0, 0.5, method="ctc", order=FREE),
        "drop_z is 0.5, which method 'ctc' combines with a list only",
        "leave order out",
    ),
    "ctc, nodes": case(lambda: few_copies(), "z with equal names need more than 8 nodes", "align it in parts"),
    "ids, length": case(
        lambda: solve(C3, 1.0, method="ctc", ids=[1]), "ids is [1], but Z has 3 elements", "give one per element of Z"
    ),
    "ids, missing": case(
        lambda: dropdtw.align([0, np.nan], [0, 1], 1.0, method="ctc", ids=[1], missing="drop"),
        "ids is [1], but Z has 2 elements",
        "give one per element of Z",
    ),
    "ids, kind": case(
        lambda: solve(C3, 1.0, method="ctc", ids=3), "ids is 3", "give one number or string per element of Z"
    ),
    "ids, method": case(lambda: solve(C3, 1.0, ids=[1, 2, 3]), "which 'drop_dtw' does not take", "use 'ctc'"),
    "before, free": case(
        lambda: posterior(np.zeros((3, 2)), method=SKIPPING).before, "'skipping' skips z for free", "sample()"
    ),
} | {
    f"order, {method}": case(
        lambda method=method: solve(C3, method=method, order=FREE),
        f"method '{method}' takes no order of steps; use one of",
        "use one of 'drop_dtw'",
    )
    for method in ("smith_waterman", "drop_dtw_paper", "symmetric2", "asymmetricP1")
}

ORDER_CASES = BUILT | GRAPHS | COMBINED
