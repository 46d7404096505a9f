"""When each event of a score is expected, after a first alignment."""

from __future__ import annotations

from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.music.notes import Notes

GRACE_SECONDS: Final = 0.1
"""How long before the next event a grace note is expected that was not heard."""


def expected(notes: Notes, pairs: Array, reach: int) -> Array:
    """The time of each event in seconds: the median of when it was heard, and of lines through its neighbors.

    One line goes through the `reach` events before it, one through those after it. A wrong match moves only the time
    heard, so the lines outvote it. After a pause, the event and the line of those after it outvote the line before.
    Trills and grace notes say little about tempo and are left out. A grace note is expected when it was heard, but
    between its neighbors.
    """
    event, time = notes.event[pairs[:, 0]], notes.time[pairs[:, 1]]
    heard = _medians(event, time, len(notes.onset))
    plain = ~notes.grace[event] & ~notes.trill[pairs[:, 0]]
    steady = _medians(event[plain], time[plain], len(notes.onset))
    known = np.flatnonzero(np.isfinite(steady))
    if not len(known):
        known, steady = np.flatnonzero(np.isfinite(heard)), heard
    x, y = notes.onset[known], steady[known]
    main = np.flatnonzero(~notes.grace)
    found = np.interp(notes.onset, x, y)
    if len(main):
        c = notes.onset[main]
        steps = np.arange(reach)
        before = _line(x, y, c, np.searchsorted(x, c)[:, None] - 1 - steps, found[main])
        after = _line(x, y, c, np.searchsorted(x, c, side="right")[:, None] + steps, found[main])
        found[main] = np.median([before, found[main], after], axis=0)
        _place_graces(notes, heard, found, main)
    return found


def _medians(event: Array, time: Array, count: int) -> Array:
    """The median time of each event, NaN for events without one."""
    order = np.lexsort((time, event))
    event, time = event[order], time[order]
    some, first, n = np.unique(event, return_index=True, return_counts=True)
    found = np.full(count, np.nan)
    found[some] = (time[first + (n - 1) // 2] + time[first + n // 2]) / 2
    return found


def _line(x: Array, y: Array, c: Array, rows: Array, otherwise: Array) -> Array:
    """Lines through the points in `rows` (c, points), nearer ones with more weight, at c; `otherwise` without two."""
    far = np.arange(rows.shape[1]) / rows.shape[1]
    W = (1 - far**3) ** 3 * ((rows >= 0) & (rows < len(x)))
    rows = rows.clip(0, len(x) - 1)
    X, Y = x[rows] - c[:, None], y[rows]
    total, sx, sy = W.sum(axis=1), (W * X).sum(axis=1), (W * Y).sum(axis=1)
    spread = total * (W * X * X).sum(axis=1) - sx * sx
    good = spread > 1e-9
    slope = (total * (W * X * Y).sum(axis=1) - sx * sy) / np.where(good, spread, 1.0)
    return np.where(good, (sy - slope * sx) / np.where(good, total, 1.0), otherwise)


def _place_graces(notes: Notes, heard: Array, found: Array, main: Array) -> None:
    """Set the times of grace notes in place."""
    graces = np.flatnonzero(notes.grace)
    at = np.searchsorted(main, graces)
    after, before = main[at.clip(0, len(main) - 1)], main[(at - 1).clip(0, len(main) - 1)]
    early = GRACE_SECONDS * np.maximum(after - graces, 0)
    low, high = np.minimum(found[before], found[after]), np.maximum(found[before], found[after])
    found[graces] = np.where(np.isfinite(heard[graces]), heard[graces].clip(low, high), found[after] - early)
