"""Posteriors: the probability of each match and each drop, over all alignments.

The Gibbs distribution at temperature γ gives an alignment M the probability exp(−cost(M)/γ) / Σ exp(−cost/γ), so cheap
alignments are more probable. Its marginals are the derivatives of the soft value −γ log Σ exp(−cost/γ), so the
backward pass computes them exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dropdtw import executors
from dropdtw.executors.protocol import Result
from dropdtw.orders.graph import AGAIN, DROP, NEW, OTHER, Graph
from dropdtw.problem.clock import Clock
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.results.alignment import Alignment, weighted_sum
from dropdtw.results.export import Exported, times_of
from dropdtw.tables.reducers import Reducer, soft_min

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARE: Final = 2 / 3
"""The default γ in standard deviations of the match costs; `benchmarks/calibration.py` shows how well it fits."""


def usual_gamma(C: Array) -> float:
    """The default γ for match costs: 2/3 of their standard deviation; 1 if all of them are equal.

    >>> round(usual_gamma(np.array([[0.0, 3.0], [3.0, 0.0]])), 6)
    1.0
    """
    finite = C[np.isfinite(C)]
    with np.errstate(over="ignore"):
        spread = float(finite.std(dtype=np.float64)) if finite.size and finite.min() < finite.max() else 0.0
    return SHARE * spread if 0 < spread < np.inf else 1.0


class _Span(NamedTuple):
    label: int
    probability: float
    start: tuple[int, int] | None
    stop: tuple[int, int] | None


class Interval(_Span):
    """Where a z begins and ends in X, as credible intervals. Returned by `Posterior.intervals`.

    label : the index of the z.   probability : the probability that it is matched at all.
    start : (a, b): its first x lies between x_a and x_b, both included; None if it cannot be matched.
    stop : (a, b): the index after its last x lies between a and b, both included.
    clock : the times of X, if it has any.
    """

    clock: Clock | None = None

    @property
    def start_time(self) -> tuple[Any, Any] | None:
        """The times between which it begins; None without times."""
        return self._times(self.start, 0, 0)

    @property
    def stop_time(self) -> tuple[Any, Any] | None:
        """The times between which it ends; None without times."""
        return self._times(self.stop, 1, 1)

    def _times(self, places: tuple[int, int] | None, end: int, before: int) -> tuple[Any, Any] | None:
        if self.clock is None or places is None:
            return None
        first, last = (self.clock.span(place - before, place - before + 1)[end] for place in places)
        return first, last


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Exported):
    """The Gibbs distribution over the alignments of one problem. Returned by `dropdtw.posterior`.

    match : (K, N), the probability that z_i matches x_j.
    drop_x, drop_z : (N,) and (K,), the probabilities that x_j and that z_i are dropped. A z that the alignment does not
        visit does not count as dropped (see `visit`; unlike `Alignment.dropped_z`), and neither does a missing element.
    log_partition : log Σ exp(−cost/γ) over all alignments.
    expected_cost : the mean cost of an alignment.
    gamma : the temperature γ.
    problem : the problem whose alignments these are.
    visit : (K,), how often an alignment visits z_i on average, matched or dropped. Without an `order` it is 1, or 0 for
        a missing z. With an `order` in which no step repeats, it is a probability. For a step that can repeat, `visit`
        and `drop_z` are mean counts; so is `match` if two visits can match the same x.

    >>> import dropdtw
    >>> p = dropdtw.posterior([[0.1, 0.9, 0.2]], drop_x=0.3, gamma=0.1)
    >>> p.match.round(2), round(p.cost, 4)
    (array([[0.91, 0.  , 0.76]]), 0.559)
    """

    match: Array
    drop_x: Array
    drop_z: Array
    log_partition: float
    expected_cost: float
    gamma: float
    problem: Problem = field(repr=False)
    visit: Array = field(repr=False)

    @classmethod
    def of(cls, problem: Problem, gamma: float | None) -> Posterior:
        """The posterior of a problem at temperature `gamma`; None for the default, see `dropdtw.posterior`."""
        if gamma is None:
            logs = problem.method == "ctc" or problem.match == "softmax"  # −log of probabilities
            gamma = 1.0 if logs else usual_gamma(problem.costs.matrix)
        reducer = soft_min(gamma)
        if reducer.gamma == 0:
            raise ValueError("gamma is 0, where one alignment has all the probability; use dropdtw.solve to find it")
        found = executors.run(problem, reducer, gradient=True)
        if not np.isfinite(found.value):
            raise executors.no_alignment(problem)
        problem.given.match.own()  # `sample` uses these costs later; the caller may modify the arrays
        costs = problem.costs
        paid = (
            (found.match, costs.matrix),
            (found.drop_x, costs.drop_x),
            (found.drop_z, costs.drop_z),
            (np.array(found.charges), np.array(costs.charges)),
        )
        kept = problem.kept
        expected_cost = sum(weighted_sum(counts, prices) for counts, prices in paid)
        if problem.graph is not None and problem.graph.rows is None:
            expected_cost += weighted_sum(found.arcs, problem.graph.cost)
        if not problem.table.weights <= {1.0}:  # a derivative is the probability of a match times its weight
            found = found._replace(match=executors.marginals(problem, reducer))
        drop_x, drop_z = _empty_columns(problem, reducer, found), _empty_rows(problem, reducer, found)
        visit = _visits(problem, found)
        return cls(
            match=found.match if kept is None else kept.spread(found.match, 0, "z", "x"),
            drop_x=drop_x if kept is None else kept.spread(drop_x, 0, "x"),
            drop_z=drop_z if kept is None else kept.spread(drop_z, 0, "z"),
            log_partition=-found.value / reducer.gamma,
            expected_cost=expected_cost,
            gamma=reducer.gamma,
            problem=problem,
            visit=visit if kept is None else kept.spread(visit, 0, "z"),
        )

    @property
    def cost(self) -> float:
        """The soft value −γ log Σ exp(−cost/γ), at most γ · log(number of alignments) below the hard cost."""
        return -self.gamma * self.log_partition

    @property
    def entropy(self) -> float:
        """−Σ p log p over alignments, in nats; 0 if one alignment has all the probability."""
        return max(0.0, self.log_partition + self.expected_cost / self.gamma)

    @cached_property
    def before(self) -> Array:
        """(K, K): before[u, v] is the probability that z_u and z_v are both matched, and z_u's first x comes first.

        With `many_to_one=False`, which it requires, no two z share an x. So `before + before.T` is the probability that
        both are matched.

        Raises ValueError if `many_to_one` is True, if the order has repeats or alternatives, or if the method skips z
        for free. Then estimate it from `sample`.

        >>> import dropdtw
        >>> C = [[0.0, 0.5], [1.0, 0.0]]
        >>> either = dropdtw.orders.any_order(0, 1)
        >>> dropdtw.posterior(C, many_to_one=False, order=either, gamma=1).before.round(2)
        array([[0.  , 0.82],
               [0.18, 0.  ]])
        """
        found = _before(self.problem, soft_min(self.gamma))
        return found if self.problem.kept is None else self.problem.kept.spread(found, 0, "z", "z")

    def intervals(self, level: float = 0.9) -> list[Interval]:
        """Compute credible intervals of the start and the stop of each z.

        Among the alignments that match a z, its start lies in the interval with a probability of at least `level`, and
        at most half of the rest lies on either side. The same holds for its stop. These are exact sums over all
        alignments; each takes about 2 log₂ N runs of the table.

        level : the probability, between 0 and 1.

        Returns a list with an `Interval` for each z. Raises ValueError if `level` is invalid.

        >>> import dropdtw
        >>> C = [[0.1, 0.1, 0.9, 0.9, 0.9], [0.9, 0.9, 0.5, 0.1, 0.1]]
        >>> for found in dropdtw.posterior(C, drop_x=0.4, method="steps").intervals():
        ...     print(found.label, found.start, found.stop)
        0 (0, 1) (1, 3)
        1 (2, 4) (4, 5)
        """
        if not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError(f"level is {level!r}; give a probability between 0 and 1, such as 0.9")
        kept, clocks = self.problem.kept, self.problem.clocks
        clock = None if clocks is None else clocks.x
        found = []
        for i in range(self.match.shape[0]) if kept is None else kept.z.tolist():
            compact = i if kept is None else int(np.searchsorted(kept.z, i))
            interval = Interval(i, *self._spans(compact, (1 - level) / 2))
            interval.clock = clock
            found.append(interval)
        return found

    def _spans(self, i: int, outside: float) -> tuple[float, tuple[int, int] | None, tuple[int, int] | None]:
        """The probability that z_i (of those present) is matched, and the intervals of its start and stop."""
        kept = self.problem.kept
        problem = self.problem.paying(_doubled(self.problem.costs))
        reducer = soft_min(self.gamma)
        whole = executors.run(problem, reducer)
        N = problem.costs.shape[1]

        def matched(start: int, stop: int) -> float:
            """The probability that z_i matches one of x[start:stop]."""
            return 1 - _without(problem, reducer, whole, (i, slice(start, stop)))

        total = matched(0, N)
        if total <= 0:
            return 0.0, None, None

        def quantiles(reached: Callable[[int], float]) -> tuple[int, int]:
            """The interval that leaves out at most `outside` on either side; `reached` is a distribution function."""
            low = bisect_left(range(N), True, key=lambda j: reached(j) > outside)
            return low, bisect_left(range(N), True, lo=low, key=lambda j: reached(j) >= 1 - outside - 1e-9)

        a, b = quantiles(lambda j: matched(0, j + 1) / total)  # the start is ≤ j if z_i matches one of x[:j + 1]
        c, d = quantiles(lambda j: 1 - matched(j, N) / total)  # the stop is ≤ j if it matches none of x[j:]
        if kept is not None:
            a, b, c, d = kept.x[a], kept.x[b], kept.x[c - 1] + 1, kept.x[d - 1] + 1
        return total, (int(a), int(b)), (int(c), int(d))

    def to_columns(self) -> dict[str, list[Any]]:
        """The probabilities as a table with a row for each x: `x`, its times if there are any, `drop`, `z_0`, `z_1`, ….

        With symbols, `x_symbol` follows. See also `Alignment.to_columns`.

        >>> import dropdtw
        >>> print(dropdtw.posterior([[0.0, 0.0]], drop_x=0.0, gamma=1).to_csv(), end="")
        x,drop,z_0
        0,0.3333333333333333,0.6666666666666666
        1,0.3333333333333333,0.6666666666666666
        """
        places = list(range(self.match.shape[1]))
        clocks = self.problem.clocks
        times = times_of(None if clocks is None else clocks.x, [(j, j + 1) for j in places])
        symbols = self.problem.symbols
        found = {"x": places, **times, "drop": self.drop_x.tolist()}
        found |= {f"z_{i}": row.tolist() for i, row in enumerate(self.match)}
        return found if symbols is None else found | {"x_symbol": list(symbols[1])}

    def to_dict(self, *, costs: bool = False) -> dict[str, Any]:
        """Convert the posterior to a dictionary that JSON can hold.

        costs : whether to include a best alignment with its costs, which `from_dict` needs.
        """
        data = {name: getattr(self, name) for name in ("gamma", "log_partition", "expected_cost")}
        data |= {name: getattr(self, name).tolist() for name in ("match", "drop_x", "drop_z", "visit")}
        return data | ({"alignment": Alignment.of(self.problem).to_dict(costs=True)} if costs else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Posterior:
        """Read what `to_dict(costs=True)` wrote: the probabilities are computed again from its costs and γ.

        Raises ValueError if the dictionary is damaged, or has no costs.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("alignment"), Mapping) or "gamma" not in data:
            raise ValueError("this is not a posterior with its costs; give what Posterior.to_dict(costs=True) wrote")
        return Alignment.from_dict(data["alignment"]).posterior(data["gamma"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the probabilities, as `dropdtw.plot.posterior` does.

        ax : the axes to draw on; None creates new ones.

        Returns the axes. Raises ImportError if matplotlib is not installed (`pip install 'dropdtw[plot]'`).

        >>> import dropdtw
        >>> ax = dropdtw.posterior([[0.1, 0.9, 0.2]], drop_x=0.3).plot()
        """
        from dropdtw import plot

        return plot.posterior(self, ax=ax)

    def __repr__(self) -> str:
        K, N = self.match.shape
        return (
            f"<Posterior by {self.problem.method} of {K} z with {N} x: γ {self.gamma:.4g}, "
            f"entropy {self.entropy:.4g} nats, expected cost {self.expected_cost:.6g}>"
        )

    def sample(self, n: int = 1, *, seed: int | np.random.Generator | None = None) -> list[Alignment]:
        """Draw n independent alignments. The same seed gives the same alignments.

        n : the number of alignments, 0 or more.   seed : a number or a NumPy generator; None draws a fresh seed.

        Returns a list of `dropdtw.Alignment`. Raises ValueError if n is invalid.

        >>> import dropdtw
        >>> p = dropdtw.posterior([[0.0, 0.0]], drop_x=0.0)
        >>> [a.labels.tolist() for a in p.sample(3, seed=1)]
        [[0, -1], [0, -1], [-1, 0]]
        """
        if not isinstance(n, (int, np.integer)) or n < 0:
            raise ValueError(f"n is {n}; give the number of alignments to draw, 0 or more")
        rng = np.random.default_rng(seed)
        paths = executors.sample(self.problem, soft_min(self.gamma), n, rng)
        return [Alignment.from_path(self.problem, path) for path in paths]


def _doubled(costs: Costs) -> Costs:
    """The costs in double precision."""
    prices = {name: getattr(costs, name).astype(np.float64) for name in ("drop_x", "drop_z")}
    return costs.with_match(costs.matrix.astype(np.float64))._replace(**prices)


def _empty_columns(problem: Problem, reducer: Reducer, found: Result) -> Array:
    """The probability that x_j matches nothing: the derivative with respect to d_x if every drop is paid for."""
    if "free" not in problem.table.unmatched_x_pays():
        return found.drop_x
    if not problem.table.matches_by("top"):  # each x matches at most one z
        return np.asarray(np.clip(1 - found.match.sum(axis=0), 0, 1))
    return np.array([_without(problem, reducer, found, (slice(None), j)) for j in range(problem.costs.shape[1])])


def _empty_rows(problem: Problem, reducer: Reducer, found: Result) -> Array:
    if problem.ids is not None:  # z are dropped only by going past them, see `Problem.ids`
        listed = problem.order is None and problem.graph is not None
        return np.clip(1 - _entered(problem, found), 0, 1) if listed else np.zeros_like(found.drop_z)
    if not _passes_z_for_free(problem):
        return found.drop_z
    if not problem.table.matches_by("left"):
        return np.asarray(np.clip(1 - found.match.sum(axis=1), 0, 1))
    return np.array([_without(problem, reducer, found, (i,)) for i in range(problem.costs.shape[0])])


def _passes_z_for_free(problem: Problem) -> bool:
    return "free" in problem.table.transpose().unmatched_x_pays()


def _visits(problem: Problem, found: Result) -> Array:
    """The total probability of the arcs into the nodes of each z, except those that continue the same z."""
    K = problem.costs.shape[0]
    graph = problem.graph
    if graph is None or problem.order is None:
        return np.ones(K)
    if graph.rows is not None:
        return np.bincount(graph.rows, minlength=K).astype(float)
    return _entered(problem, found)


def _entered(problem: Problem, found: Result) -> Array:
    """How often the nodes of each z are entered."""
    graph = problem.graph
    assert graph is not None
    label = graph.label[graph.target]
    begins = (label >= 0) & (graph.use & AGAIN == 0)
    return np.bincount(label[begins], found.arcs[begins], problem.costs.shape[0])


def _before(problem: Problem, reducer: Reducer) -> Array:
    """See `Posterior.before`: u is matched before v exactly if u is already done when a match enters v.

    If u may be dropped, a separate pass restricts the sum to alignments that match u.
    """
    K = problem.costs.shape[0]
    if problem.table.matches_by("top"):
        raise ValueError(
            "with many_to_one=True, several z may have the same first x, so `before` is not defined; "
            "pass many_to_one=False, or estimate it from sample()"
        )
    if problem.ids is not None:
        raise ValueError(f"method {problem.method!r} does not support `before`; estimate it from sample()")
    if _passes_z_for_free(problem):
        raise ValueError(
            f"method {problem.method!r} skips z for free, so `before` cannot be computed exactly; "
            "estimate it from sample()"
        )
    matched_after = _matched_after(problem.graph, K)
    unrestricted = executors.run(problem, reducer, gradient=True)
    out = np.zeros((K, K))
    for u in range(K):
        found = unrestricted
        if np.isfinite(problem.costs.drop_z[u]):
            drop_z = problem.costs.drop_z.copy()
            drop_z[u] = np.inf
            found = executors.run(problem.paying(problem.costs._replace(drop_z=drop_z)), reducer, gradient=True)
        if np.isfinite(found.value):
            out[u] = np.exp((unrestricted.value - found.value) / reducer.gamma) * matched_after(found, u)
    return out


def _matched_after(graph: Graph | None, K: int) -> Callable[[Result, int], Array]:
    """A function of the derivatives and u that gives, for each v, the probability that v is matched after u."""
    rows = np.arange(K) if graph is None else graph.rows
    if rows is not None and len(set(rows)) == len(rows):
        position = np.argsort(rows)
        return lambda found, u: np.where(position > position[u], 1 - found.drop_z, 0)
    if graph is None or graph.past is None:
        raise ValueError("`before` is not defined for steps that repeat or are alternatives; estimate it from sample()")
    label = graph.label[graph.target]
    enters = np.flatnonzero((label >= 0) & (graph.use & (NEW | OTHER) != 0))
    to = label[enters]
    past = [graph.past[v] for v in graph.target[enters]]
    # An arc for both matches and drops is the only arc into the only node of its step, so it carries all of its drops.
    dropped_too = graph.use[enters] & DROP != 0

    def probabilities(found: Result, u: int) -> Array:
        done = np.array([steps >> u & 1 for steps in past]) * (to != u)
        matched = found.arcs[enters] - np.where(dropped_too, found.drop_z[to], 0)
        return np.bincount(to, matched * done, K)

    return probabilities


def _without(problem: Problem, reducer: Reducer, found: Result, where: tuple[Any, ...]) -> float:
    """The share of the partition sum that remains when the matches `where` are forbidden."""
    match = problem.costs.matrix.copy()
    match[where] = np.inf
    remaining = executors.run(problem.paying(problem.costs.with_match(match)), reducer).value
    return float(np.exp((found.value - remaining) / reducer.gamma))
