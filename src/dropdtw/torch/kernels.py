"""Single kernels behind functions of `costs`, where there is a GPU."""

from __future__ import annotations

import torch
from torch import Tensor

from dropdtw.torch import ops


def run_on(A: Tensor) -> bool:
    """Whether kernels run where this tensor is; transformed code has no tensors that a kernel could read."""
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
    """Squared distances (..., K, N) of Z (..., K, d) and X (..., N, d), by differences; without a derivative."""
    batch = Z.shape[:-2]
    if len(batch) != 1:
        Z, X = (A.reshape(-1, *A.shape[-2:]) for A in (Z, X))
    if torch.compiler.is_compiling():
        found: Tensor = _squares(Z, X)
    else:
        from dropdtw.executors.triton import squares

        found = squares.costs(Z, X, None, None)
    return found if len(batch) == 1 else found.reshape(*batch, *found.shape[1:])


def first_rows(Z: Tensor) -> Tensor:
    """For each row of Z (B, K, d) the first that equals it: (B, K)."""
    from dropdtw.executors.triton import rows

    return rows.first_rows(Z, None, None)[0].long()
