"""Draw chapters as a web page: the talk as a strip, each step with its times and first words, and the full text."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import Final

from dropdtw import palette
from dropdtw.files.sanitize import one_line
from dropdtw.text.find import FoundStep
from dropdtw.text.subtitles import Sentence

QUOTED: Final = 160
"""Maximum length of a quote, in characters."""
UNSURE: Final = 0.5
"""Confidence below which a step is marked as doubtful."""


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


def quote(f: FoundStep, talk: Sequence[Sentence], most: int = QUOTED) -> str:
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


def page(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    """The page, in one file without scripts."""
    timed = any(f.start is not None for f in found) or not any(f.found for f in found)
    end = (float(len(talk)) if not timed else max([f.stop or 0 for f in found] + [s.stop for s in talk[-1:]])) or 1.0
    numbered = list(zip(step_numbers(found), found, strict=True))
    return PAGE.format(
        colors=palette.css(),
        bars="".join(_bar(number, f, end) for number, f in numbered if f.found),
        marks="".join(f"<span>{mark}</span>" for mark in _marks(end, timed)),
        rows="\n".join(_row(number, f, talk) for number, f in numbered),
        talk=_transcript(numbered, talk, timed) if talk else "",
    )


def _bar(number: str, f: FoundStep, end: float) -> str:
    assert f.sentences is not None
    start, stop = f.sentences if f.start is None or f.stop is None else (f.start, f.stop)
    left, width = 100 * start / end, max(0.4, 100 * (stop - start) / end)
    about = html.escape(f"{number}. {f.step}, {place(f)}")
    shown = number if width > 1 + 2 * len(number) else ""
    return (
        f'<a href="#step-{number}"{_unsure(f)} style="left:{left:.2f}%;width:{width:.2f}%" title="{about}"'
        f' aria-label="{about}">{shown}</a>'
    )


def _unsure(f: FoundStep) -> str:
    return "" if f.confidence is None or f.confidence >= UNSURE else ' class="unsure"'


def _marks(end: float, timed: bool) -> list[str]:
    """The labels below the strip: its start and end, and with times also its middle."""
    return [clock(t) for t in (0, end / 2, end)] if timed else ["sentence 1", f"sentence {round(end)}"]


def _row(number: str, f: FoundStep, talk: Sequence[Sentence]) -> str:
    step = html.escape(f.step)
    if f.sentences is None or f.confidence is None:
        return f'<tr class="none"><td>{number}</td><td>{step}</td><td colspan="2">{absence(f)}</td></tr>'
    said = html.escape(quote(f, talk))
    said = f"<br><q>{said}</q>" if said else ""
    return (
        f'<tr id="step-{number}"><td>{number}</td><td>{step}{said}</td><td>{place(f)}</td>'
        f"<td{_unsure(f)}>{f.confidence:.0%}</td></tr>"
    )


def _transcript(numbered: Sequence[tuple[str, FoundStep]], talk: Sequence[Sentence], timed: bool) -> str:
    """The full text of the talk, with a heading where a step begins."""
    begin = {f.sentences[0]: (number, f) for number, f in numbered if f.sentences is not None}
    inside = {k for _, f in numbered if f.sentences is not None for k in range(*f.sentences)}
    lines = []
    for k, sentence in enumerate(talk):
        if k in begin:
            lines.append(f"<h3>{begin[k][0]}. {html.escape(begin[k][1].step)}</h3>")
        when = clock(sentence.start) if timed else str(k + 1)
        told = ' class="told"' if k in inside else ""
        lines.append(f"<p{told}><small>{when}</small> {html.escape(one_line(sentence.text))}</p>")
    return TALK.format(count=len(talk), lines="\n".join(lines))


TALK: Final = """<details><summary>The whole talk, {count} sentences</summary>
{lines}
</details>"""

PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Where each step is talked about</title>
<style>
{colors}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--ground) }}
.bar {{ position: relative; height: 2rem; background: var(--rest); border-radius: 4px }}
.bar a {{ position: absolute; top: 0; bottom: 0; box-sizing: border-box; background: var(--matched);
  color: var(--on-matched); border-radius: 2px; font: 600 .8rem/2rem system-ui, sans-serif;
  text-align: center; text-decoration: none; overflow: hidden }}
.bar a.unsure {{ background: var(--ground); color: var(--text);
  outline: 2px dashed var(--matched); outline-offset: -2px }}
.marks {{ display: flex; justify-content: space-between; font-size: .8rem; color: var(--soft) }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0 }}
td, th {{ text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }}
td:nth-child(3) {{ white-space: nowrap }}
td.unsure {{ white-space: nowrap }}
td.unsure::after {{ content: " ?" }}
tr:target {{ background: var(--panel) }}
q, .none {{ color: var(--soft) }}
summary {{ cursor: pointer }}
h3 {{ font-size: 1rem; margin: 1rem 0 0; color: var(--accent) }}
p {{ margin: 0; padding-left: .6rem; border-left: 3px solid transparent }}
p.told {{ border-color: var(--matched) }}
small {{ color: var(--soft); margin-right: .4rem }}
@media (max-width: 30rem) {{
  td, th {{ padding-right: .4rem; overflow-wrap: break-word }}
  td:nth-child(3) {{ white-space: normal }}
}}
</style>
<h1>Where each step is talked about</h1>
<div class="bar">{bars}</div><div class="marks">{marks}</div>
<table><tr><th>#</th><th>step</th><th>time</th><th>confidence</th></tr>
{rows}
</table>
{talk}
</html>
"""
