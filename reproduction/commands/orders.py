"""`python -m reproduction orders`: steps in any order that a recipe allows (beyond the paper)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reproduction.commands import options
from reproduction.commands.options import Jobs, Quick, Seed
from reproduction.commands.steps import EncoderFile, Mnist
from reproduction.commands.video import Device
from reproduction.common.registry import find
from reproduction.orders import PARTS

CHOICES = {"all": PARTS, **{part: (part,) for part in PARTS}}


def orders(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of CaptainCook4D's annotations. Without it: random recipes as a stand-in."),
    ] = None,
    part: Annotated[str, typer.Option(help=f"Part to run: {', '.join(CHOICES)}.")] = "all",
    quick: Quick = False,
    seeds: Annotated[int, typer.Option(min=2, help="Number of seeds for recordings, features and models.")] = 5,
    seed: Seed = 0,
    most_nodes: Annotated[int | None, typer.Option(min=1, help="Leave out recipes whose graph has more nodes.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Training epochs on digits.")] = 10,
    mnist: Mnist = None,
    encoder: EncoderFile = None,
    device: Device = "cpu",
    jobs: Jobs = 1,
    out: Annotated[Path, typer.Option(help="Folder for report.html, results.json, pictures and the cache.")] = Path(
        "runs/orders"
    ),
) -> None:
    """Measure what a recipe's graph of steps gains over a list of steps (simulated features, and digits)."""
    options.check_installed()
    from reproduction.orders.experiment import Orders
    from reproduction.orders.settings import Settings

    settings = Settings(
        seed=seed,
        seeds=seeds,
        parts=find(CHOICES, part, "--part"),
        most_nodes=most_nodes,
        digit_epochs=epochs,
        mnist=None if mnist is None else str(mnist),
        encoder=None if encoder is None else str(encoder),
    )
    Orders.reproduce(
        settings.quick() if quick else settings,
        out,
        folder=None if data is None else str(data),
        device=options.device(device),
        processes=jobs,
        command=options.command(),
        say=typer.echo,
    )
