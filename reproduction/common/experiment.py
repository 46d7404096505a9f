"""The shape of every experiment: a `Run` computes an outcome and writes results.json and report.html.

An `Experiment` is a run that trains models: it caches trainings, runs them in parallel, and tunes settings by short
trainings. A subclass supplies the data, the model and the texts.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from torch import nn

from dropdtw.files import atomic
from dropdtw.files.progress import Progress
from reproduction.common import losses, training
from reproduction.common.cache import Arrays, fingerprint
from reproduction.common.parallel import Work, results
from reproduction.common.report import Report, Table

Recipe = TypeVar("Recipe")
Condition = TypeVar("Condition")
Place = TypeVar("Place")


class Sourced(Protocol):
    """Data that describe their source."""

    @property
    def source(self) -> str:
        """A description, with the number of items."""


Data = TypeVar("Data", bound=Sourced)


@dataclass(frozen=True)
class Settings:
    """How much of an experiment to run.

    seed : random seed.   seeds : number of models to train of each kind.   pairs : pairs per epoch.
    lr : learning rate if none is tuned.   percentiles : drop costs to choose from.   clips : size of the stand-in.
    """

    seed: int = 0
    seeds: int = 3
    epochs: int = 60
    pairs: int = 1024
    batch: int = 32
    lr: float = 1e-3
    percentiles: tuple[float, ...] = ()
    clips: int = 40

    def sizes(self) -> list[object]:
        """The settings that every training depends on."""
        return [self.seed, self.epochs, self.pairs, self.batch, self.lr, self.clips]

    def batches(self, epoch: int) -> list[list[int]]:
        """The indices of an epoch's pairs, in batches; indices never repeat."""
        numbers = range(epoch * self.pairs, (epoch + 1) * self.pairs)
        return [list(numbers[k : k + self.batch]) for k in range(0, self.pairs, self.batch)]


@dataclass(frozen=True)
class Training(Generic[Recipe, Condition]):
    """One training run.

    recipe : how to train.   condition : the data to train on, such as a share of outliers.
    choice : whether this run only tunes settings: it takes half the epochs and returns the validation score. Other
        runs test the trained model.
    """

    recipe: Recipe
    condition: Condition
    seed: int
    choice: bool = False


@dataclass(frozen=True)
class Dataset(Generic[Data]):
    """A data set of an experiment.

    fits : whether a folder contains this data set; the folder is None if the user gave none.
    load : reads or generates the data, from the folder and the experiment's settings.
    """

    fits: Callable[[Any], bool]
    load: Callable[[Any, Any], Data]


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment. results : for results.json.   tables : to print.   compose : fills the report."""

    results: dict[str, object]
    tables: Sequence[Table]
    compose: Callable[[Report], None]


@dataclass(frozen=True)
class Run(Work, ABC):
    """An experiment: its data, its texts and its outcome."""

    settings: Any = None

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    """First paragraph of the report."""
    data_name: ClassVar[str]
    """The kind of data, such as "videos"."""

    @property
    @abstractmethod
    def source(self) -> str:
        """A description of the data, with the number of items."""

    @abstractmethod
    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Compute everything. say : prints what is known on the way."""

    @classmethod
    def reproduce(
        cls,
        settings: Any,
        out: Path,
        *,
        folder: str | None = None,
        device: str = "cpu",
        processes: int = 1,
        command: str = "",
        say: Callable[[str], None] = print,
        progress: Progress = None,
        **more: Any,
    ) -> dict[str, object]:
        """Run the experiment and write its report to `out`; return the content of results.json.

        folder : folder of the data set; None runs a stand-in of moving digits.   processes : parallel trainings.
        command : command line to show in the report.   more : fields of the subclass, which the results do not record.
        """
        out.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        work = cls(folder, out, device, settings, **more)
        say(f"{cls.data_name}: {work.source}")
        found = work.outcome(processes, say, progress)
        for table in found.tables:
            say(f"\n{table.text()}")
        about = {"experiment": cls.name, cls.data_name: work.source, "settings": asdict(settings)}
        whole = {**about, **found.results}
        atomic.write_json(out / "results.json", whole)
        report = Report(cls.title, out)
        report.introduce(cls.about, command, f"{cls.data_name.capitalize()}: {work.source}.")
        found.compose(report)
        say(f"report: {report.write()} ({time.monotonic() - start:.0f} s)")
        return whole


@dataclass(frozen=True)
class Experiment(Run, Generic[Data, Recipe, Condition]):
    """Runs a training unless it is cached. Gives {"score": …} when tuning, otherwise the result of `test`."""

    settings: Settings = field(default_factory=Settings)

    code: ClassVar[tuple[ModuleType, ...]]
    """Modules that affect a training; a change in them invalidates its cached result."""
    datasets: ClassVar[Mapping[str, Dataset[Any]]]
    """Data sets by name; the first that fits the folder is used."""

    @cached_property
    def data(self) -> Data:
        """The data to train and test on."""
        found: Data = next(d for d in self.datasets.values() if d.fits(self.folder)).load(self.folder, self.settings)
        return found

    @property
    def source(self) -> str:
        """A description of the data, with the number of items."""
        return self.data.source

    @abstractmethod
    def label(self, recipe: Recipe, condition: Condition) -> str:
        """Name the folder of a training."""

    @abstractmethod
    def train(self, training: Training[Recipe, Condition], epochs: int, out: Path | None) -> tuple[nn.Module, float]:
        """Train a model; return it with its validation score."""

    @abstractmethod
    def test(self, model: nn.Module, training: Training[Recipe, Condition]) -> Arrays:
        """Score a trained model on the test data."""

    def __call__(self, one: Training[Recipe, Condition]) -> Arrays:
        """Run a training, or read its scores from the cache."""
        total = self.settings.epochs
        key = fingerprint(
            *self.code, losses, training, self.data.source, self.settings.sizes(), self.device, asdict(one)
        )

        def make() -> Arrays:
            if one.choice:
                return {"score": np.array(self.train(one, max(1, total // 2), None)[1])}
            folder = self.cache.folder / "runs" / f"{self.label(one.recipe, one.condition)}-{one.seed}-{key}"
            return self.test(self.train(one, total, folder)[0], one)

        return self.cache.arrays("choice" if one.choice else "scores", key, make)

    def best(
        self,
        options: Mapping[Place, Sequence[Recipe]],
        condition: Callable[[Place], Condition],
        processes: int = 1,
        progress: Progress = None,
    ) -> dict[Place, Recipe]:
        """For each key, choose the recipe with the best validation score on one seed; skip single options."""
        trainings = {
            place: [Training(recipe, condition(place), self.settings.seed, choice=True) for recipe in some]
            for place, some in options.items()
            if len(some) > 1
        }
        done = results(self, trainings, processes, progress)
        first = {place: int(np.argmax([found["score"] for found in some])) for place, some in done.items()}
        return {place: some[first.get(place, 0)] for place, some in options.items()}

    def every_seed(
        self, chosen: Mapping[Place, tuple[Recipe, Condition]], processes: int = 1, progress: Progress = None
    ) -> dict[Place, list[Arrays]]:
        """Train and test each chosen recipe with every seed; cached results are reused."""
        seeds = range(self.settings.seed, self.settings.seed + self.settings.seeds)
        trainings = {place: [Training(*what, seed) for seed in seeds] for place, what in chosen.items()}
        return results(self, trainings, processes, progress)
