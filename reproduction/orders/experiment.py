"""Compare knowing the order of steps as a list, as a graph and as the true order: `python -m reproduction orders`.

Three experiments: inference on recordings of recipes with simulated features, training on the same recordings, and
training on moving digits whose videos follow a partial order. Each case is cached, so an interrupted run can continue.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from torch import nn

from dropdtw.costs import cosine
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from reproduction.common import experiment
from reproduction.common.cache import Arrays
from reproduction.common.experiment import Dataset, Outcome, Training
from reproduction.common.parallel import results
from reproduction.data import captaincook4d
from reproduction.orders import inference, linear, random_orders, recordings
from reproduction.orders import report as reports
from reproduction.orders.digits import ROWS, Digits
from reproduction.orders.inference import WAYS, Case, Inference, recordings_of
from reproduction.orders.linear import TRAINED, UNTRAINED, LinearMap
from reproduction.orders.recordings import Recordings
from reproduction.orders.settings import Settings

DATASETS: Final = {"recordings": Dataset(lambda folder: True, recordings_of)}


@dataclass(frozen=True)
class Orders(experiment.Experiment[Recordings, str, str]):
    """The recipe of a training is the kind of order it uses; a test gives {"accuracy": ()}."""

    settings: Settings = field(default_factory=Settings)

    name = "orders"
    title = "Steps in any order"
    about = (
        "Recipes allow their steps in many orders. How much does it help to know the recipe as a graph instead of a "
        "list, and how much would the true order help? The features of recordings are simulated; those of digits are "
        "real."
    )
    data_name = "recordings"
    code = (inference, linear, recordings, random_orders, captaincook4d)
    datasets = DATASETS

    def label(self, recipe: str, condition: str) -> str:
        """The kind of order that the map is trained with."""
        return recipe.split()[0]

    def train(self, training: Training[str, str], epochs: int, out: Path | None) -> tuple[nn.Module, float]:
        """Train a linear map; it has no validation score."""
        model = linear.train(
            self.data, training.recipe, self.settings, training.seed, epochs=epochs, device=self.device, out=out
        )
        return model, math.nan

    def test(self, model: nn.Module, training: Training[str, str]) -> Arrays:
        """The accuracy of a map on the frames of the test recordings."""
        assert isinstance(model, LinearMap)
        return {"accuracy": np.array(linear.judged(model, self.data, self.settings))}

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Run the parts selected in the settings."""
        found = reports.Found(
            self.inferred(processes, progress) if "inference" in self.settings.parts else {},
            self.mapped(processes, progress) if "training" in self.settings.parts else {},
            self.digits(processes, progress) if "digits" in self.settings.parts else {},
        )
        tables = reports.tables(found)
        pictured = self._pictured if found.inference else None
        compose = partial(reports.compose, found=found, tables=tables, pictured=pictured)
        return Outcome(reports.results(found), tables, compose)

    def inferred(self, processes: int = 1, progress: Progress = None) -> dict[float, dict[str, list[Arrays]]]:
        """The chosen drop costs and scores of every seed, by noise and way."""
        s = self.settings
        cases = {
            (noise, way): [Case(way, noise, seed) for seed in range(s.seed, s.seed + s.seeds)]
            for noise, way in product(s.noises, WAYS)
        }
        done = results(Inference(self.folder, self.out, self.device, s), cases, processes, progress, "inference")
        return {noise: {way: done[noise, way] for way in WAYS} for noise in s.noises}

    def mapped(self, processes: int = 1, progress: Progress = None) -> dict[str, Array]:
        """The accuracy (seeds,) of linear maps, by the kind of order they were trained with."""
        done = self.every_seed({way: (way, "") for way in (UNTRAINED, *TRAINED)}, processes, progress)
        return {way: np.array([float(one["accuracy"]) for one in some]) for way, some in done.items()}

    def digits(self, processes: int = 1, progress: Progress = None) -> dict[str, Array]:
        """Recall, accuracy and IoU on digits in percent, (seeds, 3) by row."""
        s = self.settings
        work = Digits(self.folder, self.out, self.device, s)
        if processes > 1:
            work.prepare()
        items = {name: [(name, seed) for seed in range(s.seed, s.seed + s.seeds)] for name in ROWS}
        return {name: np.array(some) for name, some in results(work, items, processes, progress).items()}

    def _pictured(self) -> reports.Pictured:
        """A recording chosen only by its number of segments, and the result of each way on it at the lowest noise."""
        noise, seed = self.settings.noises[0], self.settings.seed
        (test, _) = self.data.parts(seed, self.settings.tested, self.settings.tuned)
        record = sorted(test, key=lambda r: (len(r.segments or ()), r.name))[len(test) // 3]
        recipe = self.data.recipe(record)
        video = recordings.noisy(record, recipe, noise, seed)
        work = Inference(self.folder, self.out, self.device, self.settings)
        rows = {"truth": video.rows}
        for name in ("true order (bound)", "graph", "list", "no order"):
            drops = inference.Drops(*work(Case(name, noise, seed))["chosen"].tolist())
            C = cosine(video.steps, video.frames)
            rows[name] = inference.predict(WAYS[name], C, record, recipe, drops)
        return reports.Pictured(video, rows, noise)
