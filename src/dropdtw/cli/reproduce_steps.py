"""`dropdtw reproduce steps`, `table` and `bars`: multi-step localization (paper Section 4.2)."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dropdtw.experiments.common.report import Table
    from dropdtw.experiments.steps.data import Splits

Mnist = Annotated[
    Path | None,
    typer.Option(
        help="For tmnist-steps: folder with the four MNIST files. Without it: DROPDTW_DATA, else 5,000 digits."
    ),
]
EncoderFile = Annotated[
    Path | None, typer.Option(help="For tmnist-steps: weights of the frame encoder instead of training it.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Tiny data, seconds: only to see that everything works.")]
Out = Annotated[Path, typer.Option(help="Folder for results, checkpoints, pictures and the cache.")]
Folder = Annotated[Path | None, typer.Option(help="Folder of the data set, in its published layout.")]
Epochs = Annotated[int, typer.Option(min=1, help="Of training.")]


@dataclass(frozen=True)
class StandIn:
    """How to make tmnist-steps."""

    mnist: Path | None
    encoder: Path | None
    out: Path
    quick: bool

    def splits(self, seed: int) -> Splits:
        """The data of a seed; the encoder and the clips are the same for all."""
        from dropdtw.data import mnist
        from dropdtw.experiments.common import pools as videos
        from dropdtw.experiments.common.cache import Cache
        from dropdtw.experiments.steps.data import tmnist_splits
        from dropdtw.experiments.steps.stand_in import Procedures

        data = mnist.load(None if self.mnist is None else str(self.mnist))
        cache = Cache(self.out / "cache")
        how = Procedures(seed=seed)
        sizes: dict[str, int | None] = {"epochs": 15, "batch": 128, "digits": None}
        if self.quick:
            how = replace(how, tasks=6, videos=6, classes=12)
            sizes = {"epochs": 3, "batch": 32, "digits": 800}
        path = None if self.encoder is None else str(self.encoder)
        encoder = videos.trained_encoder(data, cache, path=path, **sizes)  # type: ignore[arg-type]
        return tmnist_splits(encoder, data, how, 2 if self.quick else 6, cache)

    def key(self) -> str:
        """What the data depend on, beside the seed."""
        from dropdtw.experiments.common import pools as videos
        from dropdtw.experiments.common.cache import fingerprint
        from dropdtw.experiments.steps import data as step_data
        from dropdtw.experiments.steps import stand_in as tmnist_steps
        from dropdtw.experiments.steps.stand_in import Procedures

        weights = "" if self.encoder is None else self.encoder.read_bytes().hex()
        named = None if self.mnist is None else str(self.mnist)
        return fingerprint(tmnist_steps, step_data, videos, asdict(Procedures()), self.quick, weights, named)


def steps(
    data: Annotated[
        str, typer.Option(help="tmnist-steps (a stand-in for everyone), utkinect, coin, crosstask or youcook2.")
    ] = "tmnist-steps",
    loss: Annotated[
        str, typer.Option(help="drop-percentile, drop-learned, drop-anchored, smooth, d3tw, otam, or none.")
    ] = "drop-percentile",
    cluster: Annotated[bool, typer.Option(help="Whether L_clust is added.")] = True,
    percentile: Annotated[float, typer.Option(min=0, max=100, help="Of the drop logit in training.")] = 30.0,
    reducer: Annotated[str | None, typer.Option(help="The minimum inside: smooth, soft or hard.")] = None,
    epochs: Epochs = 10,
    lr: Annotated[float, typer.Option(min=0, help="Adam's learning rate.")] = 3e-4,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random: same seed, same numbers.")] = 0,
    folder: Folder = None,
    features: Annotated[
        Path | None, typer.Option(help="Folder or HDF5 file of frame features, for coin, crosstask, youcook2.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="File of step embeddings, for coin, crosstask, youcook2.")
    ] = None,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out videos that cannot be read, and say so.")
    ] = False,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    accelerator: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    devices: Annotated[int, typer.Option(min=1, help="Several are several processes.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in OUT.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard's files too.")] = False,
    quick: Quick = False,
    out: Out = Path("runs/steps"),
) -> None:
    """Train a step-localization model from the order of steps alone, and evaluate it on test videos."""
    from dropdtw.experiments.common.training import Plan
    from dropdtw.experiments.steps import experiment
    from dropdtw.experiments.steps.model import Objective
    from dropdtw.files import atomic

    objective = Objective(loss, cluster, percentile, reducer)
    plan = Plan(epochs=2 if quick else epochs, lr=lr, seed=seed, accelerator=accelerator, devices=devices)
    splits = _splits(data, StandIn(mnist, encoder, out, quick), folder, features, embeddings, seed, skip_broken)
    _say(f"{data}: {len(splits.train)} videos to train on, {len(splits.val)} to choose on, {len(splits.test)} to test")
    model, fit = experiment.train_model(
        splits.train, splits.val, objective, plan, out=out, resume=resume, tensorboard=tensorboard, say=typer.echo
    )
    chosen = experiment.choose_percentile(model, splits.val)
    found = {name: 100 * value for name, value in asdict(experiment.evaluate(model, splits.test, chosen)).items()}
    results = {
        "experiment": "steps",
        "data": data,
        "stand_in": data == "tmnist-steps",
        "command": shlex.join(["dropdtw", *sys.argv[1:]]),
        "objective": asdict(objective),
        "best_epoch": None if fit is None else fit.epoch,
        "percentile": chosen,
        "test": found,
    }
    atomic.write_json(out / "results.json", results)
    label = " (a stand-in)" if data == "tmnist-steps" else ""
    _say(f"{data}{label}, test: " + ", ".join(f"{name} {value:.1f}" for name, value in found.items()))


def _say(text: str) -> None:
    """Print, in the first of several processes."""
    if os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0":
        typer.echo(text)


def _splits(
    data: str,
    stand_in: StandIn,
    folder: Path | None,
    features: Path | None,
    embeddings: Path | None,
    seed: int,
    skip_broken: bool,
) -> Splits:
    from dropdtw.experiments.steps import data as step_data

    if data not in step_data.NAMES:
        raise ValueError(f"--data is {data!r}; choose one of {', '.join(step_data.NAMES)}")
    if data == "tmnist-steps":
        return stand_in.splits(seed)
    if folder is None:
        raise ValueError(f"{data} needs --folder, the folder of its annotations")
    if data == "utkinect":
        return step_data.utkinect_splits(folder)
    if features is None or embeddings is None:
        raise ValueError(f"{data} needs --features (a folder of .npy files, say) and --embeddings (a file)")
    return step_data.published_splits(
        data,
        folder,
        features,
        embeddings,
        seed=seed,
        skip_broken=skip_broken,
        say=lambda text: typer.echo(text, err=True),
    )


def table(
    number: Annotated[int, typer.Argument(help="Of the paper: 1, 2, 4, 5 or 6.")],
    data: Annotated[
        str, typer.Option(help="tmnist-steps; for table 2 also utkinect or transcripts, with --folder.")
    ] = "tmnist-steps",
    folder: Folder = None,
    seeds: Annotated[int, typer.Option(min=1, help="How often each row is trained.")] = 3,
    epochs: Epochs = 10,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    quick: Quick = False,
    out: Out = Path("runs/steps"),
) -> None:
    """Make a table of Section 4.2 or its appendix, ours beside the paper's. What was trained before is kept."""
    from dropdtw.experiments.common.training import Plan
    from dropdtw.experiments.steps import tables as step_tables
    from dropdtw.files import atomic

    if number not in step_tables.TITLES:
        raise ValueError(f"there is no table {number} of step localization; choose 1, 2, 4, 5 or 6")
    stand_in = StandIn(mnist, encoder, out, quick)
    if number == 2:
        made = _inference(data, folder, stand_in)
    elif data != "tmnist-steps":
        raise ValueError(
            f"table {number} is trained on tmnist-steps; `dropdtw reproduce steps --data {data}` trains on others"
        )
    else:
        rows = step_tables.trained_rows(
            step_tables.ROWS[number],
            stand_in.splits,
            stand_in.key(),
            range(seeds),
            out,
            plan=Plan(epochs=2 if quick else epochs),
        )
        made = step_tables.table(number, rows, "tmnist-steps, a stand-in", seeds)
    typer.echo(made.text())
    atomic.write(out / f"table-{number}-{data}.txt", made.text() + "\n")
    atomic.write_json(out / f"table-{number}-{data}.json", asdict(made))


def _inference(data: str, folder: Path | None, stand_in: StandIn) -> Table:
    from dropdtw.experiments.steps import data as step_data
    from dropdtw.experiments.steps import experiment
    from dropdtw.experiments.steps import tables as step_tables
    from dropdtw.experiments.steps.model import Objective
    from dropdtw.files.progress import reporter

    report = reporter("methods")
    if data == "tmnist-steps":
        splits = stand_in.splits(0)
        model = experiment.make_model(splits.train, Objective("none", cluster=False), 0)
        folds = [experiment.Fold(experiment.softmax_cost(model), splits.val, splits.test)]
        return step_tables.inference_table(experiment.compare_methods(folds, report=report), "tmnist-steps, a stand-in")
    if data not in ("utkinect", "transcripts"):
        raise ValueError(f"--data is {data!r}; choose tmnist-steps, utkinect or transcripts")
    if folder is None:
        raise ValueError(f"{data} needs --folder, its folder")
    if data == "utkinect":
        found = experiment.compare_methods(step_data.utkinect_folds(folder), report=report)
        return step_tables.inference_table(found, "UTKinect, leave one subject out")
    found = experiment.compare_methods(step_data.transcript_folds(folder), "f1", report=report)
    return step_tables.inference_table(found, "key steps in YouCook2 transcripts")


def bars(
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    epochs: Epochs = 10,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    quick: Quick = False,
    out: Out = Path("runs/steps"),
) -> None:
    """Draw what methods find in test videos (Fig. 4 and its companions), on tmnist-steps."""
    from dropdtw.experiments.common.report import Report
    from dropdtw.experiments.common.training import Plan
    from dropdtw.experiments.steps import bars as step_bars
    from dropdtw.experiments.steps import experiment
    from dropdtw.experiments.steps.model import Objective

    splits = StandIn(mnist, encoder, out, quick).splits(seed)
    plan = Plan(epochs=2 if quick else epochs, seed=seed)
    losses = {"Drop-DTW": "drop-percentile", "OTAM": "otam", "SmoothDTW": "smooth"}
    models, percentiles = {}, {}
    for name, loss in losses.items():
        models[name], _ = experiment.train_model(splits.train, splits.val, Objective(loss), plan)
        percentiles[name] = experiment.choose_percentile(models[name], splits.val)
        typer.echo(f"trained with {name}")
    shown = step_bars.telling(list(splits.test), 3, seed)
    report = Report("Step localization on tmnist-steps, a stand-in", out)
    for name, title, make in (
        ("bars-same", "The same method in training and inference", step_bars.same_method),
        ("bars-drop", "Drop-DTW as inference, on features trained with each loss", step_bars.drop_inference),
    ):
        rows = [make(models, percentiles, video) for video in shown]
        figure = step_bars.draw(title, shown, rows)
        report.heading(title)
        report.picture(
            name, figure, f"{title}: the true steps and what was found; colours are steps, blank is background."
        )
    typer.echo(f"report: {report.write()}")
