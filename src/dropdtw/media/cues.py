"""Change the times in a subtitle file, and keep everything else: styles, settings, tags, notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dropdtw.text.subtitles import TIMES, Sentence, read_subtitles, seconds, timestamp

INNER: Final = re.compile(r"<((?:\d+:)?\d{1,2}:\d{2}\.\d{3})>")
"""A time inside the text of a WebVTT cue, which says when the next word is spoken."""
ARROW: Final = re.compile(r"\s*-->\s*")


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
    """A SubRip (.srt) or WebVTT (.vtt) file, line by line.

    >>> file = CueFile("1\\n00:00:01,000 --> 00:00:02,000\\nHello\\n\\n")
    >>> print(file.moved([(61.5, 62.5)]).strip())
    1
    00:01:01,500 --> 00:01:02,500
    Hello
    """

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.is_vtt = text.lstrip("\ufeff").startswith("WEBVTT")
        self.cues = self._cues()
        if not self.cues:
            raise ValueError("the file has no timed cues; give a SubRip (.srt) or WebVTT (.vtt) file")

    @cached_property
    def spoken(self) -> list[Sentence]:
        """The spoken text, without markup."""
        return read_subtitles("".join(self.lines))

    def moved(self, times: Sequence[tuple[float, float] | None]) -> str:
        """The text of the file with new times, one pair per cue. A cue whose times are None is left out.

        If cues of a SubRip file are left out, the rest are renumbered.
        """
        lines = list(self.lines)
        for cue, when in zip(self.cues, times, strict=True):
            if when is None:
                lines[cue.first : cue.last] = [""] * (cue.last - cue.first)
            else:
                lines[cue.line] = self._retimed(lines[cue.line], when)
                for k in range(cue.line + 1, cue.last):
                    lines[k] = _inner_times(lines[k], cue, when)
        if not self.is_vtt and None in times:
            kept = (cue for cue, when in zip(self.cues, times, strict=True) if when is not None)
            for number, cue in enumerate(kept, 1):
                if cue.first < cue.line:
                    lines[cue.first] = re.sub(r"\d+", str(number), lines[cue.first], count=1)
        return "".join(lines)

    def text_of(self, cue: Cue) -> str:
        """The text of a cue, exactly as in the file."""
        return "".join(self.lines[cue.line + 1 : cue.last]).strip()

    def _cues(self) -> list[Cue]:
        found: list[Cue] = []
        k, blank = 0, True
        named: int | None = None
        while k < len(self.lines):
            line = self.lines[k]
            times = TIMES.match(line)
            if times is None:
                named = k if blank and line.strip() else None
                blank = not line.strip()
                k += 1
                continue
            first, here = (k if named is None else named), k
            start, stop = (seconds(clock, here + 1) for clock in times.groups())
            k += 1
            while k < len(self.lines) and self.lines[k].strip():
                k += 1
            while k < len(self.lines) and not self.lines[k].strip():
                k += 1
            found.append(Cue(start, stop, first, here, k))
            named, blank = None, True
        return found

    def _retimed(self, line: str, when: tuple[float, float]) -> str:
        """A timing line with new times. The decimal sign and the settings after the times stay."""
        match = TIMES.match(line)
        assert match is not None
        old, point = match.group(1), "." if self.is_vtt else ","
        if "." in old:
            point = "."
        start, stop = (timestamp(max(0.0, t), point) for t in when)
        arrow = ARROW.search(line)
        assert arrow is not None
        return f"{line[: match.start(1)]}{start}{arrow.group()}{stop}{line[match.end() :]}"


def _inner_times(line: str, cue: Cue, when: tuple[float, float]) -> str:
    """A line of text; the times in it, if any, move with the cue."""
    pace = (when[1] - when[0]) / (cue.stop - cue.start) if cue.stop > cue.start else 1.0

    def moved(found: re.Match[str]) -> str:
        return f"<{timestamp(max(0.0, when[0] + pace * (seconds(found.group(1), cue.line + 1) - cue.start)), '.')}>"

    return INNER.sub(moved, line)
