"""Register the commands of `python -m reproduction`; add a new one here."""

from __future__ import annotations

import typer

from reproduction.commands import jigsaws, music, orders, steps, tmnist, video

app = typer.Typer(
    name="python -m reproduction",
    help="Run the paper's experiments and write reports.",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
)
app.command(epilog="Example: python -m reproduction tmnist --seeds 2 --sequences 200 --epochs 8 --out runs/tmnist")(
    tmnist.tmnist
)
app.command(epilog="Example: python -m reproduction steps --loss drop-percentile --out runs/steps")(steps.steps)
app.command(epilog="Example: python -m reproduction table 1 --seeds 3 --out runs/steps")(steps.table)
app.command(epilog="Example: python -m reproduction bars --out runs/steps")(steps.bars)
app.command(epilog="Example: python -m reproduction penn --data DIR --out runs/penn")(video.penn)
app.command(epilog="Example: python -m reproduction ave --data DIR --jobs 8 --out runs/ave")(video.ave)
app.command(epilog="Example: python -m reproduction orders --data DIR --out runs/orders")(orders.orders)
app.command(epilog="Example: python -m reproduction music --folder DIR --out runs/music")(music.music)
app.command(epilog="Example: python -m reproduction jigsaws --folder DIR --jobs 2 --out runs/jigsaws")(jigsaws.jigsaws)
