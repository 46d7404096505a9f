"""How often posteriors are right: `python benchmarks/calibration.py DATA`.

DATA has the subfolders mnist, youcook2_text and vienna4x22. The probability of each frame's most probable label is
compared with how often this label is right. The drop cost is the suggested one, and γ is the default, a multiple of it,
or 1. The default was chosen on other parts of the same data (`--part val`). The data:

- TMNIST: which of the frames of five to seven clips show the event of a query (`reproduction/tmnist/localization.py`),
  with a small encoder (6,000 digits, 4 epochs).
- Transcripts: which sentence of a cooking video describes which step (`reproduction/data/transcripts.py`).
- Music: which of 40 chords of a score sounds in each tenth of a second of a performance of the Vienna 4x22 corpus
  (its folder `match`, unpacked). Frames are chroma vectors drawn from the notes, not from sound, with noise, and
  interrupted by another piece.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import dropdtw
from dropdtw.costs import cosine
from reproduction.common import pools
from reproduction.common.cache import Cache
from reproduction.data import mnist, tmnist, transcripts
from reproduction.tmnist import localization

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
LEVEL = 0.9
MATCHED_NOTE = re.compile(
    r"snote\([^,]+,\[([A-G]),([^\]]+)\],(-?\d+),[^,]+,[^,]+,[^,]+,(-?[\d.]+),(-?[\d.]+),.*\)-"
    r"(?:note\([^,]+,(\d+),(-?\d+),(-?\d+))?"
)
ADDED_NOTE = re.compile(r"[a-z_]+-note\([^,]+,(\d+),(-?\d+),(-?\d+)")
PITCH = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
SHIFT = {"n": 0, "#": 1, "##": 2, "x": 2, "b": -1, "bb": -2}
CHORDS, FPS = 40, 10

Problem = tuple[np.ndarray, np.ndarray]
"""Match costs (K, N), and the true z of each x (N,), −1 for none."""


def moving_digits(data: Path, cache: Path, part: str) -> Iterator[Problem]:
    """The event's frames have the label 0."""
    digits, kept = mnist.load(data / "mnist"), Cache(cache)
    encoder = pools.trained_encoder(digits, kept, epochs=4, digits=6000)
    made = pools.encode(encoder, digits, [101, 102, 103, 104], list(tmnist.CLASSES)[::4], kept)
    made = [videos.centered(made[0].mean) for videos in made]
    pool, seed = (made[:2], 1) if part == "val" else (made[2:], 0)
    for one in localization.sequences(pool, 150, [7, seed]):
        yield one.C, np.where(one.truth, 0, -1)


def talks(data: Path, part: str) -> Iterator[Problem]:
    """Videos with at least ten sentences."""
    videos = transcripts.load(data / "youcook2_text").split({"val": 1 / 3, "test": 2 / 3}, seed=0)[part]
    for video in (videos[k] for k in range(len(videos))):
        if len(video.steps) <= len(video.frames) >= 10:
            yield cosine(video.steps, video.frames), np.asarray(video.touched)


def notes(path: Path) -> tuple[np.ndarray, np.ndarray, dict[float, list[float]]]:
    """The notes of a score (begin, end, pitch) and of its performance, and when each onset of the score is played."""
    text = path.read_text("utf8")
    units, rate = (int(re.search(rf"info\(midiClock{name},(\d+)", text)[1]) for name in ("Units", "Rate"))
    second = rate / 1e6 / units
    score, played, onsets = [], [], {}
    for line in text.splitlines():
        if found := MATCHED_NOTE.match(line):
            letter, accidental, octave, begin, end, pitch, on, off = found.groups()
            height = 12 * (int(octave) + 1) + PITCH[letter] + SHIFT[accidental]
            score.append((float(begin), float(end), height))
            if pitch is not None:
                played.append((int(on) * second, int(off) * second, int(pitch)))
                onsets.setdefault(float(begin), []).append(played[-1][0])
        elif found := ADDED_NOTE.match(line):
            pitch, on, off = map(int, found.groups())
            played.append((on * second, off * second, pitch))
    return np.array(score), np.array(played), onsets


def chroma(sounding: np.ndarray, times: np.ndarray, decay: float) -> np.ndarray:
    """How loud each of the twelve pitch classes is at these times; notes fade."""
    found = np.zeros((len(times), 12))
    for begin, end, pitch in sounding:
        there = (times >= begin - 1e-9) & (times < max(end, begin + 0.1))
        found[there, int(pitch) % 12] += np.exp(decay * (begin - times[there]))
    return found


def performances(data: Path, part: str) -> Iterator[Problem]:
    """The first eight pianists are for validation."""
    rng = np.random.default_rng(part == "val")
    paths = sorted((data / "vienna4x22" / "match").glob("*.match"))
    for path in paths:
        if (int(path.stem[-2:]) <= 8) is not (part == "val"):
            continue
        score, played, onsets = notes(path)
        places = np.unique(score[:, 0])
        first = int(rng.integers(0, max(1, len(places) - CHORDS - 5)))
        chords = places[first : first + CHORDS]
        if not all(place in onsets for place in places[first : first + CHORDS + 1]):
            continue
        heard = np.maximum.accumulate([np.median(onsets[place]) for place in places[first : first + CHORDS + 1]])
        times = np.arange(heard[0], heard[-1], 1 / FPS)
        truth = np.searchsorted(heard, times + 1e-9, side="right") - 1
        others = [other for other in paths if other.stem[:-4] != path.stem[:-4]]
        _, other, _ = notes(others[rng.integers(len(others))])
        parts, labels = [], []
        cut = int(rng.integers(len(times) // 4, 3 * len(times) // 4))
        for kept in (slice(0, 0), slice(0, cut), slice(cut, None)):
            begin, length = rng.uniform(0, other[:, 0].max() - 5), rng.uniform(1, 5)
            junk = chroma(other, np.arange(begin, begin + length, 1 / FPS), 1.0)
            parts += [chroma(played, times[kept], 1.0), junk]
            labels += [truth[kept], np.full(len(junk), -1)]
        X = np.concatenate(parts)
        yield cosine(chroma(score, chords, 0.0), X + rng.uniform(0, 0.15, X.shape)), np.concatenate(labels)


def calibration(problems: list[Problem], event: bool, factor: float | None) -> list[float]:
    """Median γ, accuracy, mean confidence, expected calibration error, and the coverage of starts and stops."""
    used, sure, right, covered = [], [], [], []
    for C, truth in problems:
        how = {"drop_x": "suggest", "drop_z": "suggest"} if event else {"drop_x": "suggest", "method": "steps"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of low confidence in a suggestion
            a = dropdtw.solve(C, **how)
        p = a.posterior()
        p = p if factor == 1 else a.posterior(1.0 if factor is None else factor * p.gamma)
        chances = np.vstack([1 - p.drop_x, p.drop_x] if event else [p.match, p.drop_x[None]])
        label = np.where(truth < 0, len(chances) - 1, truth)
        used.append(p.gamma)
        sure.append(chances.max(axis=0))
        right.append(chances.argmax(axis=0) == label)
        if factor == 1 and not event:
            for found in p.intervals(LEVEL):
                shown = np.flatnonzero(truth == found.label)
                if len(shown) and found.start is not None and found.stop is not None:
                    (a0, a1), (b0, b1) = found.start, found.stop
                    covered.append((a0 <= shown[0] <= a1, b0 <= shown[-1] + 1 <= b1))
    conf, ok = np.concatenate(sure), np.concatenate(right)
    bins = np.minimum((10 * conf).astype(int), 9)
    error = sum(abs(conf[bins == b].sum() - ok[bins == b].sum()) for b in range(10)) / len(ok)
    return [float(np.median(used)), ok.mean(), conf.mean(), error, *(np.mean(covered, axis=0) if covered else ())]


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--part", choices=("val", "test"), default="test")
    parser.add_argument("--most", type=int, default=60, help="problems per data set")
    parser.add_argument("--cache", type=Path, default=Path("runs/calibration"), help="folder for the encoder")
    asked = parser.parse_args()
    sets = {
        "TMNIST": (moving_digits(asked.data, asked.cache, asked.part), True),
        "transcripts": (talks(asked.data, asked.part), False),
        "music": (performances(asked.data, asked.part), False),
    }
    for name, (made, event) in sets.items():
        problems = list(made)
        problems = [problems[k] for k in np.linspace(0, len(problems) - 1, min(asked.most, len(problems))).astype(int)]
        print(f"{name}: {len(problems)} problems, {sum(len(truth) for _, truth in problems)} frames")
        for factor in (*FACTORS, None):
            gamma, accuracy, confidence, error, *coverage = calibration(problems, event, factor)
            said = "γ = 1" if factor is None else f"{factor:g} × default"
            line = f"  {said:14} γ {gamma:.3f}  right {accuracy:.1%}  confidence {confidence:.1%}  error {error:.1%}"
            print(line + "".join(f"  {c:.0%}" for c in coverage))


if __name__ == "__main__":
    main()
