"""Multi-step localization (paper Section 4.2): infer with any method, on match costs that are given, and score.

Scores are the paper's three over all videos of a split: recall of the one-frame-per-step assignment (pooled over
steps), accuracy of frames with background, and IoU (both per video, then averaged); and F1 of the frames that show a
step, pooled over videos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

import dropdtw
from dropdtw import metrics
from dropdtw.costs import cosine
from dropdtw.data.steps import BACKGROUND, StepDataset, StepVideo
from dropdtw.files.progress import Report
from dropdtw.orders import Order
from dropdtw.problem.inputs import Array
from dropdtw.tables.methods import METHODS

PERCENTILES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 70.0)
"""Among these, drop costs and thresholds of inference are chosen, on validation videos."""

Cost = Callable[[StepVideo], Array]
"""The match costs (K, N) of a video."""


@dataclass(frozen=True)
class Scores:
    """Recall, accuracy, IoU and F1, 0 to 1."""

    recall: float
    accuracy: float
    iou: float
    f1: float


def scores(found: Iterable[tuple[StepVideo, Array, Array | None]]) -> Scores:
    """Scores of (video, predicted step ids (N,), similarities (K, N) for recall, or None).

    A video with more steps than frames has no assignment of one frame to each step: its steps count as missed.
    """
    accuracy, iou, hits, steps, right, named = [], [], 0.0, 0, 0, 0
    for video, labels, S in found:
        true = video.labels
        accuracy.append(metrics.frame_accuracy(labels, true))
        iou.append(metrics.iou(labels, true))
        right += int(((labels == true) & (true != BACKGROUND)).sum())
        named += int((labels != BACKGROUND).sum() + (true != BACKGROUND).sum())
        steps += len(video.steps)
        if S is not None and len(video.steps) <= len(video.frames):
            starts, stops = _intervals(video)
            hits += len(video.steps) * metrics.recall(S, starts, stops, order=video.order)
    if not accuracy:
        raise ValueError("there are no videos to score; this part of the data set is empty: give more videos")
    return Scores(hits / max(1, steps), float(np.mean(accuracy)), float(np.mean(iou)), 2 * right / max(1, named))


def _intervals(video: StepVideo) -> tuple[Array, Array]:
    """Start and stop of each step, in frames (see `StepVideo.frame_segments`); empty where it has no segment."""
    starts, stops = np.zeros((2, len(video.steps)))
    for row, start, stop in video.frame_segments:
        starts[row], stops[row] = start, stop
    return starts, stops


def localize(C: Array, drop_x: Array | float, order: Order | None = None) -> Array:
    """The row of each frame by Drop-DTW: a frame has one step, a step one unbroken run. −1 for background.

    order : of the steps; None: as they are listed. Where there are more steps than frames, steps share frames.
    """
    return dropdtw.solve(C, drop_x, many_to_one=_crowded(C), contiguous=True, order=order).labels


def _crowded(C: Array) -> bool:
    """Whether steps have to share frames."""
    return bool(C.shape[0] > C.shape[1])


def by_method(C: Array, method: str, percentile: float) -> Array:
    """The row of each frame by a method of the registry, −1 for background.

    percentile : of C, is what drops cost or what a threshold is; methods without either ignore it.
    """
    entry = METHODS[method]
    at = float(np.percentile(C, percentile))
    if method == "drop_dtw":
        return localize(C, at)
    if method == "smith_waterman":  # looks for matches that are worth something
        return dropdtw.solve(C - at, 0.0, 0.0, method=method).labels
    if entry.takes_threshold:
        return dropdtw.solve(C, method=method, threshold=at).labels
    if not entry.takes_drops:  # left to themselves, all steps would crowd on the cheapest frame that OTAM finds
        return dropdtw.solve(C, method=method, many_to_one=_crowded(C)).labels
    # Frames are dropped, and steps too where a method matches one to one: there may be more of them than frames.
    return dropdtw.solve(C, at, at if entry.one_to_one else None, method=method).labels


def cosine_cost(video: StepVideo) -> Array:
    """The match costs of a video's own features."""
    return cosine(video.steps, video.frames)


@dataclass(frozen=True)
class Fold:
    """What a comparison needs: match costs, videos to choose the percentile on, and videos to test."""

    cost: Cost
    validation: StepDataset
    test: StepDataset


@dataclass(frozen=True)
class Inference:
    """A method as inference on fixed features: the percentile chosen in each fold, and scores over all folds."""

    percentiles: tuple[float, ...]
    scores: Scores


METHODS_COMPARED = ("dtw", "otam", "lcss", "needleman_wunsch", "smith_waterman", "greedy", "drop_dtw")
"""Those of the registry that differ as hard inference: `subsequence` is `otam`, `drop_dtw_paper` is `drop_dtw`."""


def compare_methods(
    folds: Sequence[Fold], by: str = "iou", report: Report = lambda done, total: None
) -> dict[str, Inference]:
    """Every method on the same costs (paper Table 2); "all background" finds nothing.

    by : the score by which percentiles are chosen on validation videos, "iou" or "f1".
    """

    def run(fold: Fold, videos: StepDataset, name: str, p: float) -> list[tuple[StepVideo, Array, None]]:
        return [(video, video.ids_of(by_method(fold.cost(video), name, p)), None) for video in videos]

    nothing = [(video, np.full(len(video.frames), BACKGROUND), None) for fold in folds for video in fold.test]
    table = {"all background": Inference((), scores(nothing))}
    for number, name in enumerate(METHODS_COMPARED):
        entry = METHODS[name]
        chosen: list[float] = []
        found: list[tuple[StepVideo, Array, None]] = []
        for fold in folds:
            p = 0.0
            if entry.takes_drops or entry.takes_threshold:
                tried = {p: getattr(scores(run(fold, fold.validation, name, p)), by) for p in PERCENTILES}
                p = max(tried, key=lambda p: tried[p])
                chosen.append(p)
            found += run(fold, fold.test, name, p)
        table[name] = Inference(tuple(chosen), scores(found))
        report(number + 1, len(METHODS_COMPARED))
    return table
