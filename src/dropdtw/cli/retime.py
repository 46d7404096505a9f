"""`dropdtw retime`: subtitles made for one version of a recording, moved to another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dropdtw.cli import options, screen
from dropdtw.cli.diff import Speed, compare, kind_of

if TYPE_CHECKING:
    from dropdtw.media.cues import CueFile
    from dropdtw.media.retime import Retimed

SHOWN = 5
"""Left-out cues that are quoted."""


def retime(
    subtitles: Annotated[str, typer.Argument(metavar="SUBS", help="The subtitles to move: .srt or .vtt.")],
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="B",
            help="The version that they shall fit: a recording, or subtitles in the same language that fit it already.",
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="A", help="The version that they were made for; not needed where B is subtitles."
        ),
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help="Where to write them; default: standard output.")] = "-",
    speed: Speed = False,
    force: Annotated[bool, typer.Option("--force", help="Write them whatever the confidence.")] = False,
) -> None:
    """Move subtitles to another version of the recording: longer, shorter, with other advertisements.

    Cues in passages that the other version does not have are left out; the others move with their passage. Where the
    versions cannot be matched with confidence, nothing is written and the reason is given.
    """
    from dropdtw.files import formats
    from dropdtw.media.cues import CueFile
    from dropdtw.media.retime import between
    from dropdtw.media.retime import retime as move

    options.refuse_overwriting({"--out": None if out == "-" else out}, (subtitles, source, target))
    file = options.parsed(subtitles, CueFile, "subtitles")
    if source is not None:
        if (kinds := (kind_of(source), kind_of(target)))[0] != kinds[1]:
            raise ValueError(
                f"--from is {kinds[0]} ({source}) and --to is {kinds[1]} ({target}); give two versions of one kind"
            )
        edits = compare(source, target, 1.0, speed)
    elif kind_of(target) == "a text":
        edits = between(file, options.parsed(target, CueFile, "subtitles"), speed=speed)
    else:
        raise ValueError(f"--to is {target}, a recording; name the recording that SUBS was made for as well: --from A")
    found = move(file, edits)
    _say(found, file)
    if found.doubts and not force:
        for doubt in found.doubts:
            screen.note(doubt)
        screen.note("nothing was written; --force writes it all the same")
        raise typer.Exit(1)
    formats.write(out, found.text)


def _say(found: Retimed, file: CueFile) -> None:
    """How many cues moved, and which were left out."""
    from dropdtw.media.edits import clock

    kept = len(found.times) - len(found.removed)
    screen.note(f"{kept} of {len(found.times)} cues moved, {len(found.removed)} left out, {found.confidence:.0%} sure")
    for k in found.removed[:SHOWN]:
        cue = file.cues[k]
        screen.note(f"left out {clock(cue.start)}: {' '.join(file.text_of(cue).split())[:70]}")
    if len(found.removed) > SHOWN:
        screen.note(f"… and {len(found.removed) - SHOWN} more")
