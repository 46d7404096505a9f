"""Who does the shards of a run: this process, or the actors of Ray Data. Both call the same `ShardWork`."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, Final

from dropdtw.corpus.folder import RunFolder
from dropdtw.corpus.records import whole
from dropdtw.corpus.tasks import Task
from dropdtw.search.pairwise import thread_count

ENGINES: Final = ("local", "ray")

BLOCKS: Final = 4096
"""Ray Data gets the shards in at most so many blocks, as every block costs the driver memory."""

RETRIES: Final = 3
"""How often a shard is tried again that its worker has died of."""


@dataclass(frozen=True)
class Done:
    """A shard that was done. bad : in a strict run, the bad record that ends it.   broke : what a worker met with."""

    number: int
    bad: str = ""
    broke: str = ""


@dataclass(frozen=True)
class ShardWork:
    """What a worker does: the shard of a number, unless it is there."""

    task: Task
    folder: RunFolder
    strict: bool

    def __call__(self, number: int, threads: int) -> Done:
        """Do a shard."""
        if self.folder.has(number):  # by a worker that died before it could say so
            return Done(number)
        table, bad = self.task.do(number, threads)
        if self.strict and bad:
            return Done(number, str(bad[0]))
        self.folder.keep(number, table, bad)
        return Done(number)


@dataclass(frozen=True)
class Engine:
    """Who works: name, how many at a time (None: as many as there is room for), and what each of them takes."""

    name: str = "local"
    workers: int | None = None
    num_cpus: float = 1
    num_gpus: float = 0

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ValueError(f"engine is {self.name!r}; choose one of {', '.join(map(repr, ENGINES))}")
        if self.workers is not None and not whole(self.workers):
            raise ValueError(f"workers is {self.workers!r}; give how many work at a time, 1 or more, or None for all")
        if not self.num_cpus > 0 or not self.num_gpus >= 0:
            raise ValueError(f"num_cpus is {self.num_cpus!r} and num_gpus {self.num_gpus!r}; give what a worker takes")

    @contextmanager
    def ready(self) -> Iterator[None]:
        """See that there is what a worker takes, before anything is written; a cluster of its own ends with this."""
        if self.name == "local":
            if self.num_gpus:
                import torch

                if not torch.cuda.is_available():
                    raise ValueError(f"num_gpus is {self.num_gpus:g}, but PyTorch sees no GPU here; leave it out")
            yield
            return
        ray, own = _connected()
        try:
            _room(ray, self.num_cpus, self.num_gpus)
            yield
        finally:
            if own:
                ray.shutdown()

    def do(self, work: ShardWork, todo: Sequence[int]) -> Iterator[Done]:
        """The shards of these numbers, as they finish."""
        return self._in_ray(work, todo) if self.name == "ray" else self._here(work, todo)

    def _here(self, work: ShardWork, todo: Sequence[int]) -> Iterator[Done]:
        """By threads of this process."""
        most = thread_count(self.workers or -1)
        together = max(1, min(most, len(todo)))
        rest = iter(todo)
        with ThreadPoolExecutor(together) as pool:
            running = {pool.submit(work, number, most // together) for number in islice(rest, together)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(work, number, most // together) for number in islice(rest, len(done))}
                yield from (future.result() for future in done)

    def _in_ray(self, work: ShardWork, todo: Sequence[int]) -> Iterator[Done]:
        """By actors. Numbers of shards stream through Ray Data; each actor reads and writes files itself."""
        if not todo:
            return
        ray, _ = _connected()
        context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
        bars, level = context.enable_progress_bars, logger.level
        context.enable_progress_bars = False
        logger.setLevel(logging.ERROR)
        try:
            most = self.workers or _room(ray, self.num_cpus, self.num_gpus)
            stream = ray.data.from_items(
                [{"number": number} for number in todo], override_num_blocks=min(len(todo), BLOCKS)
            ).map_batches(
                _Actor,
                fn_constructor_args=(work, max(1, int(self.num_cpus))),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(most, len(todo))),
                num_cpus=self.num_cpus,
                num_gpus=self.num_gpus or None,
                # Workers may die, with machines that are taken away; what kills every worker it meets ends the run.
                ray_remote_args_fn=lambda: {"max_restarts": -1, "max_task_retries": RETRIES},
            )
            with _environment(RAY_DATA_USAGE_DISABLED="1"):  # otherwise it looks for somebody to report to
                for row in stream.iter_rows():
                    yield Done(int(row["number"]), str(row["bad"]), str(row["broke"]))
        except ray.exceptions.RayError as error:
            raise RuntimeError(
                f"Ray gave up, which happens when a shard has killed its worker {RETRIES + 1} times; less memory is "
                f"needed with a smaller shard_rows. The same run again goes on. {error}"
            ) from error
        finally:
            context.enable_progress_bars = bars
            logger.setLevel(level)


def _room(ray: Any, num_cpus: float, num_gpus: float) -> int:
    """How many workers the cluster has room for; none at all would mean to wait for ever."""
    there = ray.cluster_resources()
    room = []
    for name, wanted in (("CPU", num_cpus), ("GPU", num_gpus)):
        has = there.get(name, 0)
        if wanted > has:
            raise ValueError(f"a worker takes {wanted:g} {name}, and the cluster has {has:g}; ask for less")
        if wanted:
            room.append(int(has / wanted))
    return max(1, min(room))


class _Actor:
    def __init__(self, work: ShardWork, threads: int) -> None:
        self.work, self.threads = work, threads

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        done = [self._do(int(number)) for number in batch["number"]]
        return {name: [getattr(d, name) for d in done] for name in ("number", "bad", "broke")}

    def _do(self, number: int) -> Done:
        try:
            return self.work(number, self.threads)
        except Exception as error:  # told by the driver, who has the terminal
            return Done(number, broke=f"{type(error).__name__}: {error}\n{traceback.format_exc()}")


def _connected(cpus: int | None = None) -> tuple[Any, bool]:
    """Ray, connected to a cluster, and whether this has connected it. cpus : of a cluster that is started here.

    A cluster that this process is connected to, or that RAY_ADDRESS names, is used; otherwise one is started on this
    machine, reachable from this machine alone.
    """
    try:
        ray = import_module("ray")
        import_module("ray.data")
    except ImportError:
        raise ImportError("engine='ray' needs Ray: pip install 'dropdtw[ray]', or take engine='local'") from None
    if ray.is_initialized():
        return ray, False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if os.environ.get("RAY_ADDRESS", "local") not in ("", "local"):
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
    level = os.environ.get("RAY_BACKEND_LOG_LEVEL", "fatal")
    constants.ENABLE_RAY_CLUSTER = False
    try:
        with _environment(
            RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0", RAY_BACKEND_LOG_LEVEL=level
        ):
            yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _environment(**settings: str) -> Iterator[None]:
    """Environment variables for a while."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
