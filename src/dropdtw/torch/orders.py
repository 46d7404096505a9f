"""Orders of steps in a batch: one for all items or one per item, and how each is computed.

Items whose order is a list use the kernels for lists, on rows gathered in that order. Items whose order is a graph use
the kernels for graphs. A batch with both kinds is split and reassembled, so each item gives exactly the same result as
on its own.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dropdtw.orders.graph import Graph
from dropdtw.orders.order import Order, OrderLike, as_order
from dropdtw.problem.costs import Costs
from dropdtw.problem.errors import naming_item
from dropdtw.problem.spec import Spec
from dropdtw.tables.table import Recurrence
from dropdtw.torch import ops

Orders = OrderLike | Sequence[OrderLike | None] | None
"""One order; or a list of B orders, in which None stands for the plain list 0, 1, …"""


def of_items(order: Orders, B: int) -> tuple[Order | None, ...]:
    """Return the orders of a batch: (order,) if all items share one, else one per item.

    A list whose entries are all `Order`s, lists or None holds one order per item. Any other list, such as one with a
    step number in it, is one order for all items.
    """
    if isinstance(order, Tensor):
        raise ValueError(
            f"order is a tensor of shape {tuple(order.shape)}; give an order of dropdtw.orders or a list of steps, "
            "for example order.tolist()"
        )
    if not each_its_own(order):
        return (as_order(order),)
    assert isinstance(order, (list, tuple))
    if len(order) != B:
        raise ValueError(
            f"order is a list of {len(order)} orders, one per item, but the batch has {B} items; give {B} orders, or "
            "one for all items: orders.as_order([...]) joins parts into one order"
        )
    return tuple(None if one is None else as_order(one) for one in order)


def each_its_own(order: Any) -> bool:
    """Whether `order` gives one order per item."""
    own = (Order, list, tuple)
    return isinstance(order, (list, tuple)) and bool(order) and all(o is None or isinstance(o, own) for o in order)


def select(order: Orders, items: Sequence[int]) -> Orders:
    """Return the orders of some items of a batch."""
    return [order[b] for b in items] if each_its_own(order) else order  # type: ignore[index]


@dataclass(frozen=True, eq=False)
class BatchGraphs:
    """The distinct graphs of a batch, and the index of each item's graph (None: all items use the first)."""

    distinct: tuple[Graph, ...]
    which: tuple[int, ...] | None = None

    def of_item(self, B: int) -> list[Graph]:
        """Return the graph of each of B items."""
        return [self.distinct[n] for n in self.which or (0,) * B]

    @cached_property
    def key(self) -> str:
        """A name that an operator can take; equal graphs have equal names."""
        digest = hashlib.sha256(repr(self.which).encode())
        for graph in self.distinct:
            parts = (graph.label, graph.source, graph.target, graph.use, graph.cost, graph.hub, graph.again)
            for part in (*parts, np.array([graph.start, *graph.finals])):
                digest.update(repr(part.shape).encode() + part.tobytes())
        key = digest.hexdigest()[:32]
        ops.GRAPHS[key] = self
        return key


class ReducedOrder(NamedTuple):
    """What an order reduces to: a `graph`, or the `rows` of Z in sequence; neither for the plain list of K."""

    K: int | None
    rows: tuple[int, ...] | None = None
    graph: Graph | None = None


def path(spec: Spec) -> ReducedOrder:
    """Return the path of a request's order."""
    order = spec.order
    if order is None or order.is_plain:
        return ReducedOrder(None if order is None else order.K)
    graph = spec.graph(order.K)
    if graph is None:  # it compiles to the plain list
        return ReducedOrder(order.K)
    return (
        ReducedOrder(order.K, graph=graph)
        if graph.chain is None
        else ReducedOrder(order.K, tuple(map(int, graph.chain)))
    )


class BatchPlan(NamedTuple):
    """How to compute a batch with orders: one entry per item, or a single entry if all items are alike.

    graphed : whether the item uses a graph.   rows : otherwise, its rows of Z in sequence; None: all, unchanged.
    steps : how many rows its Z must have; None: any number.
    executor, key, graphs : the executor for the graphs, their name for torch.compile, and the graphs themselves.

    torch.compile traces its use, so it holds only plain data.
    """

    graphed: tuple[bool, ...]
    rows: tuple[tuple[int, ...] | None, ...]
    steps: tuple[int | None, ...]
    executor: str
    key: str = ""
    graphs: BatchGraphs | None = None


def plan(paths: Sequence[ReducedOrder], which: tuple[int, ...] | None, executor: str, compiling: bool) -> BatchPlan:
    """Make a plan from paths: item b has the path which[b]; with None, all items have the first.

    compiling : whether torch.compile is tracing, so that the graphs need a name.
    """
    each = [paths[n] for n in which or (0,)]
    distinct = tuple(dict.fromkeys(path.graph for path in each if path.graph is not None))
    graphs = None
    if distinct:
        number = {graph: n for n, graph in enumerate(distinct)}
        indices = tuple(number[path.graph] for path in each if path.graph is not None)
        graphs = BatchGraphs(distinct, indices if len(distinct) > 1 else None)
    return BatchPlan(
        tuple(path.graph is not None for path in each),
        tuple(path.rows for path in each),
        tuple(path.K for path in each),
        executor,
        graphs.key if graphs is not None and compiling else "",
        graphs,
    )


Solve = Callable[[Costs, ops.Operation], Tensor]


def value(given: Costs, operation: ops.Operation, plan: BatchPlan, solve: Solve) -> Tensor:
    """Compute the values (B,) of a batch; `solve` computes a batch of lists or a batch of graphs."""
    if all(plan.graphed):
        return solve(given, _on_graphs(operation, plan))
    if not any(plan.graphed):
        return solve(_gathered(given, plan.rows, plan.steps), operation)
    device = given.match.device
    lists = [b for b, graphed in enumerate(plan.graphed) if not graphed]
    graphs = [b for b, graphed in enumerate(plan.graphed) if graphed]
    some = given.of_items(torch.tensor(lists, device=device))
    some = _gathered(some, tuple(plan.rows[b] for b in lists), tuple(plan.steps[b] for b in lists))
    others = given.of_items(torch.tensor(graphs, device=device))
    values = torch.cat([solve(some, operation), solve(others, _on_graphs(operation, plan))])
    place = {b: n for n, b in enumerate(lists + graphs)}
    return values[torch.tensor([place[b] for b in range(len(place))], device=device)]


def _on_graphs(operation: ops.Operation, plan: BatchPlan) -> ops.Operation:
    graphs = None if torch.compiler.is_compiling() else plan.graphs
    return ops.Operation(operation.table, operation.reducer, operation.gamma, plan.executor, graphs, plan.key)


def _gathered(given: Costs, rows: tuple[tuple[int, ...] | None, ...], steps: tuple[int | None, ...]) -> Costs:
    """Gather the rows of a batch in their orders, one for all items or one per item.

    If lengths cannot be read, an item whose length differs from its order's gets length 0, which makes its value NaN.
    """
    C, drop_z, lengths = given.match, given.drop_z, given.lengths
    B, K, N = C.shape
    device = C.device
    if lengths is not None and any(n is not None for n in steps):
        expected = torch.tensor([-1 if n is None else n for n in steps], device=device)
        lengths = (torch.where((expected < 0) | (lengths[0] == expected), lengths[0], 0), lengths[1])
    if all(row is None for row in rows):
        return given._replace(lengths=lengths)
    listed = [tuple(range(K)) if row is None else row for row in rows]
    if len(listed) == 1:
        at = torch.tensor(listed[0], device=device)
        C, drop_z = C[:, at], drop_z[:, at]
    else:
        most = max(len(row) for row in listed)
        at = torch.tensor([row + (0,) * (most - len(row)) for row in listed], device=device)
        item = torch.arange(B, device=device)[:, None]
        C, drop_z = C[item, at], drop_z[item, at]
    if lengths is None and len({len(row) for row in listed}) == 1:
        return given._replace(match=C, drop_z=drop_z)
    z_lengths, x_lengths = lengths or (torch.full((B,), K, device=device), torch.full((B,), N, device=device))
    count = torch.tensor([0 if row is None else len(row) for row in rows], device=device)
    z_lengths = torch.where((count > 0) & (z_lengths > 0), count, z_lengths)
    return given._replace(match=C, drop_z=drop_z, lengths=(z_lengths, x_lengths))


def check_items(
    specs: Sequence[Spec], which: tuple[int, ...] | None, lengths: Sequence[tuple[int, int]], strict: bool = True
) -> None:
    """Raise if an item has other steps than its order or, if `strict`, lengths that no alignment fits.

    specs, which : the requests, and the index of each item's request; None: all items have the first.
    lengths : (K_b, N_b) of each item.
    """
    for b, (K, N) in enumerate(lengths):
        spec = specs[0 if which is None else which[b]]
        with naming_item(b, len(lengths)):
            if spec.order is not None and spec.order.steps != tuple(range(K)):
                spec.order.check_steps(K)
            if strict:
                spec.check_fit(K, N)


def on_cuda(paths: Sequence[ReducedOrder], table: Recurrence) -> str:
    """Choose the executor for these graphs on CUDA."""
    from dropdtw.executors.triton.arcs import LANES, SLOTS, fits

    large = [path.graph for path in paths if path.graph is not None and not fits(path.graph, table)]
    if not large:
        return "triton"
    warnings.warn(
        f"an order has {len(large[0])} nodes, but the CUDA kernels support up to {LANES - 1} nodes with up to {SLOTS} "
        "arcs into or out of each, so slow PyTorch operations are used instead. Constrain the order further",
        RuntimeWarning,
        stacklevel=5,
    )
    return "wavefront"
