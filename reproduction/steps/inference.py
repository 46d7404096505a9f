"""Multi-step localization (paper Section 4.2): inference with any method on given match costs, and scores.

The scores cover all videos of a split. Three are the paper's: recall of the assignment of one frame to each step
(pooled over steps), frame accuracy including background, and IoU (both per video, then averaged). The fourth is F1 of
the frames that show a step, pooled over videos. `Mode` says which frames show which step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

import dropdtw
from dropdtw import metrics
from dropdtw.costs import cosine
from dropdtw.files.progress import Report
from dropdtw.orders import Order
from dropdtw.problem.inputs import Array
from dropdtw.tables.methods import METHODS
from reproduction.data.steps import BACKGROUND, StepDataset, StepVideo

PERCENTILES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 70.0)
"""Candidates for drop costs and thresholds of inference, tuned on validation videos."""
OFFSETS = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0)
"""Candidates for what is added to a learned drop logit, in units of the softmax's temperature."""

Mode = Literal["step", "occurrence"]
"""How accuracy, IoU and F1 are counted.

"step": a frame shows the step at its center, and the occurrences of a step count as one step. "occurrence", as in the
authors' experiments: a segment has every frame that it touches, and each occurrence counts by itself.
"""

Cost = Callable[[StepVideo], Array]
"""The match costs (K, N) of a video."""


@dataclass(frozen=True)
class Scores:
    """Recall, accuracy, IoU and F1, 0 to 1."""

    recall: float
    accuracy: float
    iou: float
    f1: float


def scores(found: Iterable[tuple[StepVideo, Array, Array | None]], mode: Mode = "step") -> Scores:
    """Score tuples (video, predicted rows of the step list (N,), similarities (K, N) for recall, or None).

    If a video has more steps than frames, no assignment of one frame to each step exists: its steps count as missed.
    """
    accuracy, iou, hits, steps, right, named = [], [], 0.0, 0, 0, 0
    for video, rows, S in found:
        labels, true = (video.ids_of(rows), video.labels) if mode == "step" else (rows, video.touched)
        accuracy.append(metrics.frame_accuracy(labels, true))
        iou.append(metrics.iou(labels, true))
        right += int(((labels == true) & (true != BACKGROUND)).sum())
        named += int((labels != BACKGROUND).sum() + (true != BACKGROUND).sum())
        steps += len(video.steps)
        if S is not None and len(video.steps) <= len(video.frames):
            starts, stops = _intervals(video)
            hits += len(video.steps) * metrics.recall(S, starts, stops, order=video.order)
    if not accuracy:
        raise ValueError("there are no videos to score; this part of the data set is empty; give more videos")
    return Scores(hits / max(1, steps), float(np.mean(accuracy)), float(np.mean(iou)), 2 * right / max(1, named))


def _intervals(video: StepVideo) -> tuple[Array, Array]:
    """Start and stop of each step in frames (see `StepVideo.frame_segments`); equal for a step without a segment."""
    starts, stops = np.zeros((2, len(video.steps)))
    for row, start, stop in video.frame_segments:
        starts[row], stops[row] = start, stop
    return starts, stops


def localize(C: Array, drop_x: Array | float, order: Order | None = None) -> Array:
    """Find the step of each frame with Drop-DTW: one step per frame, one contiguous run per step. −1 for background.

    order : order of the steps; None: as listed. If there are more steps than frames, steps share frames.
    """
    return dropdtw.solve(C, drop_x, many_to_one=_crowded(C), contiguous=True, order=order).labels


def _crowded(C: Array) -> bool:
    """Whether steps must share frames."""
    return bool(C.shape[0] > C.shape[1])


def by_method(C: Array, method: str, percentile: float) -> Array:
    """Find the step of each frame with a method of the registry, −1 for background.

    percentile : of C, sets the drop costs or the threshold; ignored by methods that take neither.
    """
    if method == AS_PRINTED:
        return dropdtw.solve(C, float(np.percentile(C, percentile))).labels
    entry = METHODS[method]
    at = float(np.percentile(C, percentile))
    if method == "drop_dtw":
        return localize(C, at)
    if method == "smith_waterman":  # needs negative costs for good matches
        return dropdtw.solve(C - at, 0.0, 0.0, method=method).labels
    if entry.takes_threshold:
        return dropdtw.solve(C, method=method, threshold=at).labels
    if not entry.takes_drops:  # else OTAM would match all steps to its cheapest frame
        return dropdtw.solve(C, method=method, many_to_one=_crowded(C)).labels
    # One-to-one methods must also be able to drop steps, because there may be more steps than frames.
    return dropdtw.solve(C, at, at if entry.one_to_one else None, method=method).labels


def cosine_cost(video: StepVideo) -> Array:
    """The cosine match costs of a video's own features."""
    return cosine(video.steps, video.frames)


def cosine_similarity(video: StepVideo) -> Array:
    """The cosines of a video's own features."""
    return 1 - cosine_cost(video)


@dataclass(frozen=True)
class Fold:
    """The data of a comparison: match costs, validation videos to tune on, and test videos.

    similarity : the similarities that the costs come from.
    background : drop costs (N,) from a classifier that knows background as a class, or None.
    """

    cost: Cost
    validation: StepDataset
    test: StepDataset
    similarity: Cost
    background: Cost | None = None


@dataclass(frozen=True)
class Inference:
    """The result of a method on fixed features, over all folds.

    chosen : what was chosen in each fold: the percentile, the offset of a background rule, or the name of a rule.
    videos : (V, 4) accuracy, IoU, F1@50 of segments and edit score of each test video, 0 to 1.
    """

    chosen: tuple[float | str, ...]
    scores: Scores
    videos: Array


AS_PRINTED = "drop_dtw, Algorithm 1 as printed"
"""Drop-DTW whose steps may share frames and be interrupted; the row "drop_dtw" is `method="steps"`."""

BY_BACKGROUND = "drop_dtw, −log p(background)"
"""Drop-DTW with the drop costs of a classifier plus an offset."""

BEST_RULE = "drop_dtw, the better rule"
"""In each fold, "drop_dtw" or `BY_BACKGROUND`, whichever has the better validation score."""

NEGATED = {"dtw, on −similarity": "dtw", "otam, on −similarity": "otam"}
"""Rows of methods without drops on −similarity, as in the authors' experiments: costs that are never negative let OTAM
match one frame per step."""

METHODS_COMPARED = ("dtw", "otam", "lcss", "needleman_wunsch", "smith_waterman", "greedy", "drop_dtw")
"""The methods that differ in hard inference; `subsequence` equals `otam`, `drop_dtw_paper` equals `drop_dtw`."""

Found = list[tuple[StepVideo, Array, None]]


def compare_methods(
    folds: Sequence[Fold], by: str = "iou", report: Report = lambda done, total: None, mode: Mode = "step"
) -> dict[str, Inference]:
    """Compare all methods on the same costs (paper Table 2); "all background" finds nothing.

    by : the score that is best on validation videos, "iou" or "f1".   mode : how scores are counted.
    """

    def run(fold: Fold, videos: StepDataset, name: str, setting: float) -> Found:
        return [(video, _rows(fold, video, name, setting), None) for video in videos]

    def score(found: Found) -> float:
        return float(getattr(scores(found, mode), by))

    def result(chosen: Sequence[float | str], found: Sequence[Found]) -> Inference:
        every = [one for some in found for one in some]
        return Inference(tuple(chosen), scores(every, mode), by_video(every, mode))

    nothing: list[Found] = [[(v, np.full(len(v.frames), BACKGROUND), None) for v in fold.test] for fold in folds]
    table = {"all background": result((), nothing)}
    known = all(fold.background is not None for fold in folds)
    names = (*METHODS_COMPARED, *((BY_BACKGROUND,) if known else ()), AS_PRINTED, *NEGATED)
    rules: dict[str, tuple[list[float], list[Found]]] = {}
    for number, name in enumerate(names):
        settings = _settings(name)
        chosen, valid, found = [], [], []
        for fold in folds:
            tried = {s: score(run(fold, fold.validation, name, s)) for s in settings} if len(settings) > 1 else {}
            best = max(tried, key=lambda s: tried[s], default=settings[0])
            chosen += [best] if tried else []
            valid.append(tried.get(best, 0.0))
            found.append(run(fold, fold.test, name, best))
        table[name] = result(chosen, found)
        rules[name] = valid, found
        report(number + 1, len(names))
    if known:
        pair = ("drop_dtw", BY_BACKGROUND)
        better = [max(pair, key=lambda name: rules[name][0][k]) for k in range(len(folds))]
        said = ["percentile" if name == "drop_dtw" else "background" for name in better]
        table[BEST_RULE] = result(said, [rules[name][1][k] for k, name in enumerate(better)])
    return table


def _settings(name: str) -> tuple[float, ...]:
    """What is tried on validation videos: one value if there is nothing to choose."""
    if name == BY_BACKGROUND:
        return OFFSETS
    entry = METHODS["drop_dtw" if name == AS_PRINTED else NEGATED.get(name, name)]
    return PERCENTILES if entry.takes_drops or entry.takes_threshold else (0.0,)


def _rows(fold: Fold, video: StepVideo, name: str, setting: float) -> Array:
    """The row of each frame by a method of the table. setting : one of `_settings`."""
    if name == BY_BACKGROUND:
        assert fold.background is not None
        return localize(fold.cost(video), fold.background(video) + setting)
    if name in NEGATED:
        return by_method(-fold.similarity(video), NEGATED[name], setting)
    return by_method(fold.cost(video), name, setting)


def by_video(found: Found, mode: Mode) -> Array:
    """Accuracy, IoU, F1@50 of segments and edit score of each video, (V, 4). The last two always count by step."""
    values = []
    for video, rows, _ in found:
        labels, true = (video.ids_of(rows), video.labels) if mode == "step" else (rows, video.touched)
        classes = (video.ids_of(rows), video.labels)
        values.append(
            [
                metrics.frame_accuracy(labels, true),
                metrics.iou(labels, true),
                metrics.segment_f1(*classes),
                metrics.edit_score(*classes),
            ]
        )
    return np.array(values)
