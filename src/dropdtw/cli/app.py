"""Register the commands. Each has its own file; add a new one here."""

from __future__ import annotations

from typing import Annotated

import typer

from dropdtw.cli import align, chapters, corpus, diff, explore, find, info, retime, retrieve, sync


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
app.command(
    epilog="Example: dropdtw align steps.npy frames.npy --drop-x percentile:30 --fps 25 --out a.json --plot a.png"
)(align.align)
app.command(epilog="Example: dropdtw chapters steps.txt talk.srt --format youtube")(chapters.chapters)
app.command(epilog="Example: dropdtw find query.npy signal.npy -k 5 --drop-x 0.3 --plot found.png")(find.find)
app.command(epilog="Example: dropdtw diff monday.mp3 tuesday.mp3 --out edits.html")(diff.diff)
app.command(epilog="Example: dropdtw retime talk.srt --from talk.mp4 --to edited.mp4 --out edited.srt")(retime.retime)
app.command(epilog="Example: dropdtw sync book.md book.mp3 --words book.json --out book.html")(sync.sync)
app.command(epilog="Example: dropdtw retrieve query.npy corpus/ --top 10 --drop-x 0.3 --drop-z 0.3")(retrieve.retrieve)
app.add_typer(corpus.app, name="corpus")
app.command(epilog="Example: dropdtw explore steps.npy frames.npy")(explore.explore)
app.command(epilog="Example: dropdtw info --json")(info.info)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that belong to no command."""
