"""Timed text line by line (SubRip .srt, WebVTT .vtt, SubViewer .sbv): find its cues, and change their times.

Reading and moving subtitles use the same cues, so each cue that is read can be moved.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

CLOCK: Final = r"-?(?:\d+:)?\d{1,2}:\d{1,2}(?:[.,]\d*)?"
TIMES: Final = re.compile(rf"^\s*({CLOCK})\s*-->\s*({CLOCK})(?![\d:.,])")
SUBVIEWER: Final = re.compile(r"^\s*(\d+:\d{2}:\d{2}\.\d{1,3}),(\d+:\d{2}:\d{2}\.\d{1,3})\s*$")
LIKE_TIMES: Final = re.compile(
    r"^\s*-?\d+:[\d:.,]+\s*-{1,2}>\s*-?\d+:"  # two clocks around an arrow
    r"|^\s*-?\d+:\d\S*\s*-->|^\s*\S+\s*-->\s*-?\d+:\d"  # one clock beside the arrow of SubRip and WebVTT
    r"|^\s*\d+:\d{2}:\d{2}\.\S*,[^,\s]+$|^\s*[\d:]\S*,\d+:\d{2}:\d{2}\.\d{1,3}\s*$"  # one, as in SubViewer
)
"""A line that is meant to have the times of a cue."""
NUMBER: Final = re.compile(r"^\s*\d+\s*$")
INNER: Final = re.compile(r"<((?:\d+:)?\d{1,2}:\d{2}\.\d{3})>")
"""A time inside the text of a WebVTT cue, which says when the next word is spoken."""


@dataclass(frozen=True)
class Cue:
    """One cue of a file: its times in seconds, and where it is in the file.

    first, line, last : the index of its first line (number or name), of the line with its times, and of the line after
        it, blank lines included.
    """

    start: float
    stop: float
    first: int
    line: int
    last: int


class CueFile:
    """A SubRip (.srt), WebVTT (.vtt) or SubViewer (.sbv) file, line by line.

    >>> file = CueFile("1\\n00:00:01,000 --> 00:00:02,000\\nHello\\n\\n")
    >>> print(file.moved([(61.5, 62.5)]).strip())
    1
    00:01:01,500 --> 00:01:02,500
    Hello
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._lines = text.removeprefix(self._mark).splitlines(keepends=True)
        self._is_vtt = bool(self._lines) and self._lines[0].startswith("WEBVTT")
        self.cues = self._cues()

    @property
    def end(self) -> str:
        """The usual extension of such a file."""
        if self._is_vtt:
            return ".vtt"
        return ".sbv" if SUBVIEWER.match(self._lines[self.cues[0].line]) else ".srt"

    def moved(self, times: Sequence[tuple[float, float] | None]) -> str:
        """The text of the file with new times, one pair per cue. A cue whose times are None is left out.

        If cues of a SubRip file are left out, the rest are renumbered.
        """
        found = self._lines[: self.cues[0].first]
        ends = [*(cue.first for cue in self.cues[1:]), len(self._lines)]
        number = 0
        for cue, when, end in zip(self.cues, times, ends, strict=True):
            if when is not None:
                number += 1
                found += self._cue(cue, when, None if self._is_vtt or None not in times else number)
            elif found and found[-1].strip():  # keep the gap: what follows must not join the cue above
                found += [line for line in self._lines[cue.first : cue.last] if not line.strip()]
            found += self._lines[cue.last : end]
        return self._mark + "".join(found)

    def _cue(self, cue: Cue, when: tuple[float, float], number: int | None) -> list[str]:
        """The lines of a cue with new times and, unless it is None, another number."""
        head = self._lines[cue.first : cue.line]
        if number is not None:
            head = [re.sub(r"\d+", str(number), line, count=1) if NUMBER.match(line) else line for line in head]
        text = self._lines[cue.line + 1 : cue.last]
        return [*head, self._retimed(self._lines[cue.line], when), *(_inner_times(line, cue, when) for line in text)]

    def text_of(self, cue: Cue) -> str:
        """The text of a cue, up to the first blank line, exactly as in the file."""
        stop = self._after_space(cue.line + 1)
        while stop < cue.last and self._lines[stop].strip():
            stop += 1
        return "".join(self._lines[cue.line + 1 : stop]).strip()

    def _cues(self) -> list[Cue]:
        """The cues. Each ends before the next one; in WebVTT, whose notes and styles stand between cues, at a gap."""
        timed = [k for k, line in enumerate(self._lines) if _times(line, k + 1)]
        if not timed:
            raise ValueError("the text has no subtitles; give SubRip (.srt), WebVTT (.vtt) or SubViewer (.sbv)")
        firsts = [self._first(k, numbered=self._is_number(timed[0] - 1)) for k in timed]
        found: list[Cue] = []
        for first, line, last in zip(firsts, timed, [*firsts[1:], len(self._lines)], strict=True):
            if self._is_vtt:
                last = self._after_gap(line + 1, last)
            start, stop = (seconds(clock, line + 1) for clock in _times(self._lines[line], line + 1))
            found.append(Cue(*in_order(start, stop, f"line {line + 1}: the cue"), first, line, last))
        return found

    def _first(self, line: int, *, numbered: bool) -> int:
        """The first line of the cue with times in `line`: a name after a gap or, in a numbered file, any number."""
        above = line - 1
        if above < self._is_vtt or not self._lines[above].strip() or _times(self._lines[above], line):
            return line
        after_gap = above == 0 or not self._lines[above - 1].strip()
        return above if after_gap or (numbered and self._is_number(above)) else line

    def _is_number(self, k: int) -> bool:
        return k >= 0 and NUMBER.match(self._lines[k]) is not None

    def _after_gap(self, k: int, last: int) -> int:
        """The line after a block of text and the blank lines below it."""
        k = self._after_space(k)
        while k < last and self._lines[k].strip():
            k += 1
        while k < last and not self._lines[k].strip():
            k += 1
        return k

    def _after_space(self, k: int) -> int:
        """The line k, or the next one if line k of a WebVTT file is a space, as in rolling captions."""
        spaces = k < len(self._lines) and self._lines[k].isspace() and self._lines[k].strip("\r\n") != ""
        return k + 1 if self._is_vtt and spaces else k

    def _retimed(self, line: str, when: tuple[float, float]) -> str:
        """A timing line with new times. The decimal sign and the settings after the times stay."""
        match = TIMES.match(line) or SUBVIEWER.match(line)
        assert match is not None
        point = "." if self._is_vtt or "." in match.group(1) else ","
        start, stop = (timestamp(max(0.0, t), point) for t in when)
        if match.re is SUBVIEWER:  # hours have one digit
            start, stop = (time.removeprefix("0") for time in (start, stop))
        return f"{line[: match.start(1)]}{start}{line[match.end(1) : match.start(2)]}{stop}{line[match.end(2) :]}"


def _times(line: str, number: int) -> tuple[str, ...]:
    """The start and stop in a timing line, as written; nothing in any other line. `number` is for error messages."""
    match = TIMES.match(line) or SUBVIEWER.match(line)
    if match is None and LIKE_TIMES.match(line):
        raise ValueError(
            f"line {number} has the times {line.strip()[:60]!r}, which cannot be read; write them as "
            "00:01:02,500 --> 00:01:04,000"
        )
    return match.groups() if match else ()


def _inner_times(line: str, cue: Cue, when: tuple[float, float]) -> str:
    """A line of text; the times in it, if any, move with the cue."""
    pace = (when[1] - when[0]) / (cue.stop - cue.start) if cue.stop > cue.start else 1.0

    def moved(found: re.Match[str]) -> str:
        return f"<{timestamp(max(0.0, when[0] + pace * (seconds(found.group(1), cue.line + 1) - cue.start)), '.')}>"

    return INNER.sub(moved, line)


def seconds(clock: str, line: int) -> float:
    """Parse the time of a cue into seconds; `line` is its line number, for error messages.

    A time before zero, which shifting leaves behind, counts as zero.
    """
    *hours, minutes, rest = map(float, clock.removeprefix("-").replace(",", ".").split(":"))
    if minutes >= 60 or rest >= 60:
        raise ValueError(
            f"line {line} has the time {clock}, but minutes and seconds end at 59; write it as hours:minutes:seconds"
        )
    return 0.0 if clock.startswith("-") else 3600 * sum(hours) + 60 * minutes + rest


def timestamp(when: float, point: str) -> str:
    """Format seconds as a cue time; `point` is the decimal sign, "," in SubRip and "." in WebVTT.

    >>> timestamp(3675.25, ",")
    '01:01:15,250'
    """
    whole, milli = divmod(round(1000 * when), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{point}{milli:03}"


def written(
    cues: Sequence[tuple[float, float, str]], kind: str, names: Sequence[str] | None = None, *, marked: bool = False
) -> str:
    """The content of a new file with cues (start, stop, text).

    kind : "srt" or "vtt".   names : a name for each cue, in SubRip a whole number; None: 1, 2, …
    marked : whether the texts are WebVTT already, with its marks.

    >>> print(written([(1.5, 2.0, "Hello")], "vtt").strip())
    WEBVTT
    <BLANKLINE>
    1
    00:00:01.500 --> 00:00:02.000
    Hello
    """
    names = names or [str(n) for n in range(1, len(cues) + 1)]
    point = "." if kind == "vtt" else ","
    return ("WEBVTT\n\n" if kind == "vtt" else "") + "".join(
        f"{name}\n{timestamp(start, point)} --> {timestamp(stop, point)}\n"
        f"{html.escape(text, quote=False) if kind == 'vtt' and not marked else text}\n\n"
        for name, (start, stop, text) in zip(names, cues, strict=True)
    )


def in_order(start: float, stop: float, whose: str) -> tuple[float, float]:
    """Both times, if they are finite and in order; else raise."""
    if not (isfinite(start) and isfinite(stop)):
        raise ValueError(f"{whose} lasts from {start:g} s to {stop:g} s; give finite seconds")
    if stop < start:
        raise ValueError(
            f"{whose} stops at {stop:.3f} s, before it starts at {start:.3f} s; correct its times, or delete it"
        )
    return start, stop
