"""The kernels of CTC around the alignment: costs of tokens and blanks from scores, reductions, and derivatives.

The log softmax over the vocabulary is part of the kernels, so no array of its size is written but the gradient. Empty
texts, padding and lengths are handled here as well, so that a loss takes five launches and reads nothing back.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from dropdtw.executors.triton.launch import jit, launch, wide


class Sizes(NamedTuple):
    """How the work of a kernel is divided: frames and tokens of a tile, at most so many scores at a time, and warps."""

    frames: int = 8
    tokens: int = 32
    columns: int = 512
    warps: int = 4


SIZES = {"forward": Sizes(), "backward": Sizes()}
LARGE = {"forward": Sizes(2, 64, 2048), "backward": Sizes(1, 128, 1024)}
"""The sizes of both passes, and those for large vocabularies. `benchmarks/speech_gpu.py` tries others."""

MANY = 2048
"""From this size on, a vocabulary is large."""

ITEMS = 128
"""Items, or frames, that small kernels take at a time."""


@triton.jit
def _length(lengths, b, full, LEAST: tl.constexpr):
    found = full
    if lengths is not None:
        found = tl.minimum(tl.maximum(tl.load(lengths + b).to(tl.int32), LEAST), full)
    return found


@jit("scores tokens z_len x_len C blanks total gates clamped", "B T S V by_item by_frame by_text blank")
def emissions_forward(
    scores, tokens, z_len, x_len, C, blanks, total, gates, clamped, B, T, S, V, by_item, by_frame, by_text, blank,
    LOGITS: tl.constexpr, WIDE: tl.constexpr, ALIGNED: tl.constexpr, R: tl.constexpr, Q: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Each program computes R frames of an item: log Σ exp over V scores, then the costs of S tokens and the blank.

    The first program of an item also writes the costs of `gate` and the lengths, which are at least 1 there.
    ALIGNED : whether every frame begins at a multiple of 16 bytes.
    """
    INF: tl.constexpr = float("inf")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    b = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * R + tl.arange(0, R)
    Sb = _length(z_len, b, S, 0)
    Tb = _length(x_len, b, T, 0)
    tokens += b * by_text
    if tl.program_id(1) == 0:
        for start in range(0, S, Q):
            s = start + tl.arange(0, Q)
            here = tl.load(tokens + s, mask=s < Sb, other=-1)
            last = tl.load(tokens + s - 1, mask=(s < Sb) & (s > 0), other=-2)
            tl.store(gates + b * S + s, tl.where(here == last, INF, 0.0).to(DT), mask=s < S)
        if clamped is not None:
            tl.store(clamped + b, tl.maximum(Sb, 1))
            tl.store(clamped + B + b, tl.maximum(Tb, 1))
    inside = t < Tb
    if tl.program_id(1) * R < Tb:
        frame = scores + b * by_item + t * by_frame
        if ALIGNED:
            frame = tl.multiple_of(frame, 16)
        whole = tl.zeros([R], DT)
        if LOGITS:
            top = tl.full([R], -INF, DT)
            for start in range(0, V, W):
                v = start + tl.arange(0, W)
                x = tl.load(frame[:, None] + v[None, :], mask=inside[:, None] & (v < V)[None, :], other=-INF).to(DT)
                best = tl.maximum(top, tl.max(x, 1))
                base = tl.where(best > -INF, best, 0.0)
                whole = whole * tl.exp(top - base) + tl.sum(tl.exp(x - base[:, None]), 1)
                top = best
            whole = tl.where(top > -INF, top, 0.0) + tl.log(tl.where(inside, whole, 1.0))
            tl.store(total + b * T + t, whole, mask=inside)
        tl.store(blanks + b * T + t, whole - tl.load(frame + blank, mask=inside, other=0.0).to(DT), mask=inside)
        for start in range(0, Sb, Q):
            s = start + tl.arange(0, Q)
            token = tl.minimum(tl.maximum(tl.load(tokens + s, mask=s < Sb, other=0), 0), V - 1)
            there = inside[:, None] & (s < Sb)[None, :]
            x = tl.load(frame[:, None] + token[None, :], mask=there, other=0.0).to(DT)
            tl.store(C + (b * S + s[None, :]) * T + t[:, None], whole[:, None] - x, mask=there)


@jit(
    "scores tokens z_len x_len total by_c by_blank weights grad found",
    "T S V by_item by_frame by_text to_item to_frame by_grad blank",
)
def emissions_backward(
    scores, tokens, z_len, x_len, total, by_c, by_blank, weights, grad, found,
    T, S, V, by_item, by_frame, by_text, to_item, to_frame, by_grad, blank,
    LOGITS: tl.constexpr, WIDE: tl.constexpr, ALIGNED: tl.constexpr, R: tl.constexpr, Q: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """Each program writes the derivatives of R frames: the softmax times their sum, less those of each token.

    weights, grad : the derivatives count times both, and those of an item without tokens are 1 for each blank. None: 1.
    """
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    b = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * R + tl.arange(0, R)
    Sb = _length(z_len, b, S, 0)
    inside = t < _length(x_len, b, T, 0)
    tokens += b * by_text
    frame = scores + b * by_item + t * by_frame
    into = found + b * to_item + t * to_frame
    if ALIGNED:
        frame = tl.multiple_of(frame, 16)
        into = tl.multiple_of(into, 16)
    times = tl.full([], 1.0, DT)
    own = tl.load(by_blank + b * T + t, mask=inside, other=0.0)
    if weights is not None:
        times = tl.load(weights + b) * tl.load(grad + b * by_grad).to(DT)
        own = tl.where(inside, tl.where(Sb > 0, own, 1.0), 0.0) * times
    share = own
    if LOGITS:
        whole = tl.load(total + b * T + t, mask=inside, other=0.0)
        summed = tl.zeros([R], DT)
        for start in range(0, Sb, Q):
            s = start + tl.arange(0, Q)
            there = inside[:, None] & (s < Sb)[None, :]
            summed += tl.sum(tl.load(by_c + (b * S + s[None, :]) * T + t[:, None], mask=there, other=0.0), 1)
        share += summed * times
    for start in range(0, V, W):
        v = start + tl.arange(0, W)
        part = tl.zeros([R, W], DT)
        if LOGITS:
            x = tl.load(frame[:, None] + v[None, :], mask=inside[:, None] & (v < V)[None, :], other=0.0).to(DT)
            part = tl.where(inside[:, None], tl.exp(x - whole[:, None]) * share[:, None], 0.0)
        part -= tl.where((v == blank)[None, :], own[:, None], 0.0)
        tl.store(into[:, None] + v[None, :], part, mask=(t < T)[:, None] & (v < V)[None, :])
    tl.debug_barrier()  # the threads that add to these numbers are not those that wrote them
    for start in range(0, Sb, Q):
        s = start + tl.arange(0, Q)
        token = tl.minimum(tl.maximum(tl.load(tokens + s, mask=s < Sb, other=0), 0), V - 1)
        there = inside[:, None] & (s < Sb)[None, :]
        part = tl.load(by_c + (b * S + s[None, :]) * T + t[:, None], mask=there, other=0.0) * times
        tl.atomic_add(into[:, None] + token[None, :], -part, mask=there, sem="relaxed")


@jit("values blanks z_len x_len found weights", "B T S")
def reduce_values(
    values, blanks, z_len, x_len, found, weights, B, T, S,
    ZERO: tl.constexpr, MEAN: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr, Q: tl.constexpr,
):  # fmt: skip
    """One program completes the values of empty items and reduces all values.

    ZERO, MEAN, WHOLE : whether +∞ counts 0, whether values are divided by their numbers of tokens and of items, and
    whether the result is their sum.
    """
    INF: tl.constexpr = float("inf")
    DT: tl.constexpr = tl.float64 if WIDE else tl.float32
    total = tl.zeros([Q], DT)
    for start in range(0, B, Q):
        b = start + tl.arange(0, Q)
        there = b < B
        a = tl.load(values + b, mask=there, other=0.0)
        Sb = tl.full([Q], 0, tl.int32) + S
        Tb = tl.full([Q], 0, tl.int32) + T
        if z_len is not None:
            Sb = tl.load(z_len + b, mask=there, other=1).to(tl.int32)
            Tb = tl.load(x_len + b, mask=there, other=1).to(tl.int32)
            empty = there & (Sb == 0)
            if tl.sum(empty.to(tl.int32), 0) > 0:
                alone = tl.zeros([Q], DT)
                for t in range(0, T):
                    alone += tl.load(blanks + b.to(tl.int64) * T + t, mask=empty & (t < Tb), other=0.0)
                a = tl.where(empty, alone, a)
            a = tl.where((Sb > 0) & (Tb == 0), INF, a)
            a = tl.where((Sb < 0) | (Tb < 0) | (Sb > S) | (Tb > T), float("nan"), a)
        times = tl.where(a < INF, 1.0, 0.0).to(DT)
        if ZERO:
            a = tl.where(a < INF, a, 0.0)
        if MEAN:
            share = 1.0 / (tl.maximum(Sb, 1).to(DT) * B)
            times = times * share
            a = a * share
        tl.store(weights + b, times, mask=there)
        if WHOLE:
            total += tl.where(there, a, 0.0)
        else:
            tl.store(found + b, a, mask=there)
    if WHOLE:
        tl.store(found, tl.sum(total, 0))


@jit("matched scores tokens values z_len x_len paths found", "T S V by_item by_frame by_text blank")
def paths_of(
    matched, scores, tokens, values, z_len, x_len, paths, found, T, S, V, by_item, by_frame, by_text, blank,
    WIDE: tl.constexpr, R: tl.constexpr, Q: tl.constexpr,
):  # fmt: skip
    """Each program writes the tokens of R frames, and their scores, from the matches (B, S, T)."""
    INF: tl.constexpr = float("inf")
    b = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * R + tl.arange(0, R)
    Sb = _length(z_len, b, S, 0)
    inside = t < _length(x_len, b, T, 0)
    row = tl.full([R], -1, tl.int32)
    for start in range(0, Sb, Q):
        s = start + tl.arange(0, Q)
        there = (s < Sb)[:, None] & inside[None, :]
        here = tl.load(matched + (b * S + s[:, None]) * T + t[None, :], mask=there, other=0.0) > 0
        row = tl.maximum(row, tl.max(tl.where(here, s[:, None], -1), 0))
    token = tl.load(tokens + b * by_text + row, mask=row >= 0, other=0).to(tl.int64)
    token = tl.where(row >= 0, tl.minimum(tl.maximum(token, 0), V - 1), blank)
    score = tl.load(scores + b * by_item + t * by_frame + token, mask=inside, other=0.0)
    fits = (tl.load(values + b) < INF) | (Sb == 0)
    tl.store(paths + b * T + t, tl.where(inside, token, blank), mask=t < T)
    tl.store(found + b * T + t, tl.where(inside & (fits == 0), -INF, score), mask=t < T)


@jit("mask found", "B K N by_item by_row by_column")
def count_of_mask(mask, found, B, K, N, by_item, by_row, by_column, Q: tl.constexpr):
    """Each program counts the nonzero entries in the first column, or the first row, of one item's mask (B, K, N)."""
    b = tl.program_id(0).to(tl.int64)
    side = tl.program_id(1)
    size = tl.where(side == 0, K, N)
    step = tl.where(side == 0, by_row, by_column).to(tl.int64)
    total = tl.zeros([Q], tl.int32)
    for start in range(0, size, Q):
        i = start + tl.arange(0, Q)
        total += (tl.load(mask + b * by_item + i * step, mask=i < size, other=0) != 0).to(tl.int32)
    tl.store(found + side * B + b, tl.sum(total, 0).to(tl.int64))


def lengths_of(mask: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of z and of x, (B,) each, of a mask (B, K, N) whose upper left part is nonzero."""
    found = torch.empty((2, len(mask)), dtype=torch.int64, device=mask.device)
    given = mask.view(torch.uint8) if mask.dtype == torch.bool else mask
    launch(count_of_mask, (len(mask), 2), (given, found), (*mask.shape, *mask.stride()), (512,), 4)
    return found[0], found[1]


class Emissions(NamedTuple):
    """Costs of tokens C (B, S, T) and of blanks (B, T), and what other kernels need with them.

    total : log Σ exp (B, T) of the scores, or `blanks` without `logits`.
    gates : (B, S), what a token pays to follow the one before it at once.
    lengths : of tokens and frames, at least 1; None without padding.
    """

    C: Tensor
    blanks: Tensor
    total: Tensor
    gates: Tensor
    lengths: tuple[Tensor, Tensor] | None


Padding = tuple[Tensor, Tensor] | None
"""Lengths (B,) of the texts and of the frames, on the device; None if nothing is padded."""


def forward(scores: Tensor, tokens: Tensor, blank: int, logits: bool, lengths: Padding = None) -> Emissions:
    """The costs of scores (B, T, V) for tokens (B, S). Padding stays unwritten."""
    B, T, V = scores.shape
    S = tokens.shape[1]
    C = scores.new_empty((B, S, T), dtype=torch.float64 if wide(scores) else torch.float32)
    blanks, gates = C.new_empty((B, T)), C.new_empty((B, S))
    total = torch.empty_like(blanks) if logits else blanks
    clamped = None if lengths is None else C.new_empty((2, B), dtype=torch.int64)
    size = (LARGE if V >= MANY else SIZES)["forward"]
    launch(
        emissions_forward,
        (B, -(-T // size.frames)),
        (scores, tokens, *(lengths or (None, None)), C, blanks, total, gates, clamped),
        (B, T, S, V, *scores.stride()[:2], tokens.stride(0), blank),
        _constants(scores, logits, size),
        size.warps,
    )
    return Emissions(C, blanks, total, gates, None if clamped is None else (clamped[0], clamped[1]))


def backward(
    scores: Tensor,
    tokens: Tensor,
    total: Tensor,
    by_c: Tensor,
    by_blank: Tensor,
    blank: int,
    logits: bool,
    lengths: Padding = None,
    weights: Tensor | None = None,
    grad: Tensor | None = None,
) -> Tensor:
    """Derivatives (B, T, V) with respect to the scores, in the layout of the scores; see `emissions_backward`."""
    B, T, V = scores.shape
    found = torch.empty_strided(scores.shape, _dense(scores), dtype=by_c.dtype, device=scores.device)
    step = 0 if grad is None or grad.ndim == 0 else grad.stride(0)
    size = (LARGE if V >= MANY else SIZES)["backward"]
    tensors = (
        scores,
        tokens,
        *(lengths or (None, None)),
        total,
        by_c.contiguous(),
        by_blank.contiguous(),
        weights,
        grad,
        found,
    )
    numbers = (
        T, tokens.shape[1], V, *scores.stride()[:2], tokens.stride(0), *found.stride()[:2], step, blank,
    )  # fmt: skip
    launch(
        emissions_backward,
        (B, -(-T // size.frames)),
        tensors,
        numbers,
        _constants(scores, logits, size),
        size.warps,
    )
    return found


def reduced(values: Tensor, emitted: Emissions, lengths: Padding, zero: bool, reduction: str) -> tuple[Tensor, Tensor]:
    """The loss, () or (B,), and its derivatives by the values, (B,)."""
    B, S, T = emitted.C.shape
    found = values.new_empty((B,) if reduction == "none" else ())
    weights = torch.empty_like(values)
    launch(
        reduce_values,
        (1,),
        (values, emitted.blanks, *(lengths or (None, None)), found, weights),
        (B, T, S),
        (zero, reduction == "mean", reduction != "none", wide(values), ITEMS),
        4,
    )
    return found, weights


def paths(
    M: Tensor, scores: Tensor, tokens: Tensor, values: Tensor, lengths: Padding, blank: int
) -> tuple[Tensor, Tensor]:
    """The tokens (B, T) of the best paths, of the dtype of `tokens`, and their scores."""
    B, T, V = scores.shape
    tokens_of, found = tokens.new_empty((B, T)), scores.new_empty((B, T))
    launch(
        paths_of,
        (B, -(-T // ITEMS)),
        (M, scores, tokens, values, *(lengths or (None, None)), tokens_of, found),
        (T, tokens.shape[1], V, *scores.stride()[:2], tokens.stride(0), blank),
        (wide(scores), ITEMS, 32),
        4,
    )
    return tokens_of, found


def _constants(scores: Tensor, logits: bool, size: Sizes) -> tuple[bool | int, ...]:
    """Constants of the kernels. A frame is aligned if all strides are multiples of 16 bytes."""
    whole = 16 // scores.element_size()
    aligned = scores.data_ptr() % 16 == 0 and all(n % whole == 0 for n in (*scores.stride()[:2], scores.shape[2]))
    columns = min(1 << (scores.shape[2] - 1).bit_length(), size.columns)
    return logits, wide(scores), aligned, size.frames, size.tokens, columns


def _dense(scores: Tensor) -> tuple[int, int, int]:
    """Strides without gaps that keep the order of items and frames."""
    B, T, V = scores.shape
    return (V, B * V, 1) if scores.stride(0) < scores.stride(1) else (T * V, V, 1)
