"""Differentiable operators for eager code, made from two functions: one computes values, the other derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Tensors = Sequence[Tensor | None]

Forward = Callable[[Tensors, Any], tuple[Any, Tensors, Any]]
"""Computes a tensor or a tuple of tensors from tensors and settings. Also returns what `Backward` needs of both."""

Backward = Callable[[Any, Tensors, Any], Tensors]
"""Computes the derivatives of Σ grad · value from grad and what `Forward` kept; tensors that are left out get None."""


def operator(forward: Forward, backward: Backward, refusal: str | None = None) -> Callable[..., Any]:
    """Make an operator of eager code: a function of the tensors, followed by the settings.

    Calling an operator that is registered with PyTorch, as torch.compile needs it, has several times the overhead.

    refusal : the message of the error on second differentiation. None: `backward` can itself be differentiated.
    """

    class Derivatives(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, grad: Tensor, *kept: Any) -> tuple[Tensor | None, ...]:
            return tuple(backward(grad, kept[:-1], kept[-1]))

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            raise RuntimeError(refusal)

    class Operator(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            found, kept, ctx.settings = forward(given[:-1], given[-1])
            ctx.save_for_backward(*kept)
            return found

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
            grad = grads[0] if len(grads) == 1 else grads
            if refusal is not None and torch.is_grad_enabled():  # create_graph: raise on second differentiation
                found = Derivatives.apply(grad, *ctx.saved_tensors, ctx.settings)  # type: ignore[no-untyped-call]
            else:
                found = backward(grad, ctx.saved_tensors, ctx.settings)
            return (*found, *(None,) * (len(ctx.needs_input_grad) - len(found)))

    return Operator.apply
