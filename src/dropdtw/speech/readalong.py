"""Write a read-along: subtitles, Praat TextGrid, JSON, or a page that highlights the text while the recording plays."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import groupby, zip_longest
from typing import Any, Final, NamedTuple

from dropdtw.files.sanitize import one_line
from dropdtw.files.templates import rendered
from dropdtw.problem.errors import choices
from dropdtw.speech.reading import ExtraSpeech, Reading, ReadSentence
from dropdtw.speech.write import textgrid
from dropdtw.text.cues import timestamp, written
from dropdtw.text.labels import clock

UNSURE: Final = 0.7
"""Confidence below which a sentence is marked as doubtful."""
VIDEO: Final = (".mp4", ".mkv", ".webm", ".mov", ".avi")


class Page(NamedTuple):
    """What a page shows besides: its title, and the address of the recording, relative to the page, or None."""

    title: str = "Read-along"
    recording: str | None = None


def write_reading(found: Reading, kind: str, page: Page | None = None) -> str:
    """The content of a file with the times of a text.

    found : from `sync`.
    kind : the format, one of `READING_FORMATS`: "srt" or "vtt" (a cue per sentence; in vtt with the times of words),
        "textgrid" (Praat; tiers for sentences, words, and speech that is not in the text), "json" or "html".
    page : for html, its title and the recording.

    Sentences that are not read are left out, except in json and html. Times are in seconds.

    Returns the content as a string. Raises ValueError if the format is unknown.

    >>> from dropdtw import speech
    >>> found = speech.sync("Good evening!", [speech.SpokenWord(1, 1.4, "good"), speech.SpokenWord(1.5, 2, "evening")])
    >>> print(write_reading(found, "srt"))
    1
    00:00:01,000 --> 00:00:02,000
    Good evening!
    <BLANKLINE>
    <BLANKLINE>
    """
    if kind not in READING_FORMATS:
        raise ValueError(f"the format is {kind!r}; {choices(kind, READING_FORMATS)}")
    return READING_FORMATS[kind](found, page or Page())


Timed = tuple[float, float, str]


def _in_order(spans: Iterable[Timed]) -> list[Timed]:
    """Spans that do not overlap: each ends where the next one begins, at the latest."""
    ordered = sorted(spans)
    return [
        (start, min(stop, following[0]) if following else stop, text)
        for (start, stop, text), following in zip_longest(ordered, ordered[1:])
    ]


def _sentences(found: Reading) -> Iterator[Timed]:
    for s in found.sentences:
        if s.start is not None and s.stop is not None:
            yield s.start, s.stop, one_line(s.text)


def _words(found: Reading) -> Iterator[Timed]:
    for s in found.sentences:
        for word in s.words:
            if word.start is not None and word.stop is not None:
                yield word.start, word.stop, one_line(word.text)


def _srt(found: Reading, page: Page) -> str:
    return written(_in_order(_sentences(found)), "srt")


def _vtt(found: Reading, page: Page) -> str:
    cues = []
    for s in sorted((s for s in found.sentences if s.read), key=lambda s: s.start or 0.0):
        assert s.start is not None
        assert s.stop is not None
        parts, at = [], s.start
        for word in s.words:
            text = html.escape(one_line(word.text), quote=False)
            if word.start is not None and at < word.start < s.stop:
                parts.append(f"<{timestamp(word.start, '.')}>{text}")
                at = word.start
            else:
                parts.append(text)
        cues.append((s.start, s.stop, " ".join(parts)))
    return written(cues, "vtt", marked=True)


def _textgrid(found: Reading, page: Page) -> str:
    extra = ((e.start, e.stop, one_line(e.text)) for e in found.extra)
    tiers = {"sentences": _sentences(found), "words": _words(found), "not in the text": extra}
    ends = [found.duration, *(stop for _, stop, _ in _sentences(found))]
    return textgrid({name: _in_order(spans) for name, spans in tiers.items()}, max(ends))


def _json(found: Reading, page: Page) -> str:
    return json.dumps(asdict(found), indent=1, ensure_ascii=False) + "\n"


def _html(found: Reading, page: Page) -> str:
    paragraphs = [[_shown(s) for s in group] for _, group in groupby(found.sentences, lambda s: s.paragraph)]
    after: dict[int, list[dict[str, Any]]] = {}
    for e in found.extra:
        after.setdefault(e.after, []).append(_said(e))
    return rendered(
        __file__,
        title=one_line(page.title),
        headed=found.sentences[0].text == page.title,
        paragraphs=paragraphs,
        after=after,
        before=after.get(-1, []),
        read=sum(s.read for s in found.sentences),
        total=len(found.sentences),
        unread=len(found.unread),
        extra=sum(e.repeats is None for e in found.extra),
        again=sum(e.repeats is not None for e in found.extra),
        warning=_warning(found),
        limit=f"{UNSURE:.0%}",
        unsure=sum(s.read and s.confidence < UNSURE for s in found.sentences),
        link=page.recording,
        video=page.recording is not None and page.recording.lower().endswith(VIDEO),
    )


def _warning(found: Reading) -> str:
    """What to say first if most sentences are not read."""
    read, total = len(found.sentences) - len(found.unread), len(found.sentences)
    if 2 * read >= total:
        return ""
    missing = f"Only {read} of {total} sentences are read" if read else "No sentence is read"
    return f"{missing}. Do the text and the recording belong together?"


def _shown(s: ReadSentence) -> dict[str, Any]:
    words = [{"text": one_line(w.text), "start": w.start} for w in s.words]
    return {
        "index": s.index,
        "start": s.start,
        "stop": s.stop,
        "when": "" if s.start is None else clock(s.start),
        "unsure": s.read and s.confidence < UNSURE,
        "confidence": f"{s.confidence:.0%}",
        "words": words,
    }


def _said(e: ExtraSpeech) -> dict[str, Any]:
    return {
        "start": e.start,
        "stop": e.stop,
        "when": clock(e.start),
        "text": one_line(e.text),
        "repeats": e.repeats is not None,
    }


READING_FORMATS: Final[dict[str, Callable[[Reading, Page], str]]] = {
    "srt": _srt,
    "vtt": _vtt,
    "textgrid": _textgrid,
    "json": _json,
    "html": _html,
}
"""The formats of read-alongs, by name."""
