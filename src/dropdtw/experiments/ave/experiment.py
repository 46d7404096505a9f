"""Audio-visual localization (paper Section 4.4, Table 3), from the streams to the report.

`dropdtw reproduce ave` runs this: two branches are trained without annotations, with each alignment as the cost of the
margin loss; then a passage of one stream is looked for in the other one. With AVE's features it makes Table 3; with
GRID's talking faces, or with its stand-in, the same with passages of other videos spliced into the training streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dropdtw import metrics
from dropdtw.data import ave as data
from dropdtw.data import grid
from dropdtw.experiments.ave import model as models
from dropdtw.experiments.ave import tasks
from dropdtw.experiments.ave.model import Objective, TwoBranches, chance
from dropdtw.experiments.ave.tasks import WAYS, Part, Task, evaluated
from dropdtw.experiments.common.cache import fingerprint
from dropdtw.experiments.common.parallel import Work, results
from dropdtw.experiments.common.report import Report, Table
from dropdtw.experiments.common.training import Plan, fit
from dropdtw.files import atomic
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from dropdtw.torch.reduction import Normalize

PAPER = {
    "OTAM": (37.5, 32.7),
    "SmoothDTW": (39.8, 33.9),
    "Drop-DTW": (41.1, 35.8),
    "supervised (Tian et al.)": (44.8, 34.8),
}
"""Table 3: A2V and V2A in per cent."""

ROWS = ("OTAM", "SmoothDTW", "Drop-DTW")
PAPERS = "Drop-DTW, the paper's 70th percentile"


@dataclass(frozen=True)
class Settings:
    """How much of it to run.

    seeds : trained models of each kind.   spliced : which training streams get strange passages, in turn.
    pairs : of an epoch.   lr : where none is chosen.   lrs, gammas, percentiles : to choose among.
    """

    seed: int = 0
    seeds: int = 3
    epochs: int = 80
    pairs: int = 720
    batch: int = 24
    lr: float = 1e-3
    spliced: tuple[str, ...] = ("none", "visual", "both")
    lrs: tuple[float, ...] = (5e-4, 1e-3)
    gammas: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    percentiles: tuple[float, ...] = (10.0, 20.0, 30.0, 50.0)
    clips: int = 120

    def quick(self) -> Settings:
        """The same in seconds, to see that everything works."""
        return replace(self, seeds=2, epochs=2, pairs=24, batch=8, spliced=("both",), lrs=(2e-3,), gammas=(0.1,),
                       percentiles=(30.0,), clips=16)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """What a row of the table is trained with."""

    objective: Objective
    lr: float
    crop: int = 0

    def __str__(self) -> str:
        drop = f"{self.objective.percentile:g}th percentile, " if self.objective.loss == "drop" else ""
        crop = f", crops of {self.crop}" if self.crop else ""
        return f"{drop}γ {self.objective.gamma:g}, learning rate {self.lr:g}{crop}"


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
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TwoBranches(task.train.audio.shape[2], task.train.visual.shape[2], recipe.objective)

    def batches(epoch: int) -> list[list[int]]:
        count = settings.pairs // settings.batch
        return [
            list(range((epoch * count + k) * settings.batch, (epoch * count + k + 1) * settings.batch))
            for k in range(count)
        ]

    def validate(module: nn.Module) -> dict[str, float]:
        assert isinstance(module, TwoBranches)
        found = scores(module, task.validation, task.tolerances)
        return {"found": float(found[:, -1].mean())}

    plan = Plan(epochs=epochs or settings.epochs, lr=recipe.lr, seed=seed, accelerator=device)
    load = lambda numbers: task.load(numbers, spliced, seed, recipe.crop)  # noqa: E731 (a name for the line below)
    done = fit(model, load, batches, validate, plan, score="found", out=out, resume=True, progress=False)
    return model, done.best["found"]


def scores(model: TwoBranches, part: Part, tolerances: Sequence[int]) -> Array:
    """(2, tolerances): A2V and V2A of a model."""
    return evaluated(*model.embed(part.audio, part.visual), part, tolerances)


def tried(task: Task, settings: Settings) -> dict[str, list[Recipe]]:
    """By row, what is chosen among: learning rate, crop, and γ or for Drop-DTW the percentile; as many for each row.

    AVE gets the paper's settings.
    """
    length: Normalize = None if task.kind == "AVE" else "x"
    rows = {name: Objective(loss, normalize=length) for name, loss in zip(ROWS, models.LOSSES, strict=True)}
    if task.kind == "AVE":
        return {name: [Recipe(objective, settings.lr)] for name, objective in rows.items()}
    found: dict[str, list[Recipe]] = {name: [] for name in rows}
    for lr, crop in product(settings.lrs, task.crops):
        for name, objective in rows.items():
            if objective.loss == "drop":
                options = [replace(objective, percentile=p) for p in settings.percentiles]
            else:
                options = [replace(objective, gamma=gamma) for gamma in settings.gammas]
            found[name] += [Recipe(option, lr, crop) for option in options]
    return found


@dataclass(frozen=True)
class Job:
    """One training; choice : half as long, to see what it finds among the validation events; else the test events."""

    recipe: Recipe
    spliced: str
    seed: int
    choice: bool = False


@dataclass(frozen=True)
class Trainings(Work):
    """Does a job, or finds it done: {"found": …} of a choice, else {"scores": (2, tolerances)}."""

    settings: Settings = Settings()

    @cached_property
    def task(self) -> Task:
        """The streams."""
        return task_of(self.folder, self.settings)

    def __call__(self, job: Job) -> dict[str, Array]:
        """The scores."""
        s = self.settings
        sizes = [s.seed, s.epochs, s.pairs, s.batch, s.clips]
        key = fingerprint(models, tasks, data, grid, self.task.source, sizes, self.device, asdict(job))
        o = job.recipe.objective
        name = f"{o.loss}-{o.percentile:g}-{job.spliced}-{job.seed}-{key}"

        def make() -> dict[str, Array]:
            model, found = train(
                self.task, job.recipe, job.spliced, s, job.seed, epochs=max(1, s.epochs // 2) if job.choice else None,
                device=self.device, out=None if job.choice else self.cache.folder / "runs" / name,
            )  # fmt: skip
            if job.choice:
                return {"found": np.array(found)}
            return {"scores": scores(model, self.task.test, self.task.tolerances)}

        return self.cache.arrays("choice" if job.choice else "scores", key, make)


def choose(work: Trainings, processes: int = 1, progress: Progress = None) -> dict[str, Recipe]:
    """For each row the recipe that finds most among the validation events, with the last kind of splicing; one seed."""
    rows, settings = tried(work.task, work.settings), work.settings
    jobs = {
        name: [Job(recipe, settings.spliced[-1], settings.seed, choice=True) for recipe in some]
        for name, some in rows.items()
        if len(some) > 1
    }
    done = results(work, jobs, processes, progress)
    best = {name: int(np.argmax([one["found"] for one in some])) for name, some in done.items()}
    return {name: some[best.get(name, 0)] for name, some in rows.items()}


def run(
    work: Trainings,
    chosen: Mapping[str, Recipe],
    *,
    processes: int = 1,
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, dict[str, Array]]:
    """By splicing and row, (seeds, 2, tolerances) on the test events. What is done is not done again."""
    settings, plain = work.settings, work.task.kind == "AVE"
    jobs = {
        (spliced, name): [Job(recipe, spliced, seed) for seed in range(settings.seed, settings.seed + settings.seeds)]
        for spliced in (("none",) if plain else settings.spliced)
        for name, recipe in chosen.items()
    }
    found: dict[str, dict[str, Array]] = {}
    for (spliced, name), some in results(work, jobs, processes, progress).items():
        found.setdefault(spliced, {})[name] = np.stack([one["scores"] for one in some])
        means = found[spliced][name].mean(axis=0)[:, -1]
        told = ", ".join(f"{way} {100 * v:.1f}" for way, v in zip(WAYS, means, strict=True))
        say(f"{name}: {told}" if plain else f"spliced into {spliced}: {name}: {told}")
    return found


def tables(task: Task, found: Mapping[str, Mapping[str, Array]], lines: Mapping[str, Array]) -> list[Table]:
    """One table for each kind of splicing, A2V and V2A in per cent; beside the paper's for AVE."""
    near = ["" if t == 0 else f" ±{t}" for t in task.tolerances]
    head = ["", *(f"{way}{tolerance}" for way in WAYS for tolerance in near)]
    guess = chance(task.test.events, task.test.audio.shape[1], task.tolerances)
    made = []
    for spliced, rows in found.items():
        seeds = len(next(iter(rows.values())))
        body = [["chance", *(f"{100 * g:.1f}" for _ in WAYS for g in guess)]]
        if spliced in lines:
            body.append(["linear CCA", *(f"{100 * v:.1f}" for v in lines[spliced].ravel())])
        body += [[name, *_cells(values.reshape(seeds, -1))] for name, values in rows.items()]
        if task.kind == "AVE":
            body += [[f"paper: {name}", *(f"{v:.1f}" for v in values)] for name, values in PAPER.items()]
        strange = {"none": "clean training streams", "visual": "strange passages in the visual streams"}
        caption = f"{task.kind}: found in %, mean ± standard error of {seeds} models"
        if task.kind != "AVE":
            caption += f"; {strange.get(spliced, 'strange passages in both streams')}"
        made.append(Table(caption, head, body))
    return made


def _cells(values: Array) -> list[str]:
    spread = metrics.standard_error(values)
    return [f"{100 * m:.1f} ± {100 * e:.1f}" for m, e in zip(values.mean(axis=0), spread, strict=True)]


def task_of(folder: str | None, settings: Settings) -> Task:
    """AVE where its features are, GRID where its file is, else the stand-in."""
    if folder is None:
        return tasks.stand_in(settings.clips, settings.seed)
    place = Path(folder)
    if place.name == grid.FILE or (place / grid.FILE).is_file():
        return tasks.of_grid(place, seed=settings.seed)
    return tasks.of_ave(place)


def reproduce(
    settings: Settings,
    out: Path,
    *,
    folder: str | None = None,
    device: str = "cpu",
    processes: int = 1,
    command: str = "",
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, object]:
    """Run the experiment and write its report into `out`; returns what results.json holds.

    folder : of AVE with its features, or of GRID; None runs a stand-in of moving digits.
    processes : to train in at the same time.
    """
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    work = Trainings(folder, out, device, settings)
    task = work.task
    say(f"streams: {task.source}")
    chosen = choose(work, processes, progress)
    for name, recipe in chosen.items():
        say(f"{name}: {recipe}")
    if task.kind != "AVE":
        chosen[PAPERS] = replace(chosen["Drop-DTW"], objective=replace(chosen["Drop-DTW"].objective, percentile=70.0))
    found = run(work, chosen, processes=processes, say=say, progress=progress)
    lines = {} if task.kind == "AVE" else {spliced: tasks.linear(task, spliced, settings.seed) for spliced in found}
    made = tables(task, found, lines)
    for table in made:
        say(f"\n{table.text()}")
    results: dict[str, object] = {
        "experiment": "ave",
        "streams": task.source,
        "settings": asdict(settings),
        "chosen": {name: asdict(recipe) for name, recipe in chosen.items()},
        "tolerances": list(task.tolerances),
        "paper": {name: dict(zip(WAYS, values, strict=True)) for name, values in PAPER.items()},
        "linear_cca": {spliced: _percent(values[None]) for spliced, values in lines.items()},
        "found": {s: {name: _percent(values) for name, values in rows.items()} for s, rows in found.items()},
    }
    atomic.write_json(out / "results.json", results)
    report = Report("Drop-DTW for audio-visual localization", out)
    report.text(
        "Sound and picture go through one branch each into a common space, trained without annotations: streams of one "
        "video should align more cheaply than streams of two. Then a passage of one is looked for in the other."
    )
    if command:
        report.code(command)
    report.text(f"Streams: {task.source}.")
    report.heading("Cross-modality localization (Section 4.4, Table 3)")
    if task.kind != "AVE":
        report.text(f"These are not the paper's data but {task.kind}: its figures on AVE are no yardstick here.")
        told = "; ".join(f"{name}: {recipe}" for name, recipe in chosen.items() if name in ROWS)
        report.text(f"Chosen on validation videos, among as many settings for each row: {told}.")
    for table in made:
        report.table(table)
    say(f"report: {report.write()} ({time.monotonic() - start:.0f} s)")
    return results


def _percent(values: Array) -> dict[str, list[dict[str, float]]]:
    spread = metrics.standard_error(values)
    return {
        way: [
            {"mean": round(100 * float(m), 2), "error": round(100 * float(e), 2)}
            for m, e in zip(values.mean(axis=0)[k], spread[k], strict=True)
        ]
        for k, way in enumerate(WAYS)
    }
