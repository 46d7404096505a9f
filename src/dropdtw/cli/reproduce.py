"""`dropdtw reproduce …`: the paper's experiments, one command each."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dropdtw.cli import reproduce_steps, reproduce_video

app = typer.Typer(
    help="Run the paper's experiments and write reports. Needs: pip install 'dropdtw[experiments]'.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Keep `reproduce` a group, however many experiments it has."""


@app.command(epilog="Example: dropdtw reproduce tmnist --seeds 2 --sequences 200 --epochs 8 --out runs/tmnist")
def tmnist(
    mnist: Annotated[
        Path | None, typer.Option(help="Folder with the four MNIST files. Without it: DROPDTW_DATA, else 5,000 digits.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sets, seconds: only to see that everything works.")
    ] = False,
    seeds: Annotated[int, typer.Option(min=2, help="Generated pairs of sets to test on.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random: same seed, same numbers.")] = 0,
    sequences: Annotated[int, typer.Option(min=1, help="Sequences for localization.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Of the encoder's training.")] = 15,
    encoder: Annotated[
        Path | None, typer.Option(help="Weights to use instead of training: OUT/cache/encoder-….npz.")
    ] = None,
    device: Annotated[str, typer.Option(help="For the encoder: cpu or cuda.")] = "cpu",
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json, pictures and the cache.")] = Path(
        "runs/tmnist"
    ),
) -> None:
    """Retrieval and localization on moving digits (Section 4.1), beside the paper's figures."""
    from dropdtw.experiments.tmnist.experiment import Settings, reproduce

    settings = Settings(seed=seed, sets=seeds, sequences=sequences, epochs=epochs)
    reproduce(
        settings.quick() if quick else settings,
        out,
        folder=None if mnist is None else str(mnist),
        encoder=None if encoder is None else str(encoder),
        device=_device(device),
        command=shlex.join(["dropdtw", *sys.argv[1:]]),
        say=typer.echo,
    )


def _device(name: str) -> str:
    import torch

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError):
        raise ValueError(f"there is no device {name!r} here; use --device cpu") from None
    return name


app.command(epilog="Example: dropdtw reproduce steps --loss drop-percentile --out runs/steps")(reproduce_steps.steps)
app.command(epilog="Example: dropdtw reproduce table 1 --seeds 3 --out runs/steps")(reproduce_steps.table)
app.command(epilog="Example: dropdtw reproduce bars --out runs/steps")(reproduce_steps.bars)
app.command(epilog="Example: dropdtw reproduce penn --data DIR --out runs/penn")(reproduce_video.penn)
app.command(epilog="Example: dropdtw reproduce ave --data DIR --jobs 8 --out runs/ave")(reproduce_video.ave)
