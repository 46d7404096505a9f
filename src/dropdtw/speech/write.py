"""Write a speech alignment for players, subtitle editors and phonetics programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from dropdtw.files.sanitize import one_line
from dropdtw.problem.errors import choices
from dropdtw.speech.align import SpeechAlignment
from dropdtw.text.cues import written


class Told(NamedTuple):
    """An alignment with the text that it is about, and what the formats need besides.

    words, tokens : the text of each word, and the name of each token of the vocabulary (None: its number).
    name : of the recording.   cues : the number of words of each subtitle.
    """

    found: SpeechAlignment
    words: list[str]
    fps: float
    tokens: Sequence[str] | None
    name: str
    cues: Sequence[int]

    def seconds(self, *frames: int) -> list[float]:
        """When frames begin."""
        return [round(frame / self.fps, 6) for frame in frames]

    def token(self, number: int) -> str:
        """The name of a token."""
        return str(number) if self.tokens is None else one_line(str(self.tokens[number]))


def write_alignment(
    found: SpeechAlignment,
    words: Sequence[str],
    kind: str,
    *,
    fps: float,
    cues: Sequence[int] | None = None,
    tokens: Sequence[str] | None = None,
    name: str = "recording",
) -> str:
    """The content of a file with the times of the words.

    found : from `align`.
    words : the text of each word.
    kind : the format, one of `FORMATS`: "srt", "vtt", "textgrid" (Praat), "ctm" or "json".
    fps : the number of frames per second, such as 50.
    cues : for srt and vtt, how many words each subtitle has; the sum is the number of words. None: one word each.
    tokens : for textgrid and json, the name of each token of the vocabulary. None: its number.
    name : for ctm, the name of the recording.

    Words that are not spoken are left out. In json, `skipped` lists them, and `extra` the speech that is not in the
    text. Times are in seconds.

    Returns the content as a string. Raises ValueError if an argument is invalid.

    >>> import numpy as np
    >>> from dropdtw import speech
    >>> p = np.full((6, 3), 0.02)
    >>> p[range(6), [1, 1, 0, 2, 2, 0]] = 0.96
    >>> found = speech.align(np.log(p), [[1], [2]])
    >>> print(speech.write_alignment(found, ["so", "what"], "ctm", fps=50))
    recording 1 0.000 0.040 so 0.980
    recording 1 0.060 0.040 what 0.980
    <BLANKLINE>
    """
    if kind not in FORMATS:
        raise ValueError(f"the format is {kind!r}; {choices(kind, FORMATS)}")
    if len(words) != len(found.spoken):
        raise ValueError(f"there are {len(words)} words, but the alignment has {len(found.spoken)}; give one text each")
    if not fps > 0:
        raise ValueError(f"fps is {fps!r}; give the number of frames per second, such as 50")
    sizes = [1] * len(words) if cues is None else list(cues)
    if sum(sizes) != len(words) or any(size < 1 for size in sizes):
        raise ValueError(f"cues has the sum {sum(sizes)}, but there are {len(words)} words; give the size of each cue")
    return FORMATS[kind](Told(found, [one_line(word) for word in words], fps, tokens, one_line(name), sizes))


def _subtitles(told: Told, kind: str) -> str:
    spoken = {word.index: word for word in told.found.words}
    made = []
    for size, last in zip(told.cues, accumulate(told.cues), strict=True):
        here = [spoken[index] for index in range(last - size, last) if index in spoken]
        if here:
            text = " ".join(told.words[word.index] for word in here)
            start, stop = told.seconds(here[0].start, here[-1].stop)
            made.append((start, stop, text))
    return written(made, kind)


def _textgrid(told: Told) -> str:
    words = [(*told.seconds(word.start, word.stop), told.words[word.index]) for word in told.found.words]
    tokens = [
        (*told.seconds(token.start, token.stop), told.token(token.token))
        for word in told.found.words
        for token in word.tokens
    ]
    return textgrid({"words": words, "tokens": tokens}, *told.seconds(len(told.found.labels)))  # type: ignore[dict-item]


def textgrid(tiers: Mapping[str, Sequence[tuple[float, float, str]]], end: float) -> str:
    """Praat's text format: for each tier, intervals (start, stop, text) without gaps; those of silence have no text.

    The intervals of a tier are in order and do not overlap.   end : the duration of the recording.
    """
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {end}"]
    lines += ["tiers? <exists>", f"size = {len(tiers)}", "item []:"]
    for number, (name, spans) in enumerate(tiers.items(), 1):
        whole = list(_without_gaps(spans, end))
        lines += [f"    item [{number}]:", '        class = "IntervalTier"', f'        name = "{name}"']
        lines += ["        xmin = 0", f"        xmax = {end}", f"        intervals: size = {len(whole)}"]
        for n, (low, high, text) in enumerate(whole, 1):
            quoted = text.replace('"', '""')
            lines += [f"        intervals [{n}]:", f"            xmin = {low}", f"            xmax = {high}"]
            lines += [f'            text = "{quoted}"']
    return "\n".join(lines) + "\n"


def _without_gaps(spans: Iterable[tuple[float, float, str]], end: float) -> Iterable[tuple[float, float, str]]:
    at: float = 0
    for start, stop, text in [*spans, (end, end, "")]:
        if at < start:
            yield at, start, ""
        if start < stop:
            yield start, stop, text
        at = stop


def _ctm(told: Told) -> str:
    """NIST's format: recording, channel, start, duration, word, probability. A field has no spaces."""
    lines = []
    for word in told.found.words:
        start, stop = told.seconds(word.start, word.stop)
        name, text = ("_".join(field.split()) or "_" for field in (told.name, told.words[word.index]))
        lines.append(f"{name} 1 {start:.3f} {stop - start:.3f} {text} {word.probability:.3f}\n")
    return "".join(lines)


def _json(told: Told) -> str:
    def span(part: Any, **more: Any) -> dict[str, Any]:
        start, stop = told.seconds(part.start, part.stop)
        measured = {"score": round(part.score, 6), "probability": round(part.probability, 6)}
        return {**more, "start": start, "stop": stop, **measured}

    words = [
        span(word, index=word.index, text=told.words[word.index])
        | {"tokens": [span(token, token=told.token(token.token)) for token in word.tokens]}
        for word in told.found.words
    ]
    skipped = [
        {"index": index, "text": told.words[index], "spoken": round(float(told.found.spoken[index]), 6)}
        for index in told.found.skipped
    ]
    extra = [dict(zip(("start", "stop"), told.seconds(*span), strict=True)) for span in told.found.extra]
    return json.dumps({"words": words, "skipped": skipped, "extra": extra}, indent=1, ensure_ascii=False) + "\n"


FORMATS: Final[dict[str, Callable[[Told], str]]] = {
    "srt": lambda told: _subtitles(told, "srt"),
    "vtt": lambda told: _subtitles(told, "vtt"),
    "textgrid": _textgrid,
    "ctm": _ctm,
    "json": _json,
}
"""The formats of speech alignments, by name."""
