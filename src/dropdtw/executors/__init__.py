"""The seam between the API and whatever computes.

An executor takes a table, a reducer and costs. `EXECUTORS` lists those of this installation, the preferred one
first; the reference is always among them and runs every table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np

from dropdtw.executors import reference
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Costs, Padded, Result, Trace, Values, Within
from dropdtw.tables.recurrence import Recurrence
from dropdtw.tables.reducers import Reducer

try:
    from dropdtw.executors import cpu
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
    [Recurrence, str, list[Array], list[Array], float, float, bool, int, Callable[[int, int], None], float],
    Values | None,
]
"""(table, metric, Zs, Xs, d_x, d_z, each pair once?, threads, report, limit) → (n, m); None: not this request."""


class Executor(NamedTuple):
    """What an executor can do.

    run : the value of a problem under a reducer, and its derivatives.
    trace : the best alignment.
    supports : whether it has a kernel for a table.
    lanes : the hard values of many pairs at a time, None from it where there are too many features.
    within : the hard value under a limit; without it, `run` finds the value, whatever the limit.
    run_batch : a padded batch at a time; without it, batches are run item by item.
    """

    run: Run
    trace: Callable[[Recurrence, Costs], Trace]
    supports: Callable[[Recurrence], bool]
    lanes: Lanes | None = None
    within: Callable[[Recurrence, Costs, float], Within] | None = None
    run_batch: Callable[..., tuple[Array, Array, Array, Array]] | None = None


EXECUTORS: Final[dict[str, Executor]] = {
    **({} if _missing else {"cpp": Executor(cpu.run, cpu.trace, cpu.supports, cpu.lanes, cpu.within, cpu.run_batch)}),
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
    padded: Padded,
    *,
    gradient: bool = False,
    executor: str | None = None,
    threads: int = 1,
) -> tuple[Array, Array, Array, Array]:
    """Solve a padded batch with one table, each item exactly as it would be alone.

    Gives the values (B,) and, with `gradient`, their derivatives by match costs (B, K, N), drop_x and drop_z, 0 in
    the padding.
    """
    chosen = choose(table, executor)
    if chosen.run_batch is not None:
        return chosen.run_batch(table, reducer, padded, gradient=gradient, threads=threads)
    value = np.empty(len(padded.match))
    parts = [np.zeros_like(part) if gradient else np.empty(0, part.dtype) for part in padded[:3]]
    for b, (match, d_x, d_z, k, n) in enumerate(zip(*padded, strict=True)):
        found = chosen.run(table, reducer, Costs(match[:k, :n], d_x[:n], d_z[:k]), gradient=gradient)
        value[b] = found.value
        if gradient:
            parts[0][b, :k, :n], parts[1][b, :n], parts[2][b, :k] = found[1:]
    return value, parts[0], parts[1], parts[2]


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
