"""Measure the throughput of one core on corpora: the numbers behind the estimates in docs/scale.md.

python benchmarks/scale.py            # takes minutes; needs dropdtw[ray]
python benchmarks/scale.py --gpu      # on a machine with CUDA; needs dropdtw[torch]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dropdtw

RNG = np.random.default_rng(0)
VIDEO = (10, 200, 512)  # steps, clips, features
HOUR = (1000, 90_000, 64)  # sentences, frames at 25 per second, features
PAIR = (100, 100, 32)


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """The median time of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def sequence(length: int, d: int) -> np.ndarray:
    return RNG.normal(size=(length, d)).astype(np.float32)


def alone() -> None:
    """One core, from arrays in memory."""
    K, N, d = VIDEO
    Z, X = sequence(K, d), sequence(N, d)
    t = seconds(lambda: dropdtw.align(Z, X, "percentile:30", method="steps"), 300)
    print(f"align of {K} x {N}, d = {d}: {1e6 * t:.0f} us, {1 / t:,.0f} per second")
    C = dropdtw.costs.cosine(Z, X)
    t = seconds(lambda: dropdtw.solve(C, 0.9, method="steps"), 300)
    print(f"    of which from match costs: {1e6 * t:.0f} us, {K * N / t / 1e6:.0f} M cells/s")
    K, N, d = HOUR
    Z, X = sequence(K, d), sequence(N, d)
    t = seconds(lambda: dropdtw.align(Z, X, 0.9, method="steps"), 3)
    print(f"align of {K} x {N}, d = {d}: {t:.2f} s, {K * N / t / 1e6:.0f} M cells/s")
    K, N, d = PAIR
    Zs, Xs = [sequence(K, d) for _ in range(20)], [sequence(N, d) for _ in range(100)]
    t = seconds(lambda: dropdtw.pairwise(Zs, Xs, 0.3, 0.3, n_jobs=1, progress=False), 3) / 2000
    print(f"pairwise of {K} x {N}, d = {d}: {1e6 * t:.0f} us per pair, {K * N / t / 1e6:.0f} M cells/s")


def corpora(count: int) -> None:
    """From Parquet to Parquet, on this machine and on Ray."""
    import dropdtw.corpus
    from dropdtw.corpus import engines
    from dropdtw.corpus.shards import open_corpus

    K, N, d = VIDEO
    Z = sequence(K, d)
    with tempfile.TemporaryDirectory() as folder:
        for f in range(4):
            dropdtw.corpus.write(
                f"{folder}/c/{f}.parquet", ((f"{f}-{k}", sequence(N, d)) for k in range(count // 4)), group=50
            )
        size = sum(p.stat().st_size for p in Path(folder, "c").iterdir())
        data = open_corpus(f"{folder}/c", 100)
        t = seconds(lambda: [sum(1 for _ in data.read(k)) for k in range(len(data.shards))], 3)
        print(f"reading {count} records of {N} x {d}: {count / t:,.0f} per second, {size / t / 1e6:,.0f} MB/s")
        ray, _ = engines._connected(cpus=2)
        for engine, workers in (("local", 1), ("local", 2), ("ray", 1), ("ray", 2)):

            def run(engine: str = engine, workers: int = workers) -> None:
                with tempfile.TemporaryDirectory() as out:
                    how = {"engine": engine, "workers": workers, "progress": False, "shard_rows": 100}
                    dropdtw.corpus.localize(Z, f"{folder}/c", f"{out}/out", drop_x="percentile:30", **how)

            t = seconds(run, 3)
            print(f"localize, {engine}, {workers} workers: {count / t:,.0f} records per second ({t:.1f} s)")
        ray.shutdown()


def on_gpu() -> None:
    """The same work on a GPU, with features in host memory."""
    import torch

    from dropdtw.corpus import gpu
    from dropdtw.problem.spec import Spec

    name = torch.cuda.get_device_name()
    for (K, N, d), count, what in ((VIDEO, 2000, "align"), (PAIR, 20_000, "values")):
        Zs, Xs = [sequence(K, d)] * (count if what == "align" else 1), [sequence(N, d) for _ in range(count)]
        moves = {"many_to_one": False, "contiguous": True} if what == "align" else {"drop_z": 0.3}
        spec = Spec.of(drop_x=0.5, **moves)
        t = seconds(lambda: getattr(gpu, what)(Zs, Xs, spec, "cuda"), 3) / count  # noqa: B023 (called at once)
        print(f"{name}: {what} of {count} x {K} x {N}, d = {d}, from host memory: {1e6 * t:.1f} us each")
        x = torch.randn(min(count, 4000), N, d, device="cuda")
        z = torch.randn(len(x), K, d, device="cuda")
        price = {"drop_x": 0.5} | ({} if what == "align" else {"drop_z": 0.3})

        def kernel(z: torch.Tensor = z, x: torch.Tensor = x, price: dict[str, float] = price) -> None:
            from dropdtw.torch import cosine, drop_dtw

            drop_dtw(cosine(z, x), reducer="hard", **price)
            torch.cuda.synchronize()

        kernel()
        t = seconds(kernel, 20) / len(x)
        print(f"    of which costs and values, features on the GPU: {1e6 * t:.2f} us, {K * N / t / 1e9:.1f} G cells/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--records", type=int, default=2000)
    given = parser.parse_args()
    if given.gpu:
        on_gpu()
    else:
        alone()
        corpora(given.records)
