"""The targets of CTC and all lengths, validated: any layout of PyTorch's becomes padded tokens with lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dropdtw.torch import ctc
from dropdtw.torch.ops import can_look

Counts = Tensor | Sequence[int] | int
"""Lengths: one per item, or one number for all items."""


class Text(NamedTuple):
    """Padded tokens (B, S) with S ≥ 1, the number of tokens and of frames of each item, and whether some may be 0.

    whole : whether nothing is padded, as far as that can be seen.
    """

    tokens: Tensor
    z_lengths: Tensor
    x_lengths: Tensor
    holds_empty: bool
    whole: bool

    @property
    def padding(self) -> tuple[Tensor, Tensor] | None:
        """Both lengths; None if nothing is padded."""
        return None if self.whole else (self.z_lengths, self.x_lengths)


def text_of(scores: Tensor, targets: Tensor, frames: Counts, tokens: Counts, blank: int) -> Text:
    """Validate the arguments for scores (B, T, V), as far as possible without a device synchronization."""
    B, T, V = scores.shape
    x_lengths, least = lengths_of(frames, "input_lengths", B, T)
    padded, z_lengths, fewest = _padded(targets, tokens, B, scores)
    _check_tokens(padded, z_lengths, blank, V)
    whole = least == T and fewest == padded.shape[1]
    both = _on_device((z_lengths, x_lengths), scores.device, whole and ctc.runs_on(scores))
    return Text(padded, *both, min(least, fewest) == 0, whole)


def _on_device(lengths: tuple[Tensor, Tensor], device: torch.device, unused: bool) -> tuple[Tensor, Tensor]:
    """Move lengths to the device, in one copy if possible, or leave them where they are if nothing uses them."""
    if unused or all(each.device == device for each in lengths):
        return lengths
    if any(each.is_cuda for each in lengths):
        return lengths[0].to(device, non_blocking=True), lengths[1].to(device, non_blocking=True)
    both = torch.stack(lengths).to(device, non_blocking=True)
    return both[0], both[1]


def lengths_of(lengths: Counts, name: str, B: int, most: int) -> tuple[Tensor, int]:
    """Lengths (B,), and the smallest, or 0 if they are on a GPU. A number counts for all items."""
    if isinstance(lengths, int) and not isinstance(lengths, bool) and 0 <= lengths <= most:
        return torch.full((B,), lengths), lengths
    found = torch.as_tensor(lengths)
    if found.ndim == 0:
        found = found.expand(B)
    if found.shape != (B,) or found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise ValueError(
            f"{name} has shape {tuple(found.shape)} and dtype {found.dtype}; give {B} whole numbers, one per item"
        )
    least = 0
    if can_look(found) and B:
        listed = found.tolist()  # faster than `aminmax` for as few numbers as a batch has
        least = min(listed)
        if least < 0 or max(listed) > most:
            raise ValueError(f"{name} is {listed}; give numbers from 0 to {most}, the length of the batch")
    return found.to(torch.int64), least


def _padded(targets: Tensor, lengths: Counts, B: int, scores: Tensor) -> tuple[Tensor, Tensor, int]:
    """Targets as one padded tensor (B, S) with S ≥ 1, their lengths, and the smallest one, as in `lengths_of`.

    The padding is 0, unless kernels ignore it.
    """
    device = scores.device
    if targets.is_floating_point() or targets.is_complex() or targets.ndim not in (1, 2):
        raise ValueError(
            f"targets has shape {tuple(targets.shape)} and dtype {targets.dtype}; give whole numbers, (B, S) or one "
            "target after the other"
        )
    targets = targets.to(device, torch.int64)
    if targets.ndim == 1:
        known, least = lengths_of(lengths, "target_lengths", B, len(targets))
        if can_look(known) and int(known.sum()) != len(targets):
            raise ValueError(
                f"target_lengths sum to {int(known.sum())}, but targets has {len(targets)} tokens; give the length of "
                "each target"
            )
        # The longest target decides the shape, so lengths on the device are read here.
        width = max(1, int(known.max()) if B else 1)
        known = known.to(device)
        places = (known.cumsum(0) - known)[:, None] + torch.arange(width, device=device)
        inside = torch.arange(width, device=device) < known[:, None]
        filled = targets if len(targets) else targets.new_zeros(1)
        return filled[places.clamp(max=len(filled) - 1)].where(inside, 0), known, least
    if len(targets) != B:
        raise ValueError(f"targets has {len(targets)} rows, but log_probs has {B} items; give one row per item")
    found, least = lengths_of(lengths, "target_lengths", B, targets.shape[1])
    if not targets.shape[1]:
        targets = targets.new_zeros(B, 1)
    if least == targets.shape[1] or ctc.runs_on(scores):
        return targets, found, least
    inside = torch.arange(targets.shape[1], device=device) < found.to(device)[:, None]
    return targets.where(inside, 0), found, least


def _check_tokens(tokens: Tensor, lengths: Tensor, blank: int, V: int) -> None:
    """Raise if a token does not exist or is the blank. On CUDA, checking would force a device synchronization."""
    if not 0 <= blank < V:
        raise ValueError(f"blank is {blank}; give the number of a token, from 0 to {V - 1}")
    if not can_look(tokens):
        return
    inside = torch.arange(tokens.shape[1]) < lengths[:, None]
    wrong = inside & ((tokens < 0) | (tokens >= V) | (tokens == blank))
    if wrong.any():
        b, i = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"targets[{b}][{i}] is {int(tokens[b, i])}; give tokens from 0 to {V - 1} other than the blank, {blank}"
        )
