"""Representation learning by alignment (paper Section 4.3, Fig. 5), from the videos to the report.

`dropdtw reproduce penn` runs this: an encoder is trained to align pairs of videos of one action, with SmoothDTW or with
Drop-DTW, while a growing share of one of them are frames of other actions. Evaluation is on clean test videos:
Kendall's τ of the nearest neighbours. Settings are chosen on a part of the training videos.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dropdtw.data import penn as data
from dropdtw.experiments.common.cache import fingerprint
from dropdtw.experiments.common.parallel import Work, results
from dropdtw.experiments.common.report import Report
from dropdtw.experiments.common.training import Plan, fit
from dropdtw.experiments.penn import model as models
from dropdtw.experiments.penn import stand_in as standin
from dropdtw.experiments.penn import videos
from dropdtw.experiments.penn.model import Aligner, Clips, Objective, PoseEncoder, Windows, make_pair
from dropdtw.experiments.penn.videos import Scores, Splits, evaluate, pairs_of, penn_splits, raw
from dropdtw.files import atomic
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array

NAMES = {"smooth": "SmoothDTW", "drop": "Drop-DTW"}


@dataclass(frozen=True)
class Settings:
    """How much of it to run.

    seeds : trained encoders of each kind.   levels : shares of outliers.   share_of : "mixed", a share of all frames of
    Ŷ are outliers; or "own", as many outliers as a share of Y's own frames.
    pairs : of an epoch.   test_pairs : of each action, to evaluate on.   temperatures, percentiles,
    drop_temperatures : to choose among, the first for SmoothDTW, the others for Drop-DTW.
    """

    seed: int = 0
    seeds: int = 3
    levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    share_of: str = "mixed"
    epochs: int = 60
    pairs: int = 1024
    batch: int = 32
    lr: float = 1e-3
    test_pairs: int = 200
    temperatures: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
    percentiles: tuple[float, ...] = (10.0, 30.0, 70.0)
    drop_temperatures: tuple[float, ...] = (0.1, 0.2)
    images: int = 0
    clips: int = 40

    def quick(self) -> Settings:
        """The same in seconds, to see that everything works."""
        return replace(self, seeds=2, levels=(0.0, 0.5), epochs=2, pairs=64, batch=16, test_pairs=6,
                       temperatures=(0.1,), percentiles=(10.0,), drop_temperatures=(0.1,), clips=10)  # fmt: skip


def train(
    splits: Splits,
    objective: Objective,
    level: float,
    settings: Settings,
    seed: int,
    *,
    epochs: int | None = None,
    device: str = "cpu",
    out: Path | None = None,
) -> tuple[Aligner, float]:
    """An encoder trained on pairs with a share of outliers, and its τ on the validation videos, which are clean."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Aligner(_encoder(splits.train, settings), objective)
    clips, chosen = splits.validation, pairs_of(splits.validation, 30)

    def load(numbers: Sequence[int]) -> Windows:
        some = [make_pair(splits.train, n, level, seed, share_of=settings.share_of) for n in numbers]
        return Windows.of(splits.train, some)

    def batches(epoch: int) -> list[list[int]]:
        numbers = range(epoch * settings.pairs, (epoch + 1) * settings.pairs)
        return [list(numbers[k : k + settings.batch]) for k in range(0, settings.pairs, settings.batch)]

    def validate(module: nn.Module) -> dict[str, float]:
        assert isinstance(module, Aligner)
        found = evaluate(lambda k: module.embed(clips, k), clips, chosen)
        return {"tau": float(np.mean(list(found.tau.values())))}

    plan = Plan(epochs=epochs or settings.epochs, lr=settings.lr, seed=seed, accelerator=device)
    done = fit(model, load, batches, validate, plan, score="tau", out=out, resume=True, progress=False)
    return model, done.best["tau"]


def _encoder(clips: Clips, settings: Settings) -> nn.Module:
    if settings.images:
        return models.ImageEncoder()
    return PoseEncoder(int(np.prod(clips.read(0, np.arange(1)).shape[1:])))


@dataclass(frozen=True)
class Job:
    """One training; choice : half as long, to see its τ on the validation videos; else on the test videos."""

    objective: Objective
    level: float
    seed: int
    choice: bool = False


@dataclass(frozen=True)
class Trainings(Work):
    """Does a job, or finds it done: {"tau": …} of a choice, else {"tau": (actions,), "error": …} on the test videos."""

    settings: Settings = Settings()

    @cached_property
    def splits(self) -> Splits:
        """The videos."""
        s = self.settings
        return standin.splits(s.clips, s.seed) if self.folder is None else penn_splits(self.folder, s.images, s.seed)

    @cached_property
    def pairs(self) -> dict[str, list[tuple[int, int]]]:
        """The pairs of test videos."""
        return pairs_of(self.splits.test, self.settings.test_pairs, self.settings.seed)

    def __call__(self, job: Job) -> dict[str, Array]:
        """The scores; actions in the order of their names."""
        s, splits = self.settings, self.splits
        sizes = [s.seed, s.epochs, s.pairs, s.batch, s.lr, s.test_pairs, s.share_of]
        key = fingerprint(models, videos, standin, data, splits.source, sizes, self.device, asdict(job))
        name = f"{job.objective.loss}-{100 * job.level:.0f}-{job.seed}-{key}"

        def make() -> dict[str, Array]:
            model, tau = train(
                splits, job.objective, job.level, s, job.seed, epochs=max(1, s.epochs // 2) if job.choice else None,
                device=self.device, out=None if job.choice else self.cache.folder / "runs" / name,
            )  # fmt: skip
            if job.choice:
                return {"tau": np.array(tau)}
            found = evaluate(lambda k: model.embed(splits.test, k), splits.test, self.pairs)
            return {part: np.array([values[action] for action in sorted(self.pairs) if action in values])
                    for part, values in (("tau", found.tau), ("error", found.error))}  # fmt: skip

        return self.cache.arrays("choice" if job.choice else "scores", key, make)


def tried(settings: Settings) -> dict[str, list[Objective]]:
    """For each loss what is chosen among."""
    return {
        "smooth": [Objective("smooth", gamma_match=t) for t in settings.temperatures],
        "drop": [Objective("drop", p, gamma_match=t) for p in settings.percentiles for t in settings.drop_temperatures],
    }


def choose(work: Trainings, processes: int = 1, progress: Progress = None) -> dict[str, list[Objective]]:
    """For each loss and level the settings whose encoder has the best τ on the validation videos; one seed."""
    settings, options = work.settings, tried(work.settings)
    jobs = {
        (name, level): [Job(objective, level, settings.seed, choice=True) for objective in some]
        for level in settings.levels
        for name, some in options.items()
        if len(some) > 1
    }
    done = results(work, jobs, processes, progress)
    best = {place: int(np.argmax([found["tau"] for found in some])) for place, some in done.items()}
    return {name: [some[best.get((name, level), 0)] for level in settings.levels] for name, some in options.items()}


def run(
    work: Trainings,
    chosen: Mapping[str, Sequence[Objective]],
    *,
    processes: int = 1,
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, list[list[Scores]]]:
    """Scores on the test videos, of each loss by level and seed. What is done is not done again."""
    settings, actions = work.settings, sorted(work.pairs)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    jobs = {
        (level, name): [Job(objectives[k], level, seed) for seed in seeds]
        for k, level in enumerate(settings.levels)
        for name, objectives in chosen.items()
    }
    done = results(work, jobs, processes, progress)
    found: dict[str, list[list[Scores]]] = {name: [] for name in chosen}
    for level in settings.levels:
        for name in chosen:
            parts = [
                [dict(zip(actions, kept[part].tolist(), strict=False)) for part in ("tau", "error")]
                for kept in done[level, name]
            ]
            found[name].append([Scores(*both) for both in parts])
        means = ", ".join(f"{NAMES[n]} {np.mean([s.over(actions) for s in rows[-1]]):.3f}" for n, rows in found.items())
        say(f"{100 * level:.0f} % outliers: τ {means}")
    return found


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

    folder : of Penn Action; None runs a stand-in of moving digits.   processes : to train in at the same time.
    command : is shown in the report.
    """
    from dropdtw.experiments.penn import report as reports

    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    work = Trainings(folder, out, device, settings)
    splits = work.splits
    say(f"videos: {splits.source}")
    base = raw(splits.test, work.pairs)
    chosen = choose(work, processes, progress)
    for name, objectives in chosen.items():
        say(f"{NAMES[name]}: {reports.described(settings, objectives)}")
    found = run(work, chosen, processes=processes, say=say, progress=progress)
    tables = reports.tables(splits, settings, base, found)
    for table in tables:
        say(f"\n{table.text()}")
    results = reports.results(splits, settings, chosen, base, found)
    atomic.write_json(out / "results.json", results)
    report = Report("Drop-DTW for representation learning", out)
    reports.compose(report, command, splits, settings, chosen, tables, base, found, poses=folder is not None)
    say(f"report: {report.write()} ({time.monotonic() - start:.0f} s)")
    return results
