"""Train on the order of gestures alone, with junk in the trials: `python -m reproduction jigsaws`.

Each subject but one is tested in turn. Settings are chosen on the remaining subject, which is never tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Final

import numpy as np
from torch import nn

from dropdtw.files.progress import Progress
from reproduction.common import experiment
from reproduction.common.cache import Arrays
from reproduction.common.experiment import Outcome, Training
from reproduction.jigsaws import model, training, trials
from reproduction.jigsaws import report as reports
from reproduction.jigsaws.model import LOSSES, GestureModel, Objective
from reproduction.jigsaws.report import Row
from reproduction.jigsaws.training import choose_setting, found, trained
from reproduction.jigsaws.trials import Jigsaws
from reproduction.steps import inference
from reproduction.steps.inference import by_video
from reproduction.steps.splits import Splits

HELD: Final = "S03"
"""The subject on which the network, the recipe and all settings were chosen."""

Place = tuple[float, str, str]
"""The share of junk, a row of the table, and the tested subject."""

FEW: Final = ("flat", "smooth", "d3tw", "drop-percentile", "drop-contrast", "ctc", "supervised")
"""Losses at the shares of junk in `Settings.few`."""


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The settings of this experiment, in addition to those that all experiments share.

    junk : its shares for all losses.   few : its shares for some losses.   clusters : weights of L_clust.
    flat : epochs of the flat start.   subjects : how many subjects to test.
    """

    epochs: int = 30
    batch: int = 16
    percentiles: tuple[float, ...] = (10.0, 20.0, 30.0)
    junk: tuple[float, ...] = (0.4, 0.0)
    few: tuple[float, ...] = (0.2, 0.6)
    clusters: tuple[float, ...] = (0.1, 0.5)
    flat: int = 6
    held: str = HELD
    subjects: int = 100

    def sizes(self) -> list[object]:
        """The settings that every training depends on."""
        return [self.epochs, self.batch, self.lr, self.flat, self.held]

    def quick(self) -> Settings:
        """A version that runs in seconds, as a smoke test."""
        return replace(self, seeds=2, epochs=2, flat=1, percentiles=(20.0,), clusters=(0.1,), few=(), subjects=1)


@dataclass(frozen=True)
class Condition:
    """The trials of a training. subject : who is tested.   junk : share of junk in all trials."""

    subject: str
    junk: float


Chosen = tuple[Objective, Condition]


@dataclass(frozen=True)
class Transcripts(experiment.Experiment[Jigsaws, Objective, Condition]):
    """A test gives {"videos": (V, 4), "recorded": (V, 4), "setting": ()}: scores with the junk, and as recorded."""

    settings: Settings = field(default_factory=Settings)

    name = "jigsaws"
    title = "Training from transcripts on kinematics of surgeons"
    about = (
        "A small network learns to recognize the gestures of surgeons. Of each training trial it knows the order of "
        "gestures only. Frames of other tasks are mixed in, and Drop-DTW may drop them. At test time Drop-DTW says "
        "which frames show which gesture, whatever the loss was in training."
    )
    data_name = "trials"
    code = (model, training, trials, inference)
    datasets = {}  # noqa: RUF012  there is one

    @cached_property
    def data(self) -> Jigsaws:
        """The trials."""
        if self.folder is None:
            raise ValueError("this experiment needs --folder, the folder of jigsaws.npz")
        return _data(self.folder, self.settings.held)

    def label(self, recipe: Objective, condition: Condition) -> str:
        """The loss, the subject and the share of junk."""
        return f"{recipe.loss}-{condition.subject}-{100 * condition.junk:.0f}"

    def train(
        self, training_: Training[Objective, Condition], epochs: int, out: Path | None
    ) -> tuple[nn.Module, float]:
        """Train a model for all epochs; return it with its IoU on the subject held for choices."""
        data = _splits(self.folder or "", self.settings.held, training_.condition)
        made = trained(
            data.train, training_.recipe, self.settings, self.settings.flat, training_.seed, epochs, self.device
        )
        return made, choose_setting(made, data.val)[1]

    def test(self, model: nn.Module, training_: Training[Objective, Condition]) -> Arrays:
        """Score the trials of the tested subject, with the junk and as recorded."""
        assert isinstance(model, GestureModel)
        data = _splits(self.folder or "", self.settings.held, training_.condition)
        setting, validated = choose_setting(model, data.val)
        recorded = self.data.recorded(training_.condition.subject)
        return {
            "videos": by_video(found(model, data.test, setting), "step"),
            "recorded": by_video(found(model, recorded, setting), "step"),
            "setting": np.array(setting),
            "validated": np.array(validated),
        }

    @property
    def tested(self) -> list[str]:
        """The subjects to test."""
        return self.data.tested[: self.settings.subjects]

    @property
    def rows(self) -> dict[float, dict[str, Objective]]:
        """The objectives of each share of junk, by row; percentiles are still to be chosen."""
        s = self.settings
        every = {entry.title: Objective(name) for name, entry in LOSSES.items()}
        clustered = {
            f"{entry.title} + L_clust": Objective(name, cluster=s.clusters[0])
            for name, entry in LOSSES.items()
            if entry.loss is not None
        }
        few = {LOSSES[name].title: Objective(name) for name in FEW}
        return {**dict.fromkeys(s.junk, every | clustered), **dict.fromkeys(s.few, few)}

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Choose percentiles for each subject and share of junk, train and test."""
        chosen = self.chosen(processes, progress)
        done = self.every_seed(chosen, processes, progress)
        scores = {junk: {row: self._row(done, chosen, junk, row) for row in rows} for junk, rows in self.rows.items()}
        tables = reports.tables(scores)
        return Outcome(reports.results(scores), tables, partial(reports.compose, scores=scores, tables=tables))

    def chosen(self, processes: int = 1, progress: Progress = None) -> dict[Place, Chosen]:
        """The recipe of each row and subject: the best percentile without L_clust, then the best weight of L_clust."""
        s = self.settings
        places: dict[Place, Objective] = {
            (junk, row, subject): objective
            for junk, rows in self.rows.items()
            for row, objective in rows.items()
            for subject in self.tested
        }

        def condition(place: Place) -> Condition:
            return Condition(place[2], place[0])

        options = {
            place: [replace(one, percentile=p) for p in s.percentiles] if drops_by_percentile(one) else [one]
            for place, one in places.items()
            if not one.cluster
        }
        found = self.best(options, condition, processes, progress)
        percentile = {(place[0], one.loss, place[2]): one.percentile for place, one in found.items()}
        options = {
            place: [replace(one, percentile=percentile[place[0], one.loss, place[2]], cluster=w) for w in s.clusters]
            for place, one in places.items()
            if one.cluster
        }
        found |= self.best(options, condition, processes, progress)
        return {place: (found[place], condition(place)) for place in places}

    def _row(self, done: Mapping[Place, list[Arrays]], chosen: Mapping[Place, Chosen], junk: float, row: str) -> Row:
        """The scores of all subjects in a row of a table."""
        each = [(chosen[junk, row, subject][0], done[junk, row, subject]) for subject in self.tested]
        videos, recorded = (
            [np.stack([one[part] for one in some]) for _, some in each] for part in ("videos", "recorded")
        )
        return Row(videos, recorded, [one.percentile for one, _ in each if drops_by_percentile(one)])


def drops_by_percentile(objective: Objective) -> bool:
    """Whether the drop cost in training is a percentile."""
    entry = objective.entry
    return entry.loss is not None and entry.loss.drops and not entry.background


@lru_cache(maxsize=1)
def _data(folder: str, held: str) -> Jigsaws:
    return Jigsaws.load(folder, held)


@lru_cache(maxsize=32)
def _splits(folder: str, held: str, condition: Condition) -> Splits:
    return _data(folder, held).splits(condition.subject, condition.junk)
