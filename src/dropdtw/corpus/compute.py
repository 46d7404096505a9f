"""Values of all pairs, and alignments, on the CPU or a GPU; a pair that fails gets a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import product

import numpy as np

from dropdtw.problem.inputs import Array, as_pair
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.results.alignment import Alignment, Segment
from dropdtw.search.pairwise import all_pairs

Reasons = dict[tuple[int, int], str]
"""Why pairs (a, b) failed."""

Found = tuple[float, list[Segment]] | ValueError
"""The cost of an alignment and its segments, or why there is none."""


def values(spec: Spec, device: str, Zs: Sequence[Array], Xs: Sequence[Array], threads: int) -> tuple[Array, Reasons]:
    """The values of all pairs, (n, m): +∞ where there is no alignment, NaN where a pair fails; and the reasons."""
    out: Array = np.full((len(Zs), len(Xs)), np.inf)
    reasons: Reasons = {}
    for rows, columns in _fitting(spec, Zs, Xs):
        left, right = [Zs[a] for a in rows], [Xs[b] for b in columns]
        try:
            out[np.ix_(rows, columns)] = _values(spec, device, left, right, threads)
        except ValueError:  # at least one pair fails: retry one by one to find which
            for a, b in product(rows, columns):
                try:
                    out[a, b] = _values(spec, device, [Zs[a]], [Xs[b]], 1)[0, 0]
                except ValueError as error:
                    out[a, b], reasons[a, b] = np.nan, str(error)
    return out, reasons


def alignments(spec: Spec, device: str, Zs: Sequence[Array], Xs: Sequence[Array], pool: Executor) -> list[Found]:
    """The best alignment of each Z with its X, in order."""
    if not Zs:
        return []
    if Zs[0].dtype.kind == "U":
        return list(pool.map(lambda Z, X: _alignment(Problem.of_sequences, spec, Z, X), Zs, Xs))
    match = spec.resolved(Zs[0].shape[1])
    match.check_features(Zs[0].shape[1])
    if device == "cpu":

        def checked(spec: Spec, Z: Array, X: Array) -> Problem:
            return Problem.of_checked(spec, *as_pair(Z, X), match)

        return list(pool.map(lambda Z, X: _alignment(checked, spec, Z, X), Zs, Xs))
    from dropdtw.corpus import gpu

    def some(left: Sequence[Array], right: Sequence[Array]) -> list[Found]:
        try:
            found = gpu.align(left, right, spec, device)
        except ValueError as error:  # at least one pair fails: retry one by one to find which
            if len(left) == 1:
                return [error]
            return [some([Z], [X])[0] for Z, X in zip(left, right, strict=True)]
        return [f if np.isfinite(f[0]) else ValueError("every alignment is forbidden") for f in found]

    return some(Zs, Xs)


def _alignment(problem: Callable[[Spec, Array, Array], Problem], spec: Spec, Z: Array, X: Array) -> Found:
    try:
        a = Alignment.of(problem(spec, Z, X))
    except ValueError as error:
        return error
    return a.cost, a.segments()


def _fitting(spec: Spec, Zs: Sequence[Array], Xs: Sequence[Array]) -> Iterator[tuple[list[int], list[int]]]:
    """The pairs whose lengths allow an alignment, as a few blocks of (rows, columns), usually one."""
    by_columns: dict[tuple[int, ...], list[int]] = {}
    known: dict[int, tuple[int, ...]] = {}
    for a, Z in enumerate(Zs):
        if len(Z) not in known:
            known[len(Z)] = tuple(b for b, X in enumerate(Xs) if spec.fits(len(Z), len(X)))
        by_columns.setdefault(known[len(Z)], []).append(a)
    return ((rows, list(columns)) for columns, rows in by_columns.items() if columns)


def _values(spec: Spec, device: str, Zs: Sequence[Array], Xs: Sequence[Array], threads: int) -> Array:
    if device == "cpu":
        return all_pairs(spec, Zs, Xs, threads, progress=False)
    from dropdtw.corpus import gpu

    return gpu.values(Zs, Xs, spec, device)
