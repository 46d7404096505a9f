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

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dropdtw.drops import DropCost
from dropdtw.problem.fixed import fixed
from dropdtw.problem.inputs import Array
from dropdtw.problem.prepare import check_takes
from dropdtw.tables.methods import Options, look_up
from dropdtw.tables.recurrence import Recurrence

SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The λ that are tried; the largest bound counts."""


@dataclass(frozen=True, eq=False)
class Prices:
    """What (1) needs to know of a request: the least that an element without a match pays, and who may match often.

    drop_x, drop_z : a number or one number per element.
    one_to_many, many_to_one : whether a z, an x, may have several matches.
    threshold : LCSS pays −1 for a pair under it and forbids the others; None for match costs as they are.
    """

    drop_x: npt.ArrayLike
    drop_z: npt.ArrayLike
    one_to_many: bool = True
    many_to_one: bool = True
    threshold: float | None = None


def prices(
    drop_x: DropCost = None,
    drop_z: DropCost = None,
    method: str | Recurrence = "drop_dtw",
    options: Options | None = None,
) -> Prices | None:
    """The prices under which (1) holds for a method, or None where no bound is known: for a table of the caller's.

    Drop-DTW in both forms and Needleman–Wunsch pay what (1) says; no drop cost is d = ∞. DTW is the case d_x = d_z = ∞.
    `contiguous` and `window` only forbid alignments, and greedy drops are some of Drop-DTW's alignments at the same
    price: a minimum over fewer is no smaller. OTAM and subsequence DTW drop x for nothing, d_x = 0, and Smith–Waterman
    may pay or not, min(0, d). LCSS drops for nothing, and its pairs cost −1 or ∞.
    """
    options = options or Options()
    name, entry = look_up(method, options)
    why = "so it differs from sequence to sequence and no bound is known before aligning"
    d_x, d_z = fixed(drop_x, "drop_x", why), fixed(drop_z, "drop_z", why)
    threshold = fixed(options.threshold, "threshold", why)
    check_takes(name, entry, d_x is not None or d_z is not None, threshold is not None)
    if isinstance(method, Recurrence):
        return None
    lost_x: npt.ArrayLike = np.inf if d_x is None else d_x
    lost_z: npt.ArrayLike = np.inf if d_z is None else d_z
    if name in ("otam", "subsequence", "lcss"):
        lost_x = 0.0
    if name == "lcss":
        lost_z = 0.0
    if name == "smith_waterman":
        lost_x, lost_z = np.minimum(lost_x, 0), np.minimum(lost_z, 0)
    several = not entry.one_to_one
    return Prices(
        lost_x,
        lost_z,
        one_to_many=options.one_to_many and several,
        many_to_one=options.many_to_one and several,
        threshold=None if threshold is None else float(threshold),  # type: ignore[arg-type]
    )


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
    >>> round(of_matrix(C, prices(0.3, 0.3)), 6)        # λ = ½; the cost is 0.1 + 0.3 + 0.3 as well
    0.7
    """
    m, m_z = least_in_columns(C, p.many_to_one)[None], least_in_columns(C.T, p.one_to_many)[None]
    return float(split(m, m_z, np.ones(m.shape), np.zeros(1, np.int64), p)[0])


def split(columns: Array, rows: Array, count: Array, starts: Array, p: Prices) -> Array:
    """The bound (1), the largest over λ, for many problems with the same Z at a time: (n,).

    columns : m_j of the columns of all problems, one after the other, each standing for `count` columns alike.
    rows : (n, K), m′_i of each problem.
    starts : where each problem's columns begin.
    """
    columns, count = columns.ravel().astype(np.float64), count.ravel()
    rows = rows.astype(np.float64)
    if p.threshold is not None:
        columns, rows = (np.where(m < p.threshold, -1.0, np.inf) for m in (columns, rows))
    d_x, d_z = np.asarray(p.drop_x, np.float64), np.asarray(p.drop_z, np.float64)
    if d_x.ndim:  # one price per x_j: all problems have that many
        columns = np.repeat(columns, count.astype(np.int64))
        ends = np.cumsum(count)[np.r_[starts[1:], len(count)] - 1]
        starts, count, d_x = np.r_[0, ends[:-1]].astype(np.int64), np.ones(len(columns)), np.tile(d_x, len(rows))
    found = np.full(len(rows), -np.inf)
    for share in SHARES:
        by_column = np.minimum(d_x, _share(share, columns)) * count
        by_row = np.minimum(d_z, _share(1 - share, rows))
        np.maximum(found, np.add.reduceat(by_column, starts) + by_row.sum(axis=1), out=found)
    return found


def _share(share: float, m: Array) -> Array:
    """λ m, where a column or row that can hold no match at all keeps its ∞ even for λ = 0: it must be dropped."""
    return share * m if share else np.where(np.isposinf(m), np.inf, 0.0)
