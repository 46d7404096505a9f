"""Alignments as JSON-safe dictionaries."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw.problem.inputs import as_drop_costs, as_match_costs
from dropdtw.problem.match import Matrix
from dropdtw.problem.problem import Costs, Problem
from dropdtw.results.alignment import Alignment
from dropdtw.tables.recurrence import Edge, Recurrence

FORMAT = 1
"""Raised when a dictionary written by an older version could no longer be read."""


def to_dict(a: Alignment, costs: bool) -> dict[str, Any]:
    """See `Alignment.to_dict`."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "method": a.method,
        "shape": list(a.shape),
        "cost": a.cost,
        "pairs": a.pairs.tolist(),
        "labels": a.labels.tolist(),
        "segments": [s._asdict() for s in a.segments()],
        "paid_x": a.paid_x.tolist(),
        "paid_z": a.paid_z.tolist(),
    }
    if costs:
        p = a.solved()
        data["problem"] = {
            "table": asdict(p.table),
            "C": _lists(p.C),
            "match": _lists(p.costs.matrix),
            "drop_x": _lists(p.costs.drop_x),
            "drop_z": _lists(p.costs.drop_z),
            "band": None if p.costs.band is None else [limit.tolist() for limit in p.costs.band],
        }
    return data


def from_dict(data: Mapping[str, Any]) -> Alignment:
    """See `Alignment.from_dict`."""
    try:
        return _read(data)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        what = f"{error.args[0]} missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"this is no alignment in format {FORMAT} ({what}); give what Alignment.to_dict wrote"
        ) from error


def _read(data: Mapping[str, Any]) -> Alignment:
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r}")
    K, N = (operator.index(n) for n in data["shape"])
    cost, pairs = float(data["cost"]), np.asarray(data["pairs"], np.int64).reshape(-1, 2)
    labels, paid_x, paid_z = (
        np.asarray(data[name], dtype).reshape(length)
        for name, dtype, length in (("labels", np.int64, N), ("paid_x", float, N), ("paid_z", float, K))
    )
    i, j = pairs.T
    steps = np.diff(pairs, axis=0)
    if len(pairs) and not (i.min() >= 0 and j.min() >= 0 and i.max() < K and j.max() < N):
        raise ValueError(f"a pair lies outside shape {(K, N)}")
    if (steps < 0).any() or (steps.sum(axis=1) == 0).any():
        raise ValueError("its pairs cross, or repeat")
    known = {*zip(i.tolist(), j.tolist(), strict=True), *((-1, k) for k in range(N) if k not in set(j.tolist()))}
    if not set(zip(labels.tolist(), range(N), strict=True)) <= known:
        raise ValueError("its labels are not those of its pairs")
    if not np.isfinite(cost):
        raise ValueError(f"its cost is {cost}")
    method = str(data["method"])
    problem = _problem(data["problem"], method, (K, N)) if data.get("problem") is not None else None
    return Alignment(cost, pairs, (K, N), labels, method, paid_x, paid_z, problem)


def _problem(data: Mapping[str, Any], method: str, shape: tuple[int, int]) -> Problem:
    table = dict(data["table"])
    for key in ("edges", "border"):
        table[key] = None if table[key] is None else tuple(Edge(*e) for e in table[key])
    for key in ("states", "final"):
        table[key] = tuple(table[key])
    if not isinstance(table["start"], str):
        table["start"] = tuple(table["start"])
    K, N = shape
    C, match = (as_match_costs(np.asarray(data[key], float).reshape(shape)) for key in ("C", "match"))
    drop_x = as_drop_costs(np.asarray(data["drop_x"], float), "drop_x", N, "x_j")
    drop_z = as_drop_costs(np.asarray(data["drop_z"], float), "drop_z", K, "z_i")
    band = None
    if data["band"] is not None:
        start, stop = (np.asarray(limit, np.int64).reshape(K) for limit in data["band"])
        band = (start, stop)
    costs = Costs(Matrix(match), drop_x, drop_z, band)
    return Problem(method, Recurrence(**table), costs, Costs(Matrix(C), drop_x, drop_z, band), lambda given: costs)


def _lists(array: npt.NDArray[Any]) -> list[Any]:
    """Nested lists in which +∞, which JSON lacks, is the string "inf"."""
    values: npt.NDArray[Any] = array.astype(object)
    values[np.isinf(array)] = "inf"
    return values.tolist()  # type: ignore[no-any-return]
