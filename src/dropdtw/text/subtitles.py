"""Subtitles in SubRip (.srt), WebVTT (.vtt) or timed JSON, and the sentences that are spoken in them."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

TIMES: Final = re.compile(
    r"^\s*((?:\d+:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?)\s*-->\s*((?:\d+:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?)"
)
TAG: Final = re.compile(r"<[^>]*>|\{\\[^}]*\}")
SOUND: Final = re.compile(r"^\W*[\[(♪♫][^\])♪♫]*[\])♪♫]\W*$")
"""A line that is a sound and nothing that is said: [Music], (applause), ♪ la ♪."""
END: Final = re.compile(r"[.!?…。！？][\"'”’)\]]*$")
ABBREVIATION: Final = re.compile(r"(?:^|\W)(?:mr|mrs|ms|dr|st|vs|etc|approx|no|e\.g|i\.e|[a-z])\.$", re.I)

PAUSE: Final = 1.5
"""Seconds of silence that end a sentence."""
LONGEST: Final = 30
"""Words after which a sentence ends with its cue."""
UNPUNCTUATED: Final = 8
"""The same where nobody set full stops, as in automatic captions: shorter, for one piece belongs to one step."""


class Sentence(NamedTuple):
    """What is said from `start` to `stop`, in seconds."""

    start: float
    stop: float
    text: str


def read_subtitles(text: str) -> list[Sentence]:
    """The cues of a subtitle file, in the order of time. The format is told by the content.

    JSON is a list of {"start", "stop" or "end" or "duration", "text"} in seconds, or an object with such a list under
    "segments".
    """
    text = text.lstrip("\ufeff")
    cues = _json(text) if text.lstrip()[:1] in ("[", "{") else _timed_text(text)
    cues = [cue for cue in sorted(cues, key=lambda cue: cue.start) if cue.text]
    if not cues:
        raise ValueError("there are no subtitles in it; give SubRip (.srt), WebVTT (.vtt) or a list of timed JSON")
    return _without_repeats(cues)


def sentences(cues: Sequence[Sentence]) -> list[Sentence]:
    """Cues cut and joined into sentences: they end at full stops, at pauses, and when they grow too long.

    Within a cue, time passes evenly with its letters.

    >>> cues = [Sentence(0, 2, "Hello. Now we"), Sentence(2, 4, "boil the water."), Sentence(9, 10, "Good")]
    >>> [(s.start, s.stop, s.text) for s in sentences(cues)]
    [(0.0, 1.09, 'Hello.'), (1.09, 4.0, 'Now we boil the water.'), (9.0, 10.0, 'Good')]
    """
    words = [word for cue in cues for word in _words(cue)]
    stops = sum(bool(END.search(word.text)) for word in words)
    longest = LONGEST if stops * LONGEST >= len(words) else UNPUNCTUATED
    found: list[Sentence] = []
    current: list[_Word] = []
    for word, following in zip(words, [*words[1:], None], strict=True):
        current.append(word)
        if (
            following is None
            or (END.search(word.text) and not ABBREVIATION.search(word.text))
            or following.start - word.stop > PAUSE
            or (following.begins_cue and len(current) >= longest)
        ):
            text = " ".join(w.text for w in current)
            if any(c.isalnum() for c in text):
                found.append(Sentence(round(current[0].start, 2), round(current[-1].stop, 2), text))
            current = []
    return found


class _Word(NamedTuple):
    start: float
    stop: float
    text: str
    begins_cue: bool


def _words(cue: Sentence) -> list[_Word]:
    texts = cue.text.split()
    ends = list(accumulate(map(len, texts)))
    pace = max(0.0, cue.stop - cue.start) / max(1, sum(map(len, texts)))
    return [
        _Word(cue.start + pace * (end - len(text)), cue.start + pace * end, text, end == len(text))
        for text, end in zip(texts, ends, strict=True)
    ]


def _timed_text(text: str) -> list[Sentence]:
    cues: list[Sentence] = []
    lines: list[str] | None = None
    for line in [*text.splitlines(), ""]:
        times = TIMES.match(line)
        if times:
            if lines is not None:
                cues[-1] = cues[-1]._replace(text="\n".join(lines))
            start, stop = map(_seconds, times.groups())
            cues.append(Sentence(start, stop, ""))
            lines = []
        elif lines is not None:
            if not line.strip():
                cues[-1] = cues[-1]._replace(text="\n".join(lines))
                lines = None
            else:
                lines.append(line)
    return [cue._replace(text="\n".join(filter(None, map(_plain, cue.text.splitlines())))) for cue in cues]


def _plain(line: str) -> str:
    line = html.unescape(TAG.sub("", line)).replace("\u200b", "").strip()
    line = re.sub(r"^(?:>>+|-)\s*", "", line)  # a change of speaker
    return "" if SOUND.match(line) else line


def _seconds(clock: str) -> float:
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = 60 * total + float(part)
    return total


def _json(text: str) -> list[Sentence]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"these subtitles begin like JSON, but are none ({error})") from None
    if isinstance(data, dict):
        data = data.get("segments")
    if not isinstance(data, list):
        raise ValueError('timed JSON is a list of {"start", "stop", "text"}, or {"segments": such a list}')
    return [_cue(k, entry) for k, entry in enumerate(data)]


def _cue(k: int, entry: Any) -> Sentence:
    try:
        start = float(entry["start"])
        after = next((float(entry[name]) for name in ("stop", "end") if entry.get(name) is not None), None)
        stop = start + float(entry["duration"]) if after is None else after
        return Sentence(start, stop, "\n".join(filter(None, map(_plain, str(entry["text"]).splitlines()))))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(
            f'entry {k} of the timed JSON is {json.dumps(entry)[:80]}; give {{"start", "stop", "text"}} in seconds'
        ) from None


def _without_repeats(cues: list[Sentence]) -> list[Sentence]:
    """Rolling captions show each line twice or more, the first time as the last line of a cue: once is enough."""
    found: list[Sentence] = []
    shown: list[str] = []
    for cue in cues:
        lines = cue.text.splitlines()
        known = next((n for n in range(min(len(shown), len(lines)), 0, -1) if shown[-n:] == lines[:n]), 0)
        new = lines[known:]
        overlaps = known and found and cue.start - found[-1].stop < PAUSE
        shown = lines
        if not overlaps:
            found.append(cue._replace(text=" ".join(lines)))
        elif new:
            found.append(cue._replace(text=" ".join(new)))
        else:
            found[-1] = found[-1]._replace(stop=max(found[-1].stop, cue.stop))
    return found
