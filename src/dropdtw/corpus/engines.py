"""The engines that process shards: threads of this process, or Ray Data actors. Both call the same `ShardWork`."""

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
from dropdtw.problem.errors import MismatchError, OptionError
from dropdtw.search.pairwise import thread_count

ENGINES: Final = ("local", "ray")

BLOCKS: Final = 4096
"""Maximum number of blocks of shards for Ray Data; every block costs the driver memory."""

RETRIES: Final = 3
"""How often a shard is retried after its worker died."""


@dataclass(frozen=True)
class Done:
    """A finished shard. bad : the bad record that ends a strict run.   broke : the error that a worker raised."""

    number: int
    bad: str = ""
    broke: str = ""


@dataclass(frozen=True)
class ShardWork:
    """The work on one shard, by number; does nothing if its part exists already."""

    task: Task
    folder: RunFolder
    strict: bool

    def __call__(self, number: int, threads: int) -> Done:
        """Process a shard."""
        if self.folder.has(number):  # from a worker that died before it could report
            return Done(number)
        table, bad = self.task.do(number, threads)
        if self.strict and bad:
            return Done(number, str(bad[0]))
        self.folder.keep(number, table, bad)
        return Done(number)


@dataclass(frozen=True)
class Engine:
    """An engine by name, its number of parallel workers (None: as many as fit), and the resources of each worker."""

    name: str = "local"
    workers: int | None = None
    num_cpus: float = 1
    num_gpus: float = 0

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise OptionError("engine", self.name, f"choose one of {', '.join(map(repr, ENGINES))}")
        if self.workers is not None and not whole(self.workers):
            raise OptionError(
                "workers", self.workers, "give the number of workers, 1 or more", in_python=", or None for all"
            )
        if not self.num_cpus > 0 or not self.num_gpus >= 0:
            raise MismatchError(
                "{num_cpus} is {cpus!r} and {num_gpus} {gpus!r}; give the CPUs (> 0) and GPUs (>= 0) of one worker",
                cpus=self.num_cpus,
                gpus=self.num_gpus,
            )

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Check the workers' resources before anything is written; shut down a cluster started here on exit."""
        if self.name == "local":
            if self.num_gpus:
                import torch

                if not torch.cuda.is_available():
                    raise OptionError("num_gpus", self.num_gpus, "leave it out", ", but PyTorch sees no GPU here")
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
        """Process the shards of these numbers; yields them as they finish."""
        return self._in_ray(work, todo) if self.name == "ray" else self._here(work, todo)

    def _here(self, work: ShardWork, todo: Sequence[int]) -> Iterator[Done]:
        """Process shards with threads of this process."""
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
        """Process shards with actors: their numbers stream through Ray Data, and each actor reads and writes files."""
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
                # Workers may die with preempted machines; a shard that kills every worker ends the run.
                ray_remote_args_fn=lambda: {"max_restarts": -1, "max_task_retries": RETRIES},
            )
            with _environment(RAY_DATA_USAGE_DISABLED="1"):  # otherwise Ray Data sends usage reports
                for row in stream.iter_rows():
                    yield Done(int(row["number"]), str(row["bad"]), str(row["broke"]))
        except ray.exceptions.RayError as error:
            raise RuntimeError(
                f"Ray gave up, which happens after a shard has killed its worker {RETRIES + 1} times. If memory ran "
                f"out, use a smaller shard_rows; otherwise, run the same call again to resume. {error}"
            ) from error
        finally:
            context.enable_progress_bars = bars
            logger.setLevel(level)


def _room(ray: Any, num_cpus: float, num_gpus: float) -> int:
    """How many workers fit the cluster. Raises if none does, because the run would wait forever."""
    there = ray.cluster_resources()
    room = []
    for name, wanted in (("CPU", num_cpus), ("GPU", num_gpus)):
        has = there.get(name, 0)
        if wanted > has:
            raise ValueError(f"a worker needs {wanted:g} {name}, but the cluster has {has:g}; ask for less")
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
        except Exception as error:  # reported by the driver, which has the terminal
            return Done(number, broke=f"{type(error).__name__}: {error}\n{traceback.format_exc()}")


def _connected(cpus: int | None = None) -> tuple[Any, bool]:
    """Ray, connected to a cluster, and whether this call connected it. cpus : of a cluster that is started here.

    Uses the cluster that this process is connected to, else the one that RAY_ADDRESS names. Otherwise starts one on
    this machine that only this machine can reach.
    """
    try:
        ray = import_module("ray")
        import_module("ray.data")
    except ImportError:
        raise ImportError("the engine 'ray' needs Ray: pip install 'dropdtw[ray]', or use the engine 'local'") from None
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
    """Inside this context, Ray listens on 127.0.0.1 only and sends no usage reports.

    Ray has a switch for this, meant for Windows and macOS. Ray reads it when it is imported, both here and in the
    processes that it starts.
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
    """Set environment variables temporarily."""
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
