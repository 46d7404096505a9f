"""UTKinect-Action3D for step localization: skeletons of people who perform ten actions in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.data import utkinect
from reproduction.data.steps import StepDataset, StepVideo, prototypes, replace_steps
from reproduction.steps.inference import Fold, cosine_cost, cosine_similarity
from reproduction.steps.splits import Source, Splits


def splits(source: Source, seed: int) -> Splits:
    """Hold out two subjects for testing and one for validation."""
    data, subjects = _load(source)
    outer = utkinect.leave_out(data, subjects[-2:])
    inner = utkinect.leave_out(outer["train"], subjects[-3:-2])
    return Splits(inner["train"], inner["test"], outer["test"])


def folds(source: Source) -> list[Fold]:
    """Leave one subject out: steps are the mean frames of the others, after whitening within steps."""
    data, subjects = _load(source)
    found = []
    for subject in subjects:
        parts = utkinect.leave_out(data, [subject])
        space = whitened(list(parts["train"]))
        train, test = (_mapped(parts[k], space) for k in ("train", "test"))
        found.append(Fold(cosine_cost, train, test, cosine_similarity))
    return found


def _load(source: Source) -> tuple[StepDataset, list[str]]:
    """Load all recordings and the list of subjects."""
    assert source.folder is not None
    data = utkinect.load(source.folder)
    return data, sorted({name.split("_")[0] for name in data.names})


def whitened(train: Sequence[StepVideo], shrink: float = 0.1) -> Callable[[StepVideo], StepVideo]:
    """A function that whitens a video with the within-step covariance of the training videos.

    It replaces the steps by the whitened mean training frames of each. shrink : weight of the mean variance.
    """
    frames = np.concatenate([video.frames for video in train]).astype(np.float64)
    labels = np.concatenate([video.labels for video in train])
    mean, std = frames.mean(axis=0), frames.std(axis=0) + 1e-3
    within = (frames - mean) / std
    for step in np.unique(labels):
        within[labels == step] -= within[labels == step].mean(axis=0)
    covariance = np.cov(within.T)
    size = np.trace(covariance) / len(covariance)
    values, axes = np.linalg.eigh((1 - shrink) * covariance + shrink * size * np.eye(len(covariance)))
    whiten: Array = axes / np.sqrt(values) @ axes.T

    def moved(video: StepVideo) -> StepVideo:
        return replace(video, frames=(video.frames - mean) / std @ whiten)

    steps = prototypes([moved(video) for video in train])
    return lambda video: replace_steps(moved(video), steps)


def _mapped(data: StepDataset, function: Callable[[StepVideo], StepVideo]) -> StepDataset:
    return StepDataset(data.names, data.tasks, lambda k: function(data[k]), cache=len(data))
