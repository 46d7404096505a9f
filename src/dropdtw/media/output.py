"""Write edit lists in `FORMATS`: for programs, editors and browsers, or as a table for a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dropdtw.media import timeline
from dropdtw.media.edits import NAMES, OTHER_SPEED, Edits, clock, span
from dropdtw.media.page import page
from dropdtw.media.timeline import Recording


class Setting(NamedTuple):
    """Details that only some formats need.

    recordings : A and B, as a timeline refers to them.
    timed : whether positions are seconds.   unit : what they count otherwise, for example "words".
    quotes : for texts, the first words of each row.
    """

    recordings: tuple[Recording, Recording] = (Recording("A"), Recording("B"))
    timed: bool = True
    unit: str = ""
    quotes: Sequence[str] = ()


def write_edits(edits: Edits, kind: str, setting: Setting | None = None) -> str:
    """An edit list as the content of a file.

    kind : the format, one of `FORMATS`: "json", "csv", "audacity", "ffmpeg", "edl", "otio", "fcpxml" or "html".
    setting : details that only some formats need; None for the defaults.

    Returns the content as a string. Raises ValueError if `kind` is unknown, or if "ffmpeg" or "edl" would cut out
    everything.
    """
    if kind not in FORMATS:
        raise ValueError(f"the format is {kind!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[kind](edits, setting or Setting())


def _json(edits: Edits, setting: Setting) -> str:
    return edits.to_json() + "\n"


def _csv(edits: Edits, setting: Setting) -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["kind", "a_start", "a_stop", "b_start", "b_stop", "confidence", "speed"])
    for row in edits.to_dict()["segments"]:
        a, b = row["a"] or ("", ""), row["b"] or ("", "")
        table.writerow([row["kind"], *a, *b, row["confidence"], row.get("speed", "")])
    return out.getvalue()


def _audacity(edits: Edits, setting: Setting) -> str:
    """Labels for B: shared passages, and passages that only B has. A point label marks where A has an extra passage."""
    lines, at = [], 0.0
    for s in edits.segments:
        if s.b is None:
            lines.append((at, at, f"only A: {span(s.a or (0, 0))}"))
            continue
        lines.append((*s.b, "only B" if s.a is None else f"same: A {span(s.a)}"))
        at = s.b[1]
    return "".join(f"{start:.6f}\t{stop:.6f}\t{label}\n" for start, stop, label in lines)


def _ffmpeg(edits: Edits, setting: Setting) -> str:
    """A filter that keeps what both have: `ffmpeg -i B -filter_complex "$(cat FILE)" -map '[a]' out.mp3`."""
    side = timeline.to_cut(edits)
    video = setting.recordings[side].rate is not None
    parts, labels = [], []
    spans = timeline.kept(edits, side)
    for n, (start, stop) in enumerate(spans):
        until = "" if stop >= edits.durations[side] else f":end={stop:.3f}"
        if video:
            parts.append(f"[0:v]trim=start={start:.3f}{until},setpts=PTS-STARTPTS[v{n}]")
            labels.append(f"[v{n}]")
        parts.append(f"[0:a]atrim=start={start:.3f}{until},asetpts=PTS-STARTPTS[a{n}]")
        labels.append(f"[a{n}]")
    ends = "[v][a]" if video else "[a]"
    parts.append(f"{''.join(labels)}concat=n={len(spans)}:v={int(video)}:a=1{ends}")
    return ";\n".join(parts) + "\n"


def _html(edits: Edits, setting: Setting) -> str:
    a, b = setting.recordings
    return page(edits, (a.name, b.name), timed=setting.timed, unit=setting.unit, quotes=setting.quotes)


FORMATS: Final[dict[str, Callable[[Edits, Setting], str]]] = {
    "json": _json,
    "csv": _csv,
    "audacity": _audacity,
    "ffmpeg": _ffmpeg,
    "edl": lambda edits, setting: timeline.edl(edits, setting.recordings),
    "otio": lambda edits, setting: timeline.otio(edits, setting.recordings),
    "fcpxml": lambda edits, setting: timeline.fcpxml(edits, setting.recordings),
    "html": _html,
}
"""The formats of edit lists, by name."""

ENDS: Final = {f".{kind}": kind for kind in ("json", "csv", "html", "edl", "otio", "fcpxml")} | {".htm": "html"}
"""The formats by file extension."""

CUTTING: Final = ("ffmpeg", "edl")
"""The formats that cut one of the recordings to what both share; `timeline.to_cut` says which."""

TIMELINES: Final = (*CUTTING, "otio", "fcpxml")
"""The formats that refer to recordings."""

TABLE: Final = ("", ">from A", ">to A", ">from B", ">to B", ">lasts", ">confidence")


def table(edits: Edits, *, timed: bool = True, quotes: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
    """Columns and rows for a terminal, with `speed` if speeds were compared. Without times, positions are numbers.

    quotes : the first words of each row, for a column of their own.

    If a note says that speeds differ, times are doubtful, so the confidence is a question mark.
    """
    said = clock if timed else lambda t: f"{t:g}"
    speeds = any(s.speed is not None for s in edits.segments)
    doubtful = any(OTHER_SPEED in note for note in edits.notes)
    rows = []
    for s in edits.segments:
        places = [said(t) for side in (s.a, s.b) for t in side or ()]
        if s.a is None:
            places = ["", "", *places]
        elif s.b is None:
            places = [*places, "", ""]
        row = [NAMES[s.kind], *places, said(s.duration), "?" if doubtful else f"{s.confidence:.0%}"]
        rows.append([*row, "" if s.speed is None else f"{s.speed:.4f}"] if speeds else row)
    for row, words in zip(rows, quotes, strict=bool(quotes)):
        row.append(words)
    return [*TABLE, *([">speed"] if speeds else []), *(["~begins with"] if quotes else [])], rows
