"""Errors of steps that have an order of their own: what cannot be combined with it, asked of it, or read."""

import dropdtw
from dropdtw import orders, posterior, solve
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
WRITTEN = "give what Alignment.to_dict wrote"


def changed(order=EITHER, said=None, **entries):
    """Read back a written alignment some of whose entries, or whose order, were changed."""
    data = solve(C, 0.5, order=order).to_dict(costs=True)
    data["problem"] |= {} if said is None else {"order": said}
    return dropdtw.Alignment.from_dict(data | entries)


def unordered():
    data = solve(C, 0.5, order=EITHER).to_dict(costs=True)
    del data["problem"]["order"]
    return dropdtw.Alignment.from_dict(data)


def banded():
    data = solve(C, 0.5, window=3).to_dict(costs=True)
    data["problem"]["order"] = EITHER.to_dict()
    return dropdtw.Alignment.from_dict(data)


ORDERED = {
    "window": case(
        lambda: solve(C, 0.5, order=EITHER, window=1),
        "window is 1, a band along the diagonal, which steps in another order do not follow",
        "leave it out",
    ),
    "method": case(
        lambda: solve(C, method="smith_waterman", order=EITHER),
        "method 'smith_waterman' takes no order of steps",
        "use one of 'drop_dtw', 'dtw'",
    ),
    "border": case(
        lambda: solve(C, 1, method=BORDERED, order=[1, 0]),
        "recurrence 'bordered' has a border, edges for the first row of a list",
        "state it without one",
    ),
    "open_z": case(
        lambda: solve(C, 0.5, 0.5, open_z=0.1, order=EITHER),
        "open_z is 0.1, but steps in any order have no runs of dropped z",
        "leave it out, or give the steps as a list",
    ),
    "before of shared x": case(
        lambda: posterior(C, 0.5, order=EITHER).before, "several z may have the same first x", "give many_to_one=False"
    ),
    "before of a loop": case(
        lambda: posterior(C, 0.5, order=orders.repeat([0, 1]), many_to_one=False).before,
        "steps that repeat, or of which one of several is taken, have no one place",
        "estimate it from sample()",
    ),
    "before of free skips": case(
        lambda: posterior(C, 0.5, 0.5, method="smith_waterman").before,
        "method 'smith_waterman' passes over a z for free",
        "estimate it from sample()",
    ),
    "names": case(
        lambda: plotting("order", EITHER, ["one"]), "there are 1 names, but the order has step 1", "give one for each"
    ),
    "walk outside": case(lambda: changed(walk=[0, 2]), "its walk lies outside shape (2, 4)", WRITTEN),
    "few visits": case(lambda: changed(visit=[0]), "it has 1 visits for", WRITTEN),
    "other visits": case(
        lambda: changed(visit=[9] * len(solve(C, 0.5, order=EITHER).pairs)), "its visits are not those of", WRITTEN
    ),
    "paid": case(lambda: changed(paid_z=[1, 0]), "its paid_z are not what its walk can drop", WRITTEN),
    "no order": case(unordered, "it has a walk without an order", WRITTEN),
    "another order": case(lambda: changed([1, 0], {"one": [[0, 1], [0]]}), "its order allows no such walk", WRITTEN),
    "a band": case(banded, "its steps have an order, but its table a border or its costs a band", WRITTEN),
}
