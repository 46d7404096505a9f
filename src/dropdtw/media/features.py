"""Features that agree between copies of a recording: standardised mel bands, insensitive to gain and faint noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from dropdtw.media.sound import RATE
from dropdtw.problem.inputs import Array

FINE = 100
"""Fine frames per second; borders are placed on these."""

PER = 10
"""Fine frames per search frame."""

BANDS = 40
"""Mel bands of a fine frame; the search merges neighboring pairs."""

WINDOW, SIZE = 640, 1024
"""Samples in a window, and in its Fourier transform."""

CHUNK = 512
"""Fine frames that are transformed at a time, few enough for a processor's cache."""

LOWEST, HIGHEST = 80.0, 6500.0
"""Hz."""

FLOOR = 0.03
"""Added to the power of a band before the logarithm, as a share of its mean, to hide faint noise."""

QUIET = 0.1
"""Level up to which a frame counts as quiet, between the quietest (0) and the loudest (1)."""

SILENCE = 1e-9
"""Mean power of samples below which a recording is silent (−90 dB of full scale)."""

SAME = 1e-5
"""Length of a unit vector less the center of all below which it is nothing but rounding."""

CONTEXT, SHIFTS = (-8, 0, 8), (-3, 0, 3)
"""Context of a search frame, as offsets in fine frames; and offsets at which A is compared with B, because a cut need
not be a whole number of search frames long."""


@dataclass(frozen=True, eq=False)
class Frames:
    """A recording as two rows of unit vectors.

    search : (n, views × d) the search frames, each at several offsets; one search frame covers `per` fine frames.
    still : (n,) which search frames are silent; matching two of them costs as much as dropping both.
    fine : (m, D) the fine frames for placing borders, `rate` per second.
    quiet : (m,) which fine frames are silent.
    seconds : the duration.
    """

    search: Array
    still: Array
    fine: Array
    quiet: Array
    per: int
    rate: float
    seconds: float
    views: int = 1


class Mel:
    """Power in mel bands, FINE times a second, from blocks of samples."""

    def __init__(self) -> None:
        self._rest = np.zeros((WINDOW - RATE // FINE) // 2, np.float32)  # so that windows are centered on frames
        self._found: list[Array] = []
        self.samples = 0
        self.energy = 0.0

    def add(self, block: Array) -> None:
        """Add the next samples."""
        self.samples += len(block)
        self.energy += float(np.dot(block, block))
        self._rest = np.concatenate([self._rest, block])
        hop = RATE // FINE
        n = (len(self._rest) - WINDOW) // hop + 1
        if n >= CHUNK:
            self._take(n)

    def power(self) -> Array:
        """(m, BANDS), one row for each complete frame of the samples so far."""
        self._rest = np.concatenate([self._rest, np.zeros(WINDOW, np.float32)])
        hop = RATE // FINE
        self._take((len(self._rest) - WINDOW) // hop + 1)
        return np.concatenate(self._found)[: self.samples // hop]

    def _take(self, n: int) -> None:
        hop = RATE // FINE
        windows = np.lib.stride_tricks.sliding_window_view(self._rest, WINDOW)[: n * hop : hop]
        shape = np.hanning(WINDOW).astype(np.float32)
        for start in range(0, n, CHUNK):
            spectrum = np.fft.rfft(windows[start : start + CHUNK] * shape, SIZE)
            self._found.append((spectrum.real**2 + spectrum.imag**2).astype(np.float32) @ _bands())
        self._rest = self._rest[n * hop :].copy()


@cache
def _bands() -> Array:
    """Triangles on the mel scale, (frequencies, BANDS)."""
    f = np.fft.rfftfreq(SIZE, 1 / RATE)
    mel = np.linspace(np.log10(1 + LOWEST / 700), np.log10(1 + HIGHEST / 700), BANDS + 2)
    edges = 700 * (10**mel - 1)
    width = np.diff(edges)
    up, down = (f - edges[:-2, None]) / width[:-1, None], (edges[2:, None] - f) / width[1:, None]
    return np.asarray(np.maximum(0, np.minimum(up, down)).T, np.float32)


def frames_of_sound(blocks: Iterable[Array]) -> Frames | None:
    """The frames of a recording; None if it is silent or too short."""
    mel = Mel()
    for block in blocks:
        mel.add(block)
    seconds = mel.samples / RATE
    power = mel.power()
    if len(power) < PER or mel.energy <= SILENCE * mel.samples:
        return None
    heights = _logs(power)
    level = heights.mean(axis=1)
    fine = _unit(_smooth(heights, 5))
    rough = _smooth(_logs(power[:, 0::2] + power[:, 1::2]), 8)
    rough = _standard(rough)
    n = len(power) // PER
    at = np.arange(n) * PER + PER // 2
    views = []
    for shift in SHIFTS:
        near = [rough[np.clip(at + shift + c, 0, len(rough) - 1)] for c in CONTEXT]
        views.append(_normal(np.concatenate(near, axis=1)))
    search = np.concatenate(views, axis=1)
    return Frames(search, _quiet(level, 30)[at], fine, _quiet(level, 7), PER, FINE, seconds, len(SHIFTS))


def frames_of_rows(rows: Array, rate: float, center: Array | float = 0.0) -> Frames:
    """The frames of any features (n, d): unit vectors less `center`, again as unit vectors; rows of zeros are quiet.

    center : from `center_of` for features with a common offset, whose directions would hardly differ otherwise.
    """
    unit = _normal(np.asarray(rows, np.float32))
    rest = np.where(unit.any(axis=1, keepdims=True), unit - center, 0.0)
    rest[np.linalg.norm(rest, axis=1) < SAME] = 0.0
    unit = _normal(rest)
    quiet = np.asarray(~unit.any(axis=1))
    return Frames(unit, quiet, unit, quiet, 1, rate, len(unit) / rate)


def center_of(*sequences: Array) -> Array:
    """The mean of the unit vectors of all rows, (d,), without rows of zeros."""
    unit = np.concatenate([_normal(np.asarray(rows, np.float32)) for rows in sequences])
    heard = unit[unit.any(axis=1)]
    return np.asarray(heard.mean(axis=0, dtype=np.float64), np.float32) if len(heard) else np.zeros(unit.shape[1])


def _logs(power: Array) -> Array:
    return np.asarray(np.log(power + FLOOR * power.mean(axis=0) + 1e-12), np.float32)


def _quiet(level: Array, width: int) -> Array:
    """Frames whose mean level, over `width` frames, is near that of the quietest."""
    smooth = _smooth(level[:, None], width)[:, 0]
    low, high = np.quantile(smooth, (0.05, 0.95))
    return np.asarray(smooth < low + QUIET * (high - low))


def _smooth(rows: Array, n: int) -> Array:
    """Means over n rows, weighted towards the middle."""
    weights = np.hanning(n + 2)[1:-1].astype(np.float32)
    padded = np.pad(rows, ((n // 2, n - 1 - n // 2), (0, 0)), mode="edge")
    out = np.zeros_like(rows)
    for k, weight in enumerate(weights / weights.sum()):
        out += weight * padded[k : k + len(rows)]
    return out


def _standard(rows: Array) -> Array:
    return np.asarray((rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-6), np.float32)


def _normal(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)


def _unit(rows: Array) -> Array:
    return _normal(_standard(rows))
