"""Measure `dropdtw.speech.sync`: read texts whose sentences are left out, repeated and interrupted.

python benchmarks/sync.py [--seed 40] [--rounds 20] [--texts held-out|development] [--whisper FOLDER] [--cache FOLDER]

The constants of `dropdtw.speech` were chosen with --texts development (harbor, bread); the others (owls, letter) are
held out. Each round leaves out a tenth of the sentences, reads some twice or begins them twice, and adds sentences of
another text. Then a recognizer is simulated: of 5, 15 or 30 % of the words, half are replaced, by a misspelling or by
any word, and the others are left out or followed by another word; times vary by 40 ms.

With --whisper, the folder of a model for faster-whisper, espeak-ng reads the texts with several voices, and the model
transcribes them. --cache keeps the transcripts.

A sentence is timed if it begins and ends within 0.3 s of the truth (of any complete reading of it). F1 is that of the
sentences that are not read. Compared with: an edit distance over words, and DTW.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import wave
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dropdtw
from dropdtw import speech
from dropdtw.media import pauses
from dropdtw.speech.reading import sentences_of
from dropdtw.speech.sounds import parts_of

TEXTS = {"development": ("harbor", "bread"), "held-out": ("owls", "letter")}
RATES = (0.05, 0.15, 0.30)
VOICES = (("en-us", 160), ("en-gb-x-rp", 170), ("en-gb-scotland", 150), ("en-us+f3", 165))
NEAR = 0.3


@dataclass
class Script:
    """What is read: for each utterance, its words, and the sentence that it is a complete reading of, or None."""

    sentences: list[str]
    utterances: list[tuple[list[str], int | None]]

    @property
    def unread(self) -> set[int]:
        """The sentences that no utterance reads completely."""
        return set(range(len(self.sentences))) - {n for _, n in self.utterances if n is not None}


class Case(NamedTuple):
    """A script, what was heard, and the times of each sentence's readings."""

    script: Script
    words: list[speech.SpokenWord]
    truth: list[list[tuple[float, float]]]
    pauses: np.ndarray | None = None


Times = list[tuple[float, float] | None]


def lines(name: str) -> list[str]:
    text = (Path(__file__).parent / "sync_texts" / f"{name}.txt").read_text()
    return [sentence for _, sentence in sentences_of(text)]


def script(sentences: list[str], others: list[str], rng: np.random.Generator) -> Script:
    """Leave sentences out, repeat some, begin some twice, and add others."""
    K = len(sentences)
    left_out: set[int] = set()
    while len(left_out) < K // 10:
        first = int(rng.integers(K))
        left_out |= set(range(first, min(K, first + int(rng.integers(1, 4)))))
    found: list[tuple[list[str], int | None]] = []
    for n, sentence in enumerate(sentences):
        chance, words = rng.random(), sentence.split()
        if chance < 0.05:
            first = int(rng.integers(len(others) - 2))
            found += [(others[k].split(), None) for k in range(first, first + int(rng.integers(1, 3)))]
        if n in left_out:
            continue
        if 0.05 <= chance < 0.1:
            found.append((words, n))
        if 0.1 <= chance < 0.15 and len(words) > 4:
            found.append((words[: len(words) // 2], None))
        found.append((words, n))
    return Script(sentences, found)


def simulated(what: Script, rate: float, vocabulary: Sequence[str], rng: np.random.Generator) -> Case:
    """What a recognizer with this rate of errors hears."""
    words: list[speech.SpokenWord] = []
    truth: list[list[tuple[float, float]]] = [[] for _ in what.sentences]
    now = 1.0
    for said, n in what.utterances:
        begin = now
        for word in said:
            spoken = " ".join(parts_of(word))
            stop = now + (0.1 + 0.06 * len(spoken)) * float(rng.lognormal(0, 0.2))
            words += heard(word, now, stop, rate, vocabulary, rng)
            now = stop + (0.2 if word[-1] in ",;:" else 0.0)
        if n is not None:
            truth[n].append((begin, now))
        now += float(rng.uniform(0.3, 0.9))
    return Case(what, sorted(words), truth)


def heard(
    word: str, start: float, stop: float, rate: float, vocabulary: Sequence[str], rng: np.random.Generator
) -> Iterator[speech.SpokenWord]:
    start, stop = np.sort(np.array([start, stop]) + rng.normal(0, 0.04, 2)).clip(0).tolist()
    kind = rng.random() / rate
    any_word = str(rng.choice(vocabulary))
    if kind < 0.25:
        word = any_word
    elif kind < 0.5:
        word = misspelled(word, rng)
    elif kind < 0.75:
        return
    if 0.75 <= kind < 1:
        middle = (start + stop) / 2
        yield speech.SpokenWord(middle, stop, any_word)
        stop = middle
    yield speech.SpokenWord(start, stop, word)


def misspelled(word: str, rng: np.random.Generator) -> str:
    letters = list(word.lower().strip(".,;:!?\"'"))
    for _ in range(int(rng.integers(1, 3))):
        at = int(rng.integers(len(letters) + 1))
        letters[at : at + int(rng.integers(2))] = [str(rng.choice(list("aeioustnrld")))][: int(rng.integers(2))]
    return "".join(letters) or "uh"


def recorded(what: Script, voice: str, speed: int, model: str, cached: Path | None, rng: np.random.Generator) -> Case:
    """What a recognizer hears if espeak-ng reads the script."""
    truth: list[list[tuple[float, float]]] = [[] for _ in what.sentences]
    parts, now = [np.zeros(16000, np.int16)], 1.0
    with tempfile.TemporaryDirectory() as folder:
        for said, n in what.utterances:
            sound = spoken(" ".join(said), voice, speed, Path(folder))
            pause = np.zeros(int(16000 * rng.uniform(0.3, 0.9)), np.int16)
            if n is not None:
                truth[n].append((now, now + len(sound) / 16000))
            parts += [sound, pause]
            now += (len(sound) + len(pause)) / 16000
        place = Path(folder) / "all.wav"
        with wave.open(str(place), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(np.concatenate(parts).tobytes())
        if cached is not None and cached.exists():
            words = [speech.SpokenWord(*word) for word in json.loads(cached.read_text())]
        else:
            words = list(speech.transcribe(str(place), model, language="en").words)
            if cached is not None:
                cached.write_text(json.dumps(words))
        return Case(what, words, truth, pauses(place))


def spoken(text: str, voice: str, speed: int, folder: Path) -> np.ndarray:
    """The sound of a text at 16 kHz, without silence at its ends."""
    place = folder / "one.wav"
    subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-w", place, "--", text], check=True)
    with wave.open(str(place)) as file:
        rate = file.getframerate()
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(float)
    times = np.arange(0, len(sound) / rate, 1 / 16000)
    sound = np.interp(times, np.arange(len(sound)) / rate, sound)
    loud = np.flatnonzero(np.abs(sound) > 300)
    return sound[loud[0] : loud[-1] + 1].astype(np.int16)


def read(case: Case) -> speech.Reading:
    """What `sync` finds."""
    found = speech.sync("\n\n".join(case.script.sentences), case.words, pauses=case.pauses, progress=False)
    assert len(found.sentences) == len(case.script.sentences)
    return found


def times_of(found: speech.Reading) -> Times:
    return [(s.start, s.stop) if s.start is not None else None for s in found.sentences]


def by_sync(case: Case) -> Times:
    return times_of(read(case))


def _plain(case: Case, **options: object) -> Times:
    """An alignment of words that are equal or not."""
    text = [(n, part) for n, s in enumerate(case.script.sentences) for part in parts_of(s)]
    said = [(word, part) for word in case.words for part in parts_of(word.text)]
    a = dropdtw.align([part for _, part in text], [part for _, part in said], match="equal", **options)
    found: Times = []
    for n, sentence in enumerate(case.script.sentences):
        pairs = a.pairs[[text[i][0] == n for i in a.pairs[:, 0]]]
        equal = {i for i, j in pairs.tolist() if text[i][1] == said[j][1]}
        if 2 * len(equal) < len(parts_of(sentence)):
            found.append(None)
        else:
            found.append((said[pairs[0, 1]][0].start, said[pairs[-1, 1]][0].stop))
    return found


def by_edits(case: Case) -> Times:
    return _plain(case, drop_x=1.0, drop_z=1.0, method="needleman_wunsch")


def by_dtw(case: Case) -> Times:
    return _plain(case, method="dtw")


OTHERS: dict[str, Callable[[Case], Times]] = {"edit distance": by_edits, "DTW": by_dtw}


def score(cases: Sequence[Case], found: Sequence[Times]) -> tuple[float, float]:
    """The share of sentences that are timed, and F1 of those that are not read."""
    right = total = both = said = missing = 0
    for case, times in zip(cases, found, strict=True):
        for n, (when, truth) in enumerate(zip(times, case.truth, strict=True)):
            unread = n in case.script.unread
            both, said, missing = both + (unread and when is None), said + (when is None), missing + unread
            if not unread:
                total += 1
                right += timed(when, truth)
    return right / total, 2 * both / max(said + missing, 1)


def timed(when: tuple[float, float] | None, truth: Sequence[tuple[float, float]]) -> bool:
    return when is not None and any(max(np.abs(np.subtract(when, t))) <= NEAR for t in truth)


def calibration(cases: Sequence[Case], readings: Sequence[speech.Reading]) -> Iterator[str]:
    """For sentences of similar confidence, their number, the mean confidence, and the share that is right."""
    found = []
    for case, reading in zip(cases, readings, strict=True):
        for s, when, truth in zip(reading.sentences, times_of(reading), case.truth, strict=True):
            found.append((s.confidence, s.index in case.script.unread if when is None else timed(when, truth)))
    sure, right = np.array(found, float).T
    for low, high in pairwise((0, 0.7, 0.9, 0.95, 0.98, 1.01)):
        here = (sure >= low) & (sure < high)
        if here.any():
            means = f"said {sure[here].mean():6.1%}, right {right[here].mean():6.1%}"
            yield f"{low:4.0%}-{min(high, 1):4.0%}: {here.sum():5}, {means}"


def scripts(texts: str, rounds: int, seed: int) -> Iterator[tuple[Script, list[str], np.random.Generator]]:
    names = TEXTS[texts]
    for k in range(rounds):
        for n, name in enumerate(names):
            rng = np.random.default_rng([seed, k, n])
            others = lines(names[1 - n])
            yield script(lines(name), others, rng), " ".join(others).split(), rng


def cases_of(args: argparse.Namespace) -> Iterator[tuple[str, list[Case]]]:
    for rate in RATES:
        yield f"{rate:.0%}", [simulated(s, rate, v, rng) for s, v, rng in scripts(args.texts, args.rounds, args.seed)]
    if args.whisper:
        found = []
        for k, (voice, speed) in enumerate(VOICES):
            for n, (what, _, rng) in enumerate(scripts(args.texts, 1, args.seed + 1 + k)):
                place = None if args.cache is None else Path(args.cache) / f"{args.texts}-{args.seed}-{k}-{n}.json"
                found.append(recorded(what, voice, speed, args.whisper, place, rng))
        yield "espeak-ng, words alone", [case._replace(pauses=None) for case in found]
        yield "espeak-ng, with the recording", found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--texts", choices=TEXTS, default="held-out")
    parser.add_argument("--whisper")
    parser.add_argument("--cache")
    args = parser.parse_args()
    print(f"{args.texts}: {', '.join(TEXTS[args.texts])}; {args.rounds} rounds, seed {args.seed}")
    every: list[tuple[Case, speech.Reading]] = []
    for name, cases in cases_of(args):
        print(f"{name} ({sum(len(c.truth) for c in cases)} sentences)")
        readings = [read(case) for case in cases]
        every += zip(cases, readings, strict=True)
        found = {"sync": [times_of(reading) for reading in readings]}
        found |= {method: [run(case) for case in cases] for method, run in OTHERS.items()}
        for method, times in found.items():
            share, f1 = score(cases, times)
            print(f"  {method:14} timed {share:6.1%}  F1 {f1:.3f}", flush=True)
    print("confidence")
    for line in calibration(*zip(*every, strict=True)):
        print(f"  {line}")
    print(f"sentences of a text that is not read, but timed: {unrelated(args)}")


def unrelated(args: argparse.Namespace) -> str:
    """How many sentences are timed if another text is read."""
    wrong = total = 0
    for k in range(args.rounds):
        for n, name in enumerate(TEXTS[args.texts]):
            rng = np.random.default_rng([args.seed, 1, k, n])
            others = lines(TEXTS[args.texts][1 - n])
            said = simulated(script(others, others, rng), 0.15, " ".join(others).split(), rng)
            found = speech.sync("\n\n".join(lines(name)), said.words, progress=False)
            wrong, total = wrong + len(found.sentences) - len(found.unread), total + len(found.sentences)
    return f"{wrong} of {total}"


if __name__ == "__main__":
    main()
