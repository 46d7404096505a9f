"""`dropdtw reproduce …`: register the paper's experiments, one command each; add a new one here."""

from __future__ import annotations

import typer

from dropdtw.cli.reproduce import orders, steps, tmnist, video

app = typer.Typer(
    help="Run the paper's experiments and write reports. Needs: pip install 'dropdtw[experiments]'.",
    no_args_is_help=True,
)
app.command(epilog="Example: dropdtw reproduce tmnist --seeds 2 --sequences 200 --epochs 8 --out runs/tmnist")(
    tmnist.tmnist
)
app.command(epilog="Example: dropdtw reproduce steps --loss drop-percentile --out runs/steps")(steps.steps)
app.command(epilog="Example: dropdtw reproduce table 1 --seeds 3 --out runs/steps")(steps.table)
app.command(epilog="Example: dropdtw reproduce bars --out runs/steps")(steps.bars)
app.command(epilog="Example: dropdtw reproduce penn --data DIR --out runs/penn")(video.penn)
app.command(epilog="Example: dropdtw reproduce ave --data DIR --jobs 8 --out runs/ave")(video.ave)
app.command(epilog="Example: dropdtw reproduce orders --data DIR --out runs/orders")(orders.orders)
