"""Frame scores of real video, to compare methods on: each split in turn for testing, the others for choosing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dropdtw.costs import of_scores
from dropdtw.problem.inputs import Array
from reproduction.data import scores
from reproduction.data.steps import StepDataset, StepVideo
from reproduction.steps.inference import Fold
from reproduction.steps.splits import Source


def folds(source: Source) -> dict[str, list[Fold]]:
    """The folds of every data set in the folder, by its name."""
    assert source.folder is not None
    found = {}
    for name, splits in scores.load(source.folder).items():
        if len(splits) < 2:
            raise ValueError(f"{name} has one split, but settings are chosen on other splits; give two or more")
        found[name] = [
            Fold(match, joined([*splits[:k], *splits[k + 1 :]]), split, probability, background)
            for k, split in enumerate(splits)
        ]
    return found


def joined(splits: Sequence[StepDataset]) -> StepDataset:
    """The videos of several splits."""
    videos = [video for split in splits for video in split]
    return StepDataset([v.name for v in videos], [v.task for v in videos], lambda k: videos[k], cache=0)


def match(video: StepVideo) -> Array:
    """−log p of each step's class."""
    return of_scores(video.frames, video.step_ids.tolist())


def probability(video: StepVideo) -> Array:
    """The probability of each step's class."""
    return np.exp(-match(video))


def background(video: StepVideo) -> Array:
    """The scores' column of background, as the drop costs −log p."""
    return np.asarray(of_scores(video.frames, [scores.BACKGROUND_CLASS])[0])
