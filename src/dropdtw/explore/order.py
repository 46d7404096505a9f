"""The order of the steps on a page: boxes and arrows, what it adds to a call, and the code that reads it again."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dropdtw import drops
from dropdtw.explore.load import Data
from dropdtw.explore.settings import Call
from dropdtw.files.strangers import one_line
from dropdtw.orders.blocks import Steps
from dropdtw.orders.drawing import drawing
from dropdtw.problem.inputs import Array
from dropdtw.tables.methods import METHODS

MOST_BOXES: Final = 400
"""Boxes and dots beyond which an order is not drawn: nobody could read it."""


def with_order(data: Data, steps: Steps, place: str) -> Data:
    """The data with the order of their steps, which was read from a file."""
    K, said = data.shape[0], repr(steps.order)
    line = f"order = dropdtw.orders.parse(Path({os.path.abspath(place)!r}).read_text('utf-8-sig'), {K})"
    title = f"{data.title}, {said if len(said) <= 60 else said[:57] + ' …'}" if steps.order else data.title
    lines = ("from pathlib import Path", "", *data.lines, *((line,) if steps.order else ()))
    return replace(data, steps=steps, lines=lines, title=title)


def drawn(steps: Steps | None) -> dict[str, Any] | None:
    """What a page needs to draw an order; without boxes where there are too many."""
    if steps is None or steps.order is None:
        return None
    found = drawing(steps.order)
    small = len(found.nodes) <= MOST_BOXES
    return {
        "names": [one_line(name) for name in steps.names],
        "optional": list(steps.optional),
        "partial": steps.order.holds_partial,
        "nodes": [list(node) for node in found.nodes] if small else [],
        "edges": [[*edge[:4], [list(bend) for bend in edge.bends]] for edge in found.edges] if small else [],
        "size": list(found.size),
    }


def added(steps: Steps | None, call: Call, C: Array) -> Call:
    """What the order adds to the keyword arguments of `dropdtw.solve`; optional steps are dropped for free."""
    if steps is None:
        return {}
    found: Call = {} if steps.order is None else {"order": steps.order}
    method = METHODS.get(call.get("method", "drop_dtw"))
    if steps.optional and method is not None and method.takes_drops:
        rule = drops.resolve(call.get("drop_z"), "drop_z")
        price = np.broadcast_to(np.inf if rule is None else np.asarray(rule(C), np.float64), (len(C),)).copy()
        price[list(steps.optional)] = 0.0
        found["drop_z"] = price
    return found


def code_of(price: Array) -> str:
    """Drop costs of which few differ, as code."""
    listed = ", ".join("float('inf')" if p == np.inf else repr(float(p)) for p in price)
    return f"[{listed}]"
