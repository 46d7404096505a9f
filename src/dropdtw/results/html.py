"""Alignments as small pictures in HTML, for notebooks."""

from __future__ import annotations

from html import escape

import numpy as np

from dropdtw.palette import DROPPED, MATCHED, UNREACHED
from dropdtw.problem.inputs import Array, runs
from dropdtw.results.alignment import Alignment

WIDTH, HEIGHT = 420, 240


def to_html(a: Alignment) -> str:
    """Draw an alignment with X from left to right and Z from top to bottom.

    Matches are blue, dropped elements orange. Alternatives that were not taken are gray, missing elements light gray.

    The page cannot know whether a notebook is in dark mode, so the picture has no background, and text and frame use
    the notebook's text color. Long alignments are drawn at the resolution of the picture to keep notebooks small.
    """
    K, N = a.shape
    height = max(24, min(HEIGHT, max(WIDTH * K // N, 10 * K)))
    rows, columns = min(K, HEIGHT), min(N, WIDTH)
    sx, sy = WIDTH / columns, height / rows
    cells = np.zeros((rows, columns), bool)
    cells[a.pairs[:, 0] * rows // K, a.pairs[:, 1] * columns // N] = True
    dropped = [_box(s * sx, 0, (t - s) * sx, height) for s, t in runs(_coarse(a.dropped_x, columns))]
    dropped += [_box(0, s * sy, WIDTH, (t - s) * sy) for s, t in runs(_coarse(a.dropped_z & a.reached_z, rows))]
    other = ~a.reached_z & ~a.missing_z
    not_taken = [_box(0, s * sy, WIDTH, (t - s) * sy) for s, t in runs(_coarse(other, rows))]
    missing = [_box(0, s * sy, WIDTH, (t - s) * sy) for s, t in runs(_coarse(a.missing_z, rows))]
    missing += [_box(s * sx, 0, (t - s) * sx, height) for s, t in runs(_coarse(a.missing_x, columns))]
    matched = [_box(s * sx, i * sy, (t - s) * sx, sy) for i, row in enumerate(cells) for s, t in runs(row)]
    layers = [
        ("dropped", DROPPED, 0.4, dropped),
        ("not taken", UNREACHED, 0.4, not_taken),
        ("missing", UNREACHED, 0.2, missing),
        ("matched", MATCHED, 1, matched),
    ]
    drawn = [layer for layer in layers if layer[3]]
    picture = "".join(f'<g fill="{color}" opacity="{solid}">{"".join(b)}</g>' for _, color, solid, b in drawn)
    names = "".join(_entry(name, color, solid) for name, color, solid, _ in reversed(drawn))
    return (
        f'<div style="color:inherit"><div>{escape(repr(a)[1:-1])}</div>'
        f'<svg width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="alignment: X from left to right, Z from top to bottom" '
        'style="display:block;max-width:100%;border:1px solid currentColor">'
        f'<rect width="{WIDTH}" height="{height}" fill="currentColor" opacity="0.06"/>{picture}</svg>'
        f'<div style="font-size:smaller">x → z ↓{names}</div></div>'
    )


def _entry(name: str, color: str, solid: float) -> str:
    square = f"display:inline-block;width:.8em;height:.8em;margin:0 .4em 0 1.2em;background:{color};opacity:{solid}"
    return f'<span style="white-space:nowrap"><span style="{square}"></span>{name}</span>'


def _box(x: float, y: float, width: float, height: float) -> str:
    return f'<rect x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}"/>'


def _coarse(dropped: Array, n: int) -> Array:
    """Whether at least half of each of n stretches is dropped."""
    stretch = np.arange(len(dropped)) * n // len(dropped)
    return np.asarray(2 * np.bincount(stretch, weights=dropped, minlength=n) >= np.bincount(stretch, minlength=n))
