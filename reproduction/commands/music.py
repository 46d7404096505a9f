"""`python -m reproduction music`: score against performance, note by note (beyond the paper)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reproduction.commands import options


def music(
    folder: Annotated[Path, typer.Option(help="Folder of match files 1.0.0, such as those of Vienna 4x22.")],
    plain: Annotated[bool, typer.Option(help="Also run the baseline that takes the score as a list of notes.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for report.html and results.json.")] = Path("runs/music"),
) -> None:
    """Match the notes of piano performances to their scores; count matches, insertions and deletions."""
    options.check_installed()
    from reproduction.music.experiment import Music, Settings

    Music.reproduce(Settings(plain), out, folder=str(folder), command=options.command(), say=typer.echo)
