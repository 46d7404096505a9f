"""All costs of an alignment, or of a batch of alignments, as NumPy arrays or as PyTorch tensors."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dropdtw.problem.charges import NO_CHARGES
from dropdtw.problem.match import MatchCosts, Matrix

Either = Any
"""An array or a tensor."""


class Costs(NamedTuple):
    """The costs of one alignment: match (K, N), drop_x (N,) and drop_z (K,). A batch has one more axis, the first.

    match : `MatchCosts` of one alignment; an array or a tensor (B, K, N) of a batch.
    charges : `Charges` of one alignment; (B, 3) of a batch, or None if its table has no charges.
    lengths : of the Z and of the X of a batch, (B,) each; None if nothing is padded.
    xp : the module that computes with these costs, NumPy or PyTorch; `Method.edit` uses it.
    band : None, or, for one alignment, two (K,) integer arrays: z_i may match x_j only for start[i] ≤ j < stop[i].
    """

    match: Either
    drop_x: Either
    drop_z: Either
    charges: Any = NO_CHARGES
    lengths: tuple[Either, Either] | None = None
    xp: ModuleType = np
    band: tuple[Either, Either] | None = None

    def __reduce__(self) -> Any:
        return _restored, (*self[:5], self.xp.__name__, self.band)

    @property
    def matrix(self) -> Either:
        """The match costs as a matrix, or as a batch of matrices."""
        return self.match.matrix if isinstance(self.match, MatchCosts) else self.match

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        return self.drop_z.shape[-1], self.drop_x.shape[-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the match costs."""
        return self.match.dtype  # type: ignore[no-any-return]

    @property
    def sizes(self) -> tuple[Any, Any]:
        """The lengths of the Z and of the X of a batch of arrays, (B,) each, also if nothing is padded."""
        B, K, N = np.shape(self.match)
        return self.lengths or (np.full(B, K), np.full(B, N))

    def with_match(self, C: Either) -> Costs:
        """The same costs with other match costs."""
        return self._replace(match=Matrix(C) if isinstance(self.match, MatchCosts) else C)

    def of_rows(self, rows: Either) -> Costs:
        """The costs of some z of one alignment, in this order, without a band."""
        return self.with_match(self.matrix[rows])._replace(drop_z=self.drop_z[rows], band=None)

    def of_items(self, items: Either) -> Costs:
        """Some items of a batch."""
        charges = None if self.charges is None else self.charges[items]
        lengths = None if self.lengths is None else (self.lengths[0][items], self.lengths[1][items])
        return Costs(self.match[items], self.drop_x[items], self.drop_z[items], charges, lengths, self.xp)

    def banded(self) -> Either:
        """The match costs with +∞ outside the band and in the padding, where no match is possible."""
        xp, C = self.xp, self.matrix
        if self.band is not None:
            j = np.arange(self.shape[1])
            start, stop = (limit[:, None] for limit in self.band)
            return np.where((start <= j) & (j < stop), C, np.inf).astype(C.dtype)
        if self.lengths is None:
            return C
        row, column = (xp.cumsum(xp.ones_like(line, dtype=xp.int64), 1) for line in (self.drop_z, self.drop_x))
        here_z, here_x = (place <= n[:, None] for place, n in zip((row, column), self.lengths, strict=True))
        return xp.where(here_z[:, :, None] & here_x[:, None], C, xp.full_like(C[:1, :1, :1], np.inf))


def _restored(*parts: Any) -> Costs:
    """Costs from their pickle, which holds the name of their module."""
    *costs, module, band = parts
    return Costs._make((*costs, import_module(module), band))
