"""The PyTorch operator behind `drop_dtw`: a forward and a backward pass, opaque to autograd and torch.compile.

On the CPU, the compiled executor computes value and derivatives in one pass, so the derivatives are saved. On CUDA,
the Triton kernels save some intermediate states, and the backward pass starts from these.
"""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from dropdtw import executors
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array, refuse_nan_and_minus_inf
from dropdtw.tables.reducers import reducer as find_reducer
from dropdtw.tables.table import CHARGES, Recurrence
from dropdtw.torch.operators import Tensors, operator

if TYPE_CHECKING:
    from dropdtw.torch.orders import BatchGraphs

GRAPHS: dict[str, BatchGraphs] = {}
"""Graphs of batches that torch.compile has traced, by name."""

_TABLES: dict[str, Recurrence] = {}


def register(table: Recurrence) -> str:
    """Return a name for the table that an operator can take; it is the same in every process."""
    key = f"{table.name}#{hashlib.sha256(repr(table).encode()).hexdigest()[:16]}"
    _TABLES[key] = table
    return key


def table(key: str) -> Recurrence:
    """Return the table of that name."""
    return _TABLES[key]


@cache
def _triton() -> Any:
    """Return the CUDA executor, imported lazily."""
    from dropdtw.executors import triton

    return triton


@cache
def _find_triton() -> bool:
    if importlib.util.find_spec("triton") is None:
        return False
    import triton

    return hasattr(triton, "constexpr_function")


def has_triton() -> bool:
    """Whether a Triton that can compile the kernels is installed; 3.6 and 3.9 are tested."""
    return _find_triton()


def computes_in(C: Tensor) -> torch.dtype:
    """Return the precision of values and derivatives: float64 for float64, float32 for everything else."""
    return torch.float64 if C.dtype == torch.float64 else torch.float32


def pays(key: str, cost: str) -> bool:
    """Whether some edge of the table of that name pays this cost."""
    return any(e.cost == cost for e in _TABLES[key].every_edge)


def pays_charges(key: str) -> bool:
    """Whether some edge of the table of that name pays a charge."""
    return any(e.plus is not None for e in _TABLES[key].every_edge)


has_triton._dynamo_marked_constant = True  # type: ignore[attr-defined]  # see functional._spec
pays._dynamo_marked_constant = True  # type: ignore[attr-defined]
pays_charges._dynamo_marked_constant = True  # type: ignore[attr-defined]


class Operation(NamedTuple):
    """The settings of an operator: the table's name, the reducer, γ, and the executor ("" for any).

    graphs : the graphs of the steps; None keeps the order of each Z. Under torch.compile operators take no graphs, so
        `key` names them in `GRAPHS`.
    """

    table: str
    reducer: str
    gamma: float
    executor: str = ""
    graphs: BatchGraphs | None = None
    key: str = ""


Padding = tuple[Tensor, Tensor] | None


def within(C: Tensor, z_lengths: Tensor | None, x_lengths: Tensor | None) -> Tensor:
    """Return a mask, broadcastable to C (B, K, N), of the entries that are not padding."""
    mask = torch.ones(1, 1, 1, dtype=torch.bool, device=C.device)
    for lengths, dim in ((z_lengths, 1), (x_lengths, 2)):
        if lengths is not None:
            here = torch.arange(C.shape[dim], device=C.device) < lengths.to(C.device)[:, None]
            mask = mask & here.unsqueeze(3 - dim)
    return mask


def value(given: Costs, operation: Operation) -> Tensor:
    """Compute the values (B,) of a batch."""
    tensors = (*given[:4], *(given.lengths or (None, None)))
    wanted = torch.is_grad_enabled() and (
        given.match.requires_grad
        or given.drop_x.requires_grad
        or given.drop_z.requires_grad
        or (given.charges is not None and given.charges.requires_grad)
    )
    if torch.compiler.is_compiling():
        found, _ = forward(*tensors, *operation[:4], operation.key, wanted)
    elif torch._C._are_functorch_transforms_active():
        from dropdtw.torch import transforms

        found = transforms.value(tensors, operation)
    elif wanted:
        found = _differentiable(*tensors, operation)
    else:
        found, _ = solve(given, operation, False)
    return found  # type: ignore[no-any-return]


def as_given(
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
) -> Costs:
    """Bundle the tensors of an operator as `Costs`, with lengths as a pair: both or neither."""
    lengths = None if z_lengths is None or x_lengths is None else (z_lengths, x_lengths)
    return Costs(C, drop_x, drop_z, charges, lengths, torch)


def solve(given: Costs, operation: Operation, gradient: bool) -> tuple[Tensor, list[Tensor]]:
    """Compute the values and the tensors that the backward pass needs (none without `gradient`)."""
    table, C = _TABLES[operation.table], given.match
    if operation.executor == "triton":
        if operation.graphs is not None:
            found, kept = _triton().forward_graphs(
                table, operation.reducer, operation.gamma, *given[:5], operation.graphs, gradient
            )
            return found, list(kept) if gradient else []
        found, states = _triton().forward(table, operation.reducer, operation.gamma, *given[:5], gradient)
        return found, [part for part in states if part is not None] if gradient else []
    values, *computed = executors.choose(
        table, operation.executor or None, graph=operation.graphs is not None
    ).run_batch(
        table,
        find_reducer(operation.reducer, operation.gamma),
        checked(given),
        graphs=None if operation.graphs is None else operation.graphs.of_item(len(C)),
        gradient=gradient,
        threads=torch.get_num_threads(),
    )
    saved = computed[: 3 if given.charges is None else 4] if gradient else []
    return torch.from_numpy(values).to(computes_in(C)), [torch.from_numpy(np.ascontiguousarray(d)) for d in saved]


def can_look(A: Tensor) -> bool:
    """Whether values can be read: not on a GPU, which would force a synchronization, nor under transforms."""
    return (
        A.device.type == "cpu" and not torch.compiler.is_compiling() and not torch._C._are_functorch_transforms_active()
    )


def checked(given: Costs) -> Costs:
    """Return a batch on the CPU as arrays.

    Raises for NaN, −∞, charges that are not finite numbers ≥ 0, and lengths that exceed the batch.
    """
    dtype = computes_in(given.match)
    C, drop_x, drop_z, charges = (None if part is None else part.detach().to(dtype).numpy() for part in given[:4])
    found = Costs(C, drop_x, drop_z, charges, _lengths(given))
    for name, part in zip(("C", "drop_x", "drop_z"), found, strict=False):
        if not part.min() > -np.inf:
            for b, (k, n) in enumerate(zip(*found.sizes, strict=True)):
                within = {"C": (slice(k), slice(n)), "drop_x": (slice(n),), "drop_z": (slice(k),)}[name]
                refuse_nan_and_minus_inf(part[b][within], f"{name}[{b}]")
    if charges is not None:
        _check_charges(charges)
    return found


def _lengths(given: Costs) -> tuple[Array, Array] | None:
    if given.lengths is None:
        return None
    _, K, N = given.match.shape
    (z, x), full = given.lengths, ((K, "rows"), (N, "columns"))
    for name, some, (most, parts) in zip(("z_lengths", "x_lengths"), (z, x), full, strict=True):
        if some.min() < 1 or some.max() > most:
            raise ValueError(f"{name} is {some.tolist()}, but C has {most} {parts}; give lengths from 1 to {most}")
    return z.numpy(), x.numpy()


def _check_charges(charges: Array) -> None:
    bad = ~((charges >= 0) & (charges < np.inf))
    if bad.any():
        b, k = np.argwhere(bad)[0]
        raise ValueError(f"{list(CHARGES)[k]} is {charges[b, k]} for item {b}; give finite numbers ≥ 0")


Derivatives = tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]
"""Derivatives with respect to C, drop_x, drop_z and charges. None stands for zeros, or if there are no charges."""


def derivatives(grad: Tensor, given: Costs, saved: list[Tensor], operation: Operation) -> Derivatives:
    """Compute the derivatives of Σ grad · value."""
    if operation.executor == "triton":
        how = (_TABLES[operation.table], operation.reducer, operation.gamma, *given[:5])
        found: Derivatives
        if operation.graphs is not None:
            found = _triton().backward_graphs(*how, operation.graphs, tuple(saved), grad)
        else:
            found = _triton().backward(*how, _triton().Saved(*saved), grad)
        return found
    by_c, by_x, by_z, *by_charges = saved
    by_charges = [by * grad[:, None] for by in by_charges]
    return (
        (by_c * grad[:, None, None]).to(given.match.dtype),
        by_x * grad[:, None],
        by_z * grad[:, None],
        by_charges[0] if by_charges else None,
    )


def solved(given: Costs, operation: Operation) -> tuple[Tensor, Derivatives]:
    """Compute the values and the derivatives of their sum, without autograd."""
    values, saved = solve(given, operation, True)
    if operation.executor == "triton" and operation.graphs is None:
        how = (_TABLES[operation.table], operation.reducer, operation.gamma, *given[:5])
        return values, _triton().backward(*how, _triton().Saved(*saved), 1.0)
    if operation.executor == "triton":
        return values, derivatives(torch.ones_like(values), given, saved, operation)
    by_c, by_x, by_z, *by_charges = saved
    return values, (by_c.to(given.match.dtype), by_x, by_z, by_charges[0] if by_charges else None)


ONCE = (
    "drop_dtw can be differentiated only once: its backward pass has no derivative. "
    "For second derivatives use executor='wavefront', which uses ordinary PyTorch operations and is slow"
)


def _forward(tensors: Tensors, operation: Operation) -> tuple[Tensor, Tensors, Operation]:
    found, saved = solve(as_given(*cast("Any", tensors)), operation, True)
    return found, (*tensors, *saved), operation


def _backward(grad: Tensor, kept: Tensors, operation: Operation) -> Derivatives:
    return derivatives(grad, as_given(*cast("Any", kept[:6])), cast("list[Tensor]", list(kept[6:])), operation)


_differentiable = operator(_forward, _backward, ONCE)
"""The operator for eager code."""


# The same for torch.compile, registered with a fake implementation so that tracing does not run it.


@torch.library.custom_op("dropdtw::forward", mutates_args=())
def forward(
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    table: str,
    reducer: str,
    gamma: float,
    executor: str,
    key: str,
    gradient: bool,
) -> tuple[Tensor, list[Tensor]]:
    """See `solve`."""
    given = as_given(C, drop_x, drop_z, charges, z_lengths, x_lengths)
    return solve(given, Operation(table, reducer, gamma, executor, GRAPHS.get(key), key), gradient)


@forward.register_fake
def _(C, drop_x, drop_z, charges, z_lengths, x_lengths, table, reducer, gamma, executor, key, gradient):  # type: ignore[no-untyped-def]
    B, K, N = C.shape
    found = C.new_empty(B, dtype=computes_in(C))
    if not gradient:
        return found, []
    if executor == "triton" and key:
        return found, list(_triton().graph_room(_TABLES[table], C, GRAPHS[key], gradient))
    if executor == "triton":
        return found, [part for part in _triton().room(_TABLES[table], C, gradient, reducer) if part is not None]
    shapes = ((B, K, N), (B, N), (B, K), (B, 3))
    return found, [found.new_empty(shape) for shape in (shapes[:3] if charges is None else shapes)]


@torch.library.custom_op("dropdtw::backward", mutates_args=())
def backward(
    grad: Tensor,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    z_lengths: Tensor | None,
    x_lengths: Tensor | None,
    saved: list[Tensor],
    table: str,
    reducer: str,
    gamma: float,
    executor: str,
    key: str,
) -> list[Tensor]:
    """See `derivatives`. Here every derivative is a tensor; without charges, there is none with respect to charges."""
    given = as_given(C, drop_x, drop_z, charges, z_lengths, x_lengths)
    found = derivatives(grad, given, saved, Operation(table, reducer, gamma, executor, GRAPHS.get(key), key))
    return [
        torch.zeros(part.shape, dtype=part.dtype, device=C.device) if by is None else by
        for part, by in zip(given[:4], found, strict=True)
        if part is not None
    ]


@backward.register_fake
def _(grad, C, drop_x, drop_z, charges, z_lengths, x_lengths, saved, table, reducer, gamma, executor, key):  # type: ignore[no-untyped-def]
    parts = (C, drop_x, drop_z, charges)
    return [torch.empty_like(a, memory_format=torch.contiguous_format) for a in parts if a is not None]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, list[Tensor]]) -> None:
    *tensors, ctx.table, ctx.reducer, ctx.gamma, ctx.executor, ctx.key, _ = inputs
    ctx.save_for_backward(*tensors, *output[1])


def _back(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    tensors = ctx.saved_tensors
    operation = (ctx.table, ctx.reducer, ctx.gamma, ctx.executor, ctx.key)
    by_c, by_x, by_z, *by_charges = backward(grad, *tensors[:6], list(tensors[6:]), *operation)
    return (by_c, by_x, by_z, by_charges[0] if by_charges else None, *(None,) * 8)


def _refuse(ctx: Any, *grads: Any) -> Any:
    raise RuntimeError(ONCE)


forward.register_autograd(_back, setup_context=_keep)
backward.register_autograd(_refuse, setup_context=lambda ctx, inputs, output: None)
