"""What the order of steps is worth as a list, as a graph and as the truth: `dropdtw reproduce orders`.

Three experiments: inference and training on recordings of recipes with simulated features, and training on moving
digits whose videos follow a partial order. Results are kept case by case, so a run that was stopped goes on.
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
from dropdtw.data import captaincook4d
from dropdtw.experiments.common import experiment
from dropdtw.experiments.common.cache import Arrays
from dropdtw.experiments.common.experiment import Dataset, Outcome, Training
from dropdtw.experiments.common.parallel import results
from dropdtw.experiments.orders import inference, linear, random_orders, recordings
from dropdtw.experiments.orders import report as reports
from dropdtw.experiments.orders.digits import ROWS, Digits
from dropdtw.experiments.orders.inference import WAYS, Case, Inference, recordings_of
from dropdtw.experiments.orders.linear import TRAINED, UNTRAINED, LinearMap
from dropdtw.experiments.orders.recordings import Recordings
from dropdtw.experiments.orders.settings import Settings
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array

DATASETS: Final = {"recordings": Dataset(lambda folder: True, recordings_of)}


@dataclass(frozen=True)
class Orders(experiment.Experiment[Recordings, str, str]):
    """The recipe of a training is what its map knows of orders; a test gives {"accuracy": ()}."""

    settings: Settings = field(default_factory=Settings)

    name = "orders"
    title = "Steps in any order"
    about = (
        "Recipes allow their steps in many orders. What is gained by knowing the recipe as a graph instead of a list, "
        "and what would be gained by knowing the true order? Features of recordings are simulated; those of digits are "
        "real."
    )
    data_name = "recordings"
    code = (inference, linear, recordings, random_orders, captaincook4d)
    datasets = DATASETS

    def label(self, recipe: str, condition: str) -> str:
        """What the map knows of orders."""
        return recipe.split()[0]

    def train(self, training: Training[str, str], epochs: int, out: Path | None) -> tuple[nn.Module, float]:
        """A linear map; it has no validation score."""
        model = linear.train(
            self.data, training.recipe, self.settings, training.seed, epochs=epochs, device=self.device, out=out
        )
        return model, math.nan

    def test(self, model: nn.Module) -> Arrays:
        """How many frames of test recordings a map names right."""
        assert isinstance(model, LinearMap)
        return {"accuracy": np.array(linear.judged(model, self.data, self.settings))}

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Run the parts that the settings name."""
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
        """By noise and way, what every seed chose and reached."""
        s = self.settings
        cases = {
            (noise, way): [Case(way, noise, seed) for seed in range(s.seed, s.seed + s.seeds)]
            for noise, way in product(s.noises, WAYS)
        }
        done = results(Inference(self.folder, self.out, self.device, s), cases, processes, progress, "inference")
        return {noise: {way: done[noise, way] for way in WAYS} for noise in s.noises}

    def mapped(self, processes: int = 1, progress: Progress = None) -> dict[str, Array]:
        """By what a linear map knew of orders, the share of frames it names right, (seeds,)."""
        done = self.every_seed({way: (way, "") for way in (UNTRAINED, *TRAINED)}, processes, progress)
        return {way: np.array([float(one["accuracy"]) for one in some]) for way, some in done.items()}

    def digits(self, processes: int = 1, progress: Progress = None) -> dict[str, Array]:
        """By row, recall, accuracy and IoU on digits in per cent, (seeds, 3)."""
        s = self.settings
        work = Digits(self.folder, self.out, self.device, s)
        if processes > 1:
            work.prepare()
        items = {name: [(name, seed) for seed in range(s.seed, s.seed + s.seeds)] for name in ROWS}
        return {name: np.array(some) for name, some in results(work, items, processes, progress).items()}

    def _pictured(self) -> reports.Pictured:
        """A recording chosen by its number of segments alone, and what each way finds in it at the least noise."""
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
