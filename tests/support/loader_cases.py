"""Features and embeddings that the tests of the loaders share."""

import numpy as np

from reproduction.data import mnist

RNG = np.random.default_rng(0)


def embed(texts):
    """A stand-in for a sentence model: counts some letters of each text."""
    return np.array([[1.0, len(t), t.count("a"), t.count("e")] for t in texts], np.float32).reshape(-1, 4)


def frames(N, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(N, d)).astype(np.float32)


def made_up_digits(rng):
    """Digits of random noise, 30 for training and 20 for testing."""
    images = [rng.integers(1, 256, (n, 28, 28), dtype=np.uint8) for n in (30, 20)]
    return mnist.Mnist(images[0], np.arange(30) % 10, images[1], np.arange(20) % 10, "made-up digits")
