"""Data sets for step localization by name, each as train, val and test: `dropdtw reproduce steps --data NAME`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.costs import cosine
from dropdtw.data import coin, crosstask, mnist, transcripts, utkinect, youcook2
from dropdtw.data.steps import StepDataset, StepVideo, prototypes, replace_steps
from dropdtw.experiments.common import pools as videos
from dropdtw.experiments.common.cache import Cache
from dropdtw.experiments.common.encoder import Encoder
from dropdtw.experiments.steps import stand_in as tmnist_steps
from dropdtw.experiments.steps.experiment import Fold
from dropdtw.experiments.steps.stand_in import Procedures
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array

PUBLISHED: Final = {"coin": coin.load, "crosstask": crosstask.load, "youcook2": youcook2.load}
NAMES: Final = ("tmnist-steps", "utkinect", *PUBLISHED)
"""Data sets to train on; transcripts are for comparing methods only."""

SETS: Final = {"train": 3, "val": 1, "test": 2}
"""How many generated pairs of TMNIST sets the clips of each split come from."""


@dataclass(frozen=True)
class Splits:
    """Three disjoint parts of a data set."""

    train: StepDataset
    val: StepDataset
    test: StepDataset


def tmnist_splits(
    encoder: Encoder, data: mnist.Mnist, how: Procedures, held_out: int, cache: Cache, progress: Progress = None
) -> Splits:
    """The stand-in: videos of other digits in each split, all out of the digits the encoder has not seen.

    how.videos : of each task for training;   held_out : for validation, and as many for testing.
    """
    # Every fourth digit is for validation, every fourth for testing: no image is in two splits.
    share = {"train": (0, 1), "val": (2,), "test": (3,)}
    pools: dict[str, list[videos.Videos]] = {}
    for number, (name, sets) in enumerate(SETS.items()):
        mine = np.isin(np.arange(len(data.test_labels)) // 10 % 4, share[name])
        part = replace(data, test_images=data.test_images[mine], test_labels=data.test_labels[mine])
        seeds = [10_000 + 100 * number + k for k in range(sets)]
        pools[name] = videos.encode(encoder, part, seeds, _classes(how), cache, progress)
    steps = tmnist_steps.step_embeddings(pools["train"], how)
    made = []
    for number, (name, pool) in enumerate(pools.items()):
        count = how.videos if name == "train" else held_out
        made.append(tmnist_steps.data_set(pool, steps, replace(how, videos=count), number))
    return Splits(*made)


def _classes(how: Procedures) -> list[videos.Class]:
    from dropdtw.data.tmnist import CLASSES

    return [CLASSES[k] for k in np.linspace(0, len(CLASSES) - 1, how.classes).round().astype(int)]


def published_splits(
    name: str, folder: Path, features: Path, steps: Path, *, seed: int = 0, skip_broken: bool = False,
    say: Callable[[str], None] = print,
) -> Splits:  # fmt: skip
    """A data set of the paper: annotations, a folder of features and a file of step embeddings.

    Its own split is used; a tenth of the training videos is for validation.
    """
    parts = {"coin": ("train", "test"), "crosstask": ("train", "val"), "youcook2": ("train", "val")}[name]
    train, test = (PUBLISHED[name](folder, features, steps, subset=part) for part in parts)
    if skip_broken:
        train, test = (part.usable(report=say) for part in (train, test))
    inner = train.split({"train": 0.9, "val": 0.1}, seed=seed)
    return Splits(inner["train"], inner["val"], test)


def utkinect_splits(folder: Path) -> Splits:
    """UTKinect with two subjects to test on and one for validation."""
    data = utkinect.load(folder)
    subjects = sorted({name.split("_")[0] for name in data.names})
    outer = utkinect.leave_out(data, subjects[-2:])
    inner = utkinect.leave_out(outer["train"], subjects[-3:-2])
    return Splits(inner["train"], inner["test"], outer["test"])


def utkinect_folds(folder: Path) -> list[Fold]:
    """Leave one subject out: steps are mean frames of the others, in a space where frames of a step vary evenly."""
    data = utkinect.load(folder)
    folds = []
    for subject in sorted({name.split("_")[0] for name in data.names}):
        parts = utkinect.leave_out(data, [subject])
        space = whitened(list(parts["train"]))
        folds.append(
            Fold(
                lambda video: cosine(video.steps, video.frames), *(_mapped(parts[k], space) for k in ("train", "test"))
            )
        )
    return folds


def whitened(train: Sequence[StepVideo], shrink: float = 0.1) -> Callable[[StepVideo], StepVideo]:
    """Maps a video into a space in which frames of one step differ equally in all directions, by training videos.

    Its steps become the mean training frames of each step there. shrink : how much of the covariance is its mean.
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


def transcript_folds(folder: Path, seed: int = 0) -> list[Fold]:
    """Key steps in the sentences of cooking videos: a third of the videos to choose on, the rest to test."""
    parts = transcripts.load(folder).split({"val": 1 / 3, "test": 2 / 3}, seed=seed)
    return [Fold(lambda video: cosine(video.steps, video.frames), parts["val"], parts["test"])]


def _mapped(data: StepDataset, function: Callable[[StepVideo], StepVideo]) -> StepDataset:
    return StepDataset(data.names, data.tasks, lambda k: function(data[k]), cache=len(data))
