"""Alignments as JSON-safe dictionaries and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw.alignment import Alignment
from dropdtw.prepare import Problem
from dropdtw.problem import Costs
from dropdtw.recurrence import Edge, Recurrence

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
    if costs and a.problem is not None:
        p = a.problem
        data["problem"] = {
            "table": asdict(p.table),
            "C": _lists(p.C),
            "match": _lists(p.costs.match),
            "drop_x": _lists(p.costs.drop_x),
            "drop_z": _lists(p.costs.drop_z),
            "band": None if p.costs.band is None else [limit.tolist() for limit in p.costs.band],
        }
    return data


def from_dict(data: Mapping[str, Any]) -> Alignment:
    """See `Alignment.from_dict`."""
    missing = {"format", "method", "shape", "cost", "pairs", "labels", "paid_x", "paid_z"} - set(data)
    if missing or data["format"] != FORMAT:
        raise ValueError(
            f"this is no alignment in format {FORMAT}"
            + (f": {', '.join(sorted(missing))} missing" if missing else f" but {data['format']!r}")
            + "; give what Alignment.to_dict wrote"
        )
    K, N = (int(n) for n in data["shape"])
    pairs = np.asarray(data["pairs"], np.int64).reshape(-1, 2)
    vectors = {
        name: np.asarray(data[name], dtype)
        for name, dtype in (("labels", np.int64), ("paid_x", float), ("paid_z", float))
    }
    inside = not len(pairs) or (pairs.min() >= 0 and pairs[:, 0].max() < K and pairs[:, 1].max() < N)
    if not inside or [len(v) for v in vectors.values()] != [N, N, K]:
        raise ValueError(f"pairs, labels or paid drops do not fit shape {(K, N)}; give what Alignment.to_dict wrote")
    problem = _problem(data["problem"], data["method"]) if data.get("problem") else None
    return Alignment(
        float(data["cost"]),
        pairs,
        (K, N),
        vectors["labels"],
        str(data["method"]),
        vectors["paid_x"],
        vectors["paid_z"],
        problem,
    )


def _problem(data: Mapping[str, Any], method: str) -> Problem:
    table = dict(data["table"])
    for key in ("edges", "border"):
        table[key] = None if table[key] is None else tuple(Edge(*e) for e in table[key])
    for key in ("states", "final"):
        table[key] = tuple(table[key])
    if not isinstance(table["start"], str):
        table["start"] = tuple(table["start"])
    band = data["band"] and tuple(np.asarray(limit, np.int64) for limit in data["band"])
    match, drop_x, drop_z, C = (np.asarray(data[key], float) for key in ("match", "drop_x", "drop_z", "C"))
    return Problem(method, Recurrence(**table), Costs(match, drop_x, drop_z, band), C, None)


def _lists(array: npt.NDArray[Any]) -> list[Any]:
    """Nested lists in which +∞, which JSON lacks, is the string "inf"."""
    values: npt.NDArray[Any] = array.astype(object)
    values[np.isinf(array)] = "inf"
    return values.tolist()  # type: ignore[no-any-return]


def to_html(a: Alignment) -> str:
    """A picture of the alignment, X from left to right and Z downwards: matches dark, dropped elements red."""
    K, N = a.shape
    width, height = 420, max(24, min(240, 420 * K // N))
    sx, sy = width / N, height / K
    red = "".join(
        f'<rect x="{j * sx:.2f}" y="0" width="{sx:.2f}" height="{height}"/>' for j in np.flatnonzero(a.dropped_x)
    ) + "".join(
        f'<rect x="0" y="{i * sy:.2f}" width="{width}" height="{sy:.2f}"/>' for i in np.flatnonzero(a.dropped_z)
    )
    dark = "".join(
        f'<rect x="{s.start * sx:.2f}" y="{s.label * sy:.2f}" width="{s.length * sx:.2f}" height="{sy:.2f}"/>'
        for s in a.segments()
    )
    return (
        f"<div><div>{escape(repr(a)[1:-1])}</div>"
        f'<svg width="{width}" height="{height}" role="img" aria-label="alignment" '
        'style="background:#f4f4f4;border:1px solid #999">'
        f'<g fill="#d55e00" opacity="0.25">{red}</g><g fill="#0b3c5d">{dark}</g></svg></div>'
    )
