"""Plots of orders: boxes are steps, arrows mean "comes before"."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from dropdtw.orders.drawing import BEFORE, EITHER, JUMP, REPEAT, Arrow, Drawing, Node, drawing
from dropdtw.orders.order import OrderLike, as_order
from dropdtw.plot.common import SERIES, new_axes, pyplot, step_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEP, BACK = SERIES[0], SERIES[1]
"""Colors of boxes, and of arrows that repeat or jump."""

LETTER, LINE, GAP, DOT, LEVEL = 0.078, 0.17, 0.45, 0.045, 0.09
"""Inches: width of a letter, height of a line, space between boxes, radius of a dot, straight part at each end of an
arrow."""
WRAP, POINTS, WIDEST = 16, 9.0, 24.0
"""Letters per line; font size in points; maximum figure width in inches, beyond which the drawing is scaled down."""

SAID: Final = {EITHER: "one of these", REPEAT: "again", JUMP: "may jump"}
"""Legend texts of arrows that do not simply mean "comes before"."""

Point = tuple[float, float]


def order(
    order: OrderLike,
    names: Mapping[int, str] | Sequence[str] | None = None,
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw an order from left to right: a box for each step, and an arrow to each step that must wait for it.

    Arrows implied by others are omitted. Dashed arrows lead to alternatives, of which one is taken. Pink arrows repeat
    a part or jump, and show their cost.

    order : an order from `dropdtw.orders`, or a list of steps.
    names : names of the steps: a list, or a dictionary by step. Steps that a dictionary lacks show their numbers.
    title : title above the plot.   ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib, and ValueError if the order is invalid or a list of names
    is too short.

    >>> from dropdtw import orders, plot
    >>> ax = plot.order([orders.any_order(0, 1), 2], names=["boil water", "grind coffee", "brew"])
    """
    said = as_order(order)
    texts = {step: _lines(step_name(names, step, str(step))) for step in said.steps}
    picture = _Picture(drawing(said), texts)
    left, right, low, high = picture.limits
    if ax is None:
        scale = min(1.0, WIDEST / (right - left))
        ax = new_axes(((right - left) * scale + 0.1, (high - low) * scale + (0.35 if title else 0.1)))
    else:
        box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
        scale = min(1.0, box.width / (right - left), box.height / (high - low))
    ax.set(xlim=(left, right), ylim=(low, high))
    ax.set_aspect("equal")
    ax.set_axis_off()
    if title:
        ax.set_title(title, fontsize="medium")
    picture.draw(ax, scale)
    return ax


def _lines(name: str) -> list[str]:
    return textwrap.wrap(name, WRAP) or [""]


class _Picture:
    """The layout in inches: the position of each box, and the height of the arrows that lead back."""

    def __init__(self, drawn: Drawing, texts: Mapping[int, list[str]]) -> None:
        self.drawn, self.texts = drawn, texts
        layers = max(node.layer for node in drawn.nodes) + 1
        wide = [2 * DOT] * layers
        self.tall = LINE
        for node in drawn.nodes:
            width, tall = self.size(node)
            wide[node.layer] = max(wide[node.layer], width)
            self.tall = max(self.tall, tall)
        self.wide = wide
        ends = accumulate(width + GAP for width in wide)
        self.center = [end - GAP - width / 2 for end, width in zip(ends, wide, strict=True)]
        self.apart = self.tall + 0.2
        self.levels = self.level_arcs()
        ys = [self.at(node)[1] for node in drawn.nodes]
        ys += [-row * self.apart for edge in drawn.edges for _, row in edge.bends]
        heights = [self.height(edge) for edge in self.levels]
        below, above = (self.tall / 2 + 0.1, self.tall / 2 + 0.1)
        kinds = {edge.kind for edge in drawn.edges} & SAID.keys()
        low = min([min(ys) - below, *(y - 0.2 for y in heights)]) - (0.35 if kinds else 0.0)
        high = max([max(ys) + above, *(y + 0.2 for y in heights)])
        self.limits = (-0.1, self.center[-1] + wide[-1] / 2 + 0.1, low, high)

    def size(self, node: Node) -> tuple[float, float]:
        """Width and height of a node."""
        if node.step < 0:
            return 2 * DOT, 2 * DOT
        lines = self.texts[node.step]
        return max(0.4, LETTER * max(map(len, lines)) + 0.16), LINE * len(lines) + 0.14

    def at(self, node: Node) -> Point:
        """The center of a node."""
        return self.center[node.layer], -node.row * self.apart

    def level_arcs(self) -> dict[Arrow, int]:
        """The level of each arrow that repeats or jumps, above those it spans; negative levels run below the boxes."""
        nodes = self.drawn.nodes
        found: dict[Arrow, int] = {}
        leading = [edge for edge in self.drawn.edges if edge.kind in (REPEAT, JUMP)]

        def span(edge: Arrow) -> tuple[int, int]:
            a, b = nodes[edge.source].layer, nodes[edge.target].layer
            return min(a, b), max(a, b)

        for edge in sorted(leading, key=lambda edge: span(edge)[1] - span(edge)[0]):
            low, high = span(edge)
            sign = 1 if edge.kind == REPEAT or nodes[edge.target].layer <= nodes[edge.source].layer else -1
            taken = {
                abs(level)
                for other, level in found.items()
                if level * sign > 0 and span(other)[0] <= high and low <= span(other)[1]
            }
            found[edge] = sign * (1 + max(taken, default=0))
        return found

    def height(self, edge: Arrow) -> float:
        """The height of such an arrow, clear of all boxes between its ends."""
        nodes, level = self.drawn.nodes, self.levels[edge]
        low, high = sorted((nodes[edge.source].layer, nodes[edge.target].layer))
        sign = math.copysign(1, level)
        ys = [self.at(node)[1] for node in nodes if low <= node.layer <= high]
        ys += [-row * self.apart for e in self.drawn.edges for layer, row in e.bends if low <= layer <= high]
        return sign * (max(sign * y for y in ys) + self.tall / 2 + 0.24 * abs(level))

    def draw(self, ax: Axes, scale: float) -> None:
        """Draw everything, with text and lines scaled by `scale`."""
        from matplotlib.patches import Circle, FancyBboxPatch

        ink = pyplot().rcParams["text.color"]
        for edge in self.drawn.edges:
            self.arrow(ax, edge, scale, ink)
        for node in self.drawn.nodes:
            (x, y), (width, tall) = self.at(node), self.size(node)
            if node.step < 0:
                ax.add_patch(Circle((x, y), DOT, color=ink, linewidth=0, zorder=3))
                continue
            corner = (x - width / 2, y - tall / 2)
            style = "round,pad=0,rounding_size=0.08"
            for face, alpha in ((pyplot().rcParams["axes.facecolor"], 1.0), (STEP, 0.12)):
                ax.add_patch(
                    FancyBboxPatch(corner, width, tall, style, facecolor=face, alpha=alpha, linewidth=0, zorder=3)
                )
            ax.add_patch(
                FancyBboxPatch(corner, width, tall, style, fill=False, edgecolor=STEP, linewidth=1.3 * scale, zorder=4)
            )
            text = "\n".join(self.texts[node.step])
            ax.text(
                x, y, text, ha="center", va="center", fontsize=POINTS * scale, color=ink, zorder=5, linespacing=1.15
            )
        self.legend(ax, scale, ink)

    def arrow(self, ax: Axes, edge: Arrow, scale: float, ink: str) -> None:
        """Draw an arrow with its cost."""
        from matplotlib.patches import FancyArrowPatch

        leads_on = edge.kind in (BEFORE, EITHER)
        path, middle = self.onward(edge) if leads_on else self.around(edge)
        color = ink if leads_on else BACK
        dashed = (0, (3, 2)) if edge.kind == EITHER else "solid"
        head = "-|>,head_length=4,head_width=2" if self.drawn.nodes[edge.target].step >= 0 else "-"
        ax.add_patch(
            FancyArrowPatch(
                path=path, arrowstyle=head, mutation_scale=scale, color=color, linestyle=dashed,
                linewidth=(1.0 if leads_on else 1.4) * scale, alpha=0.75 if leads_on else 1.0, zorder=2,
            )
        )  # fmt: skip
        said = "again" * (edge.kind == REPEAT) + ", " * (edge.kind == REPEAT and edge.cost > 0)
        said += f"+{edge.cost:g}" if edge.cost else ""
        if said:
            ground = {"facecolor": pyplot().rcParams["axes.facecolor"], "edgecolor": "none", "pad": 1.0}
            ax.text(*middle, said, ha="center", va="center", fontsize=0.85 * POINTS * scale, color=color, bbox=ground,
                    zorder=6)  # fmt: skip

    def onward(self, edge: Arrow) -> tuple[Any, Point]:
        """The path of an arrow to a later layer, horizontal at its ends and where it passes boxes; and its midpoint."""
        from matplotlib.path import Path

        a, b = self.drawn.nodes[edge.source], self.drawn.nodes[edge.target]
        (x, y), (end_x, end_y) = self.at(a), self.at(b)
        start = (x + self.size(a)[0] / 2, y)
        stops: list[Point] = []
        for layer, row in edge.bends:
            half = self.wide[layer] / 2
            stops += [(self.center[layer] - half, -row * self.apart), (self.center[layer] + half, -row * self.apart)]
        end = (end_x - self.size(b)[0] / 2, end_y)
        points, codes = [start], [Path.MOVETO]
        for number, stop in enumerate([*stops, end]):
            here = points[-1]
            if number % 2:  # across a layer
                points.append(stop)
                codes.append(Path.LINETO)
                continue
            # Stay horizontal near the box, at least until the edge of the layer.
            edge_a, edge_b = (
                self.center[a.layer] + self.wide[a.layer] / 2,
                self.center[b.layer] - self.wide[b.layer] / 2,
            )
            leave = (max(here[0] + LEVEL, edge_a), here[1]) if number == 0 else here
            reach = (min(stop[0] - LEVEL, edge_b), stop[1]) if stop is end else stop
            half = (leave[0] + reach[0]) / 2
            points += [leave, (half, leave[1]), (half, reach[1]), reach]
            codes += [Path.LINETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
            if stop is end:
                points.append(stop)
                codes.append(Path.LINETO)
        first = stops[0] if stops else end
        return Path(points, codes), ((start[0] + first[0]) / 2, (start[1] + first[1]) / 2)

    def around(self, edge: Arrow) -> tuple[Any, Point]:
        """The path of an arrow that runs above or below the boxes, with rounded corners; and its midpoint."""
        from matplotlib.path import Path

        a, b = self.drawn.nodes[edge.source], self.drawn.nodes[edge.target]
        (x, y), (end_x, end_y), top = self.at(a), self.at(b), self.height(edge)
        sign = math.copysign(1, self.levels[edge])
        along = 1 if end_x > x else -1
        x, end_x = x + along * 0.25 * self.size(a)[0], end_x - along * 0.25 * self.size(b)[0]
        along = 1 if end_x > x else -1
        y, end_y = y + sign * self.size(a)[1] / 2, end_y + sign * self.size(b)[1] / 2
        r = min(0.12, abs(top - y), abs(top - end_y), abs(end_x - x) / 2)
        points = [
            (x, y), (x, top - sign * r), (x, top), (x + along * r, top),
            (end_x - along * r, top), (end_x, top), (end_x, top - sign * r), (end_x, end_y + sign * 0.02),
        ]  # fmt: skip
        codes = [Path.MOVETO, Path.LINETO, Path.CURVE3, Path.CURVE3, Path.LINETO, Path.CURVE3, Path.CURVE3, Path.LINETO]
        return Path(points, codes), ((x + end_x) / 2, top)

    def legend(self, ax: Axes, scale: float, ink: str) -> None:
        """Explain the arrows that do not simply mean "comes before"."""
        from matplotlib.lines import Line2D

        kinds = [kind for kind in SAID if any(edge.kind == kind for edge in self.drawn.edges)]
        if kinds:
            lines = [
                Line2D([], [], color=ink if k == EITHER else BACK, linestyle="--" if k == EITHER else "-")
                for k in kinds
            ]
            ax.legend(lines, [SAID[kind] for kind in kinds], loc="lower left", ncols=3, frameon=False, borderpad=0,
                      fontsize=0.85 * POINTS * scale, handlelength=1.8, borderaxespad=0)  # fmt: skip
