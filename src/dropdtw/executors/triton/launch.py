"""Kernel launches: compile once, then launch with minimal Python overhead."""

from __future__ import annotations

import math
import struct
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor

_COMPILED: dict[tuple[Any, ...], Any] = {}


def run(kernel: Any, key: tuple[Any, ...], grid: tuple[int, ...], arguments: tuple[Any, ...], num_warps: int) -> None:
    """Launch a kernel. Compiled kernels are cached here, because Triton's own lookup takes longer than the launch.

    key : everything that compilation depends on: the kernel, the device, types, and constants.
    """
    found = _COMPILED.get(key)
    if found is not None:  # like Triton's own `found[grid](*arguments)`, without its hooks
        kernel, device = found
        stream = torch._C._cuda_getCurrentRawStream(device)
        x, y, z = (*grid, 1, 1)[:3]
        kernel.run(x, y, z, stream, kernel.function, kernel.packed_metadata, None, None, None, *arguments)
        return
    # Without fused multiply-adds, rounding does not depend on how a batch is padded.
    found = kernel[(*grid, 1, 1)[:3]](*arguments, num_warps=num_warps, enable_fp_fusion=False)
    if found is not None:  # the interpreter compiles nothing
        _COMPILED[key] = found, torch.cuda.current_device()


def launch(
    kernel: Any,
    grid: tuple[int, ...],
    tensors: tuple[Tensor | None, ...],
    numbers: tuple[int, ...],
    constants: tuple[Any, ...],
    num_warps: int,
    bits: tuple[int, ...] = (),
) -> None:
    """Launch a kernel whose arguments are tensors, integers, numbers as bits, and constants, in this order.

    The first tensor determines the device.
    """
    where = tensors[0]
    assert where is not None
    types = tuple([None if t is None else t.dtype for t in tensors])
    key = (id(kernel), where.device, types, constants, max(numbers) >= 1 << 31, num_warps)
    with on(where):
        run(kernel, key, grid, (*tensors, *numbers, *bits, *constants), num_warps)


@lru_cache(maxsize=256)
def as_bits(value: float) -> int:
    """Encode a number as bits for kernels: Triton would round a float argument to single precision.

    0 becomes −0, because Triton would pass the bits of 0 as a narrower integer.
    """
    found: int = struct.unpack("<q", struct.pack("<d", value or -0.0))[0]
    return found


def rate_bits(gamma: float, C: Tensor) -> int:
    """Encode log₂(e)/γ as bits for kernels."""
    rate = math.log2(math.e) / gamma if gamma > 0 else 1.0
    return as_bits(min(rate, 1e300 if C.dtype == torch.float64 else 1e37))


def wide(A: Tensor) -> bool:
    """Whether a tensor has double precision."""
    return A.dtype == torch.float64


def on(A: Tensor) -> Any:
    """Return a context in which the tensor's device is the current one."""
    if A.is_cuda and A.get_device() != torch._C._cuda_getDevice():
        return torch.cuda.device(A.device)
    return _HERE


_HERE = nullcontext()


def jit(tensors: str, numbers: str) -> Any:
    """Compile a kernel once per type and constant, without specializing on other properties of its arguments.

    `launch` relies on that. Both arguments are names separated by spaces.
    """
    return triton.jit(do_not_specialize=numbers.split(), do_not_specialize_on_alignment=tensors.split())
