"""Found steps as chapters, in the formats of players, editors and web pages."""

from __future__ import annotations

import csv
import html
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dropdtw.files.strangers import cell, one_line
from dropdtw.text.localize import FoundStep
from dropdtw.text.subtitles import timestamp


def write_chapters(found: Sequence[FoundStep], kind: str) -> str:
    """Found steps as the content of a file; `kind` is one of `FORMATS`.

    Steps that were not found have nulls in json, empty cells in csv, a line in html, and are left out elsewhere; json
    says in `left_out` why nobody had to talk about one. A step is one line without control characters; in csv, one that
    a spreadsheet would compute begins with an apostrophe.
    """
    if kind not in FORMATS:
        raise ValueError(f"the format is {kind!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[kind]([replace(f, step=one_line(f.step)) for f in found])


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


def _json(found: Sequence[FoundStep]) -> str:
    names = ("index", "step", "start", "stop", "confidence")
    segments = [
        {name: getattr(f, name) for name in names} | ({"left_out": f.left_out} if f.left_out else {}) for f in found
    ]
    return json.dumps({"segments": segments}, indent=1, ensure_ascii=False) + "\n"


def _csv(found: Sequence[FoundStep]) -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["index", "step", "start", "stop", "confidence"])
    table.writerows([f.index, cell(f.step), f.start, f.stop, f.confidence] for f in found)
    return out.getvalue()


def _placed(found: Sequence[FoundStep]) -> list[tuple[FoundStep, float, float]]:
    return [(f, f.start, f.stop) for f in found if f.start is not None and f.stop is not None]


def _srt(found: Sequence[FoundStep]) -> str:
    return "".join(
        f"{n}\n{timestamp(start, ',')} --> {timestamp(stop, ',')}\n{f.step}\n\n"
        for n, (f, start, stop) in enumerate(_placed(found), 1)
    )


def _vtt(found: Sequence[FoundStep]) -> str:
    times: Counter[int] = Counter()
    cues = []
    for f, start, stop in _placed(found):
        times[f.index] += 1
        name = f"{f.index + 1}" + (f".{times[f.index]}" if times[f.index] > 1 else "")  # cues have names of their own
        cues.append(
            f"{name}\n{timestamp(start, '.')} --> {timestamp(stop, '.')}\n{html.escape(f.step, quote=False)}\n\n"
        )
    return "WEBVTT\n\n" + "".join(cues)


def _ffmetadata(found: Sequence[FoundStep]) -> str:
    """For `ffmpeg -i talk.mp4 -i chapters.txt -map_metadata 1 -codec copy out.mp4`."""
    special = str.maketrans({c: f"\\{c}" for c in "=;#\\"})
    return ";FFMETADATA1\n" + "".join(
        f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={round(1000 * start)}\nEND={round(1000 * stop)}\n"
        f"title={f.step.translate(special)}\n"
        for f, start, stop in _placed(found)
    )


def _youtube(found: Sequence[FoundStep]) -> str:
    """For a video's description; chapters have to begin at 0:00 there."""
    lines = [f"{clock(start)} {f.step}" for f, start, _ in _placed(found)]
    if lines and not lines[0].startswith("0:00 "):
        lines.insert(0, "0:00 Introduction")
    return "".join(f"{line}\n" for line in lines)


def _html(found: Sequence[FoundStep]) -> str:
    placed = _placed(found)
    end = max((stop for *_, stop in placed), default=1.0) or 1.0
    bars, rows = [], []
    for f in found:
        step = html.escape(f.step)
        if f.start is None or f.stop is None or f.confidence is None:
            rows.append(f'<tr class="none"><td>{f.index + 1}</td><td>{step}</td><td colspan="2">{absence(f)}</td></tr>')
            continue
        left, width = 100 * f.start / end, max(0.4, 100 * (f.stop - f.start) / end)
        when = f"{clock(f.start)}–{clock(f.stop)}"
        bars.append(
            f'<i style="left:{left:.2f}%;width:{width:.2f}%;opacity:{0.35 + 0.65 * f.confidence:.2f}"'
            f' title="{step}, {when}"></i>'
        )
        rows.append(f"<tr><td>{f.index + 1}</td><td>{step}</td><td>{when}</td><td>{f.confidence:.0%}</td></tr>")
    return PAGE.format(bars="".join(bars), rows="\n".join(rows), end=clock(end))


PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Where each step is talked about</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}
.bar {{ position: relative; height: 2rem; background: #8883; border-radius: 4px }}
.bar i {{ position: absolute; top: 0; bottom: 0; background: #0072b2; border-radius: 2px }}
.ends {{ display: flex; justify-content: space-between; font-size: .8rem; opacity: .7 }}
table {{ border-collapse: collapse; width: 100%; margin-top: 1rem }}
td, th {{ text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8884 }}
.none {{ opacity: .6 }}
</style>
<h1>Where each step is talked about</h1>
<div class="bar">{bars}</div><div class="ends"><span>0:00</span><span>{end}</span></div>
<table><tr><th>#</th><th>step</th><th>time</th><th>confidence</th></tr>
{rows}
</table>
</html>
"""

FORMATS: Final[dict[str, Callable[[Sequence[FoundStep]], str]]] = {
    "json": _json,
    "csv": _csv,
    "srt": _srt,
    "vtt": _vtt,
    "ffmetadata": _ffmetadata,
    "youtube": _youtube,
    "html": _html,
}
"""The formats of chapters, by name."""
