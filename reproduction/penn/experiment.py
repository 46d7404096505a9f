"""Representation learning by alignment (paper Section 4.3, Fig. 5), from the videos to the report.

`python -m reproduction penn` runs this. It trains an encoder to align pairs of videos of one action, with SmoothDTW or
with Drop-DTW, while a growing share of the frames of one video come from other actions. It evaluates Kendall's τ of
nearest neighbors on clean test videos. Settings are tuned on a part of the training videos.

A pose is 13 joints, relative to the center of the person's box in each frame, in units of the box's median size over
the video, with the poses 2 and 4 frames before and after: in a single pose, moving up and moving down look alike. The
loss is the softmax cost (Eq. 4) of unit vectors with smoothMin (γ = 0.1), without a regularizer. On Penn Action, the
temperatures chosen for SmoothDTW were 0.2 and 0.3; Drop-DTW got percentile 70 up to 20 % of outliers, then 30.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import numpy as np
from torch import nn

from dropdtw.files.progress import Progress, working
from reproduction.common import experiment, moving
from reproduction.common.cache import Arrays
from reproduction.common.experiment import Dataset, Outcome, Training
from reproduction.common.training import Plan, fit, seeded
from reproduction.data import penn as data
from reproduction.penn import model as models
from reproduction.penn import report as reports
from reproduction.penn import stand_in, videos
from reproduction.penn.model import LOSSES, Aligner, Clips, Objective, PoseEncoder, Windows, make_pair
from reproduction.penn.settings import Settings
from reproduction.penn.videos import Scores, Splits, evaluate, pairs_of, penn_splits, raw

DATASETS: Final[dict[str, Dataset[Splits]]] = {
    "stand-in": Dataset(lambda folder: folder is None, lambda folder, s: stand_in.splits(s.clips, s.seed)),
    "Penn Action": Dataset(lambda folder: True, lambda folder, s: penn_splits(folder, s.images, s.seed, s.left_out)),
}
"""Data sets by name. The first that fits the folder is used; the last accepts any folder."""


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
    """Train an encoder on pairs with a share of outliers; return it with its τ on the clean validation videos."""
    with seeded(seed):
        model = Aligner(_encoder(splits.train, settings), objective)
    clips, chosen = splits.validation, pairs_of(splits.validation, 30)

    def load(numbers: Sequence[int]) -> Windows:
        some = [make_pair(splits.train, n, level, seed, share_of=settings.share_of) for n in numbers]
        return Windows.of(splits.train, some)

    def validate(module: nn.Module) -> dict[str, float]:
        assert isinstance(module, Aligner)
        found = evaluate(lambda k: module.embed(clips, k), clips, chosen, settings.stride)
        return {"tau": float(np.mean(list(found.tau.values())))}

    plan = Plan(epochs=epochs or settings.epochs, lr=settings.lr, seed=seed, accelerator=device)
    done = fit(model, load, settings.batches, validate, plan, score="tau", out=out, resume=True, progress=False)
    return model, done.best["tau"]


def _encoder(clips: Clips, settings: Settings) -> nn.Module:
    if settings.images:
        return models.ImageEncoder()
    return PoseEncoder(int(np.prod(clips.read(0, np.arange(1)).shape[1:])))


@dataclass(frozen=True)
class Penn(experiment.Experiment[Splits, Objective, float]):
    """The condition of a training is its share of outliers; a test gives {"tau": (actions,), "error": …}."""

    settings: Settings = field(default_factory=Settings)

    name = "penn"
    title = "Drop-DTW for representation learning"
    about = (
        "We train an encoder of frames to align two videos of the same action, one of them contaminated with frames of "
        "other actions. We test on clean videos: for each frame, we find the nearest neighbor in another video of the "
        "action, and measure how well the order of these neighbors agrees with the order of time (Kendall's τ)."
    )
    data_name = "videos"
    code = (models, videos, stand_in, moving, data)
    datasets = DATASETS

    @cached_property
    def pairs(self) -> dict[str, list[tuple[int, int]]]:
        """The pairs of test videos."""
        return pairs_of(self.data.test, self.settings.test_pairs, self.settings.seed)

    def label(self, recipe: Objective, condition: float) -> str:
        """The loss and the share of outliers."""
        return f"{recipe.loss}-{100 * condition:.0f}"

    def train(self, training: Training[Objective, float], epochs: int, out: Path | None) -> tuple[nn.Module, float]:
        """Train an encoder; return it with its τ on the validation videos."""
        return train(
            self.data, training.recipe, training.condition, self.settings, training.seed, epochs=epochs,
            device=self.device, out=out,
        )  # fmt: skip

    def test(self, model: nn.Module, training: Training[Objective, float]) -> Arrays:
        """Score the test videos; actions are sorted by name."""
        assert isinstance(model, Aligner)
        found = evaluate(lambda k: model.embed(self.data.test, k), self.data.test, self.pairs, self.settings.stride)
        return {part: np.array([values[action] for action in sorted(self.pairs) if action in values])
                for part, values in (("tau", found.tau), ("error", found.error))}  # fmt: skip

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Tune at every level, train, and compare with raw frames."""
        with working("comparing raw frames", progress):
            base = raw(self.data.test, self.pairs, self.settings.stride)
        chosen = choose(self, processes, progress)
        for name, objectives in chosen.items():
            say(f"{LOSSES[name].title}: {reports.described(self.settings, objectives)}")
        found = run(self, chosen, processes=processes, say=say, progress=progress)
        tables = reports.tables(self.data, self.settings, base, found)
        compose = partial(
            reports.compose, splits=self.data, settings=self.settings, chosen=chosen, tables=tables, base=base,
            found=found, poses=self.folder is not None,
        )  # fmt: skip
        return Outcome(reports.results(self.data, chosen, base, found), tables, compose)


def tried(settings: Settings) -> dict[str, list[Objective]]:
    """The objectives to choose from for each loss: temperatures, and percentiles if it drops."""
    plain = [{"gamma_match": t} for t in settings.temperatures]
    drops = [{"percentile": p, "gamma_match": t} for p in settings.percentiles for t in settings.drop_temperatures]
    return {
        name: [Objective(name, **some) for some in (drops if loss.drops else plain)] for name, loss in LOSSES.items()
    }


def choose(work: Penn, processes: int = 1, progress: Progress = None) -> dict[str, list[Objective]]:
    """For each loss and level, the settings with the best validation τ on one seed."""
    levels, options = work.settings.levels, tried(work.settings)
    places = {(name, level): some for level in levels for name, some in options.items()}
    best = work.best(places, lambda place: place[1], processes, progress)
    return {name: [best[name, level] for level in levels] for name in options}


def run(
    work: Penn,
    chosen: Mapping[str, Sequence[Objective]],
    *,
    processes: int = 1,
    say: Callable[[str], None] = print,
    progress: Progress = None,
) -> dict[str, list[list[Scores]]]:
    """Test scores of each loss, by level and seed."""
    levels, actions = work.settings.levels, sorted(work.pairs)
    places = {
        (level, name): (objectives[k], level) for k, level in enumerate(levels) for name, objectives in chosen.items()
    }
    done = work.every_seed(places, processes, progress)
    found: dict[str, list[list[Scores]]] = {name: [] for name in chosen}
    for level in levels:
        for name in chosen:
            parts = [
                [dict(zip(actions, kept[part].tolist(), strict=False)) for part in ("tau", "error")]
                for kept in done[level, name]
            ]
            found[name].append([Scores(*both) for both in parts])
        means = ", ".join(
            f"{LOSSES[name].title} {np.mean([s.over(actions) for s in rows[-1]]):.3f}" for name, rows in found.items()
        )
        say(f"{100 * level:.0f} % outliers: τ {means}")
    return found
