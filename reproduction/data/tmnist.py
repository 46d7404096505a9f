"""TMNIST (paper Section 4.1 and appendix): videos of one MNIST digit that moves along a trajectory.

A class is a digit with a trajectory; there are 80. TMNIST-full has one clip per class that follows the whole
trajectory, TMNIST-part one that follows a random part of it. Lengths, and so speeds, vary from clip to clip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array

CANVAS: Final = 64
DIGIT: Final = 28
LENGTHS: Final = (30, 50)
"""Minimum and maximum number of frames of a whole trajectory."""

PARTS: Final = (0.4, 0.7)
"""Minimum and maximum fraction of the trajectory in a clip of TMNIST-part."""


def _figure_eight(turn: Array) -> Array:
    return np.stack([np.sin(2 * turn) / 2, -np.cos(turn)], axis=1)


def _infinity(turn: Array) -> Array:
    return np.stack([np.sin(turn), np.sin(2 * turn) / 2], axis=1)


def _circle(turn: Array) -> Array:
    return np.stack([np.sin(turn), -np.cos(turn)], axis=1)


def _slash(turn: Array) -> Array:
    along = turn / np.pi - 1
    return np.stack([along, -along], axis=1)


def _backslash(turn: Array) -> Array:
    along = turn / np.pi - 1
    return np.stack([along, along], axis=1)


def _reversed(curve: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda turn: curve(turn)[::-1]


# Closed trajectories exist in both directions. Each function maps angles from 0 to 2π to (right, down) in [−1, 1].
_CLOSED = {"8": _figure_eight, "∞": _infinity, "○": _circle}
TRAJECTORIES: Final[dict[str, Callable[[Array], Array]]] = {
    **_CLOSED,
    **{f"{name} reversed": _reversed(curve) for name, curve in _CLOSED.items()},
    "/": _slash,
    "\\": _backslash,
}
"""The eight trajectories by name, in the order of the paper's (a) to (j)."""


@dataclass(frozen=True, eq=False)
class Clip:
    """One video: frames (T, 64, 64) in [0, 1], the digit's corners (T, 2) as (row, column), and its class.

    blurred : (T,) which frames are blurred.
    """

    frames: Array
    corners: Array
    digit: int
    trajectory: str
    blurred: Array

    @property
    def label(self) -> tuple[int, str]:
        """The class: digit and trajectory."""
        return self.digit, self.trajectory


def corners(trajectory: str, length: int) -> Array:
    """(length, 2) integer positions (row, column) of the digit's corner, equally spaced along a trajectory."""
    if trajectory not in TRAJECTORIES:
        raise ValueError(f"trajectory is {trajectory!r}; choose one of {', '.join(map(repr, TRAJECTORIES))}")
    if length < 2:
        raise ValueError(f"length is {length}; give at least 2 frames")
    fine = TRAJECTORIES[trajectory](np.linspace(0, 2 * np.pi, 4097))
    traveled = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(fine, axis=0).T))])
    wanted = np.linspace(0, traveled[-1], length)
    right, down = (np.interp(wanted, traveled, along) for along in fine.T)
    reach = (CANVAS - DIGIT) / 2
    return np.asarray(np.rint(reach + reach * np.stack([down, right], axis=1)), np.int64)


def clip(image: Array, digit: int, trajectory: str, length: int, part: tuple[int, int] | None = None) -> Clip:
    """A digit (28, 28) that moves along a trajectory of `length` frames, or only frames [start, stop) of it."""
    places = corners(trajectory, length)
    start, stop = (0, length) if part is None else part
    if not 0 <= start < stop <= length:
        raise ValueError(f"part is {part}; give frames 0 ≤ start < stop ≤ {length}")
    places = places[start:stop]
    frames = np.zeros((len(places), CANVAS, CANVAS), np.float32)
    for frame, (row, column) in zip(frames, places, strict=True):
        frame[row : row + DIGIT, column : column + DIGIT] = image / np.float32(255)
    return Clip(frames, places, digit, trajectory, np.zeros(len(places), bool))


def random_clip(
    images: Array, labels: Array, digit: int, trajectory: str, part: bool, rng: np.random.Generator
) -> Clip:
    """A clip of a class: a random image of the digit, a random length, and for TMNIST-part a random part."""
    image = images[rng.choice(np.flatnonzero(labels == digit))]
    length = int(rng.integers(LENGTHS[0], LENGTHS[1] + 1))
    if not part:
        return clip(image, digit, trajectory, length)
    frames = max(2, round(length * rng.uniform(*PARTS)))
    start = int(rng.integers(0, length - frames + 1))
    return clip(image, digit, trajectory, length, (start, start + frames))


CLASSES: Final = tuple((digit, trajectory) for digit in range(10) for trajectory in TRAJECTORIES)
"""The 80 classes, in the order of a data set."""


def data_set(
    images: Array, labels: Array, part: bool, seed: int, classes: Sequence[tuple[int, str]] = CLASSES
) -> list[Clip]:
    """TMNIST-full, or with `part` TMNIST-part: one clip per class, determined by the seed."""
    rng = np.random.default_rng([seed, part])
    return [random_clip(images, labels, digit, trajectory, part, rng) for digit, trajectory in classes]


def chosen_frames(length: int, share: float, rng: np.random.Generator) -> Array:
    """(length,) bool: which frames of a clip to corrupt, a given fraction chosen at random."""
    if not 0 <= share <= 1:
        raise ValueError(f"the fraction of blurred frames is {share}; give a number from 0 to 1")
    chosen = np.zeros(length, bool)
    chosen[rng.choice(length, round(share * length), replace=False)] = True
    return chosen


def blurred(frames: Array, radius: float = 2.0) -> Array:
    """Frames (T, H, W), each blurred by a Gaussian; radius : its standard deviation in pixels."""
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(frames, (0, radius, radius)))


def blur(video: Clip, share: float, rng: np.random.Generator, radius: float = 2.0) -> Clip:
    """The clip with a random fraction of its frames blurred."""
    chosen = chosen_frames(len(video.frames), share, rng)
    frames = video.frames.copy()
    frames[chosen] = blurred(frames[chosen], radius)
    return replace(video, frames=frames, blurred=video.blurred | chosen)


@dataclass(frozen=True)
class Medley:
    """The parts of a sequence for localization (paper Section 4.1.2), as (copy, class) in a pool of data sets.

    clips : of TMNIST-part, in order; the ones of class `event` are to be found.
    query : of TMNIST-full, all of class `event`.
    """

    event: int
    clips: tuple[tuple[int, int], ...]
    query: tuple[tuple[int, int], ...]

    def is_event(self, lengths: Sequence[int]) -> Array:
        """For each frame, whether it belongs to the event, given the length of each clip."""
        return np.repeat([kind == self.event for _, kind in self.clips], lengths)


def medley(
    classes: int, copies: int, rng: np.random.Generator, events: int = 2, clips: tuple[int, int] = (5, 7)
) -> Medley:
    """A random sequence: `events` different clips of one class among clips of other classes.

    classes, copies : the size of the pool, which has `copies` data sets and so `copies` clips of each class.
    clips : the minimum and maximum number of clips in the sequence.
    """
    low, high = clips
    if not (0 < events < low <= high and events <= copies and high - events < classes):
        raise ValueError(
            f"{events} events among {low} to {high} clips need more clips than events, at least {events} copies of "
            f"each class (there are {copies}) and more than {high - events} classes (there are {classes})"
        )
    event = int(rng.integers(classes))
    others = np.delete(np.arange(classes), event)
    chosen = rng.choice(others, int(rng.integers(low, high + 1)) - events, replace=False)
    pool = [(int(copy), event) for copy in rng.permutation(copies)[:events]]
    pool += [(int(rng.integers(copies)), int(kind)) for kind in chosen]
    order = rng.permutation(len(pool))
    query = tuple((int(copy), event) for copy in rng.permutation(copies)[:events])
    return Medley(event, tuple(pool[k] for k in order), query)


def contact_sheet(videos: Sequence[Clip], path: str | Path, columns: int = 12) -> None:
    """Save a picture of clips, one per row, with `columns` equally spaced frames of each."""
    from PIL import Image

    gap = 2
    sheet = np.full((len(videos) * (CANVAS + gap) + gap, columns * (CANVAS + gap) + gap), 64, np.uint8)
    for r, video in enumerate(videos):
        for c, t in enumerate(np.linspace(0, len(video.frames) - 1, columns).round().astype(int)):
            top, left = gap + r * (CANVAS + gap), gap + c * (CANVAS + gap)
            sheet[top : top + CANVAS, left : left + CANVAS] = np.rint(255 * video.frames[t])
    Image.fromarray(sheet).save(path)


def gif(video: Clip, path: str | Path, fps: float = 12.0, zoom: int = 3) -> None:
    """Save the clip as an animated GIF."""
    from PIL import Image

    shown = [
        Image.fromarray(np.rint(255 * frame).astype(np.uint8)).resize((zoom * CANVAS, zoom * CANVAS))
        for frame in video.frames
    ]
    shown[0].save(path, save_all=True, append_images=shown[1:], duration=round(1000 / fps), loop=0)
