"""A run over a corpus: shards that are done or not, never half; what was done is not done again.

out/manifest.json       what the run is, written first; another run is refused in the same folder
out/parts/00000.parquet the results of a shard; there when it is done
out/errors/00000.jsonl  its bad records, if it has any
out/errors.jsonl        all bad records, at the end
out/summary.json        counts, written last
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from dropdtw.corpus.dataset import Dataset, Given
from dropdtw.corpus.engines import Engine
from dropdtw.corpus.records import Bad
from dropdtw.corpus.storage import Storage, parquet_bytes
from dropdtw.files.progress import Progress, Report, reporter


class Job(Protocol):
    """What is to be done with a corpus. It is sent to the workers, so it holds little."""

    name: str

    count: int
    """How many shards there are."""

    @property
    def inputs(self) -> tuple[Dataset | Given, ...]:
        """What is read."""

    def manifest(self) -> dict[str, Any]:
        """All that the results depend on, as plain data."""

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """The results of a shard as an Arrow table, and its bad records. Depends on nothing but the number."""

    def finish(self, out: Storage) -> int:
        """What is left to do when all shards are done; gives the number of results."""


@dataclass(frozen=True)
class Run:
    """What a run has done.

    out : the folder.   rows : results that lie there.   errors : bad records, and files that are no Parquet.
    shards : how many there are.   done : how many of them this run has done, the others were there.
    """

    out: str
    rows: int
    errors: int
    shards: int
    done: int


@dataclass(frozen=True)
class Done:
    """A shard that was done. bad : in a strict run, the bad record that ends it.   broke : what a worker met with."""

    number: int
    bad: str = ""
    broke: str = ""


def run(
    job: Job, url: str | os.PathLike[str], engine: Engine, *, strict: bool = False, progress: Progress = None
) -> Run:
    """Do all shards that have not been done, then what remains."""
    out = Storage(url)
    for data in job.inputs:
        if isinstance(data, Dataset) and out.overlaps(data.source):
            raise ValueError(f"{out.url} and {data.name} lie in each other; give a folder elsewhere for the results")
    if out.fs.isfile(out.root):
        raise ValueError(f"{out.url} is a file; give a folder for the results")
    with engine.ready():
        _claim(out, job)
        return _go(Work(job, out, strict), engine, reporter(f"dropdtw.corpus.{job.name}", progress))


@dataclass(frozen=True)
class Work:
    """What a worker does: the shard of a number, unless it is there."""

    job: Job
    out: Storage
    strict: bool

    def __call__(self, number: int, threads: int) -> Done:
        """Do a shard; its errors are written first, so that a part tells that all is there."""
        if self.out.exists(_part(number)):
            return Done(number)
        table, bad = self.job.do(number, threads)
        if self.strict and bad:
            return Done(number, str(bad[0]))
        if bad:
            self.out.write(_errors(number), _lines(bad))
        self.out.write(_part(number), parquet_bytes(table))
        return Done(number)


def _go(work: Work, engine: Engine, report: Report) -> Run:
    job, out = work.job, work.out
    broken = [bad for data in job.inputs for bad in data.broken]
    noted = [name for name in out.names("errors") if name.endswith(".jsonl")]
    if work.strict and (broken or noted):
        first = broken[0] if broken else Bad(**json.loads((out.read(f"errors/{noted[0]}") or b"").splitlines()[0]))
        raise ValueError(f"{first} (strict=True stops here)")
    there = {int(name.split(".")[0]) for name in out.names("parts") if name.endswith(".parquet")}
    todo = [number for number in range(job.count) if number not in there]
    done = job.count - len(todo)
    report(done, job.count)
    for finished in engine.do(work, todo):
        if finished.bad:
            raise ValueError(f"{finished.bad} (strict=True stops here; the same run without it goes on)")
        if finished.broke:
            raise RuntimeError(f"shard {finished.number} failed; the same run again goes on with it. {finished.broke}")
        done += 1
        report(done, job.count)
    return _finish(out, job, broken, len(todo))


def parts(out: Storage, job: Job) -> Iterator[Any]:
    """The results of all shards, in their order."""
    return (out.table(_part(number)) for number in range(job.count))


def rows(out: Storage, job: Job) -> int:
    """How many results the shards hold."""
    with ThreadPoolExecutor(16) as pool:  # far stores answer slowly, but many at a time
        return sum(pool.map(lambda number: out.rows(_part(number)), range(job.count)))


def _part(number: int) -> str:
    return f"parts/{number:05}.parquet"


def _errors(number: int) -> str:
    return f"errors/{number:05}.jsonl"


def _lines(bad: list[Bad]) -> bytes:
    return "".join(json.dumps(asdict(b), ensure_ascii=False) + "\n" for b in bad).encode()


def _claim(out: Storage, job: Job) -> None:
    """Make the folder this run's, or see that it is already."""
    wanted = json.dumps({"format": 1, "task": job.name, "shards": job.count, **job.manifest()}, indent=1) + "\n"
    if out.read("manifest.json") is None:
        strangers = [name for name in out.names() if name != "manifest.json"]
        if strangers and out.read("manifest.json") is None:  # it may have come in the meantime, with its files
            raise ValueError(
                f"{out.url} holds other files, such as {strangers[0]}; give a folder that is empty or not there yet"
            )
        if out.create("manifest.json", wanted.encode()):
            return
    try:
        before, now = json.loads(out.read("manifest.json") or b""), json.loads(wanted)
    except ValueError:
        raise ValueError(f"{out.url}/manifest.json is no JSON; remove the folder, or give another one") from None
    if before != now:
        other = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        raise ValueError(
            f"{out.url} holds another run, which differs in {', '.join(other)}; give another folder, or the same run"
        )


def _finish(out: Storage, job: Job, broken: list[Bad], done: int) -> Run:
    errors = len(broken)
    with out.writing("errors.jsonl") as file:
        file.write(_lines(broken))
        for name in out.names("errors"):
            if name.endswith(".jsonl"):
                lines = out.read(f"errors/{name}") or b""
                errors += sum(json.loads(line)["rows"] for line in lines.splitlines())
                file.write(lines)
    counts = {"rows": job.finish(out), "errors": errors, "shards": job.count}
    out.write("summary.json", (json.dumps(counts) + "\n").encode())
    for folder in ("parts", "errors"):
        out.sweep(folder)
    return Run(out.url, done=done, **counts)
