"""COIN (Tang et al. 2019): 11,827 instructional videos of 180 tasks, 778 steps.

Annotations are `COIN.json` as published, or lists of one-video objects such as `coin_train_70.json.gz`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from reproduction.data.features import Embed, Features, StepEmbeddings, step_embeddings
from reproduction.data.records import CLIP_SECONDS, Record, build, find, in_time, read_json, wrong
from reproduction.data.steps import StepDataset

SUBSETS: Final = {"training": "train", "testing": "test"}
STEP_IDS: Final = range(1, 779)
"""The ids of all steps, in the row order of a `.npy` of step embeddings."""


def records(place: str | os.PathLike[str]) -> list[Record]:
    """COIN's annotations. place : a JSON file, or a folder with `COIN.json` or else `coin*.json`; also with .gz."""
    found: dict[str, Record] = {}
    for path in find(place, ["COIN.json", "coin*.json"], "COIN annotations"):
        for video, entry in _entries(read_json(path), path):
            if video in found:
                raise ValueError(f"{path} repeats video {video}; keep one copy of the annotations")
            try:
                found[video] = _record(video, entry)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise wrong(path, f"video {video}", error) from None
    return list(found.values())


def load(
    place: str | os.PathLike[str],
    features: Features | str | os.PathLike[str],
    steps: str | os.PathLike[str] | StepEmbeddings | Embed,
    *,
    subset: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
) -> StepDataset:
    """COIN as a data set. subset : "train" or "test", None for both.   steps : a file, or see `records.build`."""
    known = records(place)
    vectors = step_embeddings(steps, STEP_IDS) if isinstance(steps, str | os.PathLike) else steps
    return build(known, features, vectors, subset=subset, clip_seconds=clip_seconds)


def _entries(content: Any, path: Path) -> list[tuple[str, Any]]:
    if isinstance(content, dict) and isinstance(content.get("database"), dict):
        return list(content["database"].items())
    if isinstance(content, list) and all(isinstance(entry, dict) for entry in content):
        return [item for entry in content for item in entry.items()]
    raise ValueError(
        f"{path} is not in a published layout: give an object with a 'database' of videos, or a list of "
        '{"video": {…}} objects'
    )


def _record(video: str, entry: dict[str, Any]) -> Record:
    return Record(
        name=video,
        video=video,
        task=str(entry["class"]),
        subset=SUBSETS[entry["subset"]],
        duration=float(entry["duration"]),
        **in_time((int(a["id"]), str(a["label"]), *_pair(a["segment"])) for a in entry["annotation"]),
    )


def _pair(segment: Any) -> tuple[float, float]:
    start, stop = segment
    return float(start), float(stop)
