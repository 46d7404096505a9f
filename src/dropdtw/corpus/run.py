"""A run over a corpus: claims a folder, processes the shards that are missing, and finishes.

The same call resumes an interrupted run: shards that have a part in the folder are skipped (`run`).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from dropdtw.corpus.engines import Engine, ShardWork
from dropdtw.corpus.folder import RunFolder, lines
from dropdtw.corpus.records import Bad
from dropdtw.corpus.shards import Corpus
from dropdtw.corpus.tasks import Task
from dropdtw.files.progress import Progress, Report, reporter
from dropdtw.problem.errors import MismatchError


@dataclass(frozen=True)
class Run:
    """The outcome of a run.

    out : the folder.   rows : the number of results in it.   errors : the number of bad records and unreadable files.
    shards : the number of shards.   done : how many of them this call processed; the others were there already.

    >>> import tempfile, dropdtw.corpus as corpora
    >>> folder = tempfile.mkdtemp()
    >>> corpora.write(f"{folder}/walks.parquet", [("a", [1, 2, 3]), ("b", [3, 2, 1])])
    2
    >>> run = corpora.localize([1, 2, 3], f"{folder}/walks.parquet", f"{folder}/found", drop_x=0.5)
    >>> run.rows, run.errors, run.shards, run.done
    (2, 0, 1, 1)
    """

    out: str
    rows: int
    errors: int
    shards: int
    done: int


def run(
    task: Task, url: str | os.PathLike[str], engine: Engine, *, strict: bool = False, progress: Progress = None
) -> Run:
    """Process all missing shards, then finish the task."""
    folder = RunFolder(url)
    _check_place(folder, task)
    with engine.ready():
        _claim(folder, task)
        broken = [bad for data in task.inputs for bad in data.broken]
        if strict:
            _refuse_errors(folder, broken)
        there = folder.done()  # from an interrupted run
        todo = [number for number in range(task.count) if number not in there]
        _do(todo, ShardWork(task, folder, strict), engine, reporter(f"dropdtw.corpus.{task.name}", progress))
        return _finish(folder, task, broken, len(todo))


def _do(todo: list[int], work: ShardWork, engine: Engine, report: Report) -> None:
    count = work.task.count
    done = count - len(todo)
    report(done, count)
    for finished in engine.do(work, todo):
        if finished.bad:
            raise MismatchError("{bad} ({strict=True} stops here; run again without it to continue)", bad=finished.bad)
        if finished.broke:
            raise RuntimeError(f"shard {finished.number} failed; run the same call again to retry it. {finished.broke}")
        done += 1
        report(done, count)


def _check_place(folder: RunFolder, task: Task) -> None:
    """Refuse an output folder that is a file or overlaps with an input."""
    out = folder.storage
    for data in task.inputs:
        if isinstance(data, Corpus) and out.overlaps(data.source):
            raise ValueError(f"{out.url} and {data.name} overlap; give a folder elsewhere for the results")
    if out.fs.isfile(out.root):
        raise ValueError(f"{out.url} is a file; give a folder for the results")


def _claim(folder: RunFolder, task: Task) -> None:
    """Claim the folder, or verify that it belongs to this run."""
    out = folder.storage
    wanted = json.dumps({"format": 1, "task": task.name, "shards": task.count, **task.manifest()}, indent=1) + "\n"
    if out.read("manifest.json") is None:
        others = [name for name in out.names() if name != "manifest.json"]
        if others and out.read("manifest.json") is None:  # another process may have claimed it meanwhile
            raise ValueError(f"{out.url} holds other files, such as {others[0]}; give an empty or a new folder")
        if out.create("manifest.json", wanted.encode()):
            return
    try:
        before, now = json.loads(out.read("manifest.json") or b""), json.loads(wanted)
    except ValueError:
        raise ValueError(f"{out.url}/manifest.json is not JSON; remove the folder, or give another one") from None
    if before != now:
        changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        raise ValueError(
            f"{out.url} holds another run, which differs in {', '.join(changed)}; give another folder, or the same "
            "settings"
        )


def _refuse_errors(folder: RunFolder, broken: list[Bad]) -> None:
    """Raise on the first bad file or record that is already known."""
    noted = next(folder.errors(), b"").splitlines()
    if broken or noted:
        bad = broken[0] if broken else Bad(**json.loads(noted[0]))
        raise MismatchError("{bad} ({strict=True} stops here)", bad=bad)


def _finish(folder: RunFolder, task: Task, broken: list[Bad], done: int) -> Run:
    out, errors = folder.storage, len(broken)
    with out.writing("errors.jsonl") as file:
        file.write(lines(broken))
        for some in folder.errors():
            errors += sum(json.loads(line)["rows"] for line in some.splitlines())
            file.write(some)
    counts = {"rows": task.finish(folder), "errors": errors, "shards": task.count}
    out.write("summary.json", (json.dumps(counts) + "\n").encode())
    for name in ("", "parts", "errors"):
        out.sweep(name)
    return Run(folder.url, done=done, **counts)
