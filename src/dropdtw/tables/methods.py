"""The registry of methods: for each name, which table runs and which costs it is given.

The API, the tests and the benchmarks read it. CONTRIBUTING.md, "Adding an aligner", lists what else a new method needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np

from dropdtw.problem.errors import OptionError, choices
from dropdtw.tables import recurrence, transforms
from dropdtw.tables.recurrence import End
from dropdtw.tables.table import Recurrence


class Matching(NamedTuple):
    """Which matches a table of the DTW family allows; `dropdtw.solve` documents them."""

    one_to_many: bool = True
    many_to_one: bool = True
    contiguous: bool = False

    @property
    def repeats(self) -> dict[str, bool]:
        """The two options that every table of the DTW family takes."""
        return {"one_to_many": self.one_to_many, "many_to_one": self.many_to_one}


@dataclass(frozen=True)
class Method:
    """An entry of the registry.

    name, summary : its name, and one sentence about it.
    table : a function (drops_x, drops_z, matching, charged) that returns the recurrence; drops_x and drops_z say
        whether x and z may be dropped, and charged whether runs of drops and repeats pay a charge.
    takes_drops, takes_threshold, takes_opening, takes_warp : which arguments it accepts.
    fixes_moves : whether the table fixes its own moves, so that one_to_many and the like do not apply.
    one_to_one : whether each element is matched at most once, whatever the options say.
    must_match_x, must_match_z : whether every x (z) has to be matched if `drop_x` (`drop_z`) is not given.
    symmetric : whether swapping Z and X (with their drop costs and options) leaves the hard value unchanged.
    free_x, free_z : whether dropping an x (a z) costs nothing, whatever the drop costs.
    pair : computes the cost of a pair from (array module, match cost, threshold); the module is NumPy or PyTorch. The
        cost must not fall as the match cost rises. None: the match cost itself.
    takes_ids : whether it has to know which z are the same (`ids`).
    narrow : forbids some alignments before the table runs, given the costs, and the ids if it takes them. If the
        method is `bounded`, it must not lower the cost of those that it still allows, because lower bounds rely on
        that. None: forbids nothing.
    slopes : the range of (N − 1)/(K − 1) for which a path exists. None: any.
    norm : what normalize="pattern" divides by, given K and N. None if its paths differ in total weight.
    takes_orders : whether it works with orders of steps other than a list.
    match : the meaning of `match="auto"`. None: the usual one.
    drop_cost : the cost of every drop. None: drop costs are as given.
    gap : the element whose match cost with a dropped element is the cost of that drop. None: drop costs are as given.
    weigh : multiplies the cost of each pair by a number from 0 to 1 that depends on its position. None: no weights.
    derive : computes the sequence that is compared instead of the given one, of the same length. None: the given one.
    refuses : returns the reason why lengths (K, N) do not fit, or None if they do. None: all lengths fit.
    made_by : for a method with parameters, the function that makes it and its arguments.
    moves : the matches that it allows, whatever the options say. None: those that the options allow.
    """

    name: str
    summary: str
    table: Callable[[bool, bool, Matching, bool], Recurrence]
    takes_drops: bool = True
    takes_threshold: bool = False
    takes_opening: bool = False
    takes_warp: bool = False
    takes_ids: bool = False
    fixes_moves: bool = False
    one_to_one: bool = False
    must_match_x: bool = True
    must_match_z: bool = True
    symmetric: bool = True
    free_x: bool = False
    free_z: bool = False
    pair: Callable[[Any, Any, Any], Any] | None = None
    narrow: Callable[..., Any] | None = None
    slopes: tuple[float, float] | None = None
    norm: Callable[[int, int], int] | None = None
    takes_orders: bool = False
    match: str | None = None
    drop_cost: float | None = None
    gap: float | tuple[float, ...] | None = None
    weigh: Callable[[Any], Any] | None = None
    derive: Callable[[Any], Any] | None = None
    refuses: Callable[[int, int], str | None] | None = None
    made_by: tuple[Callable[..., Method], tuple[Any, ...]] | None = None
    moves: Matching | None = None

    def allowed(self, asked: Matching) -> Matching:
        """What the options allow, within what the method allows. Raises ValueError if it has no use for options."""
        if asked != Matching() and self.fixes_moves:
            name, value = next((n, v) for n, v in asked._asdict().items() if v != Matching._field_defaults[n])
            if self.built_in:
                why, remedy = "a step pattern", "leave it out"
            else:
                why, remedy = "a table of your own", f"leave it out, and change the edges of {self.name!r} instead"
            raise OptionError(name, value, remedy, f", but method {self.name!r} is {why}, which states its own matches")
        if self.moves is None:
            return asked
        one_to_many, many_to_one, contiguous = self.moves
        return Matching(
            asked.one_to_many and one_to_many, asked.many_to_one and many_to_one, asked.contiguous or contiguous
        )

    @property
    def edits(self) -> bool:
        """Whether it changes the costs it is given."""
        own = self.drop_cost is not None or self.needs_sequences
        return bool(own or self.free_x or self.free_z or self.pair or self.narrow or self.weigh)

    @property
    def needs_sequences(self) -> bool:
        """Whether it needs the sequences, not only their match costs."""
        return self.gap is not None or self.derive is not None

    @property
    def bounded(self) -> bool:
        """Whether the minimum match costs of rows and columns give lower bounds on its values (`search.bounds`)."""
        return not self.needs_sequences and self.weigh is None

    @property
    def streams(self) -> bool:
        """Whether the costs of an x can be computed as soon as it arrives."""
        return not self.needs_sequences and self.weigh is None and not self.takes_ids

    @property
    def counts(self) -> bool:
        """Whether its value is minus a number of pairs (LCSS), not a cost."""
        return self.pair is transforms.counts

    @property
    def built_in(self) -> bool:
        """Whether it is one of this package's methods (registered, or made by a function), not a user-defined table."""
        return self.made_by is not None or METHODS.get(self.name) is self

    def __reduce__(self) -> Any:
        """Pickle a method as its name, or as the call that makes it."""
        if self.made_by is not None:
            return self.made_by
        return (look_up, (self.name,)) if self.built_in else super().__reduce__()

    def __repr__(self) -> str:
        """The call that makes it, or `Method(name)`."""
        return self.name if self.made_by is not None else f"Method({self.name!r})"

    def edit(self, costs: Any, threshold: Any, ids: Any = None) -> Any:
        """Turn the given costs into those that the table pays: arrays or tensors; `costs.xp` is their module."""
        if self.pair is not None:
            costs = costs.with_match(self.pair(costs.xp, costs.matrix, threshold))
        if self.free_x:
            costs = costs._replace(drop_x=costs.xp.zeros_like(costs.drop_x))
        if self.free_z:
            costs = costs._replace(drop_z=costs.xp.zeros_like(costs.drop_z))
        if self.drop_cost is not None:
            x, z = (costs.xp.full_like(drop, self.drop_cost) for drop in (costs.drop_x, costs.drop_z))
            costs = costs._replace(drop_x=x, drop_z=z)
        if self.weigh is not None:
            costs = self.weigh(costs)
        if self.narrow is None:
            return costs
        return self.narrow(costs, ids) if self.takes_ids else self.narrow(costs)


MethodLike = str | Recurrence | Method
"""What `method=` takes.

- A name in `dropdtw.METHODS`, such as "drop_dtw".
- A method with parameters, made by `dropdtw.free_ends`, `dropdtw.wdtw` or `dropdtw.erp`.
- Your own `dropdtw.Recurrence`.
"""


def _drop_dtw(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    if x and z:
        return recurrence.two_sided(**matching._asdict(), charged=charged)
    if x:
        return recurrence.one_sided(**matching._asdict(), charged=charged)
    if z:  # Algorithm 1 with exchanged roles. No x can be dropped, so `contiguous` has no effect.
        exchanged = {"one_to_many": matching.many_to_one, "many_to_one": matching.one_to_many}
        return recurrence.one_sided(**exchanged, charged=charged).transpose()
    return recurrence.dtw(**matching.repeats, charged=charged)


def _algorithm_2(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    return recurrence.algorithm_2(**matching._asdict()) if x and z else _drop_dtw(x, z, matching, charged)


def _dtw(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    return recurrence.dtw(**matching.repeats, charged=charged)


def _subsequence(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    return recurrence.subsequence(**matching.repeats, charged=charged)


def _ctc(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    return recurrence.ctc(one_to_many=matching.one_to_many)


def _needleman_wunsch(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    return recurrence.needleman_wunsch(charged=charged)


def _smith_waterman(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    return recurrence.smith_waterman(charged=charged)


# --- Methods with parameters ----------------------------------------------------------------------------------


def wdtw(g: float = 0.05) -> Method:
    """Make weighted DTW (Jeong, Jeong & Omitaomu 2011): pairs cost more the further they are from the diagonal.

    A pair pays w(|i − j|) C[i, j] with w(a) = 1 / (1 + exp(−g (a − n/2))), n the longer length. The default
    match cost is "sqeuclidean".

    g : the steepness of the weights, a finite number; 0 halves all costs. `METHODS["wdtw"]` has 0.05.

    Returns a method, for `method=`. Raises ValueError if g is not a finite number.

    >>> import dropdtw                                              # with g = 0, (3 − 1)² / 2
    >>> [round(dropdtw.distance([0.0, 3.0], [0.0, 1.0], method=dropdtw.wdtw(g)), 3) for g in (0, 1, 2)]
    [2.0, 1.076, 0.477]
    """
    return _wdtw(_finite(g, "g"))


@cache
def _wdtw(g: float) -> Method:
    return Method(
        "wdtw" if g == 0.05 else f"wdtw({g!r})",
        "weighted DTW (Jeong et al. 2011): pairs cost more the further they are from the diagonal; `dropdtw.wdtw(g)`",
        _dtw,
        takes_drops=False,
        takes_warp=True,
        weigh=partial(transforms.weigh, g=g),
        match="sqeuclidean",
        made_by=None if g == 0.05 else (wdtw, (g,)),
    )


def erp(g: float | tuple[float, ...] = 0.0) -> Method:
    """Make ERP, edit distance with real penalty (Chen & Ng 2004): a drop costs the match cost with a constant g.

    Matches are one to one. With Euclidean match costs, its default, it obeys the triangle inequality.

    g : a number, or (d,) numbers, one for each feature. `METHODS["erp"]` has 0.

    Returns a method, for `method=`. It needs sequences, so `solve`, `cost` and `posterior` do not accept it. Raises
    ValueError if g is not finite.

    >>> import dropdtw
    >>> dropdtw.distance([1.0, 2.0, 3.0], [1.0, 3.0], method="erp")           # 2 is dropped for |2 − 0|
    2.0
    >>> dropdtw.distance([1.0, 2.0, 3.0], [1.0, 3.0], method=dropdtw.erp(g=2.5))
    0.5
    """
    return _erp(tuple(_finite(v, "g") for v in g) if isinstance(g, (tuple, list, np.ndarray)) else _finite(g, "g"))


@cache
def _erp(gap: float | tuple[float, ...]) -> Method:
    return Method(
        "erp" if gap == 0 else f"erp({gap!r})",
        "edit distance with real penalty (Chen & Ng 2004): a drop costs the match cost with 0, or `dropdtw.erp(g)`",
        _needleman_wunsch,
        takes_drops=False,
        one_to_one=True,
        must_match_x=False,
        must_match_z=False,
        match="euclidean",
        gap=gap,
        made_by=None if gap == 0 else (erp, (gap,)),
    )


def _finite(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise ValueError(f"{name} is {value!r}; give a finite number")
    return float(value)


def _pattern(
    name: str,
    summary: str,
    table: Callable[..., Recurrence],
    norm: Callable[[int, int], int] | None = None,
    slopes: tuple[float, float] | None = None,
    drops: bool = False,
    **more: bool,
) -> Method:
    """A step pattern: its table alone says what may be matched. It takes no options.

    drops : whether it takes drop costs. What is left after dropping is aligned by the pattern.
    """
    return Method(
        name,
        summary,
        (lambda x, z, matching, charged: table(x=x, z=z, charged=charged and (x or z)))
        if drops
        else (lambda x, z, matching, charged: table()),
        takes_drops=drops,
        takes_opening=drops,
        fixes_moves=True,
        slopes=slopes,
        norm=norm,
        **more,  # type: ignore[arg-type]
    )


def _free_ends(name: str, summary: str, ends: tuple[End, End] | None = None) -> Method:
    """DTW of all of Z with a stretch of X. ends : which ends of X are "free"; None: both."""

    def table(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
        return recurrence.free_ends(_dtw(x, z, matching, charged), ends or ("free", "free"))

    return Method(
        name,
        summary,
        _subsequence if ends is None else table,
        takes_drops=False,
        takes_warp=True,
        must_match_x=False,
        symmetric=False,
        free_x=ends is None,
        takes_orders=True,
    )


_ALL: Final = (
    Method(
        "drop_dtw",
        "Drop-DTW: DTW that drops what does not fit (paper Algorithms 1 and 2)",
        _drop_dtw,
        takes_opening=True,
        takes_warp=True,
        takes_orders=True,
    ),
    Method(
        "steps",
        "Drop-DTW for step localization: each x matches at most one z, and each z takes one unbroken run of x",
        _drop_dtw,
        takes_opening=True,
        takes_warp=True,
        takes_orders=True,
        symmetric=False,
        moves=Matching(many_to_one=False, contiguous=True),
    ),
    Method(
        "ctc",
        "connectionist temporal classification (Graves et al. 2006): 'steps' in which the same z may not follow itself "
        "without a dropped x between them",
        _ctc,
        takes_ids=True,
        takes_orders=True,
        symmetric=False,
        narrow=transforms.gates,
        moves=Matching(many_to_one=False, contiguous=True),
    ),
    Method(
        "drop_dtw_paper",
        "Drop-DTW by the paper's Algorithm 2, typos corrected, to reproduce it: soft minima differ from 'drop_dtw'",
        _algorithm_2,
    ),
    Method(
        "dtw",
        "dynamic time warping: everything is matched",
        _dtw,
        takes_drops=False,
        takes_warp=True,
        takes_orders=True,
    ),
    _free_ends(
        "otam",
        "OTAM (Cao et al. 2020) as the paper uses it: both ends of X are free; one_to_many=False gives the original",
    ),
    _free_ends("subsequence", "subsequence DTW: all of Z against the best-matching stretch of X"),
    _free_ends("free_begin", "DTW that may skip elements at the beginning of X", ("free", "drop")),
    _free_ends("free_end", "DTW that may skip elements at the end of X", ("drop", "free")),
    Method(
        "needleman_wunsch",
        "Needleman–Wunsch (1970): one-to-one matches, drop costs on both sides; with opening costs, Gotoh (1982)",
        _needleman_wunsch,
        takes_opening=True,
        one_to_one=True,
        takes_orders=True,
    ),
    Method(
        "smith_waterman",
        "Smith–Waterman (1981): the best-scoring local stretch; empty unless good matches have negative costs",
        _smith_waterman,
        takes_opening=True,
        one_to_one=True,
        must_match_x=False,
        must_match_z=False,
    ),
    Method(
        "lcss",
        "longest common subsequence (Vlachos et al. 2002): minus the number of pairs that cost at most `threshold`",
        _needleman_wunsch,
        takes_drops=False,
        takes_threshold=True,
        one_to_one=True,
        must_match_x=False,
        must_match_z=False,
        free_x=True,
        free_z=True,
        pair=transforms.counts,
        takes_orders=True,
    ),
    Method(
        "greedy",
        "greedy drop + DTW: drop what matches nothing cheaply, then warp the rest",
        _drop_dtw,
        takes_opening=True,
        takes_warp=True,
        narrow=transforms.greedy,
        takes_orders=True,
    ),
    Method(
        "edr",
        "edit distance on real sequences (Chen et al. 2005): counts drops, and pairs that cost more than `threshold`",
        _needleman_wunsch,
        takes_drops=False,
        takes_threshold=True,
        one_to_one=True,
        must_match_x=False,
        must_match_z=False,
        pair=transforms.differs,
        match="chebyshev",
        drop_cost=1.0,
    ),
    erp(),
    Method(
        "ddtw",
        "derivative DTW (Keogh & Pazzani 2001): DTW of slopes; first and last elements, which have none, are left out",
        lambda x, z, matching, charged: _drop_dtw(True, True, matching, charged),
        takes_drops=False,
        narrow=transforms.without_ends,
        match="sqeuclidean",
        derive=transforms.slopes,
        refuses=transforms.too_short,
    ),
    wdtw(),
    _pattern("symmetric1", "step pattern symmetric1 of R's dtw and dtw-python: plain DTW", recurrence.dtw),
    *(
        _pattern(name, f"step pattern {name}: {what}; drops apart", table, lambda K, N: K + N, slopes, drops=True)
        for name, what, table, slopes in (
            (
                "symmetric2",
                "DTW in which a diagonal step counts twice (P0)",
                recurrence.symmetric2,
                None,
            ),
            ("symmetricP05", "symmetric2 with slopes from 1/3 to 3", recurrence.symmetric_p05, (1 / 3, 3)),
            ("symmetricP1", "symmetric2 with slopes from 1/2 to 2", recurrence.symmetric_p1, (0.5, 2)),
            (
                "symmetricP2",
                "symmetric2 with slopes from 2/3 to 3/2",
                recurrence.symmetric_p2,
                (2 / 3, 1.5),
            ),
        )
    ),
    _pattern(
        "asymmetric",
        "step pattern asymmetric: each z counts once; an x may be skipped for free, but never two in a row",
        recurrence.asymmetric,
        norm=lambda K, N: K,
        slopes=(0, 2),
        symmetric=False,
        must_match_x=False,
    ),
    _pattern(
        "asymmetricP1",
        "step pattern asymmetricP1: each z counts once, with slopes from 1/2 to 2",
        recurrence.asymmetric_p1,
        norm=lambda K, N: K,
        slopes=(0.5, 2),
        symmetric=False,
    ),
)
METHODS: Final[dict[str, Method]] = {method.name: method for method in _ALL}
"""Every method by name. `METHODS[name].summary` describes it in one sentence."""


def look_up(method: MethodLike) -> Method:
    """Return the entry of a method; a user-defined table gets a new one. Raises ValueError for an unknown name."""
    if isinstance(method, Recurrence):
        return Method(
            method.name,
            "a table of the caller's",
            lambda x, z, matching, charged: method,
            takes_opening=True,
            takes_warp=True,
            fixes_moves=True,
            must_match_x=False,
            must_match_z=False,
            symmetric=False,
        )
    if isinstance(method, Method):
        return method
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    raise OptionError(
        "method",
        method,
        choices(method, METHODS),
        in_python=", or give a dropdtw.Recurrence or a method with parameters, such as dropdtw.free_ends()",
    )
