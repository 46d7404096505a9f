"""DTW with free ends: how many elements may be skipped at the beginning and at the end of X and of Z."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from dropdtw.tables import recurrence
from dropdtw.tables.methods import METHODS, Method
from dropdtw.tables.recurrence import End
from dropdtw.tables.table import Recurrence

STEPS = ("dtw", "asymmetric")
"""The methods whose ends can be freed."""

Limit = bool | int | tuple[bool | int, bool | int]


class Ends(NamedTuple):
    """How many elements may be skipped at the beginning and at the end of a sequence; None: any number."""

    begin: int | None
    end: int | None

    @property
    def limited(self) -> bool:
        """Whether an end has a limit above 0."""
        return bool(self.begin or self.end)

    @property
    def free(self) -> bool:
        """Whether anything may be skipped at all."""
        return self != (0, 0)

    @property
    def paid(self) -> tuple[End, End]:
        """The costs in its table: an end without a limit is free, one with a limit pays drop costs of 0 or +∞."""
        begin, end = ("free" if limit is None else "drop" for limit in self)
        return begin, end  # type: ignore[return-value]

    def said(self) -> tuple[bool | int, bool | int]:
        """The limits as the caller wrote them."""
        return tuple(True if limit is None else limit for limit in self)  # type: ignore[return-value]


def free_ends(x: Limit = True, z: Limit = False, steps: str = "dtw") -> Method:
    """DTW that may skip elements at the ends of the sequences at no cost, up to a limit. Pass the result as `method=`.

    An alignment may skip elements of X at one end and of Z at the other, but not of both at the same end. `free_ends()`
    is the method "subsequence". Whole numbers work like dtaidistance's `psi`; `steps="asymmetric"` works like
    dtw-python's `open_begin` and `open_end`.

    Parameters
    ----------
    x, z : how many elements of X and of Z may be skipped: a pair (begin, end), or one value for both ends. True: any
        number; False: none; a whole number: at most that many.
    steps : "dtw", or the step pattern "asymmetric".

    Returns
    -------
    A method, for `method=` of `solve`, `align`, `cost`, `distance`, `pairwise` and `posterior`.

    Raises
    ------
    ValueError : if a limit is not a whole number ≥ 0. `align` and the other functions raise it too, if the limits at
        both ends of a sequence add up to its length or more.

    >>> import dropdtw
    >>> Z, X = [0, 1, 2], [9, 9, 0, 1, 2, 9]
    >>> dropdtw.distance(Z, X, method=dropdtw.free_ends(x=(2, 1)))       # skips two at the beginning, one at the end
    0.0
    >>> dropdtw.distance(Z, X, method=dropdtw.free_ends(x=(1, 1)))       # the second 9 has to match
    9.0
    """
    of_x, of_z = _ends(x, "x"), _ends(z, "z")
    if steps not in STEPS:
        raise ValueError(f"steps is {steps!r}; choose one of {', '.join(map(repr, STEPS))}")
    return _method(of_x, of_z, steps)


def _ends(said: Limit, name: str) -> Ends:
    pair = said if isinstance(said, (tuple, list)) else (said, said)
    if len(pair) != 2 or not all(_is_limit(limit) for limit in pair):
        raise ValueError(
            f"{name} is {said!r}; give a pair (begin, end), or one for both: True (skip any number), False (none) or "
            "a whole number ≥ 0"
        )
    return Ends(*(None if limit is True else int(limit) for limit in pair))


def _is_limit(said: object) -> bool:
    return isinstance(said, (bool, np.bool_)) or (isinstance(said, (int, np.integer)) and int(said) >= 0)


@cache
def _method(x: Ends, z: Ends, steps: str) -> Method:
    inner = METHODS[steps]
    said = [f"{name}={ends.said()}" for name, ends in (("x", x), ("z", z)) if ends.free or name == "x"]
    said += [f"steps={steps!r}"] if steps != "dtw" else []
    counts_z = steps == "asymmetric" and not z.free
    return Method(
        f"free_ends({', '.join(said)})",
        "DTW with free ends",
        partial(_table, x, z, inner),
        takes_drops=False,
        takes_warp=inner.takes_warp,
        fixes_moves=inner.fixes_moves,
        must_match_x=not x.free,
        must_match_z=not z.free,
        symmetric=inner.symmetric and x == z,
        free_x=x.limited,
        free_z=z.limited,
        narrow=partial(_narrow, x, z) if x.limited or z.limited else None,
        norm=inner.norm if counts_z else None,
        takes_orders=inner.takes_orders and not z.free,
        refuses=partial(_refuses, x, z),
        made_by=(free_ends, (x.said(), z.said(), steps)),
    )


def _table(x: Ends, z: Ends, inner: Method, *asked: Any) -> Recurrence:
    return recurrence.free_ends(inner.table(*asked), x.paid, z.paid if z.free else None)


def _narrow(x: Ends, z: Ends, costs: Any) -> Any:
    """Forbid skipping elements that are too far from the ends."""
    z_lengths, x_lengths = costs.lengths or (None, None)
    if x.limited:
        costs = costs._replace(drop_x=_allowed(costs.xp, costs.drop_x, x, x_lengths))
    if z.limited:
        costs = costs._replace(drop_z=_allowed(costs.xp, costs.drop_z, z, z_lengths))
    return costs


def _allowed(xp: Any, drop: Any, ends: Ends, lengths: Any) -> Any:
    """0 for what may be skipped at an end that has a limit, +∞ for everything else. lengths : of padded sequences."""
    place = xp.cumsum(xp.ones_like(drop), -1)  # 1, 2, …
    length = drop.shape[-1] if lengths is None else lengths[..., None]
    # One element is matched: the last one is not skipped at the beginning, nor the first one at the end.
    at_begin, at_end = (place <= (ends.begin or 0)) & (place < length), (place > length - (ends.end or 0)) & (place > 1)
    return xp.where(at_begin | at_end, xp.zeros_like(drop), xp.full_like(drop, np.inf))


def _refuses(x: Ends, z: Ends, K: int, N: int) -> str | None:
    for name, ends, length in (("x", x, N), ("z", z, K)):
        begin, end = ends
        if begin and end and begin + end >= length:
            return (
                f"free ends {name}={(begin, end)} could skip all {length} elements of {name.upper()}; give limits that "
                f"add up to at most {length - 1}, or True for no limit"
            )
    return None
