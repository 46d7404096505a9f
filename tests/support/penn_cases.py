"""Videos of several actions, each a simple path, that the tests of representation learning share."""

import numpy as np

from reproduction.penn.model import Clips


def made_up(actions=3, each=6, T=(24, 40), seed=0, d=5, noise=0.05):
    """Each action is its own path; a frame encodes the position on it."""
    rng = np.random.default_rng(seed)
    paths = np.random.default_rng(9).normal(size=(actions, 6, d))
    frames, phases, names = [], [], []
    for action in range(actions):
        for _ in range(each):
            length = int(rng.integers(*T))
            phase = np.sort(rng.random(length))
            points = np.stack([np.interp(phase, np.linspace(0, 1, 6), paths[action, :, k]) for k in range(d)], axis=1)
            frames.append((points + noise * rng.normal(size=points.shape)).astype(np.float32))
            phases.append(phase)
            names.append(f"action {action}")
    return Clips(tuple(names), tuple(map(len, frames)), lambda k, at: frames[k][at], tuple(phases))
