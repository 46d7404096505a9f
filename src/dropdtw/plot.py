"""Pictures of alignments; needs matplotlib (`pip install dropdtw[plot]`). Each takes `ax=` or makes its own.

Colours mean the same in all of them, and colour-blind readers can tell them apart: blue is matched, orange dropped,
green the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dropdtw.metrics import standard_error
from dropdtw.problem.inputs import Array, as_sequence, runs
from dropdtw.results.alignment import Alignment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dropdtw.results.posterior import Posterior

MATCH, DROPPED, TRUTH = "#0072b2", "#d55e00", "#009e73"
SERIES = (MATCH, DROPPED, TRUTH, "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f", "#8c564b", "#bcbd22")
"""Colours for curves, in order."""


def alignment(
    a: Alignment,
    *,
    truth_x: Sequence[tuple[int, int]] = (),
    title: str | None = None,
    xlabel: str = "x",
    ylabel: str = "z",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw an alignment on its match costs (grey), X to the right and Z downwards: matches blue, dropped orange.

    truth_x : true intervals [start, stop) of X, drawn as green bars along the upper edge and dashed down the picture.
    """
    ax = ax or _new_axes()
    K, N = a.shape
    if a.problem is not None:
        C = np.where(np.isfinite(a.problem.C), a.problem.C, np.nan)
        image = ax.imshow(C, cmap="Greys", aspect="auto", interpolation="nearest", alpha=0.8)
        if colorbar:
            ax.figure.colorbar(image, ax=ax, label="match cost", pad=0.02)
    for dropped, span in ((a.dropped_x, ax.axvspan), (a.dropped_z, ax.axhspan)):
        for start, stop in runs(dropped):
            span(start - 0.5, stop - 0.5, facecolor=DROPPED, alpha=0.4, edgecolor="none")
    i, j = a.pairs.T
    size = float(np.clip(400 / max(K, N), 2, 8))
    ax.plot(j, i, "o", color=MATCH, markersize=size, markeredgecolor="white", markeredgewidth=size / 10)
    for start, stop in truth_x:
        ax.plot([start - 0.5, stop - 0.5], [1, 1], color=TRUTH, linewidth=6, solid_capstyle="butt",
                transform=ax.get_xaxis_transform(), clip_on=False)  # fmt: skip
        for edge in (start, stop):
            ax.axvline(edge - 0.5, color=TRUTH, linestyle="--", linewidth=1.2)
    ax.set(xlim=(-0.5, N - 0.5), ylim=(K - 0.5, -0.5), xlabel=xlabel, ylabel=ylabel)
    ax.locator_params(integer=True)
    lost = f"{int(a.dropped_x.sum())} of {N} x and {int(a.dropped_z.sum())} of {K} z dropped (orange)"
    ax.set_title(f"{a.method}: cost {a.cost:.4g}, {lost}" if title is None else title, fontsize="medium")
    return ax


def compare(alignments: Mapping[str, Alignment], *, axes: Sequence[Axes] | None = None, **options: Any) -> list[Axes]:
    """Draw several alignments of the same two sequences side by side, each under its name.

    axes : as many as there are alignments.   options : as in `alignment`.
    """
    if axes is None:
        wide = 4.6 * len(alignments)
        axes = list(
            _pyplot().subplots(1, len(alignments), figsize=(wide, 4.2), layout="constrained", squeeze=False)[1][0]
        )
    if len(axes) != len(alignments):
        raise ValueError(f"there are {len(axes)} axes for {len(alignments)} alignments; give one for each")
    for ax, (name, a) in zip(axes, alignments.items(), strict=True):
        lost = f"{int(a.dropped_x.sum())} x and {int(a.dropped_z.sum())} z dropped"
        alignment(a, title=f"{name}: cost {a.cost:.3g}, {lost}", colorbar=False, ax=ax, **options)
    return list(axes)


def strip(
    frames: npt.ArrayLike,
    *,
    count: int = 12,
    marked: npt.ArrayLike | None = None,
    vertical: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw a film strip: `count` frames (H, W) or (H, W, 3) of a video, equally spaced, along its own time axis.

    marked : (T,) bool; such frames get an orange edge.
    """
    video = np.asarray(frames)
    if video.ndim not in (3, 4) or 0 in video.shape:
        raise ValueError(f"frames has shape {video.shape}; give a video (T, H, W) or (T, H, W, 3)")
    ax = ax or _new_axes((1.6, 7) if vertical else (7, 1.2))
    T = len(video)
    count = min(count, T)
    centres = (np.arange(count) + 0.5) * T / count - 0.5
    half = 0.47 * T / count
    spoiled = np.zeros(T, bool) if marked is None else np.asarray(marked, bool)
    for centre in centres:
        t = int(np.clip(round(float(centre)), 0, T - 1))
        low, high = centre - half, centre + half
        extent = (0.0, 1.0, high, low) if vertical else (low, high, 0.0, 1.0)
        ax.imshow(video[t], cmap="gray", vmin=0, vmax=1 if video.max() <= 1 else 255, extent=extent, aspect="auto")
        if spoiled[t]:
            left, bottom = (0.0, low) if vertical else (low, 0.0)
            wide, tall = (1.0, 2 * half) if vertical else (2 * half, 1.0)
            ax.add_patch(_rectangle((left, bottom), wide, tall))
    along = (-0.5, T - 0.5)
    ax.set(xlim=(0, 1) if vertical else along, ylim=along[::-1] if vertical else (0, 1))
    ax.set_axis_off()
    return ax


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
) -> Figure:
    """Draw an alignment of two videos with a film strip of X above and of Z on the left.

    x_frames, z_frames : (N, H, W) and (K, H, W), or with colours.
    spoiled_z : (K,) bool, which frames of Z are known to be junk: on the right, ✓ where such a frame was dropped and
        ✗ where it was matched.
    truth_x : as in `alignment`.
    """
    K, N = a.shape
    lengths = (len(np.asarray(x_frames)), len(np.asarray(z_frames)))
    if lengths != (N, K):
        raise ValueError(
            f"x_frames and z_frames have {lengths[0]} and {lengths[1]} frames; the alignment has {N} x {K}"
        )
    figure: Figure = _pyplot().figure(figsize=(9, 6), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 9), height_ratios=(1, 8))
    ax = figure.add_subplot(grid[1, 1])
    alignment(a, truth_x=truth_x, title="", xlabel=xlabel, ylabel="", colorbar=False, ax=ax)
    strip(x_frames, count=14, ax=figure.add_subplot(grid[0, 1], sharex=ax))
    side = figure.add_subplot(grid[1, 0], sharey=ax)
    strip(z_frames, count=6, vertical=True, marked=spoiled_z, ax=side)
    side.set_title(ylabel, fontsize="medium")
    if spoiled_z is not None:
        for i in np.flatnonzero(np.asarray(spoiled_z, bool)).tolist():
            found = bool(a.dropped_z[i])
            ax.text(N - 0.3, i, "✓" if found else "✗", color=TRUTH if found else "#b00020", fontsize=8, va="center")
    legend = "blue matched · orange dropped"
    legend += " · green: the true intervals" if truth_x else ""
    legend += " · right edge: ✓ junk dropped, ✗ junk matched" if spoiled_z is not None else ""
    figure.suptitle("\n".join(filter(None, (title, legend))), fontsize="medium")
    return figure


def step_bars(
    rows: Mapping[str, npt.ArrayLike],
    *,
    names: Mapping[int, str] | None = None,
    seconds: float = 1.0,
    xlabel: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw which step each frame shows, one bar for each way to tell: steps coloured, background blank.

    rows : by name, labels (N,), −1 for background, such as the ground truth and what methods found.
    names : what steps are called in the legend; without it, by number.   seconds : how long a frame lasts.
    """
    from matplotlib import colormaps

    ax = ax or _new_axes((9, 0.6 + 0.45 * len(rows)))
    all_labels = [np.asarray(labels, int) for labels in rows.values()]
    if len({len(labels) for labels in all_labels}) != 1:
        raise ValueError(f"rows have {[len(labels) for labels in all_labels]} frames; give as many labels for each")
    steps = sorted({int(step) for labels in all_labels for step in labels} - {-1})
    colours = {step: SERIES[k] if k < len(SERIES) else colormaps["tab20"](k % 20) for k, step in enumerate(steps)}
    known = set()
    for y, labels in enumerate(all_labels):
        for step in steps:
            spans = [(start * seconds, (stop - start) * seconds) for start, stop in runs(labels == step)]
            if spans:
                called = f"step {step}" if names is None else names.get(step, f"step {step}")
                label = None if step in known else called
                known.add(step)
                ax.broken_barh(spans, (y - 0.36, 0.72), facecolor=colours[step], edgecolor="white", linewidth=0.5,
                               label=label)  # fmt: skip
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(0, len(all_labels[0]) * seconds), ylim=(len(rows) - 0.5, -0.5), xlabel=xlabel)
    ax.set_title(title, fontsize="medium")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    if known:
        ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def curves(
    at: Sequence[float],
    values: Mapping[str, npt.ArrayLike],
    *,
    emphasis: Sequence[str] = (),
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw curves with their standard errors, such as a retrieval's recall against noise.

    values : by name, (runs, len(at)): the mean over the runs is drawn, with a band of one standard error.
    emphasis : names of curves to draw thick; the others are thin.
    """
    ax = ax or _new_axes((7, 4.5))
    for number, (name, all_runs) in enumerate(values.items()):
        each = np.atleast_2d(np.asarray(all_runs, float))
        mean, error = each.mean(axis=0), standard_error(each)
        colour, dashed = SERIES[number % len(SERIES)], number >= len(SERIES) // 2
        thick = name in emphasis
        ax.plot(at, mean, label=name, color=colour, linewidth=2.6 if thick else 1.2, marker="o" if thick else ".",
                markersize=5, linestyle="--" if dashed else "-", zorder=3 if thick else 2)  # fmt: skip
        ax.fill_between(at, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, fontsize="medium")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


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
    """Draw both sequences, Z above X, with blue lines between what matches; what is dropped is orange.

    Up to four features are drawn as curves, on one scale for both sequences; more are drawn as a band of grey levels.
    Z is stretched to the width of X.

    links : how many of the matches to draw at most, evenly spaced.
    """
    above, below = as_sequence(Z, "Z"), as_sequence(X, "X")
    K, N = a.shape
    if (len(above), len(below)) != (K, N):
        raise ValueError(
            f"Z and X have {len(above)} and {len(below)} elements, but {K} and {N} were aligned; give both as aligned"
        )
    ax = ax or _new_axes((8, 3.6))
    low, high = (float(f([f(above), f(below)])) for f in (np.min, np.max))
    at = (np.arange(K) + 0.5) * N / K - 0.5, np.arange(N, dtype=float)
    ends = [
        _signal(ax, values, where, floor, (low, high), dropped)
        for values, where, floor, dropped in ((above, at[0], 1.6, a.dropped_z), (below, at[1], 0.0, a.dropped_x))
    ]
    few = np.unique(np.linspace(0, len(a.pairs) - 1, min(links, len(a.pairs))).round().astype(int))
    for i, j in a.pairs[few].tolist():
        ax.plot([at[0][i], at[1][j]], [ends[0][0][i], ends[1][1][j]], color=MATCH, linewidth=0.7, alpha=0.45, zorder=1)
    ax.set_yticks([2.1, 0.5], list(ylabels))
    ax.set(xlim=(-0.5, N - 0.5), ylim=(-0.12, 2.72), xlabel=xlabel)
    ax.set_title(title, fontsize="medium")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def posterior(
    p: Posterior,
    *,
    title: str | None = None,
    xlabel: str = "x",
    ylabel: str = "z",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw how probable each match is (blue), and beside it each drop (orange): x below, z on the right.

    A row or column of drops is left out where nothing can be dropped.
    """
    from matplotlib.colors import LinearSegmentedColormap

    ax = ax or _new_axes()
    K, N = p.match.shape
    shades = [LinearSegmentedColormap.from_list("", ["white", colour]) for colour in (MATCH, DROPPED)]
    how: Any = {"vmin": 0, "vmax": 1, "aspect": "auto", "interpolation": "nearest"}
    image = ax.imshow(p.match, cmap=shades[0], **how)
    ax.locator_params(integer=True)
    ticks = [[t for t in locate() if 0 <= t < n] for locate, n in ((ax.get_xticks, N), (ax.get_yticks, K))]
    ends = [N - 0.5, K - 0.5]
    for axis, (chance, share) in enumerate(((p.drop_z, 0.03), (p.drop_x, 0.06))):
        if not chance.any():
            continue
        strip = max(0.8, share * (N, K)[axis])  # how broad, in elements
        near, far = ends[axis] + 0.3 * strip, ends[axis] + 1.3 * strip
        extent = (-0.5, N - 0.5, far, near) if axis else (near, far, K - 0.5, -0.5)
        ax.imshow(chance[None] if axis else chance[:, None], extent=extent, cmap=shades[1], **how)
        ends[axis] = far
        centre = (near + far) / 2
        ticks[axis] = [t for t in ticks[axis] if centre - t > 0.06 * (N, K)[axis]] + [centre]  # names need room
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label="probability of a match", pad=0.02)
    ax.set(xlim=(-0.5, ends[0]), ylim=(ends[1], -0.5), xlabel=xlabel, ylabel=ylabel)
    for n, places, name in ((N, ticks[0], ax.set_xticks), (K, ticks[1], ax.set_yticks)):
        name(places, [f"{t:g}" if t < n - 0.5 else "drop" for t in places])
    ax.set_title(f"γ = {p.gamma:g}: matched blue, dropped orange" if title is None else title, fontsize="medium")
    return ax


def _signal(
    ax: Axes, values: Array, at: Array, floor: float, limits: tuple[float, float], dropped: Array
) -> tuple[Array, Array]:
    """Draw a sequence between `floor` and `floor` + 1; where links leave each element downwards and upwards."""
    low, high = limits
    step = float(at[1] - at[0]) if len(at) > 1 else 2 * float(at[0]) + 1
    spans = [(at[start] - step / 2, (stop - start) * step) for start, stop in runs(dropped)]
    as_image = values.shape[1] > 4
    ax.broken_barh(spans, (floor - 0.05, 1.1), facecolor=DROPPED, alpha=0.4 if as_image else 0.16, linewidth=0,
                   zorder=3 if as_image else 0)  # fmt: skip
    if as_image:
        extent = (at[0] - step / 2, at[-1] + step / 2, floor, floor + 1)
        ax.imshow(values.T, cmap="Greys", aspect="auto", interpolation="nearest", extent=extent, vmin=low, vmax=high)
        return np.full(len(at), floor), np.full(len(at), floor + 1)
    heights = floor + (values - low) / (high - low or 1.0)
    size = float(np.clip(160 / len(at), 1.5, 5))
    for number, curve in enumerate(heights.T):
        shade = str(0.15 + 0.15 * number)
        ax.plot(at, curve, color=shade, linewidth=1.0, marker="o", markersize=size, zorder=2)
        ax.plot(at[dropped], curve[dropped], "o", color=DROPPED, markersize=size, zorder=3)
    return heights.min(axis=1), heights.max(axis=1)


def _rectangle(corner: tuple[float, float], wide: float, tall: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, wide, tall, fill=False, edgecolor=DROPPED, linewidth=2)


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'dropdtw[plot]'") from None
    return plt


def _new_axes(size: tuple[float, float] = (7, 4)) -> Axes:
    ax: Axes = _pyplot().subplots(figsize=size, layout="constrained")[1]
    return ax
