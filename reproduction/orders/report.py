"""The output of `python -m reproduction orders`: tables, results.json and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dropdtw import plot
from dropdtw.plot.common import pyplot
from dropdtw.problem.inputs import Array
from reproduction.common.cache import Arrays
from reproduction.common.pictures import dots
from reproduction.common.report import Report, Table, averaged, cells, rounded
from reproduction.data.steps import StepVideo
from reproduction.orders.inference import SCORES, Drops
from reproduction.steps.tables import TRIPLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIGIT_SCORES: Final = ("recall", "accuracy", "IoU")

Inferred = Mapping[float, Mapping[str, Sequence[Arrays]]]


@dataclass(frozen=True)
class Found:
    """The results; a part that did not run is empty.

    inference : {"chosen", "scores"} of each seed, by noise and way.   training : (seeds,) by way.
    digits : (seeds, 3) in percent, by row.
    """

    inference: Inferred
    training: Mapping[str, Array]
    digits: Mapping[str, Array]


@dataclass(frozen=True)
class Pictured:
    """A recording, and the step of each frame by name."""

    video: StepVideo
    rows: Mapping[str, Array]
    noise: float


def means(some: Sequence[Arrays]) -> Array:
    """The mean `SCORES` of each seed's recordings, (seeds, 3)."""
    return np.stack([one["scores"].mean(axis=0) for one in some])


def tables(found: Found) -> list[Table]:
    """A table for each level of noise, one for the linear maps and one for the digits."""
    made = []
    for noise, ways in found.inference.items():
        seeds = len(next(iter(ways.values())))
        rows = [[way, _chosen(some), *cells(means(some), 1, 100)] for way, some in ways.items()]
        gained = means(ways["graph"]) - means(ways["list"])
        rows.append(["graph − list", "", *cells(gained, 1, 100)])
        caption = f"Inference, simulated features, noise {noise:g}: in %, {averaged(seeds, 'seeds')}"
        made.append(Table(caption, ["", "chosen: percentile, × for a step", *SCORES], rows))
    if found.training:
        seeds = len(next(iter(found.training.values())))
        rows = [[way, *cells(values[:, None], 1, 100)] for way, values in found.training.items()]
        caption = "A linear map trained from orders alone, simulated features: step frames labeled correctly"
        made.append(Table(f"{caption} in %, {averaged(seeds, 'seeds')}", ["", "accuracy"], rows))
    if found.digits:
        seeds = len(next(iter(found.digits.values())))
        rows = [[name, *cells(values, 1)] for name, values in found.digits.items()]
        caption = "tmnist-steps, a stand-in, with independent steps shuffled; tested with the graph"
        head = ["", *DIGIT_SCORES]
        made.append(Table(f"{caption}: in %, {averaged(seeds, 'seeds')}", head, rows))
    return made


def _chosen(some: Sequence[Arrays]) -> str:
    return "; ".join(dict.fromkeys(str(Drops(*one["chosen"].tolist())) for one in some))


def results(found: Found) -> dict[str, object]:
    """The results for results.json, in percent."""
    return {
        "simulated_features": ["inference", "training"],
        "inference": {
            f"{noise:g}": {
                way: {
                    "chosen": [one["chosen"].tolist() for one in some],
                    **dict(zip(SCORES, rounded(means(some), 2, 100), strict=True)),
                }
                for way, some in ways.items()
            }
            for noise, ways in found.inference.items()
        },
        "training": {way: rounded(values[:, None], 2, 100)[0] for way, values in found.training.items()},
        "digits": {
            name: dict(zip(TRIPLE, rounded(values, 2), strict=True)) for name, values in found.digits.items()
        },
    }  # fmt: skip


def compose(report: Report, *, found: Found, tables: Sequence[Table], pictured: Callable[[], Pictured] | None) -> None:
    """Fill the report with text, tables and figures."""
    if pictured is not None:
        shown = pictured()
        said = f"Results of each method on a recording ({shown.video.name}), simulated features, noise {shown.noise:g}."
        report.lead(inference_finding(found.inference), "bars", bars(shown), said)
    if found.training:
        rows = {way: 100 * values[:, None] for way, values in found.training.items()}
        said = "A linear map trained from orders alone, on simulated features; mean and standard error over seeds."
        picture = dots(rows, ["accuracy"], xlabel="step frames labeled correctly, %")
        report.lead(training_finding(found.training), "training", picture, said)
    if found.digits:
        said = "Digits whose videos follow a partial order, a stand-in; mean and standard error over seeds."
        report.lead(digits_finding(found.digits), "digits", dots(found.digits, DIGIT_SCORES, xlabel="%"), said)
    report.text(
        "Orders, durations and gaps of the recordings come from the source named below; their features are simulated. "
        "For each method and seed, drop costs are tuned on recordings outside the test set."
    )
    for table in tables:
        report.table(table)
    if found.inference:
        report.picture(
            "inference",
            curves(found.inference),
            "IoU by noise, mean and standard error over seeds, simulated features.",
        )


def inference_finding(inferred: Inferred) -> str:
    """The finding of inference in one sentence."""
    noise = next(iter(inferred))
    iou = {way: 100 * means(some)[:, 1].mean() for way, some in inferred[noise].items()}
    return (
        f"With the recipe as a graph, steps are found with an IoU of {iou['graph']:.1f} % at noise {noise:g}; with a "
        f"list, {iou['list']:.1f} %; with the true order, {iou['true order (bound)']:.1f} %."
    )


def training_finding(trained: Mapping[str, Array]) -> str:
    """The finding of training a linear map in one sentence."""
    right = {way: f"{100 * values.mean():.1f} %" for way, values in trained.items()}
    return (
        f"A map trained with the graph labels {right['graph']} of the step frames correctly; with a list, "
        f"{right['list']}; with the true order, {right['true order (bound)']}."
    )


def digits_finding(digits: Mapping[str, Array]) -> str:
    """The finding of training on digits in one sentence."""
    iou = {name: f"{values[:, 2].mean():.1f} %" for name, values in digits.items()}
    return (
        f"On moving digits, training with the graph gives an IoU of {iou['graph']}; with a list, {iou['list']}; with "
        f"the true order, {iou['true order (bound)']}."
    )


def bars(shown: Pictured) -> Figure:
    """Draw the true steps of a recording and the results as colored bars."""
    names = {row: f"{row}" for row in range(len(shown.video.steps))}
    seconds = shown.video.clip_seconds or 1.0
    title = f"{shown.video.task}: {shown.video.name} (simulated features)"
    ax = pyplot().subplots(figsize=(5.8, 0.9 + 0.5 * len(shown.rows)))[1]
    return _figure(plot.step_bars(shown.rows, names=names, fps=1 / seconds, title=title, ax=ax))


def curves(inferred: Inferred) -> Figure:
    """Draw IoU against noise."""
    ways = next(iter(inferred.values()))
    values = {way: np.stack([100 * means(inferred[noise][way])[:, 1] for noise in inferred], axis=1) for way in ways}
    return _figure(
        plot.curves(list(inferred), values, emphasis=("graph",), xlabel="noise (simulated features)", ylabel="IoU in %")
    )


def _figure(ax: object) -> Figure:
    figure: Figure = ax.figure  # type: ignore[attr-defined]
    figure.set_layout_engine("constrained")
    return figure
