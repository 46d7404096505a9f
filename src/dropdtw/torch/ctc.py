"""The CTC loss, the best CTC paths and monotonic search on CUDA: a few kernel launches, and nothing read back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from dropdtw.tables import recurrence
from dropdtw.torch import kernels
from dropdtw.torch.operators import Tensors, operator
from dropdtw.torch.reduction import Reduction

Padding = tuple[Tensor, Tensor] | None
"""Numbers of tokens and of frames (B,), on the device; None if nothing is padded."""

ONCE = "ctc_loss can be differentiated only once: its backward pass has no derivative"


class Request(NamedTuple):
    """The settings of a loss, as in `speech.ctc_loss`."""

    blank: int
    reduction: Reduction
    zero_infinity: bool
    logits: bool


def runs_on(scores: Tensor) -> bool:
    """Whether the kernels can process these scores (B, T, V)."""
    return searches(scores) and scores.stride(2) == 1


def searches(value: Tensor) -> bool:
    """Whether the kernels can process this value (B, K, N)."""
    return kernels.run_on(value) and not torch.compiler.is_compiling()


def loss(scores: Tensor, tokens: Tensor, lengths: Padding, request: Request) -> Tensor:
    """The loss of scores (B, T, V) and tokens (B, S), reduced."""
    if torch.is_grad_enabled() and scores.requires_grad:
        return _differentiable(scores, (tokens, lengths, request))  # type: ignore[no-any-return]
    return _value(scores, tokens, lengths, request, False)[0]


@torch.no_grad()
def paths(scores: Tensor, tokens: Tensor, lengths: Padding, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """The tokens (B, T) of the best paths, their scores (B, T), and the costs (B,)."""
    from dropdtw.executors.triton import emissions

    emitted = emissions.forward(scores, tokens, blank, False, lengths)
    values, M, _ = _aligned(emitted, "hard", True)
    return *emissions.paths(M, scores, tokens, values, lengths, blank), values


@torch.no_grad()
def search(value: Tensor, mask: Tensor | None, lengths: Padding) -> Tensor:
    """The alignment (B, K, N) with the largest sum of `value` in which each frame has one token; 0 in padding.

    Padding is marked by a mask, by lengths, or not at all.
    """
    from dropdtw.executors import triton
    from dropdtw.executors.triton import emissions

    if mask is not None:
        lengths = emissions.lengths_of(mask)
    unpaid = torch.empty((1, 1), dtype=value.dtype, device=value.device)
    B, K, N = value.shape
    how = (_SEARCH, "hard", 1.0, value, unpaid.expand(B, N), unpaid.expand(B, K), None, lengths)
    _, saved = triton.forward(*how, True, scores=True)
    return triton.backward(*how, saved, 1.0, scores=True)[0]


_SEARCH = recurrence.dtw(many_to_one=False)


def _value(
    scores: Tensor, tokens: Tensor, lengths: Padding, request: Request, gradient: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The loss, and what its derivatives need."""
    from dropdtw.executors.triton import emissions

    emitted = emissions.forward(scores, tokens, request.blank, request.logits, lengths)
    values, by_c, by_blank = _aligned(emitted, "soft", gradient)
    found, weights = emissions.reduced(values, emitted, lengths, request.zero_infinity, request.reduction)
    return found, (emitted.total, by_c, by_blank, weights) if gradient else ()


def _aligned(emitted: Any, reducer: str, gradient: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The values (B,) of the table of CTC and their derivatives by tokens (B, S, T) and blanks (B, T)."""
    from dropdtw.executors import triton

    how = (recurrence.ctc(), reducer, 1.0, emitted.C, emitted.blanks, emitted.gates, None, emitted.lengths)
    values, saved = triton.forward(*how, gradient)
    if not gradient:
        return values, values, values
    by_c, by_blank, *_ = triton.backward(*how, saved, 1.0, padding=False)
    assert by_blank is not None
    return values, by_c, by_blank


def _forward(tensors: Tensors, settings: tuple[Tensor, Padding, Request]) -> tuple[Tensor, Tensors, Any]:
    tokens, lengths, request = settings
    (scores,) = cast("tuple[Tensor]", tensors)
    found, kept = _value(scores, tokens, lengths, request, True)
    return found, (scores, tokens, *kept, *(lengths or ())), request


def _backward(grad: Tensor, kept: Tensors, request: Request) -> Tensors:
    from dropdtw.executors.triton import emissions

    scores, tokens, total, by_c, by_blank, weights, *lengths = cast("Sequence[Tensor]", kept)
    padding = cast("Padding", tuple(lengths) or None)
    found = emissions.backward(
        scores, tokens, total, by_c, by_blank, request.blank, request.logits, padding, weights, grad
    )
    return (found.to(scores.dtype),)


_differentiable = operator(_forward, _backward, ONCE)
"""The operator for eager code."""
