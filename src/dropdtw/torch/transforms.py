"""The operator behind `drop_dtw` under `torch.func`: support for `grad`, `vmap` and `jacrev`.

`vmap` merges its batches into one larger batch. The kernels compute the derivatives, so second derivatives and
forward mode are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from dropdtw.torch import ops

FORWARD = (
    "drop_dtw does not support forward-mode derivatives (torch.func.jvp, jacfwd, hessian); use torch.func.grad or "
    "jacrev, or executor='wavefront', which uses ordinary PyTorch operations and is slow"
)


def value(tensors: Sequence[Tensor | None], operation: ops.Operation) -> Tensor:
    """Compute the values (B,) of a batch under torch.func transforms; `tensors` are those of `ops.as_given`."""
    found: Tensor = _Value.apply(*tensors, operation)[0]  # type: ignore[no-untyped-call]
    return found


class _NoForwardMode(torch.autograd.Function):
    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(FORWARD)


class _Value(_NoForwardMode):
    """The values, and the tensors that the backward pass needs."""

    @staticmethod
    def forward(*given: Any) -> tuple[Tensor, ...]:
        *tensors, operation = given
        found, saved = ops.solve(ops.as_given(*tensors), operation, True)
        return found, *saved

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.operation = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*tensors, *output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        found = iter(_Pull.apply(grad, *tensors, ctx.operation))  # type: ignore[no-untyped-call]
        return (*(None if part is None else next(found) for part in tensors[:4]), None, None, None)

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *given: Any) -> tuple[Any, Any]:
        *tensors, operation = given
        V = info.batch_size
        folded = [_folded(a, dim, V) for a, dim in zip(tensors, dims, strict=False)]
        found = _Value.apply(*folded, _repeated(operation, V))  # type: ignore[no-untyped-call]
        # Saved tensors keep the layout of the larger batch, which the backward pass uses as well.
        return (_unfolded(found[0], V), *found[1:]), (0, *(None,) * (len(found) - 1))


class _Pull(_NoForwardMode):
    """The derivatives of Σ grad · value with respect to C, drop_x, drop_z and, if there are any, charges."""

    @staticmethod
    def forward(grad: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        *tensors, operation = rest
        given = ops.as_given(*tensors[:6])
        found = ops.derivatives(grad, given, list(tensors[6:]), operation)
        return tuple(
            torch.zeros_like(part) if by is None else by
            for part, by in zip(given[:4], found, strict=True)
            if part is not None
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ops.ONCE)

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *given: Any) -> tuple[Any, Any]:
        *tensors, operation = given
        V = info.batch_size
        if all(dim is None for dim in dims[1:7]):  # only `grad` is batched; the saved tensors belong to one batch
            grads = tensors[0].movedim(dims[0], 0).unbind()
            parts = [_Pull.apply(grad, *tensors[1:], operation) for grad in grads]  # type: ignore[no-untyped-call]
            found = [torch.stack(part) for part in zip(*parts, strict=True)]
            return tuple(found), (0,) * len(found)
        folded = [_folded(a, dim, V) for a, dim in zip(tensors[:7], dims, strict=False)]
        found = _Pull.apply(*folded, *tensors[7:], _repeated(operation, V))  # type: ignore[no-untyped-call]
        return tuple(_unfolded(a, V) for a in found), (0,) * len(found)


def _folded(A: Tensor | None, dim: int | None, V: int) -> Tensor | None:
    """Merge V batches into one."""
    if A is None:
        return None
    A = A.expand(V, *A.shape) if dim is None else A.movedim(dim, 0)
    return A.reshape(V * A.shape[1], *A.shape[2:])


def _unfolded(A: Tensor, V: int) -> Tensor:
    return A.reshape(V, len(A) // V, *A.shape[1:])


def _repeated(operation: ops.Operation, V: int) -> ops.Operation:
    """Return the operation for V merged batches, each with its own graphs."""
    if operation.graphs is None or operation.graphs.which is None:
        return operation
    return operation._replace(graphs=replace(operation.graphs, which=operation.graphs.which * V))
