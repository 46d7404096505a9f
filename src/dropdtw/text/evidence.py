"""The probability that a step is talked about where it was found, by logistic regression from three numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from dropdtw.problem.inputs import Array
from dropdtw.results.alignment import Alignment

# `python -m benchmarks.chapters --data DIR` (seed 0) chose these on 259 transcripts of cooking videos.
SKIP: Final = 0.15
"""Cost of dropping a step, as a multiple of a sentence's drop cost."""
GAMMA: Final = 0.12
"""Temperature of the posterior over sentences."""
UNKNOWN: Final = 0.8
"""Match cost of the best sentence of a step that the talk does not have."""


class PassageEvidence(NamedTuple):
    """Evidence that a passage talks about its step.

    cost : the match cost of its best sentence.
    place : the highest posterior probability of a sentence in it, among all sentences and skipping the step.
    others : the mean match cost of the other steps' best sentences. One step of cost `UNKNOWN` counts as well, so that
        a step without others has a mean, too.
    """

    cost: float
    place: float
    others: float


class Weights(NamedTuple):
    """The log odds that a passage is right: constant + Σ weight · evidence."""

    constant: float
    cost: float
    place: float
    others: float


WEIGHTS: Final = Weights(constant=8.26, cost=-4.82, place=3.22, others=-9.50)
"""Calibrated: of the steps with a probability of 70 %, about 70 % are right."""
FLOOR: Final = 0.25
"""Minimum probability of a step that counts as found."""
EDGE: Final = 0.5
"""Minimum similarity of the first and last sentence of a passage, as a share of its best sentence's similarity."""


class Passage(NamedTuple):
    """The sentences [first, after) of a step, and the evidence for it.

    aligned : whether the alignment has this passage; otherwise it dropped the step, and this is the nearest sentence.
    """

    step: int
    first: int
    after: int
    evidence: PassageEvidence
    aligned: bool = True


def passages(
    C: Array, a: Alignment, optional: Sequence[int] = (), *, gamma: float = GAMMA, unknown: float = UNKNOWN
) -> list[Passage]:
    """The passages of an alignment, in order of time, then the nearest sentence of each step that it dropped.

    A repeated step has several passages. The nearest sentence is the most probable one according to the posterior,
    which respects the order of the steps.

    If a step does not have to occur and does not, it is no evidence against the others. That holds for optional steps,
    and for those that the alignment bypasses, such as alternatives.

    C : (K, N) match costs.
    """
    visits = a.visits
    runs: dict[int, list[tuple[int, int]]] = {}
    for step, first, after in visits:
        runs.setdefault(step, []).append((first, after))
    due = np.array(sorted({int(i) for i in a.walk} - {i for i in optional if i not in runs}), np.int64)
    best = np.array([min(C[i, slice(*run)].min() for run in runs.get(i, [(None,)])) for i in due], np.float64)
    others = dict(zip(due.tolist(), (best.sum() - best + unknown) / len(due), strict=True))
    p = a.posterior(gamma).match

    def judged(step: int, first: int, after: int, *, aligned: bool) -> Passage:
        cost, place = float(C[step, first:after].min()), min(1.0, float(p[step, first:after].max()))
        return Passage(step, first, after, PassageEvidence(cost, place, float(others[step])), aligned)

    nearest = {i: int(p[i].argmax()) for i in due.tolist() if i not in runs}
    return [
        *(judged(*visit, aligned=True) for visit in visits),
        *(judged(i, j, j + 1, aligned=False) for i, j in nearest.items()),
    ]


def probability(evidence: PassageEvidence, weights: Weights = WEIGHTS) -> float:
    """The probability, 0 to 1, that a passage talks about its step."""
    odds = weights.constant + float(np.dot(weights[1:], evidence))
    return float(1 / (1 + np.exp(-odds)))


def trimmed(row: Array, first: int, after: int, edge: float = EDGE) -> tuple[int, int]:
    """Trim sentences that are hardly about the step from both ends of a passage [first, after).

    The similarity of a sentence is how far its cost lies below the median cost of the step. Trimming stops at the first
    sentence, from either end, with at least `edge` times the similarity of the passage's best one.

    row : (N,) match costs of the step.

    >>> trimmed(np.array([1.0, 0.8, 0.3, 0.4, 1.0, 1.0]), 1, 4)
    (2, 4)
    """
    usual, best = float(np.median(row)), float(row[first:after].min())
    good = np.flatnonzero(row[first:after] <= usual - edge * max(0.0, usual - best))
    return (first + int(good[0]), first + int(good[-1]) + 1) if len(good) else (first, after)
