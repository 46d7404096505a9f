"""Data sets for step localization: lazily read videos, their splits and their batches.

A loader makes a :class:`StepDataset`; its videos are :class:`~reproduction.data.stepvideo.StepVideo`.
"""

from __future__ import annotations

import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from reproduction.data.stepvideo import BACKGROUND, Batch, StepVideo, check, collate, prototypes, replace_steps

__all__ = [
    "BACKGROUND",
    "Batch",
    "BrokenVideoError",
    "StepDataset",
    "StepVideo",
    "balanced_batches",
    "check",
    "collate",
    "prototypes",
    "replace_steps",
]

OnError = Literal["raise", "skip"]
Report = Callable[[str], None]


class BrokenVideoError(ValueError):
    """A video that cannot be used, because one of its files is missing or malformed. The message says which one."""


class StepDataset:
    """Videos by index. `names` and `tasks` are known from the start; videos are read lazily.

    names, tasks : one each per video; names are unique.   read : reads the video at an index.
    cache : how many videos to keep in memory (the most recently used).

    `data[i]` raises :class:`BrokenVideoError` for a video that cannot be read. :meth:`load`, :meth:`batches` and
    :meth:`usable` take `on_error="skip"`, which skips such videos and reports them to `report`, or else as a warning.
    """

    def __init__(
        self, names: Iterable[str], tasks: Iterable[str], read: Callable[[int], StepVideo], *, cache: int = 64
    ) -> None:
        self.names, self.tasks = tuple(names), tuple(tasks)
        if len(self.names) != len(self.tasks):
            raise ValueError(f"there are {len(self.names)} names and {len(self.tasks)} tasks; give one task per video")
        name, times = max(Counter(self.names).items(), key=lambda item: item[1], default=("", 1))
        if times > 1:
            raise ValueError(f"{times} videos are named {name}; give each a unique name")
        if cache < 0:
            raise ValueError(f"cache is {cache}; give the number of videos to keep, 0 or more")
        self._read, self._size = read, cache
        self._kept: OrderedDict[int, StepVideo] = OrderedDict()

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<StepDataset of {len(self)} videos of {len(set(self.tasks))} tasks>"

    def __getitem__(self, index: int) -> StepVideo:
        """The video at an index; negative indices count from the end."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no video {index}; there are {len(self)} videos")
        index = int(index) % len(self)
        if index not in self._kept:
            self._kept[index] = self._read(index)
        self._kept.move_to_end(index)
        video = self._kept[index]
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return video

    def __iter__(self) -> Iterator[StepVideo]:
        return (self[index] for index in range(len(self)))

    def load(
        self, indices: Iterable[int], *, on_error: OnError = "raise", report: Report | None = None
    ) -> list[StepVideo]:
        """The videos at these indices. With on_error="skip", broken ones are skipped and reported."""
        return [video for _, video in self._good(indices, on_error, report)]

    def usable(self, *, on_error: OnError = "skip", report: Report | None = None) -> StepDataset:
        """The data set without its broken videos. Reads every video once."""
        return self.subset([index for index, _ in self._good(range(len(self)), on_error, report)])

    def batches(
        self,
        batches: Iterable[Sequence[int]],
        *,
        on_error: OnError = "raise",
        report: Report | None = None,
    ) -> Iterator[Batch]:
        """Padded batches of these indices (see :func:`balanced_batches`); a batch of only broken videos is skipped."""
        for indices in batches:
            videos = self.load(indices, on_error=on_error, report=report)
            if videos:
                yield collate(videos)

    def subset(self, indices: Iterable[int]) -> StepDataset:
        """Some of the videos, in the given order; cached videos are shared."""
        chosen = [range(len(self))[index] for index in indices]
        return StepDataset(
            (self.names[i] for i in chosen), (self.tasks[i] for i in chosen), lambda k: self[chosen[k]], cache=0
        )

    def split_by(self, parts: Mapping[str, Collection[str]]) -> dict[str, StepDataset]:
        """Split the data set into parts by video name. Some videos may be left out; every name must exist."""
        place = {name: index for index, name in enumerate(self.names)}
        used: dict[str, str] = {}
        for part, names in parts.items():
            for name in names:
                if name not in place:
                    raise ValueError(f"part {part!r} has a video {name!r}, which is not in this data set")
                if name in used:
                    raise ValueError(f"video {name!r} is in part {used[name]!r} and in part {part!r}; choose one")
                used[name] = part
        return {part: self.subset(sorted(place[name] for name in names)) for part, names in parts.items()}

    def split(self, shares: Mapping[str, float] | None = None, *, seed: int = 0) -> dict[str, StepDataset]:
        """Split the data set randomly, stratified by task and determined by the seed.

        shares : fractions of each task that sum to 1; by default 70 % train, 15 % val and 15 % test. Sizes that are not
        whole are rounded up or down at random, so that the shares hold on average over many tasks.
        """
        wanted = {"train": 0.7, "val": 0.15, "test": 0.15} if shares is None else dict(shares)
        if not wanted or min(wanted.values()) < 0 or not np.isclose(sum(wanted.values()), 1):
            raise ValueError(f"shares are {wanted}; give fractions >= 0 that sum to 1")
        edges = np.cumsum(list(wanted.values()))[:-1]
        rng = np.random.default_rng(seed)
        chosen: dict[str, list[int]] = {part: [] for part in wanted}
        for members in _shuffled(self.tasks, rng).values():
            inner = np.floor(edges * len(members) + rng.random()).astype(int)
            for part, start, stop in zip(wanted, [0, *inner], [*inner, len(members)], strict=True):
                chosen[part] += members[start:stop]
        return {part: self.subset(sorted(indices)) for part, indices in chosen.items()}

    def _good(
        self, indices: Iterable[int], on_error: OnError, report: Report | None
    ) -> Iterator[tuple[int, StepVideo]]:
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error is {on_error!r}; choose 'raise' or 'skip'")
        for index in indices:
            try:
                yield index, self[index]
            except BrokenVideoError as error:
                if on_error == "raise":
                    raise
                message = f"left out {self.names[index]}: {error}"
                if report is None:
                    warnings.warn(message, stacklevel=3)
                else:
                    report(message)


def balanced_batches(
    tasks: Sequence[Hashable],
    classes: int = 8,
    per_class: int = 3,
    *,
    seed: int = 0,
    epoch: int = 0,
    complete: bool = False,
) -> list[list[int]]:
    """Batches of indices for one epoch: `classes` tasks with `per_class` videos each. The paper trains on 8 × 3.

    tasks : the task of every video.

    Every video occurs exactly once, and no batch has a task twice. If the number of videos of a task is not a multiple
    of `per_class`, one of its groups is smaller. When too few tasks are left, the last batches have fewer tasks.
    `complete=True` leaves out such groups and batches, so that all batches are full; some videos then have to wait for
    another epoch. The same (seed, epoch) gives the same batches.

    >>> sorted(len(batch) for batch in balanced_batches(["tea"] * 4 + ["jam"] * 3, classes=2))
    [1, 6]
    """
    for name, value in (("classes", classes), ("per_class", per_class)):
        if value < 1:
            raise ValueError(f"{name} is {value}; give an integer of at least 1")
    rng = np.random.default_rng([seed, epoch])
    groups = {
        task: [members[k : k + per_class] for k in range(0, len(members), per_class)]
        for task, members in _shuffled(tasks, rng).items()
    }
    if complete:
        groups = {task: [g for g in parts if len(g) == per_class] for task, parts in groups.items()}
    left = [task for task, parts in groups.items() if parts]
    batches: list[list[int]] = []
    while len(left) >= (classes if complete else 1):
        # Tasks with the most groups left come first, so that none is left over alone; ties are broken at random.
        chance = rng.permutation(len(left))
        turn = sorted(range(len(left)), key=lambda t: (-len(groups[left[t]]), chance[t]))[:classes]
        batches.append([index for t in turn for index in groups[left[t]].pop(0)])
        left = [task for task in left if groups[task]]
    return [batches[b] for b in rng.permutation(len(batches))]


def _shuffled(tasks: Sequence[Hashable], rng: np.random.Generator) -> dict[Hashable, list[int]]:
    """The indices of each task in random order; tasks in the order in which they first appear."""
    members: dict[Hashable, list[int]] = {}
    for index, task in enumerate(tasks):
        members.setdefault(task, []).append(index)
    return {task: [indices[k] for k in rng.permutation(len(indices))] for task, indices in members.items()}
