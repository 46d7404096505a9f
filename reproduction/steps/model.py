"""The step-localization model (paper Section 4.2): a small network on the frames, and its training loss.

Frames and step embeddings are standardized with the statistics of the training set; frames are then mapped by
x + W₂ ReLU(W₁ x). The losses are combined as in the authors' experiments: 4 · L_clust + 2.5 · D / N.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.costs import Softmax
from dropdtw.drops import EPSILON, LogitPercentile
from dropdtw.orders import Order
from dropdtw.problem.inputs import Array
from dropdtw.torch import ClusteringLoss, D3TWLoss, LearnedDrop
from dropdtw.torch.batch import Pairs, pairs
from dropdtw.torch.losses import AlignmentLoss
from reproduction.common.registry import find
from reproduction.data.steps import Batch, StepVideo
from reproduction.steps.inference import OFFSETS, PERCENTILES
from reproduction.steps.losses import LOSSES


@dataclass(frozen=True)
class Objective:
    """The training objective.

    loss : a key of `LOSSES`.   cluster : whether L_clust is added.
    percentile : percentile of the drop cost.   drops : what it is a percentile of: the similarities, as one more class
        of the softmax ("logit", the authors'), or the match costs ("percentile", the paper's Eq. 5).
    reducer : the minimum in the recurrence: "smooth", "soft" or "hard"; None: that of the loss's authors.
    exclusive : whether a frame matches at most one step, and a step one unbroken run of frames (method="steps"); None:
        only if the loss drops frames.
    form, negatives : L_clust, see `ClusteringLoss`.
    text : step embeddings are standardized by the training set, or scaled to length √d ("unit").
    gamma_match, gamma_test : temperatures of the softmax over steps, in training and at inference.
    gamma_pool, gamma_contrast : temperatures of L_clust.
    Temperatures are the authors', for 512 features. For d features they are scaled by d / 512, like dot products.
    """

    loss: str = "drop-percentile"
    cluster: bool = True
    percentile: float = 30.0
    drops: Literal["logit", "percentile"] = "logit"
    reducer: str | None = None
    exclusive: bool | None = None
    form: Literal["contrastive", "frobenius"] = "contrastive"
    negatives: Literal["batch", "item"] = "batch"
    text: Literal["standardized", "unit"] = "standardized"
    gamma_match: float = 10.0
    gamma_test: float = 30.0
    gamma_pool: float = 10.0
    gamma_contrast: float = 30.0
    weight: float = 2.5
    cluster_weight: float = 4.0

    def __post_init__(self) -> None:
        find(LOSSES, self.loss, "loss")

    @property
    def trains(self) -> bool:
        """Whether there is anything to minimize."""
        return self.cluster or LOSSES[self.loss].make is not None


@dataclass(frozen=True, eq=False)
class Tensors:
    """A batch of videos as tensors. orders : order of the steps of each video; None: as listed."""

    frames: Tensor
    steps: Tensor
    ids: Tensor
    x_lengths: Tensor
    z_lengths: Tensor
    orders: tuple[Order, ...] | None = None

    @classmethod
    def of(cls, batch: Batch) -> Tensors:
        """Convert a collated batch of arrays."""
        arrays = (batch.frames, batch.steps, batch.step_ids, batch.x_lengths, batch.z_lengths)
        frames, steps, ids, x, z = (torch.from_numpy(np.ascontiguousarray(a)) for a in arrays)
        return cls(frames, steps, ids, x, z, batch.orders)

    @property
    def real(self) -> Tensor:
        """(B, N): which frames are not padding."""
        return torch.arange(self.frames.shape[1], device=self.frames.device) < self.x_lengths[:, None]

    def to(self, device: Any) -> Tensors:
        """Copy to another device."""
        parts = (self.frames, self.steps, self.ids, self.x_lengths, self.z_lengths)
        frames, steps, ids, x, z = (part.to(device) for part in parts)
        return Tensors(frames, steps, ids, x, z, self.orders)


class StepModel(nn.Module):
    """Maps frames (N, d) to embeddings (N, d') in the space of the steps; has a training loss and inference costs.

    frame_dim, step_dim : d and d'. If they differ, a linear layer comes first.
    """

    mean: Tensor
    std: Tensor
    step_mean: Tensor
    step_std: Tensor

    def __init__(self, frame_dim: int, step_dim: int, objective: Objective) -> None:
        super().__init__()
        self.objective = objective
        self.register_buffer("mean", torch.zeros(frame_dim))
        self.register_buffer("std", torch.ones(frame_dim))
        self.register_buffer("step_mean", torch.zeros(step_dim))
        self.register_buffer("step_std", torch.ones(step_dim))
        self.project = nn.Identity() if frame_dim == step_dim else nn.Linear(frame_dim, step_dim)
        self.network: nn.Module = nn.Sequential(nn.Linear(step_dim, step_dim), nn.ReLU(), nn.Linear(step_dim, step_dim))
        loss = LOSSES[objective.loss]
        self.drop = None if loss.learned is None else loss.learned(step_dim, objective.percentile)
        scale = step_dim / 512
        self.gamma_test = objective.gamma_test * scale
        self.align = _alignment(objective, self.drop, objective.gamma_match * scale)
        self.cluster = _clustering(objective, scale, self.drop if loss.background else None)

    def standardize(self, videos: Iterable[StepVideo]) -> None:
        """Set the mean and deviation of frames and steps from the training videos; a step counts in each video."""
        videos = list(videos)
        for name, mean, std in (("frames", self.mean, self.std), ("steps", self.step_mean, self.step_std)):
            rows = np.concatenate([getattr(video, name) for video in videos])
            mean.copy_(torch.from_numpy(rows.mean(axis=0)))
            std.copy_(torch.from_numpy(np.maximum(rows.std(axis=0), 1e-6)))

    def embed_steps(self, steps: Tensor) -> Tensor:
        """Standardize step embeddings (…, d'), or scale them to the same size."""
        if self.objective.text == "unit":
            scaled: Tensor = nn.functional.normalize(steps, dim=-1) * math.sqrt(steps.shape[-1])
            return scaled
        return (steps - self.step_mean) / self.step_std

    def embed(self, frames: Tensor) -> Tensor:
        """Embed frames (…, d)."""
        x = self.project((frames - self.mean) / self.std)
        mapped: Tensor = x + self.network(x)
        return mapped

    def embed_batch(self, batch: Tensors) -> Tensor:
        """Embed the frames of a batch, (B, N, d'), with zeros for the padding, which is half of it."""
        if batch.frames.is_cuda:  # picking the real frames would wait for the GPU
            return self.embed(batch.frames).where(batch.real[..., None], 0.0)
        X = batch.frames.new_zeros(*batch.frames.shape[:2], batch.steps.shape[2])
        X[batch.real] = self.embed(batch.frames[batch.real])
        return X

    def forward(self, batch: Tensors) -> Tensor:
        """The loss of each video, (B,)."""
        X = self.embed_batch(batch)
        Z = self.embed_steps(batch.steps)
        p = pairs(Z, X, batch.z_lengths, batch.x_lengths, batch.ids)
        aligned = None if self.align is None else self.objective.weight * self.aligned(p, batch.orders)
        if self.cluster is None:
            return X.new_zeros(len(X)) if aligned is None else aligned
        clustered = self.objective.cluster_weight * self.clustered(p)
        return clustered if aligned is None else aligned + clustered

    def clustered(self, p: Pairs) -> Tensor:
        """L_clust of each video. Its printed form needs products of size 1: standardized features have size d."""
        assert self.cluster is not None
        if self.objective.form == "contrastive":
            return self.cluster.values(p)
        size = p.given_z.shape[-1] ** -0.5
        return self.cluster.values(pairs(p.given_z * size, p.given_x * size, p.z_lengths, p.x_lengths, p.names))

    def aligned(self, p: Pairs, orders: tuple[Order, ...] | None) -> Tensor:
        """The alignment loss of each video."""
        if isinstance(self.align, D3TWLoss):  # which creates its own negative pairs
            told = {"z_lengths": p.z_lengths, "x_lengths": p.x_lengths, "ids": p.names}
            found: Tensor = self.align(p.given_z, p.given_x, **told, order=orders)
            return found
        assert isinstance(self.align, AlignmentLoss)
        return self.align.values(p, orders)

    @torch.no_grad()
    def vectors(self, video: StepVideo) -> tuple[Array, Array]:
        """The embeddings of the steps (K, d') and frames (N, d') of a video."""
        frames, steps = (torch.from_numpy(part).to(self.mean.device) for part in (video.frames, video.steps))
        return self.embed_steps(steps).cpu().numpy(), self.embed(frames).cpu().numpy()

    @property
    def settings(self) -> tuple[float, ...]:
        """Candidates for what inference tunes on validation videos: a percentile, or the offset of a learned logit."""
        return OFFSETS if self.drop is not None and self.drop.anchor is None else PERCENTILES

    @torch.no_grad()
    def costs(self, video: StepVideo, setting: float | None = None) -> tuple[Array, Array]:
        """Match costs (K, N) and drop costs (N,) of a video.

        setting : one of `settings`; None: the percentile of training, or no offset.
        """
        Z, X = self.vectors(video)
        match = Softmax(self.gamma_test, tuple(video.step_ids.tolist()))
        percentile = self.objective.percentile if setting is None else setting
        if self.drop is None:
            if self.objective.drops == "percentile":
                C = match(Z, X)
                return C, np.full(C.shape[1], np.percentile(C, percentile))
            rule = LogitPercentile(percentile)
            return match.with_drop_logits(Z, X, rule.logits, rule.epsilon)
        own = self.drop(*(torch.from_numpy(part)[None].to(self.mean.device) for part in (Z, X)))[0].cpu().numpy()
        if self.drop.anchor is None:
            own = own + self.gamma_test * (setting or 0.0)
            return match.with_drop_logits(Z, X, lambda S: own, EPSILON)
        rule = LogitPercentile(percentile)
        return match.with_drop_logits(Z, X, lambda S: rule.logits(S) + own - own.mean(), rule.epsilon)


def _clustering(objective: Objective, scale: float, background: LearnedDrop | None) -> ClusteringLoss | None:
    """Build L_clust. scale : d / 512."""
    if not objective.cluster:
        return None
    if objective.form == "frobenius":
        return ClusteringLoss(gamma=objective.gamma_pool / 512, reduction="none")  # for products divided by d
    return ClusteringLoss(
        "contrastive",
        gamma=objective.gamma_pool * scale,
        gamma_contrast=objective.gamma_contrast * scale,
        negatives=objective.negatives,
        background=background,
        reduction="none",
    )


def _alignment(objective: Objective, drop: LearnedDrop | None, gamma_match: float) -> nn.Module | None:
    """Build the alignment loss of an objective, normalized by the number of frames."""
    loss = LOSSES[objective.loss]
    if loss.make is None:
        return None
    options: dict[str, Any] = {"match": f"softmax:{gamma_match}", "normalize": "x", "reduction": "none"}
    if objective.reducer is not None:
        options["reducer"] = objective.reducer
    if loss.drops if objective.exclusive is None else objective.exclusive:
        options.update(many_to_one=False, contiguous=loss.drops)
    return loss.build({"drop_x": f"{objective.drops}:{objective.percentile:g}" if drop is None else drop}, **options)
