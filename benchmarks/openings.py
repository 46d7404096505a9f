"""Measure the benefit of an opening cost for runs of drops on four data sets, with settings chosen on validation data.

python -m benchmarks.openings --data DIR [--only grid utkinect tmnist transcripts] [--seed 0] [--cache DIR]

DIR has the folders of the data sets (`grid_s1`, `utkinect`, `mnist`, `youcook2_text`). For each, the drop cost alone,
and the drop cost together with the opening cost, are chosen from grids on validation data. Both are measured on
separate test data. "suggested" uses the opening cost that the library proposes, at the drop cost that was chosen
together with an opening cost.

grid : two episodes of one speaker's sentences, with foreign sentences spliced into each; F1 of the matched frames
    (right within 0.2 s) and the number of runs of dropped frames in X, where the truth is 2.
utkinect : ten actions in recordings of skeletons, leave one subject out; frame accuracy and IoU.
tmnist : two passages in sequences of five to seven clips, the paper's rule; accuracy and IoU.
transcripts : steps of a recipe in the transcript of its video; the fraction of steps in the right place, by the
    alignment alone, and the fraction of another dish's steps that are found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dropdtw
from reproduction.data import grid

Array = np.ndarray
Opening = float | str


@dataclass(frozen=True)
class Row:
    """A row of the table: the setting chosen on validation data, and the scores on test data."""

    name: str
    chosen: str
    scores: dict[str, float]


def choose(settings: Sequence[Any], score: Callable[[Any], float]) -> Any:
    """The setting with the highest score, the first one on ties."""
    return max(settings, key=score)


# GRID with splices

STEP = 5  # log-mel columns per frame: 10 frames per second
SENTENCE = 150 // STEP


class Episodes(NamedTuple):
    """Match costs of two episodes, and for each frame of each its position in the shared sentences, −1 if foreign."""

    C: Array
    in_z: Array
    in_x: Array


def splice(sound: Array, shared: Array, foreign: Array, lengths: Sequence[int], rng: np.random.Generator) -> Any:
    """The shared sentences with passages of foreign ones spliced in, at a random volume, with noise."""
    cuts = np.sort(rng.choice(np.arange(1, len(shared)), len(lengths), replace=False))
    parts, truth, used = [], [], 0
    for k, sentence in enumerate(shared):
        for length in [n for n, cut in zip(lengths, cuts, strict=True) if cut == k]:
            parts += list(sound[foreign[used : used + length]])
            truth += [-1] * (length * SENTENCE)
            used += length
        parts.append(sound[sentence])
        truth += range(k * SENTENCE, (k + 1) * SENTENCE)
    heard = np.concatenate(parts) * rng.uniform(0.7, 1.0)
    heard = heard + 0.3 * rng.normal(size=heard.shape)
    heard = (heard - heard.mean(axis=0)) / heard.std(axis=0)
    frames = heard.reshape(len(heard) // STEP, -1)
    return frames.astype(np.float32), np.array(truth)


def episodes(sound: Array, sentences: Array, count: int, rng: np.random.Generator) -> list[Episodes]:
    made = []
    for _ in range(count):
        order = rng.permutation(sentences)
        Z, in_z = splice(sound, order[:60], order[60:75], [6, 8, 1], rng)
        X, in_x = splice(sound, order[:60], order[75:91], [10, 6], rng)
        made.append(Episodes(dropdtw.costs.cosine(Z, X), in_z, in_x))
    return made


class Splices(NamedTuple):
    """The settings for aligning two episodes."""

    drop: float
    opening: Opening = 0.0

    def solve(self, C: Array) -> dropdtw.Alignment:
        """The alignment of two episodes."""
        return dropdtw.solve(
            C,
            self.drop,
            self.drop,
            one_to_many=False,
            many_to_one=False,
            open_x=self.opening,
            open_z=self.opening,
        )

    def score(self, these: Sequence[Episodes]) -> dict[str, float]:
        """F1 of the matched frames, and runs of dropped frames in X."""
        right = found = wanted = runs = 0
        for C, in_z, in_x in these:
            a = self.solve(C)
            i, j = a.pairs.T
            right += int(((in_z[i] >= 0) & (in_x[j] >= 0) & (abs(in_z[i] - in_x[j]) <= 2)).sum())
            found += len(a.pairs)
            wanted += int((in_x >= 0).sum())
            runs += int((np.diff(np.r_[0, a.dropped_x]) == 1).sum())
        f1 = 2 * right / (found + wanted)
        return {"F1, %": 100 * f1, "runs in X": runs / len(these)}


def on_grid(folder: Path, seed: int) -> list[Row]:
    clips = grid.load(folder / "grid_s1")
    sound = clips.sound.reshape(len(clips), 150, 40).astype(np.float64)
    rng = np.random.default_rng(seed)
    known, unseen = np.array_split(rng.permutation(len(clips)), 2)
    tuning, testing = episodes(sound, known, 3, rng), episodes(sound, unseen, 10, rng)
    drops, openings = (0.1, 0.15, 0.2, 0.25, 0.3), (0.25, 0.5, 1.0, 2.0, 4.0)
    plain = choose([Splices(d) for d in drops], lambda s: s.score(tuning)["F1, %"])
    charged = choose([Splices(*s) for s in product(drops, openings)], lambda s: s.score(tuning)["F1, %"])
    proposed = charged._replace(opening="suggest")
    return [
        Row("no opening cost", f"d {plain.drop:g}", plain.score(testing)),
        Row("opening cost", f"d {charged.drop:g}, open {charged.opening:g}", charged.score(testing)),
        Row("opening cost, suggested", f"d {proposed.drop:g}", proposed.score(testing)),
    ]


# UTKinect


def on_utkinect(folder: Path, seed: int) -> list[Row]:
    from reproduction.steps import utkinect
    from reproduction.steps.inference import cosine_cost, scores
    from reproduction.steps.splits import Source

    parts = utkinect.folds(Source(cache=folder, folder=folder / "utkinect"))
    percentiles, openings = (5, 10, 20, 30, 50, 70), (0.25, 0.5, 1.0, 2.0, 4.0)

    def run(videos: Any, setting: tuple[float, Opening]) -> list[Any]:
        found = []
        for video in videos:
            C = cosine_cost(video)
            price = float(np.percentile(C, setting[0]))
            opening = setting[1] if isinstance(setting[1], str) else setting[1] * abs(price)
            a = dropdtw.solve(C, price, method="steps", open_x=opening)
            found.append((video, video.ids_of(a.labels), None))
        return found

    rows = {"no opening cost": [(p, 0.0) for p in percentiles], "opening cost": list(product(percentiles, openings))}
    table = []
    for name, settings in rows.items():
        found, chosen = [], []
        for fold in parts:
            best = choose(settings, lambda s, fold=fold: scores(run(fold.validation, s)).iou)
            chosen.append(best)
            found += run(fold.test, best)
        table.append(Row(name, _usual(chosen), _percents(scores(found))))
    proposed = [row for fold, s in zip(parts, chosen, strict=True) for row in run(fold.test, (s[0], "suggest"))]
    return [*table, Row("opening cost, suggested", "–", _percents(scores(proposed)))]


def _usual(chosen: list[tuple[float, Opening]]) -> str:
    p, o = (sorted({c[k] for c in chosen}) for k in (0, 1))  # type: ignore[type-var]
    return f"percentile {p[0]:g}–{p[-1]:g}" + (f", open {o[0]:g}–{o[-1]:g} d" if o[-1] else "")


def _percents(s: Any) -> dict[str, float]:
    return {"accuracy, %": 100 * s.accuracy, "IoU, %": 100 * s.iou}


# TMNIST


def on_tmnist(folder: Path, seed: int, cache: Path) -> list[Row]:
    from reproduction.common.cache import Cache
    from reproduction.common.pools import encode, trained_encoder
    from reproduction.data import mnist, tmnist
    from reproduction.tmnist import localization

    data = mnist.load(folder / "mnist")
    kept = Cache(cache)
    encoder = trained_encoder(data, kept, epochs=2, digits=20_000, seed=seed)
    pool = encode(encoder, data, [seed, seed + 1, seed + 2, seed + 3], tmnist.CLASSES, kept)
    mean = np.mean([videos.mean for videos in pool[:2]], axis=0)
    pool = [videos.centered(mean) for videos in pool]
    tuning, testing = (
        localization.sequences(part, n, [seed, k]) for part, n, k in ((pool[:2], 100, 1), (pool[2:], 400, 0))
    )

    @dataclass(frozen=True)
    class Passages(localization.Setting):
        opening: Opening = 0.0

        def find(self, C: Array) -> Array:
            a = dropdtw.solve(C, self.drop, self.drop, open_x=self.opening, open_z=self.opening)
            return localization.longest_runs(~a.dropped_x)

    def score(setting: Passages, these: Any) -> dict[str, float]:
        accuracy, iou = localization.scores(setting, these)
        return {"accuracy, %": 100 * float(accuracy.mean()), "IoU, %": 100 * float(iou.mean())}

    drops, openings = localization.DROPS, (0.1, 0.25, 0.5, 1.0, 2.0)
    plain = choose([Passages(d) for d in drops], lambda s: sum(score(s, tuning).values()))
    charged = choose(
        [Passages(d, opening=o) for d, o in product(drops, openings)], lambda s: sum(score(s, tuning).values())
    )
    proposed = Passages(charged.drop, opening="suggest")
    return [
        Row("no opening cost", f"d {plain.drop:g}", score(plain, testing)),
        Row("opening cost", f"d {charged.drop:g}, open {charged.opening:g}", score(charged, testing)),
        Row("opening cost, suggested", f"d {proposed.drop:g}", score(proposed, testing)),
    ]


# Transcripts


def on_transcripts(folder: Path, seed: int) -> list[Row]:
    from benchmarks import chapters

    openings = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0)
    parts = chapters.split(folder / "youcook2_text", seed=seed)
    found = {o: [[s for task in part for s in chapters.searches(task, opening=o)] for part in parts] for o in openings}

    def scores(these: list[Any]) -> dict[str, float]:
        own = [s.right() for s in these if (s.kind, s.setting) == ("key", "own")]
        foreign = [s.passage is not None for s in these if (s.kind, s.setting) == ("key", "foreign")]
        return {"own right, %": 100 * float(np.mean(own)), "foreign found, %": 100 * float(np.mean(foreign))}

    def held_out(candidates: Sequence[float]) -> tuple[list[float], list[Any]]:
        chosen, these = [], []
        for k in range(len(found[0.0])):
            best = choose(
                candidates,
                lambda o, k=k: scores([s for j, part in enumerate(found[o]) if j != k for s in part])["own right, %"],
            )
            chosen.append(best)
            these += found[best][k]
        return chosen, these

    table = []
    for name, candidates in (("no opening cost", openings[:1]), ("opening cost", openings[1:])):
        chosen, these = held_out(candidates)
        said = f"open {min(chosen):g}–{max(chosen):g} d" if max(chosen) else "suggested d"
        table.append(Row(name, said, scores(these)))
    return table


TASKS = ("grid", "utkinect", "tmnist", "transcripts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the data sets")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, help="where to cache TMNIST's encoder and codes (default: no cache)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tasks: dict[str, Callable[[], list[Row]]] = {
            "grid": lambda: on_grid(options.data, options.seed),
            "utkinect": lambda: on_utkinect(options.data, options.seed),
            "tmnist": lambda: on_tmnist(options.data, options.seed, options.cache or Path(scratch)),
            "transcripts": lambda: on_transcripts(options.data, options.seed),
        }
        for name in options.only:
            start = time.monotonic()
            rows = tasks[name]()
            print(f"\n{name} (seed {options.seed}, {time.monotonic() - start:.0f} s)")
            for row in rows:
                cells = "  ".join(f"{label} {value:6.1f}" for label, value in row.scores.items())
                print(f"  {row.name:26}{row.chosen:32}{cells}", flush=True)


if __name__ == "__main__":
    main()
