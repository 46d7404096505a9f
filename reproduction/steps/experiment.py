"""Multi-step localization (paper Section 4.2): the tables, from the data to the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from torch import nn

from dropdtw.files import atomic
from dropdtw.files.progress import Progress, reporter, ticking
from dropdtw.problem.inputs import Array
from reproduction.common import experiment
from reproduction.common.cache import Arrays
from reproduction.common.experiment import Outcome, Training
from reproduction.common.registry import find
from reproduction.common.report import Report, Table
from reproduction.common.training import Plan
from reproduction.steps import inference, losses, model, tables, training
from reproduction.steps.datasets import DATASETS, STAND_IN, load_folds, load_splits
from reproduction.steps.model import Objective, StepModel
from reproduction.steps.splits import Source, Splits


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The settings of this experiment, in addition to those that all experiments share.

    tables : keys of `tables.TITLES`.   datasets : keys of `DATASETS`, each with its own tables.
    mode : how scores are counted.   mnist, encoder : files of the stand-ins.   small : tiny data.
    """

    seeds: int = 5
    epochs: int = 10
    lr: float = 3e-4
    tables: tuple[str, ...] = tuple(tables.TITLES)
    datasets: tuple[str, ...] = (STAND_IN,)
    mode: inference.Mode = "step"
    mnist: str | None = None
    encoder: str | None = None
    small: bool = False

    def sizes(self) -> list[object]:
        """The settings that every training depends on; the data are part of `StepData.source`."""
        return [self.epochs, self.lr, self.mode]

    def quick(self) -> Settings:
        """A version that runs in seconds, as a smoke test."""
        return replace(self, seeds=2, epochs=2, small=True)


@dataclass(frozen=True)
class StepData:
    """The data sets of the settings, loaded for a seed at a time."""

    where: Source
    names: tuple[str, ...]

    @property
    def source(self) -> str:
        """Titles, with what identifies data made by code."""
        keys = {name: find(DATASETS, name, "--data").key for name in self.names}
        return "; ".join(
            DATASETS[name].title + ("" if key is None else f" ({key(self.where)})") for name, key in keys.items()
        )

    def splits(self, name: str, seed: int) -> Splits:
        """The three parts of a data set; the last ones are kept."""
        return _splits(self.where, name, seed)


@lru_cache(maxsize=1)
def _splits(where: Source, name: str, seed: int) -> Splits:
    return load_splits(name, where, seed)


@dataclass(frozen=True)
class Steps(experiment.Experiment[StepData, Objective, str]):
    """The condition of a training is its data set; a test gives {"scores": (3,), "setting": ()}."""

    settings: Settings = field(default_factory=Settings)

    name = "steps"
    title = "Drop-DTW for step localization"
    about = (
        "A small network on the frames learns from the order of steps alone. At test time Drop-DTW says which frames "
        "show which step, and which show none."
    )
    data_name = "data"
    code = (training, inference, model, losses)
    datasets = {}  # noqa: RUF012  those of this experiment are in `DATASETS`, and have folds for Table 2

    @cached_property
    def data(self) -> StepData:
        """The data to train and test on."""
        s = self.settings
        folder, mnist, encoder = (None if path is None else Path(path) for path in (self.folder, s.mnist, s.encoder))
        return StepData(Source(self.out / "cache", folder, mnist=mnist, encoder=encoder, quick=s.small), s.datasets)

    def label(self, recipe: Objective, condition: str) -> str:
        """The loss and the data set."""
        return f"{recipe.loss}-{condition}"

    def train(self, training_: Training[Objective, str], epochs: int, out: Path | None) -> tuple[nn.Module, float]:
        """Train a model; return it with its best validation recall."""
        data, s = self.data.splits(training_.condition, training_.seed), self.settings
        plan = Plan(epochs=epochs, lr=s.lr, seed=training_.seed, accelerator=self.device)
        made, done = training.train_model(data.train, data.val, training_.recipe, plan, progress=False)
        return made.to("cpu"), float("nan") if done is None else done.best["recall"]

    def test(self, model: nn.Module, training_: Training[Objective, str]) -> Arrays:
        """Tune the drop costs of inference on validation videos, and score the test videos in percent."""
        assert isinstance(model, StepModel)
        data = self.data.splits(training_.condition, training_.seed)
        setting = training.choose_setting(model, data.val, self.settings.mode)
        found = training.evaluate(model, data.test, setting, self.settings.mode)
        return {
            "scores": np.array([100 * getattr(found, name) for name in tables.TRIPLE]),
            "setting": np.array(setting),
        }

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Train the rows of all tables, each objective once, and compare methods of inference for Table 2."""
        s = self.settings
        for number in s.tables:
            find(tables.TITLES, number, "the table")
        trained = [number for number in s.tables if number in tables.ROWS]
        wanted = {objective for number in trained for objective in tables.ROWS[number].values()}
        wanted |= {tables.REFERENCES.get(number, tables.BEST) for number in trained}
        if trained:
            for name in s.datasets:
                self._check(name)
                self.data.splits(name, s.seed)  # train the encoder and encode the clips once, before several processes
        places = {(name, objective): (objective, name) for name in s.datasets for objective in wanted}
        found = {
            place: np.stack([one["scores"] for one in some])
            for place, some in self.every_seed(places, processes, progress).items()
        }
        made = {
            f"table-{number}-{part}": table
            for name in s.datasets
            for number in s.tables
            for part, table in self._tables(number, name, found, progress)
        }
        for name, table in made.items():
            atomic.write(self.out / f"{name}.txt", table.text() + "\n")
            atomic.write_json(self.out / f"{name}.json", asdict(table))
        scores = {
            f"{number}, {name}": {row: found[name, one].round(3).tolist() for row, one in tables.ROWS[number].items()}
            for name in s.datasets
            for number in trained
        }

        def compose(report: Report) -> None:
            for table in made.values():
                report.table(table)

        return Outcome({"scores": scores}, list(made.values()), compose)

    def _check(self, name: str) -> None:
        """Raise unless tables can be trained on a data set."""
        entry = find(DATASETS, name, "--data")
        if entry.key is None:
            able = ", ".join(other for other, entry in DATASETS.items() if entry.key is not None)
            raise ValueError(
                f"this table needs --data {able}; to train on {name}: python -m reproduction steps --data {name}"
            )

    def _tables(
        self, number: str, name: str, found: dict[tuple[str, Objective], Array], progress: Progress
    ) -> Iterator[tuple[str, Table]]:
        """The tables of a number on a data set, each with the name of its files."""
        mode = self.settings.mode
        counted = ", scored by occurrence" if mode == "occurrence" else ""
        if number in tables.ROWS:
            rows = {row: found[name, objective] for row, objective in tables.ROWS[number].items()}
            reference = found[name, tables.REFERENCES.get(number, tables.BEST)]
            yield name, tables.table(number, rows, DATASETS[name].title + counted, reference)
            return
        for title, folds in load_folds(name, self.data.where).items():
            report = reporter("methods", progress)
            with ticking(report):
                compared = inference.compare_methods(folds, DATASETS[name].chosen_by, report, mode)
            if title == DATASETS[name].title:
                yield name, tables.inference_table(compared, title + counted)
            else:
                yield f"{name}-{title.replace('/', '-')}", tables.scores_table(compared, title + counted)
