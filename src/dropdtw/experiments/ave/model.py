"""Audio-visual localization (paper Section 4.4): two branches into one space, trained to tell which streams belong.

A branch is AVE's: two linear layers with a LeakyReLU between them. The margin loss asks that the sound and the picture
of one video align more cheaply than those of two videos; by what alignment is what is compared. Nothing is annotated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.experiments.common.losses import DROP, OTAM, SMOOTH, Loss
from dropdtw.experiments.common.registry import find
from dropdtw.problem.inputs import Array
from dropdtw.torch import MarginLoss
from dropdtw.torch.losses import AlignmentLoss
from dropdtw.torch.reduction import Normalize

LOSSES: Final[dict[str, Loss]] = {"otam": OTAM, "smooth": SMOOTH, "drop": DROP}
"""The alignments that are compared; a new one is an entry."""

Event = tuple[int, int, int]
"""(video, start, stop): elements [start, stop) of a video's streams, to be found."""


@dataclass(frozen=True)
class Objective:
    """What is minimised: margin losses over an alignment of `LOSSES`, with cosine costs.

    percentile : of both drop costs.   beta : the margin.   gamma : smoothness of the minimum.
    normalize : "x" divides costs by the length, as long streams need; None is the paper's.
    """

    loss: str = "drop"
    percentile: float = 70.0
    beta: float = 0.5
    gamma: float = 0.1
    normalize: Normalize = None

    def alignment(self) -> AlignmentLoss:
        """The alignment that is compared; Drop-DTW is the paper's Algorithm 2, both sides droppable."""
        rule = f"percentile:{self.percentile:g}"
        drops = {"drop_x": rule, "drop_z": rule, "method": "drop_dtw_paper"}
        loss = find(LOSSES, self.loss, "loss")
        return loss.build(drops, match="cosine", gamma=self.gamma, normalize=self.normalize)


@dataclass(frozen=True)
class Recipe:
    """What a row of the table is trained with."""

    objective: Objective
    lr: float
    crop: int = 0

    def __str__(self) -> str:
        drop = f"{self.objective.percentile:g}th percentile, " if LOSSES[self.objective.loss].drops else ""
        crop = f", crops of {self.crop}" if self.crop else ""
        return f"{drop}γ {self.objective.gamma:g}, learning rate {self.lr:g}{crop}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Streams that belong together, audio (B, K, d_a) and visual (B, N, d_v)."""

    audio: Tensor
    visual: Tensor

    def to(self, device: Any) -> Batch:
        """On another device."""
        return Batch(self.audio.to(device), self.visual.to(device))


class TwoBranches(nn.Module):
    """Audio (…, d_a) and visual (…, d_v) elements → vectors (…, 64) of one space; with a loss for training."""

    def __init__(self, audio_dim: int, visual_dim: int, objective: Objective) -> None:
        super().__init__()
        self.audio, self.visual = (
            nn.Sequential(nn.Linear(dim, 128), nn.LeakyReLU(), nn.Linear(128, 64)) for dim in (audio_dim, visual_dim)
        )
        self.margin = MarginLoss(objective.alignment(), objective.beta, negatives="all", reduction="none")

    def forward(self, batch: Batch) -> Tensor:
        """The loss of each video, (B,): its picture against other sounds, and its sound against other pictures."""
        a, v = self.audio(batch.audio), self.visual(batch.visual)
        found: Tensor = self.margin(a, v) + self.margin(v, a)
        return found

    @torch.no_grad()
    def embed(self, audio: Array, visual: Array) -> tuple[Array, Array]:
        """Both streams (n, T, d) as vectors of length 1: the training knows directions only."""
        device = next(self.parameters()).device
        a, v = (
            nn.functional.normalize(branch(torch.from_numpy(stream).to(device)), dim=-1).cpu().numpy()
            for branch, stream in ((self.audio, audio), (self.visual, visual))
        )
        return a, v


def locate(query: Array, stream: Array) -> int:
    """Where in a stream (T, d) a query (L, d) begins: the window with the smallest sum of Euclidean distances.

    >>> locate(np.array([[1.0], [2.0]]), np.array([[0.0], [1.1], [2.2], [2.0]]))
    1
    """
    L, T = len(query), len(stream)
    if not 0 < L <= T:
        raise ValueError(f"the query has {L} elements and the stream {T}; a query is not empty and not longer")
    distances = np.linalg.norm(query[:, None] - stream[None], axis=2)
    windows = np.arange(T - L + 1)[:, None] + np.arange(L)
    return int(distances[np.arange(L), windows].sum(axis=1).argmin())


def evaluate(
    audio: Array, visual: Array, events: Sequence[Event], tolerances: Sequence[int] = (0,)
) -> dict[str, list[float]]:
    """The share of events that are found by AVE's protocol, "A2V" and "V2A", within each tolerance in elements.

    audio, visual : (n, T, d), vectors of one space. The length of an event is known, so its start decides. Events that
    fill their stream are skipped, for there is nothing to find.
    """
    off: dict[str, list[int]] = {"A2V": [], "V2A": []}
    for video, start, stop in events:
        if stop - start == audio.shape[1]:
            continue
        for name, one, other in (("A2V", audio, visual), ("V2A", visual, audio)):
            off[name].append(abs(locate(one[video, start:stop], other[video]) - start))
    if not off["A2V"]:
        raise ValueError(f"none of {len(events)} events leaves anything to find; give some that do not fill the stream")
    return {name: [float((np.array(errors) <= t).mean()) for t in tolerances] for name, errors in off.items()}


def chance(events: Sequence[Event], length: int, tolerances: Sequence[int] = (0,)) -> list[float]:
    """What guessing a start finds, within each tolerance."""
    found: list[list[float]] = [[] for _ in tolerances]
    for _, start, stop in events:
        places = np.arange(length - (stop - start) + 1)
        if len(places) > 1:
            for t, shares in zip(tolerances, found, strict=True):
                shares.append(float((np.abs(places - start) <= t).mean()))
    return [float(np.mean(shares)) for shares in found]


def splice(stream: Array, strange: Array, passages: int, length: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The stream (T, d) with passages of another one set in at random, and which elements are strange.

    Each is `length` elements in a row from anywhere in `strange`; the stream's own keep their order.
    """
    if not 0 < length <= len(strange):
        raise ValueError(f"a passage of {length} does not fit into a stream of {len(strange)}; give a shorter one")
    places = np.sort(rng.integers(0, len(stream) + 1, passages))
    parts, marks, done = [], [], 0
    for place in places.tolist():
        begin = int(rng.integers(0, len(strange) - length + 1))
        parts += [stream[done:place], strange[begin : begin + length]]
        marks += [np.zeros(place - done, bool), np.ones(length, bool)]
        done = place
    return np.concatenate([*parts, stream[done:]]), np.concatenate([*marks, np.zeros(len(stream) - done, bool)])


def cca(audio: Array, visual: Array, components: int = 40, ridge: float = 1e-2) -> tuple[Array, Array]:
    """Linear canonical correlation of paired rows, centred, (n, d_a) and (n, d_v): two maps (d, components)."""
    roots = []
    for rows in (audio, visual):
        values, vectors = np.linalg.eigh(rows.T @ rows / len(rows) + ridge * np.eye(rows.shape[1]))
        roots.append((vectors / np.sqrt(values)) @ vectors.T)
    left, strength, right = np.linalg.svd(roots[0] @ (audio.T @ visual / len(audio)) @ roots[1])
    k = min(components, len(strength))
    return roots[0] @ left[:, :k] * strength[:k], roots[1] @ right[:k].T * strength[:k]
