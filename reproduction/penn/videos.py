"""The training, validation and test videos of representation learning, and scores of embeddings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dropdtw import metrics
from dropdtw.problem.inputs import Array
from reproduction.data import penn as data
from reproduction.penn.model import Clips


@dataclass(frozen=True, eq=False)
class Splits:
    """Training, validation and test videos, and the groups of actions to report."""

    train: Clips
    validation: Clips
    test: Clips
    groups: Mapping[str, tuple[str, ...]]
    source: str


def penn_splits(folder: str | os.PathLike[str], images: int = 0, seed: int = 0, left_out: Sequence[str] = ()) -> Splits:
    """Penn Action with its official split; one fifth of the training videos of each action is held out for validation.

    images : side of square images to use instead of poses; 0 for poses.   left_out : actions that are not used.
    """
    videos = [video for video in data.load(folder) if video.action not in left_out]
    if images:

        def read(k: int, at: Array) -> Array:
            return data.frames(folder, videos[k], at, images)
    else:
        poses = [video.poses().reshape(len(video), -1) for video in videos]

        def read(k: int, at: Array) -> Array:
            return poses[k][at]

    clips = Clips(tuple(v.action for v in videos), tuple(len(v) for v in videos), read)
    train, validation = held_out(clips, [k for k, v in enumerate(videos) if v.train], seed)
    test = [k for k, v in enumerate(videos) if not v.train]
    here = set(clips.actions)
    groups = {
        name: tuple(action for action in actions if action in here)
        for name, actions in (("non-cyclic", data.NON_CYCLIC), ("cyclic", data.CYCLIC))
    }
    what = f"images of {images} × {images}" if images else "poses of 13 joints"
    counts = f"{len(train)} for training, {len(validation)} for validation, {len(test)} for testing"
    return Splits(
        clips.only(train),
        clips.only(validation),
        clips.only(test),
        {name: actions for name, actions in groups.items() if actions},
        f"Penn Action, {len(here)} actions, {what}, videos: {counts}",
    )


def held_out(clips: Clips, which: Sequence[int], seed: int, share: float = 0.2) -> tuple[list[int], list[int]]:
    """Split videos in two; the second part gets a share of each action, at least two videos."""
    rng = np.random.default_rng([seed, 77])
    kept: list[int] = []
    held: list[int] = []
    for action in sorted(set(clips.actions)):
        mine = rng.permutation([k for k in which if clips.actions[k] == action]).tolist()
        if len(mine) < 4:
            raise ValueError(f"{action} has {len(mine)} training videos; give at least 4 (2 for validation)")
        count = max(2, round(share * len(mine)))
        held += mine[:count]
        kept += mine[count:]
    return sorted(kept), sorted(held)


def pairs_of(clips: Clips, count: int, seed: int = 0) -> dict[str, list[tuple[int, int]]]:
    """For each action, `count` distinct ordered pairs of its videos, or all if there are fewer."""
    rng = np.random.default_rng([seed, 78])
    found = {}
    for action in sorted(set(clips.actions)):
        mine = clips.of(action)
        if len(mine) < 2:
            raise ValueError(f"{action} has {len(mine)} video to evaluate on; give at least 2 of each action")
        every = [(a, b) for a in mine for b in mine if a != b]
        found[action] = [every[k] for k in sorted(rng.permutation(len(every))[:count].tolist())]
    return found


@dataclass(frozen=True, eq=False)
class Scores:
    """Kendall's τ by action, and the mean phase error of nearest neighbors if phases are known."""

    tau: dict[str, float]
    error: dict[str, float]

    def over(self, actions: Sequence[str]) -> float:
        """The mean τ of actions."""
        return float(np.mean([self.tau[action] for action in actions]))


def evaluate(
    embed: Callable[[int], Array], clips: Clips, pairs: Mapping[str, Sequence[tuple[int, int]]], stride: int = 1
) -> Scores:
    """Score the embeddings (n, d) of every `stride`-th frame `clips.inside` each video, over these pairs of videos."""
    known: dict[int, Array] = {}
    for video in sorted({k for some in pairs.values() for pair in some for k in pair}):
        known[video] = embed(video)[::stride]
    tau, error = {}, {}
    for action, some in pairs.items():
        tau[action] = float(np.mean([metrics.kendall_tau(known[a], known[b]) for a, b in some]))
        if clips.phases is not None:
            error[action] = float(np.mean([_phase_error(clips, known, a, b, stride) for a, b in some]))
    return Scores(tau, error)


def _phase_error(clips: Clips, known: Mapping[int, Array], a: int, b: int, stride: int) -> float:
    from scipy.spatial.distance import cdist

    assert clips.phases is not None
    x, y = (clips.phases[k][clips.inside(k)[::stride]] for k in (a, b))
    return float(np.abs(x - y[cdist(known[a], known[b]).argmin(axis=1)]).mean())


def raw(clips: Clips, pairs: Mapping[str, Sequence[tuple[int, int]]], stride: int = 1) -> Scores:
    """Score the raw frames without an encoder; τ uses all frames, because no neighbors are needed."""
    whole = replace(clips, phases=None)
    found = evaluate(
        lambda k: clips.read(k, np.arange(clips.lengths[k])).reshape(clips.lengths[k], -1), whole, pairs, stride
    )
    inside = evaluate(lambda k: clips.read(k, clips.inside(k)).reshape(len(clips.inside(k)), -1), clips, pairs, stride)
    return Scores(found.tau, inside.error)
