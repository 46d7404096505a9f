"""`dropdtw reproduce penn` and `dropdtw reproduce ave`: representation learning and audio-visual localization."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def penn(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of Penn Action (labels/*.mat, or the packed .npz). Without it: moving digits."),
    ] = None,
    images: Annotated[
        int, typer.Option(min=0, help="Train on images of this side (frames/NNNN/*.jpg) instead of poses.")
    ] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds: only to see that everything works.")] = False,
    seeds: Annotated[int, typer.Option(min=2, help="Trained encoders of each kind.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random: same seed, same numbers.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Of each training, 1,024 pairs each.")] = 60,
    share_of: Annotated[
        str,
        typer.Option(help="What the share of outliers is of: mixed (the contaminated sequence) or own (Y's frames)."),
    ] = "mixed",
    device: Annotated[str, typer.Option(help="For the training: cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time, each in a process of its own.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json, pictures and the cache.")] = Path(
        "runs/penn"
    ),
) -> None:
    """Representation learning with outliers in training (Section 4.3, Fig. 5)."""
    from dropdtw.experiments.penn.experiment import Penn
    from dropdtw.experiments.penn.settings import Settings

    settings = Settings(seed=seed, seeds=seeds, epochs=epochs, images=images, share_of=share_of)
    _run(Penn.reproduce, settings.quick() if quick else settings, data, device, jobs, out)


def ave(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of AVE with its features, or of GRID's npz. Without it: moving digits."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds: only to see that everything works.")] = False,
    seeds: Annotated[int, typer.Option(min=2, help="Trained models of each kind.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random: same seed, same numbers.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Of each training, 30 batches of 24 videos each.")] = 80,
    device: Annotated[str, typer.Option(help="For the training: cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time, each in a process of its own.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json and the cache.")] = Path("runs/ave"),
) -> None:
    """Cross-modality localization (Section 4.4, Table 3): a passage of sound in the picture, and back."""
    from dropdtw.experiments.ave.experiment import Ave, Settings

    settings = Settings(seed=seed, seeds=seeds, epochs=epochs)
    _run(Ave.reproduce, settings.quick() if quick else settings, data, device, jobs, out)


def _run(
    reproduce: Callable[..., object], settings: object, data: Path | None, device: str, jobs: int, out: Path
) -> None:
    from dropdtw.cli.reproduce import _device as checked

    reproduce(
        settings,
        out,
        folder=None if data is None else str(data),
        device=checked(device),
        processes=jobs,
        command=shlex.join(["dropdtw", *sys.argv[1:]]),
        say=typer.echo,
    )
