"""What an executor can do, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dropdtw.drops import Percentile, Suggest
from dropdtw.orders.graph import Graph
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Costs
from dropdtw.tables.reducers import Reducer
from dropdtw.tables.table import Recurrence


class Result(NamedTuple):
    """The value, and its derivatives by the match costs, drop_x, drop_z and the charges: empty unless asked for.

    arcs : (A,) the derivatives by the costs of a graph's arcs; empty where Z is a list.
    """

    value: float
    match: Array = np.empty(0)
    drop_x: Array = np.empty(0)
    drop_z: Array = np.empty(0)
    charges: Charges = NO_CHARGES
    arcs: Array = np.empty(0)


class Trace(NamedTuple):
    """A best alignment: its value, its pairs (L, 2), and how often each x_j and z_i is paid for as dropped.

    weights : (L,) how many times each pair pays its match cost; None: once.
    charges : how often it pays each charge.
    walked : (W,) the z that it comes to, matched or dropped, in its order, and (L,) which of these each pair belongs
        to; None where Z is a list.
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
        """The trace of a path through a graph. Pairs come by x; those of one x in the order of the walk."""
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


class Step(NamedTuple):
    """An edge of a path: what it pays, in which cell (0-based)."""

    cost: str
    i: int
    j: int
    weight: float = 1.0
    plus: str | None = None
    move: str = ""


class Within(NamedTuple):
    """A hard value under a limit: exact up to it, else anything above; the share of cells that was not computed."""

    value: float
    spared: float = 0.0


class Values(NamedTuple):
    """The values of many pairs, how many of them were given up because of a limit, the share of cells this spared."""

    values: Array
    abandoned: int = 0
    spared: float = 0.0


class Occurrences(NamedTuple):
    """For every x_j, the best path that ends with it: its cost (N,), +∞ where there is none, and its first x (N,), −1.

    Of equally good paths that end there, the one that begins last counts: the shortest.
    """

    cost: Array
    begin: Array


Price = float | Array | Percentile | Suggest
"""What elements pay, in every pair alike or as a rule reads it off the match costs: +∞ where there is no such price."""


class Terms(NamedTuple):
    """What pairs of sequences pay, apart from their match costs.

    drop_x, drop_z : an array has one price per element, of sequences that are all as long.
    step : what a pair pays instead of its match cost, (below the threshold, above it, whether the threshold itself
        counts as below); None: its match cost.
    suggests : whether open_x, and open_z, are read off the match costs of each pair.
    greedy : whether drops are decided first, as method "greedy" does.
    """

    drop_x: Price
    drop_z: Price
    charges: Charges = NO_CHARGES
    window: float | None = None
    step: tuple[float, float, bool] | None = None
    threshold: Price = np.inf
    suggests: tuple[bool, bool] = (False, False)
    greedy: bool = False


class Padded(NamedTuple):
    """Many problems as one batch: (B, K, N), (B, N) and (B, K); item b has the first lengths[b] rows and columns.

    charges : (B, 3), as `Charges`; None where the table charges nothing.
    """

    match: Array
    drop_x: Array
    drop_z: Array
    z_lengths: Array
    x_lengths: Array
    charges: Array | None = None


class Executor(Protocol):
    """What computes a problem. `reference` and `cpu` are modules with these functions."""

    def supports(self, table: Recurrence) -> bool:
        """Whether it has a kernel for the table."""
        ...

    def run(self, table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False) -> Result:
        """The value under a reducer, and with `gradient` its derivatives."""
        ...

    def trace(self, table: Recurrence, costs: Costs) -> Trace:
        """A best alignment."""
        ...

    def run_graph(
        self, table: Recurrence, graph: Graph, reducer: Reducer, costs: Costs, *, gradient: bool = False
    ) -> Result:
        """The same as `run` where the steps form a graph."""
        ...

    def trace_graph(self, table: Recurrence, graph: Graph, costs: Costs) -> Trace:
        """A best alignment where the steps form a graph."""
        ...

    def within(self, table: Recurrence, costs: Costs, limit: float) -> Within:
        """The hard value under a limit."""
        ...

    def occurrences(self, table: Recurrence, costs: Costs, report: Callable[[int, int], None]) -> Occurrences:
        """The best path to every x, of a table whose start state skips x for free (`recurrence.occurrence`).

        report : is called with how many of the x are done, and of how many.
        """
        ...

    def run_batch(
        self,
        table: Recurrence,
        reducer: Reducer,
        padded: Padded,
        *,
        graphs: Sequence[Graph] | None = None,
        gradient: bool = False,
        threads: int = 1,
    ) -> tuple[Array, Array, Array, Array, Array]:
        """A padded batch, each item exactly as it would be alone.

        graphs : the graph of each item's steps; None where Z are lists.

        Gives the values (B,) and, with `gradient`, their derivatives by match costs (B, K, N), drop_x and drop_z, 0 in
        the padding, and by charges (B, 3).
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
        """The values (n, m) of all pairs, without Python between them; None where it cannot.

        metric : the match cost.   once : each unordered pair once, as the order cannot matter.
        limit : hard values above it may be +∞.
        """
        ...
