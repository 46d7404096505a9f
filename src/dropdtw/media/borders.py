"""Where a shared passage begins and ends, to the hundredth of a second.

First the line of each run is refined on fine frames. Then each border moves to where the passage before it stops
matching and the passage after it starts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dropdtw.media.confidence import StretchEvidence
from dropdtw.media.features import Frames
from dropdtw.media.matching import Stretch
from dropdtw.problem.inputs import Array

SEARCH = 14
"""Maximum error of a line after the search, in fine frames."""

BODY = (20, 400)
"""The line at an end of a run is fitted to fine frames this far from that end (nearest, farthest)."""

STEADY = 2000
"""Minimum length of a run, in fine frames, for estimating its speed."""

REACH = 150
"""Maximum distance that a border may move, in fine frames."""

PRICE = 0.25
"""Cost below which a frame counts as matching, between the run's own cost (0) and that of chance (1)."""

OPENING = 15.0
"""Penalty per gap, in fine frames that mismatch, so that a gap in one recording is preferred to gaps in both."""

SNAP = 20
"""A border this close to the end of a recording, in fine frames, moves to that end."""


def line_cost(A: Frames, B: Frames, line: Stretch, a: Array, shift: float = 0.0) -> Array:
    """Cost of frames `a` of A against B along a line: 1 − cosine, NaN where both are silent, 2 outside B."""
    k = np.rint(line.at(a + 0.5) + shift - 0.5).astype(np.int64)
    inside = (a >= 0) & (a < len(A.fine)) & (k >= 0) & (k < len(B.fine))
    i, j = np.where(inside, a, 0), np.where(inside, k, 0)
    cost = 1 - np.einsum("nd,nd->n", A.fine[i], B.fine[j])
    cost = np.where(A.quiet[i] & B.quiet[j], np.nan, cost)
    return np.where(inside, cost, 2.0)


def fitted(A: Frames, B: Frames, run: Stretch) -> Stretch:
    """The run on the line that matches best, to a fraction of a fine frame, at its start and at its stop."""
    first, last = BODY
    ends = []
    for end in (1, -1):
        far = min(last, int(0.8 * run.length))
        body = np.arange(min(first, far // 4), max(far, 1))
        a = int(run.a) + body if end == 1 else int(run.a_stop) - 1 - body
        ends.append(_shift(A, B, run, a))
    if run.length < 2 * last:  # too short for a slope of its own
        ends = [sum(ends) / 2] * 2
    return Stretch(run.a, run.a_stop, run.b + ends[0], run.b_stop + ends[1])


def with_typical_slope(A: Frames, B: Frames, runs: list[Stretch]) -> list[Stretch]:
    """The refined runs. Those too short to estimate a speed take the typical slope of all runs."""
    if not runs:
        return []
    slopes, lengths = np.array([run.slope for run in runs]), np.array([run.length for run in runs])
    order = np.argsort(slopes)
    usual = float(slopes[order][np.searchsorted(np.cumsum(lengths[order]), lengths.sum() / 2)])
    found = []
    for run in runs:
        if run.length < STEADY:
            middle, half = (run.b + run.b_stop) / 2, usual * run.length / 2
            run = fitted(A, B, Stretch(run.a, run.a_stop, middle - half, middle + half))
        found.append(run)
    return found


def _shift(A: Frames, B: Frames, run: Stretch, a: Array) -> float:
    shifts = np.arange(-SEARCH, SEARCH + 1)
    with np.errstate(invalid="ignore"):
        means = np.array([_mean(line_cost(A, B, run, a, float(shift))) for shift in shifts])
    if not np.isfinite(means).any():
        return 0.0  # silence throughout
    k = int(np.nanargmin(means))
    if 0 < k < len(shifts) - 1:
        before, here, after = means[k - 1 : k + 2]
        bend = before - 2 * here + after
        if bend > 0:
            return float(shifts[k] + 0.5 * (before - after) / bend)
    return float(shifts[k])


def _mean(cost: Array) -> float:
    heard = cost[~np.isnan(cost)]
    return float(heard.mean()) if len(heard) else np.nan


def refined(A: Frames, B: Frames, runs: list[Stretch], evidence: list[StretchEvidence]) -> list[Stretch]:
    """The runs with their borders moved, in order, without overlap."""
    found = list(runs)
    for k in range(len(found) + 1):
        left = found[k - 1] if k > 0 else None
        right = found[k] if k < len(found) else None
        if left is None and right is not None:
            found[0] = _first(A, B, right, evidence[0])
        elif right is None and left is not None:
            found[-1] = _last(A, B, left, evidence[-1])
        elif left is not None and right is not None:
            found[k - 1], found[k] = _between(A, B, left, right, (evidence[k - 1], evidence[k]))
    return found


def _gain(A: Frames, B: Frames, run: Stretch, a: Array, known: StretchEvidence) -> Array:
    """The evidence of each frame against the run: positive where it does not match, negative where it does."""
    price = known.cost + PRICE * (known.chance - known.cost)
    cost = line_cost(A, B, run, a)
    return np.where(np.isnan(cost), 0.0, (cost - price) / max(known.chance - price, 1e-3))


def _ending(run: Stretch, u: float) -> Stretch:
    return replace(run, a_stop=float(u), b_stop=float(run.at(u)))


def _starting(run: Stretch, v: float) -> Stretch:
    return replace(run, a=float(v), b=float(run.at(v)))


def _first(A: Frames, B: Frames, run: Stretch, known: StretchEvidence) -> Stretch:
    """The start of the first run: where it begins to match, or where a recording begins."""
    earliest = max(0.0, run.a - run.b / run.slope)
    reach = min(REACH, int(run.length / 2))
    a = np.arange(int(np.ceil(max(earliest, run.a - reach))), int(run.a + reach) + 1)
    total = np.cumsum(_gain(A, B, run, a, known)[::-1])[::-1]
    v = float(a[int(np.argmin(total))])
    return _starting(run, earliest if v - earliest < SNAP else v)


def _last(A: Frames, B: Frames, run: Stretch, known: StretchEvidence) -> Stretch:
    """The stop of the last run: where it stops matching, or where a recording ends."""
    ends = (A.seconds * A.rate, B.seconds * B.rate)
    latest = min(ends[0], run.a_stop + (ends[1] - run.b_stop) / run.slope)
    reach = min(REACH, int(run.length / 2))
    a = np.arange(int(run.a_stop - reach), int(min(latest, run.a_stop + reach)))
    total = np.cumsum(_gain(A, B, run, a, known))
    u = float(a[len(a) - 1 - int(np.argmin(total[::-1]))] + 1)  # the last of equals, to include common silence
    return _ending(run, latest if latest - u < SNAP else u)


def _between(
    A: Frames, B: Frames, left: Stretch, right: Stretch, known: tuple[StretchEvidence, StretchEvidence]
) -> tuple[Stretch, Stretch]:
    """The border between two runs: u, where the left one stops, and v, where the right one starts, in frames of A."""
    reach = (min(REACH, int(left.length / 2)), min(REACH, int(right.length / 2)))
    far = int(max(right.a - left.a_stop, 0))
    u = np.arange(int(left.a_stop) - reach[0], int(left.a_stop) + min(REACH, far + reach[1]) + 1)
    v = np.arange(int(right.a) - min(REACH, far + reach[0]), int(right.a) + reach[1] + 1)
    stops, starts = _gain(A, B, left, u[:-1], known[0]), _gain(A, B, right, v[:-1], known[1])
    before = np.concatenate([[0.0], np.cumsum(stops)])
    after = np.concatenate([np.cumsum(starts[::-1])[::-1], [0.0]])
    gap_a = v[None] - u[:, None]
    gap_b = right.at(v)[None] - left.at(u)[:, None]
    total = before[:, None] + after[None]
    total = total + OPENING * ((gap_a > 0.5).astype(float) + (gap_b > 0.5))
    total[(gap_a < -0.5) | (gap_b < -0.5)] = np.inf
    if not np.isfinite(total).any():
        return left, right
    i, j = np.unravel_index(int(np.argmin(total)), total.shape)
    return _ending(left, float(u[i])), _starting(right, float(v[j]))
