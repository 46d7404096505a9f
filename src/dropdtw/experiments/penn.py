"""Representation learning by alignment (paper Section 4.3, Fig. 5), from the videos to the report.

`dropdtw reproduce penn` runs this: an encoder is trained to align pairs of videos of one action, with SmoothDTW or with
Drop-DTW, while a growing share of one of them are frames of other actions. Evaluation is on clean test videos:
Kendall's τ of the nearest neighbours. Settings are chosen on a part of the training videos.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dropdtw import files, metrics
from dropdtw.arrays import Array
from dropdtw.data import penn as data
from dropdtw.experiments import penn_model as models
from dropdtw.experiments.cache import Cache, fingerprint
from dropdtw.experiments.penn_model import Aligner, Clips, Objective, PoseEncoder, Windows, make_pair
from dropdtw.experiments.report import Report
from dropdtw.experiments.training import Plan, fit
from dropdtw.progress import Progress

NAMES = {"smooth": "SmoothDTW", "drop": "Drop-DTW"}
CHOICE_LEVEL = 0.3
"""The share of outliers at which settings are chosen, once for all levels."""


@dataclass(frozen=True)
class Settings:
    """How much of it to run.

    seeds : trained encoders of each kind.   levels : shares of outliers.   share_of : "mixed", a share of all frames of
    Ŷ are outliers; or "own", as many outliers as a share of Y's own frames.
    pairs : of an epoch.   test_pairs : of each action, to evaluate on.   percentiles, temperatures : to choose among.
    """

    seed: int = 0
    seeds: int = 3
    levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    share_of: str = "mixed"
    epochs: int = 15
    pairs: int = 1024
    batch: int = 32
    lr: float = 1e-3
    test_pairs: int = 200
    percentiles: tuple[float, ...] = (10.0, 20.0, 30.0)
    temperatures: tuple[float, ...] = (0.05, 0.1)
    images: int = 0
    clips: int = 40

    def quick(self) -> Settings:
        """The same in seconds, to see that everything works."""
        return replace(self, seeds=2, levels=(0.0, 0.5), epochs=2, pairs=64, batch=16, test_pairs=6,
                       percentiles=(10.0,), temperatures=(0.1,), clips=10)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Splits:
    """Videos to train on, to choose settings and epochs by, and to test on, and the groups they are reported in."""

    train: Clips
    validation: Clips
    test: Clips
    groups: Mapping[str, tuple[str, ...]]
    source: str


def penn_splits(folder: str | os.PathLike[str], *, images: int = 0, seed: int = 0) -> Splits:
    """Penn Action with its official split; a fifth of the training videos of each action is for validation.

    images : the side of square images, to use frames instead of poses.
    """
    videos = data.load(folder)
    if images:

        def read(k: int, at: Array) -> Array:
            return data.frames(folder, videos[k], at, images)
    else:
        poses = [video.poses().reshape(len(video), -1) for video in videos]

        def read(k: int, at: Array) -> Array:
            return poses[k][at]

    clips = Clips(tuple(v.action for v in videos), tuple(len(v) for v in videos), read)
    train, validation = held_out(clips, [k for k, v in enumerate(videos) if v.train], seed)
    test = [k for k, v in enumerate(videos) if not v.train]
    here = set(clips.actions)
    groups = {
        name: tuple(action for action in actions if action in here)
        for name, actions in (("non-cyclic", data.NON_CYCLIC), ("cyclic", data.CYCLIC))
    }
    what = f"images of {images} × {images}" if images else "poses of 13 joints"
    return Splits(
        clips.only(train),
        clips.only(validation),
        clips.only(test),
        {name: actions for name, actions in groups.items() if actions},
        f"Penn Action, {what}, {len(train)} + {len(validation)} videos to train and choose on, {len(test)} to test",
    )


def held_out(clips: Clips, which: Sequence[int], seed: int, share: float = 0.2) -> tuple[list[int], list[int]]:
    """Videos in two parts: a share of each action, two at least, in the second."""
    rng = np.random.default_rng([seed, 77])
    kept: list[int] = []
    held: list[int] = []
    for action in sorted(set(clips.actions)):
        mine = rng.permutation([k for k in which if clips.actions[k] == action]).tolist()
        if len(mine) < 4:
            raise ValueError(f"{action} has {len(mine)} training videos; at least 4 are needed, 2 of them to choose on")
        count = max(2, round(share * len(mine)))
        held += mine[:count]
        kept += mine[count:]
    return sorted(kept), sorted(held)


def pairs_of(clips: Clips, count: int, seed: int = 0) -> dict[str, list[tuple[int, int]]]:
    """For each action so many different ordered pairs of its videos, or all there are."""
    rng = np.random.default_rng([seed, 78])
    found = {}
    for action in sorted(set(clips.actions)):
        mine = clips.of(action)
        if len(mine) < 2:
            raise ValueError(f"{action} has {len(mine)} video to evaluate on; give at least 2 of each action")
        every = [(a, b) for a in mine for b in mine if a != b]
        found[action] = [every[k] for k in sorted(rng.permutation(len(every))[:count].tolist())]
    return found


@dataclass(frozen=True, eq=False)
class Scores:
    """By action: Kendall's τ, and the mean error of the nearest neighbour's phase where phases are known."""

    tau: dict[str, float]
    error: dict[str, float]

    def over(self, actions: Sequence[str]) -> float:
        """The mean τ of actions."""
        return float(np.mean([self.tau[action] for action in actions]))


def evaluate(embed: Callable[[int], Array], clips: Clips, pairs: Mapping[str, Sequence[tuple[int, int]]]) -> Scores:
    """Scores of embeddings (n, d) of the frames `clips.inside` each video, over these pairs of videos."""
    known: dict[int, Array] = {}
    for video in sorted({k for some in pairs.values() for pair in some for k in pair}):
        known[video] = embed(video)
    tau, error = {}, {}
    for action, some in pairs.items():
        tau[action] = float(np.mean([metrics.kendall_tau(known[a], known[b]) for a, b in some]))
        if clips.phases is not None:
            error[action] = float(np.mean([_phase_error(clips, known, a, b) for a, b in some]))
    return Scores(tau, error)


def _phase_error(clips: Clips, known: Mapping[int, Array], a: int, b: int) -> float:
    from scipy.spatial.distance import cdist

    assert clips.phases is not None
    x, y = (clips.phases[k][clips.inside(k)] for k in (a, b))
    return float(np.abs(x - y[cdist(known[a], known[b]).argmin(axis=1)]).mean())


def raw(clips: Clips, pairs: Mapping[str, Sequence[tuple[int, int]]]) -> Scores:
    """Scores of the frames themselves, without any encoder; all frames count, as no neighbours are needed."""
    whole = replace(clips, phases=None)
    found = evaluate(lambda k: clips.read(k, np.arange(clips.lengths[k])).reshape(clips.lengths[k], -1), whole, pairs)
    inside = evaluate(lambda k: clips.read(k, clips.inside(k)).reshape(len(clips.inside(k)), -1), clips, pairs)
    return Scores(found.tau, inside.error)


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
    progress: Progress = None,
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
    done = fit(model, load, batches, validate, plan, score="tau", out=out, resume=True, progress=progress)
    return model, done.best["tau"]


def _encoder(clips: Clips, settings: Settings) -> nn.Module:
    if settings.images:
        return models.ImageEncoder()
    return PoseEncoder(int(np.prod(clips.read(0, np.arange(1)).shape[1:])))


def choose(
    splits: Splits, settings: Settings, cache: Cache, known: str, *, device: str = "cpu", progress: Progress = None
) -> dict[str, Objective]:
    """For each loss the settings whose encoder has the best τ on the validation videos; one level, one seed."""
    tried = {
        "smooth": [Objective("smooth", gamma_match=t) for t in settings.temperatures],
        "drop": [Objective("drop", p, gamma_match=t) for p in settings.percentiles for t in settings.temperatures],
    }
    best = {}
    for name, some in tried.items():
        taus = []
        for objective in some if len(some) > 1 else []:
            key = fingerprint(known, asdict(objective), CHOICE_LEVEL, settings.seed)

            def make(objective: Objective = objective) -> dict[str, Array]:
                found = train(
                    splits, objective, CHOICE_LEVEL, settings, settings.seed, device=device, progress=progress
                )
                return {"tau": np.array(found[1])}

            taus.append(float(cache.arrays("choice", key, make)["tau"]))
        best[name] = some[int(np.argmax(taus)) if taus else 0]
    return best


def run(
    splits: Splits,
    settings: Settings,
    chosen: Mapping[str, Objective],
    pairs: Mapping[str, Sequence[tuple[int, int]]],
    cache: Cache,
    known: str,
    *,
    device: str = "cpu",
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, list[list[Scores]]]:
    """Scores on the test videos, of each loss by level and seed. What the cache has is not trained again."""
    actions = sorted(pairs)
    found: dict[str, list[list[Scores]]] = {name: [] for name in chosen}
    for level in settings.levels:
        for name, objective in chosen.items():
            found[name].append([])
            for seed in range(settings.seed, settings.seed + settings.seeds):
                key = fingerprint(known, asdict(objective), level, seed, settings.test_pairs)
                folder = cache.folder / "runs" / f"{name}-{100 * level:.0f}-{seed}-{key}"

                def make(objective: Objective = objective, level: float = level, seed: int = seed,
                         folder: Path = folder) -> dict[str, Array]:  # fmt: skip
                    model, _ = train(
                        splits, objective, level, settings, seed, device=device, out=folder, progress=progress
                    )
                    scores = evaluate(lambda k: model.embed(splits.test, k), splits.test, pairs)
                    return {part: np.array([values[a] for a in actions if a in values])
                            for part, values in (("tau", scores.tau), ("error", scores.error))}  # fmt: skip

                kept = cache.arrays("scores", key, make)
                tau, error = (dict(zip(actions, kept[part].tolist(), strict=False)) for part in ("tau", "error"))
                found[name][-1].append(Scores(tau, error))
        means = ", ".join(f"{NAMES[n]} {np.mean([s.over(actions) for s in rows[-1]]):.3f}" for n, rows in found.items())
        say(f"{100 * level:.0f} % outliers: τ {means}")
    return found


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

    folder : of Penn Action; None runs a stand-in of moving digits.   command : is shown in the report.
    """
    from dropdtw.experiments import penn_report as reports
    from dropdtw.experiments import penn_standin as standin

    out.mkdir(parents=True, exist_ok=True)
    cache = Cache(out / "cache")
    start = time.monotonic()
    if folder is None:
        splits = standin.splits(settings.clips, settings.seed)
    else:
        splits = penn_splits(folder, images=settings.images, seed=settings.seed)
    say(f"videos: {splits.source}")
    pairs = pairs_of(splits.test, settings.test_pairs, settings.seed)
    base = raw(splits.test, pairs)
    sizes = {"epochs": settings.epochs, "pairs": settings.pairs, "batch": settings.batch, "lr": settings.lr}
    known = fingerprint(models, standin, data, splits.source, settings.share_of, sizes, settings.seed, device)
    chosen = choose(splits, settings, cache, known, device=device, progress=progress)
    for name, objective in chosen.items():
        say(f"{NAMES[name]}: {reports.described(objective)}")
    found = run(splits, settings, chosen, pairs, cache, known, device=device, say=say, progress=progress)
    tables = reports.tables(splits, settings, base, found)
    for table in tables:
        say(f"\n{table.text()}")
    results = reports.results(splits, settings, chosen, base, found)
    files.write_json(out / "results.json", results)
    report = Report("Drop-DTW for representation learning", out)
    reports.compose(report, command, splits, settings, chosen, tables, base, found, poses=folder is not None)
    say(f"report: {report.write()} ({time.monotonic() - start:.0f} s)")
    return results
