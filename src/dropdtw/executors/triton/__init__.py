"""The CUDA executor: one forward and one backward Triton kernel for every table and reducer.

For steps that form a graph, `graphs.py` runs other kernels, with nodes as lanes. The rest of this text is about lists.

A program processes one pair of sequences along its anti-diagonals. Its *lanes* are rows i of the grid, so at step t
lane ℓ is in cell (ℓ + 1, t − ℓ), and all its inputs lie in neighboring lanes: `left` is its own previous value, `up`
is the previous value of the lane above, and `diag` is the previous `up`. Column 0 is an ordinary column; row 0 is
computed beside lane 0 (`cells._row_0`). Rows beyond the last lane belong to the next *strip*. Another program of the
same launch processes it and reads the last row of the strip above from memory as soon as it is written.

Steps run in unrolled blocks of U. While one block is computed, the costs of the next are loaded, and its first state is
stored. The backward pass starts each block from that state, recomputes it with the weights of its edges in registers,
and propagates derivatives back along them. For hard minima, the choices of a block are stored instead if they fit into
one word per lane; nothing is recomputed then. Nothing else of the grid is ever stored.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

import torch
import triton
from torch import Tensor

from dropdtw.executors.triton.cells import REDUCER_NUMBER
from dropdtw.executors.triton.graphs import backward_graphs as backward_graphs
from dropdtw.executors.triton.graphs import forward_graphs as forward_graphs
from dropdtw.executors.triton.graphs import graph_room as graph_room
from dropdtw.executors.triton.launch import as_bits, on, rate_bits, run, wide
from dropdtw.executors.triton.layout import DROP_X, DROP_Z, TableLayout, layout, packs
from dropdtw.executors.triton.passes import backward_pass, forward_pass, sum_rows
from dropdtw.tables.table import CHARGES, Recurrence


class Schedule(NamedTuple):
    """How the work of a pair is divided: lanes, warps, and strips of rows."""

    lanes: int
    warps: int
    strips: int


INTERPRETED: Final = triton.knobs.runtime.interpret
"""Whether kernels run in Triton's interpreter, on CPU tensors, for tests (TRITON_INTERPRET=1)."""

BLOCK: Final = 8
"""Number of unrolled steps, that is, of steps between two stored states."""

TILES = True
"""Whether derivatives with respect to C are stored in tiles of a block's columns, if these are adjacent in memory.

A lane is a row, so without tiles the stores of one step touch one row per lane, four bytes in each.
"""

LENGTHS: Final = {None: 0, "x": 1, "z": 2, "both": 3}
"""The kernels' codes for the length that values are divided by: columns, rows, or both."""

WARP: Final = 32
LARGEST = 64
"""Maximum number of rows that one program takes; more are split into strips of one warp."""

LANES = 32
"""Rows of one strip: with a single warp, steps need no synchronization between warps."""


@cache
def schedule(K: int) -> Schedule:
    """Return the schedule for pairs of K rows."""
    R = max(WARP, 1 << (K - 1).bit_length()) if K <= LARGEST else LANES
    return Schedule(R, -(-R // WARP), -(-K // R))


class Saved(NamedTuple):
    """What the forward pass saves for the backward pass: states, and the weights of the final states.

    top : the rows between strips, where there are several, see `_unwritten`.
    """

    states: Tensor
    top: Tensor | None = None


def _unwritten(size: int, like: Tensor) -> Tensor:
    """Allocate memory for passing numbers between programs of one launch; all bits set means not yet written.

    One more entry after the numbers holds the queue from which programs draw their strips.
    """
    bits = torch.int64 if wide(like) else torch.int32
    return torch.full((size + 1,), -1, dtype=bits, device=like.device).view(like.dtype)


def _queue(passed: Tensor | None) -> Tensor | None:
    """Return the entry that holds the queue."""
    return None if passed is None else passed.view(torch.int32)[-1:]


def forward(
    table: Recurrence,
    reducer: str,
    gamma: float,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    lengths: tuple[Tensor, Tensor] | None,
    gradient: bool,
    normalize: str | None = None,
    *,
    scores: bool = False,
) -> tuple[Tensor, Saved]:
    """Compute the values of a batch, (B,), and what `backward` needs.

    normalize : the length that each value is divided by, see `LENGTHS`.
    scores : whether C holds match costs with the opposite sign; the derivatives are those with respect to the costs.
    """
    saved = room(table, C, gradient, reducer)
    value = saved.states.new_empty(C.shape[0])
    by = _length(normalize, C)
    found, C, drop_x, drop_z, lengths = _turned(table, C, drop_x, drop_z, lengths, scores)
    _, K, N = C.shape
    work = schedule(K)
    tensors = (C, drop_x, drop_z, _paid(found, charges), *saved, _queue(saved.top), value)
    numbers = (K, N, *C.stride(), *drop_x.stride(), *drop_z.stride(), _slots(N, gradient))
    known = (numbers[4] == 1, numbers[6] if numbers[6] in (0, 1) else -1)
    how = (found, REDUCER_NUMBER[reducer], work.strips > 1, gradient, wide(C), *known, by)
    _launch(forward_pass, work, tensors, lengths, numbers, gamma, how)
    return value, saved


def backward(
    table: Recurrence,
    reducer: str,
    gamma: float,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    charges: Tensor | None,
    lengths: tuple[Tensor, Tensor] | None,
    saved: Saved,
    grad: Tensor | float,
    normalize: str | None = None,
    *,
    padding: bool = True,
    scores: bool = False,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Compute the derivatives of Σ grad · value with respect to C, drop_x, drop_z and charges; None for unused costs.

    grad : (B,), or one number for all items.   padding : whether padding gets gradient 0; otherwise it is not written.
    """
    make = torch.zeros if padding and lengths is not None else torch.empty
    dtype, device = saved.states.dtype, C.device
    by_c = make(C.shape, dtype=C.dtype, device=device)
    paid = _layouts(table)[0].cost
    by_x = make(drop_x.shape, dtype=dtype, device=device) if DROP_X.value in paid else None
    by_z = make(drop_z.shape, dtype=dtype, device=device) if DROP_Z.value in paid else None
    rows = C.shape[1]
    by = _length(normalize, C)
    found, C, first, second, lengths = _turned(table, C, drop_x, drop_z, lengths, scores)
    exchanged = C.shape[1] != rows
    out, by_first, by_second = (by_c.mT, by_z, by_x) if exchanged else (by_c, by_x, by_z)
    B, K, N = C.shape
    work = schedule(K)
    by_row = make(B, len(found.kinds), rows + 1, dtype=dtype, device=device) if found.kinds else None
    unused = saved.states  # placeholder that no kernel reads or writes
    below = None
    if work.strips > 1:
        below = _unwritten(B * work.strips * len(found.sent) * (N + 1), saved.states)
    outputs = (out, unused if by_first is None else by_first, unused if by_second is None else by_second, by_row)
    given, step, scale = (grad, grad.stride(0), 0) if isinstance(grad, Tensor) else (None, 0, as_bits(grad))
    tensors = (C, first, second, _paid(found, charges), *saved, _queue(below), given, *outputs, below)
    strides = (*C.stride(), *first.stride(), *second.stride(), *out.stride()[1:], step)
    numbers = (K, N, *strides, _slots(N, True))
    unit = strides[2] == 1 and out.stride(2) == 1
    known = (unit, strides[4] if strides[4] in (0, 1) else -1)
    how = (found, REDUCER_NUMBER[reducer], work.strips > 1, wide(C), *known, by, TILES and unit)
    _launch(backward_pass, work, tensors, lengths, numbers, gamma, how, (scale,))
    return by_c, by_x, by_z, None if by_row is None else _summed(found, by_row)


def _paid(found: TableLayout, charges: Tensor | None) -> Tensor | None:
    """Return the charges (B, 3) in the form that kernels read; None if the table has none."""
    return charges.contiguous() if charges is not None and found.kinds else None


def _summed(found: TableLayout, by_row: Tensor) -> Tensor:
    """Sum the derivatives of each row (B, kinds, rows + 1) to the derivatives with respect to charges (B, 3)."""
    B, _, length = by_row.shape
    summed = torch.empty(B, len(CHARGES), dtype=by_row.dtype, device=by_row.device)
    constants = (found, wide(by_row), LARGEST)
    key = (id(sum_rows), by_row.device, constants)
    with on(by_row):
        run(sum_rows, key, (B, 1), (by_row, summed, length - 1, *constants), num_warps=LARGEST // WARP)
    return summed


def _launch(
    kernel: Any,
    work: Schedule,
    tensors: tuple[Tensor | None, ...],
    lengths: tuple[Tensor, Tensor] | None,
    numbers: tuple[int, ...],
    gamma: float,
    how: tuple[Any, ...],
    scale: tuple[int, ...] = (),
) -> None:
    """Launch a kernel according to its schedule.

    scale : a number, as bits, that replaces the incoming gradients; 0 if these are given.
    """
    C = tensors[0]
    assert C is not None
    bits = (rate_bits(gamma, C), *scale)
    constants = (*how, work.lanes, BLOCK)
    key = (id(kernel), C.device, C.dtype, lengths is None, scale == (0,), constants, max(numbers) >= 1 << 31)
    with on(C):
        arguments = (*tensors, *(lengths or (None, None)), *numbers, *bits, *constants)
        run(kernel, key, (C.shape[0] * work.strips,), arguments, work.warps)


def _turned(
    table: Recurrence,
    C: Tensor,
    drop_x: Tensor,
    drop_z: Tensor,
    lengths: tuple[Tensor, Tensor] | None,
    scores: bool,
) -> tuple[TableLayout, Tensor, Tensor, Tensor, tuple[Tensor, Tensor] | None]:
    """Return the same problem with the shorter sequence along the lanes; its charges are unchanged."""
    if C.shape[1] <= C.shape[2]:
        return _layouts(table, scores)[0], C, drop_x, drop_z, lengths
    return _layouts(table, scores)[1], C.mT, drop_z, drop_x, lengths and (lengths[1], lengths[0])


def _length(normalize: str | None, C: Tensor) -> int:
    """Return the kernels' code for the length to divide values by: `_turned` may have swapped rows and columns."""
    found = LENGTHS[normalize]
    return found if C.shape[1] <= C.shape[2] else (0, 2, 1, 3)[found]


def _layouts(table: Recurrence, scores: bool = False) -> tuple[TableLayout, TableLayout, Recurrence]:
    """Return the layouts of a table and of its transpose, cached by identity: hashing the contents would be slower."""
    found = _LAYOUTS.get((id(table), scores))
    if found is None:
        both = layout(table), layout(table.transpose(), turned=True)
        one, other = (replace(each, scores=True) for each in both) if scores else both
        found = _LAYOUTS[id(table), scores] = one, other, table
    return found


_LAYOUTS: dict[tuple[int, bool], tuple[TableLayout, TableLayout, Recurrence]] = {}


@cache
def _planes(found: TableLayout, reducer: str) -> int:
    """Return how many numbers per lane and block are stored."""
    return 1 if packs(found, reducer == "hard", BLOCK) else found.planes


def _slots(N: int, gradient: bool) -> int:
    return N // BLOCK + 2 if gradient else 1


def room(table: Recurrence, C: Tensor, gradient: bool, reducer: str) -> Saved:
    """Allocate memory for what the forward pass stores."""
    B, K, N = map(int, C.shape)
    found, turned, _ = _layouts(table)
    if K > N:
        found, K, N = turned, N, K
    strips = schedule(K).strips
    dtype = torch.float64 if wide(C) else torch.float32
    size = B * (_planes(found, reducer) * _slots(N, gradient) * K + len(found.final)) if gradient else 0
    kept = torch.empty(size, dtype=dtype, device=C.device)
    if strips == 1:
        return Saved(kept)
    return Saved(kept, _unwritten(B * strips * len(found.start) * (N + 1), kept))
