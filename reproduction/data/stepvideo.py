"""One video with the ordered steps that happen in it: the schema that all step-localization data sets share.

Paper Section 4.2: X are the frames (clips) of a video, Z are its steps in the order in which they happen, and the
ground truth is the start and end of each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dropdtw.orders import Order, as_order
from dropdtw.problem.inputs import Array

BACKGROUND = -1


@dataclass(frozen=True, eq=False)
class StepVideo:
    """A video of N frames and its K ordered steps.

    frames : (N, d) float32.   steps : (K, d') float32, the embedding of each step, in order.
    step_ids : (K,) integers >= 0; a step that happens twice is listed twice, with the same id.
    step_texts : K texts.
    clip_seconds : the duration of each frame, if all are equal: frame j covers [j, j + 1) · clip_seconds.
    frame_times : (N, 2) seconds [start, stop) of each frame, if they are not. Give one of the two.
    segments : the ground truth, (row of the step list, start, stop) in seconds, or None if there is none. A row may
        have no segment, or several; segments may overlap and may extend beyond the last frame.
    order : which steps may follow which, from `dropdtw.orders`; None: the steps happen in the order of the list.

    **A frame belongs to a segment if its center does**: start <= center < stop. If segments overlap, the frame belongs
    to the one that starts last (ties: the one listed last). `metrics.recall` follows the same rule, `touched` another.

    Empty videos, empty step lists and more steps than frames are allowed; :func:`check` reports them.

    >>> video = StepVideo("tea", "Make tea", np.zeros((4, 2)), [7, 3], ["boil", "pour"], np.zeros((2, 5)),
    ...                   clip_seconds=2.0, segments=[(0, 0.0, 3.5), (1, 5.0, 8.0)])
    >>> video.labels      # centers are 1, 3, 5, 7
    array([7, 7, 3, 3])
    >>> video.frame_segments
    ((0, 0, 2), (1, 2, 4))
    """

    name: str
    task: str
    frames: Array
    step_ids: Array
    step_texts: tuple[str, ...]
    steps: Array
    clip_seconds: float | None = None
    frame_times: Array | None = None
    segments: tuple[tuple[int, float, float], ...] | None = None
    order: Order | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__  # the usual way to normalize the fields of a frozen dataclass
        put(self, "frames", _rows(self.frames, f"frames of {self.name}"))
        put(self, "steps", _rows(self.steps, f"steps of {self.name}"))
        put(self, "step_ids", _ids(self.step_ids, self.name))
        put(self, "step_texts", tuple(self.step_texts))
        if not len(self.steps) == len(self.step_ids) == len(self.step_texts):
            raise ValueError(
                f"{self.name} has {len(self.steps)} step embeddings, {len(self.step_ids)} ids and "
                f"{len(self.step_texts)} texts; give one of each per step"
            )
        if (self.clip_seconds is None) == (self.frame_times is None):
            raise ValueError(f"{self.name} needs either clip_seconds or frame_times; give one of them")
        if self.clip_seconds is not None and not 0 < self.clip_seconds < np.inf:
            raise ValueError(f"clip_seconds of {self.name} is {self.clip_seconds}; give a finite number > 0")
        if self.frame_times is not None:
            put(self, "frame_times", _times(self.frame_times, len(self.frames), self.name))
        if self.segments is not None:
            put(self, "segments", tuple(self._segment(*segment) for segment in self.segments))
        if self.order is not None:
            self.order.check_steps(len(self.steps))

    def _segment(self, row: int, start: float, stop: float) -> tuple[int, float, float]:
        if not 0 <= row < len(self.step_ids):
            raise ValueError(
                f"a segment of {self.name} has row {row} of a step list with {len(self.step_ids)} rows; "
                "count rows from 0"
            )
        if not -np.inf < start <= stop < np.inf:
            raise ValueError(f"a segment of {self.name} lasts from {start} to {stop} s; give finite start <= stop")
        return int(row), float(start), float(stop)

    @cached_property
    def times(self) -> Array:
        """(N, 2) seconds [start, stop) of each frame."""
        if self.frame_times is not None:
            return self.frame_times
        assert self.clip_seconds is not None
        edges = np.arange(len(self.frames) + 1) * self.clip_seconds
        return np.stack([edges[:-1], edges[1:]], axis=1)

    @cached_property
    def frame_segments(self) -> tuple[tuple[int, int, int], ...]:
        """The segments in frames: (row of the step list, start, stop), half-open; empty if no center is inside."""
        centers = self.times.mean(axis=1)
        return tuple(
            (row, int(np.searchsorted(centers, start)), int(np.searchsorted(centers, stop)))
            for row, start, stop in self._truth()
        )

    @cached_property
    def rows(self) -> Array:
        """(N,) the row of the step list that each frame shows, -1 for background; `Alignment.labels` predicts it."""
        return self._painted(self.frame_segments)

    @cached_property
    def touched(self) -> Array:
        """(N,) like `rows`, but a segment has every frame that it overlaps, as in the authors' experiments.

        >>> StepVideo("tea", "Make tea", np.zeros((4, 2)), [7, 3], ["boil", "pour"], np.zeros((2, 5)),
        ...           clip_seconds=2.0, segments=[(0, 0.0, 4.5), (1, 5.5, 7.0)]).touched
        array([0, 0, 1, 1])
        """
        starts, stops = self.times.T
        return self._painted(
            [
                (row, int(np.searchsorted(stops, start, "right")), int(np.searchsorted(starts, stop)))
                for row, start, stop in self._truth()
            ]
        )

    def _painted(self, spans: Sequence[tuple[int, int, int]]) -> Array:
        """(N,) rows from the segments in frames. The segment that starts last wins; ties: the one listed last."""
        rows = np.full(len(self.frames), BACKGROUND)
        for number in sorted(range(len(spans)), key=lambda s: self._truth()[s][1]):  # stable: ties as listed
            row, start, stop = spans[number]
            rows[start:stop] = row
        return rows

    @cached_property
    def labels(self) -> Array:
        """(N,) the id of the step that each frame shows, -1 for background."""
        return self.ids_of(self.rows)

    def ids_of(self, rows: npt.ArrayLike) -> Array:
        """Convert rows of the step list (-1: background) to step ids, for example to score `Alignment.labels`."""
        return np.append(self.step_ids, BACKGROUND)[np.asarray(rows, np.int64)]

    def _truth(self) -> tuple[tuple[int, float, float], ...]:
        if self.segments is None:
            raise ValueError(f"{self.name} has no ground truth: its segments are None; give some")
        return self.segments


def check(video: StepVideo) -> list[str]:
    """The oddities of a video as messages; empty if there are none. Unlike errors, oddities are allowed."""
    N, K = len(video.frames), len(video.steps)
    said = [f"no {what}" for what, count in (("frames", N), ("steps", K)) if count == 0]
    if K > N:
        said.append(f"more steps ({K}) than frames ({N}): not every step can have a frame of its own")
    if video.segments is None:
        return said
    end = float(video.times[-1, 1]) if N else 0.0
    for (row, start, stop), (_, first, last) in zip(video.segments, video.frame_segments, strict=True):
        where = f"the segment of step {row} ({start:g} to {stop:g} s)"
        if start < 0 or stop > end:
            said.append(f"{where} extends beyond the video, 0 to {end:g} s")
        if first == last:
            said.append(f"{where} contains no frame's center")
    missing = sorted(set(range(K)) - {row for row, _, _ in video.segments})
    if missing:
        said.append(f"no segment for step {', '.join(map(str, missing))}")
    in_time = sorted(video.segments, key=lambda s: s[1])
    overlaps = sum(a[2] > b[1] for a, b in pairwise(in_time))
    if overlaps:
        said.append(f"{overlaps} segments overlap the next one")
    if video.order is None and any(a[0] > b[0] for a, b in pairwise(in_time)):
        said.append("steps happen in a different order than listed")
    return said


@dataclass(frozen=True, eq=False)
class Batch:
    """Videos as one batch, padded at the end: frames and steps with zeros, step ids with -1.

    frames : (B, N, d) float32.   steps : (B, K, d') float32.   step_ids : (B, K).
    x_lengths, z_lengths : (B,) how many frames and steps are real.
    orders : the order of the steps of each video; None if all happen in the order of the list.
    """

    names: tuple[str, ...]
    tasks: tuple[str, ...]
    frames: Array
    steps: Array
    step_ids: Array
    x_lengths: Array
    z_lengths: Array
    orders: tuple[Order, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)


def collate(videos: Sequence[StepVideo]) -> Batch:
    """Videos of any lengths as one padded :class:`Batch`."""
    if not videos:
        raise ValueError("there are no videos to collate; give at least one")
    first = videos[0]
    for video in videos:
        if 0 in (len(video.frames), len(video.steps)):
            raise ValueError(
                f"{video.name} has {len(video.frames)} frames and {len(video.steps)} steps; leave empty videos out"
            )
        for what, mine, theirs in (
            ("frame", video.frames.shape[1], first.frames.shape[1]),
            ("step", video.steps.shape[1], first.steps.shape[1]),
        ):
            if mine != theirs:
                raise ValueError(
                    f"{what} embeddings have {theirs} features in {first.name} and {mine} in {video.name}; "
                    "use embeddings of one kind"
                )
    return Batch(
        tuple(video.name for video in videos),
        tuple(video.task for video in videos),
        _padded([video.frames for video in videos], 0),
        _padded([video.steps for video in videos], 0),
        _padded([video.step_ids for video in videos], BACKGROUND),
        np.array([len(video.frames) for video in videos]),
        np.array([len(video.steps) for video in videos]),
        _orders(videos),
    )


def prototypes(videos: Sequence[StepVideo]) -> dict[int, Array]:
    """The mean frame of each step, by id: step embeddings if texts and frames do not share an embedding space.

    Uses the ground truth of `videos`, so give only training videos.
    """
    frames = np.concatenate([video.frames for video in videos])
    labels = np.concatenate([video.labels for video in videos])
    return {int(step): frames[labels == step].mean(axis=0) for step in np.unique(labels) if step != BACKGROUND}


def replace_steps(video: StepVideo, vectors: Mapping[int, Array]) -> StepVideo:
    """The video with other step embeddings, by step id, such as prototypes or those of another text model."""
    missing = [step for step in video.step_ids.tolist() if step not in vectors]
    if missing:
        raise ValueError(f"there is no embedding for step {missing[0]} of {video.name}; give one for each of its steps")
    rows = [vectors[step] for step in video.step_ids.tolist()]
    return replace(video, steps=np.stack(rows) if rows else video.steps)


def _orders(videos: Sequence[StepVideo]) -> tuple[Order, ...] | None:
    if all(video.order is None for video in videos):
        return None
    return tuple(video.order or as_order(range(len(video.steps))) for video in videos)


def _padded(parts: list[Array], fill: int) -> Array:
    longest = max(len(part) for part in parts)
    whole = np.full((len(parts), longest, *parts[0].shape[1:]), fill, parts[0].dtype)
    for place, part in zip(whole, parts, strict=True):
        place[: len(part)] = part
    return whole


def _rows(values: npt.ArrayLike, name: str) -> Array:
    array = np.asarray(values, np.float32)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} have shape {array.shape}; give (length, d), d at least 1")
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise ValueError(f"{name} hold NaN or infinity in row {bad}; fill it in or leave it out")
    return array


def _ids(values: npt.ArrayLike, name: str) -> Array:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < 0)):
        raise ValueError(f"step_ids of {name} are {array.tolist()}; give integers >= 0, one per step")
    return array.astype(np.int64)


def _times(values: npt.ArrayLike, frames: int, name: str) -> Array:
    array = np.asarray(values, np.float64)
    if array.shape != (frames, 2) or not np.isfinite(array).all():
        raise ValueError(
            f"frame_times of {name} has shape {array.shape}; give the start and stop of each frame in seconds, "
            f"({frames}, 2), all finite"
        )
    if (array[:, 0] > array[:, 1]).any() or (np.diff(array.mean(axis=1)) < 0).any():
        raise ValueError(f"frame_times of {name} go backward; sort the frames, each with start <= stop")
    return array
