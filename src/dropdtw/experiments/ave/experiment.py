"""Audio-visual localization (paper Section 4.4, Table 3), from the streams to the report.

`dropdtw reproduce ave` runs this: two branches are trained without annotations, with each alignment as the cost of the
margin loss; then a passage of one stream is looked for in the other one. With AVE's features it makes Table 3; with
GRID's talking faces, or with its stand-in, the same with passages of other videos spliced into the training streams.
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

from dropdtw.data import ave as data
from dropdtw.data import grid
from dropdtw.experiments.ave import model as models
from dropdtw.experiments.ave import report as reports
from dropdtw.experiments.ave import tasks
from dropdtw.experiments.ave.model import LOSSES, Objective, Recipe, TwoBranches
from dropdtw.experiments.ave.tasks import WAYS, Part, Task, evaluated
from dropdtw.experiments.common import experiment, moving
from dropdtw.experiments.common.cache import Arrays
from dropdtw.experiments.common.experiment import Dataset, Outcome, Training
from dropdtw.experiments.common.losses import DROP
from dropdtw.experiments.common.training import Plan, fit, seeded
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from dropdtw.torch.reduction import Normalize

PAPERS: Final = f"{DROP.title}, the paper's 70th percentile"

DATASETS: Final[dict[str, Dataset[Task]]] = {
    "stand-in": Dataset(lambda folder: folder is None, lambda folder, s: tasks.stand_in(s.clips, s.seed)),
    "GRID": Dataset(tasks.is_grid, lambda folder, s: tasks.of_grid(folder, seed=s.seed)),
    "AVE": Dataset(lambda folder: True, lambda folder, s: tasks.of_ave(folder)),
}
"""The streams; a new data set is an entry. The first that fits the folder is used; the last takes any."""


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """The size of the experiment, in addition to the settings that all experiments share.

    spliced : which training streams get strange passages, in turn.   lrs, gammas : to choose among.
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
        """The same in seconds, to see that everything works."""
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
    """A model, and how much it finds among the validation events, the mean of both ways at the widest tolerance."""
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
    """(2, tolerances): A2V and V2A of a model."""
    return evaluated(*model.embed(part.audio, part.visual), part, tolerances)


def tried(task: Task, settings: Settings) -> dict[str, list[Recipe]]:
    """By row, what is chosen among: learning rate, crop, and γ or for Drop-DTW the percentile; as many for each row.

    The paper's data get the paper's settings.
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
    """The condition of a training is which streams get strange passages; a test gives {"scores": (2, tolerances)}."""

    settings: Settings = field(default_factory=Settings)

    name = "ave"
    title = "Drop-DTW for audio-visual localization"
    about = (
        "Sound and picture go through one branch each into a common space, trained without annotations: streams of one "
        "video should align more cheaply than streams of two. Then a passage of one is looked for in the other."
    )
    data_name = "streams"
    code = (models, tasks, moving, data, grid)
    datasets = DATASETS

    def label(self, recipe: Recipe, condition: str) -> str:
        """The loss, its percentile and the splicing."""
        return f"{recipe.objective.loss}-{recipe.objective.percentile:g}-{condition}"

    def train(self, training: Training[Recipe, str], epochs: int, out: Path | None) -> tuple[nn.Module, float]:
        """A model and how much it finds among the validation events."""
        return train(
            self.data, training.recipe, training.condition, self.settings, training.seed, epochs=epochs,
            device=self.device, out=out,
        )  # fmt: skip

    def test(self, model: nn.Module) -> Arrays:
        """How much a model finds among the test events."""
        assert isinstance(model, TwoBranches)
        return {"scores": scores(model, self.data.test, self.data.tolerances)}

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Choose, train with every splicing, and compare with linear CCA."""
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
    """For each row the recipe that finds most among the validation events, with the last kind of splicing; one seed."""
    return work.best(tried(work.data, work.settings), lambda row: work.settings.spliced[-1], processes, progress)


def run(
    work: Ave,
    chosen: Mapping[str, Recipe],
    *,
    processes: int = 1,
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, dict[str, Array]]:
    """By splicing and row, (seeds, 2, tolerances) on the test events."""
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
