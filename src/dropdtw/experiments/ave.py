"""Audio-visual localization (paper Section 4.4, Table 3), from the streams to the report.

`dropdtw reproduce ave` runs this: two branches are trained without annotations, with each alignment as the cost of the
margin loss; then a passage of one stream is looked for in the other one. With AVE's features it makes Table 3; with
GRID's talking faces, or with its stand-in, the same with passages of other videos spliced into the training streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dropdtw import files, metrics
from dropdtw.arrays import Array
from dropdtw.data import ave as data
from dropdtw.data import grid
from dropdtw.experiments import ave_model as models
from dropdtw.experiments import ave_tasks as tasks
from dropdtw.experiments.ave_model import Objective, TwoBranches, cca, chance, evaluate
from dropdtw.experiments.ave_tasks import Part, Task
from dropdtw.experiments.cache import Cache, fingerprint
from dropdtw.experiments.report import Report, Table
from dropdtw.experiments.training import Plan, fit
from dropdtw.progress import Progress

PAPER = {
    "OTAM": (37.5, 32.7),
    "SmoothDTW": (39.8, 33.9),
    "Drop-DTW": (41.1, 35.8),
    "supervised (Tian et al.)": (44.8, 34.8),
}
"""Table 3: A2V and V2A in per cent."""

WAYS = ("A2V", "V2A")


@dataclass(frozen=True)
class Settings:
    """How much of it to run.

    seeds : trained models of each kind.   spliced : which training streams get strange passages, in turn.
    percentiles : besides the paper's 70, a Drop-DTW is trained with the best of these on validation videos.
    """

    seed: int = 0
    seeds: int = 3
    epochs: int = 40
    pairs: int = 720
    batch: int = 12
    lr: float = 2e-3
    spliced: tuple[str, ...] = ("none", "visual", "both")
    percentiles: tuple[float, ...] = (20.0, 30.0, 50.0)
    clips: int = 120

    def quick(self) -> Settings:
        """The same in seconds, to see that everything works."""
        return replace(self, seeds=2, epochs=2, pairs=24, batch=8, spliced=("both",), percentiles=(30.0,), clips=16)


def train(
    task: Task,
    objective: Objective,
    spliced: str,
    settings: Settings,
    seed: int,
    *,
    device: str = "cpu",
    out: Path | None = None,
    progress: Progress = None,
) -> tuple[TwoBranches, float]:
    """A model, and how much it finds among the validation events, the mean of both ways at the widest tolerance."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TwoBranches(task.train.audio.shape[2], task.train.visual.shape[2], objective)

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

    plan = Plan(epochs=settings.epochs, lr=settings.lr, seed=seed, accelerator=device)
    load = lambda numbers: task.load(numbers, spliced, seed)  # noqa: E731 (a name for the line below)
    done = fit(model, load, batches, validate, plan, score="found", out=out, resume=True, progress=progress)
    return model, done.best["found"]


def scores(model: TwoBranches, part: Part, tolerances: Sequence[int]) -> Array:
    """(2, tolerances): A2V and V2A of a model."""
    found = evaluate(*model.embed(part.audio, part.visual), part.events, tolerances)
    return np.array([found[way] for way in WAYS])


def linear(task: Task, spliced: str, settings: Settings) -> Array:
    """(2, tolerances): linear CCA of the training streams, element by element as they stand."""
    numbers = range(4 * len(task.train))
    pairs = task.load(list(numbers), spliced, settings.seed)
    rows = [stream.flatten(0, 1).double().numpy() for stream in (pairs.audio, pairs.visual)]
    maps = cca(*(r - r.mean(axis=0) for r in rows))
    embedded = [stream @ m for stream, m in zip((task.test.audio, task.test.visual), maps, strict=True)]
    a, v = (e / np.maximum(np.linalg.norm(e, axis=-1, keepdims=True), 1e-12) for e in embedded)
    found = evaluate(a, v, task.test.events, task.tolerances)
    return np.array([found[way] for way in WAYS])


def objectives(task: Task, percentile: float | None) -> dict[str, Objective]:
    """The rows of the table; percentile : a second Drop-DTW with this drop cost."""
    long = None if task.kind == "AVE" else "x"
    rows = {
        "OTAM": Objective("otam", normalize=long),  # type: ignore[arg-type]
        "SmoothDTW": Objective("smooth", normalize=long),  # type: ignore[arg-type]
        "Drop-DTW": Objective("drop", normalize=long),  # type: ignore[arg-type]
    }
    if percentile is not None:
        rows[f"Drop-DTW, {percentile:g}th percentile"] = replace(rows["Drop-DTW"], percentile=percentile)
    return rows


def choose(task: Task, settings: Settings, cache: Cache, known: str, *, device: str, progress: Progress) -> float:
    """The percentile that finds most among the validation events, with the last kind of splicing; one seed."""
    taken = []
    for percentile in settings.percentiles if len(settings.percentiles) > 1 else []:
        objective = replace(objectives(task, None)["Drop-DTW"], percentile=percentile)
        key = fingerprint(known, asdict(objective), settings.spliced[-1], "choice")

        def make(objective: Objective = objective) -> dict[str, Array]:
            short = replace(settings, epochs=max(1, settings.epochs // 2))
            _, found = train(
                task, objective, settings.spliced[-1], short, settings.seed, device=device, progress=progress
            )
            return {"found": np.array(found)}

        taken.append(float(cache.arrays("choice", key, make)["found"]))
    return settings.percentiles[int(np.argmax(taken)) if taken else 0]


def run(
    task: Task,
    settings: Settings,
    cache: Cache,
    known: str,
    *,
    device: str = "cpu",
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, dict[str, Array]]:
    """By splicing and row, (seeds, 2, tolerances) on the test events. What the cache has is not trained again."""
    percentile = None
    if task.kind != "AVE":
        percentile = choose(task, settings, cache, known, device=device, progress=progress)
        say(f"Drop-DTW, besides the paper's 70th percentile: the {percentile:g}th, by validation")
    found: dict[str, dict[str, Array]] = {}
    for spliced in settings.spliced if task.kind != "AVE" else ("none",):
        found[spliced] = {}
        for name, objective in objectives(task, percentile).items():
            each = []
            for seed in range(settings.seed, settings.seed + settings.seeds):
                key = fingerprint(known, asdict(objective), spliced, seed)
                folder = cache.folder / "runs" / f"{objective.loss}-{objective.percentile:g}-{spliced}-{seed}-{key}"

                def make(
                    objective: Objective = objective, spliced: str = spliced, seed: int = seed, folder: Path = folder
                ) -> dict[str, Array]:
                    model, _ = train(
                        task, objective, spliced, settings, seed, device=device, out=folder, progress=progress
                    )
                    return {"scores": scores(model, task.test, task.tolerances)}

                each.append(cache.arrays("scores", key, make)["scores"])
            found[spliced][name] = np.stack(each)
            means = ", ".join(f"{way} {100 * v:.1f}" for way, v in zip(WAYS, np.mean(each, axis=0)[:, -1], strict=True))
            say(f"{name}: {means}" if task.kind == "AVE" else f"spliced into {spliced}: {name}: {means}")
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
    command: str = "",
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, object]:
    """Run the experiment and write its report into `out`; returns what results.json holds.

    folder : of AVE with its features, or of GRID; None runs a stand-in of moving digits.
    """
    out.mkdir(parents=True, exist_ok=True)
    cache = Cache(out / "cache")
    start = time.monotonic()
    task = task_of(folder, settings)
    say(f"streams: {task.source}")
    sizes = {k: v for k, v in asdict(settings).items() if k not in ("seeds", "spliced", "percentiles")}
    known = fingerprint(models, tasks, data, grid, task.source, sizes, device)
    found = run(task, settings, cache, known, device=device, say=say, progress=progress)
    lines = {} if task.kind == "AVE" else {spliced: linear(task, spliced, settings) for spliced in found}
    made = tables(task, found, lines)
    for table in made:
        say(f"\n{table.text()}")
    results: dict[str, object] = {
        "experiment": "ave",
        "streams": task.source,
        "settings": asdict(settings),
        "tolerances": list(task.tolerances),
        "paper": {name: dict(zip(WAYS, values, strict=True)) for name, values in PAPER.items()},
        "linear_cca": {spliced: _percent(values[None]) for spliced, values in lines.items()},
        "found": {s: {name: _percent(values) for name, values in rows.items()} for s, rows in found.items()},
    }
    files.write_json(out / "results.json", results)
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
