"""Register the commands, in the order in which people need them. Each has its own file; add a new one here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from dropdtw.cli import align, chapters, corpus, diff, explore, find, info, retime, retrieve, sync
from dropdtw.cli.panels import panels


def _version(asked: bool) -> None:
    if asked:
        from dropdtw import __version__

        print(f"dropdtw {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="dropdtw",
    help="Align sequences that contain junk: match what they share, drop the rest.",
    epilog="Errors are one line that begins with 'dropdtw:' and says what to do. DROPDTW_TRACEBACK=1 adds a traceback.",
    no_args_is_help=True,
    rich_markup_mode="markdown",  # square brackets are not markup: dropdtw[cli]
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(command: Callable[..., None], example: str, common: str = "", *, rare: bool = False) -> None:
    """Register a command.

    example : a command line for its help.   common : its common options, see `panels`; if empty, all are common.
    rare : list it among the advanced commands.
    """
    app.command(
        cls=panels(common) if common else None,
        epilog=f"Example: {example}",
        rich_help_panel="Advanced commands" if rare else "Common commands",
    )(command)


_add(
    chapters.chapters,
    "dropdtw chapters steps.txt talk.srt --format youtube",
    "form out title recording whisper intro",
)
_add(sync.sync, "dropdtw sync book.md book.mp3 --words book.json --out book.html")
_add(diff.diff, "dropdtw diff monday.mp3 tuesday.mp3 --out edits.html")
_add(retime.retime, "dropdtw retime talk.srt --from talk.mp4 --to edited.mp4 --out edited.srt")
_add(
    align.align,
    "dropdtw align steps.npy frames.npy --drop-x percentile:30 --fps 25 --out a.json --plot a.png",
    "drop_x drop_z method text fps time out plot",
)
_add(
    find.find,
    "dropdtw find query.npy signal.npy -k 5 --drop-x 0.3 --plot found.png",
    "k drop_x drop_z fps time out plot",
)
_add(
    explore.explore,
    "dropdtw explore steps.npy frames.npy",
    "drop_x drop_z method fps names demo",
)
_add(
    retrieve.retrieve,
    "dropdtw retrieve query.npy corpus/ --top 10 --drop-x 0.3 --drop-z 0.3",
    "top drop_x drop_z method out",
    rare=True,
)
_add(info.info, "dropdtw info --json", rare=True)
app.add_typer(corpus.app, name="corpus", rich_help_panel="Advanced commands")


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that belong to no command."""
