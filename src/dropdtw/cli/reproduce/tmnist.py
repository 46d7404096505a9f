"""`dropdtw reproduce tmnist`: retrieval and localization on moving digits (paper Section 4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dropdtw.cli.reproduce import options
from dropdtw.cli.reproduce.options import Quick, Seed


def tmnist(
    mnist: Annotated[
        Path | None, typer.Option(help="Folder with the four MNIST files. Without it: DROPDTW_DATA, else 5,000 digits.")
    ] = None,
    quick: Quick = False,
    seeds: Annotated[int, typer.Option(min=2, help="Generated pairs of sets to test on.")] = 5,
    seed: Seed = 0,
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
    options.check_installed()
    from dropdtw.experiments.tmnist.experiment import Settings, reproduce

    settings = Settings(seed=seed, sets=seeds, sequences=sequences, epochs=epochs)
    reproduce(
        settings.quick() if quick else settings,
        out,
        folder=None if mnist is None else str(mnist),
        encoder=None if encoder is None else str(encoder),
        device=options.device(device),
        command=options.command(),
        say=typer.echo,
    )
