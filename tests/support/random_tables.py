"""Random tables, as users may write them."""

import itertools

from dropdtw import Edge, Recurrence
from dropdtw.tables.table import COSTS

CHARGED = {"drop_x": "open_x", "drop_z": "open_z", "match": "warp"}


def random_table(rng):
    """A random table of one to four states with weights and charges, in which every state can be reached."""
    states = tuple("abcd"[: rng.integers(1, 5)])
    every = [
        Edge(a, b, move, cost)
        for a, b, cost in itertools.product(states, states, COSTS)
        for move in sorted(COSTS[cost])
        if move != "same" or a < b
    ]
    chosen = [every[k] for k in rng.permutation(len(every))[: rng.integers(2, 4 * len(states) + 2)]]
    # Several ways into one state of cell (0, 0) run on the reference: a test of its own.
    found = [Edge(states[0], states[0], "diag", "match"), *(Edge(states[0], s, "diag", "match") for s in states[1:])]
    for e in chosen:
        if e in found or (e.move == "same" and any(f.move == "same" and f.dst == e.dst for f in found)):
            continue
        plus = CHARGED.get(e.cost) if rng.random() < 0.3 and (e.cost != "match" or e.move != "diag") else None
        weight = float(rng.choice([1.0, 1.0, 2.0, 0.5])) if e.cost == "match" else 1.0
        found.append(e._replace(weight=weight, plus=plus))
    order = rng.permutation(len(found))
    border = None
    if rng.random() < 0.3:
        skips = [e for e in every if e.move in ("left", "top") and e.cost != "match"]
        listed = [skips[k] for k in rng.permutation(len(skips))[: rng.integers(1, 6)]]
        border = tuple(e._replace(plus=CHARGED.get(e.cost) if rng.random() < 0.3 else None) for e in listed)
    finals = tuple(states[k] for k in sorted(rng.permutation(len(states))[: rng.integers(1, len(states) + 1)]))
    return Recurrence(
        states=states, edges=tuple(found[k] for k in order), start=states[0], final=finals, border=border, name="random"
    )
