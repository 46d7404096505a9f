"""Chapters as a web page: the talk as a strip, each step with its times and first words, and the full text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dropdtw.files.sanitize import one_line
from dropdtw.files.templates import rendered
from dropdtw.text.find import FoundStep
from dropdtw.text.labels import absence, clock, place, quote, step_numbers
from dropdtw.text.subtitles import Sentence

UNSURE: Final = 0.5
"""Confidence below which a step is marked as doubtful."""


def page(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    """The page, in one file without scripts."""
    timed = any(f.start is not None for f in found) or not any(f.found for f in found)
    end = (float(len(talk)) if not timed else max([f.stop or 0 for f in found] + [s.stop for s in talk[-1:]])) or 1.0
    steps = [_step(number, f, talk, end) for number, f in zip(step_numbers(found), found, strict=True)]
    marks = [clock(t) for t in (0, end / 2, end)] if timed else ["sentence 1", f"sentence {round(end)}"]
    return rendered(__file__, steps=steps, marks=marks, lines=_transcript(steps, talk, timed))


def _step(number: str, f: FoundStep, talk: Sequence[Sentence], end: float) -> dict[str, Any]:
    if f.sentences is None or f.confidence is None:
        return {"number": number, "name": f.step, "absent": absence(f)}
    start, stop = f.sentences if f.start is None or f.stop is None else (f.start, f.stop)
    width = max(0.4, 100 * (stop - start) / end)
    return {
        "number": number,
        "name": f.step,
        "absent": "",
        "sentences": f.sentences,
        "place": place(f),
        "quote": quote(f, talk),
        "confidence": f"{f.confidence:.0%}",
        "unsure": f.confidence < UNSURE,
        "left": f"{100 * start / end:.2f}",
        "width": f"{width:.2f}",
        "shown": number if width > 1 + 2 * len(number) else "",
    }


def _transcript(steps: Sequence[dict[str, Any]], talk: Sequence[Sentence], timed: bool) -> list[dict[str, Any]]:
    """The full text of the talk, with a heading where a step begins."""
    there = [step for step in steps if not step["absent"]]
    begin = {step["sentences"][0]: f"{step['number']}. {step['name']}" for step in there}
    inside = {k for step in there for k in range(*step["sentences"])}
    return [
        {
            "heading": begin.get(k, ""),
            "when": clock(sentence.start) if timed else str(k + 1),
            "told": k in inside,
            "text": one_line(sentence.text),
        }
        for k, sentence in enumerate(talk)
    ]
