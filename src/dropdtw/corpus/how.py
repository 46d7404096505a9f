"""How the records of a corpus are aligned: settings that a manifest can hold, and values of many pairs by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from numbers import Real
from typing import Any

import numpy as np

import dropdtw
from dropdtw import costs, drops
from dropdtw.problem.fixed import fixed
from dropdtw.problem.inputs import Array
from dropdtw.problem.prepare import check_fit, check_takes
from dropdtw.tables.methods import Options, look_up

Drop = float | str | None
Reasons = dict[tuple[int, int], str]


@dataclass(frozen=True)
class How:
    """The options of `dropdtw.align`, as names and numbers. device : "cuda" computes on a GPU."""

    match: str = "cosine"
    drop_x: Drop = None
    drop_z: Drop = None
    method: str = "drop_dtw"
    one_to_many: bool = True
    many_to_one: bool = True
    contiguous: bool = False
    window: float | None = None
    threshold: Drop = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse now what would fail on every record; numbers of NumPy become plain ones, for the manifest."""
        for name in ("match", "method"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; give a name: the manifest of a run has to say what it was"
                )
        costs.resolve(self.match)
        for name in ("drop_x", "drop_z", "threshold"):
            value = getattr(self, name)
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, Real, type(None))):
                raise ValueError(
                    f"{name} is {value!r}; give a number, or a rule such as 'percentile:30': records differ in length"
                )
            if isinstance(value, Real):
                value = float(value)
                object.__setattr__(self, name, value)
            if value != "suggest" or name != "drop_x":
                drops.resolve(value, name)
        for name in ("one_to_many", "many_to_one", "contiguous"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        if isinstance(self.window, np.generic):
            object.__setattr__(self, "window", self.window.item())
        entry = look_up(self.method, self._moves())
        check_takes(*entry, self.drop_x is not None or self.drop_z is not None, self.threshold is not None)

    def _moves(self) -> Options:
        return Options(self.one_to_many, self.many_to_one, self.contiguous)

    def options(self) -> dict[str, Any]:
        """Arguments for `dropdtw.align` and its like."""
        return {name: value for name, value in asdict(self).items() if name != "device"}

    @property
    def prunable(self) -> bool:
        """Whether `dropdtw.nearest` can rule out records: the drop costs are numbers."""
        try:
            for name in ("drop_x", "drop_z"):
                fixed(getattr(self, name), name, "")
        except ValueError:
            return False
        return self.device == "cpu"

    def fits(self, Z: Array, X: Array) -> bool:
        """Whether sequences of these lengths have an alignment at all, as far as lengths tell."""
        try:
            check_fit(len(Z), len(X), self.drop_x is None, self.drop_z is None, self._moves(), self.method)
        except ValueError:
            return False
        return True

    def values(self, Zs: Sequence[Array], Xs: Sequence[Array], threads: int) -> tuple[Array, Reasons]:
        """The values of all pairs, (n, m), +∞ where there is no alignment; NaN where a pair fails, and its reason."""
        out: Array = np.full((len(Zs), len(Xs)), np.inf)
        reasons: Reasons = {}
        for rows, columns in self._fitting(Zs, Xs):
            left, right = [Zs[a] for a in rows], [Xs[b] for b in columns]
            try:
                out[np.ix_(rows, columns)] = self._all(left, right, threads)
            except ValueError:  # of one pair at least; which, is found out one by one
                for a, b in product(rows, columns):
                    try:
                        out[a, b] = self._all([Zs[a]], [Xs[b]], 1)[0, 0]
                    except ValueError as error:
                        out[a, b], reasons[a, b] = np.nan, str(error)
        return out, reasons

    def _fitting(self, Zs: Sequence[Array], Xs: Sequence[Array]) -> Iterator[tuple[list[int], list[int]]]:
        """The pairs whose lengths allow an alignment, as few blocks of (rows, columns): usually one."""
        by_columns: dict[tuple[int, ...], list[int]] = {}
        known: dict[int, tuple[int, ...]] = {}
        for a, Z in enumerate(Zs):
            if len(Z) not in known:
                known[len(Z)] = tuple(b for b, X in enumerate(Xs) if self.fits(Z, X))
            by_columns.setdefault(known[len(Z)], []).append(a)
        return ((rows, list(columns)) for columns, rows in by_columns.items() if columns)

    def _all(self, Zs: Sequence[Array], Xs: Sequence[Array], threads: int) -> Array:
        if self.device == "cpu":
            return dropdtw.pairwise(Zs, Xs, **self.options(), n_jobs=threads, progress=False)
        from dropdtw.corpus import gpu

        return gpu.values(Zs, Xs, self)
