"""The values of all pairs from two lists of sequences.

Kernels compute many pairs at a time. Requests that they do not support are computed in threads: in blocks of one Z and
many X, or one by one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw import costs, executors
from dropdtw.drops import Lowered, lowered
from dropdtw.executors.protocol import Terms, Values
from dropdtw.files.progress import Progress, Report, reporter
from dropdtw.problem.charges import Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.errors import described
from dropdtw.problem.inputs import Array, Columns, as_sequence, same_precision
from dropdtw.problem.match import MatchCosts
from dropdtw.problem.missing import present, reads_places
from dropdtw.problem.problem import Problem, between
from dropdtw.problem.spec import Spec
from dropdtw.search import blocks
from dropdtw.search.blocks import Blocks
from dropdtw.tables import transforms
from dropdtw.tables.methods import Method

SHAPES = 64
"""Maximum number of shapes whose setup is cached."""

ENOUGH = 1 << 16
"""Minimum number of cells per pair for which threads help."""


class Comparison:
    """One request for many pairs, all with the same number of features. Pairs of equal shape share their setup."""

    def __init__(self, spec: Spec, features: int) -> None:
        self.spec = spec
        self.match = spec.resolved(features)
        self.match.check_features(features)
        self._of_compared = costs.resolve(spec.match, features)  # without `Method.derive`, which `_compared` applies
        self.prepared: dict[Any, Problem] = {}
        self._executor = executors.choose(spec.table, spec.executor)
        self.has_lanes = self._executor.in_lanes(spec.table)
        self._checked = False

    def value(self, Z: Array, X: Array) -> float:
        """Compute the value of one pair of sequences that are already checked."""
        spec = self.spec
        if spec.on_graph:
            return executors.value(Problem.of_checked(spec, *same_precision(Z, X), self.match), spec)
        pair = self.costs(Z, X)
        if spec.by_path:
            return executors.per_step(self._executor.trace(spec.table, pair), pair)
        if spec.reducer.name == "hard" and (limit := spec.limit(len(Z), len(X))) < np.inf:
            return self._executor.within(spec.table, pair, limit).value
        return self._executor.run(spec.table, spec.reducer, pair).value

    def costs(self, Z: Array, X: Array, match: MatchCosts | None = None) -> Costs:
        """Return the costs of a pair. match : its match costs, if the caller already has them."""
        shape = (Z.shape, X.shape, Z.dtype, X.dtype)
        if (like := self.prepared.get(shape)) is not None:
            given = like.given
            match = match or between(Z, X, self.match)
            return like.edit(given._replace(match=match))
        found = Problem.of_checked(self.spec, *same_precision(Z, X), self.match)
        if Z.dtype == X.dtype and not self.spec.needs_costs:
            if len(self.prepared) >= SHAPES:
                self.prepared.clear()
            bare = found.given.with_match(np.empty((0, 0), found.given.dtype))
            self.prepared[shape] = Problem(found.method, found.table, bare, bare, found.edit)
        return found.costs

    def in_lanes(
        self,
        Zs: list[Array],
        Xs: list[Array],
        metric: str | None,
        *,
        once: bool = False,
        threads: int = 1,
        report: Report = lambda done, total: None,
        limit: float = np.inf,
    ) -> Values | None:
        """Compute all values (n, m) with kernels that take many pairs at a time; None if no such kernel applies.

        metric : the match cost, if kernels can compute it for all of these sequences.
        """
        terms = None if metric is None else self._terms(Zs, Xs)
        if metric is None or terms is None:
            return None
        self._check(Zs[0], Xs[0])
        dtype = np.result_type(*Zs, *Xs)
        compared = [self._compared(Z, dtype) for Z in Zs]
        return self._executor.pairwise(
            self.spec.table,
            self.spec.reducer,
            metric,
            compared,
            compared if Xs is Zs else [self._compared(X, dtype) for X in Xs],
            terms,
            once=once,
            threads=threads,
            report=report,
            limit=limit,
        )

    def in_blocks(self, Zs: list[Array], Xs: list[Array]) -> Blocks | None:
        """Return a solver for any Z and all Xs that computes match costs in blocks; None if it does not apply."""
        if self._executor is executors.EXECUTORS["reference"] or not blocks.serve(self.spec, self.match, Zs, Xs):
            return None
        self._check(Zs[0], Xs[0])
        return Blocks(self.spec, self.match, self._executor, Xs)

    def _check(self, Z: Array, X: Array) -> None:
        """Check the caller's arguments by solving one pair on the general path."""
        if not self._checked:
            self.value(Z, X)
            self._checked = True

    def _compared(self, A: Array, dtype: npt.DTypeLike) -> Array:
        """Return what kernels compare instead of a sequence: its slopes, or its elements minus their means."""
        derive, prepare = self.spec.method.derive, self._of_compared.prepare
        A = A.astype(dtype, copy=False)
        A = A if derive is None else np.asarray(derive(A)[1:-1])  # the ends have no slope
        return A if prepare is None else prepare(A)

    def metric(self, Zs: list[Array], Xs: list[Array]) -> str | None:
        """The name of the match cost if kernels can compute it for all of these sequences; otherwise None."""
        match, derive = self._of_compared, self.spec.method.derive
        if match.name == "cosine" or match.prepare is not None:
            return "cosine"
        if not match.in_kernels:
            return None
        Zs, Xs = ([A if derive is None else derive(A) for A in some] for some in (Zs, Xs))
        return match.kernel_metric(np.concatenate(Zs), np.concatenate(Xs))

    def _terms(self, Zs: list[Array], Xs: list[Array]) -> Terms | None:
        """All costs of pairs other than match costs, if executors support them; otherwise None."""
        spec, method = self.spec, self.spec.method
        slopes = method.narrow is transforms.without_ends and spec.window is None
        if spec.by_path or method.weigh is not None or (method.needs_sequences and not slopes):
            return None
        drop_x, drop_z, threshold = map(lowered, (spec.drop_x, spec.drop_z, spec.threshold))
        if method.drop_cost is not None:
            drop_x = drop_z = Lowered("number", method.drop_cost)
        drop_x, drop_z = (
            Lowered("number", 0.0) if free else drop
            for drop, free in ((drop_x, method.free_x), (drop_z, method.free_z))
        )
        pair_supported = method.pair is None or method.takes_threshold
        greedy = method.name == "greedy" and method.built_in
        narrow_supported = method.narrow is None or greedy or slopes
        if not (pair_supported and narrow_supported) or spec.graph(len(Zs[0])) is not None:
            return None
        if not (drop_x.fits(Xs) and drop_z.fits(Zs) and threshold.fits([])):
            return None
        suggests = (spec.charges.open_x == "suggest", spec.charges.open_z == "suggest")
        charges = Charges(*(0.0 if isinstance(value, str) else float(value) for value in spec.charges))
        return Terms(drop_x, drop_z, charges, spec.window, _binary(method), threshold, suggests, greedy)

    def one_by_one(self, Z: Array, Xs: list[Array], limit: float, known: Callable[[int], MatchCosts | None]) -> Values:
        """Compute the hard values (m,) of one sequence and several others on one thread, each exact up to the limit.

        known : returns the match costs of Z and Xs[b] if the caller has a cheaper way to get them, else None.
        """
        values, spared = np.empty(len(Xs)), np.empty(len(Xs))
        for b, X in enumerate(Xs):
            if self.spec.on_graph:
                values[b], spared[b] = self.value(Z, X), 0.0
            else:
                values[b], spared[b] = self._executor.within(self.spec.table, self.costs(Z, X, known(b)), limit)
        return Values(values, int((spared > 0).sum()), float(np.average(spared, weights=[len(X) for X in Xs])))


def all_pairs(
    spec: Spec,
    Zs: Sequence[npt.ArrayLike],
    Xs: Sequence[npt.ArrayLike] | None,
    n_jobs: int | None,
    progress: Progress,
) -> Array:
    """See `dropdtw.pairwise`."""
    spec, Zs, Xs = _without_symbols(spec, Zs, Xs)
    left, right, some_missing = _present(spec, Zs, Xs)
    threads = thread_count(n_jobs)
    features = left[0].shape[1]
    for name, sequences in (("Zs", left), ("Xs", right)):
        for k, sequence in enumerate(sequences):
            if sequence.shape[1] != features:
                raise ValueError(
                    f"Zs[0] has {features} features and {name}[{k}] has {sequence.shape[1]}; "
                    "both need the same number, as (length, d)"
                )
    for K in {len(Z) for Z in left}:
        for N in {len(X) for X in right}:
            spec.check_fit(K, N)
    once = Xs is None and spec.is_symmetric(features, alike=len({len(Z) for Z in left}) == 1)
    report = reporter("dropdtw.pairwise", progress)
    if some_missing and reads_places(spec):
        return _with_own_setup(spec, Zs, Zs if Xs is None else Xs, report)
    comparison = Comparison(spec, features)
    metric = comparison.metric(left, right)
    limit = max(spec.limit(K, N) for K in {len(Z) for Z in left} for N in {len(X) for X in right})
    found = comparison.in_lanes(left, right, metric, once=once, threads=threads, report=report, limit=limit)
    values = _by_rows(comparison, left, right, once, threads, report) if found is None else found.values
    if spec.normalize is not None and not spec.by_path:
        values = np.asarray(values / np.array([[spec.norm(len(Z), len(X)) for X in right] for Z in left]))
    return values if spec.max_cost == np.inf else np.where(values <= spec.max_cost, values, np.inf)


def _without_symbols(
    spec: Spec, Zs: Sequence[npt.ArrayLike], Xs: Sequence[npt.ArrayLike] | None
) -> tuple[Spec, Sequence[npt.ArrayLike], Sequence[npt.ArrayLike] | None]:
    """The request and its sequences, with codes in place of symbols."""
    sides = [Zs] if Xs is None else [Zs, Xs]
    if not all(isinstance(side, Iterable) and not isinstance(side, str) for side in sides):
        return spec, Zs, Xs  # refused later
    left, right = list(Zs), None if Xs is None else list(Xs)
    spec, coded = spec.encoded(left, right, lambda side, k: f"{('Zs', 'Xs')[side]}[{k}]")
    if coded is None:
        return spec, left, right
    return spec, coded.left.codes, None if Xs is None else coded.right.codes


def _present(
    spec: Spec, Zs: Sequence[npt.ArrayLike], Xs: Sequence[npt.ArrayLike] | None
) -> tuple[list[Array], list[Array], bool]:
    """Check both lists and remove missing elements; also return whether any were missing."""
    had_missing: list[bool] = []

    def checked(values: npt.ArrayLike, name: str) -> Array:
        found, places = present(values, name, spec.missing)
        had_missing.append(places is not None)
        return found

    columns = Columns()
    left = as_sequences(Zs, "Zs", checked, columns)
    right = left if Xs is None else as_sequences(Xs, "Xs", checked, columns)
    return left, right, any(had_missing)


def _with_own_setup(spec: Spec, Zs: Sequence[npt.ArrayLike], Xs: Sequence[npt.ArrayLike], report: Report) -> Array:
    """Compute the values of pairs that share no setup.

    If elements are missing, arguments with one value per element (drop costs, ids) must be cut to those present in each
    pair.
    """
    out = np.empty((len(Zs), len(Xs)))
    for a, b in np.ndindex(out.shape):
        problem = Problem.of_sequences(spec, Zs[a], Xs[b])
        out[a, b] = executors.value(problem, spec)
        report(a * len(Xs) + b + 1, out.size)
    return out


def _by_rows(c: Comparison, left: list[Array], right: list[Array], once: bool, threads: int, report: Report) -> Array:
    """Compute the values (n, m) that kernels do not support: in blocks of one Z and many X, or one by one."""
    many, shape = c.in_blocks(left, right), (len(left), len(right))
    if many is not None:
        return in_threads(_rows_of_blocks(many, left, once), shape, once, threads, report)
    cells = (sum(map(len, left)) / len(left)) * (sum(map(len, right)) / len(right))
    if c.spec.executor == "reference":  # pure NumPy code holds the GIL
        threads = 1
    return in_threads(_rows_of_pairs(c, left, right, once), shape, once, useful_threads(threads, cells), report)


Row = tuple[int, Callable[[], Iterator[tuple[Any, Any]]]]
"""The index of a Z, and a function that yields its values, several X at a time: which X, and their values."""


def _rows_of_blocks(many: Blocks, left: list[Array], once: bool) -> list[Row]:
    """Return rows of blocks. With `once`, each Z is compared only with itself and the X that follow it."""
    which = many.order if once else range(len(left))
    return [(int(a), partial(many.values, left[a], first if once else 0)) for first, a in enumerate(which)]


def _rows_of_pairs(c: Comparison, left: list[Array], right: list[Array], once: bool) -> list[Row]:
    def values(a: int) -> Iterator[tuple[int, float]]:
        return ((b, c.value(left[a], right[b])) for b in range(a if once else 0, len(right)))

    return [(a, partial(values, a)) for a in range(len(left))]


def in_threads(
    rows: list[Row], shape: tuple[int, int], once: bool, threads: int, report: Report, kind: type = float
) -> Array:
    """Compute the values (n, m) of a kind, row by row."""
    out: Array = np.empty(shape, kind)
    total = shape[0] * (shape[0] + 1) // 2 if once else out.size
    stop = threading.Event()
    done = 0

    def keep(a: int, b: Any, values: Any) -> None:
        nonlocal done
        out[a, b] = values
        if once:
            out[b, a] = values
        done += np.size(b)
        report(done, total)

    if threads == 1:
        for a, values in rows:
            for part in values():
                keep(a, *part)
        return out

    def found(row: Row) -> list[tuple[Any, Any]]:
        return list(takewhile(lambda part: not stop.is_set(), row[1]()))

    with ThreadPoolExecutor(threads) as pool:
        try:
            for (a, _), parts in zip(rows, pool.map(found, rows), strict=True):
                for part in parts:
                    keep(a, *part)
        finally:
            stop.set()  # on Ctrl-C, running threads stop after their current pair or block
            pool.shutdown(cancel_futures=True)
    return out


def _binary(method: Method) -> tuple[float, float, bool] | None:
    """Return the cost of a match under a method with a threshold, as `Terms.binary`; None if it is the match cost."""
    if method.pair is None:
        return None
    below, at, above = method.pair(np, np.array([-1.0, 0.0, 1.0]), 0.0)
    return float(below), float(above), bool(at == below)


def useful_threads(threads: int, cells: float) -> int:
    """Return the number of threads worth using for pairs of this many cells that are solved one by one.

    Small pairs spend most of their time in Python, which runs one thread at a time, and in contention for the GIL.
    """
    return threads if cells >= ENOUGH else 1


def thread_count(n_jobs: int | None) -> int:
    """Convert `n_jobs` to a number of threads, as in scikit-learn."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}; give a number of threads, −1 for all cores, or None for one")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(n_jobs) if n_jobs > 0 else cores + 1 + int(n_jobs))


def as_sequences(
    values: Sequence[npt.ArrayLike],
    name: str,
    checked: Callable[[npt.ArrayLike, str], Array] = as_sequence,
    columns: Columns | None = None,
) -> list[Array]:
    """Check a list of sequences. columns : what data frames have in common with others."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise ValueError(f"{name} is {described(values)}; give a list of sequences")
    columns = columns or Columns()
    found = [checked(columns.sort(v, f"{name}[{k}]"), f"{name}[{k}]") for k, v in enumerate(values)]
    if not found:
        raise ValueError(f"{name} is empty; give at least one sequence")
    return found
