"""Lower bounds on the cost of an alignment, for retrieval that does not align every candidate.

All bounds follow from one argument. An alignment M pays C[i, j] for each pair and a drop cost for each unmatched x and
z. Take any 0 ≤ λ ≤ 1, and split the cost of every pair: λ C[i, j] to its column and (1 − λ) C[i, j] to its row. Then

    cost(M) = Σ_j (cost of column j) + Σ_i (cost of row i).

If column j is empty, it costs d_x[j]. If not, it costs λ Σ_i M_ij C_ij ≥ λ m_j, where m_j is the smallest sum that the
matches of a column can have: min_i C[i, j], or, if that is negative and several z may match x_j, Σ_i min(C[i, j], 0).
The same holds for rows, with m′_i. So, for every M,

    cost ≥ Σ_j min(d_x[j], λ m_j) + Σ_i min(d_z[i], (1 − λ) m′_i).                                              (1)

λ = 1 uses only columns and λ = 0 only rows. λ = ½ uses both, and is exact if everything is dropped.

(1) is monotone in C, so lower bounds on C may replace C. Elements near a common center c share such a bound. If dist
satisfies the triangle inequality and C = f(dist) with f non-decreasing, then r ≥ dist(x, c) implies

    C(z, x) ≥ f(max(0, dist(z, c) − r)),                                                                        (2)

with f(u) = u for "euclidean", u² for "sqeuclidean", and 1 − cos u, where u is the angle between z and x, for "cosine".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw.executors.emit import SHARES
from dropdtw.problem.inputs import Array
from dropdtw.problem.match import Matrix
from dropdtw.problem.spec import Spec
from dropdtw.tables.table import Recurrence


@dataclass(frozen=True, eq=False)
class Prices:
    """The inputs of (1) for a request.

    drop_x, drop_z : a lower bound on the cost of an unmatched x, and z: a number, or one number per element.
    one_to_many, many_to_one : whether one z, and one x, may have several matches.
    both_x, both_z : whether the same x, and the same z, may pay for a drop and still be matched.
    pair : a lower bound on the cost of a pair as a function of its match cost; None: the match cost itself.
    """

    drop_x: npt.ArrayLike
    drop_z: npt.ArrayLike
    one_to_many: bool = True
    many_to_one: bool = True
    both_x: bool = False
    both_z: bool = False
    pair: Callable[[Array], Array] | None = None


def prices(spec: Spec) -> Prices:
    """The prices for which (1) holds, derived from the edges of the request's table.

    An edge that enters a column or a row without a match pays a drop cost or nothing; without such an edge, d = ∞. A
    method may make drops free and change the cost of pairs, and a table may weight them. Charges are never negative, so
    they only increase the cost. Everything else (`Method.narrow`, `contiguous`, `window`) only forbids alignments, and
    a minimum over fewer alignments is not smaller.
    """
    spec.refuse_rules("so it differs between sequences and gives no bound before aligning")
    table, method = spec.table, spec.method
    mirrored = table.transpose()
    no_costs = Matrix(np.empty((0, 0)))
    lost = np.inf if method.drop_cost is None else method.drop_cost
    d_x = lost if spec.drop_x is None else spec.drop_x.price(no_costs, "x")
    d_z = lost if spec.drop_z is None else spec.drop_z.price(no_costs, "z")
    worth = method.pair if method.weigh is None else _weighed
    threshold = np.inf if spec.threshold is None else spec.threshold.price(no_costs, "x")
    return Prices(
        _least(table, 0.0 if method.free_x else d_x),
        _least(mirrored, 0.0 if method.free_z else d_z),
        one_to_many=table.matches_by("left"),
        many_to_one=table.matches_by("top"),
        both_x=table.can_match_x_after_drop(),
        both_z=mirrored.can_match_x_after_drop(),
        pair=_pays(table, worth, threshold),
    )


def _weighed(xp: Any, match: Any, threshold: Any) -> Any:
    """A lower bound on the cost of a pair whose weight may be anything from 0 to 1."""
    return xp.minimum(match, 0)


def _pays(
    table: Recurrence, worth: Callable[[Any, Any, Any], Any] | None, threshold: Any
) -> Callable[[Array], Array] | None:
    """A lower bound on the cost of a pair as a function of its match cost; None: the match cost itself.

    worth : the method's transformation of match costs.   The weights are those of the table.
    """
    if worth is None and table.weights <= {1.0}:
        return None
    light, heavy = min(table.weights), max(table.weights)

    def pays(m: Array) -> Array:
        m = m if worth is None else np.asarray(worth(np, m, threshold))
        return np.asarray(np.where(m < 0, heavy * m, light * m))

    return pays


def _least(table: Recurrence, drop_x: npt.ArrayLike) -> npt.ArrayLike:
    """A lower bound on the cost of an unmatched x in a table, if dropping it costs `drop_x`."""
    paid = table.unmatched_x_pays()
    if not paid:
        return np.inf
    return drop_x if paid == {"drop_x"} else np.minimum(drop_x if "drop_x" in paid else np.inf, 0.0)


def least_in_columns(C: Array, several: bool) -> Array:
    """m_j for every column of C: the smallest sum of its matches, if it has one match, or up to `several`.

    >>> least_in_columns(np.array([[1.0, -1.0], [2.0, -2.0]]), several=True)
    array([ 1., -3.])
    """
    least = C.min(axis=0)
    return np.asarray(np.where(least < 0, np.minimum(C, 0).sum(axis=0), least) if several else least)


def of_matrix(C: Array, p: Prices) -> float:
    """The bound (1) from match costs (K, N), or from lower bounds on them. They may have any sign, and may be +∞.

    >>> C = np.array([[0.1, 0.9], [0.9, 0.9]])
    >>> round(of_matrix(C, prices(Spec.of(0.3, 0.3))), 6)   # λ = ½; equal to the cost, 0.1 + 0.3 + 0.3
    0.7
    """
    if p.pair is not None:
        C = p.pair(C)
    m, m_z = least_in_columns(C, p.many_to_one), least_in_columns(C.T, p.one_to_many)[None]
    return float(_largest(m, m_z, np.ones(len(m)), np.zeros(1, np.int64), p)[0])


def split(columns: Array, rows: Array, count: Array, starts: Array, p: Prices) -> Array:
    """The bound (1), maximized over λ, for n problems with the same Z at once: (n,).

    columns : the smallest match cost of each column, ≥ 0, for all problems one after the other. Each entry stands for
        `count` equal columns.
    rows : (n, K), the smallest match cost of each row of each problem.
    starts : where the columns of each problem begin.
    """
    columns, rows, count = columns.ravel(), rows, count.ravel()
    if p.pair is not None:
        lengths = np.add.reduceat(count, starts)[:, None]
        columns = _several(p.pair(columns), rows.shape[1] if p.many_to_one else 1)
        rows = _several(p.pair(rows), lengths if p.one_to_many else 1)
    return _largest(columns, rows, count, starts, p)


def _several(m: Array, times: Array | int) -> Array:
    """A lower bound on the sum of at most `times` pairs (and at least one) that cost at least m each."""
    return np.asarray(np.where(m < 0, m * times, m))


def _largest(columns: Array, rows: Array, count: Array, starts: Array, p: Prices) -> Array:
    """The bound (1), maximized over λ, from m_j and m′_i of any sign."""
    columns, rows = columns.astype(np.float64), rows.astype(np.float64)
    d_x, d_z = np.asarray(p.drop_x, np.float64), np.asarray(p.drop_z, np.float64)
    if d_x.ndim:  # one price per x_j, so all problems have the same length
        columns = np.repeat(columns, count.astype(np.int64))
        ends = np.cumsum(count)[np.r_[starts[1:], len(count)] - 1]
        starts, count, d_x = np.r_[0, ends[:-1]].astype(np.int64), np.ones(len(columns)), np.tile(d_x, len(rows))
    found = np.full(len(rows), -np.inf)
    for share in SHARES:
        by_column = _least_paid(d_x, share, columns, p.both_x) * count
        by_row = _least_paid(d_z, 1 - share, rows, p.both_z)
        np.maximum(found, np.add.reduceat(by_column, starts) + by_row.sum(axis=1), out=found)
    return found


def _least_paid(lost: Array, share: float, m: Array, both: bool) -> Array:
    """A lower bound on the cost of columns: the drop cost, or a share of m. With `both`, a column may pay both."""
    held = _share(share, m)
    return np.asarray(np.minimum(lost + np.minimum(held, 0) if both else lost, held))


def _share(share: float, m: Array) -> Array:
    """λ m. A column or row that cannot be matched keeps m = ∞ even for λ = 0, because it must be dropped."""
    return share * m if share else np.where(np.isposinf(m), np.inf, 0.0)
