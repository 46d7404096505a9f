"""UTKinect-Action3D (Xia et al. 2012): people walk, sit down, stand up and so on, ten steps in one recording.

Read from a folder with the published `actionLabel.txt` and `joints/joints_s01_e01.txt` and so on, or from one file with
the same content, `utkinect.npz`: `recording` (R,) and `length` (R,), the name and the number of frames of each;
`frame` (n,) and `joints` (n, 20, 3), concatenated over all recordings; `step_names` (S,); and `segments` (R, S, 2) in
frame numbers, -1 for none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.files import atomic
from dropdtw.problem.inputs import Array
from reproduction.data.features import Embed, default_embed
from reproduction.data.records import wrong
from reproduction.data.steps import StepDataset, StepVideo

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
"""The steps by id, as named in the files."""

JOINTS: Final = 20
HIP, SHOULDERS = 0, 2
FPS: Final = 30.0
"""Frame numbers per second. Frames without a skeleton are missing, so the numbers have gaps."""

CORRECTIONS: Final = {("s03_e01", "push"): (3556, 3622)}
"""Published as 2556 to 3622: a thousand frames, starting before the throw, which happens earlier."""


@dataclass(frozen=True, eq=False)
class Recording:
    """frames : (n,) frame numbers.   joints : (n, 20, 3) meters.   segments : frame numbers [start, stop) by step."""

    name: str
    frames: Array
    joints: Array
    segments: dict[str, tuple[int, int]]

    @property
    def subject(self) -> str:
        """The person: s01 to s10."""
        return self.name.split("_")[0]


def recordings(place: str | os.PathLike[str], *, corrected: bool = True) -> list[Recording]:
    """All recordings, sorted by name. corrected : apply `CORRECTIONS` to segments that cannot be right."""
    folder = Path(place)
    packed = folder if folder.suffix == ".npz" else folder / "utkinect.npz"
    if packed.is_file():
        found = _from_npz(packed)
    elif (folder / "actionLabel.txt").exists():
        found = _from_texts(folder)
    else:
        raise FileNotFoundError(f"{folder} has neither actionLabel.txt nor utkinect.npz; give the folder of UTKinect")
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
    """UTKinect as a data set. A video is a recording; its frames are clips of `clip` skeletons (see :func:`clips`).

    Steps are in the order in which they happen (pull comes before push in two recordings). Their embeddings are those
    of their names, by `embed` or else :func:`dropdtw.text.embeddings.embed`. Texts and skeletons do not share an
    embedding space before training; use `steps.prototypes` of training videos for steps in the space of skeletons.
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
    """Clips of `clip` skeletons of a recording, as vectors (N, d), and their frame numbers [start, stop) (N, 2).

    A vector is the mean pose, 60 numbers: joints relative to the hip, in units of the person's back (the median
    distance from hip to shoulders), so that neither position nor size matters. `velocity` adds 120 numbers: the mean
    velocity of each joint, and its mean speed along each axis, in backs per second. The velocity of the hip is relative
    to the room, that of all other joints relative to the hip. The last clip may be shorter.
    """
    if clip < 1:
        raise ValueError(f"clip is {clip}; give the number of skeletons in a clip, at least 1")
    joints, numbers = recording.joints.astype(np.float64), recording.frames
    back = float(np.median(np.linalg.norm(joints[:, SHOULDERS] - joints[:, HIP], axis=1)))
    if not 0 < back < np.inf:
        raise ValueError(f"{recording.name} has only skeletons of size 0; download the recording again")
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
    """Split the data set: "test" has the recordings of these subjects ("s01" and so on), "train" all others."""
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
            raise ValueError(f"segments have shape {spans.shape}; expected ({len(names)}, {len(steps)}, 2)")
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
        raise wrong(path, "see the documentation of reproduction.data.utkinect", error) from None


def _from_texts(folder: Path) -> list[Recording]:
    labels = folder / "actionLabel.txt"
    marks = re.split(r"\b(s\d+_?e\d+)\b", labels.read_text())
    if len(marks) < 3:
        raise wrong(labels, "recordings should be named s01_e01 and so on", ValueError("there is none"))
    found = []
    for title, text in zip(marks[1::2], marks[2::2], strict=True):
        name = re.sub(r"_?e", "_e", title)
        spans = re.findall(r"(\w+)\s*:\s*(\d+|NaN)\s+(\d+|NaN)", text)
        path = folder / "joints" / f"joints_{name}.txt"
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing, but {labels} lists it; download the joints of UTKinect again")
        try:
            table = np.loadtxt(path, ndmin=2)
            if table.shape[1] != 1 + 3 * JOINTS:
                raise ValueError(f"{table.shape[1]} numbers in a line; expected the frame and {JOINTS} × 3 coordinates")
            segments = {step: (int(a), int(b)) for step, a, b in spans if "NaN" not in (a, b)}
            # A few frames occur twice, with two guesses at the skeleton: keep the first one.
            frames, first = np.unique(table[:, 0].astype(np.int64), return_index=True)
            found.append(_recording(name, frames, table[first, 1:].reshape(-1, JOINTS, 3), segments))
        except ValueError as error:
            raise wrong(path, "a line should be a skeleton", error) from None
    return found


def _recording(name: str, frames: Array, joints: Array, segments: dict[str, tuple[int, int]]) -> Recording:
    unknown = sorted(set(segments) - set(STEPS))
    if unknown:
        raise ValueError(f"{name} has a step {unknown[0]!r}; the steps are {', '.join(STEPS)}")
    if len(frames) == 0 or not np.isfinite(joints).all() or (np.diff(frames) <= 0).any():
        raise ValueError(f"{name} needs skeletons of finite numbers, and increasing frame numbers")
    return Recording(name, np.asarray(frames, np.int64), np.asarray(joints, np.float32), segments)
