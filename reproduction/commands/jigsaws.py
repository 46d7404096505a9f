"""`python -m reproduction jigsaws`: training from transcripts on kinematics of surgeons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reproduction.commands import options
from reproduction.commands.options import Jobs, Quick, Seed
from reproduction.commands.video import Device


def jigsaws(
    folder: Annotated[Path, typer.Option(help="Folder of jigsaws.npz, the packed trials of JIGSAWS.")],
    quick: Quick = False,
    seeds: Annotated[int, typer.Option(min=1, help="Number of models to train of each kind.")] = 3,
    seed: Seed = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Training epochs after the flat start.")] = 30,
    subjects: Annotated[int | None, typer.Option(min=1, help="Test only so many subjects. Default: all.")] = None,
    device: Device = "cpu",
    jobs: Jobs = 1,
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json, pictures and the cache.")] = Path(
        "runs/jigsaws"
    ),
) -> None:
    """Train on the order of gestures alone (Tables 1, 4 and 6 on real signals), with junk in the trials."""
    options.check_installed()
    from dataclasses import replace

    from reproduction.jigsaws.experiment import Settings, Transcripts

    settings = Settings(seed=seed, seeds=seeds, epochs=epochs)
    settings = settings.quick() if quick else settings
    Transcripts.reproduce(
        settings if subjects is None else replace(settings, subjects=subjects),
        out,
        folder=str(folder),
        device=options.device(device),
        processes=jobs,
        command=options.command(),
        say=typer.echo,
    )
