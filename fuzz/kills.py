"""Corpus runs that are killed at any moment: resumed, they produce the same bytes as an uninterrupted run."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dropdtw.corpus

PROGRAM = """
import sys, numpy as np, dropdtw.corpus
folder, task = sys.argv[1:]
how = dict(shard_rows=4, progress=False, workers=2)
if task == "localize":
    dropdtw.corpus.localize(np.eye(3, 5), f"{folder}/c", f"{folder}/out", **how)
elif task == "pairwise":
    dropdtw.corpus.pairwise(f"{folder}/c", f"{folder}/c", f"{folder}/out", drop_x=0.4, drop_z=0.4, **how)
else:
    dropdtw.corpus.retrieve(f"{folder}/c", f"{folder}/c", f"{folder}/out", 3, drop_x=0.4, drop_z=0.4, **how)
"""


def case(rng: np.random.Generator) -> str:
    """Compare a run that is killed up to three times with an uninterrupted one."""
    task = str(rng.choice(["localize", "pairwise", "retrieve"]))
    with tempfile.TemporaryDirectory() as folder:
        made = [(f"r{k}", rng.normal(size=(int(rng.integers(5, 30)), 5))) for k in range(24)]
        for name in ("killed", "whole"):
            dropdtw.corpus.write(f"{folder}/{name}/c/0.parquet", made, group=4)
        kills = 0
        for _ in range(int(rng.integers(1, 4))):
            kills += killed(f"{folder}/killed", task, float(rng.uniform(0.3, 1.2)))
        for name in ("killed", "whole"):
            subprocess.run([sys.executable, "-c", PROGRAM, f"{folder}/{name}", task], check=True, timeout=120)
        assert digest(Path(folder, "killed/out")) == digest(Path(folder, "whole/out"))
        left = [p.name for p in Path(folder, "killed/out").rglob(".*") if p.is_dir()]
        assert not left, f"hidden folders left behind: {left}"
    return f"{task} killed {kills} times"


def killed(folder: str, task: str, after: float) -> bool:
    """Start a run and kill it; returns whether it was still running."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, folder, task], start_new_session=True)
    time.sleep(after)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return alive


def digest(out: Path) -> dict[str, str]:
    """Hashes of the Parquet files in a folder of results."""
    files = [p for p in sorted(out.rglob("*.parquet")) if p.is_file()]
    return {str(p.relative_to(out)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
