"""The values of all pairs of two lists of sequences: in lanes of the compiled executor, or one by one in threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw import executors
from dropdtw.arrays import Array, as_sequence
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost
from dropdtw.methods import Options, is_symmetric, look_up
from dropdtw.prepare import check_fit, prepare
from dropdtw.progress import Progress, Report, reporter
from dropdtw.recurrence import Recurrence
from dropdtw.reducers import Reducer


@dataclass(frozen=True)
class Request:
    """What is asked of every pair."""

    match: MatchCost
    drop_x: DropCost
    drop_z: DropCost
    options: Options
    method: str | Recurrence
    reducer: Reducer
    executor: str | None

    def value(self, Z: Array, X: Array) -> float:
        """The value of one pair."""
        C, drop_x = match_costs.with_drops(Z, X, self.match, self.drop_x)
        problem = prepare(C, drop_x, self.drop_z, self.options, self.method, self.executor)
        return problem.run(self.reducer).value


def all_pairs(
    Zs: Sequence[npt.ArrayLike],
    Xs: Sequence[npt.ArrayLike] | None,
    request: Request,
    n_jobs: int | None,
    progress: Progress,
) -> Array:
    """See `dropdtw.pairwise`."""
    left = _sequences(Zs, "Zs")
    right = left if Xs is None else _sequences(Xs, "Xs")
    threads = _threads(n_jobs)
    for name, sequences in (("Zs", left), ("Xs", right)):
        for k, sequence in enumerate(sequences):
            if sequence.shape[1] != left[0].shape[1]:
                raise ValueError(
                    f"Zs[0] has {left[0].shape[1]} features and {name}[{k}] has {sequence.shape[1]}; "
                    "both need the same number, as (length, d)"
                )
    r = request
    once = Xs is None and is_symmetric(r.match, r.drop_x, r.drop_z, r.options, r.method, r.reducer)
    for K in {len(Z) for Z in left}:
        for N in {len(X) for X in right}:
            check_fit(K, N, r.drop_x is None, r.drop_z is None, r.options, r.method)
    report = reporter("dropdtw.pairwise", progress)
    found = _in_lanes(left, right, r, once, threads, report)
    return _one_by_one(left, right, r, once, threads, report) if found is None else found


def _in_lanes(
    left: list[Array], right: list[Array], r: Request, once: bool, threads: int, report: Report
) -> Array | None:
    """All pairs by kernels that take many at a time, where there are such kernels for the request; otherwise None."""
    prices = [d for d in (r.drop_x, r.drop_z) if d is not None]
    entry = look_up(r.method, r.options)[1]
    plain = all(isinstance(d, Real) and not isinstance(d, bool) for d in prices)
    if r.reducer.name != "hard" or entry.edit is not None or r.options.window is not None or not plain:
        return None
    r.value(left[0], right[0])  # one pair the usual way checks what the caller said
    table = entry.table(r.drop_x is not None, r.drop_z is not None, r.options)
    lanes = executors.choose(table, r.executor).lanes
    metric = match_costs.kernel_metric(r.match, *left, *right)
    if lanes is None or metric is None:
        return None
    drop_x, drop_z = (np.inf if d is None else float(d) for d in (r.drop_x, r.drop_z))  # type: ignore[arg-type]
    return lanes(table, metric, left, right, drop_x, drop_z, once, threads, report)


def _one_by_one(left: list[Array], right: list[Array], r: Request, once: bool, threads: int, report: Report) -> Array:
    out = np.empty((len(left), len(right)))
    total = len(left) * (len(left) + 1) // 2 if once else out.size
    stop = threading.Event()

    def row(a: int) -> Iterator[tuple[int, float]]:
        for b in range(a if once else 0, len(right)):
            if stop.is_set():
                return
            yield b, r.value(left[a], right[b])

    def keep(a: int, b: int, value: float) -> None:
        out[a, b] = value
        if once:
            out[b, a] = value

    done = 0
    if threads == 1 or r.executor == "reference":  # NumPy alone holds Python's lock: threads would only be in the way
        for a in range(len(left)):
            for b, value in row(a):
                keep(a, b, value)
                done += 1
                report(done, total)
        return out
    with ThreadPoolExecutor(threads) as pool:
        try:
            for a, values in enumerate(pool.map(lambda a: list(row(a)), range(len(left)))):
                for b, value in values:
                    keep(a, b, value)
                done += len(values)
                report(done, total)
        finally:
            stop.set()  # on Ctrl-C, what is running ends after its current pair
            pool.shutdown(cancel_futures=True)
    return out


def _threads(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}; give a number of threads, −1 for all cores, or None for one")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(n_jobs) if n_jobs > 0 else cores + 1 + int(n_jobs))


def _sequences(values: Sequence[npt.ArrayLike], name: str) -> list[Array]:
    if not isinstance(values, Iterable):
        raise ValueError(f"{name} is {values!r}; give a list of sequences")
    found = [as_sequence(v, f"{name}[{k}]") for k, v in enumerate(values)]
    if not found:
        raise ValueError(f"{name} is empty; give at least one sequence")
    return found
