"""Write found steps as chapters, for players, editors and web pages."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dropdtw.files.sanitize import cell, one_line
from dropdtw.text.cues import written
from dropdtw.text.find import FoundStep
from dropdtw.text.labels import clock, step_numbers
from dropdtw.text.page import page
from dropdtw.text.subtitles import Sentence

SHORT: Final = 1.0
"""Maximum length of a beginning that gets no introduction chapter, in seconds."""
YOUTUBE_SECONDS, YOUTUBE_CHAPTERS, YOUTUBE_BYTES = 10.0, 3, 5000
"""YouTube's limits: minimum length of a chapter, minimum number of chapters, maximum length of a description."""
YOUTUBE_LETTERS: Final = str.maketrans("<>", "‹›")
"""YouTube refuses descriptions with angle brackets."""


class Setting(NamedTuple):
    """What some formats need to know besides the steps.

    intro : the title of the part before the first step.
    title : the title of the page.
    recording : the address of the recording, for the page.
    """

    intro: str
    title: str
    recording: str


def write_chapters(
    found: Sequence[FoundStep],
    kind: str,
    talk: Sequence[Sentence] = (),
    *,
    intro: str = "Introduction",
    title: str = "",
    recording: str = "",
) -> str:
    """The content of a file with the found steps.

    found : the steps, from `find_steps`.
    kind : the format, one of `FORMATS`: "json", "csv", "srt", "vtt", "ffmetadata", "youtube" or "html".
    talk : the sentences of the talk, with their times. With it, the last chapter lasts until the end of the talk, and
        html quotes the talk.
    intro : the title of the part before the first step.
    title : the title of the html page.
    recording : the address of the recording, for html: of a file, relative to the page, which then plays it; or one
        that begins with http:// or https://, to which its times then link.

    ffmetadata and youtube cover the whole talk: each chapter lasts until the next one begins. Steps that were not found
    are null in json, empty cells in csv and a line in html; other formats omit them. json and html give their closest
    place. In json, `left_out` is "optional" or "alternative" if such a step was not required. If the talk has no times,
    json gives sentence indices [first, last + 1), and formats for players are empty. Control characters and line breaks
    in steps are replaced. In csv, a step that a spreadsheet would take for a formula begins with an apostrophe.

    Steps have the same numbers in csv, html, srt and vtt, from 1; the second time that step 8 is done has the number
    "8.2". srt needs integers, so if steps are repeated, its cues are just counted. json also has `index`, from 0.

    Returns the content as a string. Raises ValueError if `kind` is unknown.

    >>> from dropdtw.text import FoundStep, write_chapters
    >>> found = [FoundStep(0, "Boil", 30.0, 40.0, 0.9, (3, 4)), FoundStep(1, "Pour", 55.0, 70.0, 0.9, (5, 6))]
    >>> print(write_chapters(found, "youtube"))
    0:00 Introduction
    0:30 Boil
    0:55 Pour
    <BLANKLINE>
    """
    if kind not in FORMATS:
        raise ValueError(f"the format is {kind!r}; choose one of {', '.join(FORMATS)}")
    setting = Setting(one_line(intro), one_line(title), recording)
    return FORMATS[kind]([replace(f, step=one_line(f.step)) for f in found], talk, setting)


class Chapter(NamedTuple):
    """A part of a talk."""

    start: float
    stop: float
    title: str


def chapters(
    found: Sequence[FoundStep], talk: Sequence[Sentence] = (), intro: str = "Introduction", *, short: float = SHORT
) -> list[Chapter]:
    """Divide the whole talk into chapters. Each lasts from the beginning of its step to the beginning of the next.

    short : a beginning of at most this many seconds gets no introduction; it belongs to the first chapter.

    >>> chapters([FoundStep(0, "Boil", 30.0, 40.0, 0.9, (3, 4)), FoundStep(1, "Pour", 55.0, 60.0, 0.9, (5, 6))])
    [Chapter(start=0.0, stop=30.0, title='Introduction'), Chapter(start=30.0, stop=55.0, title='Boil'), \
Chapter(start=55.0, stop=60.0, title='Pour')]
    """
    placed = sorted(_placed(found), key=lambda p: p[1])
    if not placed:
        return []
    starts = [start for _, start, _ in placed]
    titles = [f.step for f, *_ in placed]
    if starts[0] >= short:
        starts, titles = [0.0, *starts], [intro, *titles]
    starts[0] = 0.0
    end = max([stop for *_, stop in placed] + [s.stop for s in talk[-1:]])
    return [Chapter(*c) for c in zip(starts, [*starts[1:], end], titles, strict=True)]


def youtube_chapters(
    found: Sequence[FoundStep], talk: Sequence[Sentence] = (), intro: str = "Introduction"
) -> tuple[list[Chapter], list[str]]:
    """Chapters that follow YouTube's rules, and remarks on changes and on rules that are still broken.

    Chapters of less than ten seconds are merged with a neighbor.
    """
    whole = chapters(found, talk, intro, short=YOUTUBE_SECONDS)
    kept: list[Chapter] = []
    for chapter in whole:
        if kept and kept[-1].stop - kept[-1].start < YOUTUBE_SECONDS:
            kept[-1] = _joined(kept[-1], chapter)
        else:
            kept.append(chapter)
    if len(kept) > 1 and kept[-1].stop - kept[-1].start < YOUTUBE_SECONDS:
        kept[-2:] = [_joined(*kept[-2:])]
    kept = [c._replace(title=c.title.translate(YOUTUBE_LETTERS)) for c in kept]
    remarks = []
    if joined := len(whole) - len(kept):
        some = "a chapter" if joined == 1 else f"{joined} chapters"
        remarks.append(f"merged {some} under {YOUTUBE_SECONDS:g} s with a neighbor, as YouTube requires")
    if len(kept) < YOUTUBE_CHAPTERS:
        remarks.append(f"YouTube requires at least {YOUTUBE_CHAPTERS} chapters, and this list has {len(kept)}")
    if (size := len(_lines(kept).encode())) > YOUTUBE_BYTES:
        remarks.append(f"YouTube allows {YOUTUBE_BYTES} bytes in a description, and this list has {size}")
    return kept, remarks


def _joined(one: Chapter, other: Chapter) -> Chapter:
    return Chapter(one.start, other.stop, f"{one.title} / {other.title}")


def _lines(these: Sequence[Chapter]) -> str:
    return "".join(f"{clock(c.start)} {c.title}\n" for c in these)


def _json(found: Sequence[FoundStep], talk: Sequence[Sentence], setting: Setting) -> str:
    names = ("index", "step", "start", "stop", "confidence")
    segments = []
    for number, f in zip(step_numbers(found), found, strict=True):
        segment = {"number": number} | {name: getattr(f, name) for name in names}
        if f.found and f.start is None:
            segment["sentences"] = f.sentences
        if f.closest is not None:
            unknown = ("start", "stop") if f.closest.start is None else ("sentences",)
            segment["closest"] = {k: v for k, v in f.closest._asdict().items() if k not in unknown}
        segments.append(segment | ({"left_out": f.left_out} if f.left_out else {}))
    return json.dumps({"segments": segments}, indent=1, ensure_ascii=False) + "\n"


def _csv(found: Sequence[FoundStep], talk: Sequence[Sentence], setting: Setting) -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["number", "step", "start", "stop", "confidence"])
    table.writerows(
        [number, cell(f.step), f.start, f.stop, f.confidence]
        for number, f in zip(step_numbers(found), found, strict=True)
    )
    return out.getvalue()


def _placed(found: Sequence[FoundStep]) -> list[tuple[FoundStep, float, float]]:
    return [(f, f.start, f.stop) for f in found if f.start is not None and f.stop is not None]


def _srt(found: Sequence[FoundStep], talk: Sequence[Sentence], setting: Setting) -> str:
    placed = _placed(found)
    numbers = step_numbers([f for f, *_ in placed])
    if any("." in number for number in numbers):  # SubRip numbers are integers
        numbers = [str(n) for n in range(1, len(placed) + 1)]
    return written([(start, stop, f.step) for f, start, stop in placed], "srt", numbers)


def _vtt(found: Sequence[FoundStep], talk: Sequence[Sentence], setting: Setting) -> str:
    placed = _placed(found)
    numbers = step_numbers([f for f, *_ in placed])
    return written([(start, stop, f.step) for f, start, stop in placed], "vtt", numbers)


def _ffmetadata(found: Sequence[FoundStep], talk: Sequence[Sentence], setting: Setting) -> str:
    """Chapters for `ffmpeg -i talk.mp4 -i chapters.txt -map_metadata 1 -codec copy out.mp4`."""
    special = str.maketrans({c: f"\\{c}" for c in "=;#\\"})
    return ";FFMETADATA1\n" + "".join(
        f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={round(1000 * c.start)}\nEND={round(1000 * c.stop)}\n"
        f"title={c.title.translate(special)}\n"
        for c in chapters(found, talk, setting.intro)
    )


def _youtube(found: Sequence[FoundStep], talk: Sequence[Sentence], setting: Setting) -> str:
    """Chapters for the description of a video."""
    return _lines(youtube_chapters(found, talk, setting.intro)[0])


def _html(found: Sequence[FoundStep], talk: Sequence[Sentence], setting: Setting) -> str:
    kept, remarks = youtube_chapters(found, talk, setting.intro)
    return page(found, talk, setting.title, setting.recording, _lines(kept), remarks)


FORMATS: Final[dict[str, Callable[[Sequence[FoundStep], Sequence[Sentence], Setting], str]]] = {
    "json": _json,
    "csv": _csv,
    "srt": _srt,
    "vtt": _vtt,
    "ffmetadata": _ffmetadata,
    "youtube": _youtube,
    "html": _html,
}
"""The formats of chapters, by name."""
