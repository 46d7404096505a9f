"""YouCook2 (Zhou et al. 2018): 2,000 cooking videos of 89 recipes, 1,790 of them with published annotations.

Every segment has its own sentence, so step ids are consecutive numbers over the whole file.
"""

from __future__ import annotations

import os
from typing import Any, Final

from reproduction.data.features import Embed, Features, StepEmbeddings, step_embeddings
from reproduction.data.records import CLIP_SECONDS, Record, build, find, in_time, read_json, wrong
from reproduction.data.steps import StepDataset

FILE: Final = "youcookii_annotations_trainval.json"
SUBSETS: Final = {"training": "train", "validation": "val"}


def records(place: str | os.PathLike[str]) -> list[Record]:
    """YouCook2's annotations. place : a folder with `FILE` (or with .gz), or the file itself."""
    (path,) = find(place, [FILE], "YouCook2 annotations")[:1]
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("database"), dict):
        raise ValueError(f"{path} is not in the published layout: give an object with a 'database' of videos")
    found: list[Record] = []
    first = 0
    for video, entry in content["database"].items():
        try:
            found.append(_record(video, entry, first))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise wrong(path, f"video {video}", error) from None
        first += len(found[-1].step_ids)
    return found


def load(
    place: str | os.PathLike[str],
    features: Features | str | os.PathLike[str],
    steps: str | os.PathLike[str] | StepEmbeddings | Embed,
    *,
    subset: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
) -> StepDataset:
    """YouCook2 as a data set. subset : "train" or "val", None for both.   steps : a file, or see `records.build`."""
    known = records(place)
    ids = [step for record in known for step in record.step_ids]
    vectors = step_embeddings(steps, ids) if isinstance(steps, str | os.PathLike) else steps
    return build(known, features, vectors, subset=subset, clip_seconds=clip_seconds)


def _record(video: str, entry: dict[str, Any], first: int) -> Record:
    return Record(
        name=video,
        video=video,
        task=str(entry["recipe_type"]),
        subset=SUBSETS[entry["subset"]],
        duration=float(entry["duration"]),
        **in_time(
            (first + k, str(a["sentence"]), float(a["segment"][0]), float(a["segment"][1]))
            for k, a in enumerate(entry["annotations"])
        ),
    )
