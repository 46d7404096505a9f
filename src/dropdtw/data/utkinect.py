"""UTKinect-Action3D (Xia et al. 2012): people who walk, sit down, stand up and so on, ten steps in one recording.

Read from a folder with the published `actionLabel.txt` and `joints/joints_s01_e01.txt` and so on, or from one
`utkinect.npz` with the same content: `recording` (R,), `length` (R,) frames of each, and over all recordings one after
the other `frame` (n,) and `joints` (n, 20, 3); `step_names` (S,), `segments` (R, S, 2) in frame numbers, -1 for none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.data.features import Embed, default_embed
from dropdtw.data.records import wrong
from dropdtw.data.steps import StepDataset, StepVideo
from dropdtw.files import atomic
from dropdtw.problem.inputs import Array

STEPS: Final = (
    "walk",
    "sitDown",
    "standUp",
    "pickUp",
    "carry",
    "throw",
    "push",
    "pull",
    "waveHands",
    "clapHands",
)
"""The steps by id, as the files call them."""

JOINTS: Final = 20
HIP, SHOULDERS = 0, 2
FPS: Final = 30.0
"""Frame numbers per second. Frames without a skeleton were not kept, so the numbers have gaps."""

CORRECTIONS: Final = {("s03_e01", "push"): (3556, 3622)}
"""Published as 2556 to 3622: a thousand frames that begin before the throw, which comes earlier."""


@dataclass(frozen=True, eq=False)
class Recording:
    """frames : (n,) their numbers.   joints : (n, 20, 3) metres.   segments : frame numbers [start, stop) by step."""

    name: str
    frames: Array
    joints: Array
    segments: dict[str, tuple[int, int]]

    @property
    def subject(self) -> str:
        """Who: s01 to s10."""
        return self.name.split("_")[0]


def recordings(place: str | os.PathLike[str], *, corrected: bool = True) -> list[Recording]:
    """All recordings, in order of their names. corrected : with the `CORRECTIONS` of segments that cannot be right."""
    folder = Path(place)
    packed = folder if folder.suffix == ".npz" else folder / "utkinect.npz"
    if packed.is_file():
        found = _from_npz(packed)
    elif (folder / "actionLabel.txt").exists():
        found = _from_texts(folder)
    else:
        raise FileNotFoundError(f"{folder} has neither actionLabel.txt nor utkinect.npz; name the folder of UTKinect")
    if corrected:
        for recording in found:
            changes = {step: span for (name, step), span in CORRECTIONS.items() if name == recording.name}
            recording.segments.update(changes)
    return sorted(found, key=lambda recording: recording.name)


def load(
    place: str | os.PathLike[str],
    *,
    clip: int = 8,
    velocity: bool = True,
    embed: Embed | None = None,
    corrected: bool = True,
) -> StepDataset:
    """UTKinect as a data set: a video is a recording, its frames are clips of `clip` skeletons (see :func:`clips`).

    Steps are in the order in which they happen (pull comes before push in two recordings); their embeddings are those
    of their names, by `embed` or else :func:`dropdtw.data.text.embed`. Texts and skeletons have no space in common
    before training; `steps.prototypes` of training videos have one.
    """
    known = recordings(place, corrected=corrected)
    texts = [re.sub(r"(?=[A-Z])", " ", step).lower() for step in STEPS]
    vectors = np.asarray((embed or default_embed())(texts), np.float32)

    def read(index: int) -> StepVideo:
        recording = known[index]
        frames, numbers = clips(recording, clip, velocity=velocity)
        order = sorted(recording.segments, key=lambda step: recording.segments[step])
        ids = [STEPS.index(step) for step in order]
        spans = [recording.segments[step] for step in order]
        return StepVideo(
            recording.name,
            "UTKinect",
            frames,
            np.array(ids, np.int64),
            tuple(texts[step] for step in ids),
            vectors[ids],
            frame_times=numbers / FPS,
            segments=tuple((row, first / FPS, stop / FPS) for row, (first, stop) in enumerate(spans)),
        )

    return StepDataset((r.name for r in known), ("UTKinect" for _ in known), read, cache=len(known))


def clips(recording: Recording, clip: int = 8, *, velocity: bool = True) -> tuple[Array, Array]:
    """Skeletons of a recording, `clip` at a time, as vectors (N, d), and frame numbers [start, stop) (N, 2).

    A vector is the mean pose, 60 numbers: joints as seen from the hip, in units of the person's back (the median way
    from hip to shoulders), so that neither place nor size matters. With `velocity` 120 numbers more: the mean velocity
    of each joint, and its mean speed along each axis, in backs per second. The hip moves in the room, all other joints
    as seen from it. The last skeletons make a shorter clip.
    """
    if clip < 1:
        raise ValueError(f"clip is {clip}; give the number of skeletons in a clip, at least 1")
    joints, numbers = recording.joints.astype(np.float64), recording.frames
    back = float(np.median(np.linalg.norm(joints[:, SHOULDERS] - joints[:, HIP], axis=1)))
    if not 0 < back < np.inf:
        raise ValueError(f"{recording.name} has no skeletons of any size; get the recording anew")
    pose = (joints - joints[:, HIP : HIP + 1]) / back
    parts = [pose.reshape(len(pose), -1)]
    if velocity:
        moved = pose.copy()
        moved[:, HIP] = joints[:, HIP] / back
        moved = moved.reshape(len(pose), -1)
        passed = np.diff(numbers)[:, None] / FPS
        speed = np.concatenate([np.zeros((1, moved.shape[1])), np.diff(moved, axis=0) / passed])
        parts += [speed, np.abs(speed)]
    starts = np.arange(0, len(pose), clip)
    sizes = np.diff([*starts, len(pose)])[:, None]
    vectors = np.add.reduceat(np.concatenate(parts, axis=1), starts, axis=0) / sizes
    stops = numbers[np.minimum(starts + clip, len(pose)) - 1] + 1
    return vectors.astype(np.float32), np.stack([numbers[starts], stops], axis=1)


def leave_out(data: StepDataset, subjects: Iterable[str]) -> dict[str, StepDataset]:
    """The data set in two: "test" has the recordings of these subjects ("s01" and so on), "train" all others."""
    wanted = set(subjects)
    there = {name.split("_")[0] for name in data.names}
    if not wanted or not wanted < there:
        raise ValueError(
            f"subjects are {sorted(wanted)}; choose some, but not all, of {', '.join(sorted(there))} to test on"
        )
    test = {name for name in data.names if name.split("_")[0] in wanted}
    return data.split_by({"train": set(data.names) - test, "test": test})


def _from_npz(path: Path) -> list[Recording]:
    stored = atomic.read_arrays(path)
    try:
        names, lengths, frames = stored["recording"].tolist(), stored["length"], stored["frame"]
        joints, spans, steps = stored["joints"], stored["segments"], stored["step_names"].tolist()
        if int(lengths.sum()) != len(frames) or joints.shape != (len(frames), JOINTS, 3):
            raise ValueError(f"lengths sum to {lengths.sum()}, with {len(frames)} frames and joints {joints.shape}")
        if spans.shape != (len(names), len(steps), 2):
            raise ValueError(f"segments have shape {spans.shape}; ({len(names)}, {len(steps)}, 2) fits")
        edges = np.cumsum([0, *lengths])
        return [
            _recording(
                name,
                frames[start:stop],
                joints[start:stop],
                {step: (int(a), int(b)) for step, (a, b) in zip(steps, times, strict=True) if a >= 0},
            )
            for name, start, stop, times in zip(names, edges[:-1], edges[1:], spans, strict=True)
        ]
    except (KeyError, ValueError) as error:
        raise wrong(path, "see the documentation of dropdtw.data.utkinect", error) from None


def _from_texts(folder: Path) -> list[Recording]:
    labels = folder / "actionLabel.txt"
    marks = re.split(r"\b(s\d+_?e\d+)\b", labels.read_text())
    if len(marks) < 3:
        raise wrong(labels, "recordings are named s01_e01 and so on", ValueError("there is none"))
    found = []
    for title, text in zip(marks[1::2], marks[2::2], strict=True):
        name = re.sub(r"_?e", "_e", title)
        spans = re.findall(r"(\w+)\s*:\s*(\d+|NaN)\s+(\d+|NaN)", text)
        path = folder / "joints" / f"joints_{name}.txt"
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing, which {labels} names; get the joints of UTKinect anew")
        try:
            table = np.loadtxt(path, ndmin=2)
            if table.shape[1] != 1 + 3 * JOINTS:
                raise ValueError(f"{table.shape[1]} numbers in a line; the frame and {JOINTS} × 3 coordinates fit")
            segments = {step: (int(a), int(b)) for step, a, b in spans if "NaN" not in (a, b)}
            # A few frames come twice, with two guesses at the skeleton: the first one is kept.
            frames, first = np.unique(table[:, 0].astype(np.int64), return_index=True)
            found.append(_recording(name, frames, table[first, 1:].reshape(-1, JOINTS, 3), segments))
        except ValueError as error:
            raise wrong(path, "a line is a skeleton", error) from None
    return found


def _recording(name: str, frames: Array, joints: Array, segments: dict[str, tuple[int, int]]) -> Recording:
    unknown = sorted(set(segments) - set(STEPS))
    if unknown:
        raise ValueError(f"{name} has a step {unknown[0]!r}; the steps are {', '.join(STEPS)}")
    if len(frames) == 0 or not np.isfinite(joints).all() or (np.diff(frames) <= 0).any():
        raise ValueError(f"{name} needs skeletons of finite numbers, with frame numbers that increase")
    return Recording(name, np.asarray(frames, np.int64), np.asarray(joints, np.float32), segments)
