"""The compiled CPU executor for steps that form a graph: one kernel for every table without a border.

The kernel reads a *plan*: the nodes of a graph in the order in which they are visited, the arcs into each node, and the
edges of a table. A plan is computed once per graph and table, and cached as long as the graph lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

import dropdtw._cpp as _cpp
from dropdtw.executors.protocol import Result, Trace
from dropdtw.orders.graph import PASS, Graph, use_of
from dropdtw.problem.charges import Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.tables.reducers import Reducer
from dropdtw.tables.table import CHARGES, COSTS, MOVES, Recurrence

REDUCER = {"hard": 0, "soft": 1, "smooth": 2}
_COST = {cost: number for number, cost in enumerate(COSTS)}
PLUS = {None: 0} | {plus: number for number, plus in enumerate(CHARGES, 1)}

BUDGET = 1 << 29
"""Maximum size of the stored columns in bytes. Beyond it, columns are computed twice: half the speed, little memory."""


class _Plan(NamedTuple):
    """A graph combined with a table: the kernel's input, and the factor of the match cost for each way."""

    kernel: _cpp.Plan
    weights: Array | None


_plans: WeakKeyDictionary[Graph, dict[Recurrence, _Plan]] = WeakKeyDictionary()


def _plan(graph: Graph, table: Recurrence) -> _Plan:
    made = _plans.setdefault(graph, {})
    found = made.get(table)
    if found is None:
        found = made[table] = _planned(graph, table)
    return found


def reads(table: Recurrence) -> bool:
    """Whether the kernel can run a table. It knows no borders, and sets the states that it can begin with to 0.

    With several ways into such a state, its soft value is below 0.
    """
    return table.border is None and set(table.at_origin.values()) == {1}


def _planned(graph: Graph, table: Recurrence) -> _Plan:
    assert reads(table), f"the kernel for graphs cannot run {table.name!r}"
    number = {state: s for s, state in enumerate(table.states)}
    uses = [use_of(e) for e in table.edges]
    edges = [
        (number[e.src], number[e.dst], use.bit_length() - 1, MOVES[e.move][1], _COST[e.cost], PLUS[e.plus])
        for e, use in zip(table.edges, uses, strict=True)
    ]
    taken = PASS
    for use in uses:
        taken |= use
    kernel = _cpp.Plan(
        label=plain(graph.label),
        level=plain(graph.levels(taken)),
        source=graph.source,
        target=graph.target,
        use=graph.use,
        cost=graph.cost,
        hub=plain(graph.hub, np.bool_),
        again=plain(graph.again, np.bool_),
        start=graph.start,
        finals=plain(graph.finals),
        states=len(table.states),
        edges=np.array(edges, np.int32).reshape(-1, 6),
        weights=np.array([e.weight for e in table.edges], np.float64),
        starts=np.array([number[s] for s in table.at_origin], np.int32),
        final_states=np.array([number[s] for s in table.final], np.int32),
    )
    weights = [e.weight for state in table.states for e in table.edges if e.dst == state]
    return _Plan(kernel, None if table.weights <= {1.0} else np.array(weights))


def run_graph(table: Recurrence, graph: Graph, reducer: Reducer, costs: Costs, *, gradient: bool = False) -> Result:
    """See `Executor.run_graph`."""
    K, N = costs.shape
    shapes = ((K, N), N, K, len(graph.arcs))
    parts = [np.zeros(shape, costs.dtype) for shape in shapes] if gradient else [None] * 4
    value, charges = _cpp.graph(
        _plan(graph, table).kernel, REDUCER[reducer.name], reducer.gamma, BUDGET, *_arguments(costs), *parts
    )
    if not gradient:
        return Result(value)
    match, drop_x, drop_z, arcs = (np.asarray(part) for part in parts)
    return Result(value, match, drop_x, drop_z, Charges(*charges), arcs)


def trace_graph(table: Recurrence, graph: Graph, costs: Costs) -> Trace:
    """See `Executor.trace_graph`."""
    K, N = costs.shape
    plan = _plan(graph, table)
    drop_x, drop_z = np.zeros(N, np.int64), np.zeros(K, np.int64)
    value, L, charges, out = _cpp.graph_trace(plan.kernel, BUDGET, *_arguments(costs), drop_x, drop_z)
    out = out.view(np.int64)  # the same bytes under NumPy's own dtype
    pairs, visit, way, walk = out[: 2 * L].reshape(L, 2), out[2 * L : 3 * L], out[3 * L : 4 * L], out[4 * L :]
    if not np.isfinite(value):
        return Trace(value, pairs, drop_x, drop_z)
    weights = None if plan.weights is None else plan.weights[way]
    return Trace(value, pairs, drop_x, drop_z, weights, Charges(*map(float, charges)), (walk, visit))


def plans(table: Recurrence, graphs: Sequence[Graph]) -> list[_cpp.Plan]:
    """The kernels' input for each graph of a batch."""
    return [_plan(graph, table).kernel for graph in graphs]


def _arguments(costs: Costs) -> tuple[Array, Array, Array, Charges]:
    dtype = costs.dtype
    return strided(costs.matrix), plain(costs.drop_x, dtype), plain(costs.drop_z, dtype), costs.charges


def plain(array: Any, dtype: Any = np.int64) -> Array:
    """Return a contiguous array, as kernels require."""
    return np.ascontiguousarray(array, dtype=dtype)


def strided(array: Array) -> Array:
    """Return the array itself if its strides are multiples of the element size, as kernels require; else a copy."""
    whole = all(step % array.itemsize == 0 for step in array.strides)
    return (
        array
        if whole and array.flags.aligned and array.dtype.isnative
        else np.array(array, array.dtype.newbyteorder("="))
    )
