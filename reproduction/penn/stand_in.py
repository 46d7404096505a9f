"""A stand-in for Penn Action: digits that move along trajectories at varying speed.

An action is a trajectory, and a video is a random digit that follows it at varying speed. Because the data are
synthetic, the position along the trajectory is known in each frame, and with it the error of an alignment.
"""

from __future__ import annotations

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.common.moving import moving
from reproduction.data import mnist, tmnist
from reproduction.penn.model import Clips
from reproduction.penn.videos import Splits, held_out


def splits(clips: int = 40, seed: int = 0, digits: mnist.Mnist | None = None) -> Splits:
    """`clips` videos of each trajectory for training and validation, half as many for testing, of different digits."""
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


def _clips(made: list[tuple[str, Array, Array]]) -> Clips:
    frames = [part for _, part, _ in made]
    return Clips(
        tuple(name for name, _, _ in made),
        tuple(len(part) for part in frames),
        lambda k, at: np.asarray(frames[k][at]),
        tuple(phase for _, _, phase in made),
    )
