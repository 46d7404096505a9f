"""Found steps as chapters, in the formats of players, editors and web pages."""

from __future__ import annotations

import csv
import html
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dropdtw.files.strangers import cell, one_line
from dropdtw.text.localize import FoundStep
from dropdtw.text.page import clock, page
from dropdtw.text.subtitles import Sentence, timestamp

SHORT: Final = 1.0
"""Seconds before the first step that need no introduction."""
YOUTUBE_SECONDS, YOUTUBE_CHAPTERS = 10.0, 3
"""What YouTube demands: the shortest chapter, and how many there are at least."""


def write_chapters(
    found: Sequence[FoundStep], kind: str, talk: Sequence[Sentence] = (), *, intro: str = "Introduction"
) -> str:
    """Found steps as the content of a file; `kind` is one of `FORMATS`.

    talk : what is said, with its times: then the last chapter lasts to its end, and html quotes it.
    intro : the title of what comes before the first step.

    Steps that were not found have nulls in json, empty cells in csv, a line in html, and are left out elsewhere; json
    says in `left_out` why nobody had to talk about one. Where the talk has no times, json gives the sentences
    [first, last + 1), and the formats of players have nothing to write. ffmetadata and youtube cover the whole talk: a
    chapter lasts until the next begins. A step is one line without control characters; in csv, one that a spreadsheet
    would compute begins with an apostrophe.
    """
    if kind not in FORMATS:
        raise ValueError(f"the format is {kind!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[kind]([replace(f, step=one_line(f.step)) for f in found], talk, one_line(intro))


class Chapter(NamedTuple):
    """A part of a talk."""

    start: float
    stop: float
    title: str


def chapters(found: Sequence[FoundStep], talk: Sequence[Sentence] = (), intro: str = "Introduction") -> list[Chapter]:
    """The whole talk in chapters, each from where its step begins to where the next one does.

    >>> chapters([FoundStep(0, "Boil", 30.0, 40.0, 0.9, (3, 4)), FoundStep(1, "Pour", 55.0, 60.0, 0.9, (5, 6))])
    [Chapter(start=0.0, stop=30.0, title='Introduction'), Chapter(start=30.0, stop=55.0, title='Boil'), \
Chapter(start=55.0, stop=60.0, title='Pour')]
    """
    placed = sorted(_placed(found), key=lambda p: p[1])
    if not placed:
        return []
    starts = [start for _, start, _ in placed]
    titles = [f.step for f, *_ in placed]
    if starts[0] >= SHORT:
        starts, titles = [0.0, *starts], [intro, *titles]
    starts[0] = 0.0
    end = max([stop for *_, stop in placed] + [s.stop for s in talk[-1:]])
    return [Chapter(*c) for c in zip(starts, [*starts[1:], end], titles, strict=True)]


def youtube_chapters(whole: Sequence[Chapter]) -> tuple[list[Chapter], list[str]]:
    """Chapters as YouTube takes them, and remarks on what was done: those under ten seconds join a neighbour."""
    kept: list[Chapter] = []
    for chapter in whole:
        if kept and kept[-1].stop - kept[-1].start < YOUTUBE_SECONDS:
            kept[-1] = Chapter(kept[-1].start, chapter.stop, f"{kept[-1].title} / {chapter.title}")
        else:
            kept.append(chapter)
    if len(kept) > 1 and kept[-1].stop - kept[-1].start < YOUTUBE_SECONDS:
        last = kept.pop()
        kept[-1] = Chapter(kept[-1].start, last.stop, f"{kept[-1].title} / {last.title}")
    remarks = []
    if joined := len(whole) - len(kept):
        remarks.append(f"YouTube wants {YOUTUBE_SECONDS:g} s for a chapter: {joined} shorter ones joined a neighbour")
    if len(kept) < YOUTUBE_CHAPTERS:
        remarks.append(f"YouTube shows chapters from {YOUTUBE_CHAPTERS} on, and this list has {len(kept)}")
    return kept, remarks


def _json(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    names = ("index", "step", "start", "stop", "confidence")
    segments = []
    for f in found:
        segment = {name: getattr(f, name) for name in names}
        if f.found and f.start is None:
            segment["sentences"] = f.sentences
        segments.append(segment | ({"left_out": f.left_out} if f.left_out else {}))
    return json.dumps({"segments": segments}, indent=1, ensure_ascii=False) + "\n"


def _csv(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["index", "step", "start", "stop", "confidence"])
    table.writerows([f.index, cell(f.step), f.start, f.stop, f.confidence] for f in found)
    return out.getvalue()


def _placed(found: Sequence[FoundStep]) -> list[tuple[FoundStep, float, float]]:
    return [(f, f.start, f.stop) for f in found if f.start is not None and f.stop is not None]


def _numbers(found: Sequence[FoundStep]) -> list[str]:
    """The number of each step, from 1; the second time it is done, "2.2"."""
    times: Counter[int] = Counter()
    numbers = []
    for f in found:
        times[f.index] += 1
        numbers.append(f"{f.index + 1}" + (f".{times[f.index]}" if times[f.index] > 1 else ""))
    return numbers


def _srt(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    placed = _placed(found)
    numbers = _numbers([f for f, *_ in placed])
    if any("." in number for number in numbers):  # SubRip counts in whole numbers
        numbers = [str(n) for n in range(1, len(placed) + 1)]
    return "".join(
        f"{n}\n{timestamp(start, ',')} --> {timestamp(stop, ',')}\n{f.step}\n\n"
        for n, (f, start, stop) in zip(numbers, placed, strict=True)
    )


def _vtt(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    placed = _placed(found)
    return "WEBVTT\n\n" + "".join(
        f"{n}\n{timestamp(start, '.')} --> {timestamp(stop, '.')}\n{html.escape(f.step, quote=False)}\n\n"
        for n, (f, start, stop) in zip(_numbers([f for f, *_ in placed]), placed, strict=True)
    )


def _ffmetadata(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    """For `ffmpeg -i talk.mp4 -i chapters.txt -map_metadata 1 -codec copy out.mp4`."""
    special = str.maketrans({c: f"\\{c}" for c in "=;#\\"})
    return ";FFMETADATA1\n" + "".join(
        f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={round(1000 * c.start)}\nEND={round(1000 * c.stop)}\n"
        f"title={c.title.translate(special)}\n"
        for c in chapters(found, talk, intro)
    )


def _youtube(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    """For a video's description."""
    return "".join(f"{clock(c.start)} {c.title}\n" for c in youtube_chapters(chapters(found, talk, intro))[0])


FORMATS: Final[dict[str, Callable[[Sequence[FoundStep], Sequence[Sentence], str], str]]] = {
    "json": _json,
    "csv": _csv,
    "srt": _srt,
    "vtt": _vtt,
    "ffmetadata": _ffmetadata,
    "youtube": _youtube,
    "html": page,
}
"""The formats of chapters, by name."""
