"""Alignments as small pictures in HTML, for notebooks."""

from __future__ import annotations

from html import escape

import numpy as np

from dropdtw.problem.inputs import Array, runs
from dropdtw.results.alignment import Alignment

WIDTH, HEIGHT = 420, 240


def to_html(a: Alignment) -> str:
    """Draw an alignment, X from left to right and Z downwards: matches dark, dropped elements red, z that the
    walk does not come to and missing elements grey.

    A long alignment is drawn as coarsely as the picture has points, so that a notebook stays small.
    """
    K, N = a.shape
    height = max(24, min(HEIGHT, WIDTH * K // N))
    rows, columns = min(K, HEIGHT), min(N, WIDTH)
    sx, sy = WIDTH / columns, height / rows
    cells = np.zeros((rows, columns), bool)
    cells[a.pairs[:, 0] * rows // K, a.pairs[:, 1] * columns // N] = True
    red = [_box(s * sx, 0, (t - s) * sx, height) for s, t in runs(_coarse(a.dropped_x, columns))]
    red += [_box(0, s * sy, WIDTH, (t - s) * sy) for s, t in runs(_coarse(a.dropped_z & a.reached_z, rows))]
    grey = [_box(0, s * sy, WIDTH, (t - s) * sy) for s, t in runs(_coarse(~a.reached_z, rows))]
    grey += [_box(s * sx, 0, (t - s) * sx, height) for s, t in runs(_coarse(a.missing_x, columns))]
    dark = [_box(s * sx, i * sy, (t - s) * sx, sy) for i, row in enumerate(cells) for s, t in runs(row)]
    passed = f'<g fill="#999" opacity="0.3">{"".join(grey)}</g>' if grey else ""
    return (
        f"<div><div>{escape(repr(a)[1:-1])}</div>"
        f'<svg width="{WIDTH}" height="{height}" role="img" aria-label="alignment" '
        'style="background:#f4f4f4;border:1px solid #999">'
        f'<g fill="#d55e00" opacity="0.25">{"".join(red)}</g>{passed}<g fill="#0b3c5d">{"".join(dark)}</g></svg></div>'
    )


def _box(x: float, y: float, width: float, height: float) -> str:
    return f'<rect x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}"/>'


def _coarse(dropped: Array, n: int) -> Array:
    """Whether at least half of each of n stretches is dropped."""
    stretch = np.arange(len(dropped)) * n // len(dropped)
    return np.asarray(2 * np.bincount(stretch, weights=dropped, minlength=n) >= np.bincount(stretch, minlength=n))
