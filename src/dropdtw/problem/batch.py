"""The costs of a batch of problems, as NumPy arrays or as PyTorch tensors."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

Either = Any
"""An array or a tensor."""


class BatchCosts(NamedTuple):
    """The costs of a batch: C (B, K, N), drop_x (B, N) and drop_z (B, K). `problem.Costs` are those of one problem.

    charges : (B, 3), as in `Charges`; None if the table has no charges.
    lengths : of the Z and of the X, (B,) each; None if nothing is padded.
    xp : the module that computes with these costs, NumPy or PyTorch; `Method.edit` uses it.
    """

    C: Either
    drop_x: Either
    drop_z: Either
    charges: Either | None = None
    lengths: tuple[Either, Either] | None = None
    xp: ModuleType = np

    @property
    def matrix(self) -> Either:
        """The match costs."""
        return self.C

    @property
    def sizes(self) -> tuple[Any, Any]:
        """The lengths of the Z and of the X of arrays, (B,) each, also if nothing is padded."""
        B, K, N = np.shape(self.C)
        return self.lengths or (np.full(B, K), np.full(B, N))

    def with_match(self, C: Either) -> BatchCosts:
        """Return a copy with other match costs."""
        return self._replace(C=C)

    def with_drops(self, **drops: Either) -> BatchCosts:
        """Return a copy with other drop_x or drop_z."""
        return self._replace(**drops)

    def banded(self) -> Either:
        """Return the match costs with +∞ in the padding, where no match is possible."""
        if self.lengths is None:
            return self.C
        xp, C = self.xp, self.C
        row, column = (xp.cumsum(xp.ones_like(line, dtype=xp.int64), 1) for line in (self.drop_z, self.drop_x))
        here_z, here_x = (place <= n[:, None] for place, n in zip((row, column), self.lengths, strict=True))
        return xp.where(here_z[:, :, None] & here_x[:, None], C, xp.full_like(C[:1, :1, :1], np.inf))

    def of_items(self, items: Either) -> BatchCosts:
        """Select some items of the batch."""
        charges = None if self.charges is None else self.charges[items]
        lengths = None if self.lengths is None else (self.lengths[0][items], self.lengths[1][items])
        return BatchCosts(self.C[items], self.drop_x[items], self.drop_z[items], charges, lengths, self.xp)
