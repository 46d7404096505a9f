"""CrossTask (Zhukov et al. 2019): 2,750 annotated videos of 18 primary tasks, and videos of 65 related tasks.

Read from the release as published: a folder with `tasks_primary.txt`, `tasks_related.txt`, `videos.csv`,
`videos_val.csv` and `annotations/<task>_<video>.csv`, or the packed `crosstask_release.tar.gz` or `.zip`, which is
read in place.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from reproduction.data.features import Embed, Features, StepEmbeddings, step_embeddings
from reproduction.data.records import CLIP_SECONDS, Record, build, in_time, wrong
from reproduction.data.steps import StepDataset

PACKED: Final = ("crosstask_release.tar.gz", "crosstask_release.tar", "crosstask_release.zip")


@dataclass(frozen=True)
class Task:
    """A task and its steps. first_id : the id of its first step; steps are numbered over all tasks, primary first."""

    number: str
    title: str
    steps: tuple[str, ...]
    first_id: int
    primary: bool


def tasks(place: str | os.PathLike[str]) -> dict[str, Task]:
    """All tasks by number: the primary ones in file order, then the related ones."""
    return _tasks(_release(place), Path(place))


def records(
    place: str | os.PathLike[str], *, order: Literal["video", "task"] = "video", unannotated: bool = False
) -> list[Record]:
    """CrossTask's annotations. The subset is "val" for videos in videos_val.csv, else "train".

    order : "video": the steps as they happen in the video, one segment each (the supervision that the paper uses);
        "task": the task's list of steps, each with all its segments, or none.
    unannotated : include the videos without ground truth (all related tasks), with their task's list of steps.
    """
    if order not in ("video", "task"):
        raise ValueError(f"order is {order!r}; choose 'video' or 'task'")
    where, files = Path(place), _release(place)
    known = _tasks(files, where)
    listed, held_out = _videos(files, "videos.csv", where), set(_videos(files, "videos_val.csv", where))
    found = []
    for number, video in listed:
        name = f"annotations/{number}_{video}.csv"
        if number not in known:
            raise wrong(where / "videos.csv", f"video {video}", ValueError(f"task {number} is in neither task list"))
        task = known[number]
        if name in files:
            try:
                steps = _in_order(_segments(files[name], task), task, order)
            except (ValueError, UnicodeDecodeError) as error:
                raise wrong(where / name, "each line should be step,start,stop", error) from None
        elif unannotated:
            steps = {**_in_order([], task, "task"), "segments": None}
        else:
            continue
        subset = "val" if (number, video) in held_out else "train"
        found.append(Record(name=f"{number}_{video}", video=video, task=task.title, subset=subset, **steps))
    return found


def load(
    place: str | os.PathLike[str],
    features: Features | str | os.PathLike[str],
    steps: str | os.PathLike[str] | StepEmbeddings | Embed,
    *,
    subset: str | None = None,
    order: Literal["video", "task"] = "video",
    clip_seconds: float = CLIP_SECONDS,
) -> StepDataset:
    """CrossTask as a data set of its annotated videos. subset : "train" or "val", None for both.

    steps : a file, or see `records.build`. The rows of a `.npy` must follow tasks_primary.txt, step by step, optionally
        continued by tasks_related.txt. This cannot be checked; for another row order, write an `.npz` with `step_id`.
    """
    known = records(place, order=order)
    vectors = steps
    if isinstance(vectors, str | os.PathLike):
        every = tasks(place).values()
        primary, both = (sum(len(task.steps) for task in every if task.primary or related) for related in (False, True))
        vectors = step_embeddings(vectors, range(primary), range(both))
    return build(known, features, vectors, subset=subset, clip_seconds=clip_seconds)


def _release(place: str | os.PathLike[str]) -> dict[str, bytes]:
    """The files of the release by name, from the folder or the archive."""
    where = Path(place)
    if (where / "tasks_primary.txt").exists():
        found = [path for pattern in ("*.txt", "*.csv", "annotations/*.csv") for path in where.glob(pattern)]
        return {path.relative_to(where).as_posix(): path.read_bytes() for path in found}
    packed = where if where.is_file() else next((where / name for name in PACKED if (where / name).exists()), None)
    if packed is None:
        raise FileNotFoundError(
            f"{where} has neither tasks_primary.txt nor {PACKED[0]}; give the folder of the CrossTask release"
        )
    try:
        files = _unzipped(packed) if packed.suffix == ".zip" else _untarred(packed)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{packed} cannot be unpacked ({error}); download it again") from None
    # Some archives have everything inside one folder.
    roots = [name.removesuffix("tasks_primary.txt") for name in files if Path(name).name == "tasks_primary.txt"]
    if len(roots) != 1:
        raise ValueError(f"{packed} has {len(roots)} files tasks_primary.txt, not one; give the CrossTask release")
    return {name.removeprefix(roots[0]): content for name, content in files.items()}


def _untarred(path: Path) -> dict[str, bytes]:
    files = {}
    with tarfile.open(path) as archive:  # nothing is written, so member names can do no harm
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                files[member.name.removeprefix("./")] = content.read()
    return files


def _unzipped(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _text(files: dict[str, bytes], name: str, where: Path) -> str:
    if name not in files:
        raise FileNotFoundError(f"{where} has no {name}; download the CrossTask release again")
    return files[name].decode()


def _tasks(files: dict[str, bytes], where: Path) -> dict[str, Task]:
    known: dict[str, Task] = {}
    first = 0
    for name in ("tasks_primary.txt", "tasks_related.txt"):
        # A task is five lines: number, title, URL, number of steps, and the steps, separated by commas.
        lines = [line.strip() for line in _text(files, name, where).splitlines() if line.strip()]
        for number, title, _, count, steps in zip(*[iter([*lines, *[""] * (-len(lines) % 5)])] * 5, strict=True):
            texts = tuple(step.strip() for step in steps.split(",") if step.strip())
            if count != str(len(texts)):
                raise wrong(where / name, f"task {number}", ValueError(f"{len(texts)} steps, declared as {count!r}"))
            known[number] = Task(number, title, texts, first, name == "tasks_primary.txt")
            first += len(texts)
    return known


def _videos(files: dict[str, bytes], name: str, where: Path) -> list[tuple[str, str]]:
    lines = [line.split(",") for line in _text(files, name, where).splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if len(line) < 2:
            raise wrong(where / name, f"line {number + 1}", ValueError("each line should be task,video,address"))
    return [(task.strip(), video.strip()) for task, video, *_ in lines]


def _segments(content: bytes, task: Task) -> list[tuple[int, float, float]]:
    """Parse lines of step (1-based), start, stop into (0-based step, start, stop)."""
    found = []
    for line in content.decode().split():
        step, start, stop = line.split(",")
        if not 1 <= int(step) <= len(task.steps):
            raise ValueError(f"it has step {step} of task {task.title}, which has {len(task.steps)} steps")
        found.append((int(step) - 1, float(start), float(stop)))
    return found


def _in_order(segments: list[tuple[int, float, float]], task: Task, order: str) -> dict[str, Any]:
    """Steps and segments as the fields of a Record."""
    if order == "video":
        return in_time((task.first_id + step, task.steps[step], start, stop) for step, start, stop in segments)
    return {
        "step_ids": tuple(range(task.first_id, task.first_id + len(task.steps))),
        "step_texts": task.steps,
        "segments": tuple(sorted(segments, key=lambda s: s[1:])),
    }
