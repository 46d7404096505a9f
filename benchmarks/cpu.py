# ruff: noqa: E402
"""Measure this library and its peers on the same inputs, in one process, interleaved, as ratios.

Run with `make bench` (which installs the peers in an environment of their own), or
`python benchmarks/cpu.py [--rounds 9] [--json results.json]`. Peers that are not installed are left out, and say so.
Every row is measured end to end from the sequences, on one core unless it says otherwise. In each round every
contestant has its turn of a few calls in a row, so that a busy machine hits all of them and none is measured with the
caches that another one left behind; the median of all calls is shown.
"""

from __future__ import annotations

import os

for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import argparse
import importlib.metadata
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dropdtw
from dropdtw import _cpp

Job = Callable[[], object]
RNG = np.random.default_rng(0)


def peer(jobs: dict[str, Job], name: str, make: Callable[[], Job]) -> None:
    """Add a contestant if it is installed; its first call, which may compile, is not measured."""
    try:
        job = make()
        job()
    except ImportError as missing:
        print(f"  (without {name}: {missing})", file=sys.stderr)
    else:
        jobs[name] = job


def dtw_value() -> dict[str, Job]:
    """Plain DTW, 1-d, 1000 × 1000, float32."""
    z, x = RNG.normal(size=(2, 1000)).astype(np.float32)
    jobs: dict[str, Job] = {"dropdtw": lambda: dropdtw.distance(z, x, match="sqeuclidean")}
    add_values(jobs, z, x)
    return jobs


def drop_value() -> dict[str, Job]:
    """Two-sided Drop-DTW, 1-d, 1000 × 1000, float32, against the peers' plain DTW."""
    z, x = RNG.normal(size=(2, 1000)).astype(np.float32)
    jobs: dict[str, Job] = {"dropdtw": lambda: dropdtw.distance(z, x, 0.3, 0.3, match="sqeuclidean")}
    add_values(jobs, z, x)
    return jobs


def add_values(jobs: dict[str, Job], z: np.ndarray, x: np.ndarray) -> None:
    z64, x64 = z.astype(float), x.astype(float)

    def aeon() -> Job:
        from aeon.distances import dtw_distance

        return lambda: dtw_distance(z64, x64)

    def dtaidistance() -> Job:
        from dtaidistance import dtw

        return lambda: dtw.distance_fast(z64, x64)

    def tslearn() -> Job:
        from tslearn.metrics import dtw

        return lambda: dtw(z64, x64)

    def librosa() -> Job:
        from librosa.sequence import dtw

        return lambda: dtw(z64[None], x64[None], metric="sqeuclidean", backtrack=False)

    def tsdistances() -> Job:
        import tsdistances

        return lambda: tsdistances.dtw_distance(z64, x64)

    def dtw_python() -> Job:
        from dtw import dtw

        return lambda: dtw(z64, x64, distance_only=True)

    for make in (aeon, dtaidistance, tslearn, librosa, tsdistances, dtw_python):
        peer(jobs, make.__name__, make)


def dtw_path() -> dict[str, Job]:
    """Plain DTW with its path, 1-d, 1000 × 1000, float64."""
    z, x = RNG.normal(size=(2, 1000))
    jobs: dict[str, Job] = {"dropdtw": lambda: dropdtw.align(z, x, match="sqeuclidean").pairs}

    def aeon() -> Job:
        from aeon.distances import dtw_alignment_path

        return lambda: dtw_alignment_path(z, x)

    def dtaidistance() -> Job:
        from dtaidistance import dtw

        return lambda: dtw.warping_path_fast(z, x)

    def tslearn() -> Job:
        from tslearn.metrics import dtw_path

        return lambda: dtw_path(z, x)

    def librosa() -> Job:
        from librosa.sequence import dtw

        return lambda: dtw(z[None], x[None], metric="sqeuclidean")

    for make in (aeon, dtaidistance, tslearn, librosa):
        peer(jobs, make.__name__, make)
    return jobs


def pairwise() -> dict[str, Job]:
    """All pairs of 100 series of 100, float32, one thread."""
    series = RNG.normal(size=(100, 100)).astype(np.float32)
    series64 = series.astype(float)
    jobs: dict[str, Job] = {"dropdtw": lambda: dropdtw.pairwise(series, match="sqeuclidean", n_jobs=1)}

    def aeon() -> Job:
        from aeon.distances import dtw_pairwise_distance

        return lambda: dtw_pairwise_distance(series64[:, None, :])

    def dtaidistance() -> Job:
        from dtaidistance import dtw

        return lambda: dtw.distance_matrix_fast(series64, parallel=False)

    def tslearn() -> Job:
        from tslearn.metrics import cdist_dtw

        return lambda: cdist_dtw(series64)

    for make in (aeon, dtaidistance, tslearn):
        peer(jobs, make.__name__, make)
    return jobs


def pairwise_threads() -> dict[str, Job]:
    """The same on two threads, against this library on one (400 series of 100)."""
    series = RNG.normal(size=(400, 100)).astype(np.float32)
    return {
        "dropdtw": lambda: dropdtw.pairwise(series, match="sqeuclidean", n_jobs=2),
        "dropdtw, one thread": lambda: dropdtw.pairwise(series, match="sqeuclidean", n_jobs=1),
    }


def soft_dtw() -> dict[str, Job]:
    """Soft-DTW forward and backward from C, batch 16, 256 × 256, float32 (peers compute C from d = 8 themselves)."""
    from dropdtw.executors import cpu
    from dropdtw.problem.problem import Costs
    from dropdtw.tables import recurrence
    from dropdtw.tables.reducers import soft_min

    X, Y = RNG.normal(size=(2, 16, 256, 8)).astype(np.float32)
    C = ((X[:, :, None] - Y[:, None]) ** 2).sum(axis=-1)
    never, table, fold = np.full(256, np.inf, np.float32), recurrence.dtw(), soft_min(1.0)
    jobs: dict[str, Job] = {"dropdtw": lambda: [cpu.run(table, fold, Costs(c, never, never), gradient=True) for c in C]}

    def pysdtw() -> Job:
        import torch
        from pysdtw import SoftDTW

        torch.set_num_threads(1)
        x, y, loss = torch.tensor(X, requires_grad=True), torch.tensor(Y), SoftDTW(gamma=1.0, use_cuda=False)
        return lambda: loss(x, y).sum().backward()

    def tslearn() -> Job:
        import torch
        from tslearn.metrics import SoftDTWLossPyTorch

        x, y, loss = torch.tensor(X, requires_grad=True), torch.tensor(Y), SoftDTWLossPyTorch(gamma=1.0)
        return lambda: loss(x, y).sum().backward()

    for make in (pysdtw, tslearn):
        peer(jobs, make.__name__, make)
    return jobs


def features(dtype: type) -> dict[str, Job]:
    Z, X = (RNG.normal(size=(n, 128)).astype(dtype) for n in (200, 1000))
    return {
        "dropdtw": lambda: dropdtw.align(Z, X, 0.3, 0.3).pairs,
        "the matrix product alone": lambda: Z @ X.T,
    }


def features_float64() -> dict[str, Job]:
    """Two-sided Drop-DTW with path of 200 × 1000 features, d = 128, cosine, float64, against the matrix product."""
    return features(np.float64)


def features_float32() -> dict[str, Job]:
    """The same in float32."""
    return features(np.float32)


ROWS = {
    dtw_value: ">= 5",
    drop_value: ">= 2",
    dtw_path: ">= 2.5",
    pairwise: ">= 15",
    pairwise_threads: ">= 1.7",
    soft_dtw: ">= 10",
    features_float64: ">= 0.5",
    features_float32: ">= 0.5",
}
"""Each row with the factor it is to be faster by than its fastest peer."""


def measure(jobs: dict[str, Job], rounds: int) -> dict[str, float]:
    """Median milliseconds of each job."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(rounds):
        for name, job in jobs.items():
            for _ in range(5):
                start = time.perf_counter()
                job()
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: float(np.median(t)) for name, t in times.items()}


def machine() -> str:
    """Where this ran."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    names = ("aeon", "dtaidistance", "tslearn", "librosa", "tsdistances", "dtw-python", "pysdtw", "numpy")
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{model}, {os.cpu_count()} cores, kernels for {_cpp.instruction_set}; {', '.join(found)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how many turns each contestant has (default 9)")
    parser.add_argument("--only", choices=[row.__name__ for row in ROWS], help="one row instead of all")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine(), "\n")
    results = {}
    for row, goal in ROWS.items():
        if arguments.only in (None, row.__name__):
            times = measure(row(), arguments.rounds)
            ours = times.pop("dropdtw")
            best = min(times, key=lambda name: times[name], default=None)
            ratio = f"{times[best] / ours:.1f} × {best} (to reach: {goal})" if best else "no peer installed"
            print(f"{row.__doc__}\n    dropdtw {ours:.3f} ms: {ratio}")
            print("    " + ", ".join(f"{name} {ms:.3f}" for name, ms in sorted(times.items(), key=lambda p: p[1])))
            results[row.__name__] = {"dropdtw": ours, **times}
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "milliseconds": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
