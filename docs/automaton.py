"""A table drawn as an automaton: states are circles, edges say how the path moves and what it pays."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from dropdtw.plot import DROPPED, MATCH
from dropdtw.tables.table import Edge, Recurrence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOVES = {"diag": "↘", "left": "→", "top": "↓", "same": "stay"}
COLORS = {"match": MATCH, "drop_x": DROPPED, "drop_z": "#a6428a", "free": "#666666"}
ANGLES = {1: (0,), 2: (90, -90), 3: (210, -30, 90), 4: (180, 90, -90, 0)}
ANGLES_BETWEEN = {1: (0,), 2: (90, -90), 3: (90, 210, -30), 4: (90, 180, 0, -90)}
"""For a ring that has others beside it: the first state, which they lead to, is on top."""

RADIUS = 0.44


def draw(table: Recurrence, ax: Axes) -> None:
    """Draw a table: an arrow from nowhere enters where paths start, a double ring marks where they may end.

    Edges that hold on row 0 and column 0 alone are dashed.
    """
    places, out = layout(table)
    by_ends: dict[tuple[str, str, bool], list[Edge]] = defaultdict(list)
    for dashed, listed in ((False, table.edges), (True, table.border or ())):
        for e in listed:
            if not (dashed and e in table.edges):
                by_ends[e.src, e.dst, dashed].append(e)
    for (src, dst, dashed), listed in by_ends.items():
        _arrow(ax, places, src, dst, out[src], listed, dashed)
    for state in table.starts:
        _start(ax, places[state], out[state])
    for state, place in places.items():
        _state(ax, state, place, state in table.final)
    points = np.array(list(places.values()))
    room = np.array([1.7, 1.2])
    (left, bottom), (right, top) = points.min(axis=0) - room, points.max(axis=0) + room
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set_axis_off()


def layout(table: Recurrence) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where each state goes, and which way is out of the crowd there.

    States that can reach each other form a ring; rings stand from left to right, as paths pass them. States alone
    share a column where a ring is on their other side.
    """
    reach = {s: {s} for s in table.states}
    listed = (*table.edges, *(table.border or ()))
    for _ in table.states:
        for e in listed:
            reach[e.src] |= reach[e.dst]
    columns: list[list[list[str]]] = []  # of rings, of states
    for s in sorted(table.states, key=lambda s: -len(reach[s])):
        if any(s in ring for column in columns for ring in column):
            continue
        ring = [t for t in table.states if t in reach[s] and s in reach[t]]
        if len(table.states) > 4 and len(ring) == 1 and columns and len(columns[-1][0]) == 1:
            columns[-1].append(ring)
        else:
            columns.append([ring])
    room = 1.4 if any(e.plus or e.weight != 1 for e in listed) else 1.0  # for longer labels
    places, out, x = {}, {}, 0.0
    for number, column in enumerate(columns):
        n = len(column[0])
        size = 0.0 if n == 1 else room * (1.55 if n < 4 else 1.9)
        x += size
        for row, ring in enumerate(column):
            y = 0.0 if len(column) == 1 else 2.4 - 2.2 * row
            for state, angle in zip(ring, ANGLES[n] if len(columns) == 1 else ANGLES_BETWEEN[n], strict=True):
                towards = np.array([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))])
                places[state] = np.array([x, y]) + size * towards
                alone = np.array([-1.0 if number == 0 else 1.0, 0.0]) if len(column) > 1 else np.array([0.0, 1.0])
                out[state] = towards if size else alone
        x += size + 2.5
    return places, out


def label(listed: list[Edge]) -> list[tuple[str, str]]:
    """What to write at an arrow, a line for each price: the moves, then what is paid; and its color.

    >>> label([Edge("a", "b", "diag", "match"), Edge("a", "b", "left", "match")])
    [('↘ → match', '#0072b2')]
    >>> label([Edge("a", "b", "diag", "match", 2.0), Edge("a", "b", "left", "match", plus="warp")])
    [('↘ 2 × match', '#0072b2'), ('→ match + warp', '#0072b2')]
    """
    moves: dict[tuple[str, str], list[str]] = defaultdict(list)
    for e in listed:
        price = "0" if e.cost == "free" else e.cost if e.weight == 1 else f"{e.weight:g} × {e.cost}"
        moves[price + (f" + {e.plus}" if e.plus else ""), e.cost].append(MOVES[e.move])
    return [(" ".join([*m, price]), COLORS[cost]) for (price, cost), m in moves.items()]


def _arrow(ax: Axes, places: dict[str, Any], src: str, dst: str, out: Any, listed: list[Edge], dashed: bool) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    a, b = places[src], places[dst]
    if src == dst:
        side = np.array([-out[1], out[0]])
        start, stop = (a + RADIUS * _unit(out + s * 0.75 * side) for s in (-1, 1))
        controls = [a + 1.75 * RADIUS * (1.35 * out + s * 0.95 * side) for s in (-1, 1)]
        path = Path([start, *controls, stop], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        at = a + out * (1.9 * RADIUS + 0.16 + 0.35 * abs(out[0]))
    else:
        along = b - a
        distance = float(np.hypot(*along))
        bend = np.array([along[1], -along[0]]) * (0.22 if distance < 3.2 else 0.28)
        curve = [a, (a + b) / 2 + bend, b]
        t = np.linspace(0, 1, 201)[:, None]
        points = (1 - t) ** 2 * curve[0] + 2 * t * (1 - t) * curve[1] + t**2 * curve[2]
        keep = (np.hypot(*(points - a).T) > RADIUS) & (np.hypot(*(points - b).T) > RADIUS + 0.05)
        path, at = Path(points[keep]), points[100]
    lines = label(listed)
    color = lines[0][1] if len(lines) == 1 else "#444444"
    ax.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=11, color=color, linewidth=1.4,
                                 linestyle="--" if dashed else "-", fill=False, zorder=1))  # fmt: skip
    if dashed:
        lines = [(f"{text} (border)", color) for text, color in lines]
    for row, (text, color) in enumerate(lines):
        y = at[1] - 0.22 * (row - (len(lines) - 1) / 2)
        ax.text(at[0], y, text, color=color, fontsize=8.5, ha="center", va="center", zorder=3,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip


def _start(ax: Axes, place: Any, out: Any) -> None:
    if abs(out[1]) > 0.9:  # the loop is above or below, the arrow comes from the left
        way = _unit(np.array([-1.0, 0.35 * np.sign(out[1])]))
    elif abs(out[1]) < 0.1:  # the loop is at the side, the arrow comes from above
        way = _unit(np.array([0.45 * out[0], 1.0]))
    else:
        way = _unit(np.array([-0.35 * np.sign(out[0]), np.sign(out[1])]))
    ax.annotate("", place + RADIUS * 1.06 * way, place + (RADIUS + 0.5) * way,
                arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 1.4})  # fmt: skip


def _state(ax: Axes, name: str, place: Any, final: bool) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle(place, RADIUS, facecolor="white", edgecolor="black", linewidth=1.4, zorder=2))
    if final:
        ax.add_patch(Circle(place, RADIUS - 0.06, facecolor="white", edgecolor="black", linewidth=0.9, zorder=2))
    ax.text(*place, name, ha="center", va="center", fontsize=9, zorder=4)


def _unit(v: Any) -> Any:
    return v / np.hypot(*v)
