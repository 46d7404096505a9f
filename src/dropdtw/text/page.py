"""Chapters as a page: the whole talk as a strip, and for each step its name, its times and what is said there."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

from dropdtw import palette
from dropdtw.files.strangers import one_line
from dropdtw.text.localize import FoundStep
from dropdtw.text.subtitles import Sentence

QUOTED: Final = 160
"""Letters of a sentence that are quoted."""


def clock(seconds: float) -> str:
    """Seconds as people write them.

    >>> clock(75.4), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def absence(f: FoundStep) -> str:
    """How to say that a step was not found, in few letters."""
    return {"optional": "optional", "alternative": "not taken"}.get(f.left_out, "not found")


def place(f: FoundStep) -> str:
    """Where a step was found: from–to, in time or, where there is none, in sentences counted from 1."""
    if f.sentences is None:
        return absence(f)
    if f.start is None or f.stop is None:
        first, last = f.sentences[0] + 1, f.sentences[1]
        return f"sentence {first}" if first == last else f"sentences {first}–{last}"
    return f"{clock(f.start)}–{clock(f.stop)}"


def quote(f: FoundStep, talk: Sequence[Sentence], most: int = QUOTED) -> str:
    """How the passage of a step begins."""
    if f.sentences is None or not talk:
        return ""
    words = one_line(talk[f.sentences[0]].text)
    return words if len(words) <= most else f"{words[: most - 1].rsplit(' ', 1)[0]} …"


def page(found: Sequence[FoundStep], talk: Sequence[Sentence], intro: str) -> str:
    """The page, in one file without scripts."""
    timed = any(f.start is not None for f in found) or not any(f.found for f in found)
    end = (float(len(talk)) if not timed else max([f.stop or 0 for f in found] + [s.stop for s in talk[-1:]])) or 1.0
    bars, rows = [], []
    for f in found:
        step, number = html.escape(f.step), f.index + 1
        if f.sentences is None or f.confidence is None:
            rows.append(f'<tr class="none"><td>{number}</td><td>{step}</td><td colspan="2">{absence(f)}</td></tr>')
            continue
        start, stop = f.sentences if f.start is None or f.stop is None else (f.start, f.stop)
        left, width = 100 * start / end, max(0.4, 100 * (stop - start) / end)
        when = place(f)
        bars.append(
            f'<i style="left:{left:.2f}%;width:{width:.2f}%;opacity:{0.45 + 0.55 * f.confidence:.2f}"'
            f' title="{step}, {when}">{number if width > 3 else ""}</i>'
        )
        said = html.escape(quote(f, talk))
        said = f"<br><q>{said}</q>" if said else ""
        rows.append(f"<tr><td>{number}</td><td>{step}{said}</td><td>{when}</td><td>{f.confidence:.0%}</td></tr>")
    ends = ("0:00", clock(end)) if timed else ("sentence 1", str(round(end)))
    return PAGE.format(colours=palette.css(), bars="".join(bars), rows="\n".join(rows), begin=ends[0], end=ends[1])


PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Where each step is talked about</title>
<style>
{colours}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--ground) }}
.bar {{ position: relative; height: 2rem; background: var(--rest); border-radius: 4px }}
.bar i {{ position: absolute; top: 0; bottom: 0; background: var(--matched); border-radius: 2px;
  color: var(--on-matched); font: 600 .8rem/2rem system-ui, sans-serif; text-align: center; overflow: hidden }}
.ends {{ display: flex; justify-content: space-between; font-size: .8rem; color: var(--soft) }}
table {{ border-collapse: collapse; width: 100%; margin-top: 1rem }}
td, th {{ text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8884; vertical-align: top }}
td:nth-child(3) {{ white-space: nowrap }}
q {{ font-size: .9rem; color: var(--soft) }}
.none {{ color: var(--soft) }}
</style>
<h1>Where each step is talked about</h1>
<div class="bar">{bars}</div><div class="ends"><span>{begin}</span><span>{end}</span></div>
<table><tr><th>#</th><th>step</th><th>time</th><th>sure</th></tr>
{rows}
</table>
</html>
"""
