"""Run the kernels of `walks.py` on batches whose steps form graphs.

The backward pass computes the derivatives of match costs and drop_z per node. `sum_labels` adds up those of each label,
always in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dropdtw.executors.triton.arcs import Stacked, numbers, shape_of, stacked
from dropdtw.executors.triton.cells import REDUCER_NUMBER
from dropdtw.executors.triton.launch import launch, rate_bits, wide
from dropdtw.executors.triton.layout import DROP_X, DROP_Z, layout
from dropdtw.executors.triton.walks import sum_labels, walk_backward, walk_forward
from dropdtw.tables.table import CHARGES, Recurrence

if TYPE_CHECKING:
    from dropdtw.torch.orders import BatchGraphs

Lengths = tuple[Tensor, Tensor] | None
COLUMNS = 32
"""Number of columns that one program of `sum_labels` adds up."""


def forward_graphs(
    table: Recurrence,
    reducer: str,
    gamma: float,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    lengths: Lengths,
    batch: BatchGraphs,
    gradient: bool,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Compute the values (B,) and what `backward_graphs` needs: all columns, and the weights of final nodes."""
    saved = graph_room(table, C, batch, gradient)
    value = torch.empty(len(C), dtype=saved[0].dtype, device=C.device)
    graphs = _stacked(table, C, batch)
    tensors = (*_read(graphs, table, C, drop_x, drop_z, charges, lengths, batch), *saved, value)
    sizes = (*C.shape[1:], graphs.V, *C.stride(), *drop_x.stride(), *drop_z.stride())
    how = (layout(table), graphs.shape, REDUCER_NUMBER[reducer], gradient, wide(C), graphs.lanes)
    launch(walk_forward, (len(C),), tensors, sizes, how, _warps(graphs.lanes), (rate_bits(gamma, C),))
    return value, saved


def backward_graphs(
    table: Recurrence,
    reducer: str,
    gamma: float,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    lengths: Lengths,
    batch: BatchGraphs,
    saved: tuple[Tensor, ...],
    grad: Tensor,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Compute the derivatives of Σ grad · value with respect to C, drop_x, drop_z and charges; None if unused."""
    B, K, N = C.shape
    found, graphs = layout(table), _stacked(table, C, batch)
    new: dict[str, Any] = {"dtype": saved[0].dtype, "device": C.device}
    by_node = torch.empty(B, N, graphs.V, **new)
    by_x = torch.zeros(B, N, **new) if DROP_X.value in found.cost else None
    by_drop = torch.empty(B, 1, graphs.V, **new) if DROP_Z.value in found.cost else None
    by_charges = torch.zeros(B, len(CHARGES), **new) if found.kinds else None
    outputs = (by_node, *(grad if by is None else by for by in (by_x, by_drop, by_charges)))
    tensors = (*_read(graphs, table, C, drop_x, drop_z, charges, lengths, batch), *saved, grad, *outputs)
    sizes = (K, N, graphs.V, *C.stride(), *drop_x.stride(), *drop_z.stride(), grad.stride(0))
    how = (found, graphs.shape, REDUCER_NUMBER[reducer], wide(C), graphs.lanes)
    launch(walk_backward, (len(C),), tensors, sizes, how, _warps(graphs.lanes), (rate_bits(gamma, C),))
    by_c = torch.empty(B, K, N, dtype=C.dtype, device=C.device)
    _sum_labels(graphs, by_node, by_c, lengths, batch, N, True)
    by_z = None
    if by_drop is not None:
        by_z = torch.empty(B, K, **new)
        _sum_labels(graphs, by_drop, by_z[..., None], lengths, batch, N, False)
    return by_c, by_x, by_z, by_charges


def graph_room(table: Recurrence, C: Tensor, batch: BatchGraphs, gradient: bool) -> tuple[Tensor, Tensor]:
    """Allocate memory for what the forward pass stores."""
    B, _, N = C.shape
    V = shape_of(batch.distinct, table)[1]
    found = layout(table)
    dtype = torch.float64 if wide(C) else torch.float32
    columns = (B, found.kept, N + 1, V) if gradient else (1,)
    ends = (B, len(found.final), V) if gradient else (1,)
    return torch.empty(columns, dtype=dtype, device=C.device), torch.empty(ends, dtype=dtype, device=C.device)


def _stacked(table: Recurrence, C: Tensor, batch: BatchGraphs) -> Stacked:
    return stacked(batch.distinct, table, int(C.shape[1]), wide(C), C.device)


def _read(
    graphs: Stacked,
    table: Recurrence,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    lengths: Lengths,
    batch: BatchGraphs,
) -> tuple[Tensor | None, ...]:
    """Return the inputs that both passes read, in the form that kernels take."""
    charged = charges.contiguous() if charges is not None and layout(table).kinds else None
    which = None if batch.which is None else numbers(batch.which, C.device)
    return (C, drop_x, drop_z, charged, *(lengths or (None, None)), which, graphs.nodes, graphs.arcs, graphs.costs)


def _warps(lanes: int) -> int:
    """One node per thread. With two, sums over nodes would depend on the sizes of the other graphs in the batch."""
    return min(16, -(-lanes // 32))


def _sum_labels(
    graphs: Stacked, parts: Tensor, found: Tensor, lengths: Lengths, batch: BatchGraphs, room: int, padded: bool
) -> None:
    B, K, N = found.shape
    which = None if batch.which is None else numbers(batch.which, parts.device)
    tensors = (parts, *(lengths or (None, None)), which, graphs.nodes, graphs.members, found)
    rows = min(16, 1 << (K - 1).bit_length())
    columns = COLUMNS if N > 1 else 1
    sizes = (K, N, room, graphs.V, *found.stride(), graphs.members.shape[2])
    grid = (B, -(-N // columns), -(-K // rows))
    launch(sum_labels, grid, tensors, sizes, (rows, columns, graphs.lanes, padded), 4)
