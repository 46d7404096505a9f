"""Launching kernels."""

from __future__ import annotations

import math
import struct
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

_COMPILED: dict[tuple[Any, ...], Any] = {}


def run(kernel: Any, key: tuple[Any, ...], grid: tuple[int, ...], arguments: tuple[Any, ...], num_warps: int) -> None:
    """Launch a kernel once. What is compiled is kept here: Triton takes longer to find it than to launch it."""
    grid = (*grid, 1, 1)[:3]
    found = _COMPILED.get(key)
    if found is not None:
        found[grid](*arguments)
        return
    # Without fusion no rounding depends on how a batch is padded.
    found = kernel[grid](*arguments, num_warps=num_warps, enable_fp_fusion=False)
    if found is not None:  # the interpreter compiles nothing
        _COMPILED[key] = found


def rate_bits(gamma: float, C: Tensor) -> int:
    """log₂(e)/γ as the bits of a double: a plain float argument would be float32."""
    rate = math.log2(math.e) / gamma if gamma > 0 else 1.0
    limit = 1e300 if C.dtype == torch.float64 else 1e37
    return int(struct.unpack("<q", struct.pack("<d", min(rate, limit)))[0])


def is_wide(C: Tensor) -> bool:
    """Whether a batch is computed in double precision."""
    return C.dtype == torch.float64


def current(C: Tensor) -> Any:
    """Makes the tensor's device the current one, where it is not."""
    if C.is_cuda and C.device.index != torch.cuda.current_device():
        return torch.cuda.device(C.device)
    return nullcontext()
