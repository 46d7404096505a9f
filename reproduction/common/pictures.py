"""A plot that several reports share: scores as dots with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dropdtw import metrics, plot
from reproduction.common.report import QUOTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = "os^D"


def dots(
    rows: Mapping[str, npt.ArrayLike],
    kinds: Sequence[str],
    *,
    xlabel: str,
    quoted: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Draw the mean and standard error of each row on its own line; numbers quoted from the paper are hollow.

    rows : (seeds, kinds) by row name.   quoted : (kinds,) by row name.
    kinds : names of the scores, each with its color and marker.
    """
    import matplotlib.pyplot as plt

    names = [*rows, *(f"{name}, {QUOTED}" for name in quoted or {})]
    figure: Figure
    figure, ax = plt.subplots(figsize=(5.4, 1.3 + 0.34 * len(names)), layout="constrained")
    for k, kind in enumerate(kinds):
        color, mark, apart = plot.SERIES[k], MARKS[k % len(MARKS)], 0.16 * (k - (len(kinds) - 1) / 2)
        for y, values in enumerate(rows.values()):
            each = np.atleast_2d(np.asarray(values, float))[:, k]
            ax.errorbar(each.mean(), y + apart, xerr=metrics.standard_error(each[:, None]), fmt=mark, color=color,
                        capsize=2, label=kind if y == 0 else None)  # fmt: skip
        for y, numbers in enumerate((quoted or {}).values(), len(rows)):
            ax.plot(numbers[k], y + apart, mark, color=color, markerfacecolor="none")
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel=xlabel)
    ax.grid(axis="x", alpha=0.3)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    if len(kinds) > 1:
        figure.legend(loc="outside upper right", ncols=len(kinds), frameon=False, fontsize="small")
    return figure
