"""The CUDA executor: one Triton kernel forward and one backward, for every table and reducer.

Where steps form a graph, `graphs.py` runs others, with nodes as lanes. What follows is about lists.

A program walks one pair of sequences along its anti-diagonals. Its *lanes* are rows i of the grid, so at step t lane
ℓ is in cell (ℓ + 1, t − ℓ), and all it needs lies in neighbouring lanes: `left` is its own last value, `up` is the
last value of the lane above, and `diag` is the last `up`. Column 0 is a column like any other; row 0 is computed
beside lane 0 (`cells._row_0`). Rows beyond the last lane belong to the next *strip*, which reads the last row of
the strip above it from memory; strips advance in *chunks* of steps, one launch for all that are ready.

Steps are taken in blocks of U, unrolled. The next block's costs are loaded while this one is computed, and its first
state is written down; the backward pass starts each block from there, computes it again with the weights of its
edges in registers, and pushes derivatives back along them. Nothing else of the grid is ever stored.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from dropdtw.executors.triton.layout import DROP_X, DROP_Z, Layout, layout
from dropdtw.executors.triton.passes import backward_pass, forward_pass, sum_rows
from dropdtw.tables.table import CHARGES, Recurrence


class Schedule(NamedTuple):
    """How a batch is worked off: lanes, warps, strips of rows, blocks of steps per chunk, and the launches."""

    lanes: int
    warps: int
    strips: int
    chunk: int
    launches: tuple[tuple[int, int, int], ...]  # (number, first strip, count of strips)


INTERPRETED: Final = triton.knobs.runtime.interpret
"""Whether kernels run in Triton's interpreter, on CPU tensors, for tests (TRITON_INTERPRET=1)."""

BLOCK: Final = 8
"""Steps that are unrolled: between two states that are written down."""

TILES = True
"""Whether derivatives by C are stored in tiles of a block's columns, where these are neighbours in memory.

A lane is a row, so that the stores of one step touch as many rows as there are lanes, four bytes in each.
"""

LENGTHS: Final = {None: 0, "x": 1, "z": 2, "both": 3}
"""What values can be divided by, as kernels know it: the columns, the rows, or both."""

FEWEST: Final = 32
LANES: Final = 128
"""Rows of one strip, at least and at most: a warp, and four."""


@cache
def schedule(K: int, N: int) -> Schedule:
    """The schedule for a batch of (K, N)."""
    R = max(FEWEST, min(LANES, 1 << (K - 1).bit_length()))
    strips = -(-K // R)
    blocks = -(-(min(R, K) + N) // BLOCK)
    if strips == 1:
        return Schedule(R, -(-R // 32), 1, blocks, ((0, 0, 1),))
    # A chunk is long enough that a strip two launches behind the one above it never needs what is not yet there.
    chunk = -(-(R + BLOCK) // BLOCK)
    chunks = -(-blocks // chunk)
    launches = []
    for number in range(chunks + 2 * (strips - 1)):
        first = max(0, -(-(number - chunks + 1) // 2))
        launches.append((number, first, min(strips - 1, number // 2) - first + 1))
    return Schedule(R, -(-R // 32), strips, chunk, tuple(launches))


class Saved(NamedTuple):
    """What the forward pass leaves for the backward pass: states and the weights of the final ones.

    top : the rows between strips, where there are several.
    """

    states: Tensor
    top: Tensor | None = None

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """Both, as kernels take them."""
        return self.states, self.states if self.top is None else self.top


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
) -> tuple[Tensor, Saved]:
    """The values of a batch, (B,), and what `backward` needs.

    normalize : the length that each value is divided by, see `LENGTHS`.
    """
    saved = room(table, C, gradient)
    value = torch.empty(C.shape[0], dtype=saved.states.dtype, device=C.device)
    by = _length(normalize, C)
    found, C, drop_x, drop_z, lengths = _turned(table, C, drop_x, drop_z, lengths)
    _, K, N = C.shape
    work = schedule(K, N)
    tensors = (C, drop_x, drop_z, _paid(found, charges), *saved.tensors, value)
    numbers = (K, N, *C.stride(), *drop_x.stride(), *drop_z.stride(), _slots(N, gradient))
    how = (found, REDUCER_NUMBER[reducer], work.strips > 1, gradient, wide(C), numbers[4] == 1, by)
    _launch(forward_pass, work, work.launches, tensors, lengths, numbers, gamma, how)
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
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """The derivatives of Σ grad · value by C, drop_x, drop_z and charges; None where the table does not pay such.

    grad : (B,), or one number for all items.
    """
    make = torch.empty if lengths is None else torch.zeros  # padding has derivative 0
    dtype, device = saved.states.dtype, C.device
    by_c = make(C.shape, dtype=C.dtype, device=device)
    paid = _layouts(table)[0].cost
    by_x = make(drop_x.shape, dtype=dtype, device=device) if DROP_X.value in paid else None
    by_z = make(drop_z.shape, dtype=dtype, device=device) if DROP_Z.value in paid else None
    rows = C.shape[1]
    by = _length(normalize, C)
    found, C, first, second, lengths = _turned(table, C, drop_x, drop_z, lengths)
    exchanged = C.shape[1] != rows
    out, by_first, by_second = (by_c.mT, by_z, by_x) if exchanged else (by_c, by_x, by_z)
    B, K, N = C.shape
    work = schedule(K, N)
    by_row = make(B, len(found.kinds), rows + 1, dtype=dtype, device=device) if found.kinds else None
    unused = saved.states  # where no kernel reads or writes
    carry = below = unused
    if work.strips > 1:
        carry = torch.empty(B * work.strips, found.carried, work.lanes, dtype=dtype, device=device)
        below = torch.empty(B * work.strips, len(found.sent), N + 1, dtype=dtype, device=device)
    outputs = (out, unused if by_first is None else by_first, unused if by_second is None else by_second, by_row)
    given, step, scale = (grad, grad.stride(0), 0) if isinstance(grad, Tensor) else (None, 0, as_bits(grad))
    tensors = (C, first, second, _paid(found, charges), *saved.tensors, given, *outputs, carry, below)
    strides = (*C.stride(), *first.stride(), *second.stride(), *out.stride()[1:], step)
    numbers = (K, N, *strides, _slots(N, True))
    unit = strides[2] == 1 and out.stride(2) == 1
    how = (found, REDUCER_NUMBER[reducer], work.strips > 1, wide(C), unit, by, TILES and unit)
    _launch(backward_pass, work, reversed(work.launches), tensors, lengths, numbers, gamma, how, (scale,))
    return by_c, by_x, by_z, None if by_row is None else _summed(found, by_row)


def _paid(found: Layout, charges: Tensor | None) -> Tensor | None:
    """The charges (B, 3) as kernels read them; None where the table makes none."""
    return charges.contiguous() if charges is not None and found.kinds else None


def _summed(found: Layout, by_row: Tensor) -> Tensor:
    """The derivatives (B, 3) by charges, of those (B, kinds, rows + 1) of each row."""
    B, _, length = by_row.shape
    summed = torch.empty(B, len(CHARGES), dtype=by_row.dtype, device=by_row.device)
    constants = (found, wide(by_row), LANES)
    key = (id(sum_rows), by_row.device, constants)
    with on(by_row):
        run(sum_rows, key, (B, 1), (by_row, summed, length - 1, *constants), num_warps=-(-LANES // 32))
    return summed


def _launch(
    kernel: Any,
    work: Schedule,
    launches: Iterable[tuple[int, int, int]],
    tensors: tuple[Tensor | None, ...],
    lengths: tuple[Tensor, Tensor] | None,
    numbers: tuple[int, ...],
    gamma: float,
    how: tuple[Any, ...],
    scale: tuple[int, ...] = (),
) -> None:
    """Launch a kernel as scheduled.

    scale : what stands in place of derivatives, as bits; 0 where they are given.
    """
    C = tensors[0]
    assert C is not None
    bits = (rate_bits(gamma, C), *scale)
    constants = (*how, work.lanes, BLOCK)
    key = (id(kernel), C.device, C.dtype, lengths is None, scale == (0,), constants, max(numbers) >= 1 << 31)
    with on(C):
        for number, first, count in launches:
            arguments = (*tensors, *(lengths or (None, None)), *numbers, number, work.chunk, first, *bits, *constants)
            run(kernel, key, (C.shape[0], count), arguments, work.warps)


def _turned(
    table: Recurrence, C: Tensor, drop_x: Tensor, drop_z: Tensor, lengths: tuple[Tensor, Tensor] | None
) -> tuple[Layout, Tensor, Tensor, Tensor, tuple[Tensor, Tensor] | None]:
    """The same problem with the shorter sequence along the lanes; its charges stay as they are."""
    if C.shape[1] <= C.shape[2]:
        return _layouts(table)[0], C, drop_x, drop_z, lengths
    return _layouts(table)[1], C.mT, drop_z, drop_x, lengths and (lengths[1], lengths[0])


def _length(normalize: str | None, C: Tensor) -> int:
    """The length that values are divided by, as kernels know it: `_turned` may have exchanged rows and columns."""
    found = LENGTHS[normalize]
    return found if C.shape[1] <= C.shape[2] else (0, 2, 1, 3)[found]


def _layouts(table: Recurrence) -> tuple[Layout, Layout, Recurrence]:
    """The table as kernels read it, and its transpose; found by what it is, as to hash what it holds takes longer."""
    found = _LAYOUTS.get(id(table))
    if found is None:
        found = _LAYOUTS[id(table)] = layout(table), layout(table.transpose(), turned=True), table
    return found


_LAYOUTS: dict[int, tuple[Layout, Layout, Recurrence]] = {}


def _slots(N: int, gradient: bool) -> int:
    return N // BLOCK + 1 if gradient else 1


def room(table: Recurrence, C: Tensor, gradient: bool) -> Saved:
    """Memory for what the forward pass writes down."""
    B, K, N = map(int, C.shape)
    found, turned, _ = _layouts(table)
    if K > N:
        found, K, N = turned, N, K
    strips = schedule(K, N).strips
    dtype = torch.float64 if wide(C) else torch.float32
    states = found.planes * _slots(N, gradient) * K if gradient or strips > 1 else 0
    size = B * (states + (len(found.final) if gradient else 0))
    kept = torch.empty(size, dtype=dtype, device=C.device)
    if strips == 1:
        return Saved(kept)
    return Saved(kept, torch.empty(B * strips, len(found.start), N + 1, dtype=dtype, device=C.device))
