"""Values of many small pairs whose match costs the kernels cannot compute themselves.

NumPy computes the match costs of one Z with many X, and one compiled call aligns them all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dropdtw.costs import Match, row_lengths
from dropdtw.drops import Rule, lowered
from dropdtw.executors.protocol import Executor
from dropdtw.problem.band import band
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array
from dropdtw.problem.spec import Spec

CELLS = 1 << 16
"""Maximum number of match costs in a block: few enough to stay in a core's cache."""

LARGEST = 1 << 13
"""Maximum number of match costs of a pair. For larger pairs, Python's overhead hardly matters."""


def serve(spec: Spec, match: Match, left: list[Array], right: list[Array]) -> bool:
    """Whether blocks apply to a request.

    They do not apply if Python must process each pair itself, for a rule or a function of the caller's, or to find
    equal z; to large pairs; if the weights of pairs depend on the length of X; or if drops are allowed under a window,
    because kernels that know the window add up the drops outside it in a different order.
    """
    rules: list[tuple[Rule | None, list[Array]]]
    rules = [(spec.drop_x, right), (spec.drop_z, left), (spec.threshold, [])]
    known = all(rule is None or (not rule.needs_costs and lowered(rule).fits(some)) for rule, some in rules)
    drops = any(edge.cost != "match" for edge in spec.table.every_edge)
    own = spec.method.derive is not None or spec.method.takes_ids
    if not match.by_pair or not known or spec.charges.needs_costs or own or (drops and spec.window is not None):
        return False
    small = max(map(len, left)) * max(map(len, right)) <= LARGEST
    few_weights = spec.method.weigh is None or len({len(X) for X in right}) == 1
    one_precision = len({A.dtype for A in (*left, *right)}) == 1
    return small and few_weights and one_precision and _rounds_alike(match, [*left, *right])


class Blocks:
    """The values of any Z with all X. A block has one Z and X of similar lengths.

    order : the indices of the X, sorted by length.
    """

    def __init__(self, spec: Spec, match: Match, executor: Executor, right: list[Array]) -> None:
        self.spec, self.match, self.executor = spec, match, executor
        self.order = np.argsort([len(X) for X in right], kind="stable")
        self.lengths = np.array([len(right[b]) for b in self.order])
        self.ends = np.cumsum(self.lengths)
        self.rows = np.concatenate([right[b] for b in self.order])
        gap = spec.method.gap
        self.gap = None if gap is None else np.full((1, self.rows.shape[1]), gap, self.rows.dtype)
        self.gaps = None if self.gap is None else match.cost(self.gap, self.rows)

    def values(self, Z: Array, first: int = 0) -> Iterator[tuple[Array, Array]]:
        """Yield values of Z with the X from position `first` of `order` on, in blocks: which X, and their values."""
        while first < len(self.order):
            lengths = self.lengths[first : first + CELLS]
            fits = np.arange(1, len(lengths) + 1) * len(Z) * lengths <= CELLS
            last = first + max(1, int(np.count_nonzero(fits)))
            yield self.order[first:last], self._solved(Z, first, last)
            first = last

    def _solved(self, Z: Array, first: int, last: int) -> Array:
        spec, lengths = self.spec, self.lengths[first:last]
        part = slice(self.ends[first] - lengths[0], self.ends[last - 1])
        B, K, N = len(lengths), len(Z), int(lengths[-1])
        C = _spread(self.match.cost(Z, self.rows[part]), lengths)
        if spec.window is not None:
            C = _within_windows(C, lengths, spec.window)
        drop_x, drop_z = np.empty((B, N), C.dtype), np.empty((B, K), C.dtype)
        if self.gap is None or self.gaps is None:
            drop_x[:], drop_z[:] = lowered(spec.drop_x).known, lowered(spec.drop_z).known
        else:
            drop_x[:], drop_z[:] = _spread(self.gaps[:, part], lengths)[:, 0], self.match.cost(Z, self.gap)[:, 0]
        charges = np.tile(np.array(spec.charges, C.dtype), (B, 1)) if spec.charges.any else None
        given = Costs(C, drop_x, drop_z, charges, None if lengths[0] == N else (np.full(B, K), lengths))
        paid = spec.method.edit(given, lowered(spec.threshold).known)
        found, *by = self.executor.run_batch(spec.table, spec.reducer, paid, gradient=spec.by_path)
        return found / _steps(by, paid) if spec.by_path else found


def _spread(C: Array, lengths: Array) -> Array:
    """Split (K, ΣN) into the columns of each X: (B, K, N), with +∞ in the padding."""
    N = int(lengths[-1])
    if lengths[0] == N:
        return C.reshape(len(C), len(lengths), N).transpose(1, 0, 2)
    whole = np.full((len(C), len(lengths), N), np.inf, C.dtype)
    whole[:, np.arange(N) < lengths[:, None]] = C
    return whole.transpose(1, 0, 2)


def _within_windows(C: Array, lengths: Array, window: float) -> Array:
    """Set C to +∞ outside the window of each pair."""
    j, allowed = np.arange(C.shape[2]), np.empty(C.shape, bool)
    for N in np.unique(lengths):
        start, stop = (limit[:, None] for limit in band(C.shape[1], int(N), window))
        allowed[lengths == N] = (start <= j) & (j < stop)
    return np.where(allowed, C, C.dtype.type(np.inf))


def _steps(by: list[Array], batch: Costs) -> Array:
    """Count the matches and drops of each path from the derivatives, as in `executors.per_step`."""
    by_match, by_x, by_z = by[:3]
    drops = np.where(batch.drop_x != 0, by_x, 0).sum(axis=1) + np.where(batch.drop_z != 0, by_z, 0).sum(axis=1)
    return np.asarray(np.maximum(np.count_nonzero(by_match, axis=(1, 2)) + drops.astype(np.int64), 1))


def _rounds_alike(match: Match, sequences: list[Array]) -> bool:
    """Whether match costs round the same way in a block as alone. Extreme values do not: the largest scales them."""
    if match.name == "euclidean":
        return all(match.kernel_metric(A) is not None for A in sequences)
    if match.name in ("cosine", "correlation"):
        prepare = match.prepare or (lambda A: A)
        return all(row_lengths(prepare(A)) is not None for A in sequences)
    return True
