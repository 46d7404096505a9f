"""The CTC loss, the best CTC paths and monotonic search on the CPU: one call of compiled kernels for each pass."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from dropdtw.problem.inputs import refuse_nan_and_minus_inf
from dropdtw.tables import recurrence
from dropdtw.tables.table import Recurrence
from dropdtw.torch import ops
from dropdtw.torch.ctc import ONCE
from dropdtw.torch.operators import Tensors, operator

_cpp: Any = None
try:
    import dropdtw._cpp as _cpp
    from dropdtw.executors import cpu
    from dropdtw.executors.cpu_graphs import REDUCER
except ImportError:
    pass


class Texts(NamedTuple):
    """Padded tokens (B, S), and the numbers of tokens and of frames of each item (B,).

    logits : whether the scores are those before log softmax.
    """

    tokens: Tensor
    z_lengths: Tensor
    x_lengths: Tensor
    blank: int
    logits: bool


def runs_on(scores: Tensor) -> bool:
    """Whether the kernels can process these scores (B, T, V), or a value (B, K, N)."""
    return _cpp is not None and ops.can_look(scores)


def values(scores: Tensor, texts: Texts) -> Tensor:
    """The values (B,) of scores (B, T, V) under the table of CTC, differentiable with respect to the scores."""
    if torch.is_grad_enabled() and scores.requires_grad:
        return _differentiable(scores, texts)  # type: ignore[no-any-return]
    return _solved(_readable(scores), texts, "soft")


def paths(scores: Tensor, texts: Texts) -> tuple[Tensor, Tensor]:
    """The costs (B,) of the best paths, and the token of each frame (B, T); blanks in padding."""
    found = torch.empty(scores.shape[:2], dtype=torch.int64)
    return _solved(_readable(scores), texts, "hard", path=found), found


def search(value: Tensor, z_lengths: Tensor, x_lengths: Tensor) -> Tensor:
    """The alignment (B, K, N) with the largest sum of `value` in which each frame has one token; 0 in padding."""
    wide = value.detach().to(ops.computes_in(value))
    found = _room(wide, value.shape)
    threads, how = torch.get_num_threads(), (_table(_SEARCH), cpu.BUDGET)
    wrong = _cpp.search(*how, *_arrays(wide, z_lengths, x_lengths), threads, found.numpy())
    _refuse(wide, wrong, "value")
    return found.to(value.dtype)


_SEARCH = recurrence.dtw(many_to_one=False)


@cache
def _table(table: Recurrence) -> Any:
    """The table as kernels take it."""
    found = cpu.compiled(table)
    assert found is not None
    assert not found.transposed
    return found.table


def _readable(scores: Tensor) -> Tensor:
    """The scores in the precision of the computation, those of a frame side by side."""
    wide = scores.detach().to(ops.computes_in(scores))
    return wide if wide.stride(2) == 1 else wide.contiguous()


def _arrays(scores: Tensor, *others: Tensor) -> list[Any]:
    """Arrays of tensors. Only the scores may have any strides."""
    return [scores.numpy(), *(part.contiguous().numpy() for part in others)]


def _room(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """An uninitialized tensor in memory that the kernels keep from call to call: touching fresh memory is slow."""
    make = _cpp.room_float64 if like.dtype == torch.float64 else _cpp.room_float32
    return torch.from_numpy(make(torch.Size(shape).numel())).view(shape)


def _refuse(scores: Tensor, item: int, name: str) -> None:
    """Raise if there is an item whose scores are NaN or +∞."""
    if item >= 0:
        refuse_nan_and_minus_inf(-scores[item].numpy(), f"−{name} of item {item}")


def _solved(scores: Tensor, texts: Texts, reducer: str, **results: Tensor) -> Tensor:
    """Compute the values (B,), and what there is room for in `results`."""
    tokens, z_lengths, x_lengths, blank, logits = texts
    value = torch.empty(len(scores), dtype=torch.float64)
    if logits and "total" not in results:
        results["total"] = _room(scores, scores.shape[:2])
    wrong = _cpp.ctc(
        _table(recurrence.ctc()),
        REDUCER[reducer],
        cpu.BUDGET,
        *_arrays(scores, tokens, z_lengths, x_lengths),
        blank,
        logits,
        torch.get_num_threads(),
        value.numpy(),
        *(results[name].numpy() if name in results else None for name in ("total", "by_token", "by_blank", "path")),
    )
    _refuse(scores, wrong, "log_probs")
    return value.to(scores.dtype)


def _forward(tensors: Tensors, texts: Texts) -> tuple[Tensor, Tensors, Any]:
    (scores,) = cast("tuple[Tensor]", tensors)
    wide = _readable(scores)
    (B, T, _), S = wide.shape, texts.tokens.shape[1]
    room = {"total": (B, T), "by_token": (B, S, T), "by_blank": (B, T)}
    results = {name: _room(wide, shape) for name, shape in room.items()}
    found = _solved(wide, texts, "soft", **results)
    return found, (scores, *texts[:3], *results.values()), (texts.blank, texts.logits)


def _backward(grad: Tensor, kept: Tensors, settings: tuple[int, bool]) -> Tensors:
    scores, *others = cast("list[Tensor]", kept)
    wide = _readable(scores)
    strides = torch.empty_like(wide, device="meta").stride()
    found = _room(wide, (wide.numel(),)).as_strided(wide.shape, strides)
    arrays = _arrays(wide, *others, grad.detach().to(wide.dtype))
    _cpp.ctc_gradient(*arrays[:4], *settings, torch.get_num_threads(), *arrays[4:], found.numpy())
    return (found.to(scores.dtype),)


_differentiable = operator(_forward, _backward, ONCE)
