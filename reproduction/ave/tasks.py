"""The data sets of audio-visual localization: AVE, GRID's talking faces, or a stand-in of moving digits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.ave.model import Batch, Event, cca, evaluate, splice
from reproduction.common.moving import moving
from reproduction.data import ave, grid, mnist, tmnist

WAYS: Final = ("A2V", "V2A")


@dataclass(frozen=True, eq=False)
class Part:
    """Paired streams, (n, T, d_a) and (n, T, d_v), and the events in them."""

    audio: Array
    visual: Array
    events: tuple[Event, ...]

    def __len__(self) -> int:
        return len(self.audio)


@dataclass(frozen=True, eq=False)
class Task:
    """The data to train and test on, and the protocol.

    kind : "AVE", "GRID" or "stand-in".   papers : whether these are the paper's data, which use its settings, without
    splices.   tolerances : in elements; the last one counts when settings are chosen.
    crops : candidate lengths of training crops; none: whole streams.   length : length of a foreign passage; a training
    crop gets one per stretch of the shortest crop's length.
    """

    kind: str
    train: Part
    validation: Part
    test: Part
    source: str
    tolerances: tuple[int, ...] = (0,)
    crops: tuple[int, ...] = ()
    length: int = 8
    papers: bool = False

    def load(self, numbers: Sequence[int], spliced: str, seed: int, crop: int = 0) -> Batch:
        """Load training pairs by index; each pair depends only on its index and the seed.

        spliced : which streams get passages of another video: "none", "visual" or "both".   crop : 0: whole streams.
        """
        import torch

        audio: list[Array] = []
        visual: list[Array] = []
        for number, video in zip(numbers, self._videos(numbers, seed), strict=True):
            rng = np.random.default_rng([seed, number])
            T = self.train.audio.shape[1]
            taken = crop or T
            start = int(rng.integers(0, T - taken + 1))
            passages = taken // self.crops[0] if self.crops else 0
            for stream, parts, wanted in (
                (self.train.audio, audio, spliced == "both"),
                (self.train.visual, visual, spliced in ("visual", "both")),
            ):
                own = stream[video, start : start + taken]
                strange = stream[(video + int(rng.integers(1, len(stream)))) % len(stream)]
                parts.append(splice(own, strange, passages, self.length, rng)[0] if wanted else own)
        return Batch(*(torch.from_numpy(np.stack(parts).astype(np.float32)) for parts in (audio, visual)))

    def _videos(self, numbers: Sequence[int], seed: int) -> list[int]:
        """One random permutation of the videos after another; videos repeat in a batch only across permutations."""
        n = len(self.train)
        return [int(np.random.default_rng([seed, number // n, 5]).permutation(n)[number % n]) for number in numbers]


def evaluated(audio: Array, visual: Array, part: Part, tolerances: Sequence[int]) -> Array:
    """The share of events found with embeddings (n, T, d), for A2V and V2A: (2, tolerances)."""
    found = evaluate(audio, visual, part.events, tolerances)
    return np.array([found[way] for way in WAYS])


def linear(task: Task, spliced: str, seed: int) -> Array:
    """Test scores (2, tolerances) of linear CCA, fit to pairs of training elements at equal positions.

    The crop with the best validation score is used. The longer stream of a pair is truncated.
    """
    found = []
    for crop in task.crops or (0,):
        pairs = task.load(range(4 * len(task.train)), spliced, seed, crop)
        T = min(pairs.audio.shape[1], pairs.visual.shape[1])
        rows = [stream[:, :T].flatten(0, 1).double().numpy() for stream in (pairs.audio, pairs.visual)]
        maps = cca(*(r - r.mean(axis=0) for r in rows))
        scores = []
        for part in (task.validation, task.test):
            embedded = [stream @ m for stream, m in zip((part.audio, part.visual), maps, strict=True)]
            a, v = (e / np.maximum(np.linalg.norm(e, axis=-1, keepdims=True), 1e-12) for e in embedded)
            scores.append(evaluated(a, v, part, task.tolerances))
        found.append(scores)
    return max(found, key=lambda scores: float(scores[0][:, -1].mean()))[1]


def of_ave(folder: str | os.PathLike[str]) -> Task:
    """AVE's cross-modality localization: whole videos; only the exact start counts."""
    parts = ave.load(folder)

    def part(streams: ave.Streams) -> Part:
        spans = [ave.event(row) for row in streams.labels]
        events = tuple((k, *span) for k, span in enumerate(spans) if span is not None)
        return Part(streams.audio, streams.visual, events)

    train, validation, test = (part(parts[split]) for split in ave.SPLITS)
    source = f"AVE: {len(train)} + {len(validation)} + {len(test)} videos"
    return Task("AVE", train, validation, test, source, papers=True)


def is_grid(folder: str | os.PathLike[str]) -> bool:
    """Whether `folder` is GRID's file or the folder that contains it."""
    place = Path(folder)
    return place.name == grid.FILE or (place / grid.FILE).is_file()


def of_grid(folder: str | os.PathLike[str], *, reach: int = 2, seed: int = 0) -> Task:
    """GRID: find words of a sentence across lips and sound. The split is 70 % training, 10 % validation, 20 % test.

    reach : number of neighboring frames on each side that are appended to a frame.
    """
    clips = grid.load(folder)
    order = np.random.default_rng([seed, 9]).permutation(len(clips))
    edges = np.array([0, round(0.7 * len(clips)), round(0.8 * len(clips)), len(clips)])
    audio, visual = (grid.with_context(stream, reach) for stream in (clips.sound, clips.lips))
    parts = []
    for a, b in pairwise(edges.tolist()):
        rows = order[a:b]
        events = tuple((k, start, stop) for k, row in enumerate(rows.tolist()) for _, start, stop in clips.words[row])
        parts.append(Part(audio[rows], visual[rows], events))
    train, validation, test = _standardised(parts)
    source = f"GRID speaker s1: {len(train)} + {len(validation)} + {len(test)} sentences"
    return Task("GRID", train, validation, test, source, (1, 2), crops=(24, 48))


def stand_in(clips: int = 120, seed: int = 0, digits: mnist.Mnist | None = None) -> Task:
    """Moving digits in two views: the picture, and a synthetic sound that encodes the position of the digit.

    An event is a passage of the video. The sound has 40 frequency bands, with one bump for the row of the digit, one
    for its column, and independent noise.
    """
    source = digits or mnist.load()
    rng = np.random.default_rng([seed, 10])
    T, names = tmnist.LENGTHS[0], list(tmnist.TRAJECTORIES)
    parts = []
    for images, count in (
        (source.train_images, clips),
        (source.test_images, clips // 4),
        (source.test_images, clips // 2),
    ):
        audio, visual, events = [], [], []
        for k in range(max(2, count)):
            name = names[int(rng.integers(len(names)))]
            frames, phase = moving(images[rng.integers(len(images))], name, rng)
            places = tmnist.corners(name, 200)[np.rint(phase * 199).astype(np.int64)]
            visual.append(frames[:T])
            audio.append(_sound(places[:T], rng))
            starts = rng.integers(0, T - 6 + 1, 3)
            events += [(k, int(start), int(start) + 6) for start in starts]
        parts.append(Part(np.stack(audio), np.stack(visual), tuple(events)))
    train, validation, test = _standardised(parts)
    told = f"a stand-in: {len(train)} + {len(validation)} + {len(test)} videos of moving digits ({source.source})"
    return Task("stand-in", train, validation, test, told, (1, 2), crops=(20,), length=7)


def _sound(places: Array, rng: np.random.Generator) -> Array:
    """Bands (T, 40) for positions (T, 2) of the digit's corner, 0 to 36."""
    bands = np.arange(20)
    middle = places[..., None] / (tmnist.CANVAS - tmnist.DIGIT) * 19
    bumps = np.exp(-(((bands - middle) / 2) ** 2)).reshape(len(places), -1)
    return np.asarray(bumps + 0.3 * rng.normal(size=bumps.shape), np.float32)


def _standardised(parts: list[Part]) -> list[Part]:
    """Standardize every feature with the mean and deviation of the first part, the training streams."""
    done = []
    for part in parts:
        scaled = []
        for stream, known in ((part.audio, parts[0].audio), (part.visual, parts[0].visual)):
            mean, deviation = known.mean(axis=(0, 1)), known.std(axis=(0, 1))
            scaled.append(((stream - mean) / np.maximum(deviation, 1e-4)).astype(np.float32))
        done.append(replace(part, audio=scaled[0], visual=scaled[1]))
    return done
