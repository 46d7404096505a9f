"""CaptainCook4D (Peddi et al. 2024): people cook 24 recipes, whose steps form a partial order.

Read from a folder with the published files. `complete_step_annotations.json`, plain or with .gz, has the start and end
of each step of a recording. `task_graphs/*.json` hold one recipe each: its steps, and which come before which.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from dropdtw.orders import Order, before
from dropdtw.orders.poset import Poset
from reproduction.data.features import Embed, Features, StepEmbeddings, step_embeddings
from reproduction.data.records import CLIP_SECONDS, Record, build, find, read_json, wrong
from reproduction.data.steps import StepDataset

ANNOTATIONS: Final = "complete_step_annotations.json"
ENDS: Final = ("START", "END")
"""Nodes of a task graph that are not steps."""


@dataclass(frozen=True)
class Recipe:
    """A task graph.

    name : the name of its file.   steps : their texts, numbered from 0 in file order.
    pairs : (a, b) for "a comes before b".   first_id : the id of its first step; ids count over all recipes.
    """

    name: str
    steps: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    first_id: int = 0

    @cached_property
    def order(self) -> Order:
        """The partial order of its steps."""
        return before(len(self.steps), self.pairs)

    @cached_property
    def poset(self) -> Poset:
        """The same partial order as a `Poset`."""
        return Poset(len(self.steps), self.pairs)

    @property
    def listed(self) -> list[int]:
        """Its steps as a list that respects the partial order: the recipe as it would be printed."""
        return self.poset.by_rank


def recipes(place: str | os.PathLike[str]) -> dict[str, Recipe]:
    """All recipes by file name, in alphabetical order."""
    found: dict[str, Recipe] = {}
    first = 0
    for path in find(Path(place) / "task_graphs", ["*.json"], "task graphs of CaptainCook4D"):
        try:
            name = path.name.removesuffix(".gz").removesuffix(".json")
            found[name] = _recipe(name, read_json(path), first)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise wrong(path, "steps and edges of a recipe", error) from None
        first += len(found[name].steps)
    return found


def records(place: str | os.PathLike[str]) -> list[Record]:
    """The annotations of all recordings: the recipe's steps, and their segments in order of time.

    A step may have several segments, or none if it was not done. Segments are assigned to steps by text, to the first
    of equal texts; a segment whose text is not in the task graph is left out.
    """
    (path,) = find(place, [ANNOTATIONS], "annotations of CaptainCook4D")
    by_name = {_letters(name): recipe for name, recipe in recipes(path.parent).items()}
    found = []
    content = read_json(path)
    if not isinstance(content, dict):
        raise wrong(path, "an object of recordings", ValueError(f"it holds a {type(content).__name__}"))
    for name, entry in content.items():
        try:
            activity = str(entry["activity_name"])
            if _letters(activity) not in by_name:
                raise ValueError(f"there is no task graph for {activity!r} in task_graphs/")
            found.append(_record(name, by_name[_letters(activity)], entry["steps"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise wrong(path, f"recording {name}", error) from None
    return found


def load(
    place: str | os.PathLike[str],
    features: Features | str | os.PathLike[str],
    steps: str | os.PathLike[str] | StepEmbeddings | Embed,
    *,
    clip_seconds: float = CLIP_SECONDS,
) -> StepDataset:
    """CaptainCook4D as a data set. Each recording has the steps of its recipe; `recipes` gives their orders.

    steps : a file, or see `records.build`. The rows of a `.npy` follow `recipes`, step by step.
    """
    known = records(place)
    vectors = steps
    if isinstance(vectors, str | os.PathLike):
        vectors = step_embeddings(vectors, range(sum(len(recipe.steps) for recipe in recipes(place).values())))
    return build(known, features, vectors, clip_seconds=clip_seconds)


def done(record: Record) -> list[int]:
    """The steps that were done, in the order of their first start."""
    return list(dict.fromkeys(row for row, _, _ in sorted(record.segments or (), key=lambda s: s[1])))


@dataclass(frozen=True)
class Followed:
    """How many recordings follow their recipe as a list, or as a partial order, and how many repeat a step."""

    recordings: int
    listed: int
    graph: int
    repeat: int

    def __str__(self) -> str:
        return (
            f"{self.recordings} recordings: {self.listed} follow the recipe as a list, {self.graph} its task graph, "
            f"{self.repeat} repeat a step"
        )


def followed(known: Iterable[Record], by_name: Mapping[str, Recipe]) -> Followed:
    """Count the recordings that follow their recipe. Compares when each step first starts; steps may be missing."""
    counts: Counter[str] = Counter()
    for record in known:
        poset = by_name[record.task].poset
        begun: dict[int, float] = {}
        for row, start, _ in record.segments or ():
            begun[row] = min(start, begun.get(row, math.inf))
        ranks = [poset.rank[row] for row in done(record)]
        counts["recordings"] += 1
        counts["listed"] += all(a < b for a, b in pairwise(ranks))
        counts["graph"] += all(begun[u] < begun[v] for v in begun for u in begun if poset.below[v] >> u & 1)
        counts["repeat"] += len(record.segments or ()) > len(begun)
    return Followed(counts["recordings"], counts["listed"], counts["graph"], counts["repeat"])


def _recipe(name: str, content: Any, first: int) -> Recipe:
    texts = {int(number): str(text) for number, text in content["steps"].items()}
    known = {number: row for row, number in enumerate(n for n in sorted(texts) if texts[n] not in ENDS)}
    if not known:
        raise ValueError("it has no steps except START and END")
    pairs = []
    for edge in content["edges"]:
        a, b = map(int, edge)
        if not {a, b} <= set(texts):
            raise ValueError(f"the edge {[a, b]} has a step that is not listed")
        if {a, b} <= set(known):
            pairs.append((known[a], known[b]))
    recipe = Recipe(name, tuple(texts[number] for number in known), tuple(pairs), first)
    _ = recipe.poset  # raises on a cycle
    return recipe


def _record(name: str, recipe: Recipe, steps: Any) -> Record:
    rows: dict[str, int] = {}
    for row, text in enumerate(recipe.steps):
        rows.setdefault(_letters(text), row)
    segments = []
    for step in steps:
        start, stop, found = float(step["start_time"]), float(step["end_time"]), rows.get(_letters(step["description"]))
        if start < 0 or found is None:  # steps that were not done have negative times
            continue
        if not start <= stop < math.inf:
            raise ValueError(f"a step lasts from {start} to {stop} s")
        segments.append((found, start, stop))
    return Record(
        name=name,
        video=name,
        task=recipe.name,
        subset="",
        step_ids=tuple(range(recipe.first_id, recipe.first_id + len(recipe.steps))),
        step_texts=recipe.steps,
        segments=tuple(sorted(segments, key=lambda s: (s[1], s[2], s[0]))),
    )


def _letters(text: str) -> str:
    """The text without case, spaces and punctuation, to compare spellings."""
    return "".join(c for c in text.lower() if c.isalnum())
