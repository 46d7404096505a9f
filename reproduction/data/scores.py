"""Frame scores of real video by classifiers, in the layout of TemporalConvolutionalNetworks (Lea et al. 2017).

A data set is a folder with one .mat file per split. Its cells `S` and `Y` have an entry per test video of that split:
scores (frames × classes), either of a linear SVM or probabilities, and the true classes. A folder may hold several data
sets in subfolders, as `50Salads/eval/eval_video_SVM/1.mat`. Class 0 is taken as background; the files do not say so.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from reproduction.data.records import wrong
from reproduction.data.steps import StepDataset, StepVideo

BACKGROUND_CLASS: Final = 0


def load(place: str | os.PathLike[str]) -> dict[str, list[StepDataset]]:
    """The data sets under a folder by name, such as "50Salads/eval"; each is a list of splits.

    The frames of a video are its scores as logits (N, classes), and the id of a step is its class.
    """
    root = Path(place)
    folders = sorted({path.parent for path in root.rglob("*.mat")})
    if not folders:
        raise FileNotFoundError(f"{root} has no .mat files of frame scores; give the folder of these data sets")
    return {_name(root, folder): [_split(path) for path in sorted(folder.glob("*.mat"))] for folder in folders}


def _name(root: Path, folder: Path) -> str:
    """The path without its last part, which names the classifier."""
    return "/".join(folder.relative_to(root).parts[:-1]) or folder.resolve().parent.name


def _split(path: Path) -> StepDataset:
    from scipy.io import loadmat

    try:
        content = loadmat(path)
        scores, truth = (content[key].ravel() for key in ("S", "Y"))
        pairs = list(zip(scores, truth, strict=True))
    except (KeyError, ValueError, NotImplementedError) as error:
        raise wrong(path, "the cells S and Y", error) from None
    videos = [_video(path, number, *pair) for number, pair in enumerate(pairs, 1)]
    return StepDataset([v.name for v in videos], [v.task for v in videos], lambda k: videos[k], cache=0)


def _video(path: Path, number: int, scores: Any, truth: Any) -> StepVideo:
    S, y = np.asarray(scores), np.asarray(truth).ravel()
    name = f"{path.stem}, video {number}"
    if S.ndim != 2 or len(S) != len(y) or not np.isfinite(S).all() or not np.isin(y, np.arange(S.shape[1])).all():
        raise ValueError(
            f"{path}: {name} has scores of shape {S.shape} and {len(y)} true classes; give finite scores (frames × "
            "classes), and for each frame a class from 0 to the number of classes − 1"
        )
    if S.min() >= 0 and np.allclose(S.sum(axis=1), 1, atol=1e-3):  # probabilities
        S = np.log(np.maximum(S, 1e-12))
    edges = np.flatnonzero(np.r_[True, y[1:] != y[:-1], True])
    runs = [(int(y[a]), a, b) for a, b in pairwise(edges) if y[a] != BACKGROUND_CLASS]
    steps = [step for step, _, _ in runs]
    return StepVideo(
        name,
        path.parent.name,
        S,
        np.array(steps, np.int64),
        tuple(f"class {step}" for step in steps),
        np.eye(S.shape[1])[steps],
        clip_seconds=1.0,
        segments=tuple((row, float(a), float(b)) for row, (_, a, b) in enumerate(runs)),
    )
