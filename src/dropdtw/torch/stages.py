"""From sequences to values and derivatives: match costs, drop costs and alignment, in a few kernel launches.

If derivatives are requested, `forward` computes them together with the values, for an incoming gradient of 1. The
backward pass then has only products left. Autograd runs that pass in its own thread, where the same Python code takes
several times as long. This module does not depend on autograd; `fused` decides where the stages apply and wraps them
in an operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dropdtw.torch import costs, ops
from dropdtw.torch.kernels import countable


class Drop(NamedTuple):
    """How the drop costs of one side are computed.

    kind : "none"; "number"; "percentile" of the match costs; "given" as a tensor; and for x in the softmax "logit" (a
        percentile), "own" (a tensor) or "anchored" (both).
    number : the number or percentile.
    """

    kind: str
    number: float = 0.0

    @property
    def is_logit(self) -> bool:
        """Whether it competes in the softmax."""
        return self.kind in ("logit", "own", "anchored")


class LossPlan(NamedTuple):
    """The settings of the operator.

    normalize, reduction : as in the losses.
    """

    match: str
    gamma: float
    drop_x: Drop
    drop_z: Drop
    operation: ops.Operation
    normalize: str | None
    reduction: str


class LossInputs(NamedTuple):
    """The tensors of a batch. own_x (B, N) and own_z (B, K) are outputs of networks. Lengths: both or neither."""

    Z: Tensor
    X: Tensor
    own_x: Tensor | None
    own_z: Tensor | None
    charges: Tensor | None
    ids: Tensor | None
    z_lengths: Tensor | None
    x_lengths: Tensor | None

    @property
    def lengths(self) -> ops.Padding:
        """The lengths in the form that the kernels take."""
        return None if self.z_lengths is None or self.x_lengths is None else (self.z_lengths, self.x_lengths)


@cache
def kernels() -> Any:
    """Return the kernels, imported lazily."""
    from dropdtw.executors import triton
    from dropdtw.executors.triton import cluster, rows, select, softmax, squares

    return SimpleNamespace(align=triton, cluster=cluster, rows=rows, select=select, softmax=softmax, squares=squares)


class Shared:
    """Intermediate results that several losses of one batch share, computed lazily."""

    def __init__(self, given: LossInputs) -> None:
        self.given = given

    @cached_property
    def kinds(self) -> tuple[Tensor, Tensor]:
        """For each row of Z, the first and the next row of its kind: (B, K) each."""
        found: tuple[Tensor, Tensor] = kernels().rows.first_rows(self.given.Z, self.given.ids, self.given.z_lengths)
        return found

    @cached_property
    def similarities(self) -> Tensor:
        """S = Z Xᵀ (B, K, N)."""
        return torch.bmm(self.given.Z.detach(), self.given.X.detach().mT)

    @cached_property
    def sequences(self) -> tuple[Tensor, Tensor]:
        """Z and X with 0 in the padding: gradients there are 0, but 0 · NaN would be NaN."""
        Z, X, lengths = self.given.Z.detach(), self.given.X.detach(), self.given.lengths
        if lengths is None:
            return Z, X
        found: tuple[Tensor, Tensor] = kernels().rows.real_parts(Z, X, *lengths)
        return found


def _level(A: Tensor, p: float, given: LossInputs, first: Tensor | None = None, logit: bool = False) -> Tensor:
    """Compute the percentile of each item (B,), by kernels or, if it is too large for their counters, by sorting."""
    lengths = given.z_lengths, given.x_lengths
    if countable(A):
        found: Tensor = kernels().select.percentile(A, p, *lengths, first, logit)
        return found
    if not logit:
        return costs.percentile_drop(A, p, *lengths)[:, 0]
    assert first is not None
    return costs.percentile_logit(A.masked_fill(~costs.is_first(first)[..., None], -torch.inf), p, *lengths)[:, 0]


def _match(given: LossInputs, plan: LossPlan, shared: Shared) -> tuple[Tensor, Tensor | None, list[Tensor]]:
    """Compute match costs, the drop costs of x if a logit defines them, and what else the backward pass needs."""
    k = kernels()
    Z, X = given.Z, given.X
    lengths = given.z_lengths, given.x_lengths
    if plan.match == "sqeuclidean":
        if k.squares.fits(Z, X):
            return k.squares.costs(Z, X, *lengths), None, []
        return costs.sqeuclidean(*shared.sequences), None, []
    if plan.match == "cosine":
        z_units, x_units, inverse = k.rows.units(Z, X, *lengths)
        return torch.rsub(torch.bmm(z_units, x_units.mT), 1), None, [z_units, x_units, inverse]
    first, after = shared.kinds
    S = shared.similarities
    if not plan.drop_x.is_logit:
        return k.softmax.costs(S, first, plan.gamma, None, None, *lengths)[0], None, [first, after]
    level = None
    if plan.drop_x.kind != "own":
        level = _level(S, plan.drop_x.number, given, first, logit=True)
    C, drop, total = k.softmax.costs(S, first, plan.gamma, given.own_x, level, *lengths)
    return C, drop, [first, after, S, total, *([] if level is None else [level])]


def _drops(drop: Drop, C: Tensor, given: LossInputs) -> Tensor | None:
    """Compute the drop costs of one side as they are stored, see `_as_rows`; None if they are given."""
    if drop.kind == "given":
        return None
    if drop.kind == "percentile":
        return _level(C, drop.number, given)
    if drop.kind == "none":
        return torch.empty(1, dtype=C.dtype, device=C.device)  # no kernel reads it
    return torch.full((1,), drop.number, dtype=C.dtype, device=C.device)


def _as_rows(drop: Drop, kept: Tensor | None, own: Tensor | None, B: int, length: int) -> Tensor:
    """Expand stored drop costs to the form that the alignment takes: (B, length)."""
    if kept is None:
        assert own is not None
        return own
    if kept.ndim == 2:
        return kept
    return kept.as_strided((B, length), (1 if drop.kind == "percentile" else 0, 0))


def forward(
    given: LossInputs, plan: LossPlan, wanted: int, shared: Shared | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Compute the values (B,) or their reduction, and the derivatives.

    The derivatives are with respect to Z and X (for the softmax cost, the similarities Z Xᵀ instead), then with respect
    to the other inputs.
    wanted : bit mask of the inputs (Z, X, own_x, own_z, charges) whose derivatives are requested.
    """
    C, drop_x, kept = _match(given, plan, Shared(given) if shared is None else shared)
    drop_x = _drops(plan.drop_x, C, given) if drop_x is None else drop_x
    drop_z = _drops(plan.drop_z, C, given)
    B, K, N = C.shape
    x, z = _as_rows(plan.drop_x, drop_x, given.own_x, B, N), _as_rows(plan.drop_z, drop_z, given.own_z, B, K)
    align, operation = kernels().align, plan.operation
    how = (ops.table(operation.table), operation.reducer, operation.gamma, C, x, z, given.charges, given.lengths)
    value, states = align.forward(*how, wanted != 0, plan.normalize)
    if plan.reduction != "none":
        value = value.mean() if plan.reduction == "mean" else value.sum()
    if not wanted:
        return value, []
    by_c, *by = align.backward(*how, states, 1.0 / B if plan.reduction == "mean" else 1.0, plan.normalize)
    found: list[Tensor] = []
    if plan.match == "softmax":
        by_s, of_own = _softmax_back(by_c, by[0], C, given, plan, kept)
        by[0] = of_own if plan.drop_x.is_logit else by[0]
        found += [by_s] if wanted & 3 else []
    else:
        sides = _cosine_back(by_c, kept) if plan.match == "cosine" else _squares_back(by_c, given, bool(wanted & 1))
        found += [part for n, part in enumerate(sides) if wanted >> n & 1 and part is not None]
    for n, (own, part) in enumerate(zip(given[2:5], by, strict=True)):
        if own is not None and wanted >> n & 4:
            found.append(torch.zeros_like(own) if part is None else part)
    return value, found


def _cosine_back(by_c: Tensor, kept: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Compute the derivatives of cosine costs with respect to Z and X."""
    z_units, x_units, inverse = kept
    by_units = torch.bmm(by_c, x_units), torch.bmm(by_c.mT, z_units)
    found: tuple[Tensor, Tensor] = kernels().rows.units_back(z_units, x_units, inverse, *by_units)
    return found


def _softmax_back(
    by_c: Tensor, by_drop: Tensor | None, C: Tensor, given: LossInputs, plan: LossPlan, kept: list[Tensor]
) -> tuple[Tensor, Tensor | None]:
    """Compute the derivatives with respect to the similarities S and, if it is a logit, own_x."""
    first, after, *more = kept
    S, total, level = (*more, None, None, None)[:3]
    own = given.own_x if plan.drop_x.is_logit else None
    how = (plan.gamma, own, level, given.z_lengths, given.x_lengths)
    found: tuple[Tensor, Tensor | None] = kernels().softmax.costs_back(
        by_c, by_drop, S, C if total is None else None, total, first, after, *how
    )
    return found


def _squares_back(by_c: Tensor, given: LossInputs, z_too: bool) -> tuple[Tensor | None, Tensor]:
    """Compute the derivatives of squared distances with respect to Z and X."""
    squares, lengths = kernels().squares, (given.z_lengths, given.x_lengths)
    found: tuple[Tensor | None, Tensor] = squares.costs_back(by_c, given.Z, given.X, *lengths, z_too)
    return found


Gradients = tuple[Tensor | None, ...]
"""Derivatives with respect to Z, X, own_x, own_z and charges."""


def scaled(grad: Tensor, parts: Sequence[Tensor]) -> list[Tensor]:
    """Multiply derivatives by `grad`, the incoming gradient: () or (B,)."""
    if grad.ndim == 0:
        return [part * grad for part in parts]
    return [part * grad.reshape(-1, *(1,) * (part.ndim - 1)) for part in parts]


def derivatives(Z: Tensor, X: Tensor, found: Sequence[Tensor], plan: LossPlan, wanted: int) -> Gradients:
    """Compute all derivatives from the results of `forward`; None for those not requested. Z and X are zero-padded."""
    rest = iter(found)
    if plan.match == "softmax":
        by_s = next(rest) if wanted & 3 else None
        of_z = torch.bmm(by_s, X) if by_s is not None and wanted & 1 else None
        of_x = torch.bmm(by_s.mT, Z) if by_s is not None and wanted & 2 else None
        return of_z, of_x, *spread(list(rest), wanted >> 2, 3)
    return spread(found, wanted, 5)


def spread(found: Sequence[Tensor], wanted: int, n: int) -> Gradients:
    """Return the derivatives with respect to n inputs, None for those not requested."""
    rest = iter(found)
    return tuple([next(rest) if wanted >> k & 1 else None for k in range(n)])
