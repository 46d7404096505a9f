"""Single GPU kernels that speed up functions of `costs` and `batch`."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from dropdtw.torch import ops
from dropdtw.torch.operators import Tensors, operator


def run_on(A: Tensor) -> bool:
    """Whether kernels can process this tensor. Under torch.func transforms they cannot read it."""
    if not A.is_cuda or not ops.has_triton():
        return False
    return torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active()


@torch.library.custom_op("dropdtw::squares", mutates_args=())
def _squares(Z: Tensor, X: Tensor) -> Tensor:
    from dropdtw.executors.triton import squares

    found: Tensor = squares.costs(Z, X, None, None)
    return found


@_squares.register_fake
def _(Z, X):  # type: ignore[no-untyped-def]
    return Z.new_empty(*Z.shape[:2], X.shape[1])


def squares(Z: Tensor, X: Tensor) -> Tensor:
    """Compute squared distances (..., K, N) of Z (..., K, d) and X (..., N, d) from differences; not differentiable."""
    batch = Z.shape[:-2]
    if len(batch) != 1:
        Z, X = (A.reshape(-1, *A.shape[-2:]) for A in (Z, X))
    if torch.compiler.is_compiling():
        found: Tensor = _squares(Z, X)
    else:
        from dropdtw.executors.triton import squares

        found = squares.costs(Z, X, None, None)
    return found if len(batch) == 1 else found.reshape(*batch, *found.shape[1:])


@torch.library.custom_op("dropdtw::percentile", mutates_args=())
def _percentile(C: Tensor, p: float, z_lengths: Tensor | None, x_lengths: Tensor | None) -> Tensor:
    from dropdtw.executors.triton import select

    found: Tensor = select.percentile(C, p, z_lengths, x_lengths)
    return found


@_percentile.register_fake
def _(C, p, z_lengths, x_lengths):  # type: ignore[no-untyped-def]
    return C.new_empty(len(C))


def countable(C: Tensor) -> bool:
    """Whether the kernels can count the entries of each item (K, N)."""
    return C.shape[1] * C.shape[2] < 1 << 30


def percentile(C: Tensor, p: float, z_lengths: Tensor | None, x_lengths: Tensor | None) -> Tensor:
    """Compute the p-th percentile (B, 1) of each item's finite match costs, like `costs.percentile_drop`.

    It has no derivatives.
    """
    found: Tensor
    if torch.compiler.is_compiling():
        found = _percentile(C.detach().contiguous(), p, z_lengths, x_lengths)
    else:
        from dropdtw.executors.triton import select

        found = select.percentile(C.detach().contiguous(), p, z_lengths, x_lengths)
    return found[:, None]


def first_rows(Z: Tensor) -> Tensor:
    """Find the first equal row for each row of Z (B, K, d): (B, K)."""
    from dropdtw.executors.triton import rows

    return rows.first_rows(Z, None, None)[0].long()


def _without_padding(tensors: Tensors, lengths: Tensor) -> tuple[Tensor, Tensors, None]:
    from dropdtw.executors.triton import rows

    found: Tensor = rows.real_part(cast("Tensor", tensors[0]), lengths)
    return found, (lengths,), None


def real_part(A: Tensor, lengths: Tensor) -> Tensor:
    """Return A (B, L, d) with its padding set to 0; the padding gets gradient 0."""
    return _real_part(A, lengths)  # type: ignore[no-any-return]


_real_part = operator(_without_padding, lambda grad, kept, _: (real_part(grad, cast("Tensor", kept[0])),))
