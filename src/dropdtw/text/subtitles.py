"""Read subtitles (SubRip .srt, WebVTT .vtt, SubViewer .sbv, timed JSON), and divide their text into sentences."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import accumulate, zip_longest
from typing import Any, Final, NamedTuple

from dropdtw.files import jsons
from dropdtw.text.cues import CueFile, in_order

TAG: Final = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")  # no opening bracket inside a tag, so linear time
SPOKEN: Final = re.compile(r"\w(?:.*\w)?", re.S)
OPENING, CLOSING = "[(♪♫", "])♪♫"
END: Final = re.compile(r"[.!?…。！？][\"'”’)\]]*$")
ABBREVIATION: Final = re.compile(r"(?:^|\W)(?:mr|mrs|ms|dr|st|vs|etc|approx|no|e\.g|i\.e|[a-z])\.$", re.I)

PAUSE: Final = 1.5
"""Seconds of silence that end a sentence."""
BREATH: Final = 0.3
"""Seconds of silence between words that count as the end of a cue, if words come without cues."""
LONGEST: Final = 30
"""From this number of words on, a sentence ends with its cue."""
PUNCTUATED: Final = 20
"""Maximum average of words per full stop; above it, as in automatic captions, sentences end with their cues."""
SHORTEST: Final = 4
"""Minimum number of words in such a cue; shorter neighbors are joined."""


class Sentence(NamedTuple):
    """A spoken text from `start` to `stop`, in seconds.

    >>> from dropdtw.text import Sentence
    >>> Sentence(1.5, 4.0, "Boil the water.").text
    'Boil the water.'
    """

    start: float
    stop: float
    text: str


def read_subtitles(text: str) -> list[Sentence]:
    """The cues of a subtitle file, in order of time.

    text : the content of a file: SubRip (.srt), WebVTT (.vtt), SubViewer (.sbv) or JSON. The format is recognized by
        the content. JSON is a list of {"start", "stop" or "end" or "duration", "text"} in seconds, or an object with
        such a list under "segments".

    Returns a list of `Sentence`, one per cue, without markup and descriptions of sounds. Raises ValueError if there are
    no subtitles, or if a time is invalid.

    >>> from dropdtw.text import read_subtitles
    >>> read_subtitles("1\\n00:00:01,000 --> 00:00:03,500\\nNow we <i>boil</i> the water.\\n")
    [Sentence(start=1.0, stop=3.5, text='Now we boil the water.')]
    """
    text = text.lstrip("\ufeff")
    cues = _json(text) if text.lstrip()[:1] in ("[", "{") else _timed_text(text)
    cues = [cue for cue in sorted(cues, key=lambda cue: cue.start) if cue.text]
    if not cues:
        raise ValueError("the text has no subtitles; give SubRip (.srt), WebVTT (.vtt), SubViewer (.sbv) or timed JSON")
    return _without_repeats(cues)


def sentences(cues: Sequence[Sentence]) -> list[Sentence]:
    """Divide cues into sentences, which end at full stops, at pauses, and when they get too long.

    Automatic captions have few full stops. There, a sentence ends with its cue, so that off-topic words are not joined
    to the start of a step. Times within a cue are interpolated by counting characters, without spaces.

    cues : the cues of a talk, from `read_subtitles` or `read_table`.

    Returns a list of `Sentence`; empty if there are no cues.

    >>> from dropdtw.text import Sentence, sentences
    >>> cues = [Sentence(0, 2, "Hello. Now we"), Sentence(2, 4, "boil the water."), Sentence(9, 10, "Good")]
    >>> [(s.start, s.stop, s.text) for s in sentences(cues)]
    [(0.0, 1.09, 'Hello.'), (1.09, 4.0, 'Now we boil the water.'), (9.0, 10.0, 'Good')]
    """
    return _divided([word for cue in cues for word in _words(cue)])


def sentences_of_words(words: Sequence[Sentence]) -> list[Sentence]:
    """Divide single words into sentences, as `sentences` does with cues. A pause takes the place of the end of a cue.

    words : the words of a talk with their times, as speech recognizers give them.

    >>> from dropdtw.text import Sentence
    >>> heard = [(0.0, 0.4, "Hello."), (0.5, 0.8, "Boil"), (0.8, 1.2, "the"), (1.2, 1.5, "water.")]
    >>> [(s.start, s.text) for s in sentences_of_words([Sentence(*word) for word in heard])]
    [(0.0, 'Hello.'), (0.5, 'Boil the water.')]
    """
    runs: list[list[Sentence]] = []
    for word in words:
        if not runs or word.start - runs[-1][-1].stop > BREATH:
            runs.append([])
        runs[-1].append(word)
    return _divided([_Word(*word, k == 0, len(run)) for run in runs for k, word in enumerate(run)])


def _divided(words: Sequence[_Word]) -> list[Sentence]:
    stops = sum(bool(END.search(word.text)) for word in words)
    punctuated = stops * PUNCTUATED >= len(words)
    found: list[Sentence] = []
    current: list[_Word] = []
    for word, following in zip_longest(words, words[1:]):
        current.append(word)
        if following is None or _ends(current, following, punctuated):
            text = " ".join(w.text for w in current)
            if any(c.isalnum() for c in text):
                found.append(Sentence(round(current[0].start, 2), round(current[-1].stop, 2), text))
            current = []
    return found


def _ends(current: Sequence[_Word], following: _Word, punctuated: bool) -> bool:
    """Whether a sentence ends before the following word."""
    last = current[-1]
    if END.search(last.text) and not ABBREVIATION.search(last.text):
        return True
    if following.start - last.stop > PAUSE:
        return True
    if not following.begins_cue:
        return False
    if not punctuated:
        return max(len(current), following.cue_words) >= SHORTEST
    first = following.text.lstrip("\"'“‘(")
    capital = first[:1].isupper() and first[1:2].islower()  # excludes I'm and NASA
    return len(current) >= LONGEST or (capital and last.text[-1].isalnum())  # a missing full stop


class _Word(NamedTuple):
    start: float
    stop: float
    text: str
    begins_cue: bool
    cue_words: int


def _words(cue: Sentence) -> list[_Word]:
    texts = cue.text.split()
    ends = list(accumulate(map(len, texts)))
    pace = max(0.0, cue.stop - cue.start) / max(1, sum(map(len, texts)))
    return [
        _Word(cue.start + pace * (end - len(text)), cue.start + pace * end, text, end == len(text), len(texts))
        for text, end in zip(texts, ends, strict=True)
    ]


def _timed_text(text: str) -> list[Sentence]:
    file = CueFile(text)
    return [Sentence(cue.start, cue.stop, _spoken(file.text_of(cue))) for cue in file.cues]


def _spoken(text: str) -> str:
    """The spoken lines of a cue."""
    return "\n".join(filter(None, map(_plain, text.splitlines())))


def _plain(line: str) -> str:
    line = html.unescape(TAG.sub("", line)).replace("\u200b", "").strip()
    line = re.sub(r"^(?:>>+|-)\s*", "", line)  # a change of speaker
    return "" if _is_sound(line) else line


def _is_sound(line: str) -> bool:
    """Whether a line describes a sound and contains no speech.

    >>> [_is_sound(line) for line in ("[Music]", "- (applause)", "♪ la la ♪", "Stop (now) or never", "(one) (two)")]
    [True, True, True, False, False]
    """
    spoken = SPOKEN.search(line)
    if spoken is None:
        return any(mark in line for mark in OPENING)
    before, inside, after = line[: spoken.start()], spoken.group(), line[spoken.end() :]
    opened = max(map(before.rfind, OPENING))
    return (
        opened >= 0
        and not any(mark in before[opened + 1 :] or mark in inside for mark in CLOSING)
        and any(mark in after for mark in CLOSING)
    )


def _json(text: str) -> list[Sentence]:
    try:
        data = jsons.loads(text)
    except ValueError as error:
        raise ValueError(
            f"these subtitles begin like JSON, but are not valid JSON ({error}); correct the file"
        ) from None
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
        spoken = str(entry["text"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise ValueError(
            f'entry {k} of the timed JSON is {jsons.brief(entry)}; give {{"start", "stop", "text"}} in seconds'
        ) from None
    start, stop = in_order(start, stop, f"entry {k} of the timed JSON")
    return Sentence(start, stop, _spoken(spoken))


def _without_repeats(cues: list[Sentence]) -> list[Sentence]:
    """Keep each line of rolling captions once; they repeat it in several cues, first as the last line of a cue."""
    found: list[Sentence] = []
    shown: list[str] = []
    for cue in cues:
        lines = cue.text.splitlines()
        sizes = range(min(len(shown), len(lines)), 0, -1)
        known = next((n for n in sizes if shown[-n] == lines[0] and shown[-n:] == lines[:n]), 0)
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
