"""`sync`: when each sentence and each word of a text is read aloud, what is left out, and what is added.

The words of the text are Z, those that a recognizer heard are X. The table is Needleman–Wunsch with opening costs, and
costs are log odds in nats: −log(how much more likely the match makes the word that was heard). So a rare word is more
evidence than a frequent one, and a posterior at γ = 1 is a probability under this model.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from dropdtw import executors
from dropdtw.aligner import Aligner
from dropdtw.costs import Match
from dropdtw.files.progress import Progress, Report, reporter
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.speech.clock import FEWEST, Clock
from dropdtw.speech.sounds import Sounds, parts_of
from dropdtw.speech.transcripts import SpokenWord
from dropdtw.text.subtitles import Sentence, sentences

DROP: Final = 0.5
"""Cost of a word that is not read, or that is not in the text, in nats."""
OPENING: Final = 3.0
"""Extra cost of a run of such words."""
TEMPERATURE: Final = 1.0
"""The γ of the posterior."""
ALIGNER: Final = Aligner(DROP, DROP, open_x=OPENING, open_z=OPENING, method="needleman_wunsch", gamma=TEMPERATURE)
CHANCE: Final = 0.5
"""Rate at which chance passages become rarer, per nat of evidence."""
BELIEVED: Final = 0.5
"""Minimum probability that a passage is no chance match; others are not used."""
APART: Final = 12
"""Number of words without evidence, on both sides together, that end a passage."""
READ: Final = 0.35
"""Minimum share of a sentence, by evidence, that must be matched; less is not read."""
CONFIDENCE: Final = (-1.8, 4.6, 2.1, 1.6, 0.3, -1.7)
"""Weights of a logistic regression for the confidence, a constant and one for each of its features, fitted to simulated
readings of two texts (`benchmarks/sync.py`)."""
STEPS, MARGIN = 300, 100
"""The posterior is computed for stretches of this many steps of the path, with this much context on either side."""
ABSENCE: Final = (2.0, -5.0, 0.0, 0.0, -2.7, 5.1)
"""The same for the confidence that a sentence is not read."""
HALF: Final = 0.15
"""How much a word counts as read that matches one unlike it."""
WITHIN: Final = 14.0
"""What it may cost to read a sentence in one piece, in nats."""
NEAR, REPEATED = 4, 0.6
"""A repeat is this near in sentences, and has at least this share of words in common."""
Range = tuple[int, int]
Span = tuple[float, float]

LONGEST: Final = 200_000
"""Maximum number of words of a text or a transcript."""


@dataclass(frozen=True)
class ReadWord:
    """A word of the text.

    text : as it is written.   start, stop : when it is read, in seconds; None if it is not.
    probability : that it is read there, according to the words around it; 0 if it is not heard.
    """

    text: str
    start: float | None
    stop: float | None
    probability: float


@dataclass(frozen=True)
class ReadSentence:
    """A sentence of the text.

    index : its place in the text, from 0.   paragraph : the number of its paragraph.
    start, stop : when it is read, in seconds; None if it is not.
    confidence : the probability that it is read, and from `start` to `stop`, within 0.3 s; if it is not read, the
        probability that this is true.
    words : its words, in order.
    """

    index: int
    paragraph: int
    text: str
    start: float | None
    stop: float | None
    confidence: float
    words: tuple[ReadWord, ...] = field(repr=False)

    @property
    def read(self) -> bool:
        """Whether it is read."""
        return self.start is not None


@dataclass(frozen=True)
class ExtraSpeech:
    """What is said from `start` to `stop`, but is not in the text.

    after : the sentence before it that is read, from 0; −1 if there is none.
    repeats : the sentence that these words repeat; None if there is none.
    """

    start: float
    stop: float
    text: str
    after: int
    repeats: int | None


@dataclass(frozen=True)
class Reading:
    """A text and a recording of it. Returned by `sync`.

    sentences : all sentences of the text.   extra : what is said besides, in order of time.   duration : where the last
    word that was heard ends.   cost : of the alignment, in nats; below 0 if it is better than none.
    """

    sentences: tuple[ReadSentence, ...]
    extra: tuple[ExtraSpeech, ...]
    duration: float
    cost: float

    @property
    def unread(self) -> tuple[ReadSentence, ...]:
        """The sentences that are not read."""
        return tuple(s for s in self.sentences if not s.read)


def sync(text: str, words: Sequence[SpokenWord], *, pauses: Array | None = None, progress: Progress = None) -> Reading:
    """Find when each sentence and each word of a text is read in a recording.

    text : the text, plain or Markdown.
    words : what a recognizer heard in the recording, from `read_transcript` or `transcribe`.
    pauses : of the recording, (n, 2), from `dropdtw.media.pauses`. With them, sentences begin and end at pauses near
        by: recognizers often add a pause to a word.
    progress : see `dropdtw.pairwise`.

    Words match by sound, so recognition errors, other spellings, and digits for numbers cost little. Sentences may be
    left out, and speech may be added or repeated. A repeated passage is timed where it fits best.

    Returns a `Reading`. Raises ValueError if the text or the recording has no words.

    >>> from dropdtw import speech
    >>> heard = "the night road home good evening"
    >>> words = [speech.SpokenWord(0.4 * k, 0.4 * k + 0.3, word) for k, word in enumerate(heard.split())]
    >>> found = speech.sync("The knight rode home. It rained. Good evening!", words)
    >>> [(s.text, s.start, s.stop) for s in found.sentences]
    [('The knight rode home.', 0.0, 1.5), ('It rained.', None, None), ('Good evening!', 1.6, 2.3)]
    """
    lines = list(sentences_of(text))
    written = [(n, word) for n, line in enumerate(lines) for word in _written(line[1])]
    parts_z = [(k, part) for k, (_, word) in enumerate(written) for part in parts_of(word)]
    parts_x = [(k, part) for k, word in enumerate(words) for part in parts_of(word.text)]
    if not parts_z:
        raise ValueError("the text has no words; give at least one sentence")
    if not parts_x:
        raise ValueError("nothing was heard in the recording: the transcript has no words")
    if max(len(parts_z), len(parts_x)) > LONGEST:
        raise ValueError(
            f"the text has {len(parts_z):,} words and the transcript {len(parts_x):,}; give at most {LONGEST:,}, or "
            "split both into parts"
        )
    sounds = Sounds([part for _, part in parts_z], [part for _, part in parts_x])
    pairs, cost = aligned(sounds, reporter("aligning words", progress))
    line_of = np.array([n for n, _ in written])[[k for k, _ in parts_z]]
    pairs = gathered(sounds, pairs[believed(sounds, pairs)], line_of)
    limits = np.searchsorted(line_of, np.arange(len(lines) + 1)).tolist()
    shares = shares_of(sounds, pairs, limits)
    pairs = settled(sounds, pairs, line_of, shares >= READ)
    sure = probabilities(sounds, pairs)
    return _reading(lines, written, parts_z, sounds, pairs, sure, shares, Clock(words, parts_x, pauses), cost)


def sentences_of(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text, plain or Markdown, each with the number of its paragraph.

    >>> list(sentences_of("# Tea\\n\\nBoil *water*. Wait,\\nthen [pour](a.html)!"))
    [(0, 'Tea'), (1, 'Boil water.'), (1, 'Wait, then pour!')]
    """
    for number, paragraph in enumerate(re.split(r"\n\s*\n", unmarked(text))):
        for sentence in sentences([Sentence(0.0, 0.0, paragraph)]):
            if parts_of(sentence.text):
                yield number, sentence.text


MARKUP: Final = [
    (re.compile(pattern, re.M), by)
    for pattern, by in (
        (r"\r\n?", "\n"),
        (r"\A---\n(?:.*\n)*?---\n", ""),
        (r"^(?:```|~~~).*\n(?:.*\n)*?(?:```|~~~).*$", ""),
        (r"<!--(?:[^-]|-(?!->))*-->|<[a-zA-Z/][^<>]*>", ""),
        (r"!\[[^\[\]]*\]\([^()\s]*\)", ""),
        (r"\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])", r"\1"),
        (r"^[ \t]*#{1,6}[ \t]+(.*?)[ \t#]*$", r"\n\1\n"),
        (r"^[ \t]*(?:[-=*_][ \t]*){3,}$", "\n"),
        (r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+", "\n"),
        (r"^[ \t]*>[ \t]?", ""),
        (r"\*{1,3}|`+|(?<!\w)_{1,3}(?=\w)|(?<=[\w.,!?])_{1,3}(?!\w)", ""),
    )
]
"""What Markdown adds to a text, and what is left of it. List items and headings are paragraphs."""


def unmarked(text: str) -> str:
    """A text without the marks of Markdown."""
    for pattern, by in MARKUP:
        text = pattern.sub(by, text)
    return text


def _written(sentence: str) -> list[str]:
    """The words of a sentence as they are written, with their punctuation."""
    found: list[str] = []
    for word in sentence.split():
        if found and not parts_of(word):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def aligned(sounds: Sounds, report: Report) -> tuple[Array, float]:
    """The pairs of words (L, 2) that the best alignment matches, and its cost. Memory is linear in the words."""
    K, N = len(sounds.z), len(sounds.x)
    wanted, seen = 3 * K * N // 2, 0
    room = np.empty(0, np.float32)

    def cost(Z: Array, X: Array) -> Array:
        """The costs of a strip. It is valid until the next one: new memory for each would take most of the time."""
        nonlocal room, seen
        z, x = Z[:, 0].astype(np.intp), X[:, 0].astype(np.intp)
        if room.size < len(z) * len(x):
            room = np.empty(len(z) * len(x), np.float32)
        out = room[: len(z) * len(x)].reshape(len(z), len(x))
        seen += out.size
        report(min(seen, wanted - 1), wanted)
        return np.take(np.take(sounds.table, x, axis=1), z, axis=0, out=out, mode="clip")

    match = Match("sounds", cost, symmetric=False, least=float(sounds.table.min()))
    Z, X = (codes[:, None].astype(np.float32) for codes in (sounds.z, sounds.x))
    found = executors.trace(Problem.of_checked(ALIGNER.spec, Z, X, match))
    report(wanted, wanted)
    return found.pairs, found.value


def probabilities(sounds: Sounds, pairs: Array) -> Array:
    """The probability of each matched pair, given the path some hundred words away on both sides."""
    found = np.zeros(len(pairs))
    steps = pairs.sum(axis=1) - np.arange(len(pairs))  # steps of the path before each pair: a match is one step
    total = len(sounds.z) + len(sounds.x) - len(pairs)
    for start in range(0, total, STEPS):
        inside = np.flatnonzero((steps >= start) & (steps < start + STEPS))
        if not len(inside):
            continue
        (top, left), (bottom, right) = (
            _place(step, steps, pairs, sounds) for step in (start - MARGIN, start + STEPS + MARGIN)
        )
        costs = sounds.costs(slice(top, bottom), slice(left, right))
        p = ALIGNER.posterior(costs.astype(np.float64)).match
        found[inside] = p[pairs[inside, 0] - top, pairs[inside, 1] - left]
    return found


def _place(step: int, steps: Array, pairs: Array, sounds: Sounds) -> tuple[int, int]:
    """The rows and columns that the path has passed after a number of steps; between matches, rows come first."""
    if step <= 0:
        return 0, 0
    n = int(np.searchsorted(steps, step))  # matches among these steps
    i, j = (0, 0) if n == 0 else (int(pairs[n - 1, 0]) + 1, int(pairs[n - 1, 1]) + 1)
    here = 0 if n == 0 else int(steps[n - 1]) + 1
    last = len(sounds.z) if n == len(pairs) else int(pairs[n, 0])
    down = min(step - here, last - i)
    return i + down, min(len(sounds.x), j + step - here - down)


def believed(sounds: Sounds, pairs: Array) -> Array:
    """Which pairs belong to passages that are no chance matches, (L,).

    The strongest passage comes first. It limits where the others can be, and thus the number of places where they could
    match by chance.
    """
    kept = np.zeros(len(pairs), bool)
    told = -sounds.table[sounds.z[pairs[:, 0]], sounds.x[pairs[:, 1]]].astype(np.float64)
    firm = np.flatnonzero(told > 0)
    if not len(firm):
        return kept
    gaps = np.diff(pairs[firm], axis=0).sum(axis=1) - 2
    passages = [(part[0], part[-1] + 1) for part in np.split(firm, np.flatnonzero(gaps >= APART) + 1)]
    strength = [float(told[first:last].sum()) for first, last in passages]
    corners: list[tuple[int, int, int, int]] = []  # of accepted passages: from row, column, to row, column
    for n in sorted(range(len(passages)), key=lambda n: -strength[n]):
        first, last = passages[n]
        (i, j), (k, m) = pairs[first], pairs[last - 1] + 1
        at = bisect_right(corners, (int(i), int(j), 0, 0))
        top, left = corners[at - 1][2:] if at else (0, 0)
        bottom, right = corners[at][:2] if at < len(corners) else (len(sounds.z), len(sounds.x))
        places = float(bottom - top) * float(right - left)
        if np.exp(-places * np.exp(-CHANCE * strength[n])) >= BELIEVED:
            corners.insert(at, (int(i), int(j), int(k), int(m)))
            kept[first:last] = True
    return kept


def gathered(sounds: Sounds, pairs: Array, line_of: Array) -> Array:
    """The pairs, with each sentence in one piece where that costs little.

    If a sentence is read twice, its beginning in the first reading and its end in the second one match as well as
    either reading. So a sentence that is interrupted by other words is aligned again, with the words before the end of
    the interruption, and with those after its beginning.
    """
    found: list[Array] = []
    at = 0
    ends: list[int] = (np.flatnonzero(np.diff(line_of[pairs[:, 0]])) + 1).tolist() if len(pairs) else []
    for first, last in pairwise([0, *ends, len(pairs)]):
        here = pairs[first:last]
        gaps = np.diff(here[:, 1]) - 1
        if not len(gaps) or gaps.max() < FEWEST:
            continue
        low = int(pairs[first - 1, 1]) + 1 if first else max(0, int(here[0, 1]) - MARGIN)
        high = int(pairs[last, 1]) if last < len(pairs) else min(len(sounds.x), int(here[-1, 1]) + MARGIN)
        row = line_of[here[0, 0]]
        top, bottom = np.searchsorted(line_of, [row, row + 1]).tolist()
        best, moved = _within(sounds, (top, bottom), (low, high), (low, high))
        limit = best + WITHIN
        while len(moved) > 1 and (gaps := np.diff(moved[:, 1]) - 1).max() >= FEWEST:
            wide = np.flatnonzero(gaps >= FEWEST)
            parts = [part for n in wide for part in ((low, int(moved[n + 1, 1])), (int(moved[n, 1]) + 1, high))]
            tried = [_within(sounds, (top, bottom), part, (low, high)) for part in parts]
            best, moved = min(tried, key=lambda each: each[0])
            if best > limit:
                break
        if best <= limit and len(moved):
            found += [pairs[at:first], moved]
            at = last
    return np.concatenate([*found, pairs[at:]])


def shares_of(sounds: Sounds, pairs: Array, limits: Sequence[int]) -> Array:
    """The share of each sentence, by evidence, that is matched. limits : where the sentences begin, and the end."""
    whole = sounds.evidence[sounds.z]
    told = np.zeros(len(whole))
    cost = sounds.table[sounds.z[pairs[:, 0]], sounds.x[pairs[:, 1]]]
    told[pairs[:, 0]] = np.maximum(HALF * whole[pairs[:, 0]], -cost)
    return np.asarray(np.add.reduceat(told, limits[:-1]) / np.add.reduceat(whole, limits[:-1]))


def settled(sounds: Sounds, pairs: Array, line_of: Array, read: Array) -> Array:
    """The pairs of sentences that are read.

    A sentence that is not read may have taken words of the one before or behind it, which gets them back.
    """
    there = read[line_of[pairs[:, 0]]]
    taken, pairs = pairs[~there, 1], pairs[there]
    found: list[Array] = []
    ends = (np.flatnonzero(np.diff(line_of[pairs[:, 0]])) + 1).tolist() if len(pairs) else []
    for first, last in pairwise([0, *ends, len(pairs)]):
        here = pairs[first:last]
        found.append(here)
        if not len(here):
            continue
        row = line_of[here[0, 0]]
        top, bottom = np.searchsorted(line_of, [row, row + 1]).tolist()
        low = max(int(here[0, 1] - (here[0, 0] - top)), int(pairs[first - 1, 1]) + 1 if first else 0)
        after = int(pairs[last, 1]) if last < len(pairs) else len(sounds.x)
        high = min(int(here[-1, 1] + bottom - here[-1, 0]), after)
        if np.diff(np.searchsorted(taken, [low, high]))[0]:
            found[-1] = _within(sounds, (top, bottom), (low, high), (low, high))[1]
    return np.concatenate(found)


def _within(sounds: Sounds, rows: Range, part: Range, all_of: Range) -> tuple[float, Array]:
    """The best alignment of some rows with a part of some columns: the cost with the rest dropped, and the pairs."""
    if part[1] <= part[0]:
        return np.inf, np.empty((0, 2), np.int64)
    a = ALIGNER.solve(sounds.costs(slice(*rows), slice(*part)))
    rest = all_of[1] - all_of[0] - (part[1] - part[0])
    return a.cost + DROP * rest + OPENING * (rest > 0), a.pairs + np.array([rows[0], part[0]])


def _reading(
    lines: Sequence[tuple[int, str]],
    written: Sequence[tuple[int, str]],
    parts: Sequence[tuple[int, str]],
    sounds: Sounds,
    pairs: Array,
    sure: Array,
    shares: Array,
    clock: Clock,
    cost: float,
) -> Reading:
    """The result, from the pairs of parts of words that belong together."""
    owner = np.array([k for k, _ in parts])
    sizes = np.array([len(part) for _, part in parts], np.float64)
    partner, likely = np.full(len(parts), -1), np.zeros(len(parts))
    partner[pairs[:, 0]], likely[pairs[:, 0]] = pairs[:, 1], sure
    firm = np.zeros(len(parts), bool)
    firm[pairs[:, 0]] = sounds.table[sounds.z[pairs[:, 0]], sounds.x[pairs[:, 1]]] < 0
    line_of = np.array([n for n, _ in written])[owner]
    limits = np.searchsorted(line_of, np.arange(len(lines) + 1)).tolist()
    times = list(_borders(limits, firm, partner, sizes, clock, shares >= READ))
    found: list[ReadSentence] = []
    for n, (first, last) in enumerate(pairwise(limits)):
        weight, share = sizes[first:last] / sizes[first:last].sum(), float(shares[n])
        start, stop = times[n] or (None, None)
        edges = (likely[first] * firm[first] + likely[last - 1] * firm[last - 1]) / 2
        near = np.mean([shares[k] for k in (n - 1, n + 1) if 0 <= k < len(shares)] or [1.0])
        features = (share, float(weight @ likely[first:last]), edges, float(near), min(1.0, (last - first) / 10))
        words = _words(written, owner, first, last, partner, likely, clock, times[n])
        sure_of = _confidence(features, read=start is not None)
        found.append(ReadSentence(n, *lines[n], start, stop, sure_of, words))
    used = np.zeros(len(sounds.x), bool)
    used[partner[partner >= 0]] = True
    return Reading(tuple(found), tuple(_extra(found, partner, line_of, used, clock)), float(clock.stops.max()), cost)


def _confidence(features: Sequence[float], *, read: bool) -> float:
    """The probability that a sentence is read, with these times, or that it is not read.

    features : the share of it that is matched, the mean probability of its matches, the same of its first and last
        word, the share of its neighbors that is matched, and its length.
    """
    constant, *weights = CONFIDENCE if read else ABSENCE
    return round(float(1 / (1 + np.exp(-constant - np.dot(weights, features)))), 4)


def _borders(
    limits: Sequence[int], firm: Array, partner: Array, sizes: Array, clock: Clock, read: Array
) -> Iterator[tuple[float, float] | None]:
    """When each sentence begins and ends, None if it is not read.

    Words at its ends that were not heard, or heard as others, get their usual time. Heard words between two sentences
    belong to the one whose missing words fit their time.
    """
    ends = []
    for n, (first, last) in enumerate(pairwise(limits)):
        here = np.flatnonzero(firm[first:last]) + first
        ends.append((int(here[0]), int(here[-1])) if read[n] and len(here) else None)
    for n, end in enumerate(ends):
        if end is None:
            yield None
            continue
        needed, missing = sizes[limits[n] : end[0]], sizes[end[1] + 1 : limits[n + 1]]
        begin, last = int(partner[end[0]]), int(partner[end[1]])
        previous, following = ends[n - 1] if n else None, ends[n + 1] if n + 1 < len(ends) else None
        if previous is None:
            start = clock.ahead(begin, needed)
        else:
            start = clock.border(int(partner[previous[1]]), begin, sizes[previous[1] + 1 : limits[n]], needed)[1]
        if following is None:
            stop = clock.after(last, missing)
        else:
            stop = clock.border(last, int(partner[following[0]]), missing, sizes[limits[n + 1] : following[0]])[0]
        if len(clock.pauses):
            start, stop = clock.at_pauses(start, max(start, stop), begin, last)
        yield round(start, 3), round(max(start, stop), 3)


def _words(
    written: Sequence[tuple[int, str]],
    owner: Array,
    first: int,
    last: int,
    partner: Array,
    likely: Array,
    clock: Clock,
    times: Span | None,
) -> tuple[ReadWord, ...]:
    """The words of a sentence, which lasts from and to these times."""
    found = []
    for word in range(int(owner[first]), int(owner[last - 1]) + 1):
        parts = np.arange(*np.searchsorted(owner, [word, word + 1]))
        heard = partner[parts][partner[parts] >= 0]
        if times is not None and len(heard):
            begin, end = (min(max(float(t), times[0]), times[1]) for t in (clock.begin[heard[0]], clock.end[heard[-1]]))
            found.append(
                ReadWord(written[word][1], round(begin, 3), round(end, 3), round(float(likely[parts].mean()), 4))
            )
        else:
            found.append(ReadWord(written[word][1], None, None, 0.0))
    return tuple(found)


def _extra(
    found: Sequence[ReadSentence], partner: Array, line_of: Array, used: Array, clock: Clock
) -> Iterator[ExtraSpeech]:
    """What is said, but not in the text: runs of heard words, unless they stand for words of the text."""
    read = np.array([s.read for s in found])
    row_of = np.full(len(used), -1)
    row_of[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    ends = [-1, *np.flatnonzero(used).tolist(), len(used)]
    for before, behind in pairwise(ends):
        if behind - before - 1 < FEWEST:
            continue
        top = int(row_of[before]) + 1 if before >= 0 else 0
        bottom = int(row_of[behind]) if behind < len(used) else len(line_of)
        missing = int(read[line_of[top:bottom]].sum())
        if behind - before - 1 - missing < 2:
            continue
        after = int(line_of[top - 1]) if before >= 0 else -1
        parts: list[tuple[int, int, int | None]] = []
        for first, last in clock.phrases(before + 1, behind):
            repeats = _repeated(clock.text(first, last), found, after)
            if parts and parts[-1][2] is repeats is None:
                first = parts.pop()[0]
            parts.append((first, last, repeats))
        for first, last, repeats in parts:
            span = round(float(clock.begin[first]), 3), round(float(clock.end[last - 1]), 3)
            yield ExtraSpeech(*span, clock.text(first, last), after, repeats)


def _repeated(text: str, found: Sequence[ReadSentence], after: int) -> int | None:
    """The sentence near by that extra speech repeats, by common words."""
    said = Counter(parts_of(text))
    best, at = 0.0, None
    for n in range(max(0, after - NEAR), min(len(found), after + NEAR + 1)):
        common = sum((said & Counter(parts_of(found[n].text))).values()) / said.total()
        if common > best:
            best, at = common, n
    return at if best >= REPEATED else None
