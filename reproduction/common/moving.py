"""Digits that move along trajectories at varying speed, the material of the stand-ins for videos."""

from __future__ import annotations

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.data import tmnist

POOLED = 4
"""Downsampling factor of the canvas in each direction."""


def moving(image: Array, trajectory: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """Frames (T, 16 · 16) of a digit that follows the trajectory at varying speed, and its phase (T,) from 0 to 1."""
    length = int(rng.integers(tmnist.LENGTHS[0], tmnist.LENGTHS[1] + 1))
    # The speed is interpolated between five random values, the fastest up to six times the slowest.
    speed = np.interp(np.linspace(0, 1, length - 1), np.linspace(0, 1, 5), np.exp(rng.uniform(-0.9, 0.9, 5)))
    phase = np.concatenate([[0.0], np.cumsum(speed)]) / speed.sum()
    fine = tmnist.clip(image, 0, trajectory, 4 * tmnist.LENGTHS[1])
    at = np.rint(np.minimum(phase, 1) * (len(fine.frames) - 1)).astype(np.int64)
    side = tmnist.CANVAS // POOLED
    small = fine.frames[at].reshape(length, side, POOLED, side, POOLED).mean(axis=(2, 4))
    return small.reshape(length, -1).astype(np.float32), np.minimum(phase, 1)
