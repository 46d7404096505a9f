"""`python -m reproduction penn` and `ave`: representation learning and audio-visual localization."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reproduction.commands import options
from reproduction.commands.options import Jobs, Quick, Seed
from reproduction.common.registry import find

if TYPE_CHECKING:
    from reproduction.common.experiment import Experiment, Settings

Device = Annotated[str, typer.Option(help="Device for training: cpu or cuda.")]


def penn(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of Penn Action (labels/*.mat, or the packed .npz). Without it: moving digits."),
    ] = None,
    images: Annotated[
        int, typer.Option(min=0, help="Train on images of this side length (frames/NNNN/*.jpg), not on poses.")
    ] = 0,
    quick: Quick = False,
    seeds: Annotated[int, typer.Option(min=2, help="Number of encoders to train per method.")] = 3,
    seed: Seed = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Training epochs, of 1,024 pairs each.")] = 60,
    share_of: Annotated[
        str,
        typer.Option(
            help="What the fraction of outliers refers to: mixed (all frames, outliers included) or own (the original "
            "frames)."
        ),
    ] = "mixed",
    protocol: Annotated[
        str,
        typer.Option(
            help="ours: 15 actions, settings tuned on clean pairs; or authors: 13 actions, every fifth frame, "
            "temperature 0.1 and percentile 30."
        ),
    ] = "ours",
    device: Device = "cpu",
    jobs: Jobs = 1,
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json, pictures and the cache.")] = Path(
        "runs/penn"
    ),
) -> None:
    """Run representation learning with outliers in training (Section 4.3, Fig. 5)."""
    options.check_installed()
    from reproduction.penn.experiment import Penn
    from reproduction.penn.settings import Settings

    settings = Settings(seed=seed, seeds=seeds, epochs=epochs, images=images, share_of=share_of)
    settings = find({"ours": settings, "authors": settings.authors()}, protocol, "--protocol")
    _run(Penn, settings.quick() if quick else settings, data, device, jobs, out)


def ave(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of AVE with its features, or of GRID's npz. Without it: moving digits."),
    ] = None,
    quick: Quick = False,
    seeds: Annotated[int, typer.Option(min=2, help="Number of models to train per method.")] = 3,
    seed: Seed = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Training epochs, of 30 batches of 24 videos each.")] = 80,
    device: Device = "cpu",
    jobs: Jobs = 1,
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json and the cache.")] = Path("runs/ave"),
) -> None:
    """Run cross-modality localization (Section 4.4, Table 3): find a passage of sound in the video, and vice versa."""
    options.check_installed()
    from reproduction.ave.experiment import Ave, Settings

    settings = Settings(seed=seed, seeds=seeds, epochs=epochs)
    _run(Ave, settings.quick() if quick else settings, data, device, jobs, out)


def _run(
    experiment: type[Experiment[Any, Any, Any]],
    settings: Settings,
    data: Path | None,
    device: str,
    jobs: int,
    out: Path,
) -> None:
    experiment.reproduce(
        settings,
        out,
        folder=None if data is None else str(data),
        device=options.device(device),
        processes=jobs,
        command=options.command(),
        say=typer.echo,
    )
