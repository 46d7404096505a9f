"""Find every place where a query occurs in a long signal, the best first."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Real
from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw import executors
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost
from dropdtw.executors.protocol import Occurrences as Ends
from dropdtw.files.progress import Progress, reporter
from dropdtw.problem.clock import Clock, Clocks, Fps, Times, plain, timed
from dropdtw.problem.costs import Costs
from dropdtw.problem.errors import OptionError, refuse_keywords
from dropdtw.problem.inputs import Array, same_columns, same_precision
from dropdtw.problem.match import MatchCosts, Matrix, Pair
from dropdtw.problem.missing import Kept, present, restricted
from dropdtw.problem.options import OpeningOptions, takes
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.problem.symbols import Symbols
from dropdtw.results.alignment import Alignment
from dropdtw.results.export import Exported, times_of
from dropdtw.tables import recurrence
from dropdtw.tables.methods import Matching, Method
from dropdtw.tables.table import Recurrence

DEFAULT_K = 10
"""How many occurrences `find` returns if neither `k` nor `max_cost` is given."""

FIRST = 1 << 14
"""Number of candidates in the first sorted batch; later batches are sorted only if needed."""


@dataclass(frozen=True)
class Occurrence:
    """A stretch of the signal, signal[start:stop], in which the query occurs. Returned by `dropdtw.find`.

    start, stop : the half-open interval. Its first and last elements are matched.
    cost : the cost of aligning the query with the stretch.
    problem : a function that builds the problem of this alignment.
    clock : the times of the signal, if it has any.

    >>> import dropdtw
    >>> found = dropdtw.find([1, 2], [9, 1, 7, 2, 9], k=1, drop_x=0.5)[0]
    >>> found.start, found.stop, found.length, found.cost
    (1, 4, 3, 0.5)
    """

    start: int
    stop: int
    cost: float
    problem: Callable[[], Problem] = field(repr=False, compare=False)
    clock: Clock | None = field(default=None, repr=False, compare=False)

    @property
    def start_time(self) -> Any:
        """When it begins, in the type of the caller's times; None without times.

        >>> import dropdtw
        >>> found = dropdtw.find([1, 2], [9, 1, 7, 2, 9], k=1, drop_x=0.5, fps=10)[0]
        >>> found.start_time, found.stop_time
        (0.1, 0.4)
        """
        return None if self.clock is None else self.clock.span(self.start, self.stop)[0]

    @property
    def stop_time(self) -> Any:
        """When it ends; None without times."""
        return None if self.clock is None else self.clock.span(self.start, self.stop)[1]

    @property
    def length(self) -> int:
        """Its length in elements of the signal."""
        return self.stop - self.start

    @cached_property
    def alignment(self) -> Alignment:
        """The alignment of the query with signal[start:stop], computed on first access. Its x_0 is signal[start]."""
        return Alignment.of(self.problem())


class Occurrences(list[Occurrence], Exported):
    """What `dropdtw.find` found: a list, the cheapest occurrence first, that can become a table or a file.

    >>> import dropdtw
    >>> print(dropdtw.find([1, 2], [9, 1, 7, 2, 9], k=1, drop_x=0.5).to_csv(), end="")
    rank,start,stop,cost
    1,1,4,0.5
    """

    def to_columns(self) -> dict[str, list[Any]]:
        """The table, a row for each: `rank` (from 1), `start`, `stop`, `cost`, and times if there are any."""
        found: dict[str, list[Any]] = {"rank": list(range(1, len(self) + 1))}
        found |= {name: [getattr(o, name) for o in self] for name in ("start", "stop", "cost")}
        return found | times_of(self[0].clock if self else None, [(o.start, o.stop) for o in self])

    def to_dict(self, *, costs: bool = False) -> dict[str, Any]:
        """Convert the occurrences to a dictionary that JSON can hold, with the elements that each one drops.

        costs : whether to include their alignments with costs, which `from_dict` needs.
        """
        columns = self.to_columns()
        entries = []
        for k, o in enumerate(self):
            a = o.alignment
            entry = {name: plain(values[k]) if "_time" in name else values[k] for name, values in columns.items()}
            entry["dropped_x"] = (o.start + a.dropped_x.nonzero()[0]).tolist()
            entry["dropped_z"] = a.dropped_z.nonzero()[0].tolist()
            entries.append(entry | ({"alignment": a.to_dict(costs=True)} if costs else {}))
        clock = self[0].clock if costs and self else None
        return {"occurrences": entries} | ({} if clock is None else {"length": len(clock), "times": clock.to_dict()})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict(costs=True)` wrote. Raises ValueError if it is damaged, or has no costs."""
        try:
            times = data.get("times")
            clock = None if times is None else Clock.from_dict(times, "x", int(data["length"]))
            return cls(_read(entry, clock) for entry in data["occurrences"])
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(
                f"these are not occurrences with costs ({error!r}); give what Occurrences.to_dict(costs=True) wrote"
            ) from None


def _read(entry: Mapping[str, Any], clock: Clock | None) -> Occurrence:
    start, stop, cost = operator.index(entry["start"]), operator.index(entry["stop"]), float(entry["cost"])
    a = Alignment.from_dict(entry["alignment"])
    a.solved()
    if start < 0 or a.shape[1] != stop - start or a.cost != cost or (clock is not None and stop > len(clock)):
        raise ValueError(f"the occurrence [{start}, {stop}) contradicts its alignment, {a!r}; write it again")
    return Occurrence(start, stop, cost, a.solved, clock)


@takes(OpeningOptions)
def find(
    query: npt.ArrayLike,
    signal: npt.ArrayLike,
    k: int | None = None,
    max_cost: float | None = None,
    overlap: float = 0.0,
    *,
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    match: MatchCost = "auto",
    times: Times = None,
    fps: Fps = None,
    progress: Progress = None,
    executor: str | None = None,
    missing: str | None = None,
    **options: Unpack[OpeningOptions],
) -> Occurrences:
    """Find where a query occurs in a longer signal: every place, the best first.

    An occurrence is a stretch of the signal that begins and ends with a match. Inside it, elements of the signal can be
    dropped for d_x and elements of the query for d_z; elements outside cost nothing. Each position j of the signal has
    one candidate: the best stretch that ends there, or the shortest of several equally good ones. Candidates are
    considered by cost, ties from left to right. A candidate is kept unless it overlaps one already kept by more than
    `overlap` times the length of the shorter one.

    One pass over the signal finds all candidates. Besides the signal, it stores a few numbers per element.

    Parameters
    ----------
    query : (K, d), or (K,) for numbers: the Z of `dropdtw.align`.
    signal : (N, d) or (N,), N ≥ K: the X of `dropdtw.align`.
    k : the maximum number of occurrences. None returns all up to `max_cost`; if that is None, too, the 10 best.
    max_cost : the maximum cost of an occurrence. None: no limit.
    overlap : how much occurrences may overlap, as a fraction of the shorter one, from 0 (not at all) to 1 (any overlap,
        so that every candidate is kept).
    drop_x, drop_z : the cost of dropping an element of the signal, and of the query. None forbids dropping. Rules such
        as "percentile:30" use the match costs of the whole signal.
    progress : as in `dropdtw.pairwise`.
    missing : "drop" leaves out elements with NaN (or masked values), as if they had been deleted. `start`, `stop` and
        alignments keep your indices; overlap is measured without the missing elements. With None, such elements raise
        an error.
    match, times, fps : as in `dropdtw.align`, the query in place of Z and the signal in place of X.
    one_to_many, many_to_one, contiguous, open_x, open_z, warp, executor : as in `dropdtw.solve`.

    Returns
    -------
    `dropdtw.Occurrences`, a list of `dropdtw.Occurrence`, each with `start`, `stop`, `cost` and `alignment`, and with
    `start_time` and `stop_time` if the signal has times. The cheapest comes first. The list may be empty.

    Raises
    ------
    ValueError : if an argument is invalid, for example if the query is longer than the signal.

    >>> import dropdtw
    >>> signal = [9, 1, 2, 3, 9, 9, 1, 7, 2, 3, 9]
    >>> [(o.start, o.stop, o.cost) for o in dropdtw.find([1, 2, 3], signal, max_cost=1, drop_x=0.5)]
    [(1, 4, 0.0), (6, 10, 0.5)]
    >>> dropdtw.find([1, 2, 3], signal, k=2, drop_x=0.5)[1].alignment.labels      # the 7 is dropped
    array([ 0, -1,  1,  2])
    """
    refuse_keywords(find, options)
    query, signal, clocks = timed(query, signal, times, fps)
    spec = Spec.of(drop_x, drop_z, match=match, method=_METHOD, missing=missing, executor=executor, **options)
    most, limit, share = _checked(k, max_cost, overlap)
    spec, coded = spec.encoded([query], [signal], lambda side, k: ("query", "signal")[side])
    if coded is not None:
        (query,), (signal,) = coded.left.codes, coded.right.codes
    query, signal = same_columns(query, signal, "query", "signal")
    (Z, z), (X, x) = present(query, "query", missing), present(signal, "signal", missing)
    if Z.shape[1] != X.shape[1]:
        raise ValueError(
            f"query has {Z.shape[1]} features and signal has {X.shape[1]}; both need the same number, as (length, d)"
        )
    if len(Z) > len(X):
        without = " without missing ones" if missing else ""
        raise ValueError(
            f"query has {len(Z)} elements and signal has {len(X)}{without}, but the signal must be at least as long as "
            "the query; swap them, or use align"
        )
    kept = Kept.of(Z, z, X, x)
    spec = spec if kept is None else restricted(spec, kept)
    Z, X = same_precision(Z, X)
    measure = match_costs.resolve(spec.match, Z.shape[1])
    measure.check_features(Z.shape[1])
    problem = Problem.of_checked(spec, Z.copy(), X, measure)
    report = reporter("dropdtw.find", progress)
    ends = executors.choose(problem.table, executor).occurrences(problem.table, problem.costs, report)
    inside = recurrence.occurrence(**spec.matching._asdict(), anchored=True)
    found = Occurrences()
    for a, b in _best(ends, most, limit, share):
        start, stop = (a, b) if kept is None else kept.interval(a, b)
        there = None if kept is None else Kept(kept.z, kept.x[a:b] - start, (kept.shape[0], stop - start))
        when = None if clocks is None else clocks.of_x(slice(start, stop))
        said = None if coded is None else (coded.left.symbols[0], coded.right.symbols[0][start:stop])
        source = partial(_problem, inside, _stretch(problem.costs, a, b), executor, there, when, said)
        found.append(Occurrence(start, stop, float(ends.cost[b - 1]), source, None if clocks is None else clocks.x))
    return found


def _checked(k: int | None, max_cost: float | None, overlap: float) -> tuple[int | None, float, float]:
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise OptionError("k", k, "give a whole number ≥ 1", in_python=", or None for all up to max_cost")
    if max_cost is not None and (isinstance(max_cost, bool) or not isinstance(max_cost, Real) or max_cost != max_cost):
        raise OptionError("max_cost", max_cost, "give a number", in_python=", or None for no limit")
    if isinstance(overlap, bool) or not isinstance(overlap, Real) or not 0 <= overlap <= 1:
        raise OptionError("overlap", overlap, "give a fraction from 0 (none) to 1 (any)")
    most = DEFAULT_K if k is None and max_cost is None else k
    return most, np.inf if max_cost is None else float(max_cost), float(overlap)


def _table(x: bool, z: bool, matching: Matching, charged: bool) -> Recurrence:
    return recurrence.occurrence(**matching._asdict())


_METHOD = Method(
    "occurrence",
    "Drop-DTW with a stretch of X that begins and ends with a match",
    _table,
    takes_opening=True,
    takes_warp=True,
    must_match_x=False,
    symmetric=False,
)


def _stretch(costs: Costs, start: int, stop: int) -> Costs:
    """The costs of an occurrence, copied so that later changes to the caller's arrays have no effect."""
    match = costs.match
    inside: MatchCosts
    if isinstance(match, Pair):
        inside = Pair(match.Z, match.X[start:stop].copy(), match.match)
    else:
        inside = Matrix(match.columns(start, stop).copy())
    return Costs(inside, costs.drop_x[start:stop].copy(), costs.drop_z, costs.charges)


def _problem(
    table: Recurrence,
    costs: Costs,
    executor: str | None,
    kept: Kept | None,
    clocks: Clocks | None,
    symbols: tuple[Symbols, Symbols] | None,
) -> Problem:
    return Problem(_METHOD.name, table, costs, costs, _as_given, executor, kept=kept, clocks=clocks, symbols=symbols)


def _as_given(costs: Costs) -> Costs:
    return costs


def _best(ends: Ends, k: int | None, max_cost: float, overlap: float) -> Iterator[tuple[int, int]]:
    """The intervals [start, stop) of the best candidates, without those that overlap better ones too much."""
    cost, begin = ends
    alive = (cost <= max_cost) & (cost < np.inf)
    stop = np.arange(1, len(cost) + 1)
    longest = int((stop - begin).max(initial=0, where=alive))
    found = 0
    for candidates in _cheapest_first(cost, alive):
        position = 0
        while position < len(candidates):
            left = np.flatnonzero(alive[candidates[position : position + 1024]])
            if not len(left):
                position += 1024
                continue
            position += int(left[0]) + 1
            end = int(candidates[position - 1])
            a, b = int(begin[end]), end + 1
            yield a, b
            found += 1
            if found == k:
                return
            # A candidate that overlaps this one ends after its start and begins before its end.
            near = slice(a, b + longest)
            shared = np.minimum(stop[near], b) - np.maximum(begin[near], a)
            shorter = np.minimum(stop[near] - begin[near], b - a)
            alive[near] &= shared <= overlap * shorter + 1e-9  # 0.29 · 100 is a little below 29
            alive[end] = False


def _cheapest_first(cost: Array, alive: Array) -> Iterator[Array]:
    """Yield the candidates, each as its last j, sorted by (cost, j), in batches.

    Candidates that are no longer alive when their batch is sorted are left out.
    """
    rest, size = np.flatnonzero(alive), FIRST
    while len(rest):
        paid = cost[rest]
        now = paid <= np.partition(paid, size)[size] if len(rest) > size else np.ones(len(rest), bool)
        yield rest[now][np.argsort(paid[now], kind="stable")]
        rest = rest[~now]
        rest, size = rest[alive[rest]], 4 * size
