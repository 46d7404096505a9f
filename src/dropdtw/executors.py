"""The seam between the API and whatever computes: one function that takes a table, a reducer and costs."""

from __future__ import annotations

from typing import Final, Protocol

from dropdtw import reference
from dropdtw.problem import Costs, Result
from dropdtw.recurrence import Recurrence
from dropdtw.reducers import Reducer


class Run(Protocol):
    """What an executor is: see `reference.run`."""

    def __call__(self, table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False) -> Result:
        """Solve one problem; with `gradient`, also its derivatives."""
        ...


EXECUTORS: Final[dict[str, Run]] = {"reference": reference.run}
"""The executors of this installation by name, the preferred one first."""


def run(
    table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False, executor: str | None = None
) -> Result:
    """Solve one problem on the named executor, or on the best one there is."""
    if executor is None:
        executor = next(iter(EXECUTORS))
    if executor not in EXECUTORS:
        raise ValueError(
            f"executor is {executor!r}; this installation has {', '.join(map(repr, EXECUTORS))} (None picks the best)"
        )
    return EXECUTORS[executor](table, reducer, costs, gradient=gradient)
