"""Compute the edit list of two texts in one language, with times (subtitles) or without (transcripts).

Equal words match. The method is two-sided Drop-DTW over words, with opening costs and one-to-one matches. In timed
texts a passage also ends where the offset between the texts changes, because a pause was inserted or removed there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from dropdtw.api import align
from dropdtw.media.edits import NOTHING, OTHER_SPEED, Edits, Segment, Span, check_min, too_short
from dropdtw.problem.inputs import Array
from dropdtw.text.subtitles import Sentence
from dropdtw.text.words import WORD

OPENING: Final = 2.0
"""Extra cost of a run of dropped words; each match saves 1."""
CHANCE: Final = 0.4
"""Rate at which chance passages become rarer, per nat of information in their words; fitted to 136 transcripts."""
BELIEVED: Final = 0.5
"""Minimum confidence of a shared passage; below it, the match counts as chance."""
JUMP: Final = 0.25
"""Minimum change of the offset between the texts, in seconds, that ends a passage."""
DRIFT: Final = 0.002
"""Relative difference above which two speeds count as different."""
RECENT: Final = 200
"""Number of recent pairs whose median is the current offset."""
LONGEST: Final = 100_000
"""Maximum number of words in a text."""
QUOTED: Final = 8
"""Maximum number of words that are quoted from a row."""


@dataclass(frozen=True)
class Words:
    """The words of a text, and where each begins and ends: in seconds, or in words if the text has no times.

    begins_cue : whether a word is the first in its cue. Its time is then exact; other times are interpolated.
    """

    words: tuple[str, ...]
    starts: Array
    stops: Array
    begins_cue: Array
    timed: bool

    @classmethod
    def of_cues(cls, cues: Sequence[Sentence]) -> Words:
        """The words of subtitles. Times within a cue are interpolated by counting letters."""
        found: list[tuple[str, float, float, bool]] = []
        for cue in cues:
            pace = (cue.stop - cue.start) / max(1, len(cue.text))
            told = list(WORD.finditer(cue.text))
            starts = [cue.start, *(cue.start + pace * word.start() for word in told[1:])]
            stops = [*(cue.start + pace * word.end() for word in told[:-1]), cue.stop]
            found += [(w.group().casefold(), starts[n], stops[n], n == 0) for n, w in enumerate(told)]
        return cls._of(found, timed=True)

    @classmethod
    def of_text(cls, text: str) -> Words:
        """The words of a text without times: the position of a word is its number."""
        found = [(m.group().casefold(), float(n), n + 1.0, True) for n, m in enumerate(WORD.finditer(text))]
        return cls._of(found, timed=False)

    @classmethod
    def _of(cls, found: list[tuple[str, float, float, bool]], *, timed: bool) -> Words:
        if not found:
            raise ValueError("the text has no words; give at least one")
        if len(found) > LONGEST:
            raise ValueError(f"the text has {len(found):,} words; give at most {LONGEST:,}, or split it into parts")
        words, starts, stops, begins = zip(*found, strict=True)
        return cls(tuple(words), np.array(starts), np.array(stops), np.array(begins), timed)

    def quote(self, within: Span) -> str:
        """The first words of a passage.

        >>> Words.of_text("Boil the water, then pour it on the tea leaves and wait.").quote((1.0, 12.0))
        'the water then pour it on the tea …'
        """
        middle = (self.starts + self.stops) / 2
        inside = np.flatnonzero((middle >= within[0]) & (middle < within[1]))
        return " ".join(self.words[k] for k in inside[:QUOTED]) + " …" * (len(inside) > QUOTED)

    @property
    def duration(self) -> float:
        """Where the last word ends."""
        return float(self.stops.max())

    def __len__(self) -> int:
        return len(self.words)


def diff_words(a: Words, b: Words, *, min: float = 1.0, speed: bool = False) -> Edits:
    """Find which passages two texts share, and which only one of them has.

    a, b : the words of the texts, from `Words.of_cues` or `Words.of_text`.
    min : minimum length of a row, in seconds, or in words if the texts have no times.
    speed : whether one text may run faster than the other, at a constant ratio.

    Returns the `Edits`. Raises ValueError if only one of the texts has times, or if `min` is invalid.

    >>> from dropdtw.media.words import Words, diff_words
    >>> before, after = "now we boil some water and wait until the kettle sings", "then it goes over fresh green tea"
    >>> a, b = Words.of_text(f"{before} {after}"), Words.of_text(f"{before} here is our sponsor {after}")
    >>> [(s.kind, s.a, s.b) for s in diff_words(a, b).segments][1]
    ('only_b', None, (11.0, 15.0))
    """
    check_min(min)
    if a.timed != b.timed:
        raise ValueError("one text has times and the other has none; use Words.of_text for both")
    if (note := too_short((a.duration, b.duration), min)) is not None:
        return Edits.uncompared((a.duration, b.duration), [note])
    pairs = _pairs(a, b)
    slope, known = _slope(a, b, pairs) if a.timed else (1.0, True)
    notes = []
    if abs(slope - 1) > DRIFT and not speed:
        notes.append(f"the second text seems to run at {1 / slope:.4f} times the speed of the first; {OTHER_SPEED}")
    slope = slope if speed else 1.0
    pieces = []
    for piece in _pieces(a, b, pairs, min, slope):
        sure = _confidence(a, b, pairs[piece.first : piece.last])
        if sure >= BELIEVED and a.stops[pairs[piece.last - 1, 0]] - a.starts[pairs[piece.first, 0]] >= min:
            pieces.append((piece, sure))
    rows = _rows(a, b, pairs, [piece for piece, _ in pieces], slope)
    if not rows:
        notes.append(NOTHING)
    elif speed and not known:
        notes.append(
            "the speeds could not be compared, because too few cues of the two begin with the same word; equal speeds "
            "are assumed"
        )
    same = [
        Segment("same", *spans, sure, 1 / slope if speed else None)
        for spans, (_, sure) in zip(rows, pieces, strict=True)
    ]
    ends = [max(d, *(s[1] for s in spans)) if spans else d for d, spans in (
        (a.duration, [row[0] for row in rows]), (b.duration, [row[1] for row in rows]))]  # fmt: skip
    return Edits.of_same(same, (ends[0], ends[1]), min=min, notes=notes)


def _pairs(a: Words, b: Words) -> Array:
    """The pairs of matching words, as indices, (n, 2)."""
    known = {word: float(1000 * k) for k, word in enumerate(dict.fromkeys((*a.words, *b.words)))}
    Z, X = (
        np.array([known[word] for word in side.words]) for side in (a, b)
    )  # different words are at least 1000 apart
    found = align(
        Z, X, 0.5, 0.5, match="euclidean", one_to_many=False, many_to_one=False, open_x=OPENING, open_z=OPENING
    )
    return found.pairs


class _Piece(NamedTuple):
    """Consecutive pairs with a constant time offset."""

    first: int
    last: int
    shift: float


def _pieces(a: Words, b: Words, pairs: Array, min: float, slope: float) -> Iterator[_Piece]:
    """Split the pairs where dropped words last `min` or more, and where the time offset between the texts changes."""
    if not len(pairs):
        return
    missing_a = [_dropped(a, i + 1, k) for i, k in zip(pairs[:-1, 0], pairs[1:, 0], strict=True)]
    missing_b = [_dropped(b, j + 1, k) for j, k in zip(pairs[:-1, 1], pairs[1:, 1], strict=True)]
    cuts = [k + 1 for k, missing in enumerate(zip(missing_a, missing_b, strict=True)) if max(missing) >= min]
    for first, last in zip([0, *cuts], [*cuts, len(pairs)], strict=True):
        if not a.timed:
            yield _Piece(first, last, float(b.starts[pairs[first, 1]] - a.starts[pairs[first, 0]]))
            continue
        shifts, exact = _shifts(a, b, pairs[first:last], slope)
        inner = _jumps(shifts, exact)
        for start, stop in zip([0, *inner], [*inner, last - first], strict=True):
            told = shifts[start:stop][exact[start:stop]]
            shift = float(np.median(told if len(told) else shifts[start:stop]))
            yield _Piece(first + start, first + stop, shift)


def _dropped(words: Words, first: int, last: int) -> float:
    """The duration of the words from `first` up to `last`."""
    return float(words.stops[last - 1] - words.starts[first]) if last > first else 0.0


def _shifts(a: Words, b: Words, pairs: Array, slope: float) -> tuple[Array, Array]:
    """The time offset between the texts at each pair, and whether it is exact: both words begin a cue."""
    exact = a.begins_cue[pairs[:, 0]] & b.begins_cue[pairs[:, 1]]
    return np.asarray(b.starts[pairs[:, 1]] - slope * a.starts[pairs[:, 0]]), np.asarray(exact)


def _jumps(shifts: Array, exact: Array) -> list[int]:
    """Where the time offset changes for good: two exact times in a row, or five estimated ones, agree on a new one."""
    at = np.flatnonzero(exact)
    wanted, reach = 2, JUMP
    if len(at) < len(shifts) / 40 or len(at) < 2:  # cues are split differently: fall back on estimated times
        at, wanted, reach = np.arange(len(shifts)), 5, 4 * JUMP
    found: list[int] = []
    begin = 0
    for k in range(len(at)):
        before = at[max(begin, k - RECENT) : k]
        current = np.median(shifts[before]) if len(before) else shifts[at[k]]
        ahead = shifts[at[k : k + wanted]]
        if len(ahead) == wanted and np.all(np.abs(ahead - current) > reach) and np.ptp(ahead) < reach:
            found.append(int(at[k]))
            begin = k
    return found


def _slope(a: Words, b: Words, pairs: Array) -> tuple[float, bool]:
    """Seconds of B per second of A, as a median over distant pairs, and whether it is known.

    1 if the ratios of distant pairs scatter, or differ from those of close ones: then cuts and breaks explain them, or,
    if times are estimated, perhaps nothing but their errors.
    """
    if len(pairs) < 20:
        return 1.0, False
    exact = a.begins_cue[pairs[:, 0]] & b.begins_cue[pairs[:, 1]]
    told = pairs[exact] if exact.sum() >= 20 else pairs
    s, t = a.starts[told[:, 0]], b.starts[told[:, 1]]
    apart = len(told) // 4
    far = _ratios(s, t, apart)
    slope = float(np.median(far))
    steady = np.mean(np.abs(far - slope) < DRIFT) > 0.5  # irregular breaks scatter the ratios
    near = np.median(_ratios(s, t, max(5, apart // 10)))  # most pairs this close have no break between them
    if steady and abs(near - slope) < 5 * DRIFT:
        return slope, True
    return 1.0, told is not pairs


def _ratios(s: Array, t: Array, apart: int) -> Array:
    """Seconds of t per second of s, between pairs that are `apart` positions apart."""
    run = s[apart:] - s[:-apart]
    return np.asarray((t[apart:] - t[:-apart])[run > 0] / run[run > 0])


def _confidence(a: Words, b: Words, pairs: Array) -> float:
    """The probability that two unrelated texts of these lengths share no passage with that much information.

    The information of a word is −log of its frequency; the number of chance passages with S nats is about
    K N exp(−0.4 S).
    """
    counts = [Counter(side.words) for side in (a, b)]
    total = 0.5 * np.log(len(a) * len(b))
    told = sum(total - 0.5 * np.log(counts[0][a.words[i]] * counts[1][a.words[i]]) for i in pairs[:, 0])
    return float(np.exp(-len(a) * len(b) * np.exp(-CHANCE * told)))


def _rows(a: Words, b: Words, pairs: Array, pieces: Sequence[_Piece], slope: float) -> list[tuple[Span, Span]]:
    """The spans of each piece in both texts; common silence between two pieces belongs to the first."""
    spans: list[list[float]] = []
    for piece in pieces:
        (i, j), (k, m) = pairs[piece.first], pairs[piece.last - 1]
        start, stop = float(a.starts[i]), float(a.stops[k])
        if a.timed:
            spans.append([start, stop, slope * start + piece.shift, slope * stop + piece.shift])
        else:
            spans.append([start, stop, float(b.starts[j]), float(b.stops[m])])
    if a.timed and spans:
        _share_silence(a, b, pairs, pieces, spans, slope)
    return [((s[0], s[1]), (s[2], s[3])) for s in spans]


def _share_silence(
    a: Words, b: Words, pairs: Array, pieces: Sequence[_Piece], spans: list[list[float]], slope: float
) -> None:
    """Extend passages over the silence between them, as far as both texts have it, and before the first one."""
    if pairs[pieces[0].first].max() == 0:
        lead = max(0.0, min(spans[0][0], spans[0][2] / slope))
        spans[0][0], spans[0][2] = spans[0][0] - lead, spans[0][2] - slope * lead
    for (piece, span), (follower, behind) in zip(
        zip(pieces, spans, strict=True), zip(pieces[1:], spans[1:], strict=True), strict=False
    ):
        silent_a = pairs[piece.last - 1, 0] + 1 == pairs[follower.first, 0]
        silent_b = pairs[piece.last - 1, 1] + 1 == pairs[follower.first, 1]
        gap_a, gap_b = behind[0] - span[1], (behind[2] - span[3]) / slope
        shared = min(gap_a, gap_b)
        if (silent_a and silent_b) or shared < 0:  # negative: estimated times overlap
            span[1], span[3] = span[1] + shared, span[3] + slope * shared
    if spans[0][2] < 0:  # an estimated time lies before the beginning of B
        spans[0][0], spans[0][2] = spans[0][0] - spans[0][2] / slope, 0.0
