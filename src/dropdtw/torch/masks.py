"""Masked frames: move the frames that are present to the front, and store their number as the length.

The rest becomes padding, which affects no value and no gradient. A masked frame is therefore treated as if it had been
deleted: percentiles, windows and runs of drops ignore it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dropdtw.torch.ops import can_look

Mask = Tensor | Sequence[Tensor] | None
"""(B, N) bool, or a list of B vectors (N_b,): False where a frame is masked. None means that no frame is masked."""


class Front(NamedTuple):
    """A layout with the frames of a batch moved to the front.

    places : (B, N) original position of each frame of the new layout.
    lengths : (B,) number of frames of each item, or 1 if it has none.
    empty : (B,) whether an item has no frames; None if a check has ruled that out.
    """

    places: Tensor
    lengths: Tensor
    empty: Tensor | None

    def rows(self, X: Tensor) -> Tensor:
        """Return X (B, N, d) in the new layout, with NaN in items without frames."""
        return self._marked(X.gather(1, self.places[..., None].expand_as(X)))

    def columns(self, C: Tensor) -> Tensor:
        """Return C (B, K, N) in the new layout, with NaN in items without frames."""
        return self._marked(C.gather(2, self.places[:, None].expand_as(C)))

    def _marked(self, A: Tensor) -> Tensor:
        return A if self.empty is None else torch.where(self.empty[:, None, None], torch.nan, A)


def front(mask: Tensor | Sequence[Tensor], B: int, N: int, lengths: Tensor | None, device: torch.device) -> Front:
    """Lay out the frames that a mask keeps, in a batch of B items of N frames, padded according to `lengths`."""
    given = mask if isinstance(mask, Tensor) else _stacked(mask, N)
    if given.shape != (B, N) or given.dtype != torch.bool:
        raise ValueError(
            f"x_mask has shape {tuple(given.shape)} and dtype {given.dtype}; give bool ({B}, {N}), False where x_j is "
            f"missing, or a list of {B} vectors, one per item"
        )
    there = given.to(device, non_blocking=True)
    if lengths is not None:
        there = there & (torch.arange(N, device=device) < lengths[:, None])
    count = there.sum(dim=1)
    empty = None
    if can_look(count):
        if bool((count == 0).any()):
            item = int((count == 0).nonzero()[0, 0])
            raise ValueError(f"x_mask masks every frame of item {item}; leave that item out of the batch")
    else:  # checking would force a device synchronization; the item's value becomes NaN instead
        empty, count = count == 0, count.clamp(min=1)
    places = (~there).to(torch.uint8).argsort(dim=1, stable=True)
    return Front(places, count, empty)


def per_frame(values: Tensor, places: Tensor | None) -> Tensor:
    """Return values that broadcast to (B, N) in the new layout."""
    if places is None or values.ndim == 0 or values.shape[-1] == 1:
        return values
    return values.expand(places.shape).gather(1, places)


def _stacked(mask: Sequence[Tensor], N: int) -> Tensor:
    if not mask or any(not isinstance(m, Tensor) or m.ndim != 1 for m in mask):
        raise ValueError("x_mask is a list, but not of vectors; give a bool tensor (N_b,) per item, or (B, N)")
    found = pad_sequence(list(mask), batch_first=True)
    return torch.nn.functional.pad(found, (0, max(0, N - found.shape[1])))
