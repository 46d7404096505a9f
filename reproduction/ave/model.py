"""The model of audio-visual localization (paper Section 4.4): two branches that map both streams into one space.

As in AVE, a branch is two linear layers with a LeakyReLU in between. The margin loss requires that sound and picture
of one video cost less to align than those of two videos; the experiment compares alignments. There are no annotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.problem.inputs import Array
from dropdtw.torch import MarginLoss
from dropdtw.torch.losses import AlignmentLoss
from dropdtw.torch.reduction import Normalize
from reproduction.common.losses import DROP, OTAM, SMOOTH, Loss
from reproduction.common.registry import find

LOSSES: Final[dict[str, Loss]] = {"otam": OTAM, "smooth": SMOOTH, "drop": DROP}
"""The alignments to compare."""

Event = tuple[int, int, int]
"""(video, start, stop): the elements [start, stop) of a video's streams to find."""


@dataclass(frozen=True)
class Objective:
    """The training objective: a margin loss over an alignment of `LOSSES`, with cosine costs.

    percentile : sets both drop costs.   beta : the margin.   gamma : smoothness of the minimum.
    normalize : "x" divides costs by the length, as long streams need; None follows the paper.
    """

    loss: str = "drop"
    percentile: float = 70.0
    beta: float = 0.5
    gamma: float = 0.1
    normalize: Normalize = None

    def alignment(self) -> AlignmentLoss:
        """The alignment in the loss; Drop-DTW is the paper's Algorithm 2, with drops on both sides."""
        rule = f"percentile:{self.percentile:g}"
        drops = {"drop_x": rule, "drop_z": rule, "method": "drop_dtw_paper"}
        loss = find(LOSSES, self.loss, "loss")
        return loss.build(drops, match="cosine", gamma=self.gamma, normalize=self.normalize)


@dataclass(frozen=True)
class Recipe:
    """The training settings of a row of the table."""

    objective: Objective
    lr: float
    crop: int = 0

    def __str__(self) -> str:
        drop = f"{self.objective.percentile:g}th percentile, " if LOSSES[self.objective.loss].drops else ""
        crop = f", crops of {self.crop}" if self.crop else ""
        return f"{drop}γ {self.objective.gamma:g}, learning rate {self.lr:g}{crop}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Paired streams, audio (B, K, d_a) and visual (B, N, d_v)."""

    audio: Tensor
    visual: Tensor

    def to(self, device: Any) -> Batch:
        """Copy to another device."""
        return Batch(self.audio.to(device), self.visual.to(device))


class TwoBranches(nn.Module):
    """Audio (…, d_a) and visual (…, d_v) elements → vectors (…, 64) in one space, with the training loss."""

    def __init__(self, audio_dim: int, visual_dim: int, objective: Objective) -> None:
        super().__init__()
        self.audio, self.visual = (
            nn.Sequential(nn.Linear(dim, 128), nn.LeakyReLU(), nn.Linear(128, 64)) for dim in (audio_dim, visual_dim)
        )
        self.margin = MarginLoss(objective.alignment(), objective.beta, negatives="all", reduction="none")

    def forward(self, batch: Batch) -> Tensor:
        """The loss of each video, (B,): its picture against other sounds, plus its sound against other pictures."""
        a, v = self.audio(batch.audio), self.visual(batch.visual)
        found: Tensor = self.margin(a, v) + self.margin(v, a)
        return found

    @torch.no_grad()
    def embed(self, audio: Array, visual: Array) -> tuple[Array, Array]:
        """Embed both streams (n, T, d) as unit vectors: the training loss depends on directions only."""
        device = next(self.parameters()).device
        a, v = (
            nn.functional.normalize(branch(torch.from_numpy(stream).to(device)), dim=-1).cpu().numpy()
            for branch, stream in ((self.audio, audio), (self.visual, visual))
        )
        return a, v


def locate(query: Array, stream: Array) -> int:
    """The start of a query (L, d) in a stream (T, d): the window with the smallest sum of Euclidean distances.

    >>> locate(np.array([[1.0], [2.0]]), np.array([[0.0], [1.1], [2.2], [2.0]]))
    1
    """
    L, T = len(query), len(stream)
    if not 0 < L <= T:
        raise ValueError(f"the query has {L} elements and the stream {T}; give a shorter, non-empty query")
    distances = np.linalg.norm(query[:, None] - stream[None], axis=2)
    windows = np.arange(T - L + 1)[:, None] + np.arange(L)
    return int(distances[np.arange(L), windows].sum(axis=1).argmin())


def evaluate(
    audio: Array, visual: Array, events: Sequence[Event], tolerances: Sequence[int] = (0,)
) -> dict[str, list[float]]:
    """The share of events found under AVE's protocol, "A2V" and "V2A", within each tolerance in elements.

    audio, visual : (n, T, d), vectors in one space. The length of an event is known, so only its start is compared.
    Events that fill their stream are skipped, because there is nothing to find.
    """
    off: dict[str, list[int]] = {"A2V": [], "V2A": []}
    for video, start, stop in events:
        if stop - start == audio.shape[1]:
            continue
        for name, one, other in (("A2V", audio, visual), ("V2A", visual, audio)):
            off[name].append(abs(locate(one[video, start:stop], other[video]) - start))
    if not off["A2V"]:
        raise ValueError(f"all {len(events)} events fill their stream; give events that are shorter")
    return {name: [float((np.array(errors) <= t).mean()) for t in tolerances] for name, errors in off.items()}


def chance(events: Sequence[Event], length: int, tolerances: Sequence[int] = (0,)) -> list[float]:
    """The share of events found by guessing the start, within each tolerance."""
    found: list[list[float]] = [[] for _ in tolerances]
    for _, start, stop in events:
        places = np.arange(length - (stop - start) + 1)
        if len(places) > 1:
            for t, shares in zip(tolerances, found, strict=True):
                shares.append(float((np.abs(places - start) <= t).mean()))
    return [float(np.mean(shares)) for shares in found]


def splice(stream: Array, strange: Array, passages: int, length: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Insert passages of another stream into the stream (T, d) at random; return it with a mask of the new elements.

    Each passage is `length` consecutive elements from anywhere in `strange`; the stream's own keep their order.
    """
    if not 0 < length <= len(strange):
        raise ValueError(f"a passage has length {length}; give 1 to {len(strange)}, the length of its stream")
    places = np.sort(rng.integers(0, len(stream) + 1, passages))
    parts, marks, done = [], [], 0
    for place in places.tolist():
        begin = int(rng.integers(0, len(strange) - length + 1))
        parts += [stream[done:place], strange[begin : begin + length]]
        marks += [np.zeros(place - done, bool), np.ones(length, bool)]
        done = place
    return np.concatenate([*parts, stream[done:]]), np.concatenate([*marks, np.zeros(len(stream) - done, bool)])


def cca(audio: Array, visual: Array, components: int = 40, ridge: float = 1e-2) -> tuple[Array, Array]:
    """Linear CCA of paired, centered rows (n, d_a) and (n, d_v); return two maps (d, components)."""
    roots = []
    for rows in (audio, visual):
        values, vectors = np.linalg.eigh(rows.T @ rows / len(rows) + ridge * np.eye(rows.shape[1]))
        roots.append((vectors / np.sqrt(values)) @ vectors.T)
    left, strength, right = np.linalg.svd(roots[0] @ (audio.T @ visual / len(audio)) @ roots[1])
    k = min(components, len(strength))
    return roots[0] @ left[:, :k] * strength[:k], roots[1] @ right[:k].T * strength[:k]
