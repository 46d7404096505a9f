"""Lower bounds on the cost of an alignment, for retrieval that need not align everything.

Every bound comes from one argument. An alignment M pays C[i, j] for each pair and a drop cost for each x and z
without one. Take any 0 ≤ λ ≤ 1, and let every pair pay λ C[i, j] out of its column and (1 − λ) C[i, j] out of its row:

    cost(M) = Σ_j (what column j pays) + Σ_i (what row i pays).

Column j is empty and pays d_x[j], or it is not and pays λ Σ_i M_ij C_ij ≥ λ m_j, where m_j is the least that a column
with a match can hold: min_i C[i, j]; and where that is negative and several z may match x_j, Σ_i min(C[i, j], 0).
Rows are alike, with m′_i. So, whatever M is,

    cost ≥ Σ_j min(d_x[j], λ m_j) + Σ_i min(d_z[i], (1 − λ) m′_i).                                              (1)

λ = 1 reads columns alone, λ = 0 rows alone; ½ sees both, and is exact where everything is dropped.

(1) falls or stays as any C[i, j] falls, so lower bounds on C will do in its place. Elements near a common centre c
share one: where dist obeys the triangle inequality and C = f(dist) with f never falling, r ≥ dist(x, c) gives

    C(z, x) ≥ f(max(0, dist(z, c) − r)),                                                                        (2)

for "euclidean" with f(u) = u, "sqeuclidean" u², and "cosine" 1 − cos u of the angle u between z and x.
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
    """What (1) needs to know of a request: the least that an element without a match pays, and who may match often.

    drop_x, drop_z : a number or one number per element.
    one_to_many, many_to_one : whether a z, an x, may have several matches.
    both_x, both_z : whether an x, a z, may be passed over and still be matched.
    pair : what a pair pays, of its match cost; None: that cost.
    """

    drop_x: npt.ArrayLike
    drop_z: npt.ArrayLike
    one_to_many: bool = True
    many_to_one: bool = True
    both_x: bool = False
    both_z: bool = False
    pair: Callable[[Array], Array] | None = None


def prices(spec: Spec) -> Prices:
    """The prices under which (1) holds for a request, read off the edges of its table.

    An edge into a column or a row that pays for no match pays a drop cost or nothing; no such edge is d = ∞. A method
    may make drops free and pairs worth something else, and a table may weigh them. Charges are never below 0, and
    only raise the cost. What it does beside that (`Method.narrow`), like `contiguous`
    and `window`, only forbids alignments, and a minimum over fewer is no smaller.
    """
    spec.refuse_rules("so it differs from sequence to sequence and no bound is known before aligning")
    table, method = spec.table, spec.method
    mirrored = table.transpose()
    no_costs = Matrix(np.empty((0, 0)))
    lost = np.inf if method.lost is None else method.lost
    d_x = lost if spec.drop_x is None else spec.drop_x.price(no_costs, "x")
    d_z = lost if spec.drop_z is None else spec.drop_z.price(no_costs, "z")
    worth = method.pair if method.weigh is None else _weighed
    threshold = np.inf if spec.threshold is None else spec.threshold.price(no_costs, "x")
    return Prices(
        _least(table, 0.0 if method.free_x else d_x),
        _least(mirrored, 0.0 if method.free_z else d_z),
        one_to_many=table.matches_by("left"),
        many_to_one=table.matches_by("top"),
        both_x=table.matches_skipped_x(),
        both_z=mirrored.matches_skipped_x(),
        pair=_pays(table, worth, threshold),
    )


def _weighed(xp: Any, match: Any, threshold: Any) -> Any:
    """The least that a pair pays whose weight may be anything from 0 to 1."""
    return xp.minimum(match, 0)


def _pays(
    table: Recurrence, worth: Callable[[Any, Any, Any], Any] | None, threshold: Any
) -> Callable[[Array], Array] | None:
    """The least that a pair pays, of its match cost: what that is worth, weighed as the table does; None: the cost."""
    if worth is None and table.weights <= {1.0}:
        return None
    light, heavy = min(table.weights), max(table.weights)

    def pays(m: Array) -> Array:
        m = m if worth is None else np.asarray(worth(np, m, threshold))
        return np.asarray(np.where(m < 0, heavy * m, light * m))

    return pays


def _least(table: Recurrence, drop_x: npt.ArrayLike) -> npt.ArrayLike:
    """The least that an x without a match pays in a table, where dropping it costs `drop_x`."""
    paid = table.skips_x_for()
    if not paid:
        return np.inf
    return drop_x if paid == {"drop_x"} else np.minimum(drop_x if "drop_x" in paid else np.inf, 0.0)


def least_in_columns(C: Array, several: bool) -> Array:
    """m_j for every column of C: the least that one with a match can hold, where it may hold `several` or only one.

    >>> least_in_columns(np.array([[1.0, -1.0], [2.0, -2.0]]), several=True)
    array([ 1., -3.])
    """
    least = C.min(axis=0)
    return np.asarray(np.where(least < 0, np.minimum(C, 0).sum(axis=0), least) if several else least)


def of_matrix(C: Array, p: Prices) -> float:
    """The bound (1) from the match costs (K, N) themselves, or from lower bounds on them; costs of any sign, +∞ too.

    >>> C = np.array([[0.1, 0.9], [0.9, 0.9]])
    >>> round(of_matrix(C, prices(Spec.of(0.3, 0.3))), 6)   # λ = ½; the cost is 0.1 + 0.3 + 0.3 as well
    0.7
    """
    if p.pair is not None:
        C = p.pair(C)
    m, m_z = least_in_columns(C, p.many_to_one), least_in_columns(C.T, p.one_to_many)[None]
    return float(_largest(m, m_z, np.ones(len(m)), np.zeros(1, np.int64), p)[0])


def split(columns: Array, rows: Array, count: Array, starts: Array, p: Prices) -> Array:
    """The bound (1), the largest over λ, for many problems with the same Z at a time: (n,).

    columns : the least match cost of the columns of all problems, ≥ 0, one after the other, each standing for `count`
        columns alike.
    rows : (n, K), that of the rows of each problem.
    starts : where each problem's columns begin.
    """
    columns, rows, count = columns.ravel(), rows, count.ravel()
    if p.pair is not None:
        lengths = np.add.reduceat(count, starts)[:, None]
        columns = _several(p.pair(columns), rows.shape[1] if p.many_to_one else 1)
        rows = _several(p.pair(rows), lengths if p.one_to_many else 1)
    return _largest(columns, rows, count, starts, p)


def _several(m: Array, times: Array | int) -> Array:
    """The least that a column holds whose pairs pay m at least, so many times at most."""
    return np.asarray(np.where(m < 0, m * times, m))


def _largest(columns: Array, rows: Array, count: Array, starts: Array, p: Prices) -> Array:
    """The same from m_j and m′_i, of any sign."""
    columns, rows = columns.astype(np.float64), rows.astype(np.float64)
    d_x, d_z = np.asarray(p.drop_x, np.float64), np.asarray(p.drop_z, np.float64)
    if d_x.ndim:  # one price per x_j: all problems have that many
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
    """The least that columns pay: what a lost one pays, or a share of what they hold; `both`: one may pay both."""
    held = _share(share, m)
    return np.asarray(np.minimum(lost + np.minimum(held, 0) if both else lost, held))


def _share(share: float, m: Array) -> Array:
    """λ m, where a column or row that can hold no match at all keeps its ∞ even for λ = 0: it must be dropped."""
    return share * m if share else np.where(np.isposinf(m), np.inf, 0.0)
