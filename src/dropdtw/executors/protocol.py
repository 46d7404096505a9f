"""The interface of executors, and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dropdtw.drops import Lowered
from dropdtw.orders.graph import Graph
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.tables.reducers import Reducer
from dropdtw.tables.table import Recurrence


class Result(NamedTuple):
    """The value, and its derivatives with respect to the match costs, drop_x, drop_z and the charges.

    Derivatives are empty unless requested.

    arcs : (A,) the derivatives with respect to the costs of a graph's arcs; empty if the steps have no `order`,
        or if the order only says how long they all last.
    """

    value: float
    match: Array = np.empty(0)
    drop_x: Array = np.empty(0)
    drop_z: Array = np.empty(0)
    charges: Charges = NO_CHARGES
    arcs: Array = np.empty(0)


class Trace(NamedTuple):
    """A best alignment: its value, its pairs (L, 2), and how often each x_j and z_i pays its drop cost.

    weights : (L,) the factor of each pair's match cost; None means 1.
    charges : how often it pays each charge.
    walked : two arrays, (walk, visit); None if the steps have no `order`.
        walk : (W,) the z that the alignment visits, matched or dropped, in this order.
        visit : (L,) the index in `walk` of each pair's z.
    """

    value: float
    pairs: Array
    drop_x: Array
    drop_z: Array
    weights: Array | None = None
    charges: Charges = NO_CHARGES
    walked: tuple[Array, Array] | None = None

    @classmethod
    def of_steps(cls, value: float, steps: list[Step], shape: tuple[int, int], table: Recurrence) -> Trace:
        """The trace of a path. `walked` is only right for a path through a graph."""
        K, N = shape
        walk: list[int] = []
        pairs, visit, weights = [], [], []
        for step in steps:
            if step.move in ("diag", "top"):
                walk.append(step.i)
            if step.cost == "match":
                pairs.append((step.i, step.j))
                visit.append(len(walk) - 1)
                weights.append(step.weight)
        return cls(
            value,
            np.array(pairs, np.int64).reshape(-1, 2),
            np.bincount([step.j for step in steps if step.cost == "drop_x"], minlength=N),
            np.bincount([step.i for step in steps if step.cost == "drop_z"], minlength=K),
            None if table.weights <= {1.0} else np.array(weights),
            Charges(*(float(sum(step.plus == plus for step in steps)) for plus in Charges._fields)),
            (np.array(walk, np.int64), np.array(visit, np.int64)),
        )


class Element(NamedTuple):
    """An element. axis : its side, 0 for Z, 1 for X.   place : its index."""

    axis: int
    place: int


class Step(NamedTuple):
    """An edge that a path takes.

    cost, weight, plus : as in `Edge`.   i, j : the z and the x of the cell that it enters, from 0; −1 for none.
    move : as in `Edge`; only set on paths through a graph.
    """

    cost: str
    i: int
    j: int
    weight: float = 1.0
    plus: str | None = None
    move: str = ""


class Within(NamedTuple):
    """A hard value under a limit: exact if it is at most the limit, otherwise any number above the limit.

    spared : the share of cells that were not computed.
    """

    value: float
    spared: float = 0.0


class Values(NamedTuple):
    """The values of many pairs.

    abandoned : how many computations stopped early because of a limit.
    spared : the share of cells that were not computed.
    """

    values: Array
    abandoned: int = 0
    spared: float = 0.0


class Occurrences(NamedTuple):
    """For every x_j, the best path that ends with it; among ties, the one that begins last.

    cost : (N,) its cost; +∞ if there is none.   begin : (N,) its first x; −1 if there is none.
    """

    cost: Array
    begin: Array


class Terms(NamedTuple):
    """The costs of pairs of sequences, apart from their match costs.

    drop_x, drop_z : the drop costs; +∞ forbids dropping. With one per element, all sequences have this length.
    charges : the opening costs and the warp penalty.
    window : as in `Spec`.
    binary : what matches cost under a method with a threshold: (cost below the threshold, cost above it, whether the
        threshold itself counts as below). None keeps the match costs.
    threshold : the threshold of such a method.
    suggests : two booleans: whether open_x, and whether open_z, is computed from the match costs of each pair.
    greedy : whether drops are decided first, as in method "greedy".
    """

    drop_x: Lowered
    drop_z: Lowered
    charges: Charges = NO_CHARGES
    window: float | None = None
    binary: tuple[float, float, bool] | None = None
    threshold: Lowered = Lowered("number")
    suggests: tuple[bool, bool] = (False, False)
    greedy: bool = False


class Executor(Protocol):
    """The functions of an executor. `reference` and `cpu` are modules that have them."""

    def supports(self, table: Recurrence, *, graph: bool = False) -> bool:
        """Whether it has a kernel for the table, on a list of steps or on a graph."""
        ...

    def in_lanes(self, table: Recurrence) -> bool:
        """Whether unrolled kernels align several pairs at a time, so fast that lower bounds rarely pay."""
        ...

    def run(self, table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False) -> Result:
        """The value under a reducer, and, with `gradient`, its derivatives."""
        ...

    def trace(self, table: Recurrence, costs: Costs) -> Trace:
        """A best alignment."""
        ...

    def run_graph(
        self, table: Recurrence, graph: Graph, reducer: Reducer, costs: Costs, *, gradient: bool = False
    ) -> Result:
        """`run` for steps that form a graph."""
        ...

    def trace_graph(self, table: Recurrence, graph: Graph, costs: Costs) -> Trace:
        """`trace` for steps that form a graph."""
        ...

    def within(self, table: Recurrence, costs: Costs, limit: float) -> Within:
        """The hard value under a limit."""
        ...

    def occurrences(self, table: Recurrence, costs: Costs, report: Callable[[int, int], None]) -> Occurrences:
        """The best path to every x, for a table of `recurrence.occurrence` that is not anchored.

        report : called with (done, total), in columns.
        """
        ...

    def run_batch(
        self,
        table: Recurrence,
        reducer: Reducer,
        batch: Costs,
        *,
        graphs: Sequence[Graph] | None = None,
        gradient: bool = False,
        threads: int = 1,
    ) -> tuple[Array, Array, Array, Array, Array]:
        """`run` for a padded batch. Each item gets exactly the result that it would get alone.

        graphs : the graph of each item's steps; None if the steps have no `order`.

        Returns the values (B,) and, with `gradient`, their derivatives with respect to match costs (B, K, N), drop_x
        and drop_z, which are 0 in the padding, and charges (B, 3).
        """
        ...

    def pairwise(
        self,
        table: Recurrence,
        reducer: Reducer,
        metric: str,
        Zs: list[Array],
        Xs: list[Array],
        terms: Terms,
        *,
        once: bool,
        threads: int,
        report: Callable[[int, int], None],
        limit: float = np.inf,
    ) -> Values | None:
        """The values (n, m) of all pairs, computed in one call; None if the executor cannot do that.

        metric : the match cost.   once : compute each unordered pair once, because the value is symmetric.
        limit : hard values above it may be returned as +∞.
        """
        ...
