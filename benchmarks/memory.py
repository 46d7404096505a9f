"""Measure time and peak memory of one large problem, in its own process, since the peak is that of the whole process.

python benchmarks/memory.py align --features 16 --match cosine
python benchmarks/memory.py align --features 2 --match sqeuclidean --drop-z 5
python benchmarks/memory.py gradient --shape 4000 4000
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import dropdtw
from dropdtw.executors import cpu
from dropdtw.problem.costs import Costs
from dropdtw.problem.match import Matrix
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import smooth_min


def peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def align(K: int, N: int, features: int, match: str, drop_z: float | None) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(K, features)).astype(np.float32)
    truth = np.repeat(np.arange(K), N // K)
    X = (Z[truth] + 0.1 * rng.normal(size=(len(truth), features))).astype(np.float32)
    X[::7] = rng.normal(size=(len(X[::7]), features))
    start = time.perf_counter()
    a = dropdtw.align(Z, X, drop_x=0.3, drop_z=drop_z, match=match)
    right = (a.labels[1::7] == truth[1::7]).mean()
    print(f"{a}\n{time.perf_counter() - start:.1f} s, {peak() / 2**30:.2f} GiB in all, {right:.2%} of a sample right")


def gradient(K: int, N: int, table: str) -> None:
    C = np.random.default_rng(0).random((K, N), dtype=np.float32)
    costs = Costs(Matrix(C), np.full(N, 0.3, np.float32), np.full(K, 0.3, np.float32))
    before = peak()
    start = time.perf_counter()
    cpu.run(getattr(recurrence, table)(), smooth_min(0.1), costs, gradient=True)
    beyond = (peak() - before) / C.nbytes - 1
    print(f"{table} {K} × {N}: {time.perf_counter() - start:.2f} s, {beyond:.2f} × C beyond C and its gradient")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=["align", "gradient"])
    parser.add_argument("--shape", type=int, nargs=2, help="K N (1000 1000000 for align, 4000 4000 for gradient)")
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--match", default="cosine")
    parser.add_argument("--drop-z", type=float)
    parser.add_argument("--table", default="two_sided")
    a = parser.parse_args()
    if a.work == "align":
        align(*(a.shape or (1000, 1_000_000)), a.features, a.match, a.drop_z)
    else:
        gradient(*(a.shape or (4000, 4000)), a.table)


if __name__ == "__main__":
    main()
