"""From what a caller says (match costs, drop rules, a method's name, options) to a table and its costs."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dropdtw import drops, executors
from dropdtw.drops import DropCost, LogitPercentile, Percentile
from dropdtw.problem.inputs import Array, as_drop_costs, as_match_costs
from dropdtw.problem.problem import Costs, Result, Sequences, Trace, Within, band
from dropdtw.tables.methods import Method, Options, look_up
from dropdtw.tables.recurrence import Recurrence
from dropdtw.tables.reducers import Reducer, hard_min


@dataclass(frozen=True, eq=False)
class Problem:
    """A table and its costs, ready for an executor.

    given : the costs as given; `costs` are the ones that are paid (LCSS and greedy drops edit them).
    edit : what makes `costs` of `given`.
    """

    method: str
    table: Recurrence
    costs: Costs
    given: Costs
    edit: Callable[[Costs], Costs]
    executor: str | None

    @property
    def C(self) -> Array:
        """The match costs as given, as a matrix."""
        return self.given.match

    def run(self, reducer: Reducer, *, gradient: bool = False, costs: Costs | None = None) -> Result:
        """Solve the problem, or the same one with other costs."""
        executor = executors.choose(self.table, self.executor)
        return executor.run(self.table, reducer, costs or self.costs, gradient=gradient)

    def within(self, limit: float, costs: Costs | None = None) -> Within:
        """The hard value where it is no more than `limit`, otherwise anything above."""
        executor = executors.choose(self.table, self.executor)
        if executor.within is None:
            return Within(self.run(hard_min, costs=costs).value)
        return executor.within(self.table, costs or self.costs, limit)

    def trace(self, costs: Costs | None = None) -> Trace:
        """Find a best alignment, for the problem's costs or for others."""
        return executors.choose(self.table, self.executor).trace(self.table, costs or self.costs)


def prepare(
    match: npt.ArrayLike | Sequences,
    drop_x: DropCost,
    drop_z: DropCost,
    options: Options,
    method: str | Recurrence,
    executor: str | None,
) -> Problem:
    """Check everything a caller said, and build the problem."""
    given = match if isinstance(match, Sequences) else as_match_costs(match)
    K, N = given.shape
    name, entry = look_up(method, options)
    d_x, d_z = _drop_vector(drop_x, "drop_x", given), _drop_vector(drop_z, "drop_z", given)
    check_takes(name, entry, d_x is not None or d_z is not None, options.threshold is not None)
    threshold = _threshold(options.threshold, given)
    check_fit(K, N, d_x is None, d_z is None, options, method)
    costs = Costs(
        given,
        np.full(N, np.inf, given.dtype) if d_x is None else d_x,
        np.full(K, np.inf, given.dtype) if d_z is None else d_z,
        None if options.window is None else band(K, N, options.window),
    )

    def edit(costs: Costs) -> Costs:
        edited: Costs = entry.edit(costs, threshold) if entry.edit else costs
        return edited

    return Problem(
        method=name,
        table=entry.table(d_x is not None, d_z is not None, options),
        costs=edit(costs),
        given=costs,
        edit=edit,
        executor=executor,
    )


def check_takes(name: str, entry: Method, drops: bool, threshold: bool) -> None:
    """Refuse what a method does not take: drop costs, a threshold; or lacks: a threshold."""
    if drops and not entry.takes_drops:
        raise ValueError(f"method {name!r} takes no drop costs; leave out drop_x and drop_z, or use 'drop_dtw'")
    if entry.takes_threshold is not threshold:
        raise ValueError(
            f"method {name!r} takes no threshold; it is for 'lcss'"
            if threshold
            else f"method {name!r} needs threshold=: the match cost under which a pair counts "
            "(a number or 'percentile:30')"
        )


def check_fit(K: int, N: int, all_x: bool, all_z: bool, options: Options, method: str | Recurrence) -> None:
    """Refuse shapes that no alignment fits; all_x and all_z: x, z were given no drop cost."""
    _, entry = look_up(method, options)
    if all_z and entry.must_match_z and K > N and (entry.one_to_one or not options.many_to_one):
        raise ValueError(
            f"{K} elements of Z cannot each have an x of their own among {N}; "
            "allow many_to_one, give drop_z, or exchange Z and X"
        )
    if all_x and entry.must_match_x and N > K and (entry.one_to_one or not options.one_to_many):
        raise ValueError(
            f"{N} elements of X cannot each have a z of their own among {K}; "
            "allow one_to_many, give drop_x, or exchange Z and X"
        )


def no_alignment(problem: Problem) -> ValueError:
    """The error for a problem in which every alignment is forbidden."""
    K, N = problem.costs.shape
    if problem.costs.band is not None:

        def feasible(width: int) -> bool:
            costs = problem.edit(replace(problem.given, band=band(K, N, width)))
            return bool(np.isfinite(problem.run(hard_min, costs=costs).value))

        if feasible(N):
            least = bisect.bisect_left(range(N), True, key=feasible)
            return ValueError(
                f"no alignment of {K} × {N} fits into this window; the least window that leaves one is {least}"
            )
    return ValueError(
        "every alignment is forbidden: each one needs a match or a drop that costs +inf; "
        "allow more matches in C, give drop costs (drop_x, drop_z), or scale down costs whose sum overflows"
    )


def _drop_vector(drop: DropCost, name: str, given: Array | Sequences) -> Array | None:
    """The drop cost of each x (name "drop_x") or z ("drop_z"); None where there is none."""
    rule = drops.resolve(drop, name)
    if rule is None:
        return None
    if isinstance(rule, LogitPercentile):
        raise ValueError(
            f"{name} is {drop!r}, which is part of the softmax match cost; "
            "use it as drop_x of align, distance or pairwise with match='softmax'"
        )
    x = name == "drop_x"
    if isinstance(rule, Percentile) and isinstance(given, Sequences) and not given.whole:
        rule = drops.percentile_of_strips(given.strips, given.sample(), rule.p)
    elif callable(rule):
        rule = rule(_matrix(given) if x else _matrix(given).T)
    length = given.shape[1 if x else 0]
    found = as_drop_costs(rule, name, length, "x_j" if x else "z_i")
    with np.errstate(over="ignore"):
        fitted = found.astype(given.dtype)
    if (np.isinf(fitted) & np.isfinite(found)).any():
        raise ValueError(f"{name} has values that {given.dtype} cannot hold; give the match costs as float64")
    return fitted


def _matrix(given: Array | Sequences) -> Array:
    return given.matrix if isinstance(given, Sequences) else given


def _threshold(threshold: DropCost, given: Array | Sequences) -> float:
    if threshold is None:
        return np.inf
    rule = drops.resolve(threshold, "threshold")
    try:
        value = np.asarray(rule(_matrix(given)) if callable(rule) else rule)
    except ValueError:  # a ragged list
        value = np.empty(2)
    if value.ndim != 0 or value.dtype.kind not in "iuf" or np.isnan(value):
        raise ValueError(f"threshold is {threshold!r}; give a number or a rule such as 'percentile:30'")
    return float(value)
