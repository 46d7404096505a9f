"""Digits that move along trajectories at changing speed: what stand-ins for videos are made of."""

from __future__ import annotations

import numpy as np

from dropdtw.data import tmnist
from dropdtw.problem.inputs import Array

POOLED = 4
"""Pixels of the canvas that are averaged into one, in each direction."""


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
