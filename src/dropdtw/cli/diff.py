"""`dropdtw diff`: show what two recordings, texts or sequences share, and what only one of them has."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dropdtw.cli import options, screen

if TYPE_CHECKING:
    from dropdtw.media import Edits
    from dropdtw.media.timeline import Recording
    from dropdtw.media.words import Words

UNTIMED = (".txt", ".md")
"""File extensions of texts without times."""
TEXTS = (".srt", ".vtt", ".sbv", *UNTIMED)
"""File extensions of texts; other files are sequences (`formats.READERS`) or recordings."""
TIMED_JSON = re.compile(rb'[\s\xef\xbb\xbf]*(\{|\[\s*\{[^}]*"text"\s*:)')
"""How JSON with timed text begins, such as Whisper's. Sequences are lists of numbers."""

Speed = Annotated[bool, typer.Option("--speed", help="Allow for slightly different speeds, or slow drift.")]


def diff(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A recording (audio, or video with sound), subtitles or a transcript (.srt, .vtt, .sbv, .txt, "
            ".md, Whisper's .json), or a sequence of features (.npy, .csv …).",
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Another of the same kind.")],
    least: Annotated[
        float,
        typer.Option(
            "--min", help="Minimum length of a passage, in seconds; in words or elements if the files have no times."
        ),
    ] = 1.0,
    speed: Speed = False,
    fps: Annotated[
        float | None, typer.Option(help="Elements per second, for sequences. Without it, positions are indices.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="json, csv, audacity, ffmpeg, edl, otio, fcpxml or html. Default: from the name of --out, or a table.",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Write the edit list to this file.")] = None,
) -> None:
    """Show what two recordings share and what only one of them has.

    A moved passage shows as removed in one place and inserted in another. --speed adds a column: seconds of A per
    second of B. --format audacity writes labels for B. otio and fcpxml write a timeline for video editors, with what
    both share side by side. edl and ffmpeg (a filter) keep only what both share. They cut B; if only A has extras,
    they cut A.
    """
    from dropdtw.media.edits import clock
    from dropdtw.media.output import CUTTING, TIMELINES, Setting, table, write_edits
    from dropdtw.media.timeline import look_swapped, to_cut
    from dropdtw.media.words import diff_words

    options.refuse_overwriting({"--out": out}, (a, b))
    kind = _one_kind(a, b)
    untimed = [place for place in (a, b) if not has_times(place, fps)]
    timed = not untimed
    form = _chosen(form, out, kind, untimed)
    if fps is not None and kind != "a sequence":
        raise ValueError(f"--fps is only for sequences of features, but A is {kind}; omit it")
    if kind == "a text":
        texts = _texts(a, b)
        edits = diff_words(*texts, min=least, speed=speed)
        quotes = _quotes(edits, texts)
    else:
        edits, quotes = compare(a, b, least, speed, fps), []
    unit = "" if timed else "words" if kind == "a text" else "elements"
    setting = Setting((_recording(a, form in TIMELINES), _recording(b, form in TIMELINES)), timed, unit, quotes)
    if form is not None:
        screen.write(out or "-", write_edits(edits, form, setting))
    if kind == "a text" and len(untimed) == 1:
        screen.note(f"{untimed[0]} has no times, so A and B are compared by words, and positions count words")
    for text in edits.notes:
        screen.note(text)
    if edits.segments and (form is None or out not in (None, "-")):
        screen.table(*table(edits, timed=timed, quotes=quotes))
        print(f"{edits.common:.0%} of the shorter file also occurs in the other")
    if form in CUTTING:
        side = to_cut(edits)
        other = "AB"[1 - side]
        why = (
            f"has nothing that {other} lacks"
            if not (edits.only_a, edits.only_b)[side]
            else f"is cut to what {other} has"
        )
        screen.note(f"{'AB'[side]} {why}" + (", because only A has extras" if side == 0 else ""))
    if look_swapped(edits) and (form == "audacity" or (form in CUTTING and to_cut(edits) == 1)):
        does = "labels" if form == "audacity" else "cuts"
        alone = [clock(sum(row.duration for row in rows)) for rows in (edits.only_a, edits.only_b)]
        screen.note(
            f"A has {alone[0]} that B lacks, and B has {alone[1]} that A lacks, but --format {form} {does} B; if you "
            f"mean {a}, swap A and B"
        )
    if form == "ffmpeg":
        video = setting.recordings[side].rate is not None
        maps = "-map '[v]' -map '[a]' shorter.mp4" if video else "-map '[a]' shorter.mp3"
        place = quote((a, b)[side])
        screen.note(f'to cut: ffmpeg -i {place} -filter_complex "$(cat {quote(out or "FILE")})" {maps}')


def _one_kind(a: str, b: str) -> str:
    """What both files are."""
    kinds = (kind_of(a), kind_of(b))
    if kinds[0] != kinds[1]:
        raise ValueError(f"A is {kinds[0]} ({a}) and B is {kinds[1]} ({b}); give two of the same kind")
    return kinds[0]


def _chosen(form: str | None, out: str | None, kind: str, untimed: list[str]) -> str | None:
    """The format to write, from --format or the extension of --out; None for only a table.

    untimed : the files without times.
    """
    from dropdtw.media.output import ENDS, FORMATS, TIMELINES

    form = options.format_of(form, out, ENDS, FORMATS)
    if form in TIMELINES and kind != "a recording":
        raise ValueError(f"--format {form} is for recordings, but B is {kind}; choose another format")
    if form == "audacity" and untimed:
        raise ValueError(f"--format audacity needs times in seconds, but {untimed[0]} has none; choose another format")
    return form


def _recording(place: str, timeline: bool) -> Recording:
    """A file as a timeline refers to it; only a timeline needs to know more than its name."""
    from dropdtw.media.sound import frame_rate
    from dropdtw.media.timeline import Recording

    path = Path(place)
    return Recording(path.name, path.resolve().as_uri(), frame_rate(path)) if timeline else Recording(path.name)


def has_times(place: str, fps: float | None = None) -> bool:
    """Whether positions in such a file are seconds; otherwise words or elements are counted."""
    kind = kind_of(place)
    return kind == "a recording" or fps is not None or (kind == "a text" and Path(place).suffix.lower() not in UNTIMED)


def kind_of(place: str) -> str:
    """What a file is, by its extension."""
    from dropdtw.files import formats

    end = Path(formats.file_of(place)).suffix.lower()
    if end in TEXTS or (end == ".json" and _is_timed_json(Path(place))):
        return "a text"
    return "a sequence" if end in formats.READERS else "a recording"


def _is_timed_json(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return TIMED_JSON.match(file.read(1 << 16)) is not None


def compare(a: str, b: str, least: float, speed: bool, fps: float | None = None) -> Edits:
    """The edit list of two files of the same kind."""
    from dropdtw.files import formats

    kind = kind_of(a)
    if kind == "a text":
        from dropdtw.media.words import diff_words

        return diff_words(*_texts(a, b), min=least, speed=speed)
    from dropdtw import media

    if kind == "a sequence":
        if fps is not None and not 0 < fps < float("inf"):
            raise ValueError(f"--fps is {fps}; give the number of elements per second, > 0")
        return media.diff_features(formats.read(a), formats.read(b), fps or 1.0, min=least, speed=speed)
    return media.diff(a, b, min=least, speed=speed)


def _texts(a: str, b: str) -> tuple[Words, Words]:
    """The words of two texts, with their times if both have them."""
    timed = has_times(a) and has_times(b)
    return _words(a, timed), _words(b, timed)


def _quotes(edits: Edits, texts: tuple[Words, Words]) -> list[str]:
    """The first words of each row, from A if A has them; a pause without words is a row, too."""
    places = [(0, s.a) if s.a is not None else (1, s.b) for s in edits.segments]
    return [texts[side].quote(of) or "(no words)" for side, of in places if of is not None]


def _words(place: str, timed: bool) -> Words:
    """The words of a text, with their times if `timed`."""
    from dropdtw.media.words import Words
    from dropdtw.text import read_subtitles

    def spoken(text: str) -> Words:
        cues = read_subtitles(text)
        return Words.of_cues(cues) if timed else Words.of_text(" ".join(cue.text for cue in cues))

    if Path(place).suffix.lower() in UNTIMED:
        return options.parsed(place, Words.of_text, "a transcript")
    return options.parsed(place, spoken, "subtitles")
