"""JIGSAWS (Gao et al. 2014): surgeons' trials on a robot, as kinematics with a transcript of gestures.

The trials of all tasks come in one file, `jigsaws.npz`, at 10 Hz, the rate of the COMPASS edition (UVA-DSA/COMPASS):

- names (V,): TASK_SNN_TNN, with the numbers of the subject and the trial.   lengths (V,): frames of each trial.
- kinematics (sum of lengths, d): position, velocity, orientation and gripper angle of both arms.
- segments (n, 3): trial, first frame, and the frame after the last.   gestures (n,): the gesture of each segment.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.files import atomic
from dropdtw.problem.inputs import Array
from reproduction.data.records import wrong

HERTZ: Final = 10
"""Frames per second."""

_NAME: Final = re.compile(r"(?P<task>\w+)_(?P<subject>S\d+)_T\d+")


@dataclass(frozen=True, eq=False)
class Trial:
    """A trial. kinematics : (T, d) float32.   segments : (gesture, start, stop) in frames, half-open, in order."""

    name: str
    task: str
    subject: str
    kinematics: Array
    segments: tuple[tuple[str, int, int], ...]


def load(place: str | os.PathLike[str]) -> list[Trial]:
    """All trials of a folder with `jigsaws.npz`, or of this file, in its order."""
    path = Path(place)
    path = path if path.suffix == ".npz" else path / "jigsaws.npz"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give the folder of jigsaws.npz")
    stored = atomic.read_arrays(path)
    try:
        lengths, frames, spans = stored["lengths"], stored["kinematics"], stored["segments"]
        if int(lengths.sum()) != len(frames):
            raise ValueError(f"the lengths sum to {lengths.sum()}, but there are {len(frames)} frames")
        if len(lengths) != len(stored["names"]):
            raise ValueError(f"there are {len(lengths)} lengths and {len(stored['names'])} names")
        segments: list[list[tuple[str, int, int]]] = [[] for _ in lengths]
        for (trial, start, stop), gesture in zip(spans.tolist(), stored["gestures"].tolist(), strict=True):
            if not (0 <= trial < len(lengths) and 0 <= start < stop <= lengths[trial]):
                raise ValueError(f"segment {[trial, start, stop]} is not inside a trial")
            segments[trial].append((gesture, start, stop))
        parts = np.split(frames, np.cumsum(lengths)[:-1])
        return [_trial(*one) for one in zip(stored["names"].tolist(), parts, segments, strict=True)]
    except (KeyError, ValueError, TypeError) as error:
        raise wrong(path, "see the documentation of reproduction.data.jigsaws", error) from None


def _trial(name: str, kinematics: Array, segments: list[tuple[str, int, int]]) -> Trial:
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"trial {name!r} is not named TASK_SNN_TNN")
    if not segments or not np.isfinite(kinematics).all():
        raise ValueError(f"trial {name} has {len(segments)} gestures; it needs one or more, and finite kinematics")
    inside = tuple(sorted(segments, key=lambda segment: segment[1]))
    return Trial(name, found["task"], found["subject"], np.asarray(kinematics, np.float32), inside)
