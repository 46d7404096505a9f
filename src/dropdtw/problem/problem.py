"""What an executor is given and what it gives back: the seam between the API and every executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dropdtw.problem.inputs import Array, as_match_costs


@dataclass(frozen=True, eq=False)
class Sequences:
    """The match costs of two sequences, computed where they are needed: all at once, in strips, or inside a kernel.

    Z, X : (K, d) and (N, d).
    cost : gives C (K, n) for Z and any n elements of X; column j depends on Z and x_j alone.
    metric : "sqeuclidean" or "euclidean" where that is what `cost` computes, so that kernels can do it themselves.
    least : what no cost is below, as far as that is known.
    by_pair : whether row i, too, depends on z_i and X alone.
    """

    Z: Array
    X: Array
    cost: Callable[[Array, Array], Array]
    metric: str | None = None
    least: float = -np.inf
    by_pair: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        return len(self.Z), len(self.X)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the costs."""
        return self.Z.dtype

    @cached_property
    def matrix(self) -> Array:
        """All of C (K, N), kept once computed."""
        K, N = self.shape
        size = K * N * self.dtype.itemsize
        if size > LARGEST:
            raise ValueError(
                f"this needs all {K} × {N} match costs at once, {size / 2**30:.1f} GiB; "
                "give drop costs as numbers rather than rules, and use align, distance or solve a part at a time"
            )
        return self.columns(0, N)

    def detach(self) -> None:
        """Keep what is needed of the sequences, whatever becomes of the arrays they came from."""
        if "matrix" not in self.__dict__:
            object.__setattr__(self, "Z", self.Z.copy())
            object.__setattr__(self, "X", self.X.copy())

    @property
    def whole(self) -> bool:
        """Whether C is there already, or small enough to be computed all at once without a thought."""
        K, N = self.shape
        return "matrix" in self.__dict__ or K * N * self.dtype.itemsize <= WHOLE

    def strips(self) -> Iterator[Array]:
        """C, some columns at a time."""
        width = max(1, (1 << 22) // len(self.Z))
        return (self.columns(start, start + width) for start in range(0, len(self.X), width))

    def sample(self) -> Array:
        """Some columns of C, spread evenly."""
        K, N = self.shape
        some = np.linspace(0, N - 1, min(N, max(64, (1 << 20) // K))).astype(np.int64)
        return as_match_costs(self.cost(self.Z, self.X[some]), "the match cost of Z and X")

    def columns(self, start: int, stop: int) -> Array:
        """C[:, start:stop]."""
        return as_match_costs(self.cost(self.Z, self.X[start:stop]), "the match cost of Z and X")

    def rows(self, start: int, stop: int) -> Array:
        """C[start:stop], where `by_pair`."""
        return as_match_costs(self.cost(self.Z[start:stop], self.X), "the match cost of Z and X")

    def at(self, i: Array, j: Array) -> Array:
        """C[i, j] for pairs, without all of C."""
        if "matrix" in self.__dict__:
            return np.asarray(self.matrix[i, j])
        if self.metric is not None:
            squares = ((self.Z[i] - self.X[j]) ** 2).sum(axis=1)
            return np.asarray(squares if self.metric == "sqeuclidean" else np.sqrt(squares))
        out = np.empty(len(i), self.dtype)
        width = max(1, (1 << 22) // len(self.Z))
        for start in range(0, len(self.X), width):
            here = np.flatnonzero((start <= j) & (j < start + width))
            if len(here):
                out[here] = self.columns(start, start + width)[i[here], j[here] - start]
        return out


WHOLE = 1 << 28
"""Bytes of match costs up to which a percentile is read off all of them at once."""

LARGEST = 1 << 32
"""Bytes of match costs beyond which they are not computed all at once."""


@dataclass(frozen=True, eq=False)
class Costs:
    """What one alignment pays: match costs (K, N), drop costs (N,) and (K,), and where it may match.

    `source` is the matrix of match costs, or the sequences it comes from; `match` is the matrix in either case.
    `band` is None or (start, stop), two (K,) integer arrays: z_i may match x_j only for start[i] ≤ j < stop[i].
    """

    source: Array | Sequences
    drop_x: Array
    drop_z: Array
    band: tuple[Array, Array] | None = None
    xp: ClassVar[ModuleType] = np

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        return len(self.drop_z), len(self.drop_x)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the match costs."""
        return self.source.dtype

    @property
    def match(self) -> Array:
        """The match costs as a matrix."""
        return self.source.matrix if isinstance(self.source, Sequences) else self.source

    def at(self, i: Array, j: Array) -> Array:
        """The match costs of pairs."""
        return self.source.at(i, j) if isinstance(self.source, Sequences) else self.source[i, j]

    def banded(self) -> Array:
        """The match costs with +∞ outside the band."""
        if self.band is None:
            return self.match
        j = np.arange(self.shape[1])
        start, stop = (limit[:, None] for limit in self.band)
        return np.where((start <= j) & (j < stop), self.match, np.inf).astype(self.dtype)


class Padded(NamedTuple):
    """Many problems as one batch: (B, K, N), (B, N) and (B, K); item b has the first lengths[b] rows and columns."""

    match: Array
    drop_x: Array
    drop_z: Array
    z_lengths: Array
    x_lengths: Array


class Result(NamedTuple):
    """The value, and its derivatives by `Costs.match`, `Costs.drop_x` and `Costs.drop_z`: empty unless asked for."""

    value: float
    match: Array = np.empty(0)
    drop_x: Array = np.empty(0)
    drop_z: Array = np.empty(0)


class Within(NamedTuple):
    """A hard value under a limit: exact up to it, else anything above; the share of cells that was not computed."""

    value: float
    spared: float = 0.0


class Values(NamedTuple):
    """The values of many pairs, how many of them were given up because of a limit, the share of cells this spared."""

    values: Array
    abandoned: int = 0
    spared: float = 0.0


class Trace(NamedTuple):
    """A best alignment: its value, its pairs (L, 2), and how often each x_j and z_i is paid for as dropped."""

    value: float
    pairs: Array
    drop_x: Array
    drop_z: Array


def band(K: int, N: int, window: float) -> tuple[Array, Array]:
    """Where z_i may match under a Sakoe–Chiba window: columns start[i] ≤ j < stop[i].

    The window runs along the straight line between the corners, |j − i (N − 1)/(K − 1)| ≤ w. An int is w, a count of
    columns; a float in (0, 1] is a share of N. One row (K = 1) is the line itself and is not limited.

    >>> start, stop = band(3, 5, 1)
    >>> start.tolist(), stop.tolist()
    ([0, 1, 3], [2, 4, 5])
    """
    width = window_width(N, window)
    if K == 1:
        return np.zeros(1, np.int64), np.full(1, N)
    # In units of 1/(K − 1) columns the line is integral: no rounding decides whether a cell is inside.
    centre = np.arange(K) * (N - 1)
    reach = np.floor(width * (K - 1) + 1e-9)
    start = -((reach - centre) // (K - 1))
    stop = (centre + reach) // (K - 1) + 1
    return np.maximum(start, 0).astype(np.int64), np.minimum(stop, N).astype(np.int64)


def window_width(N: Any, window: float) -> Any:
    """The w of a window for N columns (a number, or a tensor of them)."""
    if isinstance(window, (int, np.integer)) and not isinstance(window, bool) and window >= 0:
        return int(window)
    if isinstance(window, (float, np.floating)) and 0 < window <= 1:
        return float(window) * N
    raise ValueError(
        f"window is {window!r}; give an int ≥ 0 (columns on each side of the diagonal), "
        "a float in (0, 1] (a share of N), or None"
    )
