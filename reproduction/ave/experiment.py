"""Audio-visual localization (paper Section 4.4, Table 3), from the data to the report.

`python -m reproduction ave` runs this. It trains two branches without annotations, with each alignment as the cost in
the margin loss. Then it searches for a passage of one stream in the other. AVE's features give Table 3. With GRID's
talking faces or the stand-in, it also splices passages of other videos into the training streams.

The loss is divided by the length, because a sum of dozens of costs would exceed a margin of 0.5 from the start. On
GRID, the settings chosen were learning rate 0.0005 (OTAM: 0.001), γ 0.1 (OTAM: 1), crops of 24 frames and, for
Drop-DTW, percentile 30: 20 was even, 10 one point behind, and 50 four. The batch size and the candidates come from
trials on training and validation sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from torch import nn

from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from dropdtw.torch.reduction import Normalize
from reproduction.ave import model as models
from reproduction.ave import report as reports
from reproduction.ave import tasks
from reproduction.ave.model import LOSSES, Objective, Recipe, TwoBranches
from reproduction.ave.tasks import WAYS, Part, Task, evaluated
from reproduction.common import experiment, moving
from reproduction.common.cache import Arrays
from reproduction.common.experiment import Dataset, Outcome, Training
from reproduction.common.losses import DROP
from reproduction.common.training import Plan, fit, seeded
from reproduction.data import ave as data
from reproduction.data import grid

PAPERS: Final = f"{DROP.title}, the paper's 70th percentile"

DATASETS: Final[dict[str, Dataset[Task]]] = {
    "stand-in": Dataset(lambda folder: folder is None, lambda folder, s: tasks.stand_in(s.clips, s.seed)),
    "GRID": Dataset(tasks.is_grid, lambda folder, s: tasks.of_grid(folder, seed=s.seed)),
    "AVE": Dataset(lambda folder: True, lambda folder, s: tasks.of_ave(folder)),
}
"""Data sets by name. The first that fits the folder is used; the last accepts any folder."""


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The settings of this experiment, in addition to those that all experiments share.

    spliced : which training streams get foreign passages, one training each.   lrs, gammas : values to choose from.
    """

    epochs: int = 80
    pairs: int = 720
    batch: int = 24
    percentiles: tuple[float, ...] = (10.0, 20.0, 30.0, 50.0)
    clips: int = 120
    spliced: tuple[str, ...] = ("none", "visual", "both")
    lrs: tuple[float, ...] = (5e-4, 1e-3)
    gammas: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)

    def quick(self) -> Settings:
        """A version that runs in seconds, as a smoke test."""
        return replace(self, seeds=2, epochs=2, pairs=24, batch=8, spliced=("both",), lrs=(2e-3,), gammas=(0.1,),
                       percentiles=(30.0,), clips=16)  # fmt: skip


def train(
    task: Task,
    recipe: Recipe,
    spliced: str,
    settings: Settings,
    seed: int,
    *,
    epochs: int | None = None,
    device: str = "cpu",
    out: Path | None = None,
) -> tuple[TwoBranches, float]:
    """Train a model; return it with its validation score, the mean of A2V and V2A at the widest tolerance."""
    with seeded(seed):
        model = TwoBranches(task.train.audio.shape[2], task.train.visual.shape[2], recipe.objective)

    def validate(module: nn.Module) -> dict[str, float]:
        assert isinstance(module, TwoBranches)
        found = scores(module, task.validation, task.tolerances)
        return {"found": float(found[:, -1].mean())}

    plan = Plan(epochs=epochs or settings.epochs, lr=recipe.lr, seed=seed, accelerator=device)
    load = lambda numbers: task.load(numbers, spliced, seed, recipe.crop)  # noqa: E731 (a name for the line below)
    done = fit(model, load, settings.batches, validate, plan, score="found", out=out, resume=True, progress=False)
    return model, done.best["found"]


def scores(model: TwoBranches, part: Part, tolerances: Sequence[int]) -> Array:
    """The A2V and V2A scores of a model, (2, tolerances)."""
    return evaluated(*model.embed(part.audio, part.visual), part, tolerances)


def tried(task: Task, settings: Settings) -> dict[str, list[Recipe]]:
    """The recipes to choose from in each row: learning rate, crop, and γ, or the percentile for Drop-DTW.

    Each row has the same number of recipes. On the paper's data, the paper's settings are used.
    """
    length: Normalize = None if task.papers else "x"
    rows = {loss.title: Objective(name, normalize=length) for name, loss in LOSSES.items()}
    if task.papers:
        return {title: [Recipe(objective, settings.lr)] for title, objective in rows.items()}
    found: dict[str, list[Recipe]] = {title: [] for title in rows}
    for lr, crop in product(settings.lrs, task.crops):
        for title, objective in rows.items():
            if LOSSES[objective.loss].drops:
                options = [replace(objective, percentile=p) for p in settings.percentiles]
            else:
                options = [replace(objective, gamma=gamma) for gamma in settings.gammas]
            found[title] += [Recipe(option, lr, crop) for option in options]
    return found


@dataclass(frozen=True)
class Ave(experiment.Experiment[Task, Recipe, str]):
    """The condition of a training is which streams get foreign passages; a test gives {"scores": (2, tolerances)}."""

    settings: Settings = field(default_factory=Settings)

    name = "ave"
    title = "Drop-DTW for audio-visual localization"
    about = (
        "Sound and picture pass through one branch each into a common space. Training uses no annotations: streams of "
        "one video should cost less to align than streams of two. Then passages of one stream are located in the other."
    )
    data_name = "streams"
    code = (models, tasks, moving, data, grid)
    datasets = DATASETS

    def label(self, recipe: Recipe, condition: str) -> str:
        """The loss, its percentile and the spliced streams."""
        return f"{recipe.objective.loss}-{recipe.objective.percentile:g}-{condition}"

    def train(self, training: Training[Recipe, str], epochs: int, out: Path | None) -> tuple[nn.Module, float]:
        """Train a model; return it with its validation score."""
        return train(
            self.data, training.recipe, training.condition, self.settings, training.seed, epochs=epochs,
            device=self.device, out=out,
        )  # fmt: skip

    def test(self, model: nn.Module, training: Training[Recipe, str]) -> Arrays:
        """Score a model on the test events."""
        assert isinstance(model, TwoBranches)
        return {"scores": scores(model, self.data.test, self.data.tolerances)}

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Tune, train with every kind of splicing, and compare with linear CCA."""
        task, chosen = self.data, choose(self, processes, progress)
        for title, recipe in chosen.items():
            say(f"{title}: {recipe}")
        told = "; ".join(f"{title}: {recipe}" for title, recipe in chosen.items())
        if not task.papers:
            drop = chosen[DROP.title]
            chosen[PAPERS] = replace(drop, objective=replace(drop.objective, percentile=70.0))
        found = run(self, chosen, processes=processes, say=say, progress=progress)
        lines = {} if task.papers else {s: tasks.linear(task, s, self.settings.seed) for s in found}
        tables = reports.tables(task, found, lines)
        results = reports.results(task, chosen, found, lines)
        return Outcome(results, tables, partial(reports.compose, task=task, found=found, tables=tables, told=told))


def choose(work: Ave, processes: int = 1, progress: Progress = None) -> dict[str, Recipe]:
    """For each row, the recipe with the best validation score, with the last kind of splicing and one seed."""
    return work.best(tried(work.data, work.settings), lambda row: work.settings.spliced[-1], processes, progress)


def run(
    work: Ave,
    chosen: Mapping[str, Recipe],
    *,
    processes: int = 1,
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, dict[str, Array]]:
    """Test scores (seeds, 2, tolerances) by splicing and row."""
    plain = work.data.papers
    places = {
        (spliced, title): (recipe, spliced)
        for spliced in (("none",) if plain else work.settings.spliced)
        for title, recipe in chosen.items()
    }
    found: dict[str, dict[str, Array]] = {}
    for (spliced, title), some in work.every_seed(places, processes, progress).items():
        found.setdefault(spliced, {})[title] = np.stack([one["scores"] for one in some])
        means = found[spliced][title].mean(axis=0)[:, -1]
        told = ", ".join(f"{way} {100 * v:.1f}" for way, v in zip(WAYS, means, strict=True))
        say(f"{title}: {told}" if plain else f"spliced into {spliced}: {title}: {told}")
    return found
