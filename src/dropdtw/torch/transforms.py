"""The operator behind `drop_dtw` under `torch.func`: support for `grad`, `vmap` and `jacrev`.

`vmap` merges its batches into one larger batch. The kernels compute the derivatives, so second derivatives and
forward mode are not supported.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from dropdtw.torch import ops

FORWARD = (
    "drop_dtw does not support forward-mode derivatives (torch.func.jvp, jacfwd, hessian); use torch.func.grad or "
    "jacrev, or executor='wavefront', which uses ordinary PyTorch operations and is slow"
)


def value(given: ops.Given, call: ops.Call) -> Tensor:
    """Compute the values (B,) of a batch under torch.func transforms."""
    z_lengths, x_lengths = given.lengths or (None, None)
    found: Tensor = _Value.apply(*given[:4], z_lengths, x_lengths, call)[0]  # type: ignore[no-untyped-call]
    return found


class _Value(torch.autograd.Function):
    """The values, and the tensors that the backward pass needs."""

    @staticmethod
    def forward(*given: Any) -> tuple[Tensor, ...]:
        *tensors, call = given
        found, saved = ops.solve(ops.as_given(*tensors), call, True)
        return found, *saved

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.call = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*tensors, *output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        found = iter(_Pull.apply(grad, *tensors, ctx.call))  # type: ignore[no-untyped-call]
        return (*(None if part is None else next(found) for part in tensors[:4]), None, None, None)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(FORWARD)

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *given: Any) -> tuple[Any, Any]:
        *tensors, call = given
        V = info.batch_size
        folded = [_folded(a, dim, V) for a, dim in zip(tensors, dims, strict=False)]
        found = _Value.apply(*folded, _repeated(call, V))  # type: ignore[no-untyped-call]
        # Saved tensors keep the layout of the larger batch, which the backward pass uses as well.
        return (_unfolded(found[0], V), *found[1:]), (0, *(None,) * (len(found) - 1))


class _Pull(torch.autograd.Function):
    """The derivatives of Σ grad · value with respect to C, drop_x, drop_z and, if there are any, charges."""

    @staticmethod
    def forward(grad: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        *tensors, call = rest
        given = ops.as_given(*tensors[:6])
        found = ops.pull(grad, given, list(tensors[6:]), call)
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
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(FORWARD)

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *given: Any) -> tuple[Any, Any]:
        *tensors, call = given
        V = info.batch_size
        if all(dim is None for dim in dims[1:7]):  # only `grad` is batched; the saved tensors belong to one batch
            grads = tensors[0].movedim(dims[0], 0).unbind()
            parts = [_Pull.apply(grad, *tensors[1:], call) for grad in grads]  # type: ignore[no-untyped-call]
            found = [torch.stack(part) for part in zip(*parts, strict=True)]
            return tuple(found), (0,) * len(found)
        folded = [_folded(a, dim, V) for a, dim in zip(tensors[:7], dims, strict=False)]
        found = _Pull.apply(*folded, *tensors[7:], _repeated(call, V))  # type: ignore[no-untyped-call]
        return tuple(_unfolded(a, V) for a in found), (0,) * len(found)


def _folded(A: Tensor | None, dim: int | None, V: int) -> Tensor | None:
    """Merge V batches into one."""
    if A is None:
        return None
    A = A.expand(V, *A.shape) if dim is None else A.movedim(dim, 0)
    return A.reshape(V * A.shape[1], *A.shape[2:])


def _unfolded(A: Tensor, V: int) -> Tensor:
    return A.reshape(V, len(A) // V, *A.shape[1:])


def _repeated(call: ops.Call, V: int) -> ops.Call:
    """Return the call for V merged batches, each with its own graphs."""
    if call.graphs is None or call.graphs.which is None:
        return call
    return call._replace(graphs=replace(call.graphs, which=call.graphs.which * V))
