"""What all plots share: colours, axes to draw on, and the legend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dropdtw.palette import DROPPED, SERIES, TRUTH, UNREACHED, WRONG
from dropdtw.palette import MATCHED as MATCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DROPPED", "HATCHED", "MATCH", "SERIES", "TRUTH", "UNREACHED", "WRONG", "hatched", "new_axes", "patch"]
__all__ += ["pyplot", "titled"]

HATCHED: Final = "//"
"""The pattern of what is dropped: it leaves the costs below visible."""


def pyplot() -> Any:
    """Matplotlib, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'dropdtw[plot]'") from None
    return plt


def new_axes(size: tuple[float, float] = (7, 4)) -> Axes:
    """Axes of a figure of their own, of a size in inches."""
    ax: Axes = pyplot().subplots(figsize=size, layout="constrained")[1]
    return ax


def hatched(colour: str, tint: float = 0.15, pattern: str = HATCHED) -> dict[str, Any]:
    """Options of a patch that shows what lies below it: a pale tint and thin lines."""
    return {"facecolor": (colour, tint), "edgecolor": colour, "hatch": pattern, "linewidth": 0}


def patch(**options: Any) -> Any:
    """A patch for a legend."""
    from matplotlib.patches import Patch

    return Patch(**options)


def titled(ax: Axes, title: str, entries: Mapping[str, Any], *, room: bool = False) -> None:
    """Set a title and, between it and the plot, a legend in one line that covers nothing.

    room : for a legend even where there is none, so that titles side by side are level.
    """
    size = pyplot().rcParams["font.size"]
    ax.set_title(title, fontsize="medium", pad=6 + 1.6 * size if entries or room else None)
    if not entries:
        return
    ax.legend(
        list(entries.values()), list(entries), loc="lower left", bbox_to_anchor=(0, 1), ncols=len(entries),
        frameon=False, fontsize="small", borderaxespad=0.3, borderpad=0.1, columnspacing=1.2, handlelength=1.6,
    )  # fmt: skip
