"""A run over a corpus: shards that are done or not, never half; what was done is not done again.

out/manifest.json       what the run is, written first; another run is refused in the same folder
out/parts/00000.parquet the results of a shard; there when it is done
out/errors/00000.jsonl  its bad records, if it has any
out/errors.jsonl        all bad records, at the end
out/summary.json        counts, written last
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from dropdtw.progress import Progress, reporter
from dropdtw.scale.records import Bad, whole
from dropdtw.scale.storage import Storage, arrow

ENGINES: Final = ("local", "ray")


class Job(Protocol):
    """What is to be done with a corpus. It is sent to the workers, so it holds little."""

    name: str

    @property
    def count(self) -> int:
        """How many shards there are."""

    def broken(self) -> tuple[Bad, ...]:
        """Files of which nothing can be read."""

    def manifest(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """The results of a shard as an Arrow table, and its bad records. Depends on nothing but the number."""

    def finish(self, out: Storage) -> int:
        """What is left to do when all shards are done; gives the number of results."""


@dataclass(frozen=True)
class Run:
    """What a run has done.

    out : the folder.   rows : results that lie there.   errors : bad records, see errors.jsonl.
    shards : how many there are.   done : how many of them this run has done, the others were there.
    """

    out: str
    rows: int
    errors: int
    shards: int
    done: int


@dataclass(frozen=True)
class Done:
    """A shard that was done. failed : in a strict run, the bad record that ends it."""

    number: int
    failed: str = ""


def run(
    job: Job,
    url: str | os.PathLike[str],
    *,
    engine: str,
    workers: int | None,
    num_cpus: float,
    num_gpus: float,
    strict: bool,
    progress: Progress,
) -> Run:
    """Do all shards that have not been done, then what remains."""
    from dropdtw.scale import engines

    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; choose one of {', '.join(map(repr, ENGINES))}")
    if workers is not None and not whole(workers):
        raise ValueError(f"workers is {workers!r}; give how many work at a time, 1 or more, or None for all there are")
    if not num_cpus > 0 or not num_gpus >= 0:
        raise ValueError(f"num_cpus is {num_cpus!r} and num_gpus {num_gpus!r}; give what one worker takes")
    broken = job.broken()
    if strict and broken:
        raise ValueError(f"{broken[0]} (strict=True stops here)")
    out = Storage(url)
    _claim(out, job)
    there = {int(name.split(".")[0]) for name in out.names("parts") if name.endswith(".parquet")}
    todo = [number for number in range(job.count) if number not in there]
    report = reporter(f"dropdtw.scale.{job.name}", progress)
    work = Work(job, out, strict)
    go = engines.in_ray if engine == "ray" else engines.here
    done = job.count - len(todo)
    report(done, job.count)
    for finished in go(work, todo, workers, num_cpus, num_gpus):
        if finished.failed:
            raise ValueError(f"{finished.failed} (strict=True stops here; the same run without it goes on)")
        done += 1
        report(done, job.count)
    return _finish(out, job, broken, len(todo))


@dataclass(frozen=True)
class Work:
    """What a worker does: the shard of a number, unless it is there."""

    job: Job
    out: Storage
    strict: bool

    def __call__(self, number: int, threads: int) -> Done:
        """Do a shard; its errors are written first, so that a part tells that all is there."""
        if self.out.fs.exists(self.out.path(_part(number))):
            return Done(number)
        table, bad = self.job.do(number, threads)
        if self.strict and bad:
            return Done(number, str(bad[0]))
        if bad:
            self.out.write(_errors(number), _lines(bad))
        self.out.write(_part(number), parquet_bytes(table))
        return Done(number)


def parquet_bytes(table: Any) -> bytes:
    """A table as a file; the same table, the same bytes."""
    memory = io.BytesIO()
    arrow("pyarrow.parquet").write_table(table, memory, compression="zstd")
    return memory.getvalue()


def parts(out: Storage, job: Job) -> Iterator[Any]:
    """The results of all shards, in their order."""
    parquet = arrow("pyarrow.parquet")
    for number in range(job.count):
        with out.open(_part(number)) as file:
            yield parquet.read_table(file)


def rows(out: Storage, job: Job) -> int:
    """How many results the shards hold."""
    parquet = arrow("pyarrow.parquet")
    total = 0
    for number in range(job.count):
        with out.open(_part(number)) as file:
            total += parquet.ParquetFile(file).metadata.num_rows
    return total


def _part(number: int) -> str:
    return f"parts/{number:05}.parquet"


def _errors(number: int) -> str:
    return f"errors/{number:05}.jsonl"


def _lines(bad: list[Bad]) -> bytes:
    return "".join(json.dumps(asdict(b), ensure_ascii=False) + "\n" for b in bad).encode()


def _claim(out: Storage, job: Job) -> None:
    """Make the folder this run's, or see that it is already."""
    wanted = json.dumps({"format": 1, "task": job.name, "shards": job.count, **job.manifest()}, indent=1)
    there = out.read("manifest.json")
    if there is None:
        if out.names():
            raise ValueError(f"{out.url} holds other files; give a folder that is empty or not there yet")
        out.write("manifest.json", f"{wanted}\n".encode())
        return
    try:
        before, now = json.loads(there), json.loads(wanted)
    except ValueError:
        raise ValueError(f"{out.url}/manifest.json is no JSON; remove the folder, or give another one") from None
    if before != now:
        other = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        raise ValueError(
            f"{out.url} holds another run, which differs in {', '.join(other)}; give another folder, or the same run"
        )


def _finish(out: Storage, job: Job, broken: tuple[Bad, ...], done: int) -> Run:
    errors = [_lines(list(broken)), *(out.read(f"errors/{name}") or b"" for name in out.names("errors"))]
    out.write("errors.jsonl", b"".join(errors))
    counts = {"rows": job.finish(out), "errors": sum(part.count(b"\n") for part in errors), "shards": job.count}
    out.write("summary.json", (json.dumps(counts) + "\n").encode())
    out.sweep("parts")
    return Run(out.url, done=done, **counts)
