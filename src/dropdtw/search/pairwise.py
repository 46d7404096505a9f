"""The values of all pairs of two lists of sequences: in lanes of the compiled executor, or one by one in threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw import executors
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost
from dropdtw.files.progress import Progress, Report, reporter
from dropdtw.problem.inputs import Array, as_sequence
from dropdtw.problem.prepare import Problem, check_fit, prepare
from dropdtw.problem.problem import Costs, Values
from dropdtw.tables.methods import Options, is_symmetric, look_up
from dropdtw.tables.recurrence import Recurrence
from dropdtw.tables.reducers import Reducer

SHAPES = 64
"""Shapes of pairs for which what does not depend on the match costs is kept."""


ENOUGH = 1 << 16
"""Cells of a pair from which threads help."""


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
    prepared: dict[Any, Problem] = field(default_factory=dict, repr=False, compare=False)

    def value(self, Z: Array, X: Array) -> float:
        """The value of one pair, both sequences checked already."""
        problem, costs = self.problem(Z, X)
        return problem.run(self.reducer, costs=costs).value

    def problem(self, Z: Array, X: Array, C: Array | None = None) -> tuple[Problem, Costs]:
        """A problem of the shape of this pair, and the costs of the pair, whose match costs are C where it is given."""
        shape = (Z.shape, X.shape, Z.dtype, X.dtype)
        if (like := self.prepared.get(shape)) is not None:  # all but the match costs is as it was there
            source = match_costs.between(Z, X, self.match) if C is None else C
            return like, like.edit(replace(like.given, source=source))
        source, drop_x = match_costs.with_drops(Z, X, self.match, self.drop_x)
        found = prepare(source, drop_x, self.drop_z, self.options, self.method, self.executor)
        prices = (self.drop_x, self.drop_z, self.options.threshold)
        if Z.dtype == X.dtype and all(d is None or np.asarray(d).dtype.kind in "iuf" for d in prices):  # not a rule
            without = replace(found.given, source=np.empty((0, 0), found.given.dtype))
            if len(self.prepared) >= SHAPES:
                self.prepared.clear()
            self.prepared[shape] = replace(found, given=without, costs=without)
        return found, found.costs


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
    found = _in_lanes(left, right, r, _metric(r.match, left, right), once, threads, report)
    return _one_by_one(left, right, r, once, threads, report) if found is None else found.values


def some_in_lanes(Z: Array, Xs: list[Array], r: Request, metric: str | None, limit: float = np.inf) -> Values | None:
    """As `some_one_by_one`, by kernels that take many at a time; None where there are none for the request."""
    found = _in_lanes([Z], Xs, r, metric, False, 1, lambda done, total: None, limit)
    return found and found._replace(values=found.values[0])


def some_one_by_one(
    Z: Array, Xs: list[Array], r: Request, limit: float, known: Callable[[int], Array | None]
) -> Values:
    """The hard values (m,) of one sequence and some others on one thread: exact up to the limit, else anything above.

    Sequences are checked already. `known` gives the match costs of Z and Xs[b] where the caller has them cheaper.
    """
    values, spared = np.empty(len(Xs)), np.empty(len(Xs))
    for b, X in enumerate(Xs):
        problem, costs = r.problem(Z, X, known(b))
        values[b], spared[b] = problem.within(limit, costs)
    return Values(values, int((spared > 0).sum()), float(np.average(spared, weights=[len(X) for X in Xs])))


def _in_lanes(
    left: list[Array],
    right: list[Array],
    r: Request,
    metric: str | None,
    once: bool,
    threads: int,
    report: Report,
    limit: float = np.inf,
) -> Values | None:
    """All pairs by kernels that take many at a time, where there are such kernels for the request; otherwise None."""
    if metric is None:
        return None
    prices = [d for d in (r.drop_x, r.drop_z) if d is not None]
    entry = look_up(r.method, r.options)[1]
    plain = all(isinstance(d, Real) and not isinstance(d, bool) for d in prices)
    if r.reducer.name != "hard" or entry.edit is not None or r.options.window is not None or not plain:
        return None
    if not r.prepared:
        r.value(left[0], right[0])  # one pair the usual way checks what the caller said
    table = entry.table(r.drop_x is not None, r.drop_z is not None, r.options)
    lanes = executors.choose(table, r.executor).lanes
    if lanes is None:
        return None
    drop_x, drop_z = (np.inf if d is None else float(d) for d in (r.drop_x, r.drop_z))  # type: ignore[arg-type]
    return lanes(table, metric, left, right, drop_x, drop_z, once, threads, report, limit)


def _metric(match: MatchCost, left: list[Array], right: list[Array]) -> str | None:
    """The match cost that kernels compute for all these sequences alike; None where they cannot."""
    if not isinstance(match, str) or match not in ("euclidean", "sqeuclidean"):
        return None
    return match_costs.kernel_metric(match, np.concatenate(left), np.concatenate(right))


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
    usual = (sum(map(len, left)) / len(left)) * (sum(map(len, right)) / len(right))
    if useful_threads(threads, usual) == 1 or r.executor == "reference":  # NumPy alone holds Python's lock
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


def useful_threads(threads: int, cells: float) -> int:
    """How many threads are worth having for pairs of so many cells each, one by one.

    Small ones spend their time in Python, which one thread at a time can do, and in passing its lock around.
    """
    return threads if cells >= ENOUGH else 1


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
