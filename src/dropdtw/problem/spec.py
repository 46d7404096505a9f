"""The caller's arguments as one validated value: method, table, rules and options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dropdtw import costs, drops
from dropdtw.costs import Match, MatchCost
from dropdtw.drops import DropCost, PerElement, Rule
from dropdtw.orders.graph import Graph
from dropdtw.orders.order import Order
from dropdtw.problem import charges
from dropdtw.problem.band import window_width
from dropdtw.problem.charges import RequestedCharges
from dropdtw.problem.clock import Clocks
from dropdtw.problem.errors import MismatchError, OptionError
from dropdtw.problem.inputs import Array
from dropdtw.problem.options import Options
from dropdtw.problem.symbols import Encoded, Side, encode
from dropdtw.problem.warn import warn
from dropdtw.tables import reducers
from dropdtw.tables.methods import METHODS, Matching, Method, look_up
from dropdtw.tables.reducers import Reducer
from dropdtw.tables.table import Recurrence

if TYPE_CHECKING:
    from dropdtw.problem.missing import Kept


@dataclass(frozen=True)
class Spec:
    """The validated options of `solve` and similar functions: all of a request except its sequences or match costs.

    method, table : the entry in the registry, and the table to run.
    matching : one_to_many, many_to_one and contiguous.
    drop_x, drop_z, threshold : the rules; None if not given.
    charges : opening costs and the warp penalty.
    window : as the caller gave it, in columns or as a fraction of N; None for no window.
    match : the match cost as the caller gave it.
    reducer : the kind of minimum (hard, soft or smooth), with its γ.
    executor : the name of the executor; None for the fastest one.
    normalize : "x", "z" or "both" (lengths), "pattern", "path", or None to divide by nothing.
    order : which steps may follow which; None keeps the order of Z.
    ids : one value per z, equal for the same z; None: z with equal match costs are the same.
    mask : (K, N) bool, True where matches are allowed; None if they are allowed everywhere.
    missing : "drop" ignores elements with NaN; None rejects them.
    anchors : pairs (i, j) that are matched, in order; None for none.
    per : "second" multiplies the costs of each x by its duration; None does not.
    max_cost : the largest cost of interest; +∞ for no limit.

    >>> spec = Spec.of(drop_x=0.3)
    >>> spec.method.name, spec.drop_x, spec.drop_z
    ('drop_dtw', Constant(value=0.3), None)
    """

    method: Method
    table: Recurrence
    matching: Matching
    drop_x: Rule | None
    drop_z: Rule | None
    threshold: Rule | None
    charges: RequestedCharges
    window: float | None
    match: MatchCost
    reducer: Reducer
    executor: str | None
    normalize: str | None = None
    order: Order | None = None
    ids: tuple[Any, ...] | None = None
    mask: Array | None = field(default=None, compare=False)
    missing: str | None = None
    anchors: tuple[tuple[int, int], ...] | None = None
    per: str | None = None
    max_cost: float = np.inf

    @classmethod
    def of(
        cls,
        drop_x: DropCost = None,
        drop_z: DropCost = None,
        *,
        executor: str | None = None,
        charged: bool = False,
        **options: Any,
    ) -> Spec:
        """Validate options (`Options`), as far as this is possible without data.

        charged : whether to use a table with charges even if they are all 0.

        Raises ValueError if an option is invalid, or if two options cannot be combined.
        """
        return cls.asked(Options(drop_x, drop_z, **options), executor=executor, charged=charged)

    @classmethod
    def asked(cls, o: Options, *, executor: str | None = None, charged: bool = False) -> Spec:
        """Validate options; see `of`."""
        entry = look_up(o.method)
        matching = entry.allowed(Matching(o.one_to_many, o.many_to_one, o.contiguous))
        x_rule, z_rule = drops.resolve(o.drop_x, "drop_x"), drops.resolve(o.drop_z, "drop_z")
        threshold_rule = drops.resolve(o.threshold, "threshold")
        _check_takes(entry, x_rule, z_rule, threshold_rule)
        match = entry.match if o.match == "auto" and entry.match is not None else o.match
        costs.resolve(match, 1)
        if o.window is not None:
            window_width(1, o.window)
        requested = charges.resolve(o.open_x, o.open_z, o.warp)
        sides = (x_rule is not None, z_rule is not None)
        table = entry.table(*sides, matching, charged or requested.any)
        charges.check(requested, entry, table, sides)
        minimum = reducers.reducer(o.reducer, 1.0 if o.gamma is None else o.gamma)
        _check_normalize(entry, o.normalize, minimum, any(sides))
        if o.missing is not None and o.missing != "drop":
            raise OptionError(
                "missing", o.missing, "give 'drop' to leave out elements with NaN, or None to reject them"
            )
        if o.per is not None and o.per != "second":
            raise OptionError("per", o.per, "give 'second' to count costs by the duration of each x, or None")
        anchors: Any = o.anchors
        if anchors is not None:
            _check_anchors(list(anchors), entry, table, order=o.order, drops_z=z_rule is not None)
        ids: Any = o.ids
        if ids is not None and not entry.takes_ids:
            raise OptionError("ids", list(ids), "leave it out, or use 'ctc'", f", which {entry.name!r} does not take")
        order: Any = o.order
        if order is not None and not order.is_plain:
            _check_order(order, entry, table, requested, o.window)
            if entry.takes_ids and z_rule is not None:
                why = f", which method {entry.name!r} combines with a list only"
                raise OptionError("drop_z", z_rule.said, "leave {order} out", why)
        return cls(
            method=entry,
            table=table,
            matching=matching,
            drop_x=x_rule,
            drop_z=z_rule,
            threshold=threshold_rule,
            charges=requested,
            window=o.window,
            match=match,
            reducer=minimum,
            executor=executor,
            normalize=o.normalize,
            order=order,
            ids=ids,
            mask=None if o.mask is None else np.asarray(o.mask),
            missing=o.missing,
            anchors=anchors,
            per=o.per,
        )

    def limited(self, max_cost: float | None) -> Spec:
        """The request with a largest cost of interest; None for no limit."""
        return self if max_cost is None else replace(self, max_cost=_largest_wanted(max_cost))

    def timed(self, clocks: Clocks | None, kept: Kept | None = None) -> Spec:
        """The request with durations of steps as numbers of elements.

        Raises if X has no clock that can count them, or none at all although costs are counted by the second.
        """
        if self.per is not None and (clocks is None or clocks.x is None):
            raise OptionError("per", self.per, "give {times} or {fps}", ", but nothing says how long each x lasts")
        if self.order is None or not self.order.durations:
            return self
        whole = kept is None or len(kept.x) == kept.shape[1]
        clock = None if clocks is None else clocks.x
        return replace(self, order=self.order.in_elements(None if clock is None or not whole else clock.uniform))

    def graph(self, K: int) -> Graph | None:
        """The order of K steps as a graph; None for a plain list."""
        if self.order is None:
            return None
        self.order.check_steps(K)
        if self.order.is_plain:
            return None
        if self.method.takes_ids:  # `orders.repeats` adds the uses of the method's own table
            return self.order.graph(METHODS["steps"].table(True, False, self.matching, False))
        found = self.order.graph(self.table)
        return None if found.chain is not None and found.chain.tolist() == list(range(K)) else found

    @property
    def on_graph(self) -> bool:
        """Whether a list is computed as a graph: z may be dropped, and equal z may not follow each other at once."""
        return self.method.takes_ids and self.drop_z is not None

    def norm(self, K: int, N: int) -> int:
        """The divisor for values of this shape; 1 if there is none, or if it depends on the path (`by_path`)."""
        if self.normalize in LENGTHS:
            return LENGTHS[self.normalize](K, N)
        return 1 if self.normalize != "pattern" or self.method.norm is None else self.method.norm(K, N)

    @property
    def by_path(self) -> bool:
        """Whether values are divided by the length of the path."""
        return self.normalize == "path"

    def resolved(self, features: int) -> Match:
        """The match cost for sequences with this number of features."""
        found = costs.resolve(self.match, features)
        return found if self.method.derive is None else found.of(self.method.derive)

    def encoded(
        self, left: Sequence[Any], right: Sequence[Any] | Side | None, called: Callable[[int, int], str]
    ) -> tuple[Spec, Encoded | None]:
        """The request for the codes of symbols, and the codes; None if the sequences hold vectors. See `encode`."""
        entry = self.method
        why = f"method {entry.name!r} computes with elements"
        found = encode(self.match, left, right, called, None if entry.derive is None and entry.gap is None else why)
        return (self, None) if found is None else (replace(self, match=found.match), found)

    def limit(self, K: int, N: int) -> float:
        """`max_cost` as a limit on the sum of costs, before it is normalized."""
        if self.by_path:  # the length of the path is known only at the end
            return np.inf
        most = self.max_cost * self.norm(K, N)
        return most if self.normalize is None else most + 1e-12 * abs(most)  # division rounds

    def capped(self, value: float) -> float:
        """The value, or +∞ if it exceeds `max_cost`."""
        return value if value <= self.max_cost else np.inf

    @property
    def rules(self) -> dict[str, Rule | None]:
        """The rules by the name of their argument."""
        return {"drop_x": self.drop_x, "drop_z": self.drop_z, "threshold": self.threshold}

    @property
    def needs_costs(self) -> bool:
        """Whether drop costs, charges or the threshold may differ between pairs of sequences of the same shape.

        They do if a rule depends on the match costs, or if the method computes drop costs from the sequences (ERP)
        or looks for equal z (CTC).
        """
        if self.method.gap is not None or self.method.takes_ids:
            return True
        return self.charges.needs_costs or any(rule is not None and rule.needs_costs for rule in self.rules.values())

    def refuse_rules(self, why: str) -> None:
        """Raise if a rule depends on the match costs; `why` explains in the message why that is not possible."""
        for name, rule in self.rules.items():
            if rule is not None and rule.needs_costs:
                named = isinstance(self.match, str) and self.match != "auto"
                alike = f", with match={self.match!r}," if named else ""
                hint = "" if name == "threshold" else f" (dropdtw.suggest_drop{alike} finds one)"
                computed = f", which is computed from the match costs, {why}"
                raise OptionError(name, rule.said, "give a number", computed, in_python=hint)
        for name, value in self.charges._asdict().items():
            if isinstance(value, str):
                raise OptionError(name, value, "give a number", f", which is computed from the match costs, {why}")

    def check_costs_suffice(self) -> None:
        """Raise if the method needs the sequences, not only their match costs."""
        if self.method.needs_sequences:
            raise ValueError(
                f"method {self.method.name!r} needs the sequences themselves, not only their match costs; "
                "use align, distance or pairwise"
            )

    def check_fit(self, K: int, N: int) -> None:
        """Raise if no alignment has this shape."""
        if self.method.refuses is not None and (why := self.method.refuses(K, N)) is not None:
            raise ValueError(why)
        if self.order is not None:
            self.order.check_steps(K)
            if not self.order.is_partial:  # the walk decides how many z there are, so K says nothing about what fits
                return
        entry, matching = self.method, self.matching
        if entry.slopes is not None and self.drop_x is None and self.drop_z is None:
            least, most = entry.slopes
            if not least * (K - 1) <= N - 1 <= most * (K - 1):
                raise ValueError(
                    f"no path of method {entry.name!r} leads through {K} × {N} elements (K × N): it needs "
                    f"{least:g} (K − 1) ≤ N − 1 ≤ {most:g} (K − 1); use 'symmetric2', or more similar lengths"
                    + (", or drop costs" if entry.takes_drops else "")
                )
        if self.drop_z is None and entry.must_match_z and K > N and (entry.one_to_one or not matching.many_to_one):
            raise MismatchError(
                f"Z has {K} elements and X has {N}, so the z cannot each have an x of their own; "
                + _remedy(entry, "many_to_one", "drop_z")
            )
        if self.drop_x is None and entry.must_match_x and N > K and (entry.one_to_one or not matching.one_to_many):
            raise MismatchError(
                f"X has {N} elements and Z has {K}, so the x cannot each have a z of their own; "
                + _remedy(entry, "one_to_many", "drop_x")
            )

    def fits(self, K: int, N: int) -> bool:
        """Whether sequences of these lengths can be aligned, judging by the lengths alone."""
        try:
            self.check_fit(K, N)
        except ValueError:
            return False
        return True

    def is_symmetric(self, features: int, *, alike: bool = False) -> bool:
        """Whether exchanging Z and X is certain to keep the value, for sequences with this number of features.

        alike : whether all sequences have the same length, so that exchanging them does not change a window.
        """
        return (
            self.method.symmetric
            and self.resolved(features).symmetric
            and all(rule is None or rule.symmetric for rule in self.rules.values())
            and self.drop_x == self.drop_z
            and self.charges.open_x == self.charges.open_z
            and not self.charges.needs_costs
            and self.matching.one_to_many == self.matching.many_to_one
            and not self.matching.contiguous
            and (alike or self.window is None)
            and self.normalize not in ("x", "z")
            and not self.by_path  # tied paths can differ in length
            # With smoothMin, only plain DTW is symmetric: it takes one minimum per cell, other tables nest several.
            and (self.reducer.name != "smooth" or (self.drop_x is None and len(self.table.states) == 1))
        )

    def settings(self) -> dict[str, Any]:
        """The request as names and numbers, for the manifest of a run. Raises ValueError if that is impossible."""
        for name, known in (("match", isinstance(self.match, str)), ("method", self.method.name in METHODS)):
            if not known:
                raise OptionError(
                    name, getattr(self, name), "give a name", ", which the manifest of a run cannot record"
                )
        rules = {name: drops.spelled(rule) for name, rule in self.rules.items()}
        for name, rule in self.rules.items():
            if rule is not None and rules[name] is None:
                each = isinstance(rule, PerElement)
                why = "records differ in length" if each else "the manifest of a run cannot record this rule"
                raise OptionError(name, rule.said, f"give a number, or a rule such as 'percentile:30', because {why}")
        matching = {name: bool(value) for name, value in self.matching._asdict().items()}
        window = self.window if self.window is None else window_width(1, self.window)
        charges = self.charges._asdict().items()
        charged = {name: value if isinstance(value, str) else float(value) for name, value in charges if value != 0}
        return {"match": self.match, "method": self.method.name, **matching, "window": window, **rules, **charged}


LENGTHS: Final[dict[str | None, Callable[[int, int], int]]] = {
    "x": lambda K, N: N,
    "z": lambda K, N: K,
    "both": lambda K, N: K + N,
}
"""Lengths that `normalize` divides by."""


def _remedy(entry: Method, option: str, drop: str) -> str:
    """What to do if a sequence has more elements than the other one, and each needs a partner of its own."""
    fixed = entry.moves is not None and not getattr(entry.allowed(Matching()), option)
    if entry.one_to_one or fixed:
        return f"give {{{drop}}}, or use another method"
    return f"pass {{{option}=True}}" + (f", or give {{{drop}}}" if entry.takes_drops else "")


def _largest_wanted(max_cost: float) -> float:
    if not isinstance(max_cost, Real) or isinstance(max_cost, bool) or np.isnan(max_cost):
        raise OptionError(
            "max_cost", max_cost, "give the largest cost of interest, a number", in_python=", or None for no limit"
        )
    return float(max_cost)


def _check_normalize(entry: Method, normalize: str | None, reducer: Reducer, drops: bool) -> None:
    if normalize is None:
        return
    if normalize not in ("pattern", "path", *LENGTHS):
        known = "give 'x', 'z' or 'both' (to divide by lengths), 'pattern', 'path'"
        raise OptionError("normalize", normalize, known, in_python=", or None to divide by nothing")
    if normalize == "path" and reducer.name != "hard":
        why = f", but reducer is {reducer.name!r}, which combines paths of different lengths"
        raise OptionError("normalize", normalize, "use {reducer='hard'}", why)
    if normalize == "path" and entry.counts:
        remedy = "divide the result yourself, for example by the shorter length"
        raise OptionError("normalize", normalize, remedy, f", but method {entry.name!r} counts the pairs of its path")
    if normalize == "pattern" and entry.norm is None:
        known = ", ".join(repr(method.name) for method in METHODS.values() if method.norm is not None)
        why = f", but the paths of method {entry.name!r} differ in total weight"
        raise OptionError("normalize", normalize, f"use one of {known}", why)
    if normalize == "pattern" and drops:
        why = ", but with drops, the paths of a step pattern differ in total weight"
        raise OptionError("normalize", normalize, "leave {drop_x} and {drop_z} out, or use 'both'", why)


def _check_order(
    order: Order, entry: Method, table: Recurrence, requested: RequestedCharges, window: float | None
) -> None:
    """Raise if an option cannot be combined with an order that is not a list."""
    if window is not None:
        why = ", a band along the diagonal, which an order of steps does not follow"
        raise OptionError("window", window, "leave it out", why)
    if not (entry.takes_orders or (not entry.built_in and not order.holds_partial)):
        known = ", ".join(repr(method.name) for method in METHODS.values() if method.takes_orders)
        why = "takes no order of steps" if entry.built_in else "does not support partial orders"
        raise ValueError(f"method {entry.name!r} {why}; use one of {known}")
    if entry.takes_ids and order.returns:
        raise ValueError(
            f"method {entry.name!r} supports no repeats and jumps; use 'steps', or write the repetitions out"
        )
    if table.border is not None:
        raise ValueError(
            f"recurrence {table.name!r} has a border, which cannot be combined with an order of steps; "
            "define it without a border, or leave out the order"
        )
    if requested.open_z != 0 and order.holds_partial:
        why = ", but in a partial order there are no runs of dropped z"
        raise OptionError("open_z", requested.open_z, "leave it out, or give the steps as a list", why)


def _check_anchors(anchors: Any, entry: Method, table: Recurrence, *, order: Any, drops_z: bool) -> None:
    """Raise unless a match cuts a path of the table into two that do not depend on each other."""
    if order is not None and not order.is_plain:
        raise OptionError("anchors", anchors, "leave {order} out", ", but the steps have an order that is no list")
    if entry.takes_ids and drops_z:
        raise OptionError("anchors", anchors, "leave {drop_z} out", f", which {entry.name!r} takes without {{drop_z}}")
    own_steps = not entry.built_in or table.weights != {1.0} or table.border is not None or table.skips_for_free
    if own_steps:
        known = "use 'drop_dtw', 'steps', 'ctc', 'dtw', 'subsequence' or 'needleman_wunsch'"
        raise OptionError("anchors", anchors, known, f", which {entry.name!r} does not take")


def _check_takes(entry: Method, drop_x: Rule | None, drop_z: Rule | None, threshold: Rule | None) -> None:
    """Raise if the method gets drop costs or a threshold that it does not take, or lacks the threshold it needs."""
    if (drop_x or drop_z) is not None and not entry.takes_drops:
        raise MismatchError(
            "method {name!r} takes no drop costs; leave out {drop_x} and {drop_z}, or use 'drop_dtw'", name=entry.name
        )
    if entry.takes_threshold is not (threshold is not None):
        raise MismatchError(
            "method {name!r} takes no threshold; leave it out, or use 'lcss' or 'edr'"
            if threshold is not None
            else "method {name!r} needs {threshold=}; give the largest match cost at which a pair counts as equal "
            "(0 for symbols; otherwise a number or 'percentile:30')",
            name=entry.name,
        )


def warn_of_drop(name: str, drop: Any) -> None:
    """Warn of drop costs that are legal, but rarely meant."""
    if isinstance(drop, (int, float)) and -np.inf < drop < 0:
        warn(f"{name} is {drop!r}, so that dropping pays; give a number ≥ 0, unless match costs can be negative, too")
    kind, _, p = drop.partition(":") if isinstance(drop, str) else ("", "", "")
    if kind in ("percentile", "logit") and 0 < float(p) < 1:
        more = f"for {float(p):.0%} give '{kind}:{100 * float(p):g}'"
        warn(f"{name} is {drop!r}, less than one percent of the match costs; {more}")
