"""The clock of a reading: when each heard word is spoken, how long words usually last, and where the pauses are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array
from dropdtw.speech.transcripts import SpokenWord

PAUSE: Final = 1.0
"""Pauses longer than this, in seconds, are no stronger sign of a border."""
BREATH: Final = 0.3
"""Pause, in seconds, that divides extra speech into phrases."""
REACH: Final = 0.8
"""A sentence moves to a pause that is at most this far from its border, in seconds."""
LONG: Final = 1.3
"""Multiple of its usual duration that a word lasts at most; more is silence beside it."""
BRIEF: Final = 0.35
"""A word may always last this long, in seconds."""
FEWEST: Final = 3
"""Minimum number of words of extra speech."""
PACE: Final = 0.075
"""Usual duration of a letter in seconds, if the recording does not say."""


class Clock:
    """When each part of a heard word is spoken, and the usual pace."""

    def __init__(self, words: Sequence[SpokenWord], parts: Sequence[tuple[int, str]], pauses: Array | None) -> None:
        self.pauses = np.empty((0, 2)) if pauses is None else np.asarray(pauses, np.float64).reshape(-1, 2)
        self.words, self.owner = words, np.array([k for k, _ in parts])
        sizes = np.array([len(part) for _, part in parts], np.float64)
        whole = np.bincount(self.owner, sizes, minlength=len(words))
        before = np.cumsum(sizes) - sizes
        before -= before[np.searchsorted(self.owner, self.owner)]
        starts, stops = (np.array([word[n] for word in words], np.float64)[self.owner] for n in (0, 1))
        pace = (stops - starts) / whole[self.owner]
        self.starts, self.stops = starts + pace * before, starts + pace * (before + sizes)
        spoken = pace[pace > 0]
        self.pace = float(np.median(spoken)) if len(spoken) else PACE
        longest = np.maximum(LONG * self.pace * (sizes + 1), BRIEF)
        self.begin = np.maximum(self.starts, self.stops - longest)
        self.end = np.minimum(self.stops, self.starts + longest)

    def at_pauses(self, start: float, stop: float, first: int, last: int) -> tuple[float, float]:
        """The border of a sentence, moved to the longest pauses near by, but not past its first or last heard word."""
        middle = (start + stop) / 2
        begin = self._pause(start - REACH, min(start + REACH, middle))
        end = self._pause(max(stop - REACH, middle), stop + REACH)
        if begin is not None and begin[1] < self.stops[first]:
            start = float(begin[1])
        if end is not None and end[0] > self.starts[last]:
            stop = float(end[0])
        return start, stop

    def _pause(self, low: float, high: float) -> Array | None:
        """The pause that has the longest part between two times; None if there is none."""
        first = int(np.searchsorted(self.pauses[:, 1], low, side="right"))
        last = int(np.searchsorted(self.pauses[:, 0], high))
        here = self.pauses[first:last]
        if not len(here):
            return None
        inside = np.minimum(here[:, 1], high) - np.maximum(here[:, 0], low)
        return np.asarray(here[int(inside.argmax())])

    def usual(self, sizes: Array) -> float:
        """How long words with these numbers of letters usually last."""
        return float(self.pace * sizes.sum())

    def text(self, first: int, last: int) -> str:
        """The heard words from `first` up to `last`."""
        owners = dict.fromkeys(self.owner[first:last].tolist())
        return " ".join(self.words[k].text.strip() for k in owners)

    def phrases(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The heard words from `first` up to `last`, divided at pauses into phrases of at least `FEWEST` words."""
        for k in range(first + FEWEST, last - FEWEST + 1):
            if self.begin[k] - self.end[k - 1] >= BREATH and k - first >= FEWEST:
                yield first, k
                first = k
        yield first, last

    def border(self, before: int, behind: int, missing: Array, needed: Array) -> tuple[float, float]:
        """Where the words before a border end, and those behind it begin.

        before, behind : the heard words that are sure to lie on either side.
        missing, needed : the letters of the words that were not heard, or heard as others, before and behind it.
        """
        between = behind - before - 1
        if not between:
            room = max(0.0, float(self.begin[behind] - self.end[before]))
            wanted = self.usual(missing), self.usual(needed)
            share = min(1.0, room / max(sum(wanted), 1e-9))
            return float(self.end[before]) + share * wanted[0], float(self.begin[behind]) - share * wanted[1]
        if between > len(missing) + len(needed) + 1:  # they are not these words, and lie between
            return self.after(before, missing), self.ahead(behind, needed)
        cuts = np.arange(before, behind)
        stops, starts = self.end[cuts], self.begin[cuts + 1]
        apart = abs(stops - self.end[before] - self.usual(missing)) + abs(
            self.begin[behind] - self.usual(needed) - starts
        )
        cut = int(cuts[np.argmin(apart - (starts - stops))])
        stop, start = float(self.end[cut]), float(self.begin[cut + 1])
        if cut == before:
            stop = max(stop, min(start, stop + self.usual(missing)))
        if cut == behind - 1:
            start = min(start, max(stop, start - self.usual(needed)))
        return stop, start

    def after(self, before: int, missing: Array) -> float:
        """When words end that were not heard, or heard as others, after a heard word."""
        cuts = np.arange(before, min(len(self.end), before + len(missing) + 2))
        stops, starts = self.end[cuts], np.append(self.begin, np.inf)[cuts + 1]
        wanted = float(self.end[before]) + self.usual(missing)
        cut = int(np.argmin(abs(stops - wanted) - np.minimum(starts - stops, PAUSE)))
        return max(float(stops[0]), min(wanted, float(starts[0]))) if cut == 0 else float(stops[cut])

    def ahead(self, behind: int, needed: Array) -> float:
        """When words begin that were not heard, or heard as others, before a heard word."""
        cuts = np.arange(behind, max(-1, behind - len(needed) - 2), -1)
        starts, stops = self.begin[cuts], np.append(0.0, self.end)[cuts]
        wanted = float(self.begin[behind]) - self.usual(needed)
        cut = int(np.argmin(abs(starts - wanted) - np.minimum(starts - stops, PAUSE)))
        return min(float(starts[0]), max(wanted, float(stops[0]))) if cut == 0 else float(starts[cut])
