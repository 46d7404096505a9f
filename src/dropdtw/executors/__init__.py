"""Executors solve problems. `EXECUTORS` lists those of this installation, the preferred one first.

The reference executor is always available and runs every table.
"""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import Final

import numpy as np

from dropdtw.executors import graphs, pieces, reference
from dropdtw.executors.protocol import Executor, Result, Step, Trace
from dropdtw.orders import durations
from dropdtw.problem.band import band
from dropdtw.problem.costs import Costs
from dropdtw.problem.errors import MismatchError, OptionError
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.problem.warn import warn
from dropdtw.tables.reducers import Reducer, hard_min
from dropdtw.tables.table import Recurrence

EXECUTORS: Final[dict[str, Executor]] = {"reference": reference}
"""The executors of this installation by name, the preferred one first."""

_slow: str | None = None  # why alignments take longer than they could
try:
    from dropdtw.executors import cpu
except ImportError as missing:
    _slow = (
        f"the compiled executor is not installed ({missing}), so the much slower reference executor is used. "
        "Install a C++20 compiler and reinstall dropdtw to build it"
    )
else:
    EXECUTORS.clear()
    EXECUTORS.update(cpp=cpu, reference=reference)
    _slow = cpu.outdated()


def choose(table: Recurrence, name: str | None = None, *, graph: bool = False) -> Executor:
    """Return the executor called `name`, or the best one for the table, on a list of steps or on a graph.

    Raises ValueError if it has no such kernel.
    """
    if name is None:
        _say_once_why_slow()
        return next(e for e in EXECUTORS.values() if e.supports(table, graph=graph))
    if not isinstance(name, str) or name not in EXECUTORS:
        raise ValueError(
            f"executor is {name!r}; this installation has {', '.join(map(repr, EXECUTORS))} (None picks the best)"
        )
    if not EXECUTORS[name].supports(table, graph=graph):
        raise ValueError(f"executor {name!r} has no kernel for {table.name!r}; run it with executor=None")
    return EXECUTORS[name]


def run(problem: Problem, reducer: Reducer, *, gradient: bool = False) -> Result:
    """Compute the value of a problem under a reducer and, with `gradient`, its derivatives.

    The value is +∞ if every alignment is forbidden.
    """
    if problem.anchors and _in_one_call(problem):
        costs, cells = pieces.together(problem)
        found = cpu.run(problem.table, reducer, costs, gradient=gradient, cells=cells)
        return found._replace(value=pieces.value(problem, found.value))
    if problem.anchors:
        return pieces.run(problem, lambda part: run(part, reducer, gradient=gradient), gradient)
    table, graph, costs = problem.table, problem.graph, problem.costs
    if graph is None:
        return choose(table, problem.executor).run(table, reducer, costs, gradient=gradient)
    listed = durations.as_list(graph, table)
    if listed is None:
        return choose(table, problem.executor, graph=True).run_graph(table, graph, reducer, costs, gradient=gradient)
    table, rows = listed
    found = choose(table, problem.executor).run(table, reducer, costs.of_rows(rows), gradient=gradient)
    if not gradient:
        return found
    match, drop_z = np.zeros_like(costs.matrix), np.zeros_like(costs.drop_z)
    np.add.at(match, rows, found.match)
    np.add.at(drop_z, rows, found.drop_z)
    arcs = np.ones(0 if graph.chain is None else len(rows), costs.dtype)
    return found._replace(match=match, drop_z=drop_z, arcs=arcs)


def _in_one_call(problem: Problem) -> bool:
    """Whether the compiled executor solves all pieces between anchors at once, which matters if they are small."""
    compiled = EXECUTORS.get("cpp")
    fits = compiled is not None and choose(problem.table, problem.executor) is compiled
    return fits and problem.graph is None and cpu.in_pieces(problem.costs)


def value(problem: Problem, spec: Spec) -> float:
    """Compute the value of a request: normalized, and +∞ above `max_cost`."""
    if spec.by_path:
        return spec.capped(per_step(trace(problem), problem))
    shape = problem.costs.shape
    return spec.capped(_within(problem, spec.reducer, spec.limit(*shape)) / spec.norm(*shape))


def _within(problem: Problem, reducer: Reducer, limit: float) -> float:
    """Compute the value of a problem under a reducer. If it exceeds the limit, return any number above the limit.

    For a hard minimum over a list of steps, the computation stops as soon as the value is certain to exceed the limit.
    """
    if problem.anchors:
        found = run(problem, reducer).value
        if found == np.inf:
            raise no_alignment(problem)
        return found
    if limit < np.inf and reducer.name == "hard" and problem.graph is None:
        return choose(problem.table, problem.executor).within(problem.table, problem.costs, limit).value
    return run(problem, reducer).value


def per_step(found: Trace, problem: Problem | Costs) -> float:
    """Divide a hard value by the number of matches and drops on its path. Drops that cost nothing do not count."""
    costs = problem if isinstance(problem, Costs) else problem.costs if problem.ids is None else problem.given
    drops = found.drop_x[costs.drop_x != 0].sum() + found.drop_z[costs.drop_z != 0].sum()
    return found.value / max(len(found.pairs) + int(drops), 1)


def trace(problem: Problem) -> Trace:
    """Find a best alignment. Its value is +∞ if every alignment is forbidden."""
    if problem.anchors and _in_one_call(problem):
        costs, cells = pieces.together(problem)
        path = cpu.trace(problem.table, costs, cells)
        return without_gates(problem, path._replace(value=pieces.value(problem, path.value)))
    if problem.anchors:
        return pieces.trace(problem, trace)
    table, graph, costs = problem.table, problem.graph, problem.costs
    if graph is None:
        return without_gates(problem, choose(table, problem.executor).trace(table, costs))
    listed = durations.as_list(graph, table)
    if listed is None:
        return without_gates(problem, choose(table, problem.executor, graph=True).trace_graph(table, graph, costs))
    table, rows = listed
    found = choose(table, problem.executor).trace(table, costs.of_rows(rows))
    visit, j = found.pairs.T
    drop_z = np.bincount(rows, found.drop_z, costs.shape[0])
    walked = (rows.copy(), visit.copy())
    return without_gates(
        problem, found._replace(pairs=np.stack([rows[visit], j], axis=1), drop_z=drop_z, walked=walked)
    )


def without_gates(problem: Problem, found: Trace) -> Trace:
    """The trace of a method that takes ids: what its table books as drops of z are entries into z (`recurrence.ctc`).

    Dropped z are those of a list that the path leaves out. It goes past them on arcs of their own.
    """
    if problem.ids is None:
        return found
    if problem.order is not None:
        return found._replace(drop_z=np.zeros_like(found.drop_z))
    unmatched = np.bincount(found.pairs[:, 0], minlength=len(problem.ids)) == 0
    return found._replace(drop_z=unmatched.astype(found.drop_z.dtype), walked=None)


def sample(problem: Problem, reducer: Reducer, n: int, rng: np.random.Generator) -> list[list[Step]]:
    """Draw n alignments, each as a list of steps; see `reference.sample`."""
    if problem.anchors:
        return pieces.sample(problem, n, lambda part: sample(part, reducer, n, rng))
    if problem.graph is None:
        return reference.sample(problem.table, reducer, problem.costs, n, rng)
    return graphs.sample(problem.table, problem.graph, reducer, problem.costs, n, rng)


def marginals(problem: Problem, reducer: Reducer) -> Array:
    """The weight that passes through each match; see `reference.marginals`."""
    if problem.graph is None:
        return reference.marginals(problem.table, reducer, problem.costs)
    return graphs.run(problem.table, problem.graph, reducer, problem.costs, gradient=True, weighted=False).match


def no_alignment(problem: Problem) -> ValueError:
    """The error for a problem in which every alignment is forbidden."""
    K, N = problem.costs.shape
    if problem.anchors and np.isfinite(run(replace(problem, anchors=()), hard_min).value):
        return OptionError(
            "anchors",
            list(problem.anchors),
            "move or remove an anchor, or give drop costs",
            f", but {pieces.gap(problem, lambda part: bool(np.isfinite(run(part, hard_min).value)))}",
        )
    if problem.masked:
        return MismatchError(
            f"no alignment of {K} × {N} fits into this mask; allow more pairs (True), or give drop costs "
            "({drop_x}, {drop_z})"
        )
    if problem.costs.band is not None:

        def feasible(width: int) -> bool:
            costs = problem.edit(problem.given._replace(band=band(K, N, width)))
            return bool(np.isfinite(run(problem.paying(costs), hard_min).value))

        if feasible(N):
            least = bisect.bisect_left(range(N), True, key=feasible)
            return ValueError(
                f"no alignment of {K} × {N} fits into this window; the smallest window that allows one is {least}"
            )
    return MismatchError(
        "every alignment is forbidden: each one needs a match or a drop that costs +inf; "
        "allow more matches in C, give drop costs ({drop_x}, {drop_z}), or scale down values that overflow"
    )


def _say_once_why_slow() -> None:
    global _slow
    if _slow is not None:
        reason, _slow = _slow, None
        warn(reason, RuntimeWarning)
