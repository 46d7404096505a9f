"""Penn Action (Zhang et al. 2013): 2,326 short videos of 15 actions, with 13 joints of the person in each frame.

Read from a folder in the published layout: `labels/0001.mat` and, if you use the images, `frames/0001/000001.jpg`. Or
read from one file with the same labels, `pennaction_keypoints.npz`. It has `xy` (n, 13, 2) and `visibility` (n, 13),
concatenated over all videos, and for each video `length`, `action`, `train`, `frame_hw` (2,) and its name, `video`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.files import atomic
from dropdtw.problem.inputs import Array
from reproduction.data.records import wrong

JOINTS: Final = 13
NON_CYCLIC: Final = (
    "baseball_pitch",
    "baseball_swing",
    "bowl",
    "clean_and_jerk",
    "golf_swing",
    "tennis_forehand",
    "tennis_serve",
)
"""Actions that run once from beginning to end, so that two videos have a unique alignment."""

CYCLIC: Final = (
    "bench_press",
    "jump_rope",
    "jumping_jacks",
    "pullup",
    "pushup",
    "situp",
    "squat",
    "strum_guitar",
)
"""Actions that repeat: a frame of one video has several correct matches in another."""

LIMBS: Final = ((0, 1), (0, 2), (1, 3), (3, 5), (2, 4), (4, 6), (1, 7), (2, 8), (7, 9), (9, 11), (8, 10), (10, 12))
"""Joints to connect in pictures. The joints are head, shoulders, elbows, wrists, hips, knees, ankles; left first."""

_ALIASES: Final = {"bench_presses": "bench_press", "bowling": "bowl", "pull_ups": "pullup", "push_ups": "pushup",
                   "sit_ups": "situp", "squats": "squat", "strumming_guitar": "strum_guitar"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Video:
    """One video.

    xy : (T, 13, 2) joints in pixels, (right, down).   visible : (T, 13), False where the joint was only guessed.
    train : whether it belongs to the official training split.   size : (height, width) of the image.
    """

    name: str
    action: str
    train: bool
    xy: Array
    visible: Array
    size: tuple[int, int]

    def __len__(self) -> int:
        return len(self.xy)

    @property
    def there(self) -> Array:
        """(T, 13): whether a joint has a position. The labels put joints outside the image at its corner (1, 1)."""
        return np.asarray((self.xy > 1).any(axis=2))

    def poses(self) -> Array:
        """(T, 13, 2) joints relative to the center of the person's bounding box, in units of the box.

        The center is that of each frame. The unit is the longer side of the box, as the median over the video: changes
        in the size of the box are part of the action. A joint without a position is interpolated in time; one that
        never has a position is put at the center.
        """
        joints, there = np.asarray(self.xy, np.float64), self.there
        known = there.any(axis=1)
        if not known.any():
            return np.zeros(joints.shape, np.float32)
        low, high = (
            reduce(np.where(there[..., None], joints, none), axis=1)[known]
            for reduce, none in ((np.min, np.inf), (np.max, -np.inf))
        )
        time = np.arange(len(joints))
        middle = np.stack([np.interp(time, time[known], m) for m in ((low + high) / 2).T], axis=1)
        unit = max(float(np.median((high - low).max(axis=1))), 1.0)
        seen = (joints - middle[:, None]) / unit
        for j in range(JOINTS):
            at = there[:, j]
            for axis in range(2):
                seen[:, j, axis] = np.interp(time, time[at], seen[at, j, axis]) if at.any() else 0.0
        return np.asarray(seen, np.float32)


def load(place: str | os.PathLike[str]) -> list[Video]:
    """All videos, sorted by name."""
    folder = Path(place)
    packed = folder if folder.suffix == ".npz" else folder / "pennaction_keypoints.npz"
    if packed.is_file():
        return _from_npz(packed)
    labels = sorted((folder / "labels").glob("*.mat"))
    if not labels:
        raise FileNotFoundError(
            f"{folder} has neither labels/0001.mat and so on nor pennaction_keypoints.npz; give Penn Action's folder"
        )
    return [_from_mat(path) for path in labels]


def frames(place: str | os.PathLike[str], video: Video, at: Sequence[int] | Array, side: int = 112) -> Array:
    """(n, side, side, 3) uint8: the frames `at` (0-based) of a video as square images."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("frames need Pillow: make setup") from None
    folder = Path(place) / "frames" / video.name
    found = []
    for t in at:
        path = folder / f"{int(t) + 1:06d}.jpg"
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; download the frames of Penn Action, or use the poses")
        with Image.open(path) as image:
            found.append(np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)))
    return np.stack(found)


def _from_npz(path: Path) -> list[Video]:
    stored = atomic.read_arrays(path)
    try:
        lengths, xy, seen = stored["length"], stored["xy"], stored["visibility"]
        if int(lengths.sum()) != len(xy):
            raise ValueError(f"the lengths sum to {lengths.sum()}, but there are {len(xy)} frames")
        edges = np.cumsum(lengths)[:-1]
        return [
            _video(str(name), str(action), bool(train), joints, visible, (int(size[0]), int(size[1])))
            for name, action, train, joints, visible, size in zip(
                stored["video"],
                stored["action"],
                stored["train"],
                np.split(xy, edges),
                np.split(seen, edges),
                stored["frame_hw"],
                strict=True,
            )
        ]
    except (KeyError, ValueError) as error:
        raise wrong(path, "see the documentation of reproduction.data.penn", error) from None


def _from_mat(path: Path) -> Video:
    try:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError
    except ImportError:
        raise ImportError("labels/*.mat need scipy: pip install 'dropdtw[metrics]'") from None
    try:
        stored = loadmat(path)
        xy = np.stack([np.asarray(stored[axis], np.float32) for axis in "xy"], axis=2)
        height, width = np.asarray(stored["dimensions"]).ravel()[:2]
        train = float(np.asarray(stored["train"]).ravel()[0]) > 0  # 1 and −1
        action = str(np.asarray(stored["action"]).ravel()[0])
        return _video(path.stem, action, train, xy, stored["visibility"], (int(height), int(width)))
    # SciPy raises any of these for a truncated file or another format (MATLAB 7.3: NotImplementedError).
    except (KeyError, ValueError, IndexError, TypeError, OSError, NotImplementedError, MatReadError) as error:
        raise wrong(path, "a label file needs action, train, dimensions, x, y and visibility", error) from None


def _video(name: str, action: str, train: bool, xy: Array, visible: Array, size: tuple[int, int]) -> Video:
    action = _ALIASES.get(action, action)
    if action not in NON_CYCLIC + CYCLIC:
        raise ValueError(f"video {name} shows {action!r}; the actions are {', '.join(sorted(NON_CYCLIC + CYCLIC))}")
    if xy.shape != (len(xy), JOINTS, 2) or visible.shape != xy.shape[:2] or len(xy) < 2:
        raise ValueError(
            f"video {name} has joints of shape {xy.shape} and visibility of shape {visible.shape}; "
            f"expected (T, {JOINTS}, 2) and (T, {JOINTS}) with T at least 2"
        )
    if not np.isfinite(xy).all():
        raise ValueError(f"video {name} has joints that are not finite; download its labels again")
    return Video(name, action, train, np.asarray(xy, np.float32), np.asarray(visible) > 0, size)
