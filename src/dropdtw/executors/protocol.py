"""What an executor can do, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Costs
from dropdtw.tables.reducers import Reducer
from dropdtw.tables.table import Recurrence


class Result(NamedTuple):
    """The value, and its derivatives by the match costs, drop_x, drop_z and the charges: empty unless asked for."""

    value: float
    match: Array = np.empty(0)
    drop_x: Array = np.empty(0)
    drop_z: Array = np.empty(0)
    charges: Charges = NO_CHARGES


class Trace(NamedTuple):
    """A best alignment: its value, its pairs (L, 2), and how often each x_j and z_i is paid for as dropped.

    weights : (L,) how many times each pair pays its match cost; None: once.
    charges : how often it pays each charge.
    """

    value: float
    pairs: Array
    drop_x: Array
    drop_z: Array
    weights: Array | None = None
    charges: Charges = NO_CHARGES


class Step(NamedTuple):
    """An edge of a path: what it pays, in which cell (0-based)."""

    cost: str
    i: int
    j: int
    weight: float = 1.0
    plus: str | None = None


class Within(NamedTuple):
    """A hard value under a limit: exact up to it, else anything above; the share of cells that was not computed."""

    value: float
    spared: float = 0.0


class Values(NamedTuple):
    """The values of many pairs, how many of them were given up because of a limit, the share of cells this spared."""

    values: Array
    abandoned: int = 0
    spared: float = 0.0


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

    def within(self, table: Recurrence, costs: Costs, limit: float) -> Within:
        """The hard value under a limit."""
        ...

    def run_batch(
        self, table: Recurrence, reducer: Reducer, padded: Padded, *, gradient: bool = False, threads: int = 1
    ) -> tuple[Array, Array, Array, Array, Array]:
        """A padded batch, each item exactly as it would be alone.

        Gives the values (B,) and, with `gradient`, their derivatives by match costs (B, K, N), drop_x and drop_z, 0 in
        the padding, and by charges (B, 3).
        """
        ...

    def pairwise(
        self,
        table: Recurrence,
        metric: str,
        Zs: list[Array],
        Xs: list[Array],
        *,
        drop_x: float,
        drop_z: float,
        charges: Charges,
        once: bool,
        threads: int,
        report: Callable[[int, int], None],
        limit: float = np.inf,
    ) -> Values | None:
        """The hard values (n, m) of all pairs, many at a time; None where it cannot.

        drop_x, drop_z : +∞ where there is none.   once : each unordered pair once, as the order cannot matter.
        """
        ...
