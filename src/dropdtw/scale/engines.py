"""Who does the shards of a run: this process, or the actors of Ray Data. Both call the same function."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from dropdtw.pairs import _threads

if TYPE_CHECKING:
    from dropdtw.scale.run import Done, Work

BLOCKS: Final = 4096
"""Ray Data gets the shards in at most so many blocks, as every block costs the driver memory."""


def here(work: Work, todo: Sequence[int], workers: int | None, num_cpus: float, num_gpus: float) -> Iterator[Done]:
    """By threads, `workers` shards at a time (as many as there are cores by default), as they finish."""
    most = _threads(workers or -1)
    together = max(1, min(most, len(todo)))
    rest = iter(todo)
    with ThreadPoolExecutor(together) as pool:
        running = {pool.submit(work, number, most // together) for number in islice(rest, together)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(work, number, most // together) for number in islice(rest, len(done))}
            yield from (future.result() for future in done)


def in_ray(work: Work, todo: Sequence[int], workers: int | None, num_cpus: float, num_gpus: float) -> Iterator[Done]:
    """By actors, as they finish. Numbers of shards stream through Ray Data; each actor reads and writes files itself.

    A cluster that this process is connected to, or that RAY_ADDRESS names, is used; otherwise one is started on this
    machine, reachable from this machine alone, and ended afterwards.
    """
    if not todo:
        return
    ray, own = _connected()
    from dropdtw.scale.run import Done

    context = ray.data.DataContext.get_current()
    shown, context.enable_progress_bars = context.enable_progress_bars, False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        most = workers or max(1, int(ray.cluster_resources().get("CPU", 1) / num_cpus))
        stream = ray.data.from_items(
            [{"number": number} for number in todo], override_num_blocks=min(len(todo), BLOCKS)
        ).map_batches(
            _Actor,
            fn_constructor_args=(work, max(1, int(num_cpus))),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(most, len(todo))),
            num_cpus=num_cpus,
            num_gpus=num_gpus or None,
        )
        for row in stream.iter_rows():
            yield Done(int(row["number"]), str(row["failed"]))
    finally:
        context.enable_progress_bars = shown
        if own:
            ray.shutdown()


class _Actor:
    def __init__(self, work: Work, threads: int) -> None:
        self.work, self.threads = work, threads

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        done = [self.work(int(number), self.threads) for number in batch["number"]]
        return {"number": [d.number for d in done], "failed": [d.failed for d in done]}


def _connected(cpus: int | None = None) -> tuple[Any, bool]:
    """Ray, connected to a cluster, and whether this has connected it. cpus : of a cluster that is started here."""
    try:
        ray = import_module("ray")
        import_module("ray.data")
    except ImportError:
        raise ImportError("engine='ray' needs Ray: pip install 'dropdtw[ray]', or take engine='local'") from None
    if ray.is_initialized():
        return ray, False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if "RAY_ADDRESS" in os.environ:
        ray.init(**quiet)
    else:
        with _on_this_machine_alone():
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
    return ray, True


@contextmanager
def _on_this_machine_alone() -> Iterator[None]:
    """What is started inside listens on 127.0.0.1 only, and reports to nobody.

    Ray has a switch for this, meant for Windows and macOS; it is read when Ray is imported, here and in the processes
    that are started.
    """
    constants: Any = import_module("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    settings = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    settings |= {"RAY_BACKEND_LOG_LEVEL": os.environ.get("RAY_BACKEND_LOG_LEVEL", "fatal")}
    known = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        for name, value in known.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
