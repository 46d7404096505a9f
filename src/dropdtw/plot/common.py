"""Shared by all plots: colors, axes and the legend."""

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
    return {"facecolor": (color, tint), "edgecolor": color, "hatch": pattern, "linewidth": 0}


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
