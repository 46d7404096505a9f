"""Whether a step is told where it was found: three numbers that speak for it, and the probability they amount to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from dropdtw.problem.inputs import Array
from dropdtw.results.alignment import Alignment

GAMMA: Final = 0.07
"""The temperature of the probabilities of places."""

SKIP: Final = 0.15
"""What leaving out a step costs, in drop costs of a sentence: a step needs a sentence that is nearly a good match."""


class Evidence(NamedTuple):
    """What speaks for a passage to tell its step.

    cost : of its best sentence.
    place : the probability of its likeliest sentence, among all sentences and leaving the step out.
    others : the mean cost of the other steps' best sentences, as if there were one more, which costs `UNKNOWN`.
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


# `python benchmarks/localize.py --data DIR` (seed 0) chose the next three on 259 transcripts of cooking videos, and
# measured such choices on videos they were not made on: 5 % of another dish's steps are found (70 % by alignment
# alone), and 99.7 % of the own steps that alignment puts in the right place stay there.
WEIGHTS: Final = Weights(constant=6.83, cost=-3.74, place=3.71, others=-9.78)
"""Of the steps at 70 %, about 70 % are right."""
FLOOR: Final = 0.25
"""The probability from which on a step counts as found."""
EDGE: Final = 0.5
"""The share of the best sentence's likeness that the ends of a passage have at least."""
UNKNOWN: Final = 0.8
"""About what the best sentence costs in a talk that does not have the step."""


class Passage(NamedTuple):
    """The sentences [first, after) in which a step was found, and what speaks for them."""

    step: int
    first: int
    after: int
    evidence: Evidence


def passages(C: Array, a: Alignment, optional: Sequence[int] = ()) -> list[Passage]:
    """The passages of an alignment, in time; a step that is repeated has several. C : (K, N) costs of steps, sentences.

    Steps that nobody has to talk about say nothing about the others if nobody does: the optional ones, and those that
    the alignment passes by, such as alternatives.
    """
    visits = a.visits
    runs: dict[int, list[tuple[int, int]]] = {}
    for step, first, after in visits:
        runs.setdefault(step, []).append((first, after))
    due = np.array(sorted({int(i) for i in a.walk} - {i for i in optional if i not in runs}), np.int64)
    best = np.array([min(C[i, slice(*run)].min() for run in runs.get(i, [(None,)])) for i in due], np.float64)
    others = dict(zip(due.tolist(), (best.sum() - best + UNKNOWN) / len(due), strict=True))
    p = a.posterior(GAMMA).match
    return [
        Passage(
            step,
            first,
            after,
            Evidence(
                float(C[step, first:after].min()), min(1.0, float(p[step, first:after].max())), float(others[step])
            ),
        )
        for step, first, after in visits
    ]


def probability(evidence: Evidence, weights: Weights = WEIGHTS) -> float:
    """That a passage tells its step, from 0 to 1."""
    odds = weights.constant + float(np.dot(weights[1:], evidence))
    return float(1 / (1 + np.exp(-odds)))


def trimmed(row: Array, first: int, after: int, edge: float = EDGE) -> tuple[int, int]:
    """The passage [first, after) without sentences at its ends that are hardly about the step.

    Likeness counts from the step's background, the median of its costs: at either end stands a sentence that has at
    least `edge` times the likeness of the passage's best one.

    row : (N,) costs of the step.

    >>> trimmed(np.array([1.0, 0.8, 0.3, 0.4, 1.0, 1.0]), 1, 4)
    (2, 4)
    """
    usual, best = float(np.median(row)), float(row[first:after].min())
    good = np.flatnonzero(row[first:after] <= usual - edge * max(0.0, usual - best))
    return (first + int(good[0]), first + int(good[-1]) + 1) if len(good) else (first, after)
