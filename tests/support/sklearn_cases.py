"""Series and estimators that the tests of `dropdtw.sklearn` share."""

import numpy as np
import pytest

from dropdtw.sklearn import AlignmentKNeighborsClassifier, AlignmentTransformer

RNG = np.random.default_rng(0)
T = np.linspace(0, 1, 12)
SHAPES = {"up": T, "down": 1 - T, "hill": 1 - np.abs(2 * T - 1)}


def noisy(n, seed, features=2):
    """Series, n of each class, of different lengths, each (t, features), and their labels."""
    rng = np.random.default_rng(seed)
    series, labels = [], []
    for _ in range(n):
        for name, shape in SHAPES.items():
            stretched = np.interp(np.linspace(0, 1, rng.integers(10, 16)), T, shape)
            series.append(stretched[:, None] * np.ones(features) + 0.05 * rng.normal(size=(len(stretched), features)))
            labels.append(name)
    return series, np.array(labels)


TRAIN, LABELS = noisy(5, 0)
TEST, TRUTH = noisy(4, 1)
SPOILED = [
    np.insert(s, [3] * 8 + [8] * 8, [[3.0, 3.0]] * 8 + [[-2.0, -2.0]] * 8, axis=0) for s in TEST
]  # high, then low
both = pytest.mark.parametrize("estimator", [AlignmentKNeighborsClassifier, AlignmentTransformer])


def answer(estimator, X):
    return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.transform(X)
