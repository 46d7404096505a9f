"""Multi-step localization (paper Section 4.2): infer with any method, evaluate, and train.

Scores are the paper's three over all videos of a split: recall of the one-frame-per-step assignment (pooled over
steps), accuracy of frames with background, and IoU (both per video, then averaged); and F1 of the frames that show a
step, pooled over videos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

import dropdtw
from dropdtw import metrics
from dropdtw.costs import Softmax
from dropdtw.data.steps import BACKGROUND, StepDataset, StepVideo, balanced_batches, collate
from dropdtw.experiments.common.training import Fit, Plan, fit, seeded
from dropdtw.experiments.steps.model import Objective, StepModel, Tensors
from dropdtw.files.progress import Progress, Report
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
            hits += len(video.steps) * metrics.recall(S, starts, stops)
    if not accuracy:
        raise ValueError("there are no videos to score; this part of the data set is empty: give more videos")
    return Scores(hits / max(1, steps), float(np.mean(accuracy)), float(np.mean(iou)), 2 * right / max(1, named))


def _intervals(video: StepVideo) -> tuple[Array, Array]:
    """Start and stop of each step, in frames (see `StepVideo.frame_segments`); empty where it has no segment."""
    starts, stops = np.zeros((2, len(video.steps)))
    for row, start, stop in video.frame_segments:
        starts[row], stops[row] = start, stop
    return starts, stops


# --- Inference --------------------------------------------------------------------------------------------------


def localize(C: Array, drop_x: Array | float) -> Array:
    """The row of each frame by Drop-DTW: a frame has one step, a step one unbroken run. −1 for background.

    Where there are more steps than frames, steps share frames.
    """
    return dropdtw.solve(C, drop_x, many_to_one=_crowded(C), contiguous=True).labels


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


# --- A model's features -----------------------------------------------------------------------------------------


def softmax_cost(model: StepModel) -> Cost:
    """The match costs of a model's vectors (Eq. 4) without a drop logit: the same for every method."""

    def cost(video: StepVideo) -> Array:
        return Softmax(model.gamma_test, tuple(video.step_ids.tolist()))(*model.vectors(video))

    return cost


def evaluate(model: StepModel, videos: StepDataset, percentile: float | None = None) -> Scores:
    """Scores of a model with Drop-DTW as inference and its drop logit: the learned one, or this percentile."""

    def found(video: StepVideo) -> tuple[StepVideo, Array, Array]:
        Z, X = model.vectors(video)
        return video, video.ids_of(localize(*model.costs(video, percentile))), Z @ X.T

    return scores(map(found, videos))


def choose_percentile(model: StepModel, videos: StepDataset) -> float | None:
    """The percentile of the drop logit with the best IoU on these videos; None where it is all learned."""
    if model.drop is not None and model.drop.anchor is None:
        return None
    tried = {p: evaluate(model, videos, p).iou for p in PERCENTILES}
    return max(tried, key=lambda p: tried[p])


# --- Training ---------------------------------------------------------------------------------------------------


def make_model(train: StepDataset, objective: Objective, seed: int) -> StepModel:
    """A model for a data set, its features standardised by it; the same for the same seed."""
    with seeded(seed):
        model = StepModel(train[0].frames.shape[1], train[0].steps.shape[1], objective)
    model.standardise(train)
    return model


def train_model(
    train: StepDataset,
    validation: StepDataset,
    objective: Objective,
    plan: Plan,
    *,
    out: Path | None = None,
    resume: bool = False,
    tensorboard: bool = False,
    progress: Progress = None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[StepModel, Fit | None]:
    """Train on the order of steps alone; best epoch by validation recall. With nothing to minimise: the features."""
    model = make_model(train, objective, plan.seed)
    if not objective.trains:
        return model, None

    def validate(module: nn.Module) -> dict[str, float]:
        assert isinstance(module, StepModel)
        found = evaluate(module, validation)
        return {"recall": found.recall, "accuracy": found.accuracy, "iou": found.iou}

    done = fit(
        model,
        lambda indices: Tensors.of(collate(train.load(indices))),
        lambda epoch: balanced_batches(train.tasks, seed=plan.seed, epoch=epoch),
        validate,
        plan,
        score="recall",
        out=out,
        resume=resume,
        tensorboard=tensorboard,
        progress=progress,
        say=say,
    )
    return model, done
