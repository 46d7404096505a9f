"""Draw an edit list as a web page: a strip per recording, ribbons between shared passages, the rest in orange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from dropdtw import palette
from dropdtw.files.sanitize import one_line
from dropdtw.media.edits import NAMES, NOTHING, UNCOMPARED, Edits, Span, clock

WIDTH, HEIGHT, LEFT, RIGHT = 1000, 220, 34, 26
STRIP = 34
TOP, BOTTOM = 8, 146
TICKS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Possible distances between two tick marks, in seconds."""


def page(edits: Edits, names: tuple[str, str], *, timed: bool = True) -> str:
    """The whole page, in one file without scripts. Without times, positions are plain numbers."""
    said_at = clock if timed else _plain
    a, b = (escape(one_line(name)) for name in names)
    alone = [sum(s.duration for s in rows) for rows in (edits.only_a, edits.only_b)]
    shared = sum(s.duration for s in edits.same)
    lengths = [said_at(round(length)).removesuffix(".000") for length in (shared, *alone)]
    said = f"{(NOTHING if edits.segments else UNCOMPARED).capitalize()}."
    if edits.same:
        said = f"{lengths[0]} in common; only in A {lengths[1]}, only in B {lengths[2]}."
    notes = "".join(f"<p>{escape(one_line(note))}</p>" for note in edits.notes if note != NOTHING)
    rows = "\n".join(_rows(edits, said_at))
    return PAGE.format(
        colors=palette.css(), a=a, b=b, said=said, notes=notes, picture=_picture(edits, said_at), rows=rows,
        width=WIDTH, height=HEIGHT,
    )  # fmt: skip


def _picture(edits: Edits, said: Callable[[float], str]) -> str:
    longest = max(*edits.durations, 1e-9)

    def at(t: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * t / longest

    def bar(kind: str, of: Span, y: int, title: str) -> str:
        left, right = at(of[0]), at(of[1])
        return (
            f'<rect class="{kind}" x="{left:.2f}" y="{y}" width="{max(0.8, right - left):.2f}" height="{STRIP}">'
            f"<title>{title}</title></rect>"
        )

    parts = [
        f'<rect class="rest" x="{LEFT}" y="{y}" width="{at(length) - LEFT:.2f}" height="{STRIP}"/>'
        for y, length in zip((TOP, BOTTOM), edits.durations, strict=True)
    ]
    for s in edits.segments:
        sure = f"{s.confidence:.0%} sure"
        if s.a is not None and s.b is not None:
            title = f"same: A {_span(s.a, said)}, B {_span(s.b, said)}, {sure}"
            corners = [(at(s.a[0]), TOP + STRIP), (at(s.a[1]), TOP + STRIP), (at(s.b[1]), BOTTOM), (at(s.b[0]), BOTTOM)]
            points = " ".join(f"{x:.2f},{y}" for x, y in corners)
            parts.append(f'<polygon class="ribbon" points="{points}"><title>{title}</title></polygon>')
            parts += [bar("same", s.a, TOP, title), bar("same", s.b, BOTTOM, title)]
        elif s.a is not None:
            parts.append(bar("only", s.a, TOP, f"only A: {_span(s.a, said)}, {sure}"))
        elif s.b is not None:
            parts.append(bar("only", s.b, BOTTOM, f"only B: {_span(s.b, said)}, {sure}"))
    step = next((t for t in TICKS if longest / t <= 10), TICKS[-1] * int(1 + longest / 10 / TICKS[-1]))
    foot = BOTTOM + STRIP
    for k in range(int(longest / step) + 1):
        x, anchor = f"{at(k * step):.2f}", "middle" if k else "start"
        name = said(k * step).removesuffix(".000")
        parts.append(f'<line class="tick" x1="{x}" x2="{x}" y1="{foot}" y2="{foot + 6}"/>')
        parts.append(f'<text class="at{k % 2}" x="{x}" y="{foot + 30}" text-anchor="{anchor}">{name}</text>')
    for name, y in (("A", TOP), ("B", BOTTOM)):
        parts.append(f'<text class="name" x="8" y="{y + STRIP - 11}">{name}</text>')
    return "".join(parts)


def _span(of: Span, said: Callable[[float], str]) -> str:
    return f"{said(of[0])}–{said(of[1])}"


def _plain(place: float) -> str:
    return f"{place:g}"


def _rows(edits: Edits, said: Callable[[float], str]) -> Iterator[str]:
    speeds = any(s.speed is not None for s in edits.segments)
    heads = ["", "in A", "in B", "lasts", "confidence", *(["speed"] if speeds else [])]
    yield f"<tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for s in edits.segments:
        kind = "same" if s.kind == "same" else "only"
        cells = [f'<i class="{kind}"></i>{NAMES[s.kind]}']
        cells += ["" if of is None else _span(of, said) for of in (s.a, s.b)]
        cells += [said(s.duration), f"{s.confidence:.0%}"]
        if speeds:
            cells.append("" if s.speed is None else f"{s.speed:.4f}")
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{a} and {b}: what they have in common</title>
<style>
{colors}
:root {{ --ink: var(--text); --paper: var(--ground); --same: var(--matched); --only: var(--dropped) }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper) }}
h1 {{ font-size: 1.4rem; margin-bottom: .2rem }}
dl {{ margin: 0 0 1rem; display: grid; grid-template-columns: auto 1fr; column-gap: .6rem }}
dd {{ margin: 0; overflow-wrap: anywhere }}
dt {{ font-weight: 600 }}
svg {{ width: 100%; height: auto; display: block }}
svg text {{ fill: var(--ink); font-size: 15px }}
svg .name {{ font-weight: 600; font-size: 18px }}
svg .tick {{ stroke: var(--ink) }}
svg rect.same, svg rect.only {{ stroke: var(--paper); stroke-width: 1.5 }}
.rest {{ fill: var(--rest) }}
.same {{ fill: var(--same); background: var(--same) }}
.only {{ fill: var(--only); background: var(--only) }}
.ribbon {{ fill: var(--same); opacity: .25 }}
.ribbon:hover {{ opacity: .5 }}
.scroll {{ overflow-x: auto }}
table {{ border-collapse: collapse; width: 100%; margin-top: 1rem; font-variant-numeric: tabular-nums }}
td, th {{ text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }}
td i {{ display: inline-block; width: .8em; height: .8em; margin-right: .5em; border-radius: 2px }}
@media (max-width: 600px) {{
  svg text, svg .name {{ font-size: 30px }}
  svg .at1 {{ display: none }}
  td, th {{ padding: .3rem .2rem; font-size: .8rem; white-space: normal }}
  td:first-child {{ white-space: nowrap }}
  td i {{ margin-right: .3em }}
}}
</style>
<h1>{said}</h1>
<dl><dt>A</dt><dd>{a}</dd><dt>B</dt><dd>{b}</dd></dl>
{notes}
<svg viewBox="0 0 {width} {height}" role="img" aria-label="A and B as strips; ribbons join the passages they share">
{picture}</svg>
<div class="scroll"><table>
{rows}
</table></div>
</html>
"""
