"""What all pictures share: colours, and axes to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MATCH, DROPPED, TRUTH = "#0072b2", "#d55e00", "#009e73"
SERIES = (MATCH, DROPPED, TRUTH, "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f", "#8c564b", "#bcbd22")
"""Colours for curves, in order."""


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
