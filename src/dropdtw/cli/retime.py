"""`dropdtw retime`: move subtitles from one version of a recording to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dropdtw.cli import options, screen
from dropdtw.cli.diff import Speed, compare, has_times, kind_of

if TYPE_CHECKING:
    from dropdtw.media import Edits
    from dropdtw.media.retime import Retimed
    from dropdtw.text.cues import CueFile

SHOWN = 5
"""Maximum number of left-out cues that are quoted."""


def retime(
    subtitles: Annotated[str, typer.Argument(metavar="SUBS", help="The subtitles to move: .srt, .vtt or .sbv.")],
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="B",
            help="The version to move them to: a recording, or subtitles (or Whisper's .json) in the same language "
            "that already fit it.",
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="A", help="The version they were made for; not needed if B is subtitles."),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", help="Write the moved subtitles to this file; - for stdout.")
    ] = "-",
    speed: Speed = False,
    force: Annotated[bool, typer.Option("--force", help="Write the file even if the match is doubtful.")] = False,
) -> None:
    """Move subtitles to another version of the recording: longer, shorter, or with different ads.

    Each cue moves with its passage. Cues in passages that the other version lacks are left out. If the two versions
    cannot be matched with confidence, the command explains why and writes nothing.
    """
    from dropdtw.media.retime import retime as move
    from dropdtw.text.cues import CueFile

    options.refuse_overwriting({"--out": None if out == "-" else out}, (subtitles, source, target))
    file = options.parsed(subtitles, CueFile, "subtitles")
    _check_end(out, file)
    edits = _edits(file, source, target, speed)
    found = move(file, edits)
    _say(found, file)
    doubts = [*_outlasting(file, edits, source), *found.doubts]
    for doubt in doubts:
        screen.note(doubt)
    if doubts and not force:
        screen.note("nothing was written; --force writes the file anyway")
        raise typer.Exit(1)
    screen.write(out, found.text)


def _check_end(out: str, file: CueFile) -> None:
    """Refuse the extension of another format, since the format does not change."""
    given, end = Path(out).suffix.lower(), file.end
    if given in (".srt", ".vtt", ".sbv") and given != end:
        raise ValueError(
            f"--out is {out}, but SUBS is a {end} file and the format stays the same; give a name that ends in {end}"
        )


def _edits(file: CueFile, source: str | None, target: str, speed: bool) -> Edits:
    """The edit list of the two versions: from --from and --to, or from the subtitles to move and --to."""
    from dropdtw.media.retime import between
    from dropdtw.text import read_subtitles
    from dropdtw.text.cues import CueFile

    for option, place in (("--from", source), ("--to", target)):
        if place is not None and not has_times(place):
            raise ValueError(
                f"{option} is {place}, which has no times; give a recording or subtitles (.srt, .vtt, .sbv)"
            )
    if source is None:
        if kind_of(target) != "a text":
            raise ValueError(f"--to is {target}, a recording; also give the recording that SUBS was made for: --from A")
        if Path(target).suffix.lower() == ".json":
            return between(file, options.parsed(target, read_subtitles, "subtitles"), speed=speed)
        return between(file, options.parsed(target, CueFile, "subtitles"), speed=speed)
    if (kinds := (kind_of(source), kind_of(target)))[0] != kinds[1]:
        raise ValueError(
            f"--from is {kinds[0]} ({source}) and --to is {kinds[1]} ({target}); give two of the same kind"
        )
    return compare(source, target, 1.0, speed)


def _outlasting(file: CueFile, edits: Edits, source: str | None) -> list[str]:
    """A doubt if more than a second of cues lies past the end of the recording that they are said to fit."""
    from dropdtw.text.labels import clock

    if source is None or kind_of(source) != "a recording":  # subtitles end with their last word
        return []
    end = edits.durations[0]
    if sum(max(0.0, cue.stop - max(cue.start, end)) for cue in file.cues) <= 1:
        return []
    last = max(cue.stop for cue in file.cues)
    return [f"SUBS runs to {clock(last)}, but --from lasts {clock(end)}; are they for another version?"]


def _say(found: Retimed, file: CueFile) -> None:
    """Print how many cues moved, and which were left out."""
    from dropdtw.media.edits import clock

    kept = len(found.times) - len(found.removed)
    counts = f"{kept} of {len(found.times)} cues moved, {len(found.removed)} left out"
    screen.note(f"{counts}; the versions match with confidence {found.confidence:.0%}")
    for k in found.removed[:SHOWN]:
        cue = file.cues[k]
        screen.note(f"left out {clock(cue.start)}: {' '.join(file.text_of(cue).split())[:70]}")
    if len(found.removed) > SHOWN:
        screen.note(f"… and {len(found.removed) - SHOWN} more")
