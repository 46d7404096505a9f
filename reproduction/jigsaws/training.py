"""Train a model of gestures from their order, and find the drops of inference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from dropdtw.problem.inputs import Array
from reproduction.common.experiment import Settings as Sizes
from reproduction.common.training import Metrics, Plan, fit, seeded
from reproduction.data.steps import StepDataset, StepVideo
from reproduction.jigsaws.model import FlatStart, GestureModel, Labeled, Objective
from reproduction.steps import inference
from reproduction.steps.inference import Found, localize


def trained(
    train: StepDataset, objective: Objective, settings: Sizes, flat: int, seed: int, epochs: int, device: str = "cpu"
) -> GestureModel:
    """Train a model: first the flat start, then the objective. The last epoch counts, since labels are not known.

    flat, epochs : the epochs of the flat start, and of the objective.
    """
    with seeded(seed):
        made = GestureModel(train[0].frames.shape[1], train[0].steps.shape[1], objective)

    def batches(epoch: int) -> list[list[int]]:
        order = np.random.default_rng([seed, epoch]).permutation(len(train))
        return [part.tolist() for part in np.array_split(order, max(1, round(len(order) / settings.batch)))]

    def nothing(module: nn.Module) -> Metrics:
        return {}

    plan = Plan(epochs=flat, lr=settings.lr, seed=seed, accelerator=device)
    with torch.random.fork_rng():
        start = FlatStart(made)
        fit(start, lambda k: Labeled.of(train.load(k), flat=True), batches, nothing, plan, score=None, progress=False)
        if objective.loss != "flat":
            plan = replace(plan, epochs=epochs)
            fit(made, lambda k: Labeled.of(train.load(k)), batches, nothing, plan, score=None, progress=False)
    made.to("cpu").count(train)
    return made


def found(model: GestureModel, videos: StepDataset, setting: float) -> Found:
    """The row of each frame of the videos. setting : one of the model's `settings`."""

    def rows(video: StepVideo) -> Array:
        C, drop = model.costs(video)
        drop = np.full(C.shape[1], np.percentile(C, setting)) if drop is None else drop + setting
        low = np.minimum(C.min(axis=0), drop)  # a frame is matched or dropped once: only its differences matter
        return localize(C - low, drop - low)

    return [(video, rows(video), None) for video in videos]


def choose_setting(model: GestureModel, videos: StepDataset) -> tuple[float, float]:
    """The setting of the drops of inference with the best IoU on these videos, and that IoU."""
    tried = {setting: inference.scores(found(model, videos, setting)).iou for setting in model.settings}
    best = max(tried, key=lambda setting: tried[setting])
    return best, tried[best]
