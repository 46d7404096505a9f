# ruff: noqa: E402
"""Measure exact top-k retrieval with pruning against `pairwise` + sort, on one core, and check that both agree.

python -m benchmarks.retrieval [--size 10000] [--queries 3] [--data tmnist walk noise series]

tmnist : clips of TMNIST, 80 classes, 100 frames each; the 32 principal components of their pixels (not the features of
    the paper's encoder, which would take long to compute). A query is a clip with another image.
walk : random walks in 32 dimensions. A query is one of them with noise, so it has one near neighbor among strangers.
noise : independent frames, so that nothing is near anything. This is the worst case.
series : random walks in 2 dimensions by Euclidean distance, with ten times the drop costs. These are aligned in SIMD
    lanes, without lower bounds.

`nearest` is measured twice: as it is, and without early abandoning of alignments that are certain to cost more than the
k-th best. Times are CPU times, so that other processes on the machine matter little.
"""

from __future__ import annotations

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable

import numpy as np

import dropdtw
from dropdtw.search import nearest as search
from dropdtw.search.index import Index
from dropdtw.search.nearest import Nearest, nearest
from reproduction.data import mnist, tmnist

FRAMES, FEATURES = 100, 32
Sequences = list[np.ndarray]
REQUESTS: dict[str, dict[str, float]] = {
    "both sides, 0.3": {"drop_x": 0.3, "drop_z": 0.3},
    "both sides, 0.1": {"drop_x": 0.1, "drop_z": 0.1},
    "x only, 0.3": {"drop_x": 0.3},
    "DTW": {},
}


def tmnist_clips(size: int, queries: int, rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    digits = mnist.load()
    images, labels = digits.train_images, digits.train_labels

    def pixels() -> np.ndarray:
        digit, trajectory = tmnist.CLASSES[rng.integers(len(tmnist.CLASSES))]
        image = images[rng.choice(np.flatnonzero(labels == digit))]
        return tmnist.clip(image, digit, trajectory, FRAMES).frames.reshape(FRAMES, -1)

    some = np.concatenate([pixels()[::5] for _ in range(100)])
    mean = some.mean(axis=0)
    basis = np.linalg.svd(some - mean, full_matrices=False)[2][:FEATURES].T
    clips = [(pixels() - mean) @ basis for _ in range(size + queries)]
    return clips[:size], clips[size:]


def walks(size: int, queries: int, rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    shape = (FRAMES, FEATURES)
    corpus = [rng.normal(size=shape).cumsum(axis=0).astype(np.float32) for _ in range(size)]
    return corpus, [(X + rng.normal(size=shape)).astype(np.float32) for X in corpus[:queries]]


def noise(size: int, queries: int, rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    made = [rng.normal(size=(FRAMES, FEATURES)).astype(np.float32) for _ in range(size + queries)]
    return made[:size], made[size:]


def series(size: int, queries: int, rng: np.random.Generator) -> tuple[Sequences, Sequences]:
    corpus = [rng.normal(size=(FRAMES, 2)).cumsum(axis=0).astype(np.float32) for _ in range(size)]
    return corpus, [(X + rng.normal(size=X.shape)).astype(np.float32) for X in corpus[:queries]]


DATA: dict[str, Callable[[int, int, np.random.Generator], tuple[Sequences, Sequences]]] = {
    "tmnist": tmnist_clips,
    "walk": walks,
    "noise": noise,
    "series": series,
}


def timed(job: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()  # CPU time: the machine may be shared
    found = job()
    return time.process_time() - start, found


def without_abandoning(job: Callable[[], object]) -> float:
    worth, search.WORTH = search.WORTH, 1.0
    try:
        return timed(job)[0]
    finally:
        search.WORTH = worth


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--size", type=int, default=10_000)
    arguments.add_argument("--queries", type=int, default=3)
    arguments.add_argument("--top", type=int, default=10)
    arguments.add_argument("--run", type=int, default=4)
    arguments.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    given = arguments.parse_args()
    print(f"{given.size} sequences of {FRAMES} frames, d = {FEATURES}, float32, cosine, top {given.top}, one core")
    for kind in given.data:
        sequences, queries = DATA[kind](given.size, given.queries, np.random.default_rng(0))
        match, scale = ("euclidean", 10.0) if kind == "series" else ("cosine", 1.0)
        took, corpus = timed(lambda: Index(sequences, run=given.run))  # noqa: B023
        if kind != "series":
            took += timed(lambda: corpus.levels(angles=True))[0]  # noqa: B023
        print(f"\n{kind}: Index built in {took:.2f} s; medians of {len(queries)} queries")
        print(
            f"{'':18}{'pairwise':>10}{'to the end':>12}{'nearest':>10}{'ratio':>8}{'pruned':>9}{'by centers':>12}"
            f"{'by frames':>11}{'abandoned':>10}{'spared':>8}"
        )
        for name, prices in REQUESTS.items():
            how = {side: scale * price for side, price in prices.items()}
            rows = []
            for Z in queries:

                def find(Z: np.ndarray = Z, **how: float) -> Nearest:
                    return nearest(Z, corpus, given.top, n_jobs=1, progress=False, match=match, **how)  # noqa: B023

                def compare(Z: np.ndarray = Z, **how: float) -> np.ndarray:
                    return dropdtw.pairwise([Z], sequences, n_jobs=1, progress=False, match=match, **how)[0]  # noqa: B023

                ours, found = timed(lambda: find(**how))  # noqa: B023
                whole = without_abandoning(lambda: find(**how))  # noqa: B023
                brute, costs = timed(lambda: compare(**how))  # noqa: B023
                best = np.lexsort((np.arange(len(costs)), costs))[: given.top]
                assert np.array_equal(best, found.indices)
                assert np.array_equal(costs[best], found.costs)
                shares = (found.pruned, found.by_centers / found.size, found.by_frames / found.size)
                rows.append((brute, whole, ours, brute / ours, *shares, found.abandoned / found.aligned, found.spared))
            brute, whole, ours, ratio, *shares = np.median(rows, axis=0)
            print(
                f"{name:18}{brute:8.2f} s{whole:10.2f} s{ours:8.2f} s{ratio:7.1f}×{shares[0]:9.1%}{shares[1]:12.1%}"
                f"{shares[2]:11.1%}{shares[3]:10.1%}{shares[4]:8.1%}"
            )


if __name__ == "__main__":
    main()
