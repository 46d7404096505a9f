"""Random subtitle files: what is read is moved, left out or refused in words, and nothing else changes."""

from __future__ import annotations

import re

import numpy as np

from dropdtw.media.edits import Edits
from dropdtw.media.retime import retime
from dropdtw.text.cues import CueFile
from dropdtw.text.subtitles import read_subtitles

TEXTS = ("42", "Hello", "", "- [Music]", "a --> b", "<i>you</i>", "NOTE this", "{\\an8}x", "♪ la ♪", "<00:00:01.500>go")


def case(rng: np.random.Generator) -> str:
    """Shift a random file, leave out some of its cues, and read the results again."""
    text, kind = _file(rng)
    try:
        file = CueFile(text)
    except ValueError as error:
        if not re.search(r"line \d+|no subtitles", str(error)):
            raise
        return f"{kind}, refused"
    shift = float(rng.integers(0, 50))
    edits = Edits.of_same([((0.0, 900.0), (shift, 900.0 + shift), 1.0)], (900.0, 900.0 + shift))
    moved = CueFile(retime(file, edits).text)
    assert len(moved.cues) == len(file.cues)
    for old, new in zip(file.cues, moved.cues, strict=True):
        assert abs(old.start + shift - new.start) < 2e-3
        assert abs(old.stop + shift - new.stop) < 2e-3
        assert _plain(file.text_of(old)) == _plain(moved.text_of(new))
    kept = rng.random(len(file.cues)) < 0.7
    times = [(cue.start, cue.stop) if keep else None for cue, keep in zip(file.cues, kept, strict=True)]
    rest = file.moved(times)
    if kept.any():
        wanted = [_plain(file.text_of(cue)) for cue, keep in zip(file.cues, kept, strict=True) if keep]
        assert [_plain(CueFile(rest).text_of(cue)) for cue in CueFile(rest).cues] == wanted
    try:
        read_subtitles(text)
    except ValueError as error:
        if "no subtitles" not in str(error):
            raise
    return kind


def _plain(text: str) -> str:
    return re.sub(r"<[\d:.]+>", "<>", text)


def _file(rng: np.random.Generator) -> tuple[str, str]:
    kind = str(rng.choice(["srt", "vtt", "sbv"]))
    numbered, end = rng.random() < 0.7, str(rng.choice(["\n", "\r\n"]))
    lines = ["WEBVTT", ""] if kind == "vtt" else []
    now = 0.0
    for number in range(1, int(rng.integers(1, 7)) + 1):
        start, stop = now + float(rng.choice([0, 0.5])), now + float(rng.choice([0.5, 1, 3.25]))
        now = stop
        lines += [str(number)] * numbered
        lines.append(_times(rng, kind, start, stop))
        texts = TEXTS if numbered else TEXTS[1:]  # without numbers, nothing tells a spoken number from one
        lines += [str(rng.choice(texts)) for _ in range(int(rng.integers(0, 3)))]
        lines += [""] * int(rng.choice([0, 1, 1, 1, 2]))
    return "\ufeff" * int(rng.random() < 0.2) + end.join(lines) + end, kind


def _times(rng: np.random.Generator, kind: str, start: float, stop: float) -> str:
    if rng.random() < 0.03:
        return str(rng.choice(["00:00:01:000 --> 00:00:02:000", "00:99 --> 00:99", "0:1 -> 0:2", "00:05 --> 00:01"]))
    if kind == "sbv":
        return f"0:00:{start:06.3f},0:00:{stop:06.3f}"
    sign = "-" if start == 0 and rng.random() < 0.2 else ""
    hours = "00:" if kind == "srt" or rng.random() < 0.5 else ""
    line = f"{sign}{hours}00:{start:06.3f} --> {hours}00:{stop:06.3f}"
    return line.replace(".", ",") if kind == "srt" else line + str(rng.choice(["", " align:start"]))
