"""Figures of step localization (paper Fig. 4 and similar): ground truth and methods as colored bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib.pyplot as plt
import numpy as np

from dropdtw import plot
from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from reproduction.common.experiment import Outcome, Run
from reproduction.common.report import Report
from reproduction.common.training import Plan
from reproduction.data.steps import StepVideo
from reproduction.steps.datasets import DATASETS, STAND_IN, load_splits
from reproduction.steps.experiment import Settings
from reproduction.steps.inference import by_method, localize
from reproduction.steps.losses import LOSSES
from reproduction.steps.model import Objective, StepModel
from reproduction.steps.splits import Source
from reproduction.steps.training import choose_setting, softmax_cost, train_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN: Final = ("drop-percentile", "otam", "smooth")
"""The losses shown in the figures."""


def same_method(models: Mapping[str, StepModel], settings: Mapping[str, float], video: StepVideo) -> dict[str, Array]:
    """Results of each loss with its own inference method in `LOSSES`: DTW for "smooth", OTAM for "otam"."""
    rows = {"truth": video.labels}
    for name, model in models.items():
        own = LOSSES[model.objective.loss].inference
        if own == "drop_dtw":
            found = localize(*model.costs(video, settings[name]))
        else:
            found = by_method(softmax_cost(model)(video), own, 0.0)
        rows[name] = video.ids_of(found)
    return rows


def drop_inference(
    models: Mapping[str, StepModel], settings: Mapping[str, float], video: StepVideo
) -> dict[str, Array]:
    """Results of features trained with each loss, with Drop-DTW as inference."""
    rows = {"truth": video.labels}
    for name, model in models.items():
        rows[name] = video.ids_of(localize(*model.costs(video, settings[name])))
    return rows


def draw(title: str, videos: Sequence[StepVideo], rows: Sequence[Mapping[str, Array]]) -> Figure:
    """Draw one group of bars per video, under one title."""
    heights = [len(row) for row in rows]
    figure: Figure
    figure, axes = plt.subplots(
        len(videos),
        1,
        figsize=(9.5, 0.6 + 0.62 * sum(heights)),
        layout="constrained",
        height_ratios=heights,
        squeeze=False,
    )
    for ax, video, labels in zip(axes[:, 0], videos, rows, strict=True):
        texts = {int(step): text for step, text in zip(video.step_ids, video.step_texts, strict=True)}
        seconds = video.clip_seconds or 1.0
        plot.step_bars(labels, names=texts, fps=1 / seconds, xlabel="", title=video.name, ax=ax)
    axes[-1, 0].set_xlabel("seconds")
    figure.suptitle(title, fontsize="medium")
    return figure


def finding(title: str, rows: Sequence[Mapping[str, Array]]) -> str:
    """The share of drawn frames that each method labels correctly, in one sentence."""
    right = {
        name: np.mean(np.concatenate([row[name] == row["truth"] for row in rows]))
        for name in rows[0]
        if name != "truth"
    }
    told = ", ".join(f"{name} {share:.0%}" for name, share in right.items())
    return f"{title}: correctly labeled frames of these {len(rows)} videos: {told}."


def telling(videos: Sequence[StepVideo], count: int, seed: int = 0) -> list[StepVideo]:
    """Random videos of medium length for a figure, neither trivial nor crowded. The choice does not look at results."""
    fits = [v for v in videos if 4 <= len(v.steps) <= 6 and 40 <= len(v.frames) <= 90] or list(videos)
    chosen = np.random.default_rng(seed).permutation(len(fits))[:count]
    return [fits[k] for k in chosen]


@dataclass(frozen=True)
class Bars(Run):
    """Trains a model with each loss in `SHOWN`, and draws what it finds in some test videos of tmnist-steps."""

    settings: Settings = field(default_factory=Settings)

    name = "bars"
    title = "Step localization"
    about = "Which frames show which step: the truth, and what methods find."
    data_name = "data"

    @property
    def source(self) -> str:
        """The title of the data."""
        return DATASETS[STAND_IN].title

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Train and draw."""
        s = self.settings
        mnist, encoder = (None if path is None else Path(path) for path in (s.mnist, s.encoder))
        splits = load_splits(STAND_IN, Source(self.cache.folder, mnist=mnist, encoder=encoder, quick=s.small), s.seed)
        plan = Plan(epochs=s.epochs, lr=s.lr, seed=s.seed, accelerator=self.device)
        models: dict[str, StepModel] = {}
        settings: dict[str, float] = {}
        for loss in SHOWN:
            name = LOSSES[loss].title
            models[name], _ = train_model(splits.train, splits.val, Objective(loss), plan, progress=progress)
            settings[name] = choose_setting(models[name], splits.val)
            say(f"trained with {name}")
        shown = telling(list(splits.test), 3, s.seed)
        drawn = []
        for name, title, make in (
            ("bars-same", "The same method in training and inference", same_method),
            ("bars-drop", "Drop-DTW as inference, on features trained with each loss", drop_inference),
        ):
            rows = [make(models, settings, video) for video in shown]
            said = f"{title}: the true steps and what was found; colors are steps, blank is background."
            drawn.append((finding(title, rows), name, draw(title, shown, rows), said))

        def compose(report: Report) -> None:
            for one in drawn:
                report.lead(*one)

        return Outcome({"findings": [one[0] for one in drawn]}, [], compose)
