"""Independent trainings, run sequentially or in several processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from dropdtw.files.progress import Progress, Report, reporter, ticking
from reproduction.common.cache import Cache

Item = TypeVar("Item")
Place = TypeVar("Place")
Result = TypeVar("Result")
_work: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class Work:
    """The plain data that a worker process needs. The worker reads the videos itself, once (`cached_property`).

    folder : folder of the videos; None for a stand-in.   out : results are cached in `out`/cache.
    device : device to train on.
    """

    folder: str | None
    out: Path
    device: str = "cpu"

    @property
    def cache(self) -> Cache:
        """The cache of results, shared by all processes."""
        return Cache(self.out / "cache")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the fields only, without the loaded videos."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def each(
    work: Callable[[Item], object],
    items: Sequence[Item],
    processes: int = 1,
    progress: Progress = None,
    label: str = "trainings",
) -> None:
    """Call `work` on each item and discard what it returns: `work` must cache its results.

    processes : with more than one, fresh processes start and share the cores; `work` and items must be picklable.
    """
    if processes < 1:
        raise ValueError(f"processes is {processes}; give 1 or more")
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
    spawn = multiprocessing.get_context("spawn")  # after a fork, CUDA fails and threads are unsafe
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
    """Run `work` on all items with `each`, and return its results by key."""
    each(work, [item for some in items.values() for item in some], processes, progress, label)
    return {place: [work(item) for item in some] for place, some in items.items()}


def _start(work: Callable[[Any], object], threads: int) -> None:
    global _work
    _work = work
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.set_num_threads(min(threads, torch.get_num_threads()))  # OMP_NUM_THREADS may set fewer


def _do(item: object) -> None:
    assert _work is not None
    _work(item)
