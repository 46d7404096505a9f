"""Pictures of alignments; needs matplotlib (`pip install dropdtw[plot]`). Each takes `ax=` or makes its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dropdtw.alignment import Alignment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MATCH, DROPPED = "#0072b2", "#d55e00"  # told apart by colour-blind readers too


def alignment(a: Alignment, *, ax: Axes | None = None) -> Axes:
    """Draw an alignment on its match costs (grey), X to the right and Z downwards: matches blue, dropped orange."""
    ax = ax or _new_axes()
    K, N = a.shape
    if a.problem is not None:
        C = np.where(np.isfinite(a.problem.C), a.problem.C, np.nan)
        image = ax.imshow(C, cmap="Greys", aspect="auto", interpolation="nearest", alpha=0.8)
        ax.figure.colorbar(image, ax=ax, label="match cost", pad=0.02)
    for dropped, span in ((a.dropped_x, ax.axvspan), (a.dropped_z, ax.axhspan)):
        for k in np.flatnonzero(dropped):
            span(k - 0.5, k + 0.5, facecolor=DROPPED, alpha=0.45, edgecolor="none")
    i, j = a.pairs.T
    size = float(np.clip(400 / max(K, N), 2, 8))
    ax.plot(j, i, "o", color=MATCH, markersize=size, markeredgecolor="white", markeredgewidth=size / 10)
    ax.set(xlim=(-0.5, N - 0.5), ylim=(K - 0.5, -0.5), xlabel="x", ylabel="z")
    ax.locator_params(integer=True)
    lost = f"{int(a.dropped_x.sum())} of {N} x and {int(a.dropped_z.sum())} of {K} z dropped (orange)"
    ax.set_title(f"{a.method}: cost {a.cost:.4g}, {lost}", fontsize="medium")
    return ax


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'dropdtw[plot]'") from None
    return plt.subplots(figsize=(7, 4), layout="constrained")[1]
