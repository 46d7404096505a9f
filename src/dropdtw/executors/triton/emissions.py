"""Costs of the tokens of a text and of blanks, from the scores of a CTC model, and their derivatives: one kernel each.

The log softmax over the vocabulary is part of both kernels, so no array of its size is written but the gradient.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import jit, launch, wide

FRAMES, TOKENS, MOST_COLUMNS = 8, 32, 512


@jit("scores tokens C blanks total", "T S V by_item by_frame blank")
def emissions_forward(
    scores, tokens, C, blanks, total, T, S, V, by_item, by_frame, blank,
    LOGITS: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, W: tl.constexpr, Q: tl.constexpr,
):  # fmt: skip
    """Each program computes R frames of an item: log Σ exp over V scores, then the costs of S tokens and the blank."""
    INF: tl.constexpr = float("inf")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    b = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * R + tl.arange(0, R)
    inside = t < T
    scores += b * by_item + t * by_frame
    whole = tl.zeros([R], DT)
    if LOGITS:
        top = tl.full([R], -INF, DT)
        for start in range(0, V, W):
            v = start + tl.arange(0, W)
            x = tl.load(scores[:, None] + v[None, :], mask=inside[:, None] & (v < V)[None, :], other=-INF).to(DT)
            best = tl.maximum(top, tl.max(x, 1))
            base = tl.where(best > -INF, best, 0.0)
            whole = whole * tl.exp(top - base) + tl.sum(tl.exp(x - base[:, None]), 1)
            top = best
        whole = tl.where(top > -INF, top, 0.0) + tl.log(tl.where(inside, whole, 1.0))
        tl.store(total + b * T + t, whole, mask=inside)
    tl.store(blanks + b * T + t, whole - tl.load(scores + blank, mask=inside, other=0.0).to(DT), mask=inside)
    for start in range(0, S, Q):
        s = start + tl.arange(0, Q)
        token = tl.load(tokens + b * S + s, mask=s < S, other=0)
        there = inside[:, None] & (s < S)[None, :]
        x = tl.load(scores[:, None] + token[None, :], mask=there, other=0.0).to(DT)
        tl.store(C + (b * S + s[None, :]) * T + t[:, None], whole[:, None] - x, mask=there)


@jit("scores tokens total by_c by_blank found", "T S V by_item by_frame to_item to_frame blank")
def emissions_backward(
    scores, tokens, total, by_c, by_blank, found, T, S, V, by_item, by_frame, to_item, to_frame, blank,
    LOGITS: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, W: tl.constexpr, Q: tl.constexpr,
):  # fmt: skip
    """Each program writes the derivatives of R frames: the softmax times their sum, less those of each token."""
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    b = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * R + tl.arange(0, R)
    inside = t < T
    scores += b * by_item + t * by_frame
    found += b * to_item + t * to_frame
    own = tl.load(by_blank + b * T + t, mask=inside, other=0.0)
    share = own
    if LOGITS:
        whole = tl.load(total + b * T + t, mask=inside, other=0.0)
        for start in range(0, S, Q):
            s = start + tl.arange(0, Q)
            there = inside[:, None] & (s < S)[None, :]
            share += tl.sum(tl.load(by_c + (b * S + s[None, :]) * T + t[:, None], mask=there, other=0.0), 1)
    for start in range(0, V, W):
        v = start + tl.arange(0, W)
        there = inside[:, None] & (v < V)[None, :]
        part = tl.zeros([R, W], DT)
        if LOGITS:
            x = tl.load(scores[:, None] + v[None, :], mask=there, other=0.0).to(DT)
            part = tl.exp(x - whole[:, None]) * share[:, None]
        part -= tl.where((v == blank)[None, :], own[:, None], 0.0)
        tl.store(found[:, None] + v[None, :], part, mask=there)
    tl.debug_barrier()  # the threads that add to these numbers are not those that wrote them
    for start in range(0, S, Q):
        s = start + tl.arange(0, Q)
        token = tl.load(tokens + b * S + s, mask=s < S, other=0)
        there = inside[:, None] & (s < S)[None, :]
        part = tl.load(by_c + (b * S + s[None, :]) * T + t[:, None], mask=there, other=0.0)
        tl.atomic_add(found[:, None] + token[None, :], -part, mask=there)


def forward(scores: Tensor, tokens: Tensor, blank: int, logits: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Costs of the tokens (B, S, T) and of blanks (B, T), and log Σ exp (B, T) of the scores (B, T, V), if `logits`."""
    B, T, V = scores.shape
    S = tokens.shape[1]
    dtype = torch.float64 if wide(scores) else torch.float32
    C, blanks = (torch.empty(shape, dtype=dtype, device=scores.device) for shape in ((B, S, T), (B, T)))
    total = torch.empty_like(blanks) if logits else blanks
    numbers = (T, S, V, *scores.stride()[:2], blank)
    launch(
        emissions_forward,
        (B, triton.cdiv(T, FRAMES)),
        (scores, tokens, C, blanks, total),
        numbers,
        _sizes(scores, logits),
        4,
    )
    return C, blanks, total


def backward(
    scores: Tensor, tokens: Tensor, total: Tensor, by_c: Tensor, by_blank: Tensor, blank: int, logits: bool
) -> Tensor:
    """Derivatives (B, T, V) with respect to the scores, in the layout of the scores."""
    B, T, V = scores.shape
    found = torch.empty_strided(scores.shape, _dense(scores), dtype=by_c.dtype, device=scores.device)
    numbers = (T, tokens.shape[1], V, *scores.stride()[:2], *found.stride()[:2], blank)
    tensors = (scores, tokens, total, by_c.contiguous(), by_blank.contiguous(), found)
    launch(emissions_backward, (B, triton.cdiv(T, FRAMES)), tensors, numbers, _sizes(scores, logits), 4)
    return found


def _sizes(scores: Tensor, logits: bool) -> tuple[bool | int, ...]:
    return logits, wide(scores), FRAMES, min(triton.next_power_of_2(scores.shape[2]), MOST_COLUMNS), TOKENS


def _dense(scores: Tensor) -> tuple[int, int, int]:
    """Strides without gaps that keep the order of items and frames."""
    B, T, V = scores.shape
    return (V, B * V, 1) if scores.stride(0) < scores.stride(1) else (T * V, V, 1)
