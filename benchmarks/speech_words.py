"""Measure how well words are timed, and found missing, where a text does not match what is spoken.

python benchmarks/speech_words.py                       # 20 recordings of 60 words, three noise levels
python benchmarks/speech_words.py --items 4 --words 20

Emissions are made, not recorded: letters of random words with known frames, scores of a known level with normal noise.
Of each text, 10 % of the words are then removed, or 10 % other words are put in. Compared are `speech.align` with skip
and garbage, a plain CTC alignment, and the star-token recipe, all on the same emissions.

A word of the text that is spoken is timed correctly if both of its ends are within one frame. Wrong words (in the text,
not spoken) and missing ones (spoken, not in the text) are found if they are skipped, or covered by extra speech to at
least one half; precision counts what is reported. `skip` and `garbage` were chosen on seed 10000.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from dropdtw import speech
from dropdtw.problem.inputs import Array, runs

LETTERS = 28
"""Size of the vocabulary; 0 is the blank."""

SKIP, GARBAGE = 8.0, 2.0
"""Costs of a skipped word and of a frame of speech that is not in the text."""


@dataclass
class Recording:
    """Emissions (T, V), and the words that are spoken with their frames."""

    log_probs: Array
    words: list[list[int]]
    spans: list[tuple[int, int]]


def recording(rng: np.random.Generator, words: int, noise: float) -> Recording:
    """Random words of 2 to 8 letters, each of 1 to 3 frames, with 0 to 4 blanks between them; 1 to 20 between words."""
    path: list[int] = [0] * int(rng.integers(1, 20))
    text, spans = [], []
    for _ in range(words):
        word = another_word(rng)
        start = len(path)
        for n, letter in enumerate(word):
            least = n > 0 and word[n - 1] == letter
            path += [0] * (int(rng.integers(least, 5)) if n else 0) + [letter] * int(rng.integers(1, 4))
        text.append(word)
        spans.append((start, len(path)))
        path += [0] * int(rng.integers(1, 21))
    scores = 9.0 * np.eye(LETTERS)[path] + noise * rng.normal(size=(len(path), LETTERS))
    return Recording(scores - np.log(np.exp(scores).sum(1, keepdims=True)), text, spans)


def another_word(rng: np.random.Generator) -> list[int]:
    return [int(c) for c in rng.integers(1, LETTERS, int(rng.integers(2, 9)))]


@dataclass
class Text:
    """A text for a recording: its words, and for each the spoken word that it is, or −1."""

    words: list[list[int]]
    which: list[int]


def damaged(rng: np.random.Generator, spoken: Recording, kind: str) -> Text:
    """A tenth of the words removed, or a tenth of other words put in."""
    n = len(spoken.words)
    which = list(range(n))
    if kind == "removed":
        gone = set(rng.choice(n, n // 10, replace=False).tolist())
        which = [w for w in which if w not in gone]
    else:
        for place in sorted(rng.choice(n + 1, n // 10, replace=False).tolist(), reverse=True):
            which.insert(place, -1)
    return Text([spoken.words[w] if w >= 0 else another_word(rng) for w in which], which)


@dataclass
class Found:
    """Frames of each word of a text (None: not spoken), and whether each frame is speech outside of the text."""

    spans: list[tuple[int, int] | None]
    extra: Array


def ours(log_probs: Array, words: list[list[int]], skip: float = SKIP, garbage: float = GARBAGE) -> Found:
    found = speech.align(log_probs, words, skip=skip, garbage=garbage, within_words=False)
    return result(found, len(words), len(log_probs))


def plain(log_probs: Array, words: list[list[int]]) -> Found:
    return result(speech.align(log_probs, words), len(words), len(log_probs))


def star(log_probs: Array, words: list[list[int]]) -> Found:
    """A star before, between and after all words: a token that stands for any letter, in at least one frame."""
    wide = np.concatenate([log_probs, np.logaddexp.reduce(log_probs[:, 1:], axis=1)[:, None]], axis=1)
    text = [[LETTERS], *(part for word in words for part in (word, [LETTERS]))]
    found = speech.align(wide, text)
    extra = np.zeros(len(log_probs), bool)
    for word in found.words[::2]:
        if word.stop - word.start > 1:  # every star has a frame, also where there is nothing
            extra[word.start : word.stop] = True
    return Found([(word.start, word.stop) for word in found.words[1::2]], extra)


def result(found: speech.SpeechAlignment, words: int, frames: int) -> Found:
    spans: list[tuple[int, int] | None] = [None] * words
    for word in found.words:
        spans[word.index] = (word.start, word.stop)
    extra = np.zeros(frames, bool)
    for start, stop in found.extra:
        extra[start:stop] = True
    return Found(spans, extra)


@dataclass
class Counts:
    """Words of the text that are spoken and how many are timed; words to be found, reported, and rightly reported."""

    spoken: int = 0
    timed: int = 0
    wanted: int = 0
    reported: int = 0
    right: int = 0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / (self.wanted + self.reported) if self.wanted + self.reported else 1.0

    def add(self, truth: Recording, text: Text, found: Found, kind: str, near: int = 1) -> None:
        """Count what an aligner has found in one recording. A word is timed if both ends are within `near` frames."""
        here = [(s, truth.spans[w]) for s, w in zip(found.spans, text.which, strict=True) if w >= 0]
        self.spoken += len(here)
        self.timed += sum(s is not None and max(abs(s[0] - a), abs(s[1] - b)) <= near for s, (a, b) in here)
        if kind == "inserted":
            self.wanted += text.which.count(-1)
            self.reported += found.spans.count(None)
            self.right += sum(s is None and w < 0 for s, w in zip(found.spans, text.which, strict=True))
            return
        missing = [truth.spans[w] for w in range(len(truth.words)) if w not in text.which]
        self.wanted += len(missing)
        covered = [found.extra[a:b].mean() >= 0.5 for a, b in missing]
        self.right += sum(covered)
        # A stretch of extra speech of at least two frames that meets no missing word is a false report.
        meets = [
            any(a < stop and start < b for a, b in missing) for start, stop in runs(found.extra) if stop - start > 1
        ]
        self.reported += sum(covered) + meets.count(False)


ALIGNERS = {"speech.align": ours, "plain CTC": plain, "star tokens": star}


def measured(items: int, words: int, noise: float, kind: str, seed: int) -> dict[str, Counts]:
    """Counts of each aligner over the same recordings and texts."""
    found = {name: Counts() for name in ALIGNERS}
    for item in range(items):
        rng = np.random.default_rng([seed, item])
        truth = recording(rng, words, noise)
        text = damaged(rng, truth, kind)
        for name, aligner in ALIGNERS.items():
            found[name].add(truth, text, aligner(truth.log_probs, text.words), kind)
    return found


def frame_accuracy(noise: float) -> float:
    """How often the letter of a frame has the best score at this noise."""
    rng = np.random.default_rng(0)
    scores = noise * rng.normal(size=(20000, LETTERS))
    scores[:, 0] += 9.0
    return float((scores.argmax(1) == 0).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--noise", type=float, nargs="+", default=[1.5, 2.0, 2.5])
    parser.add_argument("--seed", type=int, default=20000)
    said = parser.parse_args()
    print("| noise | best letter right | text | aligner | timed within one frame | F1 of wrong or missing words |")
    print("|--:|--:|---|---|--:|--:|")
    for noise in said.noise:
        for kind in ("removed", "inserted"):
            for name, c in measured(said.items, said.words, noise, kind, said.seed).items():
                row = f"{noise:g} | {frame_accuracy(noise):.1%} | 10 % {kind} | {name}"
                print(f"| {row} | {c.timed / c.spoken:.1%} | {c.f1:.3f} |", flush=True)


if __name__ == "__main__":
    main()
