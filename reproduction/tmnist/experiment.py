"""The paper's controlled experiments on TMNIST (Section 4.1), from the digits to the report.

`python -m reproduction tmnist` runs this. It trains the encoder, generates and encodes the videos, runs retrieval and
localization, and writes report.html, results.json and the figures to a folder. Slow results are cached there, so that
a second run takes seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from reproduction.common import encoder as encoders
from reproduction.common import pools
from reproduction.common.cache import Cache, fingerprint
from reproduction.common.experiment import Outcome, Run
from reproduction.common.pools import Videos
from reproduction.common.report import Report, Table, averaged, cells, rounded
from reproduction.data import mnist, tmnist
from reproduction.tmnist import localization, retrieval
from reproduction.tmnist.pictures import Pictures, best_rows, title

# The paper's numbers, in percent, with standard errors if it gives them.
PAPER_ENCODER = 99.53
PAPER_LOCALIZATION = {"accuracy": (97.1, 0.28), "iou": (91.2, 0.71)}
PAPER_RATIO = 8.0
"""Ratio of Drop-DTW's recall to DTW's at the highest noise level."""

VALIDATION = 2
"""Number of separate sets to tune settings on; composing a sequence needs two clips of a class."""


@dataclass(frozen=True)
class Settings:
    """How much to run; the defaults are the paper's sizes.

    sets : number of generated pairs of test sets.   sequences : number of sequences for localization.
    epochs, batch : epochs and batch size of the encoder's training.   digits : number of training digits; None: all.
    classes : number of classes to use, of 80.
    """

    seed: int = 0
    sets: int = 5
    sequences: int = 1000
    epochs: int = 15
    classes: int = 80
    digits: int | None = None
    batch: int = 128
    levels: tuple[float, ...] = retrieval.LEVELS

    def quick(self) -> Settings:
        """A version that runs in seconds, as a smoke test: tiny sets and a barely trained encoder."""
        levels = (0.0, 0.5, 0.9)
        return replace(self, sets=2, sequences=10, epochs=4, classes=8, digits=400, batch=25, levels=levels)


@dataclass(frozen=True)
class Tmnist(Run):
    """Trains the encoder, encodes the videos, and runs retrieval and localization.

    encoder : a file of weights, instead of training.
    """

    settings: Settings = field(default_factory=Settings)
    encoder: str | None = None

    name = "tmnist"
    title = "Drop-DTW on TMNIST"
    about = (
        "The videos show MNIST digits that move along eight trajectories. Retrieval: for a part of a trajectory with "
        "blurred frames, find the whole one. Localization: find the passages of one class in a sequence of several."
    )
    data_name = "digits"

    @cached_property
    def data(self) -> mnist.Mnist:
        """The digits."""
        return mnist.load(self.folder)

    @property
    def source(self) -> str:
        """A description of the digits, with their number."""
        return self.data.source

    def outcome(self, processes: int, say: Callable[[str], None], progress: Progress) -> Outcome:
        """Train, encode, retrieve and localize."""
        s, data = self.settings, self.data
        start = time.monotonic()
        network = pools.trained_encoder(
            data,
            self.cache,
            epochs=s.epochs,
            batch=s.batch,
            seed=s.seed,
            digits=s.digits,
            path=self.encoder,
            device=self.device,
            progress=progress,
        )
        accuracy = encoders.accuracy(network, data.test_images, data.test_labels)
        say(f"encoder: accuracy {100 * accuracy:.2f} % on test digits (paper: {PAPER_ENCODER} %), {_since(start)}")

        start = time.monotonic()
        # Spread over digits and trajectories, so that a few classes are not all of one digit.
        classes = [tmnist.CLASSES[k] for k in np.linspace(0, len(tmnist.CLASSES) - 1, s.classes).round().astype(int)]
        seeds = [1000 * s.seed + k for k in range(s.sets + VALIDATION)]
        made = pools.encode(network, data, seeds, classes, self.cache, progress)
        mean = np.mean([videos.mean for videos in made[:VALIDATION]], axis=0)
        validation, test = ([v.centered(mean) for v in part] for part in (made[:VALIDATION], made[VALIDATION:]))
        sets = f"{len(made)} pairs of sets of {len(classes)} classes ({VALIDATION} for validation)"
        say(f"videos: {sets}, {_since(start)}")

        start = time.monotonic()
        found = _retrieval(test, validation, s, self.cache, progress)
        say(f"retrieval: {_since(start)}")
        start = time.monotonic()
        placed = localization.run(test, validation, count=s.sequences, seed=s.seed, progress=progress)
        say(f"localization: {_since(start)}\n{ratio_sentence(found)}")
        pictures = Pictures(data, classes, seeds[VALIDATION:], test)
        compose = partial(_compose, accuracy=accuracy, found=found, placed=placed, pictures=pictures)
        return Outcome(_results(accuracy, found, placed), [retrieval_table(found), localization_table(placed)], compose)


def _retrieval(
    test: list[Videos], validation: list[Videos], settings: Settings, cache: Cache, progress: Progress
) -> retrieval.Retrieval:
    """Run retrieval; recalls and chosen settings are cached."""
    table = retrieval.rows()
    codes = [np.concatenate(videos.full + videos.part + videos.blurred) for videos in validation + test]
    key = fingerprint(retrieval, pools, *codes, list(settings.levels), settings.seed)

    def make() -> dict[str, Array]:
        run = retrieval.run(test, validation, levels=settings.levels, seed=settings.seed, progress=progress)
        return {
            "chosen": np.array([row.settings.index(run.chosen[row.name]) for row in table]),
            "recall": np.stack([run.recall[row.name] for row in table]),
        }

    kept = cache.arrays("retrieval", key, make)
    chosen = {row.name: row.settings[k] for row, k in zip(table, kept["chosen"].tolist(), strict=True)}
    return retrieval.Retrieval(
        settings.levels, chosen, {row.name: values for row, values in zip(table, kept["recall"], strict=True)}
    )


def retrieval_table(found: retrieval.Retrieval) -> Table:
    """Recall@1 of each row at each noise level in percent, as the mean over the sets."""
    sets = len(next(iter(found.recall.values())))
    rows = [[name, str(found.chosen[name]), *map(_percent, values.T)] for name, values in found.recall.items()]
    head = ["method", "chosen on other sets", *(f"{100 * level:.0f} %" for level in found.levels)]
    caption = f"Retrieval: Recall@1 in % by share of blurred frames, {averaged(sets, 'sets')}"
    return Table(caption, head, rows)


def ratios(found: retrieval.Retrieval) -> dict[str, Array]:
    """For each Drop-DTW row, the ratio of its recall to DTW's, by noise level."""
    dtw = found.recall["dtw"].mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {n: v.mean(axis=0) / dtw for n, v in found.recall.items() if n.startswith("Drop-DTW")}


def ratio_sentence(found: retrieval.Retrieval) -> str:
    """The ratio of Drop-DTW's recall to DTW's at the highest noise level, in one sentence; the paper's is 8."""
    parts = [f"{values[-1]:.1f} × ({name.removeprefix('Drop-DTW, ')})" for name, values in ratios(found).items()]
    noise = f"{100 * found.levels[-1]:.0f} % blurred frames"
    return f"Drop-DTW's recall over DTW's at {noise}: {', '.join(parts)}; quoted from the paper: {PAPER_RATIO:g} ×"


def localization_table(placed: localization.Localization) -> Table:
    """Accuracy and IoU of each row, with the paper's numbers."""
    count = len(next(iter(placed.accuracy.values())))
    paper = [f"{mean:.1f} ± {error:.2f}" for mean, error in PAPER_LOCALIZATION.values()]
    rows = [["Drop-DTW, longest runs", "d 0.3", *paper]]
    for name in placed.accuracy:
        scores = [_percent(values, 1, 2) for values in (placed.accuracy[name], placed.iou[name])]
        rows.append([name, str(placed.chosen.get(name, "–")), *scores])
    head = ["rule", "chosen on other clips", "accuracy", "IoU"]
    caption = f"Localization: accuracy and IoU in %, {averaged(count, 'sequences')}"
    return Table(caption, head, rows, quoted=[0])


def _percent(values: Array, digits: int = 0, error_digits: int = 0) -> str:
    return cells(values[:, None], digits, 100, error_digits)[0]


def _mean(values: Array) -> dict[str, float]:
    """Mean and standard error in percent."""
    return rounded(values[:, None], 3, 100)[0]


def _results(accuracy: float, found: retrieval.Retrieval, placed: localization.Localization) -> dict[str, object]:
    """The results for results.json, in percent, without anything that differs from run to run."""
    return {
        "paper": {
            "encoder_accuracy": PAPER_ENCODER,
            "localization": {k: {"mean": mean, "error": error} for k, (mean, error) in PAPER_LOCALIZATION.items()},
            "retrieval_ratio_at_most_noise": PAPER_RATIO,
        },
        "encoder_accuracy": round(100 * accuracy, 3),
        "retrieval": {
            name: {
                "method_settings": {k: v for k, v in asdict(found.chosen[name]).items() if v is not None},
                "recall_at_1": [_mean(column) for column in values.T],
            }
            for name, values in found.recall.items()
        },
        "retrieval_ratio": {
            name: [round(float(v), 3) if np.isfinite(v) else None for v in values]
            for name, values in ratios(found).items()
        },
        "localization": {
            name: {
                "method_settings": asdict(placed.chosen[name]) if name in placed.chosen else {},
                "accuracy": _mean(placed.accuracy[name]),
                "iou": _mean(placed.iou[name]),
            }
            for name in placed.accuracy
        },
    }


def retrieval_finding(found: retrieval.Retrieval) -> str:
    """The finding of retrieval in one sentence."""
    drop, other = best_rows(found)
    recall = {name: f"{100 * found.recall[name][:, -1].mean():.0f} %" for name in (drop, "dtw", other)}
    return (
        f"With {100 * found.levels[-1]:.0f} % of its frames blurred, a query finds its video in {recall[drop]} of the "
        f"cases by Drop-DTW, in {recall['dtw']} by DTW, and in {recall[other]} by {title(other)}, the best other "
        "method."
    )


def localization_finding(placed: localization.Localization) -> str:
    """The finding of localization in one sentence."""
    name = "Drop-DTW, longest runs"
    scores = {"accuracy": placed.accuracy, "iou": placed.iou}
    found = {part: f"{100 * values[name].mean():.1f} %" for part, values in scores.items()}
    paper = {part: f"{mean:g} %" for part, (mean, _) in PAPER_LOCALIZATION.items()}
    return (
        f"Drop-DTW finds both passages of an event with an IoU of {found['iou']} and labels {found['accuracy']} of the "
        f"frames correctly (quoted from the paper: {paper['iou']} and {paper['accuracy']})."
    )


def _compose(
    report: Report, accuracy: float, found: retrieval.Retrieval, placed: localization.Localization, pictures: Pictures
) -> None:
    """Fill the report: the findings first, then each experiment in full."""
    pictures.lead_retrieval(report, found, retrieval_finding(found))
    pictures.lead_localization(report, placed, localization_finding(placed))
    named = f"{100 * accuracy:.2f} % of the test digits classified correctly (quoted from the paper: {PAPER_ENCODER} %)"
    report.text(f"Encoder: {named}.")
    report.heading("Samples")
    pictures.samples(report)
    report.heading("Retrieval (Section 4.1.1, Figs. 2 and 3)")
    report.table(retrieval_table(found))
    report.text(ratio_sentence(found) + ".")
    pictures.all_methods(report, found)
    pictures.query(report, found)
    report.heading("Localization (Section 4.1.2)")
    report.table(localization_table(placed))


def _since(start: float) -> str:
    return f"{time.monotonic() - start:.0f} s"
