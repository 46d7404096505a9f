"""Transcripts of YouCook2: what is said in a cooking video, by sentence, and which sentences describe a step.

This is a text-only step-localization problem: X are the sentences, Z are the steps of the recipe, and most of X is
chatter. The file `yc2_transcripts.json` (or .gz) is `{video: {title, times, sentences, key_steps, steps}}`: the start
of each sentence in seconds, the sentence, the step that it describes in the words of an annotator (or null), and
YouCook2's own segments (`[{segment, sentence}]`, or null if they are not published).
"""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any, Final, Literal

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.data.features import Embed, default_embed
from reproduction.data.records import Record, find, read_json, wrong
from reproduction.data.steps import StepDataset, StepVideo

FILE: Final = "yc2_transcripts.json"
LONGEST: Final = 20.0
"""Maximum duration of a sentence in seconds: one in twenty is followed by a pause, which is not part of it."""

Kind = Literal["key", "recipe"]


def load(
    place: str | os.PathLike[str],
    *,
    steps: Kind = "key",
    embed: Embed | None = None,
    empty: bool = False,
    cache: int = 64,
) -> StepDataset:
    """The transcripts as a data set. A frame is a sentence; it lasts until the next one, but at most LONGEST seconds.

    steps : "key": the steps that annotators found in these sentences, each with the sentences that describe it;
        "recipe": YouCook2's steps, with their times in the video.
    embed : maps texts to (n, d); by default :func:`dropdtw.text.embeddings.embed`.
    empty : include the videos without such a step.   cache : how many videos to keep in memory.

    The end of the last sentence of a video is unknown; it gets the median duration.
    """
    talks = [talk for talk in read(place, steps=steps) if empty or talk[0].step_ids]
    as_vectors = embed or default_embed()

    def video(index: int) -> StepVideo:
        record, sentences, times = talks[index]
        vectors = as_vectors([*sentences, *record.step_texts])
        frames, Z = vectors[: len(sentences)], vectors[len(sentences) :]
        return StepVideo(
            record.name,
            record.task,
            frames,
            np.array(record.step_ids, np.int64),
            record.step_texts,
            Z,
            frame_times=times,
            segments=record.segments,
        )

    return StepDataset((t[0].name for t in talks), (t[0].task for t in talks), video, cache=cache)


def read(place: str | os.PathLike[str], *, steps: Kind = "key") -> list[tuple[Record, list[str], Array]]:
    """The steps, the sentences and their times (N, 2) of every video in the file. Equal texts share an id."""
    if steps not in ("key", "recipe"):
        raise ValueError(f"steps is {steps!r}; choose 'key' or 'recipe'")
    (path,) = find(place, [FILE], "transcripts of YouCook2")[:1]
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not in the published layout: give an object {{video: {{…}}}}")
    ids: dict[str, int] = {}
    talks = []
    for name, entry in content.items():
        try:
            sentences, times = [str(s) for s in entry["sentences"]], _times(entry["times"])
            found = _key_steps(entry, times) if steps == "key" else _recipe(entry)
            if not len(sentences) == len(times) == len(entry["key_steps"]):
                raise ValueError("it needs as many times and key_steps as sentences")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise wrong(path, f"video {name}", error) from None
        record = Record(
            name,
            name,
            str(entry["title"]),
            "",
            tuple(ids.setdefault(text, len(ids)) for text, _, _ in found),
            tuple(text for text, _, _ in found),
            tuple((row, start, stop) for row, (_, start, stop) in enumerate(found)),
            float(times[-1, 1]) if len(times) else 0.0,
        )
        talks.append((record, sentences, times))
    return talks


def _times(starts: Any) -> Array:
    begin = np.asarray(starts, np.float64)
    if begin.ndim != 1 or not np.isfinite(begin).all() or (np.diff(begin) < 0).any():
        raise ValueError("its times must be seconds that do not decrease")
    last = np.median(np.diff(begin)) if len(begin) > 1 else 1.0
    following = np.append(begin[1:], begin[-1:] + last)
    return np.stack([begin, np.minimum(following, begin + LONGEST)], axis=1)


def _key_steps(entry: dict[str, Any], times: Array) -> list[tuple[str, float, float]]:
    """Adjacent sentences that describe the same step form one segment."""
    found, first = [], 0
    for text, run in groupby(entry["key_steps"]):
        stop = first + len(list(run))
        if text is not None:
            found.append((str(text), float(times[first, 0]), float(times[stop - 1, 1])))
        first = stop
    return found


def _recipe(entry: dict[str, Any]) -> list[tuple[str, float, float]]:
    found = [(str(s["sentence"]), float(s["segment"][0]), float(s["segment"][1])) for s in entry["steps"] or ()]
    return sorted(found, key=lambda step: step[1:])
