"""Errors of alignments whose steps have an order: in tables with a border, in plots, in serialized data."""

import dropdtw
from dropdtw import orders, solve
from error_calls import C, case, plotting

EITHER = orders.any_order(0, 1)
BORDERED = dropdtw.Recurrence(
    name="bordered",
    states=("m",),
    start="m",
    final=("m",),
    edges=dropdtw.edges("m", to="m", moves="diag left", cost="match"),
    border=dropdtw.edges("m", to="m", moves="left", cost="drop_x"),
)
WRITTEN = "give a dictionary that Alignment.to_dict wrote"


def changed(order=EITHER, said=None, **entries):
    """Read back a serialized alignment with some entries, or its order, changed."""
    data = solve(C, 0.5, order=order).to_dict(costs=True)
    data["problem"] |= {} if said is None else {"order": said}
    return dropdtw.Alignment.from_dict(data | entries)


def unordered():
    data = solve(C, 0.5, order=EITHER).to_dict(costs=True)
    del data["problem"]["order"]
    return dropdtw.Alignment.from_dict(data)


def anchored():
    data = solve(C, 0.5, anchors=[(0, 0)]).to_dict(costs=True)
    data["problem"]["anchors"] = [[len(C), 0]]
    return dropdtw.Alignment.from_dict(data)


def banded():
    data = solve(C, 0.5, window=3).to_dict(costs=True)
    data["problem"]["order"] = EITHER.to_dict()
    return dropdtw.Alignment.from_dict(data)


ORDERED = {
    "border": case(
        lambda: solve(C, 1, method=BORDERED, order=[1, 0]),
        "recurrence 'bordered' has a border",
        "define it without a border, or leave out the order",
    ),
    "names": case(
        lambda: plotting("order", EITHER, ["one"]), "names has 1 entries, but there is a step 1", "give one name for"
    ),
    "walk outside": case(lambda: changed(walk=[0, 2]), "its walk lies outside shape (2, 4)", WRITTEN),
    "few visits": case(lambda: changed(visit=[0]), "it has 1 visits for", WRITTEN),
    "other visits": case(
        lambda: changed(visit=[9] * len(solve(C, 0.5, order=EITHER).pairs)), "visit contradicts pairs", WRITTEN
    ),
    "paid": case(lambda: changed(paid_z=[1, 0]), "paid_z contradicts walk", WRITTEN),
    "no order": case(unordered, "it has a walk without an order", WRITTEN),
    "another order": case(lambda: changed([1, 0], {"one": [[0, 1], [0]]}), "its order allows no such walk", WRITTEN),
    "anchors": case(anchored, "its anchors do not lie in its shape", WRITTEN),
    "a band": case(banded, "its steps have an order, but its table has a border or its costs have a band", WRITTEN),
}
