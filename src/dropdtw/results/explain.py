"""Explanations: the best alignment that treats an element differently."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dropdtw import executors
from dropdtw.executors import graphs, reference
from dropdtw.executors.protocol import Trace
from dropdtw.problem.costs import Costs
from dropdtw.problem.problem import Problem

if TYPE_CHECKING:
    from dropdtw.results.alignment import Alignment


@dataclass(frozen=True)
class Explanation:
    """What happened to x_j, and the best alternative. Returned by `Alignment.explain`.

    j : the index of the x.
    matched : the indices of the z that x_j matches; empty if x_j is dropped.
    price : what x_j pays: its match costs, or its drop cost.
    cost : the cost of the whole alignment.
    alternative : the indices of the z that x_j matches in the best alignment that treats it differently; empty if that
        alignment drops x_j, None if there is no such alignment.
    alternative_cost : the cost of that alignment; +∞ if there is none.
    opening : what x_j pays for opening a run of drops; 0 if it does not open one.
    missing : whether x_j is missing, so that there was nothing to decide.
    margin : alternative_cost − cost. For a best alignment it is never negative, up to rounding. A sample from a
        posterior need not be a best alignment.

    >>> import dropdtw
    >>> found = dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3).explain(1)
    >>> found.matched, found.alternative, round(found.margin, 6)
    ((), (0,), 0.6)
    """

    j: int
    matched: tuple[int, ...]
    price: float
    cost: float
    alternative: tuple[int, ...] | None
    alternative_cost: float
    opening: float = 0.0
    missing: bool = False

    @property
    def margin(self) -> float:
        """How much more the alternative costs; a small margin means a close decision."""
        return self.alternative_cost - self.cost

    def __str__(self) -> str:
        if self.missing:
            return f"x_{self.j} is missing: it matches nothing and costs nothing"
        now = f"x_{self.j} is {_name(self.matched)} for {self.price:.4g}"
        if self.opening:
            now += f" and opens a run of drops for {self.opening:.4g}"
        if self.alternative is None:
            return f"{now}; there is no alignment that treats it differently"
        return (
            f"{now}; {_instead(self.alternative)} instead would change the total from {self.cost:.4g} to "
            f"{self.alternative_cost:.4g} (margin {self.margin:.4g})"
        )


def explain(alignment: Alignment, problem: Problem, j: int) -> Explanation:
    """Explain x_j of `alignment`, which solves `problem`."""
    N = alignment.shape[1]
    if not isinstance(j, (int, np.integer)) or not -N <= j < N:
        raise IndexError(f"j is {j!r}, but X has {N} elements; give 0 to {N - 1}, or −{N} to −1 from the end")
    j %= N
    kept = alignment.kept
    if kept is not None:
        if alignment.missing_x[j]:
            return Explanation(j, (), 0.0, alignment.cost, None, np.inf, missing=True)
        found = explain(alignment.compact, problem, int(np.searchsorted(kept.x, j)))
        other_z = None if found.alternative is None else tuple(int(kept.z[i]) for i in found.alternative)
        return replace(found, j=j, matched=tuple(int(kept.z[i]) for i in found.matched), alternative=other_z)
    costs = problem.costs.with_match(problem.costs.matrix.astype(np.float64))
    here = alignment.pairs[alignment.pairs[:, 1] == j, 0]
    if len(here):
        other = _otherwise(problem, costs, here, j)
        weights = 1.0 if alignment.weights is None else alignment.weights[alignment.pairs[:, 1] == j]
        price = float((weights * costs.matrix[here, j]).sum())
        opening = 0.0
    else:
        other = _matched(problem, costs, j)
        price = float(costs.drop_x[j]) if alignment.paid_x[j] else 0.0
        opens = alignment.paid_x[j] and (j == 0 or not alignment.dropped_x[j - 1])
        opening = costs.charges.open_x if opens else 0.0
    instead = _each(other.pairs[other.pairs[:, 1] == j, 0]) if np.isfinite(other.value) else None
    return Explanation(j, _each(here), price, alignment.cost, instead, other.value, opening)


def _otherwise(problem: Problem, costs: Costs, here: np.ndarray, j: int) -> Trace:
    """The best alignment in which x_j matches none of `here`."""
    match = costs.matrix.copy()
    match[here, j] = np.inf
    return executors.trace(problem.paying(costs.with_match(match)))


def _matched(problem: Problem, costs: Costs, j: int) -> Trace:
    """The best alignment in which x_j is matched."""
    if not problem.table.skips_for_free:
        drop_x = costs.drop_x.astype(np.float64)
        drop_x[j] = np.inf
        return executors.trace(problem.paying(costs._replace(drop_x=drop_x)))
    # A free skip has no drop cost that could be raised to +∞.
    if problem.graph is not None:
        return graphs.trace(problem.table, problem.graph, costs, matching=j)
    return reference.trace_matching(problem.table, costs, j)


def _each(matched: np.ndarray) -> tuple[int, ...]:
    """Each z once, in order: a repeated z may match the same x again."""
    return tuple(dict.fromkeys(map(int, matched)))


def _name(matched: tuple[int, ...]) -> str:
    return f"matched to {_list(matched)}" if matched else "dropped"


def _instead(matched: tuple[int, ...]) -> str:
    return f"matching it to {_list(matched)}" if matched else "dropping it"


def _list(matched: tuple[int, ...]) -> str:
    return " and ".join(f"z_{i}" for i in matched)
