"""Draw an edit list as a web page: a strip per recording, ribbons between shared passages, the rest in orange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dropdtw.files.sanitize import one_line
from dropdtw.files.templates import rendered
from dropdtw.media.edits import NAMES, NOTHING, UNCOMPARED, Edits, Span, clock

WIDTH, HEIGHT, LEFT, RIGHT = 1000, 220, 34, 26
STRIP = 34
TOP, BOTTOM = 8, 146
TICKS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Possible distances between two tick marks, in seconds."""


def page(
    edits: Edits, names: tuple[str, str], *, timed: bool = True, unit: str = "", quotes: Sequence[str] = ()
) -> str:
    """The whole page, in one file without scripts. Without times, positions are plain numbers, of this unit.

    quotes : the first words of each row, for a column of their own.
    """
    said_at = clock if timed else _plain
    alone = [sum(s.duration for s in rows) for rows in (edits.only_a, edits.only_b)]
    shared = sum(s.duration for s in edits.same)
    lengths = [said_at(round(length)).removesuffix(".000") for length in (shared, *alone)]
    said = f"{(NOTHING if edits.segments else UNCOMPARED).capitalize()}."
    if edits.same:
        said = f"{lengths[0]}{' ' * bool(unit)}{unit} in common; only in A {lengths[1]}, only in B {lengths[2]}."
    heads, rows = _table(edits, said_at, unit, [one_line(words) for words in quotes])
    return rendered(
        __file__,
        names=[one_line(name) for name in names],
        said=said,
        notes=[one_line(note) for note in edits.notes if note != NOTHING],
        size=(WIDTH, HEIGHT),
        strip=STRIP,
        **_picture(edits, said_at),
        key=_key(edits),
        heads=heads,
        rows=rows,
    )


def _picture(edits: Edits, said: Callable[[float], str]) -> dict[str, Any]:
    """The parts of the picture: bars of the strips, ribbons between them, tick marks."""
    longest = max(*edits.durations, 1e-9)

    def at(t: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * t / longest

    def bar(kind: str, of: Span, y: int, title: str) -> dict[str, Any]:
        left, right = at(of[0]), at(of[1])
        return {"kind": kind, "x": f"{left:.2f}", "y": y, "width": f"{max(0.8, right - left):.2f}", "title": title}

    bars = [bar("rest", (0, length), y, "") for y, length in zip((TOP, BOTTOM), edits.durations, strict=True)]
    ribbons = []
    for s in edits.segments:
        sure = f"{s.confidence:.0%} sure"
        if s.a is not None and s.b is not None:
            title = f"same: A {_span(s.a, said)}, B {_span(s.b, said)}, {sure}"
            corners = [(at(s.a[0]), TOP + STRIP), (at(s.a[1]), TOP + STRIP), (at(s.b[1]), BOTTOM), (at(s.b[0]), BOTTOM)]
            ribbons.append({"points": " ".join(f"{x:.2f},{y}" for x, y in corners), "title": title})
            bars += [bar("same", s.a, TOP, title), bar("same", s.b, BOTTOM, title)]
        for name, of, y in (("A", s.a, TOP), ("B", s.b, BOTTOM)):
            if of is not None and s.kind != "same":
                bars.append(bar("only", of, y, f"only {name}: {_span(of, said)}, {sure}"))
    step = next((t for t in TICKS if longest / t <= 10), TICKS[-1] * int(1 + longest / 10 / TICKS[-1]))
    ticks = [(f"{at(k * step):.2f}", said(k * step).removesuffix(".000")) for k in range(int(longest / step) + 1)]
    places = [("A", TOP + STRIP - 11), ("B", BOTTOM + STRIP - 11)]
    return {"bars": bars, "ribbons": ribbons, "ticks": ticks, "foot": BOTTOM + STRIP, "places": places}


def _key(edits: Edits) -> list[tuple[str, str]]:
    """The colors that occur in the strips, and what they mean."""
    kinds = {"same" if s.kind == "same" else "only" for s in edits.segments}
    found = [("same", "in both, joined by ribbons"), ("only", "only in one of them")]
    listed = [sum(of[1] - of[0] for s in edits.segments if (of := getattr(s, side))) for side in "ab"]
    seen = max(edits.durations) / WIDTH
    bare = any(length - total > seen for length, total in zip(edits.durations, listed, strict=True))
    rest = [("rest", "different, but too short to list" if kinds else "not compared")] if bare else []
    return [entry for entry in found if entry[0] in kinds] + rest


def _span(of: Span, said: Callable[[float], str]) -> str:
    return f"{said(of[0])}–{said(of[1])}"


def _plain(place: float) -> str:
    return f"{place:g}"


def _table(
    edits: Edits, said: Callable[[float], str], unit: str, quotes: Sequence[str]
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The heads of the table, and the color and the cells of each row."""
    speeds = any(s.speed is not None for s in edits.segments)
    rows = []
    for k, s in enumerate(edits.segments):
        places = ["" if of is None else _span(of, said) for of in (s.a, s.b)]
        cells = [NAMES[s.kind], *places, said(s.duration), f"{s.confidence:.0%}"]
        cells += ["" if s.speed is None else f"{s.speed:.4f}"] if speeds else []
        cells += [quotes[k]] if quotes else []
        rows.append(("same" if s.kind == "same" else "only", cells))
    heads = [f"{unit} in A", f"{unit} in B", unit] if unit else ["in A", "in B", "lasts"]
    more = ["speed"] * speeds + ["begins with"] * bool(quotes)
    return ["", *heads, "confidence", *more], rows
