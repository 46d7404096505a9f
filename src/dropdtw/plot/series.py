"""Plots along one time axis: film strips, the step of each frame, and curves with error bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dropdtw.metrics import standard_error
from dropdtw.plot.common import DROPPED, MATCH, SERIES, hatched, new_axes, patch, step_name, time_axis, titled
from dropdtw.problem.clock import Clock, Fps, Times, clocks_of
from dropdtw.problem.inputs import Array, runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dropdtw.search.find import Occurrence

CURVES = 4
"""Maximum number of features drawn as curves."""

PIXELS = 4000
"""Maximum resolution along the time axis for a long signal."""

NUMBERED = 30
"""Maximum number of occurrences that are numbered."""

FEW = 4
"""Maximum number of curves for a one-line legend above the plot."""

MARKERS = "os^Dv*X"
"""Markers of curves, so that they differ by more than color."""

PATTERNS = (None, "//", "..", "xx")
"""Hatch patterns of bars, one for each pass through the colors."""


def strip(
    frames: npt.ArrayLike,
    *,
    count: int = 12,
    marked: npt.ArrayLike | None = None,
    vertical: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw a film strip: `count` evenly spaced frames of a video along its time axis.

    frames : (T, H, W) or (T, H, W, 3), with values up to 1 or up to 255.   count : number of frames to draw.
    marked : (T,) bool, frames that get an orange edge.   vertical : whether time runs downward.
    ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib, and ValueError if frames has another shape.

    >>> import numpy as np
    >>> from dropdtw import plot
    >>> ax = plot.strip(np.random.default_rng(0).random((30, 8, 8)), count=6)
    """
    video = np.asarray(frames)
    if video.ndim not in (3, 4) or 0 in video.shape:
        raise ValueError(f"frames has shape {video.shape}; give a video (T, H, W) or (T, H, W, 3)")
    ax = ax or new_axes((1.6, 7) if vertical else (7, 1.2))
    T = len(video)
    count = min(count, T)
    centers = (np.arange(count) + 0.5) * T / count - 0.5
    half = 0.47 * T / count
    spoiled = np.zeros(T, bool) if marked is None else np.asarray(marked, bool)
    for center in centers:
        t = int(np.clip(round(float(center)), 0, T - 1))
        low, high = center - half, center + half
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


def step_bars(
    rows: Mapping[str, npt.ArrayLike],
    *,
    names: Mapping[int, str] | Sequence[str] | None = None,
    times: Times = None,
    fps: Fps = None,
    xlabel: str | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the step that each frame shows, one bar per row: steps are colored, the background is blank.

    rows : labels (N,) by row name, −1 for background; for example the ground truth and the results of methods.
    names : names of the steps for the legend: a list, or a dictionary by step. Others show their numbers.
    times, fps : of the frames, as in `dropdtw.align`.
    xlabel : by default "x", or with times "seconds" or "time".   title : title above the plot.
    ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib, and ValueError if there are no rows, if their lengths
    differ, or if a list of names is too short.

    >>> from dropdtw import plot
    >>> ax = plot.step_bars({"truth": [-1, 0, 0, 1], "found": [0, 0, 0, 1]}, names={0: "boil", 1: "pour"})
    """
    all_labels = [np.asarray(labels, int) for labels in rows.values()]
    if not all_labels:
        raise ValueError("rows is empty; give at least one row of labels")
    if len({len(labels) for labels in all_labels}) != 1:
        raise ValueError(f"rows have {[len(labels) for labels in all_labels]} frames; all rows need the same number")
    ax = ax or new_axes((9, 0.6 + 0.45 * len(rows)))
    steps = sorted({int(step) for labels in all_labels for step in labels} - {-1})
    # Colors repeat, each time with a different hatch pattern.
    looks: dict[int, Any] = {
        step: {"facecolor": SERIES[k % len(SERIES)], "hatch": PATTERNS[k // len(SERIES) % len(PATTERNS)]}
        for k, step in enumerate(steps)
    }
    known = set()
    for y, labels in enumerate(all_labels):
        for step in steps:
            spans = [(start, stop - start) for start, stop in runs(labels == step)]
            if spans:
                label = None if step in known else step_name(names, step, f"step {step}")
                known.add(step)
                ax.broken_barh(spans, (y - 0.36, 0.72), edgecolor="white", linewidth=0.5, label=label, **looks[step])
    ax.set_yticks(range(len(rows)), list(rows))
    clocks = clocks_of((0, len(all_labels[0])), times, fps)
    ax.set(xlim=(0, len(all_labels[0])), ylim=(len(rows) - 0.5, -0.5))
    _label(ax, xlabel, clocks and clocks.x)
    ax.set_title(title, fontsize="medium")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    if known:
        ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def occurrences(
    signal: npt.ArrayLike,
    found: Sequence[Occurrence],
    *,
    times: Times = None,
    fps: Fps = None,
    xlabel: str | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a signal with the occurrences that `dropdtw.find` found: blue bands with their rank, dropped x in orange.

    signal : (N,) or (N, d), the signal that was searched; more than four features are drawn as an image.
    found : what `dropdtw.find` returned.
    times, fps : of the signal, as in `dropdtw.align`; by default those of the occurrences.
    xlabel : by default "x", or with times "seconds" or "time".   title : title above the plot.
    ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib, and ValueError if the signal has another shape or is too
    short for the occurrences.

    >>> import dropdtw
    >>> from dropdtw import plot
    >>> signal = [9, 1, 2, 3, 9, 9, 1, 7, 2, 3, 9]
    >>> ax = plot.occurrences(signal, dropdtw.find([1, 2, 3], signal, 2, drop_x=0.5))
    """
    values = np.ma.filled(np.ma.asarray(signal).astype(float), np.nan)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"signal has shape {values.shape}; give the signal that was searched, (N,) or (N, d)")
    if any(o.stop > len(values) for o in found):
        raise ValueError(
            f"an occurrence ends beyond the {len(values)} elements of signal; give the signal that was searched"
        )
    ax = ax or new_axes((9, 2.8))
    low, high = float(np.fmin.reduce(values, axis=None)), float(np.fmax.reduce(values, axis=None))  # fmin skips NaN
    if values.shape[1] <= CURVES:
        names = [str(name) for name in getattr(signal, "columns", ())]
        colors = [SERIES[2]] if values.shape[1] == 1 else SERIES
        for k, curve in enumerate(values.T):
            at, line = _envelope(curve)
            ax.plot(at, line, color=colors[k], linewidth=0.8, zorder=2, label=names[k] if names else None)
        ax.set_ylabel("value")
    else:
        few = values[:: max(1, len(values) // PIXELS)]
        ax.imshow(few.T, cmap="gray_r", aspect="auto", extent=(0, len(values), low, high), zorder=0)
        ax.set_yticks([])
        ax.set_ylabel("features")
    room = (high - low) or 1.0
    for rank, o in enumerate(found, 1):
        ax.axvspan(o.start, o.stop, color=MATCH, alpha=0.22, linewidth=0, zorder=1)
        for start, stop in runs(o.alignment.dropped_x):
            ax.axvspan(o.start + start, o.start + stop, zorder=1, **hatched(DROPPED, 0.3))
        if rank <= NUMBERED:
            middle = (o.start + o.stop) / 2
            ax.text(middle, high + 0.1 * room, str(rank), ha="center", va="bottom", fontsize="small", color=MATCH)
    ax.set(xlim=(0, len(values)), ylim=(low - 0.08 * room, high + 0.3 * room))
    given = clocks_of((0, len(values)), times, fps)
    _label(ax, xlabel, given.x if given else next((o.clock for o in found), None))
    entries = {"occurrence": patch(facecolor=(MATCH, 0.22), linewidth=0)} if found else {}
    if any(o.alignment.dropped_x.any() for o in found):
        entries["dropped"] = patch(**hatched(DROPPED, 0.3))
    named = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    titled(ax, title, named | entries)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _envelope(curve: Array) -> tuple[Array, Array]:
    """The points of a curve to draw; a long curve is reduced to the minimum and maximum of each block."""
    if len(curve) <= 2 * PIXELS:
        return np.arange(len(curve)) + 0.5, curve
    width = -(-len(curve) // PIXELS)
    padded = np.pad(curve, (0, -len(curve) % width), mode="edge").reshape(-1, width)
    at = (np.arange(len(padded)) + 0.5) * width
    return np.repeat(at, 2), np.stack([np.fmin.reduce(padded, axis=1), np.fmax.reduce(padded, axis=1)], axis=1).ravel()


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
    """Draw curves with their standard errors, for example recall against noise.

    at : positions on the horizontal axis.
    values : (runs, len(at)) by curve name, or (len(at),) for a single run. The mean over the runs is drawn, with a band
        of one standard error.
    emphasis : names of curves to draw thick.   xlabel, ylabel, title : labels of the axes, and title above the plot.
    ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib, and ValueError if a curve does not have len(at) points.

    >>> from dropdtw import plot
    >>> recall = {"DTW": [[0.9, 0.6], [0.8, 0.5]], "Drop-DTW": [[0.9, 0.8], [0.9, 0.9]]}
    >>> ax = plot.curves([0, 0.5], recall, xlabel="noise", ylabel="recall")
    """
    ax = ax or new_axes((7, 4.5))
    lines = {}
    for number, (name, all_runs) in enumerate(values.items()):
        each = np.atleast_2d(np.asarray(all_runs, float))
        mean, error = each.mean(axis=0), standard_error(each)
        color, dashed = SERIES[number % len(SERIES)], number // len(SERIES) % 2
        thick = name in emphasis
        (lines[name],) = ax.plot(
            at, mean, label=name, color=color, linewidth=2.6 if thick else 1.4, marker=MARKERS[number % len(MARKERS)],
            markersize=6 if thick else 4.5, linestyle="--" if dashed else "-", zorder=3 if thick else 2,
        )  # fmt: skip
        ax.fill_between(at, mean - error, mean + error, color=color, alpha=0.18, linewidth=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(alpha=0.3)
    if len(values) <= FEW:
        titled(ax, title, lines)
    else:
        titled(ax, title, {})
        ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def _label(ax: Axes, xlabel: str | None, clock: Clock | None) -> None:
    """Label the axis of frames, with their times if they have any."""
    name = "x" if clock is None else time_axis(ax.xaxis, clock)
    ax.set_xlabel(name if xlabel is None else xlabel)


def _rectangle(corner: tuple[float, float], wide: float, tall: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, wide, tall, fill=False, edgecolor=DROPPED, linewidth=2)
