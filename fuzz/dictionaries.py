"""Random damage to the dictionary of an alignment: what is read is what was written, or refused in words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import dropdtw
from dropdtw import orders

NONSENSE: tuple[Any, ...] = (
    None, 0, 1, 5, -1, "x", "inf", [], {}, [[]], {"a": 1}, True, 1e400, -1e400, float("nan"), [None], ["x"], [1.5],
    [[1, 2, 3]], 10**400, "[" * 50, {"step": 0},
)  # fmt: skip


def case(rng: np.random.Generator) -> str:
    """Damage up to three entries."""
    K, N = (int(n) for n in rng.integers(1, 5, 2))
    how = [None, orders.repeat(list(range(K))), orders.any_order(*range(K))][rng.integers(3)]
    drop_z = 0.2 if rng.random() < 0.5 and how is None else None
    a = dropdtw.solve(rng.random((K, N)), 0.3, drop_z, order=how, open_x=0.1)
    data = json.loads(json.dumps(a.to_dict(costs=True)))
    for _ in range(int(rng.integers(1, 4))):
        _damage(data, rng)
    try:
        found = dropdtw.Alignment.from_dict(data)
    except ValueError as error:
        if "give a dictionary that Alignment.to_dict wrote" not in str(error):
            raise
        return "refused"
    read, given = (
        json.loads(json.dumps(d).replace("Infinity", '"inf"'))
        for d in (found.to_dict(costs=found.problem is not None), data)
    )
    assert all(_same(read[name], value) for name, value in given.items() if name in read and value is not None)
    return "read"


def _same(read: Any, given: Any) -> bool:
    """Whether they are equal, up to brackets around numbers, which the shape of the alignment tells."""
    if isinstance(read, dict) and isinstance(given, dict):
        named = ((name, value) for name, value in given.items() if name in read and value is not None)
        return all(name == "order" or _same(read[name], value) for name, value in named)  # an order has several forms
    return read == given or (isinstance(read, list) and np.ravel(read).tolist() == np.ravel(given).tolist())


def _damage(data: Any, rng: np.random.Generator) -> None:
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        key = keys[rng.integers(len(keys))]
        inner = data[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.4:
            data[key] = NONSENSE[rng.integers(len(NONSENSE))]
            return
        data = inner
