"""Annotations of instructional videos as plain records, and the data set built from records and features."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.data.features import Embed, Features, StepEmbeddings
from reproduction.data.steps import BrokenVideoError, StepDataset, StepVideo

CLIP_SECONDS = 3.2
"""The length of the paper's clips: 32 frames at 10 frames per second."""


@dataclass(frozen=True)
class Record:
    """The annotations of one video.

    name : unique in the data set.   video : the name of its feature file.   subset : "train", "val", "test" or "".
    step_ids, step_texts : the steps, in order.   duration : seconds, or None if not published.
    segments : (row of the step list, start, stop) in seconds, or None for a video without ground truth.
    """

    name: str
    video: str
    task: str
    subset: str
    step_ids: tuple[int, ...]
    step_texts: tuple[str, ...]
    segments: tuple[tuple[int, float, float], ...] | None
    duration: float | None = None


def build(
    records: Iterable[Record],
    features: Features | str | os.PathLike[str],
    steps: StepEmbeddings | Embed,
    *,
    subset: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
    cache: int = 64,
) -> StepDataset:
    """A data set of records and features; videos are read lazily.

    features : of all videos, one frame per `clip_seconds`.   steps : step embeddings by id, or a function of texts.
    subset : the published subset to use, None for all.   cache : how many videos to keep in memory.
    """
    known = tuple(records if subset is None else in_subset(records, subset))
    frames = features if isinstance(features, Features) else Features(features)
    if isinstance(steps, StepEmbeddings):
        unknown = sorted({step for record in known for step in record.step_ids} - set(steps))
        if unknown:
            raise ValueError(
                f"{steps.source} has {len(steps)} steps, but lacks {len(unknown)} that the videos have, such as "
                f"{unknown[0]}; use the step embeddings of this data set"
            )

    def read(index: int) -> StepVideo:
        record = known[index]
        try:
            return StepVideo(
                record.name,
                record.task,
                frames[record.video],
                np.array(record.step_ids, np.int64),
                record.step_texts,
                steps.of(record.step_ids) if isinstance(steps, StepEmbeddings) else steps(list(record.step_texts)),
                clip_seconds=clip_seconds,
                segments=record.segments,
            )
        except BrokenVideoError as error:
            error.add_note(f"in video {record.name} of task {record.task}")
            raise

    return StepDataset((r.name for r in known), (r.task for r in known), read, cache=cache)


def in_subset(records: Iterable[Record], subset: str) -> list[Record]:
    """The records of one published subset."""
    known = list(records)
    chosen = [record for record in known if record.subset == subset]
    if not chosen:
        there = ", ".join(sorted({repr(record.subset) for record in known}))
        raise ValueError(f"no video is in subset {subset!r}; the subsets are {there or 'empty'}")
    return chosen


@dataclass(frozen=True)
class Statistics:
    """Counts over records. background : the mean fraction of a video outside all steps; None without durations."""

    videos: int
    tasks: int
    segments: int
    different_steps: int
    steps_per_video: tuple[int, float, int]
    background: float | None

    def __str__(self) -> str:
        least, mean, most = self.steps_per_video
        share = "unknown" if self.background is None else f"{self.background:.1%}"
        return (
            f"{self.videos:,} videos of {self.tasks} tasks, {self.segments:,} segments of {self.different_steps:,} "
            f"steps; steps per video {least} to {most}, mean {mean:.2f}; background {share}"
        )


def statistics(records: Iterable[Record]) -> Statistics:
    """Counts over records; the minimum, mean and maximum of steps per video; and the fraction of background."""
    known = list(records)
    if not known:
        raise ValueError("there are no records to count; give at least one")
    counts = [len(r.step_ids) for r in known]
    shares = [1 - _covered(r.segments) / r.duration for r in known if r.segments is not None and r.duration]
    return Statistics(
        len(known),
        len({r.task for r in known}),
        sum(len(r.segments or ()) for r in known),
        len({step for r in known for step in r.step_ids}),
        (min(counts), float(np.mean(counts)), max(counts)),
        float(np.mean(shares)) if shares else None,
    )


def _covered(segments: Sequence[tuple[int, float, float]]) -> float:
    """Seconds inside any segment; overlaps count once."""
    total, reached = 0.0, -np.inf
    for start, stop in sorted((start, stop) for _, start, stop in segments):
        total += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
    return total


def in_time(segments: Iterable[tuple[int, str, float, float]]) -> dict[str, Any]:
    """(id, text, start, stop) as the fields of a Record: the steps in order of time, each with one segment."""
    ordered = sorted(segments, key=lambda s: (s[2], s[3]))
    return {
        "step_ids": tuple(step for step, *_ in ordered),
        "step_texts": tuple(text for _, text, *_ in ordered),
        "segments": tuple((row, start, stop) for row, (_, _, start, stop) in enumerate(ordered)),
    }


def find(place: str | os.PathLike[str], names: Sequence[str], what: str) -> list[Path]:
    """The files of a data set: `place` itself if it is a file, else the first of `names` in that folder, or with .gz.

    A name may be a glob pattern that matches several files.
    """
    where = Path(place)
    if where.is_file():
        return [where]
    for name in names:
        found = sorted({*where.glob(name), *where.glob(f"{name}.gz")})
        if found:
            return found
    raise FileNotFoundError(f"{where} has no {what}: looked for {', '.join(names)}, plain or with .gz; give its folder")


def read_json(path: Path) -> Any:
    """The content of a JSON file, plain or with .gz."""
    try:
        content = path.read_bytes()
        return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ValueError(f"{path} is not JSON ({error}); download it again") from None


def wrong(path: Path, where: str, error: Exception) -> ValueError:
    """The error for a readable file that is not in the published layout."""
    said = f"no {error}" if isinstance(error, KeyError) else str(error)
    return ValueError(f"{path} is not in the published layout: {where}: {said}; download it again, or fix the path")
