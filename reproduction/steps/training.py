"""Multi-step localization (paper Section 4.2): train a model from the order of steps alone, and evaluate it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from dropdtw.costs import Softmax
from dropdtw.files.progress import Progress, working
from dropdtw.problem.inputs import Array
from reproduction.common.training import Fit, Plan, fit, seeded
from reproduction.data.steps import StepDataset, StepVideo, balanced_batches, collate
from reproduction.steps.inference import Cost, Fold, Mode, Scores, localize, scores
from reproduction.steps.model import Objective, StepModel, Tensors
from reproduction.steps.splits import Splits


def softmax_cost(model: StepModel) -> Cost:
    """The match costs of a model's embeddings (Eq. 4) without a drop logit, the same for every method."""

    def cost(video: StepVideo) -> Array:
        return Softmax(model.gamma_test, tuple(video.step_ids.tolist()))(*model.vectors(video))

    return cost


def evaluate(model: StepModel, videos: StepDataset, setting: float | None = None, mode: Mode = "step") -> Scores:
    """Score a model with Drop-DTW as inference. setting : of its drop costs, see `StepModel.costs`."""

    def found(video: StepVideo) -> tuple[StepVideo, Array, Array]:
        Z, X = model.vectors(video)
        return video, localize(*model.costs(video, setting), video.order), Z @ X.T

    return scores(map(found, videos), mode)


def choose_setting(model: StepModel, videos: StepDataset, mode: Mode = "step") -> float:
    """The setting of the drop costs with the best IoU on these videos."""
    tried = {setting: evaluate(model, videos, setting, mode).iou for setting in model.settings}
    return max(tried, key=lambda setting: tried[setting])


def make_model(train: StepDataset, objective: Objective, seed: int) -> StepModel:
    """Create a model that standardizes features by the training set; deterministic for a seed."""
    with seeded(seed):
        model = StepModel(train[0].frames.shape[1], train[0].steps.shape[1], objective)
    model.standardize(train)
    return model


def untrained(splits: Splits) -> Fold:
    """A fold of untrained, standardized features to compare methods on."""
    model = make_model(splits.train, Objective("none", cluster=False), 0)

    def similarity(video: StepVideo) -> Array:
        Z, X = model.vectors(video)
        return np.asarray(Z @ X.T)

    return Fold(softmax_cost(model), splits.val, splits.test, similarity)


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


def train_and_test(
    data: Splits,
    objective: Objective,
    plan: Plan,
    out: Path,
    *,
    resume: bool = False,
    tensorboard: bool = False,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Train one model with checkpoints in `out`, tune its drop costs on validation videos, and score the test videos.

    Returns the objective, the best epoch, the chosen setting and the scores in percent.
    """
    model, done = train_model(
        data.train, data.val, objective, plan, out=out, resume=resume, tensorboard=tensorboard, say=say
    )
    with working("testing", None if is_first() else False):
        setting = choose_setting(model, data.val)
        found = asdict(evaluate(model, data.test, setting))
    return {
        "objective": asdict(objective),
        "best_epoch": None if done is None else done.epoch,
        "setting": setting,
        "test": {name: 100 * value for name, value in found.items()},
    }


def is_first() -> bool:
    """Whether this is the first of several processes (torchrun sets their ranks)."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0"
