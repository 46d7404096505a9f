"""Alignments: which elements match, which are dropped, and the cost."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dropdtw import executors
from dropdtw.executors.protocol import Step, Trace
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.clock import Clock, Clocks
from dropdtw.problem.inputs import Array, runs
from dropdtw.problem.missing import Kept
from dropdtw.problem.problem import Problem
from dropdtw.problem.symbols import Symbols
from dropdtw.results.export import Exported, times_of
from dropdtw.results.warp import warp

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dropdtw.problem.spec import Spec
    from dropdtw.results.explain import Explanation
    from dropdtw.results.posterior import Posterior
    from dropdtw.search.suggest import Suggestion


class _Span(NamedTuple):
    label: int
    start: int
    stop: int


class Segment(_Span):
    """An unbroken stretch of X that matches one z: x[start:stop] belongs to z[label].

    label : the index of the z.   start, stop : the half-open interval of x.   clock : the times of X, if it has any.

    Segments are tuples (label, start, stop): they compare and unpack without their times.

    >>> import dropdtw
    >>> segment = dropdtw.align([0, 1], [0, 0, 1, 1], fps=10).segments()[1]
    >>> segment
    Segment(label=1, start=2, stop=4, start_time=0.2, stop_time=0.4)
    >>> segment.length, tuple(segment)
    (2, (1, 2, 4))
    """

    clock: Clock | None

    def __new__(cls, label: int, start: int, stop: int, clock: Clock | None = None) -> Self:  # noqa: D102
        found = super().__new__(cls, label, start, stop)
        found.clock = clock
        return found

    @property
    def length(self) -> int:
        """The number of x in the segment."""
        return self.stop - self.start

    @property
    def start_time(self) -> Any:
        """When its first x begins, in the type of the caller's times; None without times."""
        return None if self.clock is None else self.clock.span(self.start, self.stop)[0]

    @property
    def stop_time(self) -> Any:
        """When its last x ends; None without times."""
        return None if self.clock is None else self.clock.span(self.start, self.stop)[1]

    def __repr__(self) -> str:
        if self.clock is None:
            return super().__repr__()
        times = f"start_time={self.start_time!r}, stop_time={self.stop_time!r}"
        return f"{super().__repr__()[:-1]}, {times})"


INTERNAL: Final = {
    *("of", "from_path", "from_trace", "quickly", "solved", "source"),
    *("spread", "compact", "_of_caller", "_ends", "clocks", "clock_x", "kept", "walked", "paid_arcs"),
}
"""Attributes of an `Alignment` that `dir` does not list, because they serve the library alone."""


@dataclass(frozen=True, eq=False)
class Alignment(Exported):
    """Which z_i and x_j match, and which are dropped. Returned by `dropdtw.align` and `dropdtw.solve`.

    cost : the total cost.
    pairs : (L, 2), the matched pairs (i, j), 0-based and ascending; sorted by x if the steps have an `order`.
    shape : (K, N), the lengths of Z and X.
    labels : (N,), for each x_j the index i of the z that it matches, or −1 if it is dropped. If x_j matches several z,
        the label is the cheapest of them (ties: the smallest i).
    method : the name of the method.
    paid_x, paid_z : (N,) and (K,), how often x_j, or z_i, pays its drop cost: once if it is dropped; never if it is
        matched, skipped for free, or missing. A z that an `order` repeats can pay several times.
    source : the problem that this alignment solves, or a function that builds it; see `problem`.
    weights : (L,), the factor of each pair's match cost; None means 1.
    charged : how often the extra costs are paid: `charged.open_x` and `charged.open_z` count runs of dropped x and z,
        `charged.warp` counts repeated matches. Without opening costs and a warp penalty, nothing is counted: all are 0.
    walked : with an `order`, the arrays of the properties `walk` and `visit`; otherwise None.
    kept : which elements are present, if others are missing (`missing="drop"`); None if all are. All indices refer to
        the caller's Z and X. A missing x has label −1; `missing_x` and `missing_z` distinguish missing from dropped.
    match : the name of the match cost that was used; None if match costs were given.
    suggestion : the drop cost that "suggest" chose, and how far to trust it; None if it was not asked.
    clocks : the times of Z and X; None without times (see `times_x`).
    symbols : the elements of Z and of X, if they are symbols (see `text`); otherwise None.

    Arrays are read-only.

    >>> import dropdtw
    >>> a = dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3)
    >>> a
    <Alignment by drop_dtw of 1 z with 3 x: cost 0.6, 2 pairs, 0 z and 1 x dropped>
    >>> a.pairs.tolist(), a.labels.tolist()
    ([[0, 0], [0, 2]], [0, -1, 0])
    """

    cost: float
    pairs: Array
    shape: tuple[int, int]
    labels: Array
    method: str
    paid_x: Array = field(repr=False)
    paid_z: Array = field(repr=False)
    source: Problem | Callable[[], Problem] | None = field(default=None, repr=False)
    weights: Array | None = field(default=None, repr=False)
    charged: Charges = field(default=NO_CHARGES, repr=False)
    walked: tuple[Array, Array] | None = field(default=None, repr=False)
    kept: Kept | None = field(default=None, repr=False)
    match: str | None = field(default=None, repr=False)
    suggestion: Suggestion | None = field(default=None, repr=False)
    clocks: Clocks | None = field(default=None, repr=False)
    symbols: tuple[Symbols, Symbols] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        arrays = (self.pairs, self.labels, self.paid_x, self.paid_z, self.weights, *(self.walked or ()))
        for array in arrays:
            if array is not None:
                array.flags.writeable = False

    def __dir__(self) -> list[str]:
        """What users use; the rest serves the library."""
        return sorted(set(super().__dir__()) - INTERNAL)

    @classmethod
    def of(cls, problem: Problem, found: Trace | None = None) -> Alignment:
        """A best alignment of `problem`. Raises ValueError if every alignment is forbidden.

        found : what an executor has found, if one has.
        """
        found = executors.trace(problem) if found is None else found
        if not np.isfinite(found.value):
            raise executors.no_alignment(problem)
        problem.given.match.own()  # the alignment refers to these costs later; the caller may modify the arrays
        return cls.from_trace(problem, found)

    @classmethod
    def from_trace(cls, problem: Problem, found: Trace) -> Alignment:
        """The alignment that an executor found for `problem`."""
        i, j = found.pairs.T
        labels = np.full(problem.costs.shape[1], -1)
        first = np.flatnonzero(np.diff(j, prepend=-1))  # the first pair of each x_j; its pairs are adjacent
        if len(first) < len(j):  # some x_j matches several z: its label is the cheapest of them, ties: the smallest
            paid = problem.costs.match.at(i, j)
            least = np.repeat(np.minimum.reduceat(paid, first), np.diff(first, append=len(j)))
            i, j = np.minimum.reduceat(np.where(paid == least, i, i.max()), first), j[first]
        labels[j] = i
        here = cls(
            found.value,
            found.pairs,
            problem.costs.shape,
            labels,
            problem.method,
            found.drop_x,
            found.drop_z,
            problem,
            found.weights,
            Charges(*map(float, found.charges)),
            found.walked,
            match=problem.match,
            clocks=problem.clocks,
            symbols=problem.symbols,
        )
        return here if problem.kept is None else here.spread(problem.kept)

    @classmethod
    def quickly(
        cls, found: Trace, labels: Array, shape: tuple[int, int], spec: Spec, problem: Callable[[], Problem]
    ) -> Alignment:
        """The alignment of a small problem, from `executors.quick`. `problem` builds the `Problem` on first use."""
        return cls(
            found.value,
            found.pairs,
            shape,
            labels,
            spec.method.name,
            found.drop_x,
            found.drop_z,
            problem,
            charged=found.charges,
            match="euclidean" if spec.match == "auto" else str(spec.match),
        )

    @classmethod
    def from_path(cls, problem: Problem, path: list[Step]) -> Alignment:
        """The alignment for a path, which is given as a list of edges."""
        traced = Trace.of_steps(np.nan, path, problem.costs.shape, problem.table)
        if problem.graph is None:
            traced = traced._replace(walked=None)
        found = cls.from_trace(problem, executors.without_gates(problem, traced))
        return replace(found, cost=found.rescore())

    @cached_property
    def problem(self) -> Problem | None:
        """The problem that this alignment solves; None if its costs were not kept (see `rescore`)."""
        return self.source() if callable(self.source) else self.source

    def spread(self, kept: Kept) -> Alignment:
        """Convert indices among the kept elements to indices in the caller's sequences."""
        i, j = self.pairs.T
        return replace(
            self,
            pairs=np.stack([kept.z[i], kept.x[j]], axis=1),
            shape=kept.shape,
            labels=kept.spread(kept.z_of(self.labels), -1, "x"),
            paid_x=kept.spread(self.paid_x, 0, "x"),
            paid_z=kept.spread(self.paid_z, 0, "z"),
            walked=None if self.walked is None else (kept.z[self.walk], self.visit),
            kept=kept,
        )

    @cached_property
    def compact(self) -> Alignment:
        """The same alignment without the missing elements, with the indices of its `problem`."""
        kept = self.kept
        if kept is None:
            return self
        i, j = self.pairs.T
        return replace(
            self,
            pairs=np.stack([kept.to_z(i), np.searchsorted(kept.x, j)], axis=1),
            shape=(len(kept.z), len(kept.x)),
            labels=kept.to_z(self.labels[kept.x]),
            paid_x=self.paid_x[kept.x],
            paid_z=self.paid_z[kept.z],
            walked=None if self.walked is None else (kept.to_z(self.walk), self.visit),
            kept=None,
            clocks=None,
        )

    @property
    def times_x(self) -> Any:
        """(N,) when each x begins, in the type of the caller's times; None without times.

        >>> import dropdtw
        >>> a = dropdtw.align([0, 1], [0, 5, 1], drop_x=1, fps=10)
        >>> a.times_x, a.start_time, a.stop_time
        (array([0. , 0.1, 0.2]), 0.0, 0.3)
        """
        return None if (clock := self.clock_x) is None else clock.times

    @property
    def times_z(self) -> Any:
        """(K,) when each z begins, in the type of the caller's times; None without times."""
        return None if self.clocks is None or self.clocks.z is None else self.clocks.z.times

    @property
    def clock_x(self) -> Clock | None:
        """When each x begins and ends; None without times."""
        return None if self.clocks is None else self.clocks.x

    @property
    def start_time(self) -> Any:
        """When the first matched x begins; None without times, or without matches."""
        return self._ends[0]

    @property
    def stop_time(self) -> Any:
        """When the last matched x ends; None without times, or without matches."""
        return self._ends[1]

    @property
    def _ends(self) -> tuple[Any, Any]:
        j = self.pairs[:, 1]
        return (None, None) if self.clock_x is None or not len(j) else self.clock_x.span(int(j.min()), int(j.max()) + 1)

    @cached_property
    def M(self) -> Array:
        """(K, N) bool: whether z_i matches x_j."""
        M = np.zeros(self.shape, bool)
        M[self.pairs[:, 0], self.pairs[:, 1]] = True
        M.flags.writeable = False
        return M

    @property
    def dropped_x(self) -> Array:
        """(N,) bool: whether x_j is present but matches nothing."""
        return np.asarray(np.bincount(self.pairs[:, 1], minlength=self.shape[1]) == 0) & ~self.missing_x

    @property
    def dropped_z(self) -> Array:
        """(K,) bool: whether z_i is present but matches nothing.

        With an order that has alternatives, this includes the z that the walk does not visit (see `reached_z`), unlike
        `Posterior.drop_z`.
        """
        return np.asarray(np.bincount(self.pairs[:, 0], minlength=self.shape[0]) == 0) & ~self.missing_z

    @property
    def missing_x(self) -> Array:
        """(N,) bool: whether x_j has NaN, so that it matches nothing and costs nothing (`missing="drop"`).

        >>> import dropdtw
        >>> a = dropdtw.align([0.0, 1.0], [0.0, float("nan"), 5.0, 1.0], drop_x=0.5, missing="drop")
        >>> a.labels, a.dropped_x, a.missing_x
        (array([ 0, -1, -1,  1]), array([False, False,  True, False]), array([False,  True, False, False]))
        """
        return np.zeros(self.shape[1], bool) if self.kept is None else self.kept.missing_x

    @property
    def missing_z(self) -> Array:
        """(K,) bool: whether z_i has NaN, so that it matches nothing and costs nothing."""
        return np.zeros(self.shape[0], bool) if self.kept is None else self.kept.missing_z

    def segments(self) -> list[Segment]:
        """List the unbroken stretches of X that match each z, sorted by z, then by x.

        A z has several segments if x between its matches are dropped, which `contiguous=True` forbids, or if an `order`
        repeats the z. It has none if it is dropped itself. An x that matches several z is in several segments. A
        missing x does not break a segment.

        >>> import dropdtw
        >>> C = [[0, 0, 9, 9, 9], [9, 9, 9, 0, 9]]
        >>> dropdtw.solve(C, drop_x=1).segments()
        [Segment(label=0, start=0, stop=2), Segment(label=1, start=3, stop=4)]
        """
        found = segments_of_pairs(self.compact.pairs)
        if self.kept is None and self.clocks is None:
            return found
        return [self._of_caller(segment) for segment in found]

    def dropped_runs(self) -> list[Segment]:
        """List the runs of dropped x, as segments with the label −1; they have times as `segments` have.

        >>> import dropdtw
        >>> dropdtw.align([1, 2], [1, 9, 9, 2], drop_x=0.5).dropped_runs()
        [Segment(label=-1, start=1, stop=3)]
        """
        return [Segment(-1, *run, clock=self.clock_x) for run in runs(self.dropped_x)]

    @property
    def walk(self) -> Array:
        """(W,) the z that the alignment visits, matched or dropped; without an `order`, all that are present."""
        if self.walked is not None:
            return self.walked[0]
        return np.arange(self.shape[0]) if self.kept is None else self.kept.z

    @property
    def visit(self) -> Array:
        """(L,) for each pair, the position in `walk` that it belongs to."""
        return self.compact.pairs[:, 0] if self.walked is None else self.walked[1]

    @property
    def reached_z(self) -> Array:
        """(K,) bool: whether the walk visits z_i; False for the z of alternatives that it does not take."""
        return np.isin(np.arange(self.shape[0]), self.walk)

    @property
    def done(self) -> Array:
        """The indices of the matched z, in the order of their matches in X; a repeated z is listed each time.

        >>> import dropdtw
        >>> C = [[9, 9, 0], [0, 9, 9], [9, 0, 9]]
        >>> dropdtw.solve(C, order=dropdtw.orders.any_order(0, 1, 2)).done
        array([1, 2, 0])
        """
        return np.asarray(self.walk[np.unique(self.visit)])

    @property
    def visits(self) -> list[Segment]:
        """For each entry of `done`, the x from its first match to its last.

        >>> import dropdtw
        >>> C = [[0, 9, 0, 9], [9, 0, 9, 0]]
        >>> dropdtw.solve(C, order=dropdtw.orders.repeat([0, 1])).visits
        [Segment(label=0, start=0, stop=1), Segment(label=1, start=1, stop=2), \
Segment(label=0, start=2, stop=3), Segment(label=1, start=3, stop=4)]
        """
        at, first, count = np.unique(self.visit, return_index=True, return_counts=True)  # visits never decrease
        j = self.pairs[:, 1]
        spans = zip(self.walk[at], j[first], j[first + count - 1] + 1, strict=True)
        return [Segment(int(z), int(start), int(stop), self.clock_x) for z, start, stop in spans]

    def rescore(self) -> float:
        """Recompute the cost from its parts.

        These are the matched pairs, the drops, the opening costs and warp penalties, and the costs of jumps and
        repetitions in the order.

        Returns a float, which equals `cost` up to rounding. Raises ValueError if the costs were not kept:
        `from_dict` read a dictionary without them, or `Online` made the alignment without `keep_costs=True`.

        >>> import dropdtw
        >>> round(dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3).rescore(), 6)
        0.6
        """
        if self.kept is not None:
            return self.compact.rescore()
        costs = self.solved().costs
        i, j = self.pairs.T
        matched = costs.match.at(i, j)
        return float(
            (matched if self.weights is None else self.weights * matched).sum(dtype=np.float64)
            + sum(count * charge for count, charge in zip(self.charged, costs.charges, strict=True))
            + weighted_sum(self.paid_x, costs.drop_x)
            + weighted_sum(self.paid_z, costs.drop_z)
            + self.paid_arcs()
        )

    def paid_arcs(self) -> float:
        """The cost of the walk's arcs: jumps, and repetitions of a part of the order."""
        from dropdtw.results.walked import arcs_cost

        graph = self.solved().graph
        if graph is None or not graph.cost.any():
            return 0.0
        here = self.compact
        walk, visit = here.walk, here.visit
        if here.walked is None:  # the path goes past dropped z, see `Problem.ids`
            walk, visit = np.unique(visit, return_inverse=True)
        found = arcs_cost(graph, walk, visit, here.pairs)
        return np.inf if found is None else found

    def explain(self, j: int | None = None, *, z: int | None = None) -> Explanation:
        """Explain why x_j, or a z, is matched or dropped: find the best alternative, and how much more it costs.

        For a dropped element, the alternative is the best alignment that matches it. For a matched one, it is the best
        alignment that drops it or matches it only to others.

        j : an index of X.   z : an index of Z, instead of j. Negative indices count from the end.

        Returns an `Explanation`, which prints as a sentence. Raises IndexError if there is no such element, TypeError
        unless exactly one of j and z is given, and ValueError if the costs were not kept (see `rescore`).

        >>> import dropdtw
        >>> print(dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3).explain(1))
        x_1 is dropped for 0.3; matching it to z_0 instead would change the total from 0.6 to 1.2 (margin 0.6)
        >>> print(dropdtw.solve([[0.1, 0.2, 0.9], [0.9, 0.9, 0.1]], drop_z=0.5).explain(z=1))
        z_1 is matched to x_2 for 0.1; dropping it instead would change the total from 0.4 to 1.7 (margin 1.3)
        """
        from dropdtw.results.explain import explain

        if j is not None and z is None:
            return replace(explain(self, self.solved(), j, "x"), symbols=self.symbols)
        if z is not None and j is None:
            return replace(explain(self, self.solved(), z, "z"), symbols=self.symbols)
        raise TypeError("explain takes one element; give j, the index of an x, or z=, the index of a z")

    def posterior(self, gamma: float | None = None) -> Posterior:
        """Compute the probability of each match and each drop of this problem, as in `dropdtw.posterior`.

        gamma : the temperature γ, > 0; None chooses one on the scale of the costs, as in `dropdtw.posterior`.

        Returns a `dropdtw.Posterior`. Raises ValueError if gamma is invalid, or if the costs were not kept (see
        `rescore`).

        >>> import dropdtw
        >>> dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3).posterior(gamma=0.1).drop_x.round(2)
        array([0.09, 1.  , 0.24])
        """
        from dropdtw.results.posterior import Posterior

        return Posterior.of(self.solved(), gamma)

    def warp_z(self, Z: npt.ArrayLike, *, fill: float | Literal["linear"] = np.nan) -> Array:
        """Resample Z on the time axis of X: row j is the mean of the z that match x_j.

        Z : (K, d), as it was aligned.
        fill : the value where x_j is dropped: a number, or "linear" to interpolate between neighbors.

        Returns (N, d). Raises ValueError if Z does not have K elements or if `fill` is invalid.

        >>> import dropdtw
        >>> dropdtw.solve([[0, 0, 9], [9, 9, 0]]).warp_z([[10.0], [20.0]]).ravel()
        array([10., 10., 20.])
        """
        return warp(Z, "Z", self.pairs, self.shape, fill)

    def warp_x(self, X: npt.ArrayLike, *, fill: float | Literal["linear"] = np.nan) -> Array:
        """Resample X on the time axis of Z: row i is the mean of the x that match z_i.

        X : (N, d), as it was aligned.
        fill : the value where z_i is dropped: a number, or "linear" to interpolate between neighbors.

        Returns (K, d). Raises ValueError if X does not have N elements or if `fill` is invalid.

        >>> import dropdtw
        >>> dropdtw.solve([[0, 0, 9], [9, 9, 0]]).warp_x([[1.0], [2.0], [7.0]]).ravel()
        array([1.5, 7. ])
        """
        return warp(X, "X", self.pairs[:, ::-1], self.shape[::-1], fill)

    def text(self, Z: Sequence[Hashable] | None = None, X: Sequence[Hashable] | None = None, *, width: int = 80) -> str:
        """Show the alignment as text, Z above X: "|" marks equal elements, "." others, "-" a dropped one, "~" a repeat.

        The last line counts the columns whose elements are equal. Elements that a method skips for free at the ends are
        left out.

        Z, X : what to print for each element; None for the symbols that were aligned.
        width : the maximum length of a line; longer alignments are wrapped.

        Returns the text. Raises ValueError if an argument is invalid, or missing because no symbols were aligned.

        >>> import dropdtw
        >>> print(dropdtw.align("GATTACA", "GATCA", 1, 1, method="needleman_wunsch").text())
        GATTACA
        || | ||
        GA-T-CA
        <BLANKLINE>
        identity 5/7 (71%), cost 2
        """
        from dropdtw.results.text import to_text

        return to_text(self, Z, X, width)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the alignment on its match costs.

        ax : the axes to draw on; None creates new ones.

        Returns the axes. Raises ImportError if matplotlib is not installed (`pip install 'dropdtw[plot]'`).

        >>> import dropdtw
        >>> ax = dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3).plot()
        """
        from dropdtw import plot

        return plot.alignment(self, ax=ax)

    def to_dict(self, *, costs: bool = False) -> dict[str, Any]:
        """Convert the alignment to a dictionary that JSON can hold.

        costs : whether to include the costs. The alignment that `from_dict` returns needs them for `rescore`, `explain`
            and `posterior`, and to show them in `plot`.

        Returns the dictionary. Raises ValueError for `costs=True` if the costs were not kept (see `rescore`).

        >>> import dropdtw
        >>> a = dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3)
        >>> dropdtw.Alignment.from_dict(a.to_dict(costs=True)).rescore() == a.rescore()
        True
        """
        from dropdtw.results import serialize

        return serialize.to_dict(self, costs)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Alignment:
        """Read a dictionary that `to_dict` wrote.

        data : the dictionary, as `to_dict` returned it or as JSON restored it.

        Returns the alignment. Raises ValueError if the dictionary is damaged or inconsistent.

        >>> import dropdtw
        >>> a = dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3)
        >>> dropdtw.Alignment.from_dict(a.to_dict()).labels
        array([ 0, -1,  0])
        """
        from dropdtw.results import serialize

        return serialize.from_dict(data)

    def to_columns(self, *, posterior: Posterior | None = None) -> dict[str, list[Any]]:
        """The alignment as a table, a row for each match and each drop, sorted by X, then by Z.

        Its columns are `what` ("match", "drop_x" or "drop_z"), the indices `z` and `x` (None for the other side of a
        drop), and times if there are any. With symbols, `z_symbol` and `x_symbol` follow.

        posterior : adds a column `probability`, of each match and each drop.

        >>> import dropdtw
        >>> print(dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3).to_csv(), end="")
        what,z,x
        match,0,0
        drop_x,,1
        match,0,2
        """
        rows: list[tuple[float, float, str, int | None, int | None]]
        rows = [(j, i, "match", i, j) for i, j in self.pairs.tolist()]
        rows += [(j, np.inf, "drop_x", None, j) for j in np.flatnonzero(self.dropped_x).tolist()]
        # A dropped z has no x of its own, so it is listed before the first x that a later z matches.
        ahead = np.full(self.shape[0] + 1, self.shape[1])
        np.minimum.at(ahead, self.pairs[:, 0], self.pairs[:, 1])
        ahead = np.minimum.accumulate(ahead[::-1])[::-1]
        rows += [(ahead[i] - 0.5, i, "drop_z", i, None) for i in np.flatnonzero(self.dropped_z).tolist()]
        *_, what, of_z, of_x = map(list, zip(*sorted(rows, key=lambda row: row[:2]), strict=True))
        found = {"what": what, "z": of_z, "x": of_x}
        for side, places, clock in zip("xz", (of_x, of_z), (self.clocks or (None, None))[::-1], strict=True):
            found |= times_of(clock, [None if k is None else (k, k + 1) for k in places], "_z" * (side == "z"))
        if self.symbols is not None:
            for side, places, symbols in zip("zx", (of_z, of_x), self.symbols, strict=True):
                found[f"{side}_symbol"] = [None if k is None else symbols[k] for k in places]
        if posterior is not None:
            if posterior.match.shape != self.shape:
                raise ValueError(
                    f"posterior is that of {posterior.match.shape} elements, and this alignment of {self.shape}; give "
                    "its own, a.posterior()"
                )
            P = np.pad(posterior.match, (0, 1))  # the last row and column: the drops of x and of z
            P[-1, :-1], P[:-1, -1] = posterior.drop_x, posterior.drop_z
            found["probability"] = [
                float(P[-1 if i is None else i, -1 if j is None else j]) for i, j in zip(of_z, of_x, strict=True)
            ]
        return found

    def _has_costs(self) -> bool:
        return self.problem is not None

    def __repr__(self) -> str:
        K, N = self.shape
        passed = int((self.dropped_z & ~self.reached_z).sum())
        lost = f"{int(self.dropped_z.sum()) - passed} z and {int(self.dropped_x.sum())} x dropped"
        lost += f", {passed} z not taken" if passed else ""
        if self.kept is not None:
            lost += f", {int(self.missing_z.sum())} z and {int(self.missing_x.sum())} x missing"
        if self.walked is not None:
            done = self.done
            lost += f", done {' '.join(map(str, done[:20]))}{' …' if len(done) > 20 else ''}" if len(done) else ""
        return (
            f"<Alignment by {self.method} of {K} z with {N} x: cost {self.cost:.6g}, {len(self.pairs)} pairs, {lost}>"
        )

    def _repr_html_(self) -> str:
        from dropdtw.results import html

        return html.to_html(self)

    def _of_caller(self, segment: Segment) -> Segment:
        """Give a segment its times, and the indices of the caller's sequences instead of those of the kept elements."""
        if self.kept is None:
            return Segment(*segment, clock=self.clock_x)
        start, stop = self.kept.interval(segment.start, segment.stop)
        return Segment(int(self.kept.z[segment.label]), start, stop, self.clock_x)

    def solved(self) -> Problem:
        """The problem that this alignment solves. Raises ValueError if the costs were not kept (see `rescore`)."""
        if self.problem is None:
            raise ValueError(
                "this alignment came without its costs; write it with to_dict(costs=True), or make it with "
                "Online(keep_costs=True), to keep them"
            )
        return self.problem


def segments_of_pairs(pairs: Array) -> list[Segment]:
    """The segments of matched pairs (L, 2), sorted by z, then by x."""
    i, j = pairs.T
    if len(i) == 0:
        return []
    by_z = np.lexsort((j, i))
    i, j = i[by_z], j[by_z]
    new = np.r_[True, (np.diff(i) != 0) | (np.diff(j) != 0)]  # a repeated z may match the same x twice
    i, j = i[new], j[new]
    first = np.flatnonzero(np.r_[True, (np.diff(i) != 0) | (np.diff(j) != 1)])
    last = np.r_[first[1:], len(i)] - 1
    spans = zip(i[first].tolist(), j[first].tolist(), (j[last] + 1).tolist(), strict=True)
    return [Segment(*span) for span in spans]


def weighted_sum(counts: Array, prices: Array) -> float:
    """Σ counts · prices, where a count of 0 contributes 0 even if the price is infinite."""
    paid = counts != 0
    return float((counts[paid] * prices[paid]).sum(dtype=np.float64))
