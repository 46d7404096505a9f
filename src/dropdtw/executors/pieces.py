"""Anchors: matches that are certain cut a problem into pieces, which are solved one by one.

A piece reaches from one anchor to the next, both included. In its corners nothing may be dropped, and so the corners
match: where z_i and x_j are the first of their piece, any other match of one would cross those of the other. Every
piece pays for both of its corners, so an anchor is paid twice, and its cost is taken off once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dropdtw.executors.protocol import Result, Step, Trace
from dropdtw.problem.charges import Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem


class Piece(NamedTuple):
    """A part of a problem, and the rows and columns where it lies."""

    problem: Problem
    rows: slice
    columns: slice


def _corners(problem: Problem) -> list[tuple[int, int]]:
    """Where pieces begin and end: the corners of the problem, and its anchors."""
    K, N = problem.costs.shape
    found = sorted({(0, 0), *problem.anchors, (K - 1, N - 1)})
    return found if len(found) > 1 else 2 * found


def pieces(problem: Problem) -> Iterator[Piece]:
    """The pieces of a problem, in order."""
    costs = problem.costs
    for begin, end in pairwise(_corners(problem)):
        (top, left), (bottom, right) = begin, end
        rows, columns = slice(top, bottom + 1), slice(left, right + 1)
        drop_x, drop_z = costs.drop_x[columns].copy(), costs.drop_z[rows].copy()
        for place, corner in ((0, begin), (-1, end)):
            if corner in problem.anchors:
                drop_x[place] = np.inf
                if problem.ids is None:  # there it is the price of entering a z
                    drop_z[place] = np.inf
        band = None
        if costs.band is not None:
            start, stop = (np.clip(limit[rows] - left, 0, right + 1 - left) for limit in costs.band)
            band = start, stop
        part = costs._replace(match=costs.match.block(rows, columns), drop_x=drop_x, drop_z=drop_z, band=band)
        ids = None if problem.ids is None else problem.ids[rows]
        yield Piece(replace(problem, costs=part, anchors=(), ids=ids), rows, columns)


def together(problem: Problem) -> tuple[Costs, Array]:
    """The costs of all pieces, for an executor that takes them in one call, and the cells where they begin and end."""
    costs = problem.costs
    drop_x, drop_z = costs.drop_x.copy(), costs.drop_z.copy()
    for i, j in problem.anchors:
        drop_x[j] = np.inf
        if problem.ids is None:  # there it is the price of entering a z
            drop_z[i] = np.inf
    return costs._replace(drop_x=drop_x, drop_z=drop_z), np.array(_corners(problem))


def value(problem: Problem, total: float) -> float:
    """The value of the whole, from the sum of its pieces; +∞ if one has no alignment."""
    return total - sum(problem.costs.match.one(i, j) for i, j in _corners(problem)[1:-1]) if total < np.inf else np.inf


def run(problem: Problem, each: Callable[[Problem], Result], gradient: bool) -> Result:
    """The value of all pieces together, and its derivatives."""
    parts = list(pieces(problem))
    found = [each(part.problem) for part in parts]
    total = value(problem, sum(one.value for one in found))
    if not gradient:
        return Result(total)
    (K, N), dtype = problem.costs.shape, problem.costs.dtype
    match, drop_x, drop_z = np.zeros((K, N), dtype), np.zeros(N, dtype), np.zeros(K, dtype)
    for part, one in zip(parts, found, strict=True):
        match[part.rows, part.columns] += one.match
        drop_x[part.columns] += one.drop_x
        drop_z[part.rows] += one.drop_z
    for i, j in _corners(problem)[1:-1]:
        match[i, j] -= 1
    charges = Charges(*np.sum([one.charges for one in found], axis=0).tolist())
    return Result(total, match, drop_x, drop_z, charges)


def trace(problem: Problem, each: Callable[[Problem], Trace]) -> Trace:
    """A best alignment: those of the pieces, one after the other."""
    K, N = problem.costs.shape
    drop_x, drop_z, pairs, values = np.zeros(N, np.int64), np.zeros(K, np.int64), list[Array](), list[float]()
    charges = np.zeros(3)
    for k, part in enumerate(pieces(problem)):
        found = each(part.problem)
        values.append(found.value)
        pairs.append(found.pairs[int(k > 0) :] + np.array([part.rows.start, part.columns.start]))
        drop_x[part.columns] += found.drop_x.astype(np.int64)
        drop_z[part.rows] += found.drop_z.astype(np.int64)
        charges += found.charges
    return Trace(value(problem, sum(values)), np.concatenate(pairs), drop_x, drop_z, None, Charges(*charges.tolist()))


def sample(problem: Problem, n: int, each: Callable[[Problem], list[list[Step]]]) -> list[list[Step]]:
    """Draw n alignments, each as a list of steps."""
    drawn: list[list[Step]] = [[] for _ in range(n)]
    for k, part in enumerate(pieces(problem)):
        for path, steps in zip(drawn, each(part.problem), strict=True):
            moved = [
                step._replace(i=step.i + part.rows.start * (step.i >= 0), j=step.j + part.columns.start * (step.j >= 0))
                for step in steps
            ]
            first = next(at for at, step in enumerate(moved) if step.cost == "match") if k else -1
            path.extend(step for at, step in enumerate(moved) if at != first)
    return drawn


def gap(problem: Problem, fits: Callable[[Problem], bool]) -> str:
    """Say between which anchors there is no alignment."""
    rows, columns = next(part[1:] for part in pieces(problem) if not fits(part.problem))
    ends = (rows.start, columns.start), (rows.stop - 1, columns.stop - 1)
    begin, end = (f"{end}" if end in problem.anchors else "an end" for end in ends)
    return f"no alignment leads from {begin} to {end}"
