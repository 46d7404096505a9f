"""Measure how much time `drop_dtw` adds to its executor, forward + backward, on the CPU.

python benchmarks/torch_cpu.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from dropdtw import executors
from dropdtw.problem.costs import Costs
from dropdtw.tables.recurrence import one_sided
from dropdtw.tables.reducers import smooth_min
from dropdtw.torch import drop_dtw

SHAPES = [(24, 10, 200), (64, 32, 512), (8, 400, 400), (2, 2000, 2000)]


def milliseconds(*works: Callable[[], object], repeats: int = 21) -> list[float]:
    """Medians of several works, run in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats + 2):
        for work, taken in zip(works, times, strict=True):
            begun = time.perf_counter()
            work()
            taken.append(1e3 * (time.perf_counter() - begun))
    return [statistics.median(taken[2:]) for taken in times]


def main() -> None:
    torch.manual_seed(0)
    table = one_sided()
    executor = executors.choose(table)
    print("| batch × K × N | threads | executor | `drop_dtw` | ratio |")
    print("|---|---|---|---|---|")
    for B, K, N in SHAPES:
        C = torch.rand(B, K, N, requires_grad=True)
        drop = (torch.rand(B, N) * 0.3).requires_grad_()
        never = np.full((B, K), np.inf, np.float32)
        batch = Costs(C.detach().numpy(), drop.detach().numpy(), never, None)
        for threads in (1, 2):
            torch.set_num_threads(threads)
            bare, full = milliseconds(
                lambda: executor.run_batch(table, smooth_min(0.5), batch, gradient=True, threads=threads),  # noqa: B023
                lambda: torch.autograd.grad(drop_dtw(C, drop, gamma=0.5).sum(), (C, drop)),  # noqa: B023
            )
            print(f"| {B} × {K} × {N} | {threads} | {bare:.2f} ms | {full:.2f} ms | {full / bare:.2f} |")


if __name__ == "__main__":
    main()
