"""Trainings that do not need each other, one after the other or in several processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from dropdtw.experiments.common.cache import Cache
from dropdtw.files.progress import Progress, Report, reporter, ticking

Item = TypeVar("Item")
Place = TypeVar("Place")
Result = TypeVar("Result")
_work: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class Work:
    """What a process must know to do its share, as plain data; videos it reads itself (`cached_property`), once.

    folder : of the videos; None: a stand-in.   out : results are kept in `out`/cache.   device : to train on.
    """

    folder: str | None
    out: Path
    device: str = "cpu"

    @property
    def cache(self) -> Cache:
        """Where results are, for this process and the others."""
        return Cache(self.out / "cache")

    def __getstate__(self) -> dict[str, Any]:
        """What other processes are sent: no videos."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def each(
    work: Callable[[Item], object],
    items: Sequence[Item],
    processes: int = 1,
    progress: Progress = None,
    label: str = "trainings",
) -> None:
    """Call `work` on each item. What it returns is not: it keeps its results, so that calling it again finds them.

    processes : more than one are started anew and share the cores; `work` and the items must be picklable.
    """
    if processes < 1:
        raise ValueError(f"there are to be {processes} processes; give 1 or more")
    report = reporter(label, progress)
    with ticking(report):
        if processes == 1 or len(items) < 2:
            for done, item in enumerate(items, 1):
                work(item)
                report(done, len(items))
        else:
            _side_by_side(work, items, processes, report)


def _side_by_side(work: Callable[[Item], object], items: Sequence[Item], processes: int, report: Report) -> None:
    count = min(processes, len(items))
    spawn = multiprocessing.get_context("spawn")  # a forked process could use neither CUDA nor, safely, threads
    with ProcessPoolExecutor(count, spawn, _start, (work, max(1, (os.cpu_count() or 1) // count))) as pool:
        waiting = [pool.submit(_do, item) for item in items]
        try:
            for done, ended in enumerate(as_completed(waiting), 1):
                ended.result()
                report(done, len(items))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def results(
    work: Callable[[Item], Result],
    items: Mapping[Place, Sequence[Item]],
    processes: int = 1,
    progress: Progress = None,
    label: str = "trainings",
) -> dict[Place, list[Result]]:
    """Do all items, and give what `work` finds for them, by their places."""
    each(work, [item for some in items.values() for item in some], processes, progress, label)
    return {place: [work(item) for item in some] for place, some in items.items()}


def _start(work: Callable[[Any], object], threads: int) -> None:
    global _work
    _work = work
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.set_num_threads(min(threads, torch.get_num_threads()))  # OMP_NUM_THREADS may say less


def _do(item: object) -> None:
    assert _work is not None
    _work(item)
