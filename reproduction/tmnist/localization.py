"""Localization on TMNIST (paper Section 4.1.2): find both passages of an event in a sequence of five to seven clips.

The query is two whole trajectories of the event's class. Drop-DTW with the same drop cost on both sides matches some
frames and drops the rest. The paper takes the two longest runs of matched frames. As an extension, we compute the
posterior probability that each frame is matched, and take the two intervals with the highest expected accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

import dropdtw
from dropdtw import metrics
from dropdtw.costs import cosine
from dropdtw.files.progress import Progress, reporter, ticking
from dropdtw.problem.inputs import Array, runs
from reproduction.common.pools import Videos
from reproduction.data import tmnist

EVENTS = 2
DROPS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
TEMPERATURES = (0.05, 0.1, 0.2)


@dataclass(frozen=True, eq=False)
class Compilation:
    """The match costs of a query and a sequence, and a mask of the sequence's frames that show the event."""

    C: Array
    truth: Array
    medley: tmnist.Medley


def sequences(pool: Sequence[Videos], count: int, seed: Sequence[int]) -> list[Compilation]:
    """Compose random sequences from a pool of clips."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        plan = tmnist.medley(len(pool[0].full), len(pool), rng, EVENTS)
        parts = [pool[copy].part[kind] for copy, kind in plan.clips]
        query = np.concatenate([pool[copy].full[kind] for copy, kind in plan.query])
        truth = plan.is_event([len(part) for part in parts])
        made.append(Compilation(cosine(query, np.concatenate(parts)), truth, plan))
    return made


def longest_runs(matched: Array, count: int = EVENTS) -> Array:
    """The paper's rule: the longest runs of matched frames (ties go to the first), (N,) bool.

    >>> longest_runs(np.array([1, 0, 1, 1, 0, 1, 1, 1]) == 1).astype(int)
    array([0, 0, 1, 1, 0, 1, 1, 1])
    """
    found = np.zeros(len(matched), bool)
    for start, stop in sorted(runs(matched), key=lambda run: run[0] - run[1])[:count]:
        found[start:stop] = True
    return found


def best_intervals(probability: Array, count: int = EVENTS) -> Array:
    """The `count` intervals with the highest expected frame accuracy, (N,) bool.

    A frame is wrong with probability 1 − p inside an interval and p outside: Drop-DTW of `count` rows with those costs.

    >>> best_intervals(np.array([0.9, 0.9, 0.4, 0.9, 0.1, 0.1, 0.6, 0.2]), 2).astype(int)
    array([1, 1, 1, 1, 0, 0, 1, 0])
    """
    p = np.clip(probability, 0.0, 1.0)  # rounding can push sums of probabilities past 1
    inside = np.tile(1 - p, (count, 1))
    return ~dropdtw.solve(inside, drop_x=p, method="steps").dropped_x


@dataclass(frozen=True)
class Setting:
    """The drop cost of both sides, and the temperature of the posterior if it is used."""

    drop: float
    gamma: float | None = None

    def find(self, C: Array) -> Array:
        """Find the frames of the event."""
        if self.gamma is None:
            return longest_runs(~dropdtw.solve(C, self.drop, self.drop).dropped_x)
        return best_intervals(1 - dropdtw.posterior(C, drop_x=self.drop, drop_z=self.drop, gamma=self.gamma).drop_x)

    def __str__(self) -> str:
        return f"d {self.drop:g}" + ("" if self.gamma is None else f", γ {self.gamma:g}")


ROWS = {
    "Drop-DTW, longest runs": tuple(Setting(d) for d in DROPS),
    "Drop-DTW, posterior": tuple(Setting(d, g) for d, g in product(DROPS, TEMPERATURES)),
}


@dataclass(frozen=True, eq=False)
class Localization:
    """The result: the chosen setting of each row, and the accuracy and IoU of each sequence, (count,)."""

    chosen: dict[str, Setting]
    accuracy: dict[str, Array]
    iou: dict[str, Array]


def scores(setting: Setting | None, these: Sequence[Compilation]) -> tuple[Array, Array]:
    """Accuracy and IoU of each sequence; the setting None finds nothing."""
    accuracy, iou = np.zeros((2, len(these)))
    for k, one in enumerate(these):
        found = np.zeros(len(one.truth), bool) if setting is None else setting.find(one.C)
        labels, truth = (np.where(mask, 0, metrics.BACKGROUND) for mask in (found, one.truth))
        accuracy[k], iou[k] = metrics.frame_accuracy(labels, truth), metrics.iou(labels, truth)
    return accuracy, iou


def run(
    test: Sequence[Videos],
    validation: Sequence[Videos],
    *,
    count: int = 1000,
    seed: int = 0,
    progress: Progress = None,
) -> Localization:
    """Tune the setting of each row on sequences of other clips, by accuracy + IoU; then test on `count` sequences."""
    tuning = sequences(validation, max(10, count // 4), [seed, 1])
    testing = sequences(test, count, [seed, 0])
    report = reporter("localization", progress)
    total = sum(map(len, ROWS.values())) + len(ROWS)
    done = 0
    chosen, accuracy, iou = {}, {}, {}
    with ticking(report):
        for name, settings in ROWS.items():
            tried = []
            for setting in settings:
                tried.append(float(np.sum([np.mean(values) for values in scores(setting, tuning)])))
                done += 1
                report(done, total)
            chosen[name] = settings[int(np.argmax(tried))]
            accuracy[name], iou[name] = scores(chosen[name], testing)
            done += 1
            report(done, total)
    accuracy["nothing found"], iou["nothing found"] = scores(None, testing)
    return Localization(chosen, accuracy, iou)
