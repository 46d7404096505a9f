"""`tmnist-steps`, a public stand-in for instructional videos: procedures made of TMNIST clips.

A task is an ordered list of three to eight events, each a TMNIST class; in some tasks one event comes twice. A video of
the task shows its events in order, with background between them: clips of classes that belong to no step of the task,
and blurred passages. In `tmnist-steps-own`, the classes of the background belong to no step of any task, so that it can
be recognized. The number of steps, their durations and the amount of background follow COIN's annotations (Tang et al.
2019); a frame stands for 3.2 seconds, as in the paper.

Step embeddings lie in the space of the frames but are imperfect, like those of texts: each is the mean code of its
class, mixed with an unrelated vector. Training can make up for that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from dropdtw.files.progress import Progress
from dropdtw.problem.inputs import Array
from reproduction.common.cache import Cache, fingerprint
from reproduction.data import mnist
from reproduction.data.steps import StepDataset, StepVideo
from reproduction.data.tmnist import CLASSES
from reproduction.steps.inference import Fold
from reproduction.steps.splits import Source, Splits

if TYPE_CHECKING:
    from reproduction.common.encoder import Encoder
    from reproduction.common.pools import Videos

CLIP_SECONDS: Final = 3.2

# From the 10,070 annotated videos of COIN that `coin.records` reads.
STEP_COUNTS: Final = {3: 0.27, 4: 0.27, 5: 0.21, 6: 0.10, 7: 0.08, 8: 0.07}
"""Probability of each number of steps: COIN's segments per video (mean 3.9) plus one, limited to 3 to 8."""
STEP_SECONDS: Final = (2.15, 1.09)
"""Mean and standard deviation of the logarithm of a segment's seconds; the median is 9 s, the mean 15."""
LEAD_SECONDS: Final = 33.0
"""Mean background before the first segment, and also after the last."""
GAP_SECONDS: Final = 8.0
"""Mean background between segments."""
REPEATED: Final = 0.39
"""Share of videos in which a step occurs more than once."""

SETS: Final = {"train": 3, "val": 1, "test": 2}
"""How many generated pairs of TMNIST sets (full digits and partial ones) supply the clips of each split."""


@dataclass(frozen=True)
class Procedures:
    """The number of tasks and videos, and how hard they are.

    videos : number of videos per task.   classes : number of TMNIST classes, for events and background.
    blurred : share of background passages that are blurred.
    imperfection : share of a step's embedding that is unrelated to it, 0 to 1.
    own : the share of classes that are background and never an event, so that background is recognizable; 0: the
        events of other tasks are the background.
    """

    tasks: int = 40
    videos: int = 30
    classes: int = 80
    imperfection: float = 0.7
    blurred: float = 0.3
    own: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """A procedure: its events as classes of the pool, in order, including repetitions."""

    name: str
    events: tuple[int, ...]


def tasks(how: Procedures, classes: int) -> list[Task]:
    """The tasks of a seed; the same for all splits."""
    rng = np.random.default_rng([how.seed, 0])
    classes = round(classes * (1 - how.own))
    found = []
    for number in range(how.tasks):
        count = int(rng.choice(list(STEP_COUNTS), p=list(STEP_COUNTS.values())))
        events = rng.choice(classes, min(count, classes - 1), replace=False).tolist()
        if rng.random() < REPEATED:
            again, where = int(rng.integers(len(events) - 1)), len(events)
            events.insert(int(rng.integers(again + 2, where + 1)), events[again])  # later, not directly after itself
        found.append(Task(f"task {number:02}", tuple(events)))
    return found


def step_embeddings(pool: Sequence[Videos], how: Procedures) -> Array:
    """(classes, d) unit vectors: the mean code of each class, mixed with a random mixture of all classes' codes."""
    rng = np.random.default_rng([how.seed, 1])
    mean = np.mean([videos.mean for videos in pool], axis=0)
    codes = [[clips[k] for videos in pool for clips in (videos.full, videos.part)] for k in range(len(pool[0].full))]
    true = _unit(np.stack([np.concatenate(clips).mean(axis=0) for clips in codes]) - mean)
    unrelated = _unit(rng.normal(size=(len(true), len(true))) @ true)
    return _unit((1 - how.imperfection) * true + how.imperfection * unrelated).astype(np.float32)


def data_set(pool: Sequence[Videos], steps: Array, how: Procedures, split: int) -> StepDataset:
    """The videos of all tasks, composed of the clips of a pool. Each `split` has different videos of the same tasks.

    steps : (classes, d), see `step_embeddings`.
    """
    all_tasks = tasks(how, len(steps))
    names = [f"{task.name}, video {k}" for task in all_tasks for k in range(how.videos)]

    def read(index: int) -> StepVideo:
        task = all_tasks[index // how.videos]
        rng = np.random.default_rng([how.seed, 2, split, index])
        return video(names[index], task, pool, steps, how, rng)

    return StepDataset(names, [task.name for task in all_tasks for _ in range(how.videos)], read, cache=len(names))


def video(
    name: str, task: Task, pool: Sequence[Videos], steps: Array, how: Procedures, rng: np.random.Generator
) -> StepVideo:
    """A video that shows the events of a task, in order."""
    first = round(len(steps) * (1 - how.own)) if how.own else 0
    others = np.setdiff1d(np.arange(first, len(steps)), task.events)
    frames: list[Array] = []
    segments: list[tuple[int, float, float]] = []
    at = 0

    def background(seconds: float) -> None:
        nonlocal at
        left = round(rng.exponential(seconds) / CLIP_SECONDS)
        while left > 0:
            length = min(left, int(rng.integers(2, 9)))
            if rng.random() < how.blurred:
                frames.append(_passage(pool, "blurred", int(rng.integers(first, len(steps))), length, rng))
            else:
                frames.append(_passage(pool, "part", int(rng.choice(others)), length, rng))
            left, at = left - length, at + length

    for row, event in enumerate(task.events):
        background(GAP_SECONDS if row else LEAD_SECONDS)
        length = int(np.clip(round(rng.lognormal(*STEP_SECONDS) / CLIP_SECONDS), 1, 20))
        frames.append(_passage(pool, "full", event, length, rng))
        segments.append((row, at * CLIP_SECONDS, (at + length) * CLIP_SECONDS))
        at += length
    background(LEAD_SECONDS)
    events = list(task.events)
    texts = [f"event {event}" for event in events]
    return StepVideo(
        name,
        task.name,
        np.concatenate(frames),
        np.array(events),
        tuple(texts),
        steps[events],
        clip_seconds=CLIP_SECONDS,
        segments=tuple(segments),
    )


def _passage(pool: Sequence[Videos], kind: str, event: int, length: int, rng: np.random.Generator) -> Array:
    """`length` frames of a random clip of a class, in order and spread over its trajectory."""
    codes: Array = getattr(pool[int(rng.integers(len(pool)))], kind)[event]
    return codes[np.sort(rng.choice(len(codes), length, replace=length > len(codes)))]


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


Make = Callable[["Sequence[Videos]", Array, Procedures, int], StepDataset]
"""A function with the signature of `data_set`: makes a split from a pool, steps, procedures and the split's number."""


def splits(source: Source, seed: int, make: Make = data_set, own: float = 0.0) -> Splits:
    """The data of a seed; the encoder and the clips are the same for all seeds.

    make : makes a split from clips.   own : see `Procedures`.
    """
    from reproduction.common import pools

    data = mnist.load(None if source.mnist is None else str(source.mnist))
    cache = Cache(source.cache)
    how = Procedures(seed=seed, own=own)
    path = None if source.encoder is None else str(source.encoder)
    if not source.quick:
        return compose(pools.trained_encoder(data, cache, path=path), data, how, 6, cache, make=make)
    encoder = pools.trained_encoder(data, cache, path=path, epochs=4, batch=25, digits=400)
    how = replace(how, tasks=4, videos=5, classes=10)
    return compose(encoder, data, how, 2, cache, make=make, sets=dict.fromkeys(SETS, 1))


def key(source: Source, own: float = 0.0) -> str:
    """A fingerprint of everything that the data depend on, except the seed."""
    from reproduction.common import pools

    weights = "" if source.encoder is None else source.encoder.read_bytes().hex()
    named = None if source.mnist is None else str(source.mnist)
    return fingerprint(sys.modules[__name__], pools, asdict(Procedures(own=own)), source.quick, weights, named)


def folds(source: Source, own: float = 0.0) -> list[Fold]:
    """One fold, with the features before training."""
    from reproduction.steps.training import untrained

    return [untrained(splits(source, 0, own=own))]


OWN: Final = 0.2
"""Share of classes that are background in `tmnist-steps-own`: the digits 8 and 9."""
own_splits = partial(splits, own=OWN)
own_key = partial(key, own=OWN)
own_folds = partial(folds, own=OWN)


def compose(
    encoder: Encoder,
    data: mnist.Mnist,
    how: Procedures,
    held_out: int,
    cache: Cache,
    progress: Progress = None,
    make: Make = data_set,
    sets: Mapping[str, int] = SETS,
) -> Splits:
    """Three splits with different digits, none of which the encoder was trained on.

    how.videos : training videos per task.   held_out : validation videos per task, and as many for testing.
    sets : see `SETS`.
    """
    from reproduction.common import pools

    classes = [CLASSES[k] for k in np.linspace(0, len(CLASSES) - 1, how.classes).round().astype(int)]
    # A quarter of the digits is for validation and a quarter for testing: no image is in two splits.
    share = {"train": (0, 1), "val": (2,), "test": (3,)}
    encoded: dict[str, list[Videos]] = {}
    for number, (name, count) in enumerate(sets.items()):
        mine = np.isin(np.arange(len(data.test_labels)) // 10 % 4, share[name])
        part = replace(data, test_images=data.test_images[mine], test_labels=data.test_labels[mine])
        seeds = [10_000 + 100 * number + k for k in range(count)]
        encoded[name] = pools.encode(encoder, part, seeds, classes, cache, progress)
    steps = step_embeddings(encoded["train"], how)
    made = []
    for number, (name, pool) in enumerate(encoded.items()):
        count = how.videos if name == "train" else held_out
        made.append(make(pool, steps, replace(how, videos=count), number))
    return Splits(*made)
