"""Move subtitles from one version of a recording to another, by the edits between the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dropdtw.media.edits import NOTHING, Edits, Segment, Span, clock
from dropdtw.media.words import Words, diff_words
from dropdtw.text.cues import CueFile
from dropdtw.text.subtitles import Sentence, read_subtitles

SURE: Final = 0.9
"""Minimum average confidence; below it, the result is doubtful."""
MOST: Final = 0.5
"""Maximum share of cues left out; above it, the result is doubtful."""


@dataclass(frozen=True)
class Retimed:
    """Subtitles with new times.

    text : the content of the new file.
    times : the new (start, stop) of each cue of the old file, in seconds; None if it was left out.
    confidence : the average, over all cues, of the confidence of the passage that holds the cue.
    doubts : reasons not to rely on the result.
    """

    text: str
    times: tuple[Span | None, ...]
    confidence: float
    doubts: tuple[str, ...]

    @property
    def removed(self) -> tuple[int, ...]:
        """The cues that were left out, counted from 0."""
        return tuple(k for k, when in enumerate(self.times) if when is None)


def retime(subtitles: str | CueFile, edits: Edits) -> Retimed:
    """Move subtitles from A's times to B's.

    subtitles : the content of a SubRip (.srt), WebVTT (.vtt) or SubViewer (.sbv) file that belongs to A.
    edits : the edit list of A and B, from `dropdtw.media.diff`.

    A cue moves with the passage that holds most of it, and keeps its length unless the versions differ in speed. It is
    left out if most of it lies in a passage that only A has. Everything but times and numbers stays unchanged.

    Returns a `Retimed`. Raises ValueError if the file has no timed cues, or if a time is invalid.

    >>> from dropdtw.media import Edits
    >>> from dropdtw.media.retime import retime
    >>> edits = Edits.of_same([((0, 10), (0, 10), 0.99), ((20, 60), (10, 50), 0.99)], (60, 50))
    >>> subtitles = "1\\n00:00:12,000 --> 00:00:14,000\\nBuy now\\n\\n2\\n00:00:21,000 --> 00:00:23,000\\nWelcome\\n"
    >>> print(retime(subtitles, edits).text)
    1
    00:00:11,000 --> 00:00:13,000
    Welcome
    <BLANKLINE>
    """
    file = _file(subtitles)
    homes = [_home(edits, cue.start, cue.stop) for cue in file.cues]
    times = [
        None if home is None or home.kind == "only_a" else _moved(home, cue.start, cue.stop)
        for home, cue in zip(homes, file.cues, strict=True)
    ]
    sure = sum(0.0 if home is None else home.confidence for home in homes) / len(homes)
    return Retimed(file.moved(times), tuple(times), sure, _doubts(edits, homes, times, sure))


def between(subtitles: str | CueFile, other: str | CueFile | Sequence[Sentence], *, speed: bool = False) -> Edits:
    """The edit list of two subtitle files in the same language, from their words and times.

    subtitles, other : the contents of SubRip (.srt), WebVTT (.vtt) or SubViewer (.sbv) files, A and B. B may also be
        timed texts, as `dropdtw.text.read_subtitles` reads them, for example from Whisper's JSON.
    speed : whether one may run faster than the other, at a constant ratio.

    Returns the `Edits`. Raises ValueError if a file has no timed cues or no words.
    """
    theirs = read_subtitles(_file(other).text) if isinstance(other, str | CueFile) else other
    a, b = (Words.of_cues(cues) for cues in (read_subtitles(_file(subtitles).text), theirs))
    return diff_words(a, b, speed=speed)


def _file(subtitles: str | CueFile) -> CueFile:
    return CueFile(subtitles) if isinstance(subtitles, str) else subtitles


def _home(edits: Edits, start: float, stop: float) -> Segment | None:
    """The row that decides what happens to a cue: the one that holds most of it, or else the nearest shared passage."""
    rows = [s for s in edits.segments if s.a is not None]
    if not edits.same:
        return None
    if stop <= start:
        stop = start + 1e-3
    held = [min(stop, _span(s)[1]) - max(start, _span(s)[0]) for s in rows]
    best = max(range(len(rows)), key=lambda k: held[k])
    if held[best] > 0:
        return rows[best]
    return max(edits.same, key=lambda s: min(stop, _span(s)[1]) - max(start, _span(s)[0]))


def _span(row: Segment) -> Span:
    assert row.a is not None
    return row.a


def _moved(home: Segment, start: float, stop: float) -> Span | None:
    """The times of a cue in B, mapped linearly with its passage; None if they lie before the start of B."""
    assert home.a is not None
    assert home.b is not None
    (a, until), (b, b_until) = home.a, home.b
    slope = (b_until - b) / (until - a) if until > a else 1.0
    moved = (b + (start - a) * slope, b + (stop - a) * slope)
    return None if moved[1] <= 0 else (max(0.0, moved[0]), moved[1])


def _doubts(
    edits: Edits, homes: Sequence[Segment | None], times: Sequence[Span | None], sure: float
) -> tuple[str, ...]:
    notes = [note for note in edits.notes if note != NOTHING]
    if not edits.segments:
        return tuple(notes)
    if not edits.same:
        return ("the two versions have nothing in common", *notes)
    found = []
    gone = sum(when is None for when in times)
    if gone > MOST * len(times):
        found.append(f"{gone} of {len(times)} cues lie in passages that the other version does not have")
    if sure < SURE:
        used = {id(home): home for home in homes if home is not None}.values()
        worst = min(used, key=lambda home: home.confidence)
        found.append(
            f"the average confidence of the passages is {sure:.0%}, below {SURE:.0%}; the lowest is "
            f"{worst.confidence:.0%}, at {clock(_span(worst)[0])}–{clock(_span(worst)[1])}"
        )
    return (*found, *notes)
