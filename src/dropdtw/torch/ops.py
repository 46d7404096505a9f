"""The operator behind `drop_dtw`, as PyTorch knows it: a forward and a backward, each opaque to autograd and compilers.

On the CPU the compiled executor gives value and derivatives in one pass, so the derivatives are what is saved. On
CUDA the Triton kernels save some of the states they pass through, and the backward pass starts from these.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dropdtw import executors
from dropdtw.problem import Costs, Result
from dropdtw.recurrence import Recurrence
from dropdtw.reducers import reducer as find_reducer

_TABLES: dict[str, Recurrence] = {}


def register(table: Recurrence) -> str:
    """A name for the table that an operator can take, the same in every process."""
    key = f"{table.name}#{hashlib.sha256(repr(table).encode()).hexdigest()[:16]}"
    _TABLES[key] = table
    return key


def table(key: str) -> Recurrence:
    """The table of that name."""
    return _TABLES[key]


def computes_in(C: Tensor) -> torch.dtype:
    """The precision of values and derivatives: float64 for float64, float32 for all else."""
    return torch.float64 if C.dtype == torch.float64 else torch.float32


# Lengths are two tensors (B,), or two empty ones where nothing is padded. `saved` is empty without `gradient`.


@torch.library.custom_op("dropdtw::forward", mutates_args=())
def forward(
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    z_lengths: Tensor,
    x_lengths: Tensor,
    table: str,
    reducer: str,
    gamma: float,
    executor: str,
    gradient: bool,
) -> tuple[Tensor, list[Tensor]]:
    """The values of a batch, and what its backward pass will need."""
    if executor == "triton":
        from dropdtw.kernels import triton

        lengths = (z_lengths, x_lengths) if len(z_lengths) else None
        value, saved = triton.forward(_TABLES[table], reducer, gamma, C, drop_x, drop_z, lengths, gradient)
        return value, list(saved) if gradient else []
    arrays = [np.ascontiguousarray(a.detach().to(computes_in(C)).numpy()) for a in (drop_x, drop_z)]
    match = C.detach().to(computes_in(C)).numpy()
    batch = [
        Costs(match[b, :k, :n], arrays[0][b, :n], arrays[1][b, :k])
        for b, (k, n) in enumerate(_sizes(C, z_lengths, x_lengths))
    ]
    found = executors.run_batch(
        _TABLES[table],
        find_reducer(reducer, gamma),
        batch,
        gradient=gradient,
        executor=executor or None,
        threads=min(len(batch), torch.get_num_threads()),
    )
    value = torch.tensor([r.value for r in found], dtype=computes_in(C))
    return value, _stacked(found, C) if gradient else []


def _sizes(C: Tensor, z_lengths: Tensor, x_lengths: Tensor) -> list[tuple[int, int]]:
    B, K, N = C.shape
    return list(zip(z_lengths.tolist(), x_lengths.tolist(), strict=True)) if len(z_lengths) else [(K, N)] * B


def _stacked(found: list[Result], C: Tensor) -> list[Tensor]:
    """The derivatives of a batch, 0 in the padding."""
    B, K, N = C.shape
    make: Any = torch.zeros
    stacked = [make(shape, dtype=computes_in(C)) for shape in ((B, K, N), (B, N), (B, K))]
    for b, result in enumerate(found):
        for whole, part in zip(stacked, result[1:], strict=True):
            whole[b][tuple(map(slice, part.shape))] = torch.from_numpy(part)
    return stacked


@forward.register_fake
def _(C, drop_x, drop_z, z_lengths, x_lengths, table, reducer, gamma, executor, gradient):  # type: ignore[no-untyped-def]
    B, K, N = C.shape
    value = C.new_empty(B, dtype=computes_in(C))
    if not gradient:
        return value, []
    if executor == "triton":
        from dropdtw.kernels import triton

        return value, list(triton.room(_TABLES[table], C, gradient))
    return value, [value.new_empty(shape) for shape in ((B, K, N), (B, N), (B, K))]


@torch.library.custom_op("dropdtw::backward", mutates_args=())
def backward(
    grad: Tensor,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    z_lengths: Tensor,
    x_lengths: Tensor,
    saved: list[Tensor],
    table: str,
    reducer: str,
    gamma: float,
    executor: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """The derivatives of Σ grad · value by C, drop_x and drop_z."""
    if executor == "triton":
        from dropdtw.kernels import triton

        lengths = (z_lengths, x_lengths) if len(z_lengths) else None
        kept = triton.Saved(*saved)
        return triton.backward(_TABLES[table], reducer, gamma, C, drop_x, drop_z, lengths, kept, grad.contiguous())
    by_c, by_x, by_z = saved
    return (
        (by_c * grad[:, None, None]).to(C.dtype),
        (by_x * grad[:, None]).to(drop_x.dtype),
        (by_z * grad[:, None]).to(drop_z.dtype),
    )


@backward.register_fake
def _(grad, C, drop_x, drop_z, z_lengths, x_lengths, saved, table, reducer, gamma, executor):  # type: ignore[no-untyped-def]
    return tuple(torch.empty_like(a, memory_format=torch.contiguous_format) for a in (C, drop_x, drop_z))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, list[Tensor]]) -> None:
    C, drop_x, drop_z, z_lengths, x_lengths, *ctx.how, gradient = inputs
    ctx.save_for_backward(C, drop_x, drop_z, z_lengths, x_lengths, *output[1])
    ctx.set_materialize_grads(False)


def _pull(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Any, ...]:
    nothing = (None,) * 7
    if grad is None:
        return (None, None, None, *nothing)
    C, drop_x, drop_z, z_lengths, x_lengths, *saved = ctx.saved_tensors
    return (*backward(grad, C, drop_x, drop_z, z_lengths, x_lengths, saved, *ctx.how), *nothing)


forward.register_autograd(_pull, setup_context=_keep)


def _no_second_derivative(ctx: Any, *grads: Any) -> Any:
    raise RuntimeError(
        "drop_dtw can be differentiated once: its backward pass has no derivative of its own. "
        "For second derivatives use executor='wavefront', which is made of ordinary PyTorch operations and slow"
    )


backward.register_autograd(_no_second_derivative, setup_context=lambda ctx, inputs, output: None)
