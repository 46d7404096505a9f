"""Plots of alignments and posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from dropdtw.plot.common import (
    DROPPED,
    MATCH,
    TRUTH,
    UNREACHED,
    WRONG,
    hatched,
    new_axes,
    patch,
    pyplot,
    time_axis,
    titled,
)
from dropdtw.plot.series import CURVES, strip
from dropdtw.problem.inputs import Array, as_sequence, runs
from dropdtw.results.alignment import Alignment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dropdtw.results.posterior import Posterior

MOST_NUMBERS: Final = 60
"""Visits are numbered if there are at most this many."""

MOST_SYMBOLS: Final = 40
"""An axis shows its symbols if there are at most this many."""

NOT_TAKEN: Final[dict[str, Any]] = {"facecolor": "none", "edgecolor": UNREACHED, "hatch": "\\\\\\", "linewidth": 0}
MISSING: Final[dict[str, Any]] = {"facecolor": "white", "edgecolor": UNREACHED, "hatch": "xxx", "linewidth": 0}


def alignment(
    a: Alignment,
    *,
    truth_x: Sequence[tuple[int, int]] = (),
    title: str | None = None,
    xlabel: str = "x",
    ylabel: str = "z",
    colorbar: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw an alignment on top of its match costs (gray), with X to the right and Z downward.

    Matches are blue dots. Dropped elements are hatched in orange, and missing elements are crossed out. Cells that a
    window, a mask or a cost of +∞ forbids are blank.

    If the sequences have times, or are short and hold symbols, the axes show them.

    With an order, each visit to a step is a bar over its duration, numbered in order of time. Steps on branches that
    were not taken are hatched in gray.

    a : the alignment. If its costs were not kept, the background stays blank.
    truth_x : true intervals [start, stop) of X, drawn as green bars along the top with dashed lines down the plot.
    title : by default the method, the cost, and the number of drops.   xlabel, ylabel : labels of the axes.
    colorbar, legend : whether to draw a scale for the costs, and a legend.
    ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib.

    >>> import dropdtw
    >>> from dropdtw import plot
    >>> a = dropdtw.align([1, 2, 3], [1, 9, 2, 3], drop_x=0.5)
    >>> ax = plot.alignment(a, truth_x=[(0, 1), (2, 4)])
    """
    ax = ax or new_axes()
    ticker: Any = import_module("matplotlib.ticker")
    K, N = a.shape
    if a.problem is not None:
        C = a.problem.given.banded()
        C = np.where(np.isfinite(C), C, np.nan)
        if a.kept is not None:
            C = a.kept.spread(C, np.nan, "z", "x")
        image = ax.imshow(C, cmap="Greys", aspect="auto", interpolation="nearest", alpha=0.8)
        if colorbar:
            ax.figure.colorbar(image, ax=ax, label="match cost", pad=0.02)
    for dropped, span in ((a.dropped_x, ax.axvspan), (a.dropped_z & a.reached_z, ax.axhspan)):
        for start, stop in runs(dropped):
            span(start - 0.5, stop - 0.5, **hatched(DROPPED))
    for missing, span in ((a.missing_x, ax.axvspan), (a.missing_z, ax.axhspan)):
        for start, stop in runs(missing):
            span(start - 0.5, stop - 0.5, **MISSING)
    i, j = a.pairs.T
    size = float(np.clip(400 / max(K, N), 2, 8))
    if a.walked is not None:
        _visits(ax, a)
    ax.plot(j, i, "o", color=MATCH, markersize=size, markeredgecolor="white", markeredgewidth=size / 10)
    for start, stop in truth_x:
        ax.plot([start - 0.5, stop - 0.5], [1, 1], color=TRUTH, linewidth=6, solid_capstyle="butt",
                transform=ax.get_xaxis_transform(), clip_on=False)  # fmt: skip
        for edge in (start, stop):
            ax.axvline(edge - 0.5, color=TRUTH, linestyle="--", linewidth=1.2)
    ax.set(xlim=(-0.5, N - 0.5), ylim=(K - 0.5, -0.5), xlabel=xlabel, ylabel=ylabel)
    for each in (ax.xaxis, ax.yaxis):
        if isinstance(locator := each.get_major_locator(), ticker.MaxNLocator):  # not that of times, on shared axes
            locator.set_params(integer=True)
    for symbols, axis in zip(a.symbols or (), (ax.yaxis, ax.xaxis), strict=bool(a.symbols)):
        if len(symbols) <= MOST_SYMBOLS:
            upright = axis is ax.yaxis or max(map(len, map(str, symbols))) < 3
            axis.set_ticks(range(len(symbols)), map(str, symbols), rotation=0 if upright else 90)
    for clock, axis, label in zip(a.clocks or (), (ax.yaxis, ax.xaxis), (ylabel, xlabel), strict=bool(a.clocks)):
        if clock is not None:
            name = time_axis(axis, clock, -0.5)
            axis.set_label_text(f"{label} ({name})" if label else label)
    passed = int((~a.reached_z & ~a.missing_z).sum())
    lost = f"{int(a.dropped_x.sum())} of {N} x and {int(a.dropped_z.sum()) - passed} of {K} z dropped"
    lost += f", {passed} not taken" if passed else ""
    lost += "" if a.kept is None else f", {int(a.missing_x.sum())} x and {int(a.missing_z.sum())} z missing"
    said = f"{a.method}: cost {a.cost:.4g}, {lost}" if title is None else title
    titled(ax, said, _entries(a, truth=bool(truth_x)) if legend else {})
    return ax


def _entries(*shown: Alignment, truth: bool) -> dict[str, Any]:
    """Legend entries of the elements that occur in the plot."""
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    if any(len(a.pairs) for a in shown):
        found["matched"] = Line2D([], [], color=MATCH, marker="o", linestyle="none", markersize=5)
    if any(a.dropped_x.any() or (a.dropped_z & a.reached_z).any() for a in shown):
        found["dropped"] = patch(**hatched(DROPPED))
    if truth:
        found["truth"] = patch(facecolor=TRUTH, linewidth=0)
    if any((~a.reached_z & ~a.missing_z).any() for a in shown):
        found["not taken"] = patch(**NOT_TAKEN)
    if any(a.missing_x.any() or a.missing_z.any() for a in shown):
        found["missing"] = patch(**MISSING)
    return found


def compare(alignments: Mapping[str, Alignment], *, axes: Sequence[Axes] | None = None, **options: Any) -> list[Axes]:
    """Draw several alignments of the same two sequences side by side, each under its name.

    alignments : at least one alignment, by name.   axes : one per alignment; by default those of a new figure.
    options : `truth_x`, `xlabel` and `ylabel`, as in `alignment`.

    Returns the list of axes. Raises ImportError without matplotlib, and ValueError if there are no alignments or if
    the number of axes differs.

    >>> import dropdtw
    >>> from dropdtw import plot
    >>> Z, X = [1, 2, 3], [1, 9, 2, 3]
    >>> both = plot.compare({"DTW": dropdtw.align(Z, X), "Drop-DTW": dropdtw.align(Z, X, drop_x=0.5)})
    """
    if not alignments:
        raise ValueError("alignments is empty; give at least one alignment by name")
    if axes is None:
        wide = 4.6 * len(alignments)
        axes = list(
            pyplot().subplots(1, len(alignments), figsize=(wide, 4.2), layout="constrained", squeeze=False)[1][0]
        )
    if len(axes) != len(alignments):
        raise ValueError(f"axes has {len(axes)} entries for {len(alignments)} alignments; give one for each")
    for ax, (name, a) in zip(axes, alignments.items(), strict=True):
        lost = f"{int(a.dropped_x.sum())} x and {int((a.dropped_z & a.reached_z).sum())} z dropped"
        alignment(a, title=f"{name}: cost {a.cost:.3g}, {lost}", colorbar=False, legend=False, ax=ax, **options)
    entries = _entries(*alignments.values(), truth=bool(options.get("truth_x")))
    for ax in axes:  # one shared legend
        titled(ax, ax.get_title(), entries if ax is axes[0] else {}, room=True)
    return list(axes)


def with_frames(
    a: Alignment,
    x_frames: npt.ArrayLike,
    z_frames: npt.ArrayLike,
    *,
    spoiled_z: npt.ArrayLike | None = None,
    truth_x: Sequence[tuple[int, int]] = (),
    title: str | None = None,
    xlabel: str = "X, frame",
    ylabel: str = "Z, frame",
    size: tuple[float, float] = (9, 6),
) -> Figure:
    """Draw an alignment of two videos with a film strip of X above and of Z on the left.

    a : the alignment.   x_frames, z_frames : (N, H, W) and (K, H, W), or in color (N, H, W, 3) and (K, H, W, 3).
    spoiled_z : (K,) bool, the frames of Z known to be junk. They get an orange edge; on the right, ✓ marks those
        dropped and ✗ those matched.
    truth_x : true intervals of X, see `alignment`.   title : title of the figure.
    xlabel, ylabel : labels of the two videos.   size : size of the figure in inches.

    Returns the figure, which is always a new one. Raises ImportError without matplotlib, and ValueError if the numbers
    of frames are not those of the alignment.

    >>> import dropdtw, numpy as np
    >>> from dropdtw import plot
    >>> video = np.random.default_rng(0).random((6, 8, 8))
    >>> a = dropdtw.align(video[1:4].reshape(3, 64), video.reshape(6, 64), drop_x=0.1)
    >>> figure = plot.with_frames(a, video, video[1:4])
    """
    from matplotlib.lines import Line2D

    K, N = a.shape
    lengths = (len(np.asarray(x_frames)), len(np.asarray(z_frames)))
    if lengths != (N, K):
        raise ValueError(
            f"x_frames and z_frames have {lengths[0]} and {lengths[1]} frames, but the alignment has {N} and {K}; "
            "give the frames of the videos that were aligned"
        )
    figure: Figure = pyplot().figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 9), height_ratios=(1, 8))
    ax = figure.add_subplot(grid[1, 1])
    alignment(a, truth_x=truth_x, title="", xlabel=xlabel, ylabel="", colorbar=False, legend=False, ax=ax)
    strip(x_frames, count=14, ax=figure.add_subplot(grid[0, 1], sharex=ax))
    side = figure.add_subplot(grid[1, 0], sharey=ax)
    strip(z_frames, count=6, vertical=True, marked=spoiled_z, ax=side)
    side.set_title(ylabel, fontsize="small", loc="left")
    if spoiled_z is not None:
        for i in np.flatnonzero(np.asarray(spoiled_z, bool)).tolist():
            found = bool(a.dropped_z[i])
            ax.text(N - 0.3, i, "✓" if found else "✗", color=TRUTH if found else WRONG, fontsize=8, va="center")
    entries = _entries(a, truth=bool(truth_x))
    if spoiled_z is not None:
        entries["junk on the left"] = patch(facecolor="none", edgecolor=DROPPED, linewidth=2)
        for sign, color, said in (("✓", TRUTH, "junk dropped"), ("✗", WRONG, "junk matched")):
            entries[said] = Line2D([], [], color=color, marker=f"${sign}$", linestyle="none", markersize=7)
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=len(entries), frameon=False,
                  fontsize="small")  # fmt: skip
    figure.suptitle(title or "", fontsize="medium")
    return figure


def linked(
    Z: npt.ArrayLike,
    X: npt.ArrayLike,
    a: Alignment,
    *,
    links: int = 80,
    title: str = "",
    xlabel: str = "x",
    ylabels: tuple[str, str] = ("Z", "X"),
    ax: Axes | None = None,
) -> Axes:
    """Draw both sequences, Z above X, with blue lines between matched elements; dropped elements are orange.

    Up to four features are drawn as curves, on one scale for both sequences; more are drawn as a band of gray levels.
    Z is stretched to the width of X. Missing elements leave gaps.

    Z, X : (K, d) and (N, d), or (K,) and (N,); the sequences that were aligned.   a : their alignment.
    links : maximum number of matches to draw, evenly spaced.
    title : title above the plot.   xlabel : label of the time axis.   ylabels : names of Z and X.
    ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib, and ValueError if Z and X do not have the lengths of the
    alignment.

    >>> import dropdtw
    >>> from dropdtw import plot
    >>> Z, X = [1, 2, 3], [1, 9, 2, 3]
    >>> ax = plot.linked(Z, X, dropdtw.align(Z, X, drop_x=0.5))
    """
    holes = a.kept is not None
    above, below = as_sequence(Z, "Z", holes=holes), as_sequence(X, "X", holes=holes)
    K, N = a.shape
    if (len(above), len(below)) != (K, N):
        raise ValueError(
            f"Z and X have {len(above)} and {len(below)} elements, but the alignment has {K} and {N}; "
            "give the sequences that were aligned"
        )
    ax = ax or new_axes((8, 3.6))
    low, high = (float(f([f(above), f(below)])) for f in (np.nanmin, np.nanmax))
    at = (np.arange(K) + 0.5) * N / K - 0.5, np.arange(N, dtype=float)
    ends = [
        _signal(ax, values, where, floor, (low, high), dropped)
        for values, where, floor, dropped in ((above, at[0], 1.6, a.dropped_z), (below, at[1], 0.0, a.dropped_x))
    ]
    few = np.unique(np.linspace(0, len(a.pairs) - 1, min(links, len(a.pairs))).round().astype(int))
    for i, j in a.pairs[few].tolist():
        ax.plot([at[0][i], at[1][j]], [ends[0][0][i], ends[1][1][j]], color=MATCH, linewidth=0.7, alpha=0.45, zorder=1)
    ax.set_yticks([2.1, 0.5], list(ylabels))
    name = None if a.clock_x is None else time_axis(ax.xaxis, a.clock_x, -0.5)
    label = xlabel if name is None else f"{xlabel} ({name})"
    ax.set(xlim=(-0.5, N - 0.5), ylim=(-0.12, 2.72), xlabel=label)
    titled(ax, title, _linked_entries(a, above.shape[1]))
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _linked_entries(a: Alignment, features: int) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    if len(a.pairs):
        found["matched"] = Line2D([], [], color=MATCH)
    if a.dropped_x.any() or a.dropped_z.any():
        found["dropped"] = patch(**hatched(DROPPED))
    if 1 < features <= CURVES:
        found |= {f"feature {k}": Line2D([], [], color=_shade(k), marker="o", markersize=3) for k in range(features)}
    return found


def posterior(
    p: Posterior,
    *,
    title: str | None = None,
    xlabel: str = "x",
    ylabel: str = "z",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the probability of each match and of each drop.

    Matches are blue. Drops are orange strips: those of x below the matches, those of z on their right. The strip is
    omitted on a side where nothing can be dropped.

    p : the posterior, from `dropdtw.posterior`.
    title : by default the temperature γ.   xlabel, ylabel : labels of the axes.
    colorbar : whether to draw a scale for the probabilities.   ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib.

    >>> import dropdtw
    >>> from dropdtw import plot
    >>> ax = plot.posterior(dropdtw.posterior([[0.1, 0.9, 0.4], [0.8, 0.7, 0.1]], drop_x=0.3, gamma=0.1))
    """
    from matplotlib.colors import LinearSegmentedColormap

    ax = ax or new_axes()
    K, N = p.match.shape
    shades = [LinearSegmentedColormap.from_list("", ["white", color]) for color in (MATCH, DROPPED)]
    how: Any = {"vmin": 0, "vmax": 1, "aspect": "auto", "interpolation": "nearest"}
    image = ax.imshow(p.match, cmap=shades[0], **how)
    ax.locator_params(integer=True)
    ticks = [[t for t in locate() if 0 <= t < n] for locate, n in ((ax.get_xticks, N), (ax.get_yticks, K))]
    ends = [N - 0.5, K - 0.5]
    for axis, (chance, share) in enumerate(((p.drop_z, 0.03), (p.drop_x, 0.06))):
        if not chance.any():
            continue
        strip = max(0.8, share * (N, K)[axis])  # width in elements
        near, far = ends[axis] + 0.3 * strip, ends[axis] + 1.3 * strip
        extent = (-0.5, N - 0.5, far, near) if axis else (near, far, K - 0.5, -0.5)
        ax.imshow(chance[None] if axis else chance[:, None], extent=extent, cmap=shades[1], **how)
        ends[axis] = far
        center = (near + far) / 2
        ticks[axis] = [t for t in ticks[axis] if center - t > 0.06 * (N, K)[axis]] + [center]  # labels need space
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label="probability of a match or a drop", pad=0.02)
    ax.set(xlim=(-0.5, ends[0]), ylim=(ends[1], -0.5), xlabel=xlabel, ylabel=ylabel)
    for n, places, name in ((N, ticks[0], ax.set_xticks), (K, ticks[1], ax.set_yticks)):
        name(places, [f"{t:g}" if t < n - 0.5 else "drop" for t in places])
    colors = {"match": MATCH} | ({"drop": DROPPED} if p.drop_x.any() or p.drop_z.any() else {})
    entries = {name: patch(facecolor=color, linewidth=0) for name, color in colors.items()}
    titled(ax, f"posterior, γ = {p.gamma:.3g}" if title is None else title, entries)
    return ax


def _visits(ax: Axes, a: Alignment) -> None:
    """Draw each visit as a numbered bar from its first x to its last, and hatch the steps that were not taken."""
    from matplotlib.patheffects import withStroke

    for start, stop in runs(~a.reached_z & ~a.missing_z):
        ax.axhspan(start - 0.5, stop - 0.5, **NOT_TAKEN)
    visits = a.visits
    for z in {visit.label for visit in visits}:
        spans = [(visit.start - 0.5, visit.length) for visit in visits if visit.label == z]
        ax.broken_barh(spans, (z - 0.42, 0.84), facecolor=MATCH, alpha=0.3, edgecolor="none")
    if len(visits) <= MOST_NUMBERS:
        clear = [withStroke(linewidth=2.5, foreground="white")]
        for number, visit in enumerate(visits, 1):
            behind = visit.start < 0.03 * a.shape[1]  # no space on the left
            end, side, room = (visit.stop, "left", 3) if behind else (visit.start, "right", -3)
            ax.annotate(f"{number}", (end - 0.5, visit.label), (room, 0), textcoords="offset points", ha=side,
                        va="center", fontsize="small", fontweight="bold", color=MATCH, path_effects=clear)  # fmt: skip


def _signal(
    ax: Axes, values: Array, at: Array, floor: float, limits: tuple[float, float], dropped: Array
) -> tuple[Array, Array]:
    """Draw a sequence between `floor` and `floor` + 1; return the lower and upper ends for links."""
    low, high = limits
    step = float(at[1] - at[0]) if len(at) > 1 else 2 * float(at[0]) + 1
    spans = [(at[start] - step / 2, (stop - start) * step) for start, stop in runs(dropped)]
    as_image = values.shape[1] > CURVES
    look = hatched(DROPPED) if as_image else {"facecolor": (DROPPED, 0.16), "linewidth": 0}
    ax.broken_barh(spans, (floor - 0.05, 1.1), zorder=3 if as_image else 0, **look)
    if as_image:
        extent = (at[0] - step / 2, at[-1] + step / 2, floor, floor + 1)
        ax.imshow(values.T, cmap="Greys", aspect="auto", interpolation="nearest", extent=extent, vmin=low, vmax=high)
        return np.full(len(at), floor), np.full(len(at), floor + 1)
    heights = floor + (values - low) / (high - low or 1.0)
    size = float(np.clip(160 / len(at), 1.5, 5))
    for number, curve in enumerate(heights.T):
        ax.plot(at, curve, color=_shade(number), linewidth=1.0, marker="o", markersize=size, zorder=2)
        ax.plot(at[dropped], curve[dropped], "o", color=DROPPED, markersize=size, zorder=3)
    return heights.min(axis=1), heights.max(axis=1)


def _shade(feature: int) -> str:
    """The gray level of a feature's curve."""
    return str(0.15 + 0.15 * feature)
