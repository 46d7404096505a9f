"""How the records of a corpus are aligned: settings that a manifest can hold, and values of many pairs by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np

import dropdtw
from dropdtw import costs, drops
from dropdtw.arrays import Array
from dropdtw.fixed import fixed
from dropdtw.methods import Options, look_up
from dropdtw.prepare import check_takes

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
        """Refuse now what would fail on every record."""
        for name in ("match", "method"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; give a name: the manifest of a run has to say what it was"
                )
        costs.resolve(self.match)
        entry = look_up(self.method, Options(self.one_to_many, self.many_to_one, self.contiguous))
        check_takes(*entry, self.drop_x is not None or self.drop_z is not None, self.threshold is not None)
        for name in ("drop_x", "drop_z", "threshold"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str) and (isinstance(value, bool) or not _number(value)):
                raise ValueError(
                    f"{name} is {value!r}; give a number, or a rule such as 'percentile:30': records differ in length"
                )
            if value != "suggest" or name != "drop_x":
                drops.resolve(value, name)

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

    def values(
        self, Zs: Sequence[Array], Xs: Sequence[Array], threads: int
    ) -> tuple[Array, dict[tuple[int, int], str]]:
        """The values of all pairs, (n, m), and for pairs that have none (their value is NaN) the reason."""
        try:
            return self._all(Zs, Xs, threads), {}
        except ValueError:  # of one pair at least; which, is found out one by one
            out, reasons = np.full((len(Zs), len(Xs)), np.nan), {}
            for a, Z in enumerate(Zs):
                for b, X in enumerate(Xs):
                    try:
                        out[a, b] = self._all([Z], [X], 1)[0, 0]
                    except ValueError as error:
                        reasons[a, b] = str(error)
            return out, reasons

    def _all(self, Zs: Sequence[Array], Xs: Sequence[Array], threads: int) -> Array:
        if self.device == "cpu":
            return dropdtw.pairwise(Zs, Xs, **self.options(), n_jobs=threads, progress=False)
        from dropdtw.scale import gpu

        every = [(Z, X) for Z in Zs for X in Xs]
        return gpu.values([Z for Z, _ in every], [X for _, X in every], self).reshape(len(Zs), len(Xs))


def _number(value: object) -> bool:
    return isinstance(value, Real)
