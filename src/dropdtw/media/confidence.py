"""The confidence that a stretch is the same sound in both recordings.

The statistic is a sum over the fine frames of a stretch: their cost at other places in B, less their cost at their own
place. Logistic weights turn it into a probability. They are fitted to stretches that an alignment with a low opening
cost proposes, in synthetic recordings with known edits and in unrelated ones. `benchmarks/diff.py` uses seeds below
1000 for the fit, and held-out seeds for the calibration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dropdtw.media.features import Frames
from dropdtw.media.matching import Stretch
from dropdtw.problem.inputs import Array

PLACES = 40
"""Number of other places in B that a stretch of A is compared with."""

AWAY = 1.0
"""Minimum distance of the other places from its own, in seconds."""

FRAMES = 2000
"""Maximum number of fine frames compared per stretch, spread evenly over it."""

WEIGHTS = (-9.7, 5.5)
"""Logistic weights of what `features` returns."""


class StretchEvidence(NamedTuple):
    """The cost of a stretch on fine frames, its cost elsewhere, and its length.

    cost : mean of 1 − cosine along the stretch, without common silence.
    chance : the same, against other places in B.
    heard : seconds that are not silent in both recordings.
    """

    cost: float
    chance: float
    heard: float


def evidence(A: Frames, B: Frames, run: Stretch) -> StretchEvidence:
    """Compare a stretch of A with its place in B and with others, spread evenly over B."""
    step = max(1, int(run.length) // FRAMES)
    a = np.arange(int(run.a), max(int(run.a_stop), int(run.a) + 1), step)
    a = a[a < len(A.fine)]
    k = np.rint(run.at(a + 0.5) - 0.5).astype(np.int64).clip(0, len(B.fine) - 1)
    heard = ~(A.quiet[a] & B.quiet[k])
    if not heard.any():
        return StretchEvidence(1.0, 1.0, 0.0)
    a, k = a[heard], k[heard]
    cost = _mean_cost(A, B, a, k)
    away = min(AWAY * B.rate, len(B.fine) / 3)
    others = np.linspace(away, len(B.fine) - away, PLACES).astype(np.int64)
    chance = np.mean([_mean_cost(A, B, a, (k + shift) % len(B.fine)) for shift in others])
    return StretchEvidence(cost, float(chance), len(a) * step / A.rate)


def _mean_cost(A: Frames, B: Frames, a: Array, k: Array) -> float:
    return float(1 - np.einsum("nd,nd->n", A.fine[a], B.fine[k]).mean())


def features(known: StretchEvidence) -> Array:
    """Inputs of the logistic model: a constant, and the seconds by which a stretch is better than chance."""
    return np.array([1.0, min((known.chance - known.cost) * known.heard, 20.0)])


def probability(known: StretchEvidence) -> float:
    """The probability, 0 to 1, that the stretch is the same sound in both."""
    if known.heard == 0:
        return 0.0
    return float(1 / (1 + np.exp(-np.dot(WEIGHTS, features(known)))))
