"""From sequences to values and back, stage by stage: match costs, drop costs, alignment, in a handful of launches.

Nothing here knows of autograd; `fused` says where these stages apply and makes an operator of them.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dropdtw.torch import costs, ops


class Drop(NamedTuple):
    """How the drop costs of one side are found.

    kind : "none"; "number"; "percentile" of the match costs; "given" as a tensor; and for x in the softmax "logit" (a
        percentile), "own" (a tensor) or "anchored" (both).
    number : that number or percentile.
    """

    kind: str
    number: float = 0.0

    @property
    def is_logit(self) -> bool:
        """Whether it competes in the softmax."""
        return self.kind in ("logit", "own", "anchored")

    @property
    def is_tensor(self) -> bool:
        """Whether a tensor is given."""
        return self.kind in ("given", "own", "anchored")


class Plan(NamedTuple):
    """The settings of the operator."""

    match: str
    gamma: float
    drop_x: Drop
    drop_z: Drop
    call: ops.Call
    normalize: str | None


class Inputs(NamedTuple):
    """The tensors of a batch: own_x (B, N) and own_z (B, K) are what networks say; there are both lengths or none."""

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
        """As the kernels take them."""
        return None if self.z_lengths is None or self.x_lengths is None else (self.z_lengths, self.x_lengths)


@cache
def kernels() -> Any:
    """The kernels, imported when first used."""
    from dropdtw.executors import triton
    from dropdtw.executors.triton import rows, select, softmax, squares

    return SimpleNamespace(align=triton, rows=rows, select=select, softmax=softmax, squares=squares)


def _level(A: Tensor, p: float, given: Inputs, first: Tensor | None = None, logit: bool = False) -> Tensor:
    """The percentile of each item (B,), by a kernel or, where that is quicker, by sorting."""
    lengths = given.z_lengths, given.x_lengths
    if kernels().select.fits(A):
        found: Tensor = kernels().select.percentile(A, p, *lengths, first, logit)
        return found
    if not logit:
        return costs.percentile_drop(A, p, *lengths)[:, 0]
    assert first is not None
    return costs.percentile_logit(A.masked_fill(~costs.is_first(first)[..., None], -torch.inf), p, *lengths)[:, 0]


def _match(given: Inputs, plan: Plan) -> tuple[Tensor, Tensor | None, list[Tensor]]:
    """Match costs, the drop costs of x where a logit makes them, and what else the way back needs."""
    k = kernels()
    Z, X = given.Z, given.X
    lengths = given.z_lengths, given.x_lengths
    if plan.match == "sqeuclidean":
        if k.squares.fits(Z, X):
            return k.squares.costs(Z, X, *lengths), None, []
        return costs.sqeuclidean(Z, X), None, []
    if plan.match == "cosine":
        z_units, x_units, inverse = k.rows.units(Z, X)
        return torch.rsub(torch.bmm(z_units, x_units.mT), 1), None, [z_units, x_units, inverse]
    first, after = k.rows.first_rows(Z, given.ids, given.z_lengths)
    S = torch.bmm(Z, X.mT)
    if not plan.drop_x.is_logit:
        return k.softmax.costs(S, first, plan.gamma, None, None, *lengths)[0], None, [first, after]
    level = None
    if plan.drop_x.kind != "own":
        level = _level(S, plan.drop_x.number, given, first, logit=True)
    C, drop, total = k.softmax.costs(S, first, plan.gamma, given.own_x, level, *lengths)
    return C, drop, [first, after, S, total, *([] if level is None else [level])]


def _drops(drop: Drop, C: Tensor, given: Inputs) -> Tensor | None:
    """The drop costs of one side as they are kept, see `_spread`; None where they are given."""
    if drop.kind == "given":
        return None
    if drop.kind == "percentile":
        return _level(C, drop.number, given)
    if drop.kind == "none":
        return torch.empty(1, dtype=C.dtype, device=C.device)  # no kernel reads it
    return torch.full((1,), drop.number, dtype=C.dtype, device=C.device)


def _spread(drop: Drop, kept: Tensor | None, own: Tensor | None, B: int, length: int) -> Tensor:
    """Drop costs as the alignment takes them: (B, length)."""
    if kept is None:
        assert own is not None
        return own
    if kept.ndim == 2:
        return kept
    return kept.as_strided((B, length), (1 if drop.kind == "percentile" else 0, 0))


def _inverse(given: Inputs, by: str) -> float | Tensor:
    """1 / the length that values are divided by. A product, so that full lengths and none give the same bits."""
    if given.z_lengths is None or given.x_lengths is None:
        return 1.0 / ((by != "z") * given.X.shape[1] + (by != "x") * given.Z.shape[1])
    length = {"x": given.x_lengths, "z": given.z_lengths}.get(by)
    if length is None:
        length = given.x_lengths + given.z_lengths
    return length.to(given.Z.dtype).reciprocal()


def forward(given: Inputs, plan: Plan, gradient: bool) -> tuple[Tensor, list[Tensor]]:
    """The values (B,), and what the way back needs."""
    C, drop_x, kept = _match(given, plan)
    drop_x = _drops(plan.drop_x, C, given) if drop_x is None else drop_x
    drop_z = _drops(plan.drop_z, C, given)
    B, K, N = C.shape
    x, z = _spread(plan.drop_x, drop_x, given.own_x, B, N), _spread(plan.drop_z, drop_z, given.own_z, B, K)
    call = plan.call
    value, states = kernels().align.forward(
        ops.table(call.table), call.reducer, call.gamma, C, x, z, given.charges, given.lengths, gradient
    )
    if plan.normalize is not None:
        value *= _inverse(given, plan.normalize)
    if not gradient:
        return value, []
    made = [part for part in (C, drop_x, drop_z) if part is not None]
    return value, [*made, *kept, *(part for part in states if part is not None)]


Gradients = tuple[Tensor | None, ...]
"""By Z, X, own_x, own_z and charges."""


def backward(grad: Tensor, given: Inputs, saved: list[Tensor], plan: Plan, z_too: bool = True) -> Gradients:
    """The derivatives of Σ grad · value."""
    k = kernels()
    C, *rest = saved
    drop_x = None if plan.drop_x.kind == "given" else rest.pop(0)
    drop_z = None if plan.drop_z.kind == "given" else rest.pop(0)
    number = {"sqeuclidean": 0, "cosine": 3}.get(plan.match, 2)
    if plan.drop_x.is_logit:
        number += 2 + (plan.drop_x.kind != "own")
    kept, states = rest[:number], rest[number:]
    B, K, N = C.shape
    x, z = _spread(plan.drop_x, drop_x, given.own_x, B, N), _spread(plan.drop_z, drop_z, given.own_z, B, K)
    if plan.normalize is not None:
        grad = grad * _inverse(given, plan.normalize)
    call = plan.call
    by_c, by_x, by_z, by_charges = k.align.backward(
        ops.table(call.table), call.reducer, call.gamma,
        C, x, z, given.charges, given.lengths, k.align.Saved(*states), grad,
    )  # fmt: skip
    by_own_x = by_x if plan.drop_x.kind == "given" else None
    by_own_z = by_z if plan.drop_z.kind == "given" else None
    Z, X = given.Z, given.X
    lengths = given.z_lengths, given.x_lengths
    if plan.match == "sqeuclidean":
        if not k.squares.fits(Z, X):
            return *costs.sqeuclidean_back(by_c, Z, X), by_own_x, by_own_z, by_charges
        of_z = k.squares.costs_back(by_c, Z, X, *lengths) if z_too else None
        of_x = k.squares.costs_back(by_c.mT, X, Z, *lengths[::-1])
        return of_z, of_x, by_own_x, by_own_z, by_charges
    if plan.match == "cosine":
        z_units, x_units, inverse = kept
        pulled = torch.bmm(by_c, x_units), torch.bmm(by_c.mT, z_units)
        return *k.rows.units_back(z_units, x_units, inverse, *pulled), by_own_x, by_own_z, by_charges
    first, after, *more = kept
    S, total, level = (*more, None, None, None)[:3]
    cost = C if total is None else None
    own = given.own_x if plan.drop_x.is_logit else None
    how = (plan.gamma, own, level, *lengths)
    by_s, of_own = k.softmax.costs_back(by_c, by_x, S, cost, total, first, after, *how)
    of_z = torch.bmm(by_s, X) if z_too else None
    return of_z, torch.bmm(by_s.mT, Z), of_own if plan.drop_x.is_logit else by_own_x, by_own_z, by_charges
