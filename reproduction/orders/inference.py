"""Inference on simulated features: how much it helps to know the order of steps as a list or as a graph.

Each way tunes its drop costs on separate recordings that are not in the test set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np

import dropdtw
from dropdtw import metrics
from dropdtw.costs import cosine
from dropdtw.orders import Order
from dropdtw.problem.inputs import Array
from reproduction.common.cache import Arrays, fingerprint
from reproduction.common.parallel import Work
from reproduction.data import captaincook4d
from reproduction.data.captaincook4d import Recipe, done
from reproduction.data.records import Record
from reproduction.data.steps import StepVideo
from reproduction.orders import random_orders, recordings
from reproduction.orders.recordings import Recordings, noisy
from reproduction.orders.settings import Settings

SCORES: Final = ("accuracy", "IoU", "IoU of a step")
"""Scores of a recording; "IoU" takes all frames together, "IoU of a step" is the mean over its steps."""


@dataclass(frozen=True)
class Way:
    """What a method knows about the order of a recording's steps.

    rows : the steps to find.   order : their order; None: as in `rows`.   drops_z : whether steps may be missing.
    ordered : whether any order is known; if not, each frame is labeled on its own.
    """

    rows: Callable[[Record, Recipe], Sequence[int]]
    order: Callable[[Recipe], Order | None] = lambda recipe: None
    drops_z: bool = False
    ordered: bool = True


def _all(record: Record, recipe: Recipe) -> Sequence[int]:
    return range(len(recipe.steps))


def _listed(record: Record, recipe: Recipe) -> Sequence[int]:
    return recipe.listed


WAYS: Final[dict[str, Way]] = {
    "no order": Way(_all, ordered=False),
    "list": Way(_listed),
    "list, steps may be dropped": Way(_listed, drops_z=True),
    "graph": Way(_all, lambda recipe: recipe.order),
    "graph, steps may be dropped": Way(_all, lambda recipe: recipe.order, drops_z=True),
    "true order (bound)": Way(lambda record, recipe: done(record)),
}
"""A list is the recipe in one fixed order that its graph allows. The true order has each performed step once."""


@dataclass(frozen=True)
class Drops:
    """Tuned drop costs. percentile : of C, for a frame.   factor : for a step, as a multiple of that of a frame."""

    percentile: float
    factor: float = 0.0

    def __str__(self) -> str:
        return f"{self.percentile:g}" + (f", × {self.factor:g}" if self.factor else "")


def predict(way: Way, C: Array, record: Record, recipe: Recipe, drops: Drops) -> Array:
    """Predict the step of each frame, −1 for background."""
    drop_x = float(np.percentile(C, drops.percentile))
    if not way.ordered:
        return np.where(C.min(axis=0) < drop_x, C.argmin(axis=0), -1)
    rows = np.asarray(way.rows(record, recipe))
    found = dropdtw.solve(
        C[rows],
        drop_x,
        drops.factor * drop_x if way.drops_z else None,
        many_to_one=len(rows) > C.shape[1],
        contiguous=True,
        order=way.order(recipe),
    )
    return np.append(rows, -1)[found.labels]


def scored(labels: Array, video: StepVideo) -> list[float]:
    """Compute the `SCORES` of a recording."""
    true = video.rows
    return [metrics.frame_accuracy(labels, true), metrics.iou(labels, true), step_iou(labels, true)]


def step_iou(labels: Array, true: Array) -> float:
    """Intersection over union, averaged over the true steps.

    >>> step_iou(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))           # 2/3 and 1/2
    0.5833333333333333
    """
    steps = set(true.tolist()) - {-1}
    found = [((labels == k) & (true == k)).sum() / ((labels == k) | (true == k)).sum() for k in sorted(steps)]
    return float(np.mean(found)) if found else 1.0


@dataclass(frozen=True)
class Case:
    """A way of `WAYS` at a noise level, with the recordings and features of a seed."""

    way: str
    noise: float
    seed: int


@dataclass(frozen=True)
class Inference(Work):
    """Tunes and tests a case, unless cached: {"chosen": (2,), "scores": (recordings, 3)}."""

    settings: Settings = field(default_factory=Settings)

    @cached_property
    def data(self) -> Recordings:
        """The recordings to tune and test on."""
        return recordings_of(self.folder, self.settings)

    def __call__(self, case: Case) -> Arrays:
        """Compute the scores of a way on the test recordings of a seed."""
        s = self.settings
        sizes = [s.tested, s.tuned, list(s.percentiles), list(s.factors)]
        key = fingerprint(code(), self.data.source, sizes, asdict(case))
        return self.cache.arrays("inference", key, lambda: self._run(case))

    def _run(self, case: Case) -> Arrays:
        way, s = WAYS[case.way], self.settings
        test, tune = self.data.parts(case.seed, s.tested, s.tuned)
        grid = [Drops(*both) for both in product(s.percentiles, s.factors if way.drops_z else (0.0,))]
        best = max(grid, key=lambda drops: self._scores(way, tune, case, drops)[:, :2].mean())
        return {
            "chosen": np.array([best.percentile, best.factor]),
            "scores": self._scores(way, test, case, best),
        }

    def _scores(self, way: Way, records: Sequence[Record], case: Case, drops: Drops) -> Array:
        found = []
        for record in records:
            recipe = self.data.recipe(record)
            video = noisy(record, recipe, case.noise, case.seed)
            C = cosine(video.steps, video.frames)
            found.append(scored(predict(way, C, record, recipe, drops), video))
        return np.array(found)


def recordings_of(folder: str | None, settings: Settings) -> Recordings:
    """CaptainCook4D's recordings, or a stand-in without a folder."""
    if folder is None:
        return recordings.stand_in(settings.clips, settings.seed)
    return recordings.of_captaincook4d(folder, settings.most_nodes)


def code() -> str:
    """A fingerprint of the code that results depend on; a change invalidates the cache."""
    return fingerprint(sys.modules[__name__], recordings, random_orders, captaincook4d)
