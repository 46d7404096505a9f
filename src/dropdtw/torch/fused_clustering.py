"""L_clust on CUDA as one operator.

Kernels compute similarities, value and derivative; the backward pass has only two products left.
`ClusteringLoss` uses this operator where it applies, and the general path elsewhere. Both give the same results.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from dropdtw.torch import fused, stages
from dropdtw.torch.batch import Pairs
from dropdtw.torch.operators import Tensors, operator
from dropdtw.torch.stages import LossInputs, Shared


def values(p: Pairs, gamma: float, gamma_contrast: float | None) -> Tensor | None:
    """Compute the loss of each item (B,); None if the general path must compute it.

    gamma_contrast : None for the Frobenius norm.
    """
    if not fused.applies_to(p.given_x):
        return None
    shared = fused.shared(p)
    given = fused.inputs(p) if shared is None else shared.given
    found: Tensor
    wanted = torch.is_grad_enabled() and (given.Z.requires_grad or given.X.requires_grad)
    if shared is None:
        tensors = (given.Z, given.X, given.ids, given.z_lengths, given.x_lengths)
        found, _ = forward(*tensors, gamma, gamma_contrast, wanted)
    elif wanted:
        found = _differentiable(*given[:2], (shared, gamma, gamma_contrast))
    else:
        found, _ = _value(shared, gamma, gamma_contrast, False)
    return found


def _value(shared: Shared, gamma: float, gamma_contrast: float | None, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """Compute the loss of each item (B,), and its derivative with respect to the similarities (B, K, N)."""
    given = shared.given
    with torch.autocast(given.X.device.type, enabled=False):
        S = shared.similarities
    how = (given.x_lengths, gamma, gamma_contrast, gradient)
    found: tuple[Tensor, Tensor | None] = stages.kernels().cluster.clustering(S, shared.kinds[0], *how)
    return found


def _pull(grad: Tensor, Z: Tensor, X: Tensor, by_s: Tensor, z_too: bool = True) -> tuple[Tensor | None, Tensor]:
    """Compute the derivatives of Σ grad · value with respect to Z and X, whose padding is 0."""
    by_s = by_s * grad[:, None, None]
    return torch.bmm(by_s, X) if z_too else None, torch.bmm(by_s.mT, Z)


ONCE = (
    "on CUDA the clustering loss can be differentiated only once: its backward pass has no derivative. "
    "For second derivatives compute it on the CPU"
)


def _forward(tensors: Tensors, settings: tuple[Shared, float, float | None]) -> tuple[Tensor, Tensors, bool]:
    shared = settings[0]
    found, by_s = _value(*settings, True)
    kept = shared.given[:2] if shared.given.lengths is None else shared.sequences
    return found, (*kept, by_s), shared.given.Z.requires_grad


def _backward(grad: Tensor, kept: Tensors, z_too: bool) -> Tensors:
    return _pull(grad, *cast("tuple[Tensor, Tensor, Tensor]", kept), z_too)


_differentiable = operator(_forward, _backward, ONCE)
"""The operator for eager code."""


# The same for torch.compile, registered with a fake implementation so that tracing does not run it. The compiler
# optimizes the products of the backward pass itself. Here the padding is already 0.


@torch.library.custom_op("dropdtw::clustering", mutates_args=())
def forward(
    Z: Tensor,
    X: Tensor,
    ids: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    gamma: float,
    gamma_contrast: float | None,
    gradient: bool,
) -> tuple[Tensor, list[Tensor]]:
    """See `_value`."""
    shared = Shared(LossInputs(Z, X, None, None, None, ids, z_lengths, x_lengths))
    found, by_s = _value(shared, gamma, gamma_contrast, gradient)
    return found, [] if by_s is None else [by_s]


@forward.register_fake
def _(Z, X, ids, z_lengths, x_lengths, gamma, gamma_contrast, gradient):  # type: ignore[no-untyped-def]
    (B, K, _), N = Z.shape, X.shape[1]
    return Z.new_empty(B), [Z.new_empty(B, K, N)] if gradient else []


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, list[Tensor]]) -> None:
    ctx.save_for_backward(*inputs[:2], *output[1])


def _back(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    if torch.is_grad_enabled() and grad.requires_grad:
        raise RuntimeError(ONCE)
    Z, X, by_s = ctx.saved_tensors
    return (*_pull(grad, Z, X, by_s), *(None,) * 6)


forward.register_autograd(_back, setup_context=_keep)
