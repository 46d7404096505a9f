"""The match costs of one problem: a matrix, or a pair of sequences whose costs are computed lazily."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from dropdtw.costs import Match
from dropdtw.drops import percentile_drop, percentile_of_strips
from dropdtw.problem.inputs import Array, as_match_costs, owned

WHOLE = 1 << 28
"""Maximum size of C in bytes for which a percentile materializes it."""

LARGEST = 1 << 32
"""Maximum size of C in bytes that may be materialized at all."""

STRIP = 1 << 22
"""Number of match costs per strip when C is not materialized."""


SMALL = 1 << 21
"""Maximum size of a table of costs in bytes that kernels read: it stays in a core's cache."""


class MatchCosts(ABC):
    """C (K, N), +∞ where a match is forbidden.

    sequences : Z (K, d) and X (N, d) until C is materialized; None afterward, or if C was given.
    metric : "sqeuclidean" or "euclidean" if kernels can compute C from the sequences; otherwise None.
    by_pair : whether C[i, j] depends only on z_i and x_j, so that rows can be computed separately.
    least : a lower bound on every cost.
    compares_codes : whether the sequences are codes of symbols that kernels can compare: by `table`, (codes of z, codes
        of x), or, if that is None, 0 for equal and 1 for others.
    """

    compares_codes: bool = False
    table: Array | None = None
    sequences: tuple[Array, Array] | None = None
    metric: str | None = None
    by_pair: bool = False
    least: float = -np.inf
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """All of C."""

    @abstractmethod
    def at(self, i: Array, j: Array) -> Array:
        """C[i, j] for pairs."""

    def one(self, i: int, j: int) -> float:
        """C[i, j]."""
        return float(self.at(np.array([i]), np.array([j]))[0])

    @abstractmethod
    def part(self, rows: slice, columns: slice) -> Array:
        """C[rows, columns]."""

    def columns(self, start: int, stop: int) -> Array:
        """C[:, start:stop]."""
        return self.part(slice(None), slice(start, stop))

    def block(self, rows: slice, columns: slice) -> MatchCosts:
        """C[rows, columns], as lazily as C itself."""
        return Matrix(self.part(rows, columns))

    @abstractmethod
    def percentile(self, p: float) -> float:
        """The p-th percentile of the finite costs (paper Eq. 5)."""

    @abstractmethod
    def own(self) -> None:
        """Copy what the caller could still modify."""


class Matrix(MatchCosts):
    """Match costs given as a matrix."""

    by_pair = True

    def __init__(self, C: Array) -> None:
        self.C = C
        self.shape, self.dtype = C.shape, C.dtype
        self._owned = False

    @property
    def matrix(self) -> Array:
        """All of C."""
        return self.C

    def at(self, i: Array, j: Array) -> Array:
        """C[i, j] for pairs."""
        return np.asarray(self.C[i, j])

    def one(self, i: int, j: int) -> float:
        """C[i, j]."""
        return float(self.C[i, j])

    def part(self, rows: slice, columns: slice) -> Array:
        """C[rows, columns]."""
        return self.C[rows, columns]

    def percentile(self, p: float) -> float:
        """The p-th percentile of the finite costs."""
        return percentile_drop(self.C, p)

    def own(self) -> None:
        """Copy C if the caller could still modify it."""
        if not self._owned:
            self.C, self._owned = owned(self.C), True


class Pair(MatchCosts):
    """The match costs of two sequences, computed lazily: all at once, in strips, or inside a kernel.

    Z, X : (K, d) and (N, d), validated, of equal precision.
    match : computes C (K, n) from Z and any n elements of X; column j depends only on Z and x_j.
    """

    def __init__(self, Z: Array, X: Array, match: Match) -> None:
        self.Z, self.X, self.match = Z, X, match
        self.shape, self.dtype = (len(Z), len(X)), Z.dtype
        self.metric = match.kernel_metric(Z, X)
        self.by_pair, self.least = match.by_pair, match.least
        self.sequences = (Z, X)
        self.table = match.table
        self.compares_codes = Z.shape[1] == 1 and (
            match.name == "equal" or (match.table is not None and match.table.nbytes <= SMALL)
        )
        self._C: Array | None = None
        self._owned = False

    @property
    def matrix(self) -> Array:
        """All of C, cached once computed."""
        if self._C is None:
            K, N = self.shape
            if self._bytes > LARGEST:
                raise ValueError(
                    f"this request needs all {K} × {N} match costs at once, {self._bytes / 2**30:.1f} GiB; give drop "
                    "costs as numbers instead of rules and leave out mask, or align a part at a time"
                )
            self._C = self._of(self.Z, self.X)
            self.sequences = None
        return self._C

    def at(self, i: Array, j: Array) -> Array:
        """C[i, j] for pairs, without materializing C."""
        if self._C is not None:
            return np.asarray(self._C[i, j])
        if self.metric is not None:
            squares = ((self.Z[i] - self.X[j]) ** 2).sum(axis=1)
            return np.asarray(squares if self.metric == "sqeuclidean" else np.sqrt(squares))
        if self.match.each is not None:
            return self.match.each(self.Z[i], self.X[j])
        out = np.empty(len(i), self.dtype)
        for start, stop in self._parts():
            here = np.flatnonzero((start <= j) & (j < stop))
            if len(here):
                out[here] = self.columns(start, stop)[i[here], j[here] - start]
        return out

    def part(self, rows: slice, columns: slice) -> Array:
        """C[rows, columns]; only these are computed if `by_pair`, otherwise the columns as a whole."""
        if self._C is not None:
            return self._C[rows, columns]
        if self.by_pair:
            return self._of(self.Z[rows], self.X[columns])
        return self._of(self.Z, self.X[columns])[rows]

    def block(self, rows: slice, columns: slice) -> MatchCosts:
        """C[rows, columns], as lazily as C itself."""
        if self._C is None and self.by_pair:
            return Pair(self.Z[rows], self.X[columns], self.match)
        return super().block(rows, columns)

    def percentile(self, p: float) -> float:
        """The p-th percentile of the finite costs; a large C is computed in strips."""
        if self._C is not None or self._bytes <= WHOLE:
            return percentile_drop(self.matrix, p)
        K, N = self.shape
        some = np.linspace(0, N - 1, min(N, max(64, (1 << 20) // K))).astype(np.int64)
        strips = lambda: (self.columns(*part) for part in self._parts())  # noqa: E731
        return percentile_of_strips(strips, self._of(self.Z, self.X[some]), p)

    def own(self) -> None:
        """Copy the sequences if C has not been computed and the caller could still modify them."""
        if self._C is None and not self._owned:
            self.sequences = self.Z, self.X = owned(self.Z), owned(self.X)
            self._owned = True

    @property
    def _bytes(self) -> int:
        K, N = self.shape
        return K * N * self.dtype.itemsize

    def _parts(self) -> Iterator[tuple[int, int]]:
        """The columns [start, stop) of each strip."""
        width = max(1, STRIP // len(self.Z))
        return ((start, start + width) for start in range(0, len(self.X), width))

    def _of(self, Z: Array, X: Array) -> Array:
        if self.match.by_pair:  # distances of finite vectors, which need no validation
            return self.match.cost(Z, X)
        return as_match_costs(self.match.cost(Z, X), "the match cost of Z and X")
