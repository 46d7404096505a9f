"""The seam between the API and whatever computes.

An executor takes a table, a reducer and costs. `EXECUTORS` lists those of this installation, the preferred one
first; the reference is always among them and runs every table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Protocol

from dropdtw import reference
from dropdtw.arrays import Array
from dropdtw.problem import Costs, Result, Trace
from dropdtw.recurrence import Recurrence
from dropdtw.reducers import Reducer

try:
    from dropdtw.kernels import cpp
except ImportError as missing:
    _missing: ImportError | None = missing
else:
    _missing = None


class Run(Protocol):
    """Solve one problem; with `gradient`, also its derivatives."""

    def __call__(self, table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False) -> Result:
        """See `reference.run`."""
        ...


Lanes = Callable[
    [Recurrence, str, list[Array], list[Array], float, float, bool, int, Callable[[int, int], None]], Array | None
]
"""(table, metric, Zs, Xs, d_x, d_z, each pair once?, threads, report) → (n, m) values; None: not this request."""


class Executor(NamedTuple):
    """What an executor can do.

    run : the value of a problem under a reducer, and its derivatives.
    trace : the best alignment.
    supports : whether it has a kernel for a table.
    lanes : the hard values of many pairs at a time, None from it where there are too many features.
    """

    run: Run
    trace: Callable[[Recurrence, Costs], Trace]
    supports: Callable[[Recurrence], bool]
    lanes: Lanes | None = None


EXECUTORS: Final[dict[str, Executor]] = {
    **({} if _missing else {"cpp": Executor(cpp.run, cpp.trace, cpp.supports, cpp.lanes)}),
    "reference": Executor(reference.run, reference.trace, lambda table: True),
}
"""The executors of this installation by name, the preferred one first."""


def choose(table: Recurrence, name: str | None = None) -> Executor:
    """The executor called `name`, or the best one for the table."""
    if name is None:
        _say_once_what_is_missing()
        return next(e for e in EXECUTORS.values() if e.supports(table))
    if not isinstance(name, str) or name not in EXECUTORS:
        raise ValueError(
            f"executor is {name!r}; this installation has {', '.join(map(repr, EXECUTORS))} (None picks the best)"
        )
    if not EXECUTORS[name].supports(table):
        raise ValueError(
            f"executor {name!r} has kernels for the built-in tables only; run {table.name!r} with executor=None"
        )
    return EXECUTORS[name]


def run_batch(
    table: Recurrence,
    reducer: Reducer,
    batch: Sequence[Costs],
    *,
    gradient: bool = False,
    executor: str | None = None,
    threads: int = 1,
) -> list[Result]:
    """Solve many problems of any sizes with one table: each exactly as it would be alone."""
    run = choose(table, executor).run
    if threads == 1 or len(batch) < 2:
        return [run(table, reducer, costs, gradient=gradient) for costs in batch]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda costs: run(table, reducer, costs, gradient=gradient), batch))


def _say_once_what_is_missing() -> None:
    global _missing
    if _missing is not None:
        reason, _missing = _missing, None
        warnings.warn(
            f"the compiled executor is not installed ({reason}); the reference executor does the work, slower. "
            "Install a C++20 compiler and reinstall dropdtw to have it built",
            RuntimeWarning,
            stacklevel=5,
        )
