"""Where a recording is silent, to place the borders of sentences exactly."""

from __future__ import annotations

from typing import Final

import numpy as np

from dropdtw.files.progress import Progress, working
from dropdtw.media.sound import RATE, Sound, Source
from dropdtw.problem.inputs import Array

FRAME: Final = RATE // 100
"""Samples per frame: 10 ms."""
QUIET: Final = 0.25
"""Where the limit of silence lies between the loudness of pauses and that of speech, in decibels, from 0 to 1."""
SHORTEST: Final = 0.12
"""Minimum length of a pause in seconds; shorter ones occur within words."""
FLOOR: Final = -80.0
"""Decibels below full scale that count as no sound at all."""


def pauses(recording: Source, *, progress: Progress = None) -> Array:
    """The pauses of a recording, [start, stop) in seconds, (n, 2). Needs `pip install 'dropdtw[media]'`.

    recording : a file with sound, or (samples, rate).

    A pause is at least 0.12 s of sound that is closer to the quietest tenth of the recording than to its loudest.

    >>> import numpy as np
    >>> tone = np.sin(np.arange(8000))
    >>> pauses((np.concatenate([tone, 0 * tone, tone]), 16000)).round(2).tolist()
    [[0.5, 1.0]]
    """
    levels, rest = [], np.empty(0, np.float32)
    with working("listening for pauses", progress):
        for block in Sound(recording, "RECORDING").blocks():
            samples = np.concatenate([rest, block])
            whole = len(samples) // FRAME * FRAME
            power = np.square(samples[:whole].reshape(-1, FRAME)).mean(axis=1)
            levels.append(np.maximum(FLOOR, 10 * np.log10(np.maximum(power, 1e-12))))
            rest = samples[whole:]
    level = np.concatenate(levels) if levels else np.empty(0)
    if not len(level):
        return np.empty((0, 2))
    low, high = np.percentile(level, [10, 90])
    quiet = np.concatenate([[False], level < low + QUIET * (high - low), [False]])
    edges = np.flatnonzero(np.diff(quiet)).reshape(-1, 2) * (FRAME / RATE)
    return np.asarray(edges[edges[:, 1] - edges[:, 0] >= SHORTEST])
