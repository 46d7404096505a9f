"""Corpora on a real Ray cluster of two workers: the same bytes as the local engine, and killed processes."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import dropdtw.corpus
from corpus_cases import BOTH, STEPS, content, corpus, errors, table
from dropdtw.corpus import engines
from dropdtw.corpus.engines import Engine
from dropdtw.corpus.run import run
from dropdtw.corpus.shards import open_corpus
from dropdtw.corpus.tasks import Localize
from dropdtw.problem.spec import Spec

pytest.importorskip("ray", reason="ray is not installed: pip install 'dropdtw[ray]'")
pytestmark = [
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="these tests look for processes in /proc"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
]
SLOW = np.random.default_rng(0).normal(size=(1500, 6)).astype(np.float32)
"""Steps that take a while to find."""


@pytest.fixture(scope="module")
def cluster():
    """Ray as the engine starts it, shared by all tests of this file."""
    ray, own = engines._connected(cpus=2)
    assert own
    yield ray
    ray.shutdown()


def processes():
    """(pid, parent, name) of all processes."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(entry.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1])
                name = entry.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            yield int(entry.name), parent, name


def below(root):
    """The descendants of a process: their names by pid."""
    every = list(processes())
    found, new = {}, {root}
    while new:
        new = {pid for pid, parent, _ in every if parent in new} - set(found)
        found |= {pid: name for pid, _, name in every if pid in new}
    return found


def until(condition, what, seconds=90):
    """Wait for a condition, with a timeout."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"{what} did not happen in {seconds} s")
        time.sleep(0.02)


def parts(out):
    return sorted(Path(out, "parts").glob("0*.parquet"))


def long_corpus(folder, count):
    """Records that each take a while, one per shard."""
    rng = np.random.default_rng(3)
    records = [(f"r{k}", rng.normal(size=(4000, 6)).astype(np.float32)) for k in range(8)]
    dropdtw.corpus.write(f"{folder}/0.parquet", (records[k % 8] for k in range(count)), group=1)


@pytest.mark.parametrize("task", ["localize", "pairwise", "retrieve"])
def test_ray_gives_the_same_bytes(cluster, tmp_path, task):
    corpus(tmp_path / "c", 24, group=2)
    table(tmp_path / "c/x.parquet", id=["good", "hole"], features=[[1.0] * 6, [np.nan] * 6], shape=[[1, 6], [1, 6]])
    (tmp_path / "c/y.parquet").write_bytes(b"no parquet")
    for engine in ("local", "ray"):
        if task == "localize":
            done = dropdtw.corpus.localize(
                STEPS, tmp_path / "c", tmp_path / engine, engine=engine, shard_rows=4, drop_z=0.3
            )
        else:
            done = getattr(dropdtw.corpus, task)(
                tmp_path / "c", tmp_path / "c", tmp_path / engine, engine=engine, shard_rows=6, **BOTH
            )
        assert done.errors == {"localize": 2, "pairwise": 4, "retrieve": 4}[task]
        assert done.done == done.shards >= 4
    assert content(tmp_path / "local") == content(tmp_path / "ray")


def test_strict_stops_a_run_on_ray(cluster, tmp_path):
    corpus(tmp_path / "c", 6)
    table(tmp_path / "c/x.parquet", id=["hole"], features=[[np.nan] * 6], shape=[[1, 6]])
    with pytest.raises(ValueError, match=r"row 0 \(id 'hole'\): its feature sequence has NaN.*strict=True stops"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, engine="ray", strict=True)
    done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, engine="ray")
    assert (done.rows, done.errors) == (6, 1)
    assert [e["id"] for e in errors(tmp_path / "out")] == ["hole"]


def test_what_the_cluster_does_not_have_is_refused(cluster, tmp_path):
    """Ray would wait for it forever."""
    corpus(tmp_path / "c", 6)
    for wanted, message in (
        ({"num_gpus": 1}, "a worker needs 1 GPU, but the cluster has 0; ask for less"),
        ({"num_cpus": 64}, "a worker needs 64 CPU, but the cluster has 2"),
    ):
        with pytest.raises(ValueError, match=message):
            dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, engine="ray", **wanted)
    assert not (tmp_path / "out").exists()


def test_a_failure_in_a_worker_is_told_and_the_run_goes_on_later(cluster, tmp_path):
    corpus(tmp_path / "c", 6)
    (tmp_path / "c/0.parquet").rename(tmp_path / "kept")
    (tmp_path / "c/0.parquet").symlink_to(tmp_path / "kept")
    task = Localize(STEPS, open_corpus(tmp_path / "c", 1000), Spec.of(drop_x=0.5), "cpu")
    (tmp_path / "kept").rename(tmp_path / "away")  # the store loses a file
    with pytest.raises(RuntimeError, match=r"shard 0 failed; run the same call again to retry it\. FileNotFoundError"):
        run(task, tmp_path / "out", Engine("ray", 2))
    (tmp_path / "away").rename(tmp_path / "kept")
    assert run(task, tmp_path / "out", Engine("ray", 2)).rows == 6


def test_what_the_user_has_set_stays_set(cluster, tmp_path):
    context, logger = cluster.data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, logger.level
    logger.setLevel(logging.WARNING)
    context.enable_progress_bars = True
    try:
        corpus(tmp_path / "c", 3)
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, engine="ray")
        assert (context.enable_progress_bars, logger.level) == (True, logging.WARNING)
        assert cluster.is_initialized()
    finally:
        context.enable_progress_bars, level = before
        logger.setLevel(level)


def test_the_cluster_is_reached_from_this_machine_alone(cluster, tmp_path):
    mine = below(os.getpid())
    held = set()
    for pid in [os.getpid(), *mine]:
        try:
            links = [os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()]
        except OSError:
            continue
        held |= {link[8:-1] for link in links if link.startswith("socket:[")}
    listening = []
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            place, state, inode = (line.split()[k] for k in (1, 3, 9))
            if state == "0A" and inode in held:
                listening.append(place.split(":")[0])
    assert len(listening) >= 3  # the head, the node, this driver
    local = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert set(listening) <= local


def test_a_worker_that_is_killed_loses_and_doubles_nothing(cluster, tmp_path):
    long_corpus(tmp_path / "c", 40)
    how = {"drop_x": 0.5, "drop_z": 0.5, "shard_rows": 1, "many_to_one": True, "contiguous": False}
    found = []
    thread = threading.Thread(
        target=lambda: found.append(
            dropdtw.corpus.localize(SLOW, tmp_path / "c", tmp_path / "ray", engine="ray", workers=2, **how)
        )
    )
    thread.start()
    until(lambda: len(parts(tmp_path / "ray")) >= 3, "three shards")
    workers = [pid for pid, name in below(os.getpid()).items() if name.startswith("ray::MapWorker")]
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    before = len(parts(tmp_path / "ray"))
    assert before < 40, "the run was over before a worker could be killed"
    thread.join(120)
    assert not thread.is_alive()
    assert [(done.rows, done.errors, done.shards) for done in found] == [(40, 0, 40)]
    dropdtw.corpus.localize(SLOW, tmp_path / "c", tmp_path / "local", **how)
    assert content(tmp_path / "ray") == content(tmp_path / "local")


DRIVER = """
import sys
import numpy as np
import dropdtw.corpus
folder, out, steps = sys.argv[1:]
print(dropdtw.corpus.localize(np.load(steps), folder, out, engine="ray", workers=2, drop_x=0.5, drop_z=0.5,
                              shard_rows=1, many_to_one=True, contiguous=False))
"""


def test_a_driver_that_is_killed_is_resumed_and_leaves_no_workers(cluster, tmp_path):
    long_corpus(tmp_path / "c", 40)
    np.save(tmp_path / "steps.npy", SLOW)
    command = [sys.executable, "-c", DRIVER, tmp_path / "c", tmp_path / "ray", tmp_path / "steps.npy"]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(parts(tmp_path / "ray")) >= 3, "three shards")
        # Two of Ray's own agents, which do no work, take another minute to notice.
        children = {pid: name for pid, name in below(driver.pid).items() if "Agent" not in name}
        assert any("raylet" in name for name in children.values())
        assert any("MapWorker" in name for name in children.values())
    finally:
        driver.kill()
        driver.wait()
    until(lambda: not {pid for pid, _, _ in processes()} & set(children), "the end of its cluster")
    done = parts(tmp_path / "ray")
    assert 3 <= len(done) < 40
    assert not (tmp_path / "ray/summary.json").exists()
    kept = {p.name: p.stat().st_mtime_ns for p in done}
    how = {"drop_x": 0.5, "drop_z": 0.5, "shard_rows": 1, "many_to_one": True, "contiguous": False}
    again = dropdtw.corpus.localize(SLOW, tmp_path / "c", tmp_path / "ray", engine="ray", **how)
    assert (again.rows, again.errors, again.done) == (40, 0, 40 - len(done))
    dropdtw.corpus.localize(SLOW, tmp_path / "c", tmp_path / "local", **how)
    assert content(tmp_path / "ray") == content(tmp_path / "local")
    assert kept.items() <= {p.name: p.stat().st_mtime_ns for p in parts(tmp_path / "ray")}.items()


POISON = """
import os, signal, sys
from pathlib import Path
import numpy as np
from dropdtw.corpus import engines
from dropdtw.corpus.shards import open_corpus
from dropdtw.corpus.engines import Engine
from dropdtw.corpus.run import run
from dropdtw.corpus.tasks import Localize
from dropdtw.problem.spec import Spec

class Poison(Localize):
    def do(self, number, threads):
        if number == 1:
            with Path(sys.argv[1], "tries").open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().do(number, threads)

engines.RETRIES = 1
folder = Path(sys.argv[1])
task = Poison(np.load(folder / "steps.npy"), open_corpus(folder / "c", 1000), Spec.of(drop_x=0.5), "cpu")
try:
    run(task, folder / "out", Engine("ray", 2))
except RuntimeError as error:
    print(error)
"""


def test_a_shard_that_kills_every_worker_ends_the_run(tmp_path):
    """Ray by itself would retry forever."""
    corpus(tmp_path / "c", 12)
    np.save(tmp_path / "steps.npy", STEPS)
    script = POISON.replace("sys.argv[1]", repr(str(tmp_path)))  # workers have their own arguments
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200, check=True)
    assert "a shard has killed its worker 2 times" in done.stdout
    assert "run the same call again to resume" in done.stdout
    assert (tmp_path / "tries").read_text() == "xx"
    moves = {"many_to_one": True, "contiguous": False}
    assert dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, **moves).rows == 12


MEMORY = """
import resource, sys
import numpy as np
import dropdtw.corpus
from dropdtw.corpus import engines
engines._connected(cpus=2)
folder, out = sys.argv[1:]
Z = np.eye(3, 16)
few = dropdtw.corpus.localize(Z, folder + "/few.parquet", out + "/few", engine="ray", drop_x=0.5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = dropdtw.corpus.localize(Z, folder + "/many", out + "/many", engine="ray", drop_x=0.5, shard_rows=500)
print(few.rows, done.rows, done.shards, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.exhaustive
def test_the_driver_holds_little_while_fifty_thousand_records_stream_by(tmp_path):
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(40, 16)).astype(np.float32)
    for f in range(5):
        dropdtw.corpus.write(
            tmp_path / f"many/{f}.parquet", ((f"{f}-{k}", frames + k % 7) for k in range(10_000)), group=500
        )
    dropdtw.corpus.write(tmp_path / "few.parquet", [(k, frames) for k in range(10)])
    command = [sys.executable, "-c", MEMORY, tmp_path, tmp_path / "out"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout.split()
    few, rows, shards, kib = map(int, shown)
    assert (few, rows, shards) == (10, 50_000, 100)
    assert kib < 20 << 10  # the features are 128 MB
