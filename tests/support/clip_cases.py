"""Pools of synthetic clips that tests share."""

import numpy as np

from reproduction.common.pools import Videos


def made_up(seed, classes=8, d=6, noise=0.3):
    """Each class is a path through random codes. Parts are noisy stretches of it; blurred frames are unrelated."""
    paths = np.random.default_rng(5).normal(size=(classes, 12, d))
    rng = np.random.default_rng(seed)
    full, part, blurred = [], [], []
    for path in paths:
        full.append(np.repeat(path, rng.integers(1, 3, 12), axis=0))
        start = rng.integers(0, 5)
        inside = np.repeat(path[start : start + 7], rng.integers(1, 3, 7), axis=0)
        part.append(inside + noise * rng.normal(size=inside.shape))
        blurred.append(np.abs(rng.normal(size=inside.shape)) + 1)
    return Videos(full, part, blurred)
