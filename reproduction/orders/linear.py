"""Training from orders alone: a linear map that undoes the distortion of simulated frames.

Training knows only the recipe of a recording, as a list, as a graph or as the true order of its steps, but not when the
steps happen. The loss is soft one-sided Drop-DTW: a frame matches one step, and a step matches one contiguous run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.orders import Order
from dropdtw.torch import drop_dtw, percentile_drop
from reproduction.common.training import Plan, fit
from reproduction.data.records import Record
from reproduction.data.steps import StepVideo
from reproduction.orders.inference import WAYS
from reproduction.orders.recordings import DIM, Recordings, distorted
from reproduction.orders.settings import Settings

TRAINED: Final = ("list", "graph", "true order (bound)")
"""Keys of `WAYS` to train a map with."""
UNTRAINED: Final = "untrained"
SHARPNESS: Final = 4.0
"""Factor on the dot products of step and frame in the softmax over the steps of a recipe."""
PERCENTILE: Final = 20.0
"""Percentile of the match costs that is the drop cost of a frame."""


@dataclass(frozen=True, eq=False)
class Items:
    """Recordings as tensors: steps (K, d), frames (N, d), the steps to align, and their order (None for a list)."""

    items: list[tuple[Tensor, Tensor, Tensor, Order | None]]

    def to(self, device: Any) -> Items:
        """Copy to another device."""
        return Items([(*(part.to(device) for part in tensors), order) for *tensors, order in self.items])  # type: ignore[misc]


class LinearMap(nn.Module):
    """A map of frames into the space of steps, initially the identity. seed : seed of its recordings."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.weight = nn.Parameter(torch.eye(DIM))

    def logits(self, Z: Tensor, X: Tensor) -> Tensor:
        """Similarity of each step and frame, (K, N)."""
        return Z @ self.weight @ X.mT

    def forward(self, batch: Items) -> Tensor:
        """The loss of each recording divided by its number of frames, (B,)."""
        costs, drops, orders = [], [], []
        for Z, X, rows, order in batch.items:
            C = -torch.log_softmax(SHARPNESS * self.logits(Z, X), dim=0)
            costs.append(C[rows])
            drops.append(percentile_drop(C[None], PERCENTILE).detach().expand(1, C.shape[1])[0])
            orders.append(order)
        listed = all(order is None for order in orders)
        values = drop_dtw(
            costs,
            drops,
            reducer="soft",
            method="steps",
            order=None if listed else orders,
        )
        return values / torch.tensor([C.shape[1] for C in costs], device=values.device)


@dataclass(frozen=True, eq=False)
class Lesson:
    """The disjoint training and test recordings of a map."""

    data: Recordings
    settings: Settings
    seed: int
    made: dict[str, StepVideo] = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[list[Record]]:
        """Training and test recordings."""
        found = self.data.parts(self.seed, self.settings.trained, self.settings.judged)
        return [[r for r in part if self._fits(r)] for part in found]

    def _fits(self, record: Record) -> bool:
        """Whether there are enough frames for every step."""
        return len(self.video(record).frames) >= len(record.step_ids)

    def video(self, record: Record) -> StepVideo:
        """Simulate the frames of a recording, cached."""
        if record.name not in self.made:
            self.made[record.name] = distorted(record, self.data.recipe(record), self.seed)
        return self.made[record.name]

    def items(self, records: Sequence[Record], way: str) -> Items:
        """Convert recordings to tensors with the order that `way` knows."""
        found = []
        for record in records:
            recipe, video = self.data.recipe(record), self.video(record)
            rows = torch.tensor(list(WAYS[way].rows(record, recipe)))
            tensors = torch.from_numpy(video.steps), torch.from_numpy(video.frames)
            found.append((*tensors, rows, WAYS[way].order(recipe)))
        return Items(found)


def train(
    data: Recordings, way: str, settings: Settings, seed: int, *, epochs: int, device: str = "cpu", out: Path | None
) -> LinearMap:
    """Train a map; the last epoch is kept, so that no frame labels influence the choice."""
    model, lesson = LinearMap(seed), Lesson(data, settings, seed)
    if way == UNTRAINED:
        return model
    learned, _ = lesson.parts

    def batches(epoch: int) -> list[list[int]]:
        shuffled = np.random.default_rng([seed, epoch]).permutation(len(learned)).tolist()
        return [shuffled[k : k + settings.batch] for k in range(0, len(shuffled), settings.batch)]

    fit(
        model,
        lambda chosen: lesson.items([learned[k] for k in chosen], way),
        batches,
        lambda module: {},
        Plan(epochs=epochs, lr=settings.lr, weight_decay=0.0, seed=seed, accelerator=device),
        score=None,
        out=out,
        resume=True,
        progress=False,
    )
    return model


@torch.no_grad()
def judged(model: LinearMap, data: Recordings, settings: Settings) -> float:
    """The share of test step frames whose most similar step is correct."""
    lesson = Lesson(data, settings, model.seed)
    right = total = 0
    weight = model.weight.cpu()
    for record in lesson.parts[1]:
        video = lesson.video(record)
        likeness = torch.from_numpy(video.steps) @ weight @ torch.from_numpy(video.frames).mT
        named = video.rows >= 0
        right += int((likeness.argmax(dim=0).numpy() == video.rows)[named].sum())
        total += int(named.sum())
    return right / max(1, total)
