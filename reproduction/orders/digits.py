"""`tmnist-steps` with independent steps shuffled: real digits in videos that follow a partial order.

Each task of the stand-in gets a random partial order of its events that agrees with its list. Each video shows the
events in a random order that the partial order allows. Models train with the list, the graph or the true order. All are
tested with the graph, because the true order of a new video is unknown.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from dropdtw.orders import Order, as_order, before
from dropdtw.orders.poset import Poset
from dropdtw.problem.inputs import Array
from reproduction.common.cache import Arrays, fingerprint
from reproduction.common.parallel import Work
from reproduction.common.training import Plan
from reproduction.data.steps import StepDataset, StepVideo
from reproduction.orders import random_orders
from reproduction.orders.random_orders import random_extension, random_pairs
from reproduction.orders.settings import Settings
from reproduction.steps import inference, model, stand_in, training
from reproduction.steps.model import Objective
from reproduction.steps.splits import Source, Splits
from reproduction.steps.stand_in import Procedures, Task
from reproduction.steps.tables import TRIPLE

if TYPE_CHECKING:
    from reproduction.common.pools import Videos


@dataclass(frozen=True)
class Row:
    """A row of the table. objective : training objective.   order : order known in training: list, graph or true."""

    objective: Objective
    order: str = "list"


ROWS: Final[dict[str, Row]] = {
    "features before training": Row(Objective("none", cluster=False)),
    "no order (L_clust alone)": Row(Objective("none")),
    "list": Row(Objective("drop-percentile")),
    "graph": Row(Objective("drop-percentile"), "graph"),
    "true order (bound)": Row(Objective("drop-percentile"), "true"),
}


def shuffled(
    pool: Sequence[Videos], steps: Array, how: Procedures, split: int, *, freedom: float, order: str
) -> StepDataset:
    """Like `stand_in.data_set`, but videos follow a partial order.

    order : the order given to each training video: "list", "graph" or "true"; other splits get the graph.
    """
    tasks = stand_in.tasks(how, len(steps))
    pairs = [
        random_pairs(task.events, freedom, np.random.default_rng([how.seed, 3, k])) for k, task in enumerate(tasks)
    ]
    names = [f"{task.name}, video {k}" for task in tasks for k in range(how.videos)]
    known = order if split == 0 else "graph"

    def read(index: int) -> StepVideo:
        task, related = tasks[index // how.videos], pairs[index // how.videos]
        rng = np.random.default_rng([how.seed, 4, split, index])
        true = random_extension(Poset(len(task.events), related), rng)
        said: dict[str, Order | None] = {
            "list": None, "graph": before(len(task.events), related), "true": as_order(true),
        }  # fmt: skip
        as_shown = Task(task.name, tuple(task.events[row] for row in true))
        video = stand_in.video(names[index], as_shown, pool, steps, how, rng)
        return relisted(video, true, said[known])

    return StepDataset(names, [task.name for task in tasks for _ in range(how.videos)], read, cache=len(names))


def relisted(video: StepVideo, true: Sequence[int], order: Order | None) -> StepVideo:
    """Put the steps of a video into the recipe's order; its k-th step is the recipe's true[k]-th."""
    rows = np.argsort(true)
    return replace(
        video,
        step_ids=video.step_ids[rows],
        step_texts=tuple(video.step_texts[row] for row in rows),
        steps=video.steps[rows],
        segments=tuple((true[row], start, stop) for row, start, stop in video.segments or ()),
        order=order,
    )


CODE: Final = (sys.modules[__name__], random_orders, training, model, inference)
"""Modules that affect a training; a change in them invalidates its cached result."""


@dataclass(frozen=True)
class Digits(Work):
    """Trains a row with a seed, unless cached, and gives its test recall, accuracy and IoU in percent."""

    settings: Settings = field(default_factory=Settings)

    def __call__(self, item: tuple[str, int]) -> tuple[float, ...]:
        """Compute the scores of a row and a seed."""
        name, seed = item
        row, s = ROWS[name], self.settings
        source = self._source()
        make = partial(shuffled, freedom=s.freedom, order=row.order)
        plan = Plan(epochs=s.digit_epochs, seed=seed, accelerator=self.device)
        key = fingerprint(*CODE, stand_in.key(source), s.freedom, asdict(row), asdict(plan))

        def trained() -> Arrays:
            data = stand_in.splits(source, seed, make)
            model, _ = training.train_model(data.train, data.val, row.objective, plan, progress=False)
            found = training.evaluate(model, data.test, training.choose_setting(model, data.val))
            return {"scores": np.array([100 * getattr(found, name) for name in TRIPLE])}

        return tuple(self.cache.arrays("digits", key, trained)["scores"].tolist())

    def prepare(self) -> Splits:
        """Train the encoder and encode the clips once, before several processes use them."""
        return stand_in.splits(self._source(), self.settings.seed)

    def _source(self) -> Source:
        s = self.settings
        mnist, encoder = (None if path is None else Path(path) for path in (s.mnist, s.encoder))
        return Source(self.out / "cache", mnist=mnist, encoder=encoder, quick=s.small)
