"""The order of the steps on a page: its drawing, its arguments to `dropdtw.solve`, and the code that reads it again."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dropdtw import drops
from dropdtw.explore.load import Data
from dropdtw.files.sanitize import one_line
from dropdtw.orders.blocks import Steps
from dropdtw.orders.drawing import drawing
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import Options
from dropdtw.tables.methods import METHODS

MOST_BOXES: Final = 400
"""Maximum number of boxes and dots; larger orders are not drawn because they would be unreadable."""


def with_order(data: Data, steps: Steps, place: str) -> Data:
    """Add an order of the steps, read from the file `place`, to the data."""
    K, said = data.shape[0], repr(steps.order)
    line = f"order = dropdtw.orders.parse(Path({os.path.abspath(place)!r}).read_text('utf-8-sig'), {K})"
    title = f"{data.title}, {said if len(said) <= 60 else said[:57] + ' …'}" if steps.order else data.title
    lines = ("from pathlib import Path", "", *data.lines, *((line,) if steps.order else ()))
    return replace(data, steps=steps, lines=lines, title=title)


def drawn(steps: Steps | None) -> dict[str, Any] | None:
    """The drawing of an order for the page; without nodes and edges if there are too many."""
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


def added(steps: Steps | None, options: Options, C: Array) -> dict[str, Any]:
    """The options that the order adds; dropping an optional step is free."""
    if steps is None:
        return {}
    found: dict[str, Any] = {} if steps.order is None else {"order": steps.order}
    method = METHODS.get(options.method) if isinstance(options.method, str) else None
    if steps.optional and method is not None and method.takes_drops:
        rule = drops.resolve(options.drop_z, "drop_z")
        price = np.broadcast_to(np.inf if rule is None else np.asarray(rule(C), np.float64), (len(C),)).copy()
        price[list(steps.optional)] = 0.0
        found["drop_z"] = price
    return found


def code_of(price: Array) -> str:
    """Drop costs as Python code."""
    listed = ", ".join("float('inf')" if p == np.inf else repr(float(p)) for p in price)
    return f"[{listed}]"
