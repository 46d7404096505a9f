"""The registry of methods: for each name, which table runs and which costs it is given.

One registry drives the API, the tests, the documentation and the benchmarks: a method added here is covered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dropdtw.drops import DropCost
from dropdtw.tables import recurrence
from dropdtw.tables.recurrence import Recurrence
from dropdtw.tables.reducers import Reducer


@dataclass(frozen=True)
class Options:
    """Which matches an alignment may contain; `dropdtw.solve` documents them."""

    one_to_many: bool = True
    many_to_one: bool = True
    contiguous: bool = False
    window: float | None = None
    threshold: DropCost = None

    @property
    def moves(self) -> dict[str, bool]:
        """The options that every warping table takes."""
        return {"one_to_many": self.one_to_many, "many_to_one": self.many_to_one}


@dataclass(frozen=True)
class Method:
    """An entry of the registry.

    table : the recurrence for (may x be dropped?, may z be dropped?, options).
    edit : what becomes of the costs first, given the threshold; None where they are taken as they are.
    takes_drops, takes_threshold : what the caller may give.
    one_to_one : whether each element is matched once at most, whatever the options say.
    must_match_x, must_match_z : whether an element without a drop cost has to be matched.
    symmetric : whether exchanging Z and X (and drop_x and drop_z, and the options) leaves the hard value alone.
    """

    summary: str
    table: Callable[[bool, bool, Options], Recurrence]
    edit: Callable[[Any, Any], Any] | None = None
    takes_drops: bool = True
    takes_threshold: bool = False
    one_to_one: bool = False
    must_match_x: bool = True
    must_match_z: bool = True
    symmetric: bool = True


def _by_side(x: bool, z: bool, o: Options, both: Callable[..., Recurrence]) -> Recurrence:
    if x and z:
        return both(**o.moves, contiguous=o.contiguous)
    if x:
        return recurrence.one_sided(**o.moves, contiguous=o.contiguous)
    if z:  # Algorithm 1 with exchanged roles. Where no x can be dropped, every run is contiguous.
        return recurrence.one_sided(one_to_many=o.many_to_one, many_to_one=o.one_to_many).transpose()
    return recurrence.dtw(**o.moves)


def _drop_dtw(x: bool, z: bool, o: Options) -> Recurrence:
    return _by_side(x, z, o, recurrence.two_sided)


def _subsequence(x: bool, z: bool, o: Options) -> Recurrence:
    return recurrence.subsequence(**o.moves)


# Edits of the costs, on arrays or tensors alike: `costs.xp` is the module they belong to, axes count from the end.


def _free_ends(costs: Any, threshold: Any) -> Any:
    """Subsequence DTW and OTAM: what lies before and after the matched stretch of X costs nothing."""
    return replace(costs, drop_x=costs.xp.zeros_like(costs.drop_x))


def _count(costs: Any, threshold: Any) -> Any:
    """LCSS: a pair under the threshold is worth 1, any other is forbidden, and drops cost nothing."""
    xp, match = costs.xp, costs.match
    return replace(
        costs,
        source=xp.where(match < threshold, xp.full_like(match, -1), xp.full_like(match, np.inf)),
        drop_x=xp.zeros_like(costs.drop_x),
        drop_z=xp.zeros_like(costs.drop_z),
    )


def _greedy(costs: Any, threshold: Any) -> Any:
    """Decide the drops first: what has no match as cheap as its drop is dropped, and the rest must be matched."""
    xp, match = costs.xp, costs.banded()
    never = xp.full_like(match, np.inf)
    lost_x = xp.amin(match, axis=-2) > costs.drop_x
    lost_z = xp.amin(match, axis=-1) > costs.drop_z
    return replace(
        costs,
        source=xp.where(lost_x[..., None, :] | lost_z[..., :, None], never, costs.match),
        drop_x=xp.where(lost_x, costs.drop_x, never[..., 0, :]),
        drop_z=xp.where(lost_z, costs.drop_z, never[..., :, 0]),
    )


METHODS: Final[dict[str, Method]] = {
    "drop_dtw": Method("Drop-DTW: DTW that drops what does not fit (paper Algorithms 1 and 2)", _drop_dtw),
    "drop_dtw_paper": Method(
        "Drop-DTW with Algorithm 2 as printed: other values under soft minima, for reproductions of the paper",
        lambda x, z, o: _by_side(x, z, o, recurrence.algorithm_2),
    ),
    "dtw": Method(
        "dynamic time warping: everything is matched",
        lambda x, z, o: recurrence.dtw(**o.moves),
        takes_drops=False,
    ),
    "otam": Method(
        "OTAM (Cao et al. 2020) as the paper uses it: both ends of X are free; one_to_many=False is Cao's own",
        _subsequence,
        _free_ends,
        takes_drops=False,
        must_match_x=False,
        symmetric=False,
    ),
    "subsequence": Method(
        "subsequence DTW: all of Z against the best-matching stretch of X",
        _subsequence,
        _free_ends,
        takes_drops=False,
        must_match_x=False,
        symmetric=False,
    ),
    "needleman_wunsch": Method(
        "Needleman–Wunsch (1970): one-to-one matches, paid drops on both sides",
        lambda x, z, o: recurrence.needleman_wunsch(),
        one_to_one=True,
    ),
    "smith_waterman": Method(
        "Smith–Waterman (1981): the best-scoring local stretch; useful costs are signed, a match below 0",
        lambda x, z, o: recurrence.smith_waterman(),
        one_to_one=True,
        must_match_x=False,
        must_match_z=False,
    ),
    "lcss": Method(
        "longest common subsequence (Vlachos et al. 2002): minus the number of pairs under a threshold",
        lambda x, z, o: recurrence.needleman_wunsch(),
        _count,
        takes_drops=False,
        takes_threshold=True,
        one_to_one=True,
        must_match_x=False,
        must_match_z=False,
    ),
    "greedy": Method(
        "greedy drop + DTW: drop what matches nothing cheaply, then warp the rest",
        _drop_dtw,
        _greedy,
    ),
}
"""Every method by name."""


def look_up(method: str | Recurrence, options: Options) -> tuple[str, Method]:
    """The name and the entry of a method; a table of the caller's gets an entry of its own."""
    if isinstance(method, Recurrence):
        if options.moves != Options().moves or options.contiguous:
            raise ValueError(
                "one_to_many, many_to_one and contiguous choose among built-in tables, but a Recurrence states its "
                f"own matches: change the edges of {method.name!r} instead"
            )
        own = Method(
            "a table of the caller's",
            lambda x, z, o: method,
            must_match_x=False,
            must_match_z=False,
            symmetric=False,
        )
        return method.name, own
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}, or give a dropdtw.Recurrence"
        )
    return method, METHODS[method]


def is_symmetric(
    match: object,
    drop_x: DropCost,
    drop_z: DropCost,
    options: Options,
    method: str | Recurrence,
    reducer: Reducer,
) -> bool:
    """Whether the value of (Z, X) is surely that of (X, Z)."""
    plain = all(d is None or isinstance(d, (int, float, str)) for d in (drop_x, drop_z, options.threshold))
    return (
        look_up(method, options)[1].symmetric
        and match in ("cosine", "euclidean", "sqeuclidean")
        and plain
        and drop_x == drop_z
        and options.one_to_many == options.many_to_one
        and not options.contiguous
        and options.window is None
        # smoothMin depends on the order in which a table nests its minima; plain DTW has only one.
        and (reducer.name != "smooth" or (drop_x is None and method in ("dtw", "drop_dtw", "drop_dtw_paper")))
    )
