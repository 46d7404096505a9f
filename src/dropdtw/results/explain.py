"""Explanations: the best alignment that treats an element differently."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dropdtw import executors
from dropdtw.executors import graphs, reference
from dropdtw.executors.protocol import Element, Trace
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.problem.symbols import Symbols

if TYPE_CHECKING:
    from dropdtw.results.alignment import Alignment

SIDES: Final = "zx"
"""The names of the axes."""


@dataclass(frozen=True)
class Explanation:
    """What happened to an element, and the best alternative. Returned by `Alignment.explain`.

    j : the index of the element.
    matched : the indices of its matches on the other side; empty if it is dropped.
    price : what it pays: its match costs, or its drop cost.
    cost : the cost of the whole alignment.
    alternative : the indices of its matches in the best alignment that treats it differently; empty if that alignment
        drops it, None if there is no such alignment.
    alternative_cost : the cost of that alignment; +∞ if there is none.
    opening : what it pays for opening a run of drops; 0 if it does not open one.
    missing : whether it is missing, so that there was nothing to decide.
    side : "x" or "z".
    reached : False for a z of an alternative that the walk does not take.
    symbols : the elements of Z and of X if they are symbols, otherwise None.
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
    side: str = "x"
    reached: bool = True
    symbols: tuple[Symbols, Symbols] | None = field(default=None, repr=False)

    @property
    def margin(self) -> float:
        """How much more the alternative costs; a small margin means a close decision."""
        return self.alternative_cost - self.cost

    def __str__(self) -> str:
        it = self._name(self.side, self.j)
        if self.missing:
            return f"{it} is missing: it matches nothing and costs nothing"
        what = f"matched to {self._named(self.matched)}" if self.matched else "dropped"
        now = f"{it} is {what} for {self.price:.4g}" if self.reached else f"{it} is not on the walk"
        if self.opening:
            now += f" and opens a run of drops for {self.opening:.4g}"
        if self.alternative is None:
            return f"{now}; there is no alignment that treats it differently"
        instead = f"matching it to {self._named(self.alternative)}" if self.alternative else "dropping it"
        return (
            f"{now}; {instead} instead would change the total from {self.cost:.4g} to "
            f"{self.alternative_cost:.4g} (margin {self.margin:.4g})"
        )

    def _name(self, side: str, at: int) -> str:
        return f"{side}_{at}" + ("" if self.symbols is None else f" ({self.symbols[side == 'x'][at]!r})")

    def _named(self, matched: tuple[int, ...]) -> str:
        """The elements of the other side, with "to" for more than two in a row."""
        name = partial(self._name, SIDES[self.side == "z"])
        runs: list[list[int]] = []
        for i in matched:
            if runs and i == runs[-1][-1] + 1:
                runs[-1].append(i)
            else:
                runs.append([i])
        said = [
            each
            for run in runs
            for each in ([f"{name(run[0])} to {name(run[-1])}"] if len(run) > 2 else map(name, run))
        ]
        return " and ".join(filter(None, [", ".join(said[:-1]), said[-1]]))


def explain(alignment: Alignment, problem: Problem, index: int, side: str) -> Explanation:
    """Explain an element of `alignment`, which solves `problem`."""
    axis = SIDES.index(side)
    length = alignment.shape[axis]
    if not isinstance(index, (int, np.integer)) or not -length <= index < length:
        name = "j" if side == "x" else "z"
        raise IndexError(
            f"{name} is {index!r}, but {side.upper()} has {length} elements; give 0 to {length - 1}, or −{length} to "
            "−1 from the end"
        )
    at = int(index) % length
    kept = alignment.kept
    if kept is not None:
        if (alignment.missing_z, alignment.missing_x)[axis][at]:
            return Explanation(at, (), 0.0, alignment.cost, None, np.inf, missing=True, side=side)
        own, others = (kept.z, kept.x)[axis], (kept.x, kept.z)[axis]
        found = explain(alignment.compact, problem, int(np.searchsorted(own, at)), side)
        other = None if found.alternative is None else tuple(int(others[i]) for i in found.alternative)
        return replace(found, j=at, matched=tuple(int(others[i]) for i in found.matched), alternative=other)
    costs = problem.costs.with_match(problem.costs.matrix.astype(np.float64))
    mine = alignment.pairs[:, axis] == at
    here = alignment.pairs[mine, 1 - axis]
    if len(here):
        instead = _otherwise(problem, costs, here, at, axis)
        weights = 1.0 if alignment.weights is None else alignment.weights[mine]
        price = float((weights * np.take(costs.matrix, at, axis=axis)[here]).sum())
        opening = 0.0
    else:
        instead = _matched(problem, costs, Element(axis, at))
        prices, paid = ((costs.drop_z, alignment.paid_z), (costs.drop_x, alignment.paid_x))[axis]
        price = float(prices[at] * paid[at]) if paid[at] else 0.0
        opening = costs.charges._asdict()[f"open_{side}"] if paid[at] and _opens(alignment, at, axis) else 0.0
    matched = instead.pairs[instead.pairs[:, axis] == at, 1 - axis]
    return Explanation(
        at, _each(here), price, alignment.cost, _each(matched) if np.isfinite(instead.value) else None, instead.value,
        opening, side=side, reached=bool(axis or alignment.reached_z[at]),
    )  # fmt: skip


def _opens(alignment: Alignment, at: int, axis: int) -> bool:
    """Whether a dropped element is the first of a run of drops."""
    line, dropped = (
        (np.arange(alignment.shape[1]), alignment.dropped_x) if axis else (alignment.walk, alignment.dropped_z)
    )
    place = int(np.flatnonzero(line == at)[0])
    return place == 0 or not dropped[line[place - 1]]


def _otherwise(problem: Problem, costs: Costs, here: Array, at: int, axis: int) -> Trace:
    """The best alignment in which an element matches none of `here`."""
    match = costs.matrix.copy()
    forbidden: Any = (here, at) if axis else (at, here)
    match[forbidden] = np.inf
    return executors.trace(problem.paying(costs.with_match(match)))


def _matched(problem: Problem, costs: Costs, element: Element) -> Trace:
    """The best alignment in which an element is matched."""
    passes_z = element.axis == 0 and problem.graph is not None  # a walk can leave out a z
    if not problem.table.skips_for_free and not passes_z:
        name = f"drop_{SIDES[element.axis]}"
        prices = getattr(costs, name).astype(np.float64)
        prices[element.place] = np.inf
        return executors.trace(problem.paying(costs._replace(**{name: prices})))
    # A free skip has no drop cost that could be raised to +∞.
    if problem.graph is not None:
        return graphs.trace(problem.table, problem.graph, costs, matching=element)
    return reference.trace_matching(problem.table, costs, element)


def _each(matched: Array) -> tuple[int, ...]:
    """Each element once, in order: a repeated z may match the same x again."""
    return tuple(dict.fromkeys(map(int, matched)))
