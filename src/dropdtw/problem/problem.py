"""A problem for an executor: a table and its costs, built from a `Spec` and match costs or sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw.costs import Match
from dropdtw.drops import LogitPercentile, PerElement, Rule
from dropdtw.orders.graph import Graph
from dropdtw.orders.order import Order
from dropdtw.orders.repeats import chain, forbid_repeats
from dropdtw.problem.band import band, in_both, limits_of
from dropdtw.problem.charges import NO_CHARGES
from dropdtw.problem.clock import Clocks, Fps, Times, clocks_of, timed
from dropdtw.problem.costs import Costs
from dropdtw.problem.errors import MismatchError, OptionError
from dropdtw.problem.inputs import Array, as_drop_costs, as_match_costs, detached, refuse_masked
from dropdtw.problem.match import MatchCosts, Matrix, Pair
from dropdtw.problem.missing import Kept, without_missing
from dropdtw.problem.spec import Spec
from dropdtw.problem.symbols import Symbols, listing
from dropdtw.tables.table import Recurrence


@dataclass(frozen=True, eq=False)
class Problem:
    """A table and its costs.

    given : the costs that the caller gave.
    costs : the costs that the table pays. Some methods, such as LCSS, transform the given ones.
    edit : computes `costs` from `given`.
    order, graph : the order of the steps, and its graph; None for a plain list.
    masked : whether a mask limits the matches.
    match : the name of the match cost; None if the caller gave match costs.
    ids : (K,), equal for the same z, if the method has to know; otherwise None. If its z may be dropped, then `graph`
        has arcs past them, although there is no order.
    kept : which of the caller's elements are present, if others are missing; None if all are.
    clocks : the times of the caller's elements; None without times.
    anchors : pairs (i, j) that are matched, in order, with the indices of the elements that are present.
    symbols : the elements of Z and X if they are symbols, missing ones included; otherwise None.
    """

    method: str
    table: Recurrence
    costs: Costs
    given: Costs
    edit: Callable[[Costs], Costs]
    executor: str | None = None
    graph: Graph | None = None
    order: Order | None = None
    masked: bool = False
    match: str | None = None
    kept: Kept | None = None
    clocks: Clocks | None = None
    symbols: tuple[Symbols, Symbols] | None = None
    ids: tuple[int, ...] | None = None
    anchors: tuple[tuple[int, int], ...] = ()

    @property
    def C(self) -> Array:
        """The given match costs as a matrix."""
        C: Array = self.given.matrix
        return C

    def paying(self, costs: Costs) -> Problem:
        """A copy of the problem with other `costs`."""
        return replace(self, costs=costs)

    def clocked(self, spec: Spec, clocks: Clocks | None) -> Problem:
        """The problem of sequences that have times, with its costs by the second if the request says so."""
        if clocks is None:
            return self
        if spec.per is None or clocks.x is None:
            return replace(self, clocks=clocks)
        lasting = clocks.x.durations if self.kept is None else clocks.x.durations[self.kept.x]
        edit = partial(by_duration, self.edit, lasting.astype(self.given.dtype))
        return replace(self, clocks=clocks, edit=edit, costs=edit(self.given))

    @classmethod
    def of_costs(cls, spec: Spec, C: npt.ArrayLike, times: Times = None, fps: Fps = None) -> Problem:
        """The problem for a matrix of match costs (K, N)."""
        spec.check_costs_suffice()
        match = Matrix(as_match_costs(C))
        clocks = clocks_of(match.shape, times, fps)
        return cls._of(spec.timed(clocks), match, spec.drop_x, spec.drop_z).clocked(spec, clocks)

    @classmethod
    def of_sequences(
        cls, spec: Spec, Z: npt.ArrayLike, X: npt.ArrayLike, times: Times = None, fps: Fps = None
    ) -> Problem:
        """The problem for two sequences (K, d) and (N, d), without elements with NaN if `missing="drop"`."""
        Z, X, clocks = timed(Z, X, times, fps)
        spec, coded = spec.encoded([Z], [X], lambda side, k: "ZX"[side])
        symbols = None
        if coded is not None:
            (Z,), (X,) = coded.left.codes, coded.right.codes
            symbols = coded.left.symbols[0], coded.right.symbols[0]
        elif spec.match == "equal" and np.ndim(Z) == np.ndim(X) == 1:  # numbers that are compared as symbols
            symbols = listing(detached(Z), "Z"), listing(detached(X), "X")
        spec, A, B, kept = without_missing(spec, Z, X)
        match = spec.resolved(A.shape[1])
        match.check_features(A.shape[1])
        found = cls.of_checked(spec.timed(clocks, kept), A, B, match)
        if kept is not None or symbols is not None:
            found = replace(found, kept=kept, symbols=symbols)
        return found.clocked(spec, clocks)

    @classmethod
    def of_checked(cls, spec: Spec, Z: Array, X: Array, match: Match) -> Problem:
        """The problem for two validated sequences and the match cost that `spec` resolves to."""
        rule = spec.drop_x
        spec.check_fit(len(Z), len(X))
        if spec.method.gap is not None:
            return cls._of(spec, between(Z, X, match), *_gaps(spec.method.gap, Z, X, match), match.name)
        if not isinstance(rule, LogitPercentile):
            return cls._of(spec, between(Z, X, match), rule, spec.drop_z, match.name)
        if match.softmax is None:
            why = f", a logit in the softmax cost, but match is {match.name!r}"
            raise OptionError("drop_x", rule.said, "use 'softmax'", why)
        C, d_x = match.softmax.with_drop_logits(Z, X, rule.logits, rule.epsilon)
        return cls._of(spec, Matrix(C), PerElement(d_x), spec.drop_z, match.name)

    @classmethod
    def _of(
        cls, spec: Spec, match: MatchCosts, drop_x: Rule | None, drop_z: Rule | None, name: str | None = None
    ) -> Problem:
        K, N = match.shape
        spec.check_fit(K, N)
        match, limits = _allowed(spec, match)
        d_x, d_z = _prices(drop_x, "x", match, limits), _prices(drop_z, "z", match, limits)
        edit: Callable[..., Costs] = partial(spec.method.edit, threshold=_threshold(spec.threshold, match))
        charges = spec.charges.price(match, d_x, d_z, limits) if spec.charges.any else NO_CHARGES
        given = Costs(match, d_x, d_z, charges, band=limits)
        graph = spec.graph(K)
        order = None if graph is None else spec.order
        ids = None
        if spec.method.takes_ids:
            ids = _ids(spec.ids, match)
            graph = without_repeats(graph, ids, None if spec.drop_z is None else d_z)
            edit = partial(edit, ids=np.array(ids)) if graph is None else in_graph
        masked = spec.mask is not None
        costs = edit(given)
        _check_anchors(spec.anchors, costs)
        return cls(
            spec.method.name, spec.table, costs, given, edit, spec.executor, graph, order, masked, name, ids=ids,
            anchors=spec.anchors or (),
        )  # fmt: skip


def by_duration(edit: Callable[[Costs], Costs], lasting: Array, given: Costs) -> Costs:
    """The costs that `edit` makes, times the duration of each x, (N,). A forbidden match stays forbidden."""
    costs = edit(given)
    C, d_x = (
        np.multiply(each, lasting, out=each.copy(), where=np.isfinite(each)) for each in (costs.matrix, costs.drop_x)
    )
    return costs.with_match(C)._replace(drop_x=d_x)


def without_repeats(graph: Graph | None, ids: tuple[int, ...], skips: Array | None) -> Graph | None:
    """The graph in which equal z in a row need a dropped x between them; None if a list will do.

    graph : of the order, None for a list.   skips : what it costs to drop each z of a list, None if that is forbidden.
    """
    if graph is None and skips is None:
        return None
    return forbid_repeats(
        chain([1] * len(ids), None if skips is None else skips.tolist())[0] if graph is None else graph, ids
    )


def in_graph(costs: Costs) -> Costs:
    """The costs for a graph of `without_repeats`: its arcs alone say which z may follow which."""
    return Costs(Matrix(costs.banded()), costs.drop_x, np.zeros_like(costs.drop_z))


def _check_anchors(anchors: tuple[tuple[int, int], ...] | None, costs: Costs) -> None:
    """Raise unless each anchor is a match that is allowed."""
    for i, j in anchors or ():
        if i >= costs.shape[0] or j >= costs.shape[1]:
            why = f", but there are {costs.shape[0]} z and {costs.shape[1]} x"
            raise OptionError("anchors", (i, j), "give indices of elements, counted from 0", why)
        outside = costs.band is not None and not costs.band[0][i] <= j < costs.band[1][i]
        if outside or not isfinite(costs.match.one(i, j)):
            why = f", but z_{i} may not match x_{j}"
            raise OptionError("anchors", (i, j), "allow this match, or remove the anchor", why)


def _ids(ids: tuple[Any, ...] | None, match: MatchCosts) -> tuple[int, ...]:
    """For each z, the first that is the same."""
    K = match.shape[0]
    if ids is not None and len(ids) != K:
        raise OptionError("ids", list(ids), "give one per element of Z", f", but Z has {K} elements")
    names = (match.matrix + 0.0) if ids is None else ids
    first: dict[Any, int] = {}
    return tuple(
        first.setdefault(name.tobytes() if isinstance(name, np.ndarray) else name, i) for i, name in enumerate(names)
    )


def _allowed(spec: Spec, match: MatchCosts) -> tuple[MatchCosts, tuple[Array, Array] | None]:
    """The match costs and the band under the window and the mask.

    A mask that has the form of a band becomes one, because executors skip cells outside a band. Any other mask sets
    match costs to +∞. So does every mask if a rule reads the match costs, because it has to see which are forbidden,
    and if there is an order, because orders do not support bands.
    """
    K, N = match.shape
    limits = None if spec.window is None else band(K, N, spec.window)
    if spec.mask is None:
        return match, limits
    if spec.mask.shape != (K, N):
        raise ValueError(f"mask has shape {spec.mask.shape}, but there are {K} × {N} pairs; give one boolean per pair")
    found = None if spec.needs_costs or spec.order is not None else limits_of(spec.mask)
    if found is None:
        return Matrix(np.where(spec.mask, match.matrix, np.inf).astype(match.dtype, copy=False)), limits
    return match, found if limits is None else in_both(found, limits)


def _gaps(gap: float | tuple[float, ...], Z: Array, X: Array, match: Match) -> tuple[Rule, Rule]:
    """The drop costs of x and z for ERP: dropping an element costs as much as matching it with a constant one."""
    if isinstance(gap, tuple) and len(gap) != Z.shape[1]:
        raise ValueError(
            f"g has {len(gap)} numbers, but Z has {Z.shape[1]} features; give one per feature, or one for all"
        )
    element = np.full((1, Z.shape[1]), gap, Z.dtype)
    return PerElement(match.cost(element, X)[0]), PerElement(match.cost(Z, element)[:, 0])


def between(Z: Array, X: Array, match: Match) -> MatchCosts:
    """The match costs of two validated sequences; lazy if they can be computed in strips."""
    return Pair(Z, X, match) if match.by_column else Matrix(match.cost(Z, X))


def _prices(rule: Rule | None, side: str, match: MatchCosts, limits: tuple[Array, Array] | None) -> Array:
    """The drop cost of each element of a side; +∞ for elements that may not be dropped."""
    length = match.shape[1 if side == "x" else 0]
    if rule is None:
        return np.full(length, np.inf, match.dtype)
    name = f"drop_{side}"
    found = as_drop_costs(rule.price(match, side, limits), name, length, f"{side}_{'j' if side == 'x' else 'i'}")
    if found.dtype == match.dtype:
        return found.copy()  # it may be the caller's array
    with np.errstate(over="ignore"):
        fitted = found.astype(match.dtype)
    if (np.isinf(fitted) & np.isfinite(found)).any():
        raise MismatchError(f"{{{name}}} has values that {match.dtype} cannot hold; give the match costs as float64")
    return fitted


def _threshold(rule: Rule | None, match: MatchCosts) -> float:
    if rule is None:
        return np.inf
    refuse_masked(rule.said, "threshold")
    try:
        value = np.asarray(rule.price(match, "x"))
    except ValueError:  # a ragged list, or a drop logit: let the check below raise
        value = np.empty(2)
    if value.ndim != 0 or value.dtype.kind not in "iuf" or np.isnan(value):
        raise OptionError("threshold", rule.said, "give a number or a rule such as 'percentile:30'")
    return float(value)
