"""Multi-step localization (paper Section 4.2): train a model from the order of steps alone, and evaluate it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from dropdtw.costs import Softmax
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from reproduction.common.training import Fit, Plan, fit, seeded
from reproduction.data.steps import StepDataset, StepVideo, balanced_batches, collate
from reproduction.steps.inference import PERCENTILES, Cost, Fold, Scores, localize, scores
from reproduction.steps.model import Objective, StepModel, Tensors
from reproduction.steps.splits import Splits


def softmax_cost(model: StepModel) -> Cost:
    """The match costs of a model's embeddings (Eq. 4) without a drop logit, the same for every method."""

    def cost(video: StepVideo) -> Array:
        return Softmax(model.gamma_test, tuple(video.step_ids.tolist()))(*model.vectors(video))

    return cost


def evaluate(model: StepModel, videos: StepDataset, percentile: float | None = None) -> Scores:
    """Score a model with Drop-DTW as inference; the drop logit is the learned one or this percentile."""

    def found(video: StepVideo) -> tuple[StepVideo, Array, Array]:
        Z, X = model.vectors(video)
        return video, video.ids_of(localize(*model.costs(video, percentile), video.order)), Z @ X.T

    return scores(map(found, videos))


def choose_percentile(model: StepModel, videos: StepDataset) -> float | None:
    """The percentile of the drop logit with the best IoU on these videos; None if the logit is fully learned."""
    if model.drop is not None and model.drop.anchor is None:
        return None
    tried = {p: evaluate(model, videos, p).iou for p in PERCENTILES}
    return max(tried, key=lambda p: tried[p])


def make_model(train: StepDataset, objective: Objective, seed: int) -> StepModel:
    """Create a model that standardizes features by the training set; deterministic for a seed."""
    with seeded(seed):
        model = StepModel(train[0].frames.shape[1], train[0].steps.shape[1], objective)
    model.standardise(train)
    return model


def untrained(splits: Splits) -> Fold:
    """A fold of untrained, standardized features to compare methods on."""
    model = make_model(splits.train, Objective("none", cluster=False), 0)
    return Fold(softmax_cost(model), splits.val, splits.test)


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
    """Train from the order of steps alone; keep the epoch with the best validation recall. No loss: no training."""
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
