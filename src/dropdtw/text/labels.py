"""Short texts about found steps, for pages, chapters and the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from dropdtw.files.sanitize import one_line
from dropdtw.text.find import Closest, FoundStep
from dropdtw.text.subtitles import Sentence

QUOTED: Final = 160
"""Maximum length of a quote, in characters."""


def clock(seconds: float) -> str:
    """Format seconds as m:ss or h:mm:ss.

    >>> clock(75.4), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def absence(f: FoundStep) -> str:
    """A short label for a step that was not found."""
    return {"optional": "optional", "alternative": "not taken"}.get(f.left_out, "not found")


def place(f: FoundStep) -> str:
    """Where a step was found: its times or, if the talk has none, its sentences, counted from 1."""
    if f.sentences is None:
        return absence(f)
    if f.start is None or f.stop is None:
        first, last = f.sentences[0] + 1, f.sentences[1]
        return f"sentence {first}" if first == last else f"sentences {first}–{last}"
    return f"{clock(f.start)}–{clock(f.stop)}"


def percent(share: float) -> str:
    """A probability in percent.

    >>> percent(0.224), percent(0.004)
    ('22%', '<1%')
    """
    return f"{share:.0%}" if share >= 0.01 else "<1%"


def begins(where: Closest) -> str:
    """Where the most likely place of a missing step begins."""
    return f"sentence {where.sentences[0] + 1}" if where.start is None else clock(where.start)


def quote(f: FoundStep | Closest, talk: Sequence[Sentence], most: int = QUOTED) -> str:
    """The first words of a step's passage."""
    if f.sentences is None or not talk:
        return ""
    words = one_line(talk[f.sentences[0]].text)
    return words if len(words) <= most else f"{words[: most - 1].rsplit(' ', 1)[0]} …"


def step_numbers(found: Sequence[FoundStep]) -> list[str]:
    """The number of each step, from 1. The second time that step 8 is done has the number "8.2"."""
    times: Counter[int] = Counter()
    numbers = []
    for f in found:
        times[f.index] += 1
        numbers.append(f"{f.index + 1}" + (f".{times[f.index]}" if times[f.index] > 1 else ""))
    return numbers
