"""Precision, recall and F1 of matches, insertions and deletions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.data.match import Performance

KINDS: Final = ("matches", "insertions", "deletions")


@dataclass(frozen=True)
class Counts:
    """The numbers of found and right, found and wrong, and missed, for each of KINDS: values (3, 3).

    seconds : the time that finding them took.
    """

    values: Array
    seconds: float = 0.0

    @classmethod
    def of(cls, performance: Performance, rows: Array, seconds: float = 0.0) -> Counts:
        """Compare pairs (score note, played note) with the truth."""
        found, truth = ({(int(i), int(j)) for i, j in some} for some in (rows, performance.pairs))
        score, played = range(len(performance.pitch)), range(len(performance.key))
        sets = [(found, truth)] + [
            tuple(set(notes) - {pair[side] for pair in some} for some in (found, truth))
            for side, notes in ((1, played), (0, score))
        ]
        return cls(np.array([[len(a & b), len(a - b), len(b - a)] for a, b in sets]), seconds)

    @classmethod
    def sum(cls, counts: Iterable[Counts]) -> Counts:
        """The counts of several performances together."""
        some = list(counts)
        values = sum((one.values for one in some), start=np.zeros((3, 3), np.int64))
        return cls(values, sum(one.seconds for one in some))

    def f1(self) -> list[float]:
        """F1 of each of KINDS; 1 where there is nothing to find and nothing was found."""
        return [scores[2] for scores in self._scores()]

    def scores(self) -> dict[str, Any]:
        """Precision, recall and F1 by kind, and the time, for results.json."""
        names = ("precision", "recall", "F1")
        by_kind = {kind: dict(zip(names, some, strict=True)) for kind, some in zip(KINDS, self._scores(), strict=True)}
        return {**by_kind, "seconds": self.seconds}

    def cells(self) -> list[str]:
        """Precision / recall / F1 in % by kind, and the seconds per 1,000 notes of the score, for a table."""
        found = [" / ".join(f"{100 * value:.2f}" for value in some) for some in self._scores()]
        return [*found, f"{1000 * self.seconds / max(self.notes, 1):.2f}"]

    @property
    def notes(self) -> int:
        """The number of notes of the scores: those that have a match, and those that were left out."""
        return int(self.values[[0, 0, 2, 2], [0, 2, 0, 2]].sum())

    def _scores(self) -> list[tuple[float, float, float]]:
        return [
            tuple(float(a / b) if b else 1.0 for a, b in ((tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn)))  # type: ignore[misc]
            for tp, fp, fn in self.values.tolist()
        ]
