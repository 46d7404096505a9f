"""Align long sequences, including the path, each in its own process; print the time and memory it took.

python benchmarks/long.py [--shape 1000 1000000] [--match cosine] [--drop-x percentile:30] [--drop-z 0.3] [--features 8]

Without --shape, it prints what docs/performance.md shows. Memory is the peak of the process minus its inputs; the
column C is the memory that all match costs would need. Frames follow the steps with noise, and every seventh frame is
foreign. The last column is the share of the other frames, in a sample, that were matched to their own step.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

import dropdtw

SHAPES = [(1_000, 1_000_000), (20_000, 20_000)]
DROPS: list[tuple[str, str | None]] = [("0.3", None), ("0.3", "0.3"), ("percentile:10", None), ("percentile:10", "0.3")]


def price(given: str | None) -> float | str | None:
    return given if given is None or ":" in given else float(given)


def measure(K: int, N: int, features: int, match: str, drop_x: str | None, drop_z: str | None) -> dict[str, float]:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(K, features)).astype(np.float32)
    truth = np.arange(N) * K // N
    X = np.empty((N, features), np.float32)
    for start in range(0, N, 10_000):  # little by little, so that the peak is that of `align`
        part = slice(start, min(start + 10_000, N))
        X[part] = Z[truth[part]] + 0.1 * rng.normal(size=X[part].shape)
    X[::7] = rng.normal(size=X[::7].shape)
    began = time.perf_counter()
    a = dropdtw.align(Z, X, price(drop_x), price(drop_z), match=match)
    took = time.perf_counter() - began
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    right = float((a.labels[1::7] == truth[1::7]).mean())
    return {"seconds": took, "memory": peak - Z.nbytes - X.nbytes - truth.nbytes, "right": right}


def report(K: int, N: int, features: int, match: str, drop_x: str | None, drop_z: str | None) -> None:
    given = json.dumps([K, N, features, match, drop_x, drop_z])
    done = subprocess.run([sys.executable, __file__, "--one", given], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    print(
        f"{K:>7,} × {N:<9,} {match:<12} x: {drop_x!s:<14} z: {drop_z!s:<14} C {4 * K * N / 2**30:5.2f} GiB  "
        f"{found['seconds']:7.1f} s  {found['memory'] / 2**30:5.2f} GiB  {found['right']:.1%} right",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=2, metavar=("K", "N"))
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--match", nargs="+", default=["cosine", "sqeuclidean"])
    parser.add_argument("--drop-x")
    parser.add_argument("--drop-z")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*json.loads(given.one))))
        return
    drops = [(given.drop_x, given.drop_z)] if given.drop_x or given.drop_z else DROPS
    for K, N in [given.shape] if given.shape else SHAPES:
        for match in given.match:
            for drop_x, drop_z in drops:
                report(K, N, given.features, match, drop_x, drop_z)


if __name__ == "__main__":
    main()
