"""Shared by all plots: colors, axes and the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dropdtw.palette import DROPPED, SERIES, TRUTH, UNREACHED, WRONG
from dropdtw.palette import MATCHED as MATCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dropdtw.problem.clock import Clock
    from dropdtw.problem.inputs import Array

__all__ = ["DROPPED", "HATCHED", "MATCH", "SERIES", "TRUTH", "UNREACHED", "WRONG", "hatched", "new_axes", "patch"]
__all__ += ["pyplot", "time_axis", "titled"]

HATCHED: Final = "//"
"""Hatch pattern of dropped elements; the costs under it stay visible."""


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'dropdtw[plot]'") from None
    return plt


def new_axes(size: tuple[float, float] = (7, 4)) -> Axes:
    """Create axes in a new figure; `size` is in inches."""
    ax: Axes = pyplot().subplots(figsize=size, layout="constrained")[1]
    return ax


def hatched(color: str, tint: float = 0.15, pattern: str = HATCHED) -> dict[str, Any]:
    """Options of a see-through patch: a pale tint and thin hatch lines."""
    pyplot()
    from dropdtw.plot.hatch import FaceThenHatch

    return {
        "facecolor": (color, tint), "edgecolor": color, "hatch": pattern, "linewidth": 0,
        "path_effects": [FaceThenHatch()],
    }  # fmt: skip


def step_name(names: Mapping[int, str] | Sequence[str] | None, step: int, unnamed: str) -> str:
    """The name of a step, from a list or from a dictionary by step; `unnamed` if it has none.

    Raises ValueError if a list is too short.
    """
    if names is None or (isinstance(names, Mapping) and step not in names):
        return unnamed
    if not isinstance(names, Mapping) and step >= len(names):
        raise ValueError(f"names has {len(names)} entries, but there is a step {step}; give one name for each step")
    return str(names[step])


def patch(**options: Any) -> Any:
    """Create a patch for a legend."""
    from matplotlib.patches import Patch

    return Patch(**options)


def titled(ax: Axes, title: str, entries: Mapping[str, Any], *, room: bool = False) -> None:
    """Set a title and, between it and the plot, a one-line legend that covers no data.

    room : leave space for a legend even without entries, so that titles of neighboring plots are level.
    """
    size = pyplot().rcParams["font.size"]
    ax.set_title(title, fontsize="medium", pad=6 + 1.6 * size if entries or room else None)
    if not entries:
        return
    ax.legend(
        list(entries.values()), list(entries), loc="lower left", bbox_to_anchor=(0, 1), ncols=len(entries),
        frameon=False, fontsize="small", borderaxespad=0.3, borderpad=0.1, columnspacing=1.2, handlelength=1.6,
    )  # fmt: skip


WHOLE: Final = ["%Y", "%Y-%b", "%b-%d", "%H:%M", "%H:%M", "%H:%M:%S.%f"]
"""How matplotlib's `ConciseDateFormatter` writes years, months, days, ..., seconds if no other label says the rest."""

LEAST_APART = 0.06
"""The least distance of two ticks on an axis of times, as a share of the axis."""


def time_axis(axis: Any, clock: Clock, first: float = 0.0) -> str:
    """Label an axis of elements with their times, at round times; return a name for the axis.

    first : where the first element begins on the axis; each element is 1 wide.
    """
    pyplot()
    from matplotlib.ticker import MaxNLocator

    dates: Any = import_module("matplotlib.dates")  # has no types
    dated = clock.begin.dtype.kind == "M"
    edges = (
        dates.date2num([*clock.begin, clock.end[-1]]) if dated else np.append(clock.seconds[:, 0], clock.seconds[-1, 1])
    )
    if dated:
        locator = dates.AutoDateLocator(tz=clock.zone, minticks=3, maxticks=7)
        ticks = np.asarray(locator.tick_values(*dates.num2date(edges[[0, -1]], tz=clock.zone)))
    else:
        ticks = np.asarray(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]).tick_values(*edges[[0, -1]])).round(9)
    shown = _apart(ticks, edges)
    round_times = len(shown) > 1
    if not round_times:  # a gap holds them all
        shown = _apart(edges[np.linspace(0, len(edges) - 2, 5).astype(int)], edges)
    if not dated:
        texts = [f"{tick:g}" for tick in shown]
    elif round_times:
        texts = dates.ConciseDateFormatter(locator, tz=clock.zone).format_ticks(shown)
        texts[0] = dates.ConciseDateFormatter(locator, tz=clock.zone, formats=WHOLE).format_ticks(shown)[0]
    else:
        found = dates.num2date(shown, tz=clock.zone)
        pattern = "%H:%M:%S" if found[0].date() == found[-1].date() else "%b-%d %H:%M:%S"
        texts = [time.strftime(pattern) for time in found]
    axis.set_ticks(np.interp(shown, edges, np.arange(len(edges)) + first), texts)
    return "time" if dated else "seconds"


def _apart(ticks: Array, edges: Array) -> list[float]:
    """The ticks between the edges of elements whose labels have room: a gap brings times together."""
    found: list[float] = []
    places = np.interp(ticks, edges, np.arange(len(edges)))
    last = -np.inf
    for tick, place in zip(ticks.tolist(), places.tolist(), strict=True):
        if edges[0] <= tick <= edges[-1] and place - last >= LEAST_APART * len(edges):
            found.append(tick)
            last = place
    return found
