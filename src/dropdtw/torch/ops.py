"""The operator behind `drop_dtw`, as PyTorch knows it: a forward and a backward, opaque to autograd and compilers.

On the CPU the compiled executor gives value and derivatives in one pass, so the derivatives are what is saved. On
CUDA the Triton kernels save some of the states they pass through, and the backward pass starts from these.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dropdtw import executors
from dropdtw.executors.protocol import Padded
from dropdtw.problem.inputs import Array, refuse_nan_and_minus_inf
from dropdtw.tables.recurrence import Recurrence
from dropdtw.tables.reducers import reducer as find_reducer

_TABLES: dict[str, Recurrence] = {}


def register(table: Recurrence) -> str:
    """A name for the table that an operator can take, the same in every process."""
    key = f"{table.name}#{hashlib.sha256(repr(table).encode()).hexdigest()[:16]}"
    _TABLES[key] = table
    return key


def table(key: str) -> Recurrence:
    """The table of that name."""
    return _TABLES[key]


@cache
def _triton() -> Any:
    """The CUDA executor, imported when first used."""
    from dropdtw.executors import triton

    return triton


def computes_in(C: Tensor) -> torch.dtype:
    """The precision of values and derivatives: float64 for float64, float32 for all else."""
    return torch.float64 if C.dtype == torch.float64 else torch.float32


def pays(key: str, cost: str) -> bool:
    """Whether some edge of the table of that name pays this cost."""
    return any(e.cost == cost for e in _TABLES[key].every_edge)


pays._dynamo_marked_constant = True  # type: ignore[attr-defined]  # see functional._spec


class Call(NamedTuple):
    """What an operator is told beside its tensors: the table's name, the reducer, γ, and the executor ("" for any)."""

    table: str
    reducer: str
    gamma: float
    executor: str = ""


Padding = tuple[Tensor, Tensor] | None


def value(C: Tensor, drop_x: Tensor, drop_z: Tensor, lengths: Padding, call: Call) -> Tensor:
    """The values (B,) of a batch. Lengths are those of the Z and of the X; None: nothing is padded."""
    wanted = torch.is_grad_enabled() and (C.requires_grad or drop_x.requires_grad or drop_z.requires_grad)
    z_lengths, x_lengths = lengths or (None, None)
    if torch.compiler.is_compiling():
        found, _ = forward(C, drop_x, drop_z, z_lengths, x_lengths, *call, wanted)
    elif wanted:
        found = _Forward.apply(C, drop_x, drop_z, z_lengths, x_lengths, call)  # type: ignore[no-untyped-call]
    else:
        found, _ = _solve(C, drop_x, drop_z, lengths, call, False)
    return found  # type: ignore[no-any-return]


def _padding(z_lengths: Tensor | None, x_lengths: Tensor | None) -> Padding:
    """Lengths as operators take them, as a pair: there are both or none."""
    return None if z_lengths is None or x_lengths is None else (z_lengths, x_lengths)


def _solve(
    C: Tensor, drop_x: Tensor, drop_z: Tensor, lengths: Padding, call: Call, gradient: bool
) -> tuple[Tensor, list[Tensor]]:
    """The values, and what the backward pass will need (nothing, without `gradient`)."""
    if call.executor == "triton":
        found, states = _triton().forward(
            _TABLES[call.table], call.reducer, call.gamma, C, drop_x, drop_z, lengths, gradient
        )
        return found, [part for part in states if part is not None] if gradient else []
    table = _TABLES[call.table]
    values, *saved = executors.choose(table, call.executor or None).run_batch(
        table,
        find_reducer(call.reducer, call.gamma),
        checked(C, drop_x, drop_z, lengths),
        gradient=gradient,
        threads=min(len(C), torch.get_num_threads()),
    )
    kept = [torch.from_numpy(np.ascontiguousarray(part)) for part in saved] if gradient else []
    return torch.from_numpy(values).to(computes_in(C)), kept


def can_look(A: Tensor) -> bool:
    """Whether values can be looked at: not on a GPU, which would have to be waited for, nor in transformed code."""
    return (
        A.device.type == "cpu" and not torch.compiler.is_compiling() and not torch._C._are_functorch_transforms_active()
    )


def checked(C: Tensor, drop_x: Tensor, drop_z: Tensor, lengths: Padding) -> Padded:
    """A batch on the CPU as arrays; NaN, −∞ and lengths that the batch has no room for are refused."""
    match, d_x, d_z = (a.detach().to(computes_in(C)).numpy() for a in (C, drop_x, drop_z))
    padded = Padded(match, d_x, d_z, *_lengths(C, lengths))
    _check(padded)
    return padded


def _lengths(C: Tensor, lengths: Padding) -> tuple[Array, Array]:
    B, K, N = C.shape
    if lengths is None:
        return np.full(B, K), np.full(B, N)
    for name, some, full in (("z_lengths", lengths[0], K), ("x_lengths", lengths[1], N)):
        if some.min() < 1 or some.max() > full:
            raise ValueError(f"{name} is {some.tolist()}, but the batch has room for 1 to {full} elements")
    return lengths[0].numpy(), lengths[1].numpy()


def _check(padded: Padded) -> None:
    """Refuse NaN and −∞, but not in the padding."""
    for name, part in zip(("C", "drop_x", "drop_z"), padded, strict=False):
        if not part.min() > -np.inf:
            for b, (k, n) in enumerate(zip(padded.z_lengths, padded.x_lengths, strict=True)):
                within = {"C": (slice(k), slice(n)), "drop_x": (slice(n),), "drop_z": (slice(k),)}[name]
                refuse_nan_and_minus_inf(part[b][within], f"{name}[{b}]")


def _pull(
    grad: Tensor, C: Tensor, drop_x: Tensor, drop_z: Tensor, lengths: Padding, saved: list[Tensor], call: Call
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The derivatives of Σ grad · value by C, drop_x and drop_z; None where it is 0."""
    if call.executor == "triton":
        kept = _triton().Saved(*saved)
        found: tuple[Tensor, Tensor | None, Tensor | None] = _triton().backward(
            _TABLES[call.table], call.reducer, call.gamma, C, drop_x, drop_z, lengths, kept, grad
        )
        return found
    by_c, by_x, by_z = saved
    return (by_c * grad[:, None, None]).to(C.dtype), by_x * grad[:, None], by_z * grad[:, None]


ONCE = (
    "drop_dtw can be differentiated once: its backward pass has no derivative of its own. "
    "For second derivatives use executor='wavefront', which is made of ordinary PyTorch operations and slow"
)


class _Forward(torch.autograd.Function):
    """The operator as eager code runs it: the registered one costs several times as much per call."""

    @staticmethod
    def forward(ctx: Any, C: Tensor, *rest: Any) -> Tensor:
        drop_x, drop_z, z_lengths, x_lengths, ctx.call = rest
        found, saved = _solve(C, drop_x, drop_z, _padding(z_lengths, x_lengths), ctx.call, True)
        ctx.save_for_backward(C, drop_x, drop_z, z_lengths, x_lengths, *saved)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():  # with create_graph: the derivatives must know that they have none
            found = _Backward.apply(grad, *ctx.saved_tensors, ctx.call)  # type: ignore[no-untyped-call]
        else:
            C, drop_x, drop_z, z_lengths, x_lengths, *saved = ctx.saved_tensors
            found = _pull(grad, C, drop_x, drop_z, _padding(z_lengths, x_lengths), saved, ctx.call)
        return *found, None, None, None


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, grad: Tensor, *rest: Any) -> tuple[Tensor | None, ...]:
        C, drop_x, drop_z, z_lengths, x_lengths, *saved, call = rest
        return _pull(grad, C, drop_x, drop_z, _padding(z_lengths, x_lengths), saved, call)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ONCE)


# The same for compilers, registered with what it takes to trace it without running it.


@torch.library.custom_op("dropdtw::forward", mutates_args=())
def forward(
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    table: str,
    reducer: str,
    gamma: float,
    executor: str,
    gradient: bool,
) -> tuple[Tensor, list[Tensor]]:
    """See `_solve`."""
    return _solve(C, drop_x, drop_z, _padding(z_lengths, x_lengths), Call(table, reducer, gamma, executor), gradient)


@forward.register_fake
def _(C, drop_x, drop_z, z_lengths, x_lengths, table, reducer, gamma, executor, gradient):  # type: ignore[no-untyped-def]
    B, K, N = C.shape
    found = C.new_empty(B, dtype=computes_in(C))
    if not gradient:
        return found, []
    if executor == "triton":
        return found, [part for part in _triton().room(_TABLES[table], C, gradient) if part is not None]
    return found, [found.new_empty(shape) for shape in ((B, K, N), (B, N), (B, K))]


@torch.library.custom_op("dropdtw::backward", mutates_args=())
def backward(
    grad: Tensor,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    saved: list[Tensor],
    table: str,
    reducer: str,
    gamma: float,
    executor: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """See `_pull`."""
    call = Call(table, reducer, gamma, executor)
    by_c, by_x, by_z = _pull(grad, C, drop_x, drop_z, _padding(z_lengths, x_lengths), saved, call)
    by_x = torch.zeros(drop_x.shape, dtype=drop_x.dtype, device=C.device) if by_x is None else by_x
    by_z = torch.zeros(drop_z.shape, dtype=drop_z.dtype, device=C.device) if by_z is None else by_z
    return by_c, by_x, by_z


@backward.register_fake
def _(grad, C, drop_x, drop_z, z_lengths, x_lengths, saved, table, reducer, gamma, executor):  # type: ignore[no-untyped-def]
    return tuple(torch.empty_like(a, memory_format=torch.contiguous_format) for a in (C, drop_x, drop_z))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, list[Tensor]]) -> None:
    C, drop_x, drop_z, z_lengths, x_lengths, *ctx.call, _ = inputs
    ctx.save_for_backward(C, drop_x, drop_z, z_lengths, x_lengths, *output[1])


def _back(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    C, drop_x, drop_z, z_lengths, x_lengths, *saved = ctx.saved_tensors
    found = backward(grad, C, drop_x, drop_z, z_lengths, x_lengths, saved, *ctx.call)
    return (*found, *(None,) * 7)


def _refuse(ctx: Any, *grads: Any) -> Any:
    raise RuntimeError(ONCE)


forward.register_autograd(_back, setup_context=_keep)
backward.register_autograd(_refuse, setup_context=lambda ctx, inputs, output: None)
