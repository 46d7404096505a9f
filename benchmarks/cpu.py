# ruff: noqa: E402
"""Measure this library and its peers on the same inputs, in one process, interleaved, as ratios.

Run with `make bench` (which installs pinned peers in their own environment), or
`python benchmarks/cpu.py [--rounds 7] [--only ROW ...] [--json results.json]`. Peers that are not installed are
skipped, with a note.

Every row is measured end to end from the sequences, by the CPU time of one thread; rows for two threads compare their
wall-clock time with that of one thread. In each round, every library gets a turn of several calls, so that a busy
machine affects all of them; the best turn counts. We measure ours in double and in single precision. Peers get double
precision, in which they compute whatever the input; matrix products are measured in both.
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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cpu_peers import PAIRS, PATHS, SUBSEQUENCES, VALUES, Job, available

import dropdtw
from dropdtw import _cpp, costs

Call = Callable[..., object]
SQ: dict[str, Any] = {"match": "sqeuclidean"}
SOFT: dict[str, Any] = {"match": "sqeuclidean", "reducer": "soft"}
LCSS: dict[str, Any] = {"method": "lcss", "threshold": 0.5, "match": "euclidean"}
DTYPES = (np.float64, np.float32)
TURN = 0.02
"""Seconds of calls in a turn, at least one call."""


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def both(call: Call, *inputs: np.ndarray) -> dict[str, Job]:
    """Our job in both precisions."""
    return {np.dtype(t).name: partial(call, *(a.astype(t) for a in inputs)) for t in DTYPES}


def beside(what: str, slow: Call, fast: Call, *inputs: np.ndarray) -> dict[str, Job]:
    """Our job beside something else that is not to be much faster, each in both precisions."""
    return both(slow, *inputs) | {f"{what} {name}": job for name, job in both(fast, *inputs).items()}


def with_product(ours: Call, K: int, N: int, d: int) -> dict[str, Job]:
    return beside("matrix product", ours, lambda z, x: z @ x.T, normal(K, d), normal(N, d))


def value(n: int, **asked: Any) -> dict[str, Job]:
    z, x = normal(2, n)
    return both(partial(dropdtw.distance, **SQ, **asked), z, x) | available(VALUES, z, x)


def path(n: int) -> dict[str, Job]:
    z, x = normal(2, n)
    return both(lambda z, x: dropdtw.align(z, x, **SQ).pairs, z, x) | available(PATHS, z, x)


def vectors() -> dict[str, Job]:
    Z, X = normal(2, 500, 20)
    return both(partial(dropdtw.distance, **SQ), Z, X) | available(("dtaidistance_vectors", "aeon_vectors"), Z, X)


def chroma() -> dict[str, Job]:
    Z, X = normal(2, 2000, 12)
    return both(lambda z, x: dropdtw.align(z, x, match="cosine").pairs, Z, X) | available(("librosa_cosine",), Z, X)


def subsequence() -> dict[str, Job]:
    z, x = normal(100), normal(100_000)
    ours = both(lambda z, x: dropdtw.align(z, x, method="subsequence", **SQ).pairs, z, x)
    return ours | available(SUBSEQUENCES, z, x)


def soft_gradient() -> dict[str, Job]:
    from dropdtw.executors import cpu
    from dropdtw.problem.costs import Costs
    from dropdtw.problem.match import Matrix
    from dropdtw.tables import recurrence
    from dropdtw.tables.reducers import soft_min

    X, Y = normal(2, 16, 256, 8)
    C = ((X[:, :, None] - Y[:, None]) ** 2).sum(axis=-1)
    table, fold = recurrence.dtw(), soft_min(1.0)

    def ours(C: np.ndarray) -> object:
        never = np.full(256, np.inf, C.dtype)
        return [cpu.run(table, fold, Costs(Matrix(c), never, never), gradient=True) for c in C]

    return both(ours, C) | available(("pysdtw", "tslearn_soft"), X, Y)


def on(threads: int, **asked: Any) -> Call:
    """All pairs of some series, by so many threads."""
    return lambda series: dropdtw.pairwise(list(series), n_jobs=threads, **asked)


def pairs(n: int, length: int, d: int = 1, name: str = "plain", **asked: Any) -> dict[str, Job]:
    series = normal(n, length, d)
    return both(on(1, **asked), series) | available(PAIRS[name], series)


def on_threads(n: int, length: int, d: int = 1, **asked: Any) -> dict[str, Job]:
    return beside("one thread", on(2, **asked), on(1, **asked), normal(n, length, d))


def with_rule() -> dict[str, Job]:
    rule, number = ({"drop_x": said, "drop_z": said, **SQ} for said in ("percentile:30", 0.2))
    return beside("a number", on(1, **rule), on(1, **number), normal(100, 150, 1))


def one_more(d: int) -> dict[str, Job]:
    return beside(f"d = {d}", on(1, **SQ), lambda s: on(1, **SQ)(s[:, :, :d]), normal(60, 100, d + 1))


Row = tuple[str, Callable[[], dict[str, Job]], dict[str, float]]


def row(title: str, make: Callable[[], dict[str, Job]], double: float, single: float) -> Row:
    """A row: its title, what makes its jobs, and what its ratio is to be in each precision; 0: nothing."""
    return title, make, {"float64": double, "float32": single}


ROWS: dict[str, Row] = {
    "small": row("DTW value, 1-d, 60 × 60", partial(value, 60), 1, 1),
    "value": row("DTW value, 1-d, 1000 × 1000", partial(value, 1000), 5, 8),
    "drops": row(
        "two-sided Drop-DTW value, 1-d, 1000 × 1000, against plain DTW elsewhere",
        partial(value, 1000, drop_x=0.3, drop_z=0.3),
        2,
        2,
    ),
    "path": row("DTW with path, 1-d, 1000 × 1000", partial(path, 1000), 2.5, 2.5),
    "vectors": row("DTW value, 500 × 500, d = 20, sqeuclidean", vectors, 4, 6),
    "subsequence": row("subsequence with path, 1-d, 100 × 100,000", subsequence, 0, 6),
    "chroma": row("DTW with path, 2000 × 2000, d = 12, cosine", chroma, 0, 6),
    "soft_gradient": row("soft-DTW, forward and backward from C, 16 × 256 × 256", soft_gradient, 0, 10),
    "pairs": row("all pairs, 100 series of 100", partial(pairs, 100, 100, **SQ), 8, 15),
    "pairs_window": row(
        "all pairs, 200 series of 150, window of 10 %", partial(pairs, 200, 150, name="window", window=0.1, **SQ), 8, 8
    ),
    "pairs_vectors": row("all pairs, 60 × 100, d = 20", partial(pairs, 60, 100, 20, "vectors", **SQ), 5, 5),
    "pairs_lcss": row("all pairs, LCSS, 100 series of 150", partial(pairs, 100, 150, name="lcss", **LCSS), 5, 5),
    "pairs_soft": row("all pairs, soft-DTW, 100 series of 150", partial(pairs, 100, 150, name="soft", **SOFT), 20, 20),
}
"""Rows against peers."""

LIMITS: dict[str, Row] = {
    **{
        f"{name}_{d}": row(
            f"{name} costs, 500 × 500, d = {d}, × the matrix product",
            partial(with_product, getattr(costs, name), 500, 500, d),
            1.5,
            1.5,
        )
        for name in ("sqeuclidean", "cosine")
        for d in (20, 128, 512)
    },
    "features": row(
        "two-sided Drop-DTW with path, 200 × 1000, d = 128, cosine, × the matrix product",
        lambda: with_product(lambda z, x: dropdtw.align(z, x, 0.3, 0.3).pairs, 200, 1000, 128),
        1.7,
        1.7,
    ),
    "percentile": row("all pairs with 'percentile:30', 100 × 150, × the time with a number", with_rule, 3, 3),
    **{
        f"features_{d}": row(f"all pairs, 60 × 100, d = {d + 1}, × d = {d}", partial(one_more, d), 1.3, 1.3)
        for d in (4, 8, 16, 32)
    },
}
"""Rows with what they may take at most, as a multiple of something else."""

THREADS: dict[str, Row] = {
    "threads_pairs": row("all pairs, 400 × 100", partial(on_threads, 400, 100, **SQ), 1.7, 1.7),
    "threads_window": row(
        "with a window of 10 %, 400 × 150", partial(on_threads, 400, 150, window=0.1, **SQ), 1.7, 1.7
    ),
    "threads_vectors": row("d = 20, 100 × 100", partial(on_threads, 100, 100, 20, **SQ), 1.7, 1.7),
    "threads_lcss": row("LCSS, 100 × 150", partial(on_threads, 100, 150, **LCSS), 1.7, 1.7),
    "threads_soft": row("soft-DTW, 100 × 150", partial(on_threads, 100, 150, **SOFT), 1.7, 1.7),
}
"""Rows for two threads, against one."""


def measure(jobs: dict[str, Job], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """The milliseconds that a call of each job takes, in the best of its turns."""
    calls, best = {}, dict.fromkeys(jobs, np.inf)
    for name, job in jobs.items():
        job()
        start = clock()
        job()
        calls[name] = max(1, int(TURN / max(clock() - start, 1e-7)))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = clock()
            for _ in range(calls[name]):
                job()
            best[name] = min(best[name], 1e3 * (clock() - start) / calls[name])
    return best


def report(title: str, times: dict[str, float], bars: dict[str, float], *, least: bool) -> str:
    """A row of the table: our times, the fastest peer of each precision, the ratios and what they are to be."""
    cells, ours = [], {name: times[name] for name in bars}
    others = {name: ms for name, ms in times.items() if name not in bars}
    for name, bar in bars.items():
        beside = {k: ms for k, ms in others.items() if k.endswith(name) or not k.endswith(tuple(bars))}
        cells.append(f"{ours[name]:.4g} ms")
        if not beside:
            cells += ["none installed", ""]
            continue
        best = min(beside, key=lambda k: beside[k])
        ratio = beside[best] / ours[name] if least else ours[name] / beside[best]
        met = not bar or (ratio >= bar if least else ratio <= bar)
        wanted = f" ({'≥' if least else '≤'} {bar:g}{'' if met else ', missed'})" if bar else ""
        cells += [f"{best.removesuffix(name).strip()} {beside[best]:.4g} ms", f"{ratio:.2f}{wanted}"]
    return f"| {title} | {' | '.join(cells)} |"


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
    parser.add_argument("--rounds", type=int, default=7, help="how many turns each contestant has (default 7)")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="rows whose names begin so, instead of all")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    results = {}
    heads = "work | float64 | {0} | {2} | float32 | {1} | {2}"
    for rows, *names in (
        (ROWS, "fastest other", "fastest other, in float64", "ratio"),
        (LIMITS, "beside", "beside", "×"),
        (THREADS, "one thread", "one thread", "ratio"),
    ):
        chosen = {k: row for k, row in rows.items() if not arguments.only or k.startswith(tuple(arguments.only))}
        if chosen:
            print(f"\n| {heads.format(*names)} |\n|---|--:|---|--:|--:|---|--:|")
        clock = time.perf_counter if rows is THREADS else time.process_time
        for name, (title, make, bars) in chosen.items():
            times = measure(make(), arguments.rounds, clock)
            print(report(title, times, bars, least=rows is not LIMITS), flush=True)
            print(f"  {name}: {', '.join(f'{k} {ms:.4g}' for k, ms in times.items())}", file=sys.stderr)
            results[name] = times
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "milliseconds": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
