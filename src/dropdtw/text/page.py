"""Chapters as a web page: the talk as a strip, each step with its times and first words, and the full text."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from typing import Any, Final

from dropdtw.files.sanitize import one_line
from dropdtw.files.templates import rendered
from dropdtw.text.find import FoundStep
from dropdtw.text.labels import absence, begins, clock, percent, place, quote, step_numbers
from dropdtw.text.subtitles import Sentence

UNSURE: Final = 0.5
"""Confidence below which a step is marked as doubtful."""
REMOTE: Final = ("http://", "https://")


def page(
    found: Sequence[FoundStep],
    talk: Sequence[Sentence],
    title: str,
    recording: str,
    youtube: str,
    remarks: Sequence[str],
) -> str:
    """The page, in one file.

    recording : its address. A file is played by the page, which then seeks; one on the web is linked. If there is none,
        times are links to the text of the talk.
    youtube : the chapters that a button copies, with remarks on them.
    """
    timed = any(f.start is not None for f in found) or not any(f.found for f in found)
    end = (float(len(talk)) if not timed else max([f.stop or 0 for f in found] + [s.stop for s in talk[-1:]])) or 1.0
    remote = recording.startswith(REMOTE)
    steps = [_step(number, f, talk, end) for number, f in zip(step_numbers(found), found, strict=True)]
    return rendered(
        __file__,
        title=title,
        steps=steps,
        count=(len({f.index for f in found if f.found}), len({f.index for f in found if f.found or not f.left_out})),
        marks=[clock(t) for t in (0, end / 2, end)] if timed else ["sentence 1", f"sentence {round(end)}"],
        lines=_transcript(steps, talk, timed),
        site=recording.partition("#")[0] if remote else "",
        media="" if remote or not timed else recording,
        player="audio" if (mimetypes.guess_type(recording)[0] or "").startswith("audio") else "video",
        youtube=youtube,
        remarks=remarks,
        limit=f"{UNSURE:.0%}",
    )


def _step(number: str, f: FoundStep, talk: Sequence[Sentence], end: float) -> dict[str, Any]:
    shown: dict[str, Any] = {"number": number, "name": f.step, "absent": absence(f), "at": None, "closest": None}
    if f.closest is not None:
        shown["closest"] = {"place": begins(f.closest), "confidence": percent(f.closest.confidence)}
        return shown | {"at": _at(f.closest.start), "quote": quote(f.closest, talk)}
    if f.sentences is None or f.confidence is None:
        return shown | {"quote": ""}
    start, stop = f.sentences if f.start is None or f.stop is None else (f.start, f.stop)
    width = max(0.4, 100 * (stop - start) / end)
    return shown | {
        "absent": "",
        "sentences": f.sentences,
        "at": _at(f.start),
        "place": place(f),
        "quote": quote(f, talk),
        "confidence": percent(f.confidence),
        "unsure": f.confidence < UNSURE,
        "left": f"{100 * start / end:.2f}",
        "width": f"{width:.2f}",
        "shown": number if width > 1 + 2 * len(number) else "",
    }


def _at(seconds: float | None) -> str | None:
    """A time as media fragments have it."""
    return None if seconds is None else f"{seconds:.2f}".rstrip("0").rstrip(".")


def _transcript(steps: Sequence[dict[str, Any]], talk: Sequence[Sentence], timed: bool) -> list[dict[str, Any]]:
    """The full text of the talk, with a heading where a step begins."""
    there = [step for step in steps if not step["absent"]]
    begin = {step["sentences"][0]: f"{step['number']}. {step['name']}" for step in there}
    inside = {k for step in there for k in range(*step["sentences"])}
    return [
        {
            "heading": begin.get(k, ""),
            "at": _at(sentence.start) if timed else None,
            "when": clock(sentence.start) if timed else str(k + 1),
            "told": k in inside,
            "text": one_line(sentence.text),
        }
        for k, sentence in enumerate(talk)
    ]
