"""The compiled CPU executor: passes arrays to the kernels in `_cpp` and converts their results.

Kernels exist in two tiers. Hard minima of the tables that people use most have unrolled ones (`emit.py`). Everything
else runs on a kernel that reads its table at run time. On a processor older than the one that `_cpp` was compiled for,
all tables run there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

import dropdtw._cpp as _cpp
from dropdtw.costs import row_lengths, unit_rows
from dropdtw.drops import Lowered
from dropdtw.executors import cpu_graphs
from dropdtw.executors.cpu_graphs import PLUS, REDUCER, plain, plans, reads, run_graph, strided, trace_graph
from dropdtw.executors.emit import UNROLLED, key, locate
from dropdtw.executors.protocol import Occurrences, Result, Terms, Trace, Values, Within
from dropdtw.executors.reference import Column
from dropdtw.orders.graph import Graph
from dropdtw.problem.band import window_width
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import Reducer, hard_min
from dropdtw.tables.table import COSTS, MOVES, Edge, Recurrence

_VALUE, _TRACE, _GRADIENT = range(3)
_COST = {cost: number for number, cost in enumerate(COSTS)}
_MOVE = {move: number for number, move in enumerate(MOVES)}

_METRIC: dict[str | None, int] = {"sqeuclidean": 1, "euclidean": 2, "cosine": 3}
_EQUAL, _LOOKUP = 4, 5

_EXCHANGED = [1, 0, 2]
"""The order of charges with Z and X swapped."""

WIDEST = 8
"""Maximum number of features for which kernels compute match costs; beyond it, a matrix product is faster."""

FEW = 1 << 18
"""Number of match costs that are computed at once, whether or not all of them are needed."""

STRIPS_FROM = 1 << 26
"""Size of the match costs, in bytes, from which they are computed strip by strip. For values alone, which need each
strip only once, the limit is an eighth of it."""

STRIP = 1 << 22
"""Match costs per strip; a quarter of this for values alone. A strip has at least 64 columns, and at least 256 if there
are fewer than 65,536 rows."""

MOST_STORED = 1 << 26
"""Maximum size, in bytes, of a match cost matrix that `pairwise` stores for one pair."""

MOST_EDGES = 256
"""Maximum number of edges into a state."""

BUDGET = 1 << 30
"""Maximum size, in bytes, of the stored choices (the best edge into each state of each cell). Beyond it, blocks are
computed twice: half the speed, little memory."""

__all__ = [
    "in_lanes",
    "occurrences",
    "outdated",
    "pairwise",
    "run",
    "run_batch",
    "run_graph",
    "supports",
    "trace",
    "trace_graph",
    "within",
]


def supports(table: Recurrence, *, graph: bool = False) -> bool:
    """See `Executor.supports`."""
    return reads(table) if graph else compiled(table) is not None


def in_lanes(table: Recurrence) -> bool:
    """See `Executor.in_lanes`."""
    found = locate(table)
    return _cpp.unrolled and found is not None and found.family < UNROLLED


class Compiled(NamedTuple):
    """A table as kernels take it, and whether it has Z and X exchanged."""

    table: _cpp.Table
    transposed: bool


@lru_cache(maxsize=1024)
def compiled(table: Recurrence) -> Compiled | None:
    """Convert a table for the kernels; None if they cannot run it.

    They set the states that it can begin with to 0. With several ways into such a state, its soft value is below 0.
    """
    if set(table.at_origin.values()) != {1}:
        return None
    check_built()
    found = locate(table)
    transposed = found is not None and found.transposed
    if transposed:
        table = table.transpose()
    number = {state: s for s, state in enumerate(table.states)}

    def rows(edges: tuple[Edge, ...]) -> tuple[Array, Array]:
        listed = sorted(edges, key=lambda e: number[e.dst])
        parts = [(number[e.src], number[e.dst], _MOVE[e.move], _COST[e.cost], PLUS[e.plus]) for e in listed]
        return np.array(parts, np.int32).reshape(-1, 5), np.array([e.weight for e in listed], np.float64)

    edges, weights = rows(table.edges)
    border_edges, border_weights = (None, None) if table.border is None else rows(table.border)
    if max(Counter(e.dst for e in table.every_edge).values()) > MOST_EDGES:
        return None
    kernel = _cpp.Table(
        family=found.family if found is not None and found.family < UNROLLED else -1,
        mask=0 if found is None else found.mask,
        built_in=found is not None,
        edges=edges,
        weights=weights,
        border=border_edges,
        border_weights=border_weights,
        start=np.array([state in table.at_origin for state in table.states]),
        final=np.array([number[s] for s in table.final], np.int32),
    )
    return Compiled(kernel, transposed)


@cache
def check_built() -> None:
    """Raise RuntimeError if the kernels were compiled from other tables: they would compute something else."""
    if getattr(_cpp, "tables", None) != key(recurrence):
        raise RuntimeError(
            "the compiled kernels are older or newer than this code, and their tables differ; reinstall dropdtw "
            "(in a checkout: make setup)"
        )


def _compiled(table: Recurrence) -> Compiled:
    found = compiled(table)
    assert found is not None, f"no kernel for {table.name!r}"
    return found


def outdated() -> str | None:
    """Say that the fast kernels were compiled for another processor; None if they run here."""
    if _cpp.unrolled or os.environ.get("DROPDTW_ISA"):
        return None
    return (
        f"dropdtw was compiled for processors of level {_cpp.levels}, which this one is not, so slower kernels are "
        "used. Reinstall it on this machine, or build it with DROPDTW_LEVELS=all"
    )


def run(
    table: Recurrence, reducer: Reducer, costs: Costs, *, gradient: bool = False, cells: Array | None = None
) -> Result:
    """See `reference.run`. cells : (n, 2), where pieces begin and end, if `in_pieces`; they are paid twice."""
    if not gradient:
        return Result(_solve(table, costs, reducer=reducer, want=_VALUE, cells=cells)[0])
    if reducer.name == "hard":
        return _as_derivatives(trace(table, costs, cells), costs)
    transposed = _compiled(table).transposed
    K, N = costs.shape
    dtype = costs.dtype
    match = np.zeros((N, K) if transposed else (K, N), dtype)
    first, second = np.zeros(match.shape[1], dtype), np.zeros(match.shape[0], dtype)
    out = {"grad_match": match, "grad_x": first, "grad_z": second}
    value, _, _, charges = _solve(table, costs, reducer=reducer, want=_GRADIENT, out=out, cells=cells)
    if transposed:
        return Result(value, match.T, second, first, charges.exchanged())
    return Result(value, match, first, second, charges)


def within(table: Recurrence, costs: Costs, limit: float) -> Within:
    """Compute the hard value. Return +∞ early, and skip cells, once the value is certain to exceed `limit`."""
    value, _, spared, _ = _solve(table, costs, want=_VALUE, limit=limit)
    return Within(value, spared)


def occurrences(table: Recurrence, costs: Costs, report: Callable[[int, int], None]) -> Occurrences:
    """See `Executor.occurrences`. It works strip by strip, so it needs little memory besides the result."""
    K, N = costs.shape
    match, charges = costs.match, costs.charges
    drop_x, drop_z = plain(costs.drop_x, costs.dtype), plain(costs.drop_z, costs.dtype)
    values = np.ascontiguousarray(Column(table, hard_min, drop_z, charges).values)
    begins = np.zeros(values.shape, np.int64)
    found = Occurrences(np.empty(N, costs.dtype), np.empty(N, np.int64))
    in_kernel = match.sequences is not None and match.metric in _METRIC and match.sequences[0].shape[1] <= WIDEST
    width = max(256, STRIP // 4 // K)
    for a in range(0, N, width):
        b = min(N, a + width)
        how: dict[str, Any] = {"match": None, "z": None, "x": None, "metric": 0}
        if in_kernel and match.sequences is not None:
            Z, X = match.sequences
            how |= {"z": plain(Z, Z.dtype), "x": plain(X[a:b], X.dtype), "metric": _METRIC[match.metric]}
        else:
            how["match"] = strided(match.columns(a, b))
        _cpp.scan(
            _compiled(table).table,
            **how,
            drop_x=drop_x[a:b],
            drop_z=drop_z,
            charges=charges,
            offset=a,
            values=values,
            begins=begins,
            cost=found.cost[a:b],
            begin=found.begin[a:b],
        )
        report(b, N)
    return found


def in_pieces(costs: Costs) -> bool:
    """Whether `run` and `trace` solve pieces of a problem in one call: if kernels have, or compute, its match costs.

    Otherwise it is better to compute the match costs of the pieces only.
    """
    match = costs.match
    if match.sequences is None or len(costs.drop_x) * len(costs.drop_z) <= FEW:
        return True
    return match.compares_codes or (match.metric is not None and match.sequences[0].shape[1] <= WIDEST)


def trace(table: Recurrence, costs: Costs, cells: Array | None = None) -> Trace:
    """See `reference.trace`. cells : as in `run`."""
    K, N = costs.shape
    path: dict[str, Array] = {name: np.empty(K + N, np.int32) for name in ("path_i", "path_j")}
    path["path_cost"] = np.empty(K + N, np.uint8)
    weighted = not table.weights <= {1.0}
    if weighted:
        path["path_weight"] = np.empty(K + N)
    value, length, *_ = _solve(table, costs, want=_TRACE, out=path, cells=cells)
    i, j, paid, *weight = (part[:length][::-1] for part in path.values())  # kernels trace back from the end
    cost, charges = paid & 3, NO_CHARGES
    if any(costs.charges) or any(map(table.pays_charge, Charges._fields)):
        charges = Charges(*np.bincount(paid >> 2, minlength=1 + len(charges))[1:].astype(float))
    drop_x, drop_z = _COST["drop_x"], _COST["drop_z"]
    if _compiled(table).transposed:
        i, j, drop_x, drop_z, charges = j, i, drop_z, drop_x, charges.exchanged()
    matched = cost == _COST["match"]
    pairs = np.empty((np.count_nonzero(matched), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = i[matched], j[matched]
    return Trace(
        value,
        pairs,
        np.bincount(j[cost == drop_x], minlength=N),
        np.bincount(i[cost == drop_z], minlength=K),
        weight[0][matched] if weighted else None,
        charges,
    )


def run_batch(
    table: Recurrence,
    reducer: Reducer,
    batch: Costs,
    *,
    graphs: Sequence[Graph] | None = None,
    gradient: bool = False,
    threads: int = 1,
) -> tuple[Array, Array, Array, Array, Array]:
    """See `Executor.run_batch`."""
    solver, transposed = _compiled(table) if graphs is None else (plans(table, graphs), False)
    (match, d_x, d_z, charges, *_), (z_lengths, x_lengths) = batch, batch.sizes
    if transposed:
        match, d_x, d_z, z_lengths, x_lengths = match.transpose(0, 2, 1), d_z, d_x, x_lengths, z_lengths
        charges = None if charges is None else charges[:, _EXCHANGED]
    B, K, N = match.shape
    dtype = match.dtype
    value = np.empty(B)
    shapes = ((B, K, N), (B, N), (B, K))
    by_match, by_x, by_z = (np.zeros(shape, dtype) for shape in shapes) if gradient else (None, None, None)
    by_charges = np.zeros((B, len(NO_CHARGES)), dtype)
    _cpp.batch(
        solver=solver,
        reducer=REDUCER[reducer.name],
        gamma=reducer.gamma,
        budget=BUDGET if graphs is None else cpu_graphs.BUDGET,
        match=strided(match),
        drop_x=plain(d_x, dtype),
        drop_z=plain(d_z, dtype),
        z_lengths=plain(z_lengths),
        x_lengths=plain(x_lengths),
        threads=threads,
        value=value,
        grad_match=by_match,
        grad_x=by_x,
        grad_z=by_z,
        charges=None if charges is None else plain(charges, dtype),
        grad_charges=by_charges,
    )
    if by_match is None or by_x is None or by_z is None:
        none = np.empty(0, dtype)
        return value, none, none, none, none
    if transposed:
        return value, by_match.transpose(0, 2, 1), by_z, by_x, by_charges[:, _EXCHANGED]
    return value, by_match, by_x, by_z, by_charges


def _as_derivatives(found: Trace, costs: Costs) -> Result:
    match = np.zeros_like(costs.matrix)
    match[found.pairs[:, 0], found.pairs[:, 1]] = 1 if found.weights is None else found.weights
    dtype = match.dtype
    return Result(found.value, match, found.drop_x.astype(dtype), found.drop_z.astype(dtype), found.charges)


def pairwise(
    table: Recurrence,
    reducer: Reducer,
    metric: str,
    Zs: list[Array],
    Xs: list[Array],
    terms: Terms,
    *,
    once: bool,
    threads: int,
    report: Callable[[int, int], None],
    limit: float = np.inf,
) -> Values | None:
    """See `Executor.pairwise`. None if match costs exceed `MOST_STORED`."""
    kernel, transposed = _compiled(table)
    dtype = np.result_type(*Zs, *Xs)
    rules = (terms.drop_x, terms.drop_z, terms.threshold)
    read = terms.binary or terms.greedy or any(terms.suggests) or any(rule.kind in _PRICES[2:] for rule in rules)
    stores_costs = metric == "cosine" or Zs[0].shape[1] > WIDEST or read
    if stores_costs and max(map(len, Zs)) * max(map(len, Xs)) * dtype.itemsize > MOST_STORED:
        return None
    drop_x, drop_z, charges = terms.drop_x, terms.drop_z, terms.charges
    zs, z_ends = _joined(Zs, dtype)
    xs, x_ends = (zs, z_ends) if Xs is Zs else _joined(Xs, dtype)
    z_scale = x_scale = None
    if metric == "cosine":
        zs, (xs, x_scale) = _units(Zs, zs), _scaled(Xs, xs)
    if transposed:
        zs, z_ends, z_scale, xs, x_ends, x_scale = xs, x_ends, x_scale, zs, z_ends, z_scale
        drop_x, drop_z, charges = drop_z, drop_x, charges.exchanged()
    binary, window = terms.binary, terms.window
    out = np.empty((len(z_ends), len(x_ends)))
    abandoned, spared = _cpp.pairwise(
        table=kernel,
        transposed=transposed,
        reducer=REDUCER[reducer.name],
        gamma=reducer.gamma,
        metric=_METRIC[metric],
        zs=zs,
        z_ends=z_ends,
        z_scale=z_scale,
        xs=xs,
        x_ends=x_ends,
        x_scale=x_scale,
        drop_x=_price(drop_x, dtype),
        drop_z=_price(drop_z, dtype),
        binary=None if binary is None else (*binary, _price(terms.threshold, dtype)),
        charges=charges,
        suggests=terms.suggests[::-1] if transposed else terms.suggests,
        greedy=terms.greedy,
        window=None if window is None else (float(window_width(1, window)), isinstance(window, (float, np.floating))),
        limit=limit,
        once=once,
        threads=threads,
        progress=report,
        out=out,
    )
    return Values(out.T.copy() if transposed else out, abandoned, spared / (len(zs) * len(xs)))


_PRICES: Final = ("number", "each", "percentile", "suggest")
"""The kinds of drop costs that kernels compute, in the order of their codes."""


def _price(price: Lowered, dtype: Any) -> tuple[int, float, Array | None]:
    """Return a price in the form that kernels take: its kind, a number, and one number per element."""
    return _PRICES.index(price.kind), price.number, None if price.values is None else plain(price.values, dtype)


def _joined(sequences: list[Array], dtype: Any) -> tuple[Array, Array]:
    """Concatenate sequences, and return where each ends."""
    return plain(np.concatenate(sequences), dtype), np.cumsum([len(s) for s in sequences])


def _units(sequences: list[Array], rows: Array) -> Array:
    """Scale the rows of all sequences to unit vectors, as `costs.cosine` does for each sequence."""
    if row_lengths(rows) is not None:
        return unit_rows(rows)
    return np.concatenate([unit_rows(sequence.astype(rows.dtype, copy=False)) for sequence in sequences])


def _scaled(sequences: list[Array], rows: Array) -> tuple[Array, Array]:
    """Return the rows of all sequences and the factors that make them unit vectors, as in `costs.cosine`."""
    if (lengths := row_lengths(rows)) is not None:
        return rows, 1 / lengths
    parts = []
    for sequence in sequences:
        own = sequence.astype(rows.dtype, copy=False)
        found = row_lengths(own)
        parts.append((unit_rows(own), np.ones(len(own), own.dtype)) if found is None else (own, 1 / found))
    each, scale = zip(*parts, strict=True)
    return np.concatenate(each), np.concatenate(scale)


def _solve(
    table: Recurrence,
    costs: Costs,
    *,
    want: int,
    reducer: Reducer | None = None,
    out: dict[str, Array] | None = None,
    limit: float = np.inf,
    cells: Array | None = None,
) -> tuple[float, int, float, Charges]:
    """Make one call into the kernels. A transposed table runs as its mirror image with the sequences swapped.

    Returns the value, the length of the path, the share of cells skipped, and the derivatives with respect to charges.
    """
    kernel, transposed = _compiled(table)
    drop_x, drop_z, band, charges = costs.drop_x, costs.drop_z, costs.band, costs.charges
    if transposed:
        drop_x, drop_z, charges = drop_z, drop_x, charges.exchanged()
        band = None if band is None else _transposed_band(band, len(drop_z))
    start, stop = (None, None) if band is None else map(plain, band)
    if cells is not None:
        cells = (cells[:, ::-1] if transposed else cells).ravel()
    arguments: dict[str, Any] = dict.fromkeys(
        ("grad_match", "grad_x", "grad_z", "path_i", "path_j", "path_cost", "path_weight"),
    )
    value, length, spared, by_charges = _cpp.solve(
        **_match_arguments(costs, transposed, want if cells is None else None),
        **arguments | (out or {}),
        table=kernel,
        reducer=0 if reducer is None else REDUCER[reducer.name],
        gamma=0.0 if reducer is None else reducer.gamma,
        want=want,
        budget=BUDGET,
        K=len(drop_z),
        N=len(drop_x),
        drop_x=plain(drop_x, costs.dtype),
        drop_z=plain(drop_z, costs.dtype),
        charges=charges,
        limit=limit,
        least=costs.match.least,
        band_start=start,
        band_stop=stop,
        cells=cells,
    )
    return value, length, spared, Charges(*by_charges)


def _match_arguments(costs: Costs, transposed: bool, want: int | None) -> dict[str, Any]:
    """Choose how a kernel gets match costs: it computes them, requests strips of a large matrix, or gets all of it.

    want : what it computes; None if it cannot request strips.
    """
    how: dict[str, Any] = dict.fromkeys(("match", "strips", "z", "x", "table_of_costs"))
    how |= {"strip_width": 0, "metric": 0}
    match = costs.match
    if match.sequences is not None:
        Z, X = match.sequences
        if match.metric is not None and Z.shape[1] <= WIDEST:
            z, x = (X, Z) if transposed else (Z, X)
            return how | {"z": plain(z, z.dtype), "x": plain(x, x.dtype), "metric": _METRIC[match.metric]}
        if match.compares_codes:
            z, x = (plain(A, A.dtype) for A in ((X, Z) if transposed else (Z, X)))
            if match.table is None:
                return how | {"z": z, "x": x, "metric": _EQUAL}
            table = plain(match.table.T if transposed else match.table, Z.dtype)
            return how | {"z": z, "x": x, "metric": _LOOKUP, "table_of_costs": table}
        large = len(Z) * len(X) * match.dtype.itemsize > (STRIPS_FROM // 8 if want == _VALUE else STRIPS_FROM)
        if large and want is not None and (match.by_pair or not transposed):
            height, length = (len(X), len(Z)) if transposed else (len(Z), len(X))
            least = 256 if height < 1 << 16 else 64
            width = min(length, max(least, (STRIP // 4 if want == _VALUE else STRIP) // height))

            def strip(start: int, stop: int, rows: int) -> Array:
                if transposed:
                    return strided(match.part(slice(start, stop), slice(rows)).T)
                return strided(match.part(slice(rows), slice(start, stop)))

            return how | {"strips": strip, "strip_width": width}
    return how | {"match": strided(match.matrix.T if transposed else match.matrix)}


def _transposed_band(band: tuple[Array, Array], columns: int) -> tuple[Array, Array]:
    """Return the rows [start, stop) that each column may match."""
    start, stop = band  # the columns of each row, both non-decreasing from row to row, so searchsorted applies
    column = np.arange(columns)
    return np.searchsorted(stop, column, side="right"), np.searchsorted(start, column, side="right")
