"""Charges: extra costs of some edges (`Edge.plus`), for opening a run of drops or repeating an element."""

from __future__ import annotations

import math
from numbers import Real
from typing import Final, NamedTuple

import numpy as np

from dropdtw.drops import Band, chance_gain, sampled
from dropdtw.problem.errors import MismatchError, OptionError
from dropdtw.problem.inputs import Array
from dropdtw.problem.match import MatchCosts
from dropdtw.tables.methods import Method
from dropdtw.tables.table import CHARGES, Recurrence

Opening = float | str
"""What `open_x=` and `open_z=` take: the cost of opening a run of drops.

- A number ≥ 0.
- "suggest": a number chosen from the match costs. It is high enough that a few chance matches inside a run of drops do
  not pay for splitting the run.
"""


class Charges(NamedTuple):
    """The charges of a problem, in the order of `tables.table.CHARGES`.

    open_x, open_z : added once to each run of dropped x, and of dropped z.
    warp : added to each match that repeats an element.
    """

    open_x: float = 0.0
    open_z: float = 0.0
    warp: float = 0.0

    def exchanged(self) -> Charges:
        """The same charges with Z and X exchanged."""
        return Charges(self.open_z, self.open_x, self.warp)


NO_CHARGES: Final = Charges()


class RequestedCharges(NamedTuple):
    """Charges as the caller gave them: numbers, or "suggest" for an opening cost."""

    open_x: Opening = 0.0
    open_z: Opening = 0.0
    warp: float = 0.0

    @property
    def any(self) -> bool:
        """Whether any charge is not 0."""
        return any(value != 0 for value in self)

    @property
    def needs_costs(self) -> bool:
        """Whether some charge depends on the match costs."""
        return any(isinstance(value, str) for value in self)

    def price(self, costs: MatchCosts, d_x: Array, d_z: Array, band: Band) -> Charges:
        """The charges of one problem; d_x and d_z are +∞ for elements that may not be dropped."""
        wanted = [value == "suggest" for value in self]
        if not any(wanted):
            found = Charges(*map(float, self))
        else:
            # A stretch of chance matches inside a run of drops splits the run in two, on each side that may drop. The
            # extra openings together should cost as much as the stretch can save.
            C = sampled(costs, band)
            opening = chance_gain(C, _usual(d_x), _usual(d_z)) * costs.shape[1] / C.shape[1] / sum(wanted)
            found = Charges(
                opening if wanted[0] else float(self.open_x),
                opening if wanted[1] else float(self.open_z),
                float(self.warp),
            )
        for name, value in found._asdict().items():
            if value > float(np.finfo(costs.dtype).max):
                raise OptionError(name, value, "give the match costs as float64", f", which {costs.dtype} cannot hold")
        return found


def _usual(drop: Array) -> float:
    """The median drop cost of a side; 0 if nothing may be dropped."""
    finite = drop[np.isfinite(drop)]
    return float(np.median(finite)) if finite.size else 0.0


def resolve(open_x: Opening = 0.0, open_z: Opening = 0.0, warp: float = 0.0) -> RequestedCharges:
    """Validate the caller's charges on their own, without the method."""
    for name, value in (("open_x", open_x), ("open_z", open_z), ("warp", warp)):
        if isinstance(value, str) and value == "suggest" and name != "warp":
            continue
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not 0 <= value < math.inf:
            raise OptionError(name, value, "give a finite number ≥ 0" + (", or 'suggest'" if name != "warp" else ""))
        try:
            float(value)
        except OverflowError:
            raise MismatchError(f"{{{name}}} is too large for a float; give a smaller number") from None
    return RequestedCharges(open_x, open_z, warp)


def check(requested: RequestedCharges, entry: Method, table: Recurrence, drops: tuple[bool, bool]) -> None:
    """Raise if the method, or the caller's own table, does not support these charges.

    drops : whether the caller gave a drop cost for x, and for z.
    """
    for name, value, given in (("open_x", requested.open_x, drops[0]), ("open_z", requested.open_z, drops[1])):
        if value == 0:
            continue
        if not entry.takes_opening:
            raise MismatchError(
                f"method {{name!r}} takes no opening costs, but {{{name}}} is {{value!r}}; leave it out, "
                "or use 'drop_dtw', 'steps', 'needleman_wunsch', 'smith_waterman', 'greedy' or 'symmetricP1'",
                name=entry.name,
                value=value,
            )
        side = name[-1]
        if not given:
            raise OptionError(name, value, f"give {{drop_{side}}} as well", f", but no {side} may be dropped")
        if not table.pays_charge(name):
            raise _no_edge(table, name, value)
    if requested.warp != 0:
        if not entry.takes_warp:
            raise MismatchError(
                "method {name!r} takes no warp penalty, but {warp} is {value!r}; leave it out, "
                "or use 'drop_dtw' or 'dtw'",
                name=entry.name,
                value=requested.warp,
            )
        if entry.fixes_moves and not entry.built_in and not table.pays_charge("warp"):  # a table of the caller's
            raise _no_edge(table, "warp", requested.warp)


def _no_edge(table: Recurrence, name: str, value: object) -> ValueError:
    return ValueError(
        f"{name} is {value!r}, but no edge of {table.name!r} charges it; "
        f"add plus={name!r} to an edge with cost={CHARGES[name]!r}, or leave {name} out"
    )
