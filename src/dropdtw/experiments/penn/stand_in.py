"""What takes Penn Action's place where it is not at hand: digits that move along trajectories, at changing speed.

An action is a trajectory; a video is a random digit on it, that waits here and hurries there. Since it is made, the
place along the trajectory is known in each frame, and with it the error of an alignment.
"""

from __future__ import annotations

import numpy as np

from dropdtw.data import mnist, tmnist
from dropdtw.experiments.penn.model import Clips
from dropdtw.experiments.penn.videos import Splits, held_out
from dropdtw.problem.inputs import Array

POOLED = 4
"""Pixels of the canvas that are averaged into one, in each direction."""


def splits(clips: int = 40, seed: int = 0, digits: mnist.Mnist | None = None) -> Splits:
    """So many videos of each trajectory to train (and choose) on, half as many to test; out of different digits."""
    source = digits or mnist.load()
    parts = []
    for part, (images, count) in enumerate(((source.train_images, clips), (source.test_images, max(2, clips // 2)))):
        rng = np.random.default_rng([seed, part])
        made = [
            (name, *moving(images[rng.integers(len(images))], name, rng))
            for name in tmnist.TRAJECTORIES
            for _ in range(count)
        ]
        parts.append(_clips(made))
    known, test = parts
    train, validation = held_out(known, range(len(known)), seed)
    return Splits(
        known.only(train),
        known.only(validation),
        test,
        {"trajectories": tuple(tmnist.TRAJECTORIES)},
        f"a stand-in: {len(known)} + {len(test)} videos of moving digits ({source.source})",
    )


def moving(image: Array, trajectory: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """(T, 16 · 16) frames of a digit that runs the whole trajectory at a changing speed, and its phase (T,), 0 to 1."""
    length = int(rng.integers(tmnist.LENGTHS[0], tmnist.LENGTHS[1] + 1))
    # A few stretches of the way, each with a speed of its own, up to six times as fast as another.
    speed = np.interp(np.linspace(0, 1, length - 1), np.linspace(0, 1, 5), np.exp(rng.uniform(-0.9, 0.9, 5)))
    phase = np.concatenate([[0.0], np.cumsum(speed)]) / speed.sum()
    fine = tmnist.clip(image, 0, trajectory, 4 * tmnist.LENGTHS[1])
    at = np.rint(np.minimum(phase, 1) * (len(fine.frames) - 1)).astype(np.int64)
    side = tmnist.CANVAS // POOLED
    small = fine.frames[at].reshape(length, side, POOLED, side, POOLED).mean(axis=(2, 4))
    return small.reshape(length, -1).astype(np.float32), np.minimum(phase, 1)


def _clips(made: list[tuple[str, Array, Array]]) -> Clips:
    frames = [part for _, part, _ in made]
    return Clips(
        tuple(name for name, _, _ in made),
        tuple(len(part) for part in frames),
        lambda k, at: np.asarray(frames[k][at]),
        tuple(phase for _, _, phase in made),
    )
