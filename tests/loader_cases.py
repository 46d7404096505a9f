"""Features and embeddings that the tests of the loaders share."""

import numpy as np

RNG = np.random.default_rng(0)


def embed(texts):
    """Stands in for a sentence model: as many numbers as the text has letters of a few kinds."""
    return np.array([[1.0, len(t), t.count("a"), t.count("e")] for t in texts], np.float32).reshape(-1, 4)


def frames(N, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(N, d)).astype(np.float32)
