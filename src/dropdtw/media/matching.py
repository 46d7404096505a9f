"""Which stretches of two recordings match: two-sided Drop-DTW with opening costs, on the search frames."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dropdtw import executors
from dropdtw.costs import Match
from dropdtw.files.progress import Report
from dropdtw.media.features import Frames
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec

WARP = 1.0
"""Cost of a repeated frame where speeds may differ; a difference of 1 % repeats one frame every ten seconds."""

STRAIGHT = 1.5
"""A stretch that deviates from a straight line by more search frames than this is split in two."""

ROWS = 512
"""Frames of A that are compared at a time."""


@dataclass(frozen=True)
class Stretch:
    """A stretch that matches along a straight line, from (a, b) to (a_stop, b_stop) in fine frames."""

    a: float
    a_stop: float
    b: float
    b_stop: float

    @property
    def slope(self) -> float:
        """Frames of B for each frame of A."""
        return (self.b_stop - self.b) / (self.a_stop - self.a) if self.a_stop > self.a else 1.0

    @property
    def length(self) -> float:
        """Fine frames of A."""
        return self.a_stop - self.a

    def at(self, a: Array | float) -> Array:
        """The frames of B that belong to frames `a` of A on this line, continued both ways."""
        return np.asarray(self.b + (np.asarray(a) - self.a) * self.slope)


def match(A: Frames, B: Frames, *, drop: float, opening: float, speed: bool, report: Report) -> Array:
    """The pairs of frames (L, 2) that the best alignment matches.

    drop, opening : the cost of dropping a frame, and the extra cost of a run of drops, on either side.
    speed : whether a frame may match two of the other side; otherwise matches are one-to-one.
    report : called with (done, total) during the search.
    """
    method, warp = ("drop_dtw", WARP) if speed else ("needleman_wunsch", 0.0)
    spec = Spec.of(drop, drop, match="cosine", method=method, open_x=opening, open_z=opening, warp=warp)
    wanted = 3 * len(A.search) * len(B.search) // 2  # tracing back recomputes about half of the costs
    seen = 0

    def cost(Z: Array, X: Array) -> Array:
        nonlocal seen
        seen += len(Z) * len(X)
        report(min(seen, wanted - 1), wanted)
        return nearest_view(Z, X)

    problem = Problem.of_checked(spec, *_compared(A, B, drop), Match("copies", cost))
    pairs = executors.trace(problem).pairs
    report(wanted, wanted)
    return pairs


def _compared(A: Frames, B: Frames, drop: float) -> tuple[Array, Array]:
    """The vectors to compare: B as it is, and A at several small offsets.

    A cut need not be a whole number of frames long, hence the offset views of A. Vectors of silent frames are scaled
    down so that matching two of them costs as much as dropping both.
    """
    d = B.search.shape[1] // B.views
    plain = B.search[:, d * (B.views // 2) : d * (B.views // 2 + 1)]
    short = np.sqrt(max(1 - 2 * drop, 0.0))
    lengths = (np.where(frames.still, short, 1.0).astype(np.float32)[:, None] for frames in (A, B))
    return A.search * next(lengths), plain * next(lengths)


def level(A: Frames, B: Frames, pairs: Array, share: float) -> float:
    """A quantile of the costs of the matched pairs, without silence."""
    heard = pairs[~(A.still[pairs[:, 0]] & B.still[pairs[:, 1]])]
    if not len(heard):
        return 0.0
    d = B.search.shape[1] // B.views
    plain = B.search[heard[:, 1], d * (B.views // 2) : d * (B.views // 2 + 1)]
    views = (A.search[heard[:, 0], start : start + d] for start in range(0, d * A.views, d))
    best = np.max([np.einsum("nd,nd->n", view, plain) for view in views], axis=0)
    return float(np.quantile(1 - best, share))


def nearest_view(Z: Array, X: Array) -> Array:
    """1 − the largest inner product of x_j with a view of z_i: Z (K, views × d), X (N, d).

    Rows are processed a few at a time so that they stay in the cache; all at once would take half as long again.
    """
    d, n = X.shape[1], len(X)
    found, other = np.empty((len(Z), n), np.float32), np.empty((min(len(Z), ROWS), n), np.float32)
    X = np.ascontiguousarray(X.T)
    for row in range(0, len(Z), ROWS):
        z, best = Z[row : row + ROWS], found[row : row + ROWS]
        np.matmul(z[:, :d], X, out=best)
        for start in range(d, Z.shape[1], d):
            np.maximum(best, np.matmul(z[:, start : start + d], X, out=other[: len(z)]), out=best)
        np.subtract(1, best, out=best)
    return found


def stretches(pairs: Array, per: int, speed: bool) -> list[Stretch]:
    """Matched pairs of frames (L, 2) as runs. With `speed`, each run is a line, and long runs that bend are split."""
    if not len(pairs):
        return []
    parts = np.split(pairs, np.flatnonzero((np.diff(pairs, axis=0) > 1).any(axis=1)) + 1)
    return [run for part in parts for run in (_straight(part, per) if speed else [_run(part, per)])]


def _run(part: Array, per: int) -> Stretch:
    (a, b), (a_stop, b_stop) = part[0], part[-1] + 1
    return Stretch(float(per * a), float(per * a_stop), float(per * b), float(per * b_stop))


def _straight(part: Array, per: int) -> list[Stretch]:
    """A stretch as one line, or as two halves where it bends."""
    i, j = part.T.astype(float)
    if i[-1] == i[0] or j[-1] == j[0]:
        return []  # one frame of a side, repeated
    slope, at = np.polyfit(i - i.mean(), j, 1)
    residual = np.abs(at + slope * (i - i.mean()) - j)
    if residual.max() > STRAIGHT and len(part) > 100:
        half = len(part) // 2
        return [*_straight(part[:half], per), *_straight(part[half:], per)]
    begin, end = i[0], i[-1] + 1
    # frame i stands for [i, i + 1): its middle lies on the line
    first, last = (at + 0.5 + slope * (t - 0.5 - i.mean()) for t in (begin, end))
    return [Stretch(per * begin, per * end, per * max(first, 0.0), per * last)]


def merged(runs: list[Stretch], *, gap: float, shift: float) -> list[Stretch]:
    """Join runs that lie on one line, within `shift`, and less than `gap` fine frames apart."""
    found: list[Stretch] = []
    for run in runs:
        if found:
            last = found[-1]
            near = max(run.a - last.a_stop, run.b - last.b_stop) < gap
            if near and abs(float(last.at(run.a)) - run.b) <= shift:
                found[-1] = _joined(last, run, gap)
                continue
        found.append(run)
    return found


def _joined(first: Stretch, second: Stretch, short: float) -> Stretch:
    """One run of two. The line of a run shorter than `short` is too rough to bend that of the longer one."""
    if second.length < min(short, first.length):
        return Stretch(first.a, second.a_stop, first.b, float(first.at(second.a_stop)))
    if first.length < min(short, second.length):
        return Stretch(first.a, second.a_stop, float(second.at(first.a)), second.b_stop)
    return Stretch(first.a, second.a_stop, first.b, second.b_stop)


def without_overlaps(runs: list[Stretch]) -> list[Stretch]:
    """Cut runs that overlap by a fraction of a frame, as fitted lines may, in the middle of the overlap."""
    found: list[Stretch] = []
    for run in runs:
        if found:
            last = found[-1]
            a, b = min(last.a_stop, run.a), min(last.b_stop, run.b)
            a, b = (a + last.a_stop) / 2, (b + last.b_stop) / 2
            found[-1] = replace(last, a_stop=max(a, last.a), b_stop=max(b, last.b))
            run = replace(run, a=min(max(a, run.a), run.a_stop), b=min(max(b, run.b), run.b_stop))
        found.append(run)
    return found
