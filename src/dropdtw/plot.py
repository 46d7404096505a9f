"""Pictures of alignments; needs matplotlib (`pip install dropdtw[plot]`). Each takes `ax=` or makes its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dropdtw.alignment import Alignment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MATCH = "#d62728"
DROPPED = "#555555"


def alignment(a: Alignment, *, ax: Axes | None = None) -> Axes:
    """Draw an alignment on its match costs: X from left to right, Z downwards, dropped elements crossed out."""
    ax = ax or _new_axes()
    K, N = a.shape
    if a.problem is not None:
        C = np.where(np.isfinite(a.problem.C), a.problem.C, np.nan)
        image = ax.imshow(C, cmap="Blues", aspect="auto", interpolation="nearest")
        ax.figure.colorbar(image, ax=ax, label="match cost", pad=0.02)
    for dropped, band in ((a.dropped_x, ax.axvspan), (a.dropped_z, ax.axhspan)):
        for k in np.flatnonzero(dropped):
            band(k - 0.5, k + 0.5, facecolor=DROPPED, alpha=0.35, edgecolor="none")
    i, j = a.pairs.T
    size = np.clip(200 / max(K, N), 2, 8)
    ax.plot(j, i, "o", color=MATCH, markersize=size, label=f"{len(i)} matches")
    ax.set(xlim=(-0.5, N - 0.5), ylim=(K - 0.5, -0.5), xlabel="x", ylabel="z")
    ax.set_title(f"{a.method}: cost {a.cost:.4g}; grey: {a.dropped_z.sum()} z, {a.dropped_x.sum()} x dropped")
    return ax


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'dropdtw[plot]'") from None
    return plt.subplots(figsize=(7, 4), layout="constrained")[1]
