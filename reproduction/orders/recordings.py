"""Recordings of recipes with real orders, durations and gaps, and **simulated** features.

CaptainCook4D's annotations give the start and end of each step; its video features are not used. A frame of a step is
the step's vector plus noise; a frame between steps has an independent direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array
from dropdtw.problem.spec import Spec
from reproduction.data import captaincook4d
from reproduction.data.captaincook4d import Recipe, followed
from reproduction.data.records import Record
from reproduction.data.steps import StepVideo
from reproduction.orders.random_orders import random_extension, random_pairs

DIM: Final = 32
"""Dimension of a simulated feature."""
TAIL: Final = 6.0
"""Seconds of a recording after its last step."""
SHARED: Final = 0.6
"""Weight of the direction shared by all steps and background frames of a recipe."""
STRAY: Final = 0.1
"""Share of a step's frames that show a random step, and of background frames where the scene changes."""
KEPT: Final = 0.25
"""Weight of the undistorted part of a frame; the rest is rotated."""


@dataclass(frozen=True, eq=False)
class Recordings:
    """Recordings and their recipes by task name. source : a description with the number of recordings."""

    recipes: Mapping[str, Recipe]
    records: Sequence[Record]
    source: str

    def recipe(self, record: Record) -> Recipe:
        """The recipe of a recording."""
        return self.recipes[record.task]

    def parts(self, seed: int, *sizes: int) -> list[list[Record]]:
        """Random disjoint parts of these sizes, scaled down in proportion if there are too few recordings."""
        shuffled = [self.records[k] for k in np.random.default_rng([seed, 11]).permutation(len(self.records))]
        scale = min(1.0, len(shuffled) / sum(sizes))
        edges = np.floor(scale * np.cumsum(sizes)).astype(int).tolist()
        return [shuffled[a:b] for a, b in zip([0, *edges], edges, strict=False)]


def of_captaincook4d(folder: str, most_nodes: int | None = None) -> Recordings:
    """Load CaptainCook4D's recordings. most_nodes : skip recipes with larger graphs."""
    recipes = captaincook4d.recipes(folder)
    if most_nodes is not None:
        recipes = {name: recipe for name, recipe in recipes.items() if nodes(recipe) <= most_nodes}
    records = [r for r in captaincook4d.records(folder) if r.task in recipes and r.segments]
    return Recordings(recipes, records, f"CaptainCook4D, {len(recipes)} recipes, {followed(records, recipes)}")


def nodes(recipe: Recipe) -> int:
    """Number of nodes in the graph for one-sided, exclusive alignments of a recipe."""
    if recipe.order.is_plain:
        return len(recipe.steps) + 1
    return len(recipe.order.graph(Spec.of(0.0, method="steps").table).label)


def stand_in(recordings: int, seed: int, recipes: int = 6) -> Recordings:
    """A stand-in: recordings of random recipes, with all steps in an order that the recipe allows."""
    rng = np.random.default_rng([seed, 5])
    known: dict[str, Recipe] = {}
    for number in range(recipes):
        steps = list(range(int(rng.integers(5, 9))))
        texts = tuple(f"step {step}" for step in steps)
        first = sum(len(recipe.steps) for recipe in known.values())
        known[f"recipe {number}"] = Recipe(
            f"recipe {number}", texts, tuple(random_pairs(steps, len(steps) / 2, rng)), first
        )
    records = []
    for number in range(recordings):
        recipe = list(known.values())[number % recipes]
        at, segments = 0.0, []
        for row in random_extension(recipe.poset, rng):
            at += rng.exponential(8.0)
            segments.append((row, at, at + 4.0 + rng.exponential(12.0)))
            at = segments[-1][2]
        ids = tuple(range(recipe.first_id, recipe.first_id + len(recipe.steps)))
        records.append(Record(f"recording {number}", "", recipe.name, "", ids, recipe.steps, tuple(segments)))
    return Recordings(known, records, f"a stand-in, {recipes} random recipes, {followed(records, known)}")


def noisy(record: Record, recipe: Recipe, noise: float, seed: int, seconds: float = 2.0) -> StepVideo:
    """A recording for inference: simulated frames in the space of the steps, with a direction shared by all of them.

    noise : length of the vector added to each frame, which is a unit vector.   seconds : duration of a frame.
    """
    own, others = _chance(seed, recipe.name), _chance(seed, record.name, round(100 * noise))
    common = _unit(own.normal(size=DIM))
    Z = _unit(_unit(own.normal(size=(len(recipe.steps), DIM))) + SHARED * common)
    video = _blank(record, Z, seconds)
    X = np.empty((len(video.frames), DIM))
    for j, row in enumerate(video.rows):
        if row >= 0:
            X[j] = Z[row if others.random() > STRAY else others.integers(len(Z))]
        elif j > 0 and video.rows[j - 1] < 0 and others.random() > STRAY:
            X[j] = X[j - 1]
        else:
            X[j] = _unit(_unit(others.normal(size=DIM)) + SHARED * common)
    return replace(video, frames=_with_noise(X, noise, others))


def distorted(record: Record, recipe: Recipe, seed: int, noise: float = 1.5, seconds: float = 5.0) -> StepVideo:
    """A recording for training: simulated frames are partly rotated, with the same rotation everywhere.

    A linear map can undo the distortion; training learns that map.
    """
    own, others = _chance(seed, recipe.name), _chance(seed, record.name)
    Z = _unit(own.normal(size=(len(recipe.steps), DIM)))
    rotation = np.linalg.qr(_chance(seed, "rotation").normal(size=(DIM, DIM)))[0]
    video = _blank(record, Z, seconds)
    background = _unit(others.normal(size=(len(video.frames), DIM)))
    X = np.where(video.rows[:, None] >= 0, Z[video.rows], background)
    return replace(video, frames=_with_noise(_unit(KEPT * X + (1 - KEPT) * X @ rotation), noise, others))


def _blank(record: Record, Z: Array, seconds: float) -> StepVideo:
    """The recording with zero frames."""
    assert record.segments is not None
    length = int((max(stop for _, _, stop in record.segments) + TAIL) / seconds)
    return StepVideo(
        record.name,
        record.task,
        np.zeros((length, DIM)),
        np.array(record.step_ids),
        record.step_texts,
        Z,
        clip_seconds=seconds,
        segments=record.segments,
    )


def _with_noise(X: Array, noise: float, rng: np.random.Generator) -> Array:
    return np.asarray(X + noise * rng.normal(size=X.shape) / np.sqrt(DIM))


def _chance(seed: int, name: str, more: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, more, *name.encode()])


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))
