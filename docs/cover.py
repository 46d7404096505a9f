"""Draws the picture at the top of the README and of the site: docs/images/alignment-light.svg and -dark.svg.

`python docs/cover.py` writes both; they are committed, because a README is read where nothing is built.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

import dropdtw

IMAGES = Path(__file__).resolve().parent / "images"
THEMES = {
    "light": {"text": "#24292f", "match": "#0072b2", "drop": "#d55e00"},
    "dark": {"text": "#e6edf3", "match": "#56b4e9", "drop": "#f28e4b"},
}
WIDTH, HEIGHT, LEFT, RIGHT = 760, 300, 20, 20
TOP_Z, TOP_X, TALL = 48, 186, 66
"""Where the curves of Z and X begin, and how high they are."""


def main() -> None:
    """Write the picture, once for each theme."""
    IMAGES.mkdir(exist_ok=True)
    for theme in THEMES:
        (IMAGES / f"alignment-{theme}.svg").write_text(picture(theme), encoding="utf-8")


def signals() -> tuple[np.ndarray, np.ndarray]:
    """A melody, and a performance of it: with an interruption, without one passage, and with applause at the end."""
    t = np.linspace(0, 1, 90)
    melody = np.sin(7 * np.pi * t) * (1 - 0.5 * t) + 0.35 * np.sin(3 * np.pi * t + 1)
    rng = np.random.default_rng(4)
    slower = np.interp(np.linspace(32, 49, 34), np.arange(90), melody)
    noise = [1.1 + 0.35 * np.sin(np.arange(n) * 1.9) + rng.normal(0, 0.18, n) for n in (24, 20)]
    performed = np.concatenate([melody[:32], noise[0], slower, melody[66:], noise[1]])
    return melody, performed + rng.normal(0, 0.02, len(performed))


def picture(theme: str) -> str:
    """The alignment of the two as SVG."""
    colors = THEMES[theme]
    Z, X = signals()
    a = dropdtw.align(Z, X, drop_x=0.12, drop_z=0.12, open_x=0.5, open_z=0.5)
    low, high = min(Z.min(), X.min()), max(Z.max(), X.max())
    step = (WIDTH - LEFT - RIGHT) / len(X)
    indent = (len(X) - len(Z)) * step / 2
    z = _points(Z, LEFT + indent, step, TOP_Z, low, high)
    x = _points(X, LEFT, step, TOP_X, low, high)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, -apple-system, \'Segoe UI\', sans-serif" font-size="19">',
        "<title>A melody, and a performance of it with an interruption, applause and a passage left out</title>",
        *_bands(a.dropped_z, z, step, TOP_Z, colors["drop"], ["not played"], TOP_Z - 14),
        *_bands(a.dropped_x, x, step, TOP_X, colors["drop"], ["interruption", "applause"], HEIGHT - 12),
        f'<g stroke="{colors["match"]}" stroke-width="1" stroke-opacity="0.5">',
        *(_line(z[i], x[j]) for i, j in a.pairs[::2].tolist()),
        "</g>",
        *_curve(z, a.dropped_z, colors),
        *_curve(x, a.dropped_x, colors),
        _text(LEFT, 24, "melody", colors["text"], ' font-weight="600"'),
        _text(LEFT, HEIGHT - 12, "performance", colors["text"], ' font-weight="600"'),
        _text(WIDTH - RIGHT - 92, 24, "matched", colors["match"], ' text-anchor="end"'),
        _text(WIDTH - RIGHT, 24, "dropped", colors["drop"], ' text-anchor="end"'),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _points(values: np.ndarray, left: float, step: float, top: float, low: float, high: float) -> np.ndarray:
    """Where each element is drawn, (n, 2)."""
    return np.stack([left + (np.arange(len(values)) + 0.5) * step, top + TALL * (high - values) / (high - low)], axis=1)


def _line(start: np.ndarray, stop: np.ndarray) -> str:
    return '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*start, *stop)


def _text(x: float, y: float, words: str, color: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{color}"{more}>{words}</text>'


def _runs(flags: np.ndarray) -> list[tuple[int, int, bool]]:
    """Runs of equal flags: [start, stop), and the flag."""
    cuts = [0, *(np.flatnonzero(np.diff(flags)) + 1).tolist(), len(flags)]
    return [(start, stop, bool(flags[start])) for start, stop in pairwise(cuts)]


def _bands(
    dropped: np.ndarray, points: np.ndarray, step: float, top: float, color: str, names: list[str], line: float
) -> list[str]:
    """A pale ground behind each run of dropped elements, with its name."""
    runs = [(start, stop) for start, stop, lost in _runs(dropped) if lost]
    drawn = []
    for name, (start, stop) in zip(names, runs, strict=True):
        left, wide = points[start, 0] - step / 2, (stop - start) * step
        drawn.append(
            f'<rect x="{left:.1f}" y="{top - 8}" width="{wide:.1f}" height="{TALL + 16}" rx="4" fill="{color}" '
            f'fill-opacity="0.14"/>'
        )
        drawn.append(_text(round(left + wide / 2, 1), line, name, color, ' text-anchor="middle"'))
    return drawn


def _curve(points: np.ndarray, dropped: np.ndarray, colors: dict[str, str]) -> list[str]:
    """The curve in pieces: blue where it is matched, orange where it is dropped."""
    return [
        '<polyline fill="none" stroke-width="2.5" stroke-linejoin="round" stroke="{}" points="{}"/>'.format(
            colors["drop" if lost else "match"],
            " ".join(f"{x:.1f},{y:.1f}" for x, y in points[start:stop]),
        )
        for start, stop, lost in _runs(dropped)
    ]


if __name__ == "__main__":
    sys.exit(main())
