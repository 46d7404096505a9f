"""AVE (Tian et al. 2018): 4,143 videos of ten seconds, each with an event that is heard and seen during some of them.

Read from a folder in the published layout. `Annotations.txt` has a line `class&video id&quality&start&end` (seconds)
for each video. In the same order, `labels_closs.h5` (n, 10) is 1 where a second shows the event, and `audio_feature.h5`
(n, 10, 128) and `visual_feature_vec.h5` (n, 10, 512) hold the features. `{train,val,test}_order_match.h5` list the
videos in each split of the cross-modality localization task.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array, runs
from reproduction.data.records import wrong

SECONDS: Final = 10
SPLITS: Final = ("train", "val", "test")
FEATURES: Final = {"audio_feature.h5": 128, "visual_feature_vec.h5": 512}
"""The feature files, and the number of features per second in each."""


@dataclass(frozen=True)
class Annotation:
    """A line of Annotations.txt: seconds [start, stop) show the event. In a few videos the span is empty."""

    event: str
    video: str
    quality: str
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Streams:
    """Pairs of audio and visual sequences from the same video, with the location of the events.

    audio : (n, T, d_a).   visual : (n, T, d_v).   labels : (n, T) bool, which elements belong to the event.
    """

    audio: Array
    visual: Array
    labels: Array

    def __post_init__(self) -> None:
        n, T = self.labels.shape
        if self.audio.shape[:2] != (n, T) or self.visual.shape[:2] != (n, T):
            raise ValueError(
                f"audio is {self.audio.shape}, visual {self.visual.shape} and labels {self.labels.shape}; "
                "give the same number of sequences, of the same length, in each"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def only(self, which: Array) -> Streams:
        """A subset of the pairs."""
        return Streams(self.audio[which], self.visual[which], self.labels[which])


def read_annotations(folder: str | os.PathLike[str]) -> list[Annotation]:
    """The lines of Annotations.txt, in order; a header line is skipped."""
    path = Path(folder) / "Annotations.txt"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give the folder of AVE")
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in line.split("&")]
        if not line.strip() or (number == 1 and not cells[-1].isdigit()):
            continue
        try:
            event, video, quality, start, stop = cells
            found.append(Annotation(event, video, quality, int(start), int(stop)))
            if not 0 <= found[-1].start <= found[-1].stop <= SECONDS:
                raise ValueError(f"seconds {start} to {stop} do not satisfy 0 ≤ start ≤ end ≤ {SECONDS}")
        except ValueError as error:
            raise wrong(path, f"line {number} should be class&video&quality&start&end", error) from None
    return found


def orders(folder: str | os.PathLike[str], task: str = "match") -> dict[str, Array]:
    """The video numbers of each split. task : "match" for localization, "" for classification."""
    end = f"_{task}" if task else ""
    return {split: _dataset(Path(folder) / f"{split}_order{end}.h5", "order") for split in SPLITS}


def labels(folder: str | os.PathLike[str]) -> Array:
    """(n, 10) bool: which seconds of each video show the event."""
    found = _dataset(Path(folder) / "labels_closs.h5", "avadataset")
    if found.ndim != 2 or found.shape[1] != SECONDS:
        raise ValueError(f"labels_closs.h5 has shape {found.shape}; expected (n, {SECONDS}); download it again")
    return np.asarray(found > 0)


def has_features(folder: str | os.PathLike[str]) -> bool:
    """Whether the feature files are there; they are published separately from the annotations."""
    return all((Path(folder) / name).is_file() for name in FEATURES)


def load(folder: str | os.PathLike[str]) -> Mapping[str, Streams]:
    """The three splits of the cross-modality localization task."""
    place = Path(folder)
    marked = labels(place)
    parts = []
    for name, numbers in FEATURES.items():
        if not (place / name).is_file():
            raise FileNotFoundError(
                f"{place / name} does not exist; the features of AVE are published separately from the annotations: "
                f"download {' and '.join(FEATURES)}"
            )
        found = _dataset(place / name, "avadataset")
        if found.shape != (len(marked), SECONDS, numbers):
            raise ValueError(
                f"{place / name} has shape {found.shape}; expected {(len(marked), SECONDS, numbers)}, one row per "
                "video of labels_closs.h5"
            )
        parts.append(found.astype(np.float32))
    audio, visual = parts
    whole = Streams(audio, visual, marked)
    chosen = orders(place)
    for split, rows in chosen.items():
        if rows.size == 0 or rows.min() < 0 or rows.max() >= len(whole):
            raise ValueError(f"{split}_order_match.h5 lists videos outside 0 to {len(whole) - 1}; download it again")
    return {split: whole.only(rows) for split, rows in chosen.items()}


def event(marked: Array) -> tuple[int, int] | None:
    """The span [start, stop) of the event in a row of labels; None if there is no event, or more than one span."""
    found = runs(marked)
    return found[0] if len(found) == 1 else None


def _dataset(path: Path, name: str) -> Array:
    try:
        import h5py
    except ImportError:
        raise ImportError("AVE's files need h5py: make setup") from None
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give the folder of AVE")
    try:
        with h5py.File(path, "r") as file:
            return np.asarray(file[name][()])
    except (OSError, KeyError, ValueError) as error:
        raise wrong(path, f"it should hold a dataset {name!r}", error) from None
