"""Trials of JIGSAWS as step videos: features, junk from other trials, and the parts of each fold."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.data import jigsaws
from reproduction.data.jigsaws import Trial
from reproduction.data.steps import BACKGROUND, StepDataset, StepVideo
from reproduction.steps.splits import Splits

POOLED: Final = 5
"""Frames of kinematics in a frame of features, which lasts half a second."""
RUNS: Final = (4, 17)
"""Length of a run of junk in frames: from 4 up to, but not including, 17; 2 to 8 seconds."""


@dataclass(frozen=True, eq=False)
class Jigsaws:
    """All trials. held : the subject on whose trials settings are chosen; it is never tested."""

    trials: tuple[Trial, ...]
    held: str

    @classmethod
    def load(cls, folder: str, held: str) -> Jigsaws:
        """Read the trials of a folder."""
        found = cls(tuple(jigsaws.load(folder)), held)
        if held not in found.subjects or len(found.subjects) < 3:
            raise ValueError(
                f"settings are chosen on subject {held}, but the trials are of {', '.join(found.subjects)}; give "
                "trials of that subject and of two or more others"
            )
        return found

    @property
    def source(self) -> str:
        """A description, with what identifies the trials."""
        total = zlib.crc32(b"".join(t.name.encode() + t.kinematics.tobytes() for t in self.trials))
        return f"JIGSAWS, {len(self.trials)} trials of {len(self.subjects)} subjects ({total:08x})"

    @property
    def subjects(self) -> list[str]:
        """All subjects."""
        return sorted({trial.subject for trial in self.trials})

    @property
    def tested(self) -> list[str]:
        """The subjects that are tested, each in turn."""
        return [subject for subject in self.subjects if subject != self.held]

    @cached_property
    def gestures(self) -> list[str]:
        """All gestures; the id of a step is its place here."""
        return sorted({gesture for trial in self.trials for gesture, _, _ in trial.segments})

    @cached_property
    def videos(self) -> tuple[StepVideo, ...]:
        """The trials as recorded."""
        return tuple(as_video(trial, self.gestures) for trial in self.trials)

    def splits(self, subject: str, junk: float) -> Splits:
        """Train on all subjects but two, choose on `held`, test on `subject`. junk : its share of all frames.

        Training trials get junk from each other, and the other trials from each other, so that no frame of a tested
        trial is ever trained on. A subject may have one task only; then its junk is from trials of `held`.
        """
        outside = [k for k, t in enumerate(self.trials) if t.subject in (subject, self.held)]
        inside = [k for k in range(len(self.trials)) if k not in outside]
        mixed = {
            k: contaminated(self.videos[k], [self.videos[j] for j in part], junk)
            for part in (inside, outside)
            for k in part
        }
        parts = (
            inside,
            [k for k in outside if self.trials[k].subject == self.held],
            [k for k in outside if self.trials[k].subject == subject],
        )
        return Splits(*(dataset([mixed[k] for k in part]) for part in parts))

    def recorded(self, subject: str) -> StepDataset:
        """The trials of a subject as recorded."""
        return dataset([v for v, t in zip(self.videos, self.trials, strict=True) if t.subject == subject])


def dataset(videos: Sequence[StepVideo]) -> StepDataset:
    """Videos in memory as a data set."""
    return StepDataset([v.name for v in videos], [v.task for v in videos], lambda k: videos[k], cache=len(videos))


def as_video(trial: Trial, gestures: Sequence[str]) -> StepVideo:
    """Pool the kinematics: mean and deviation of `POOLED` frames, both standardized over the trial."""
    count = len(trial.kinematics) // POOLED
    if not count:
        raise ValueError(f"trial {trial.name} has {len(trial.kinematics)} frames; give {POOLED} or more")
    pooled = _standardized(trial.kinematics.astype(np.float64))[: count * POOLED].reshape(count, POOLED, -1)
    ids = [gestures.index(gesture) for gesture, _, _ in trial.segments]
    return StepVideo(
        trial.name,
        trial.task,
        _standardized(np.concatenate([pooled.mean(axis=1), pooled.std(axis=1)], axis=1)),
        np.array(ids),
        tuple(gesture for gesture, _, _ in trial.segments),
        np.eye(len(gestures))[ids],
        clip_seconds=POOLED / jigsaws.HERTZ,
        segments=tuple(
            (row, start / jigsaws.HERTZ, stop / jigsaws.HERTZ) for row, (_, start, stop) in enumerate(trial.segments)
        ),
    )


def _standardized(values: Array) -> Array:
    scaled: Array = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-6)
    return scaled


def contaminated(video: StepVideo, others: Sequence[StepVideo], share: float) -> StepVideo:
    """Insert runs of frames of other tasks between gestures, so that they are this share of all frames.

    Frames that show a gesture of this video's transcript are no junk, and are left out. Deterministic for a video.
    """
    if not 0 <= share < 1:
        raise ValueError(f"the share of junk is {share}; give a number from 0 up to, but not including, 1")
    needed = round(share / (1 - share) * len(video.frames))
    if not needed:
        return video
    pools = [o.frames[~np.isin(o.labels, video.step_ids)] for o in others if o.task != video.task]
    pools = [pool for pool in pools if len(pool) >= RUNS[1]]
    if not pools:
        raise ValueError(f"there is no junk for {video.name}: no trial of another task shows other gestures")
    rng = np.random.default_rng([zlib.crc32(video.name.encode()), round(1000 * share)])
    edges = np.flatnonzero(np.diff(video.rows, prepend=-2, append=-2))
    runs: dict[int, list[Array]] = {int(edge): [] for edge in edges}
    while needed:
        size = min(needed, int(rng.integers(*RUNS)))
        pool = pools[rng.integers(len(pools))]
        start = int(rng.integers(len(pool) - size + 1))
        runs[int(edges[rng.integers(len(edges))])].append(pool[start : start + size])
        needed -= size
    frames, rows = [], []
    for start, stop in pairwise([*edges.tolist(), len(video.frames)]):
        for run in runs[start]:
            frames.append(run)
            rows.append(np.full(len(run), BACKGROUND))
        frames.append(video.frames[start:stop])
        rows.append(video.rows[start:stop])
    return _of_rows(video, np.concatenate(frames), np.concatenate(rows))


def _of_rows(video: StepVideo, frames: Array, rows: Array) -> StepVideo:
    """The video with other frames, each with its row of the step list."""
    assert video.clip_seconds is not None
    edges = np.flatnonzero(np.diff(rows, prepend=-2, append=-2))
    spans = [(int(rows[a]), a * video.clip_seconds, b * video.clip_seconds) for a, b in pairwise(edges.tolist())]
    return replace(video, frames=frames, segments=tuple(span for span in spans if span[0] != BACKGROUND))
