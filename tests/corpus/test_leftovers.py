"""Leftovers of killed writers are removed; files that others are writing are not."""

import os
import signal
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import dropdtw.corpus
from corpus_cases import STEPS, content, corpus
from dropdtw.corpus.storage import Storage


@pytest.fixture(params=["local", "far"])
def place(request, tmp_path):
    """A local folder, and one in a remote store."""
    if request.param == "local":
        yield Storage(tmp_path / "out")
        return
    far = Storage(f"memory://dropdtw-{uuid.uuid4().hex}")
    yield far
    far.fs.rm(far.root, recursive=True)


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


def test_what_another_run_is_writing_is_not_swept(place):
    """The other run finishes while this one is in the middle of a file."""
    put_in_place = place.fs.mv

    def sweep():
        for folder in ("", "parts"):
            Storage(place.url).sweep(folder)

    def meanwhile(*paths, **more):
        sweep()
        put_in_place(*paths, **more)

    if not place.local:
        place.fs.mv = meanwhile
    try:
        with place.writing("parts/00000.parquet") as file:
            file.write(b"half")
            file.flush()
            sweep()
            file.write(b" and whole")
    finally:
        vars(place.fs).pop("mv", None)
    assert place.read("parts/00000.parquet") == b"half and whole"


def test_two_runs_in_one_folder_do_not_disturb_each_other(tmp_path):
    """Both succeed; together they leave what one would have left."""
    corpus(tmp_path / "c", 40, files=4, group=1)
    code = (
        "import sys, numpy as np, dropdtw.corpus\n"
        "steps = np.load(sys.argv[1])\n"
        "dropdtw.corpus.localize(steps, sys.argv[2], sys.argv[3], drop_x=0.5, shard_rows=1, workers=2)"
    )
    np.save(tmp_path / "steps.npy", STEPS)
    command = [sys.executable, "-c", code, str(tmp_path / "steps.npy"), str(tmp_path / "c")]
    both = [subprocess.Popen([*command, str(tmp_path / "out")], stderr=subprocess.PIPE) for _ in range(2)]
    said = [running.communicate(timeout=100)[1].decode() for running in both]
    assert [running.returncode for running in both] == [0, 0], said
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "alone", drop_x=0.5, shard_rows=1)
    assert content(tmp_path / "out") == content(tmp_path / "alone")
    assert everything(tmp_path / "out") == everything(tmp_path / "alone")


KILLED = """
import os, signal, sys
from dropdtw.corpus.storage import Storage
def die(*arguments): os.kill(os.getpid(), signal.SIGKILL)
name, when, url = sys.argv[1:]
setattr(os, when, die)
place = Storage(url)
if name == "manifest.json":
    place.create(name, b"{}")
else:
    place.write(name, b"half")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_nothing_stays_of_writers_that_were_killed(tmp_path):
    """Wherever the kill hits, the next run cleans up, and leaves not even an empty folder."""
    corpus(tmp_path / "c", 6)
    for name, when in (
        ("manifest.json", "link"),
        ("parts/00000.parquet", "fsync"),
        ("parts/00000.parquet", "replace"),
        ("parts/00001.parquet", "unlink"),
        ("errors.jsonl", "replace"),
    ):
        done = subprocess.run([sys.executable, "-c", KILLED, name, when, str(tmp_path / "out")], check=False)
        assert done.returncode == -signal.SIGKILL
    (tmp_path / "out/parts/00001.parquet").unlink(missing_ok=True)  # killed after it was in place
    assert any(".tmp" in name for name in everything(tmp_path / "out"))
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "alone", drop_x=0.5)
    assert everything(tmp_path / "out") == everything(tmp_path / "alone")


def test_hidden_files_of_others_are_not_swept(tmp_path):
    for name in (".gitignore", ".cache.tmp", ".00000.parquet.half", "x.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".mine.01234567.tmp").mkdir()
    Storage(tmp_path).sweep("")
    assert everything(tmp_path) == [".00000.parquet.half", ".cache.tmp", ".gitignore", ".mine.01234567.tmp", "x.tmp"]


def test_far_files_are_swept_after_a_day():
    place = Storage(f"memory://dropdtw-{uuid.uuid4().hex}")
    for name, age in (("old", 2.0), ("new", 0.5)):
        path = f"{place.path('parts')}/00000.parquet.{name}.tmp"
        place.fs.pipe_file(path, b"half")
        place.fs.store[path].modified = datetime.now(UTC) - timedelta(days=age)
    place.sweep("parts")
    assert [str(path).rpartition("/")[2] for path in place.fs.find(place.root)] == ["00000.parquet.new.tmp"]
    place.fs.rm(place.root, recursive=True)


def test_far_writers_leave_no_files_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = Storage(f"memory://dropdtw-{uuid.uuid4().hex}")
    with place.writing("a") as file:
        file.write(b"all")
        assert os.listdir(tmp_path) == []
    assert place.read("a") == b"all"
    place.fs.rm(place.root, recursive=True)
