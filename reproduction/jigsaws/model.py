"""A small temporal network with one embedding per gesture, and its losses.

The match cost of a frame x and a gesture g is −log p(g | x) / p(g), where p(g | x) is a softmax over all gestures and
p(g) its mean over the frames of a batch. Without the prior p(g), the losses that know only the order find a solution
in which one gesture takes nearly all frames; with it, a gesture gets no cheaper by being everywhere.

All losses begin with a flat start: a training on gestures that divide each trial evenly. Without the prior, SmoothDTW
and Drop-DTW fell below it. All use the soft minimum: with the smooth one, these two learned little from junk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.problem.inputs import Array
from dropdtw.torch import ClusteringLoss, D3TWLoss, MarginLoss, ctc_loss
from dropdtw.torch.batch import Pairs, pairs
from dropdtw.torch.discriminative import shuffled
from dropdtw.torch.losses import AlignmentLoss
from reproduction.common.losses import D3TW, DROP, OTAM, SMOOTH, Loss
from reproduction.common.registry import find
from reproduction.data.steps import StepDataset, StepVideo, collate
from reproduction.steps.inference import OFFSETS, PERCENTILES
from reproduction.steps.model import Tensors

WIDTH: Final = 64
DIM: Final = 32
"""Dimension of the embeddings."""
CONTEXT: Final = 9
"""Frames that the network sees: 4.5 seconds."""
NOISE: Final = 0.1
"""Deviation of the noise on the features in training."""
FLAT: Final = "flat start"
SUPERVISED: Final = "supervised"
CTC: Final = "CTC"


@dataclass(frozen=True)
class Entry:
    """A loss. loss : the alignment loss, or None.   background : whether the model has a class for background.

    contrast : whether the loss is compared with that of a wrong order, as D³TW does by itself.
    """

    title: str
    loss: Loss | None = None
    background: bool = False
    contrast: bool = False


LOSSES: Final[dict[str, Entry]] = {
    "flat": Entry(FLAT),
    "smooth": Entry("SmoothDTW", SMOOTH),
    "otam": Entry("OTAM", OTAM),
    "drop-percentile": Entry("Drop-DTW, percentile", DROP),
    "drop-background": Entry("Drop-DTW, background class", DROP, background=True),
    "d3tw": Entry("D³TW", D3TW),
    "drop-contrast": Entry("Drop-DTW, percentile, contrast of orders", DROP, contrast=True),
    "ctc": Entry(CTC, background=True),
    "supervised": Entry(SUPERVISED, background=True),
}
"""The losses by name. Without `loss`, "ctc" is CTC, whose blank is the background class; "supervised" is the
cross-entropy of the true labels; and "flat" is no training after the flat start."""


@dataclass(frozen=True)
class Objective:
    """What to minimize. loss : a key of `LOSSES`.   percentile : of the match costs, the drop cost (Eq. 5).

    cluster : weight of L_clust; 0 leaves it out.   margin : of the contrast.
    """

    loss: str
    percentile: float = 20.0
    cluster: float = 0.0
    margin: float = 1.0

    @property
    def entry(self) -> Entry:
        """Its entry in `LOSSES`."""
        return find(LOSSES, self.loss, "loss")


@dataclass(frozen=True, eq=False)
class Labeled:
    """A batch with a class (B, N) for each frame: −1 for background, −2 for padding."""

    tensors: Tensors
    labels: Tensor

    @classmethod
    def of(cls, videos: Sequence[StepVideo], *, flat: bool = False) -> Labeled:
        """Convert videos. flat : divide the frames of each evenly among its gestures, instead of the truth."""
        tensors = Tensors.of(collate(videos))
        labels = torch.full(tensors.frames.shape[:2], -2)
        for row, video in zip(labels, videos, strict=True):
            row[: len(video.frames)] = torch.from_numpy(flat_labels(video) if flat else video.labels)
        return cls(tensors, labels)

    def to(self, device: Any) -> Labeled:
        """Copy to another device."""
        return Labeled(self.tensors.to(device), self.labels.to(device))


def flat_labels(video: StepVideo) -> Array:
    """(N,) gestures, each with an equal share of the frames, in order."""
    N, K = len(video.frames), len(video.step_ids)
    labels: Array = video.step_ids[np.arange(N) * K // N]
    return labels


class GestureModel(nn.Module):
    """Maps frames (B, N, d) to the log-ratios log p(g | x) / p(g) of gestures; has a training loss.

    With a background class, this is the last one.
    """

    prior: Tensor

    def __init__(self, dim: int, gestures: int, objective: Objective) -> None:
        super().__init__()
        self.objective = objective
        self.gestures = gestures
        self.classes = gestures + objective.entry.background
        self.window = nn.Conv1d(dim, WIDTH, CONTEXT, padding=CONTEXT // 2)
        self.network = nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, DIM))
        self.embeddings = nn.Parameter(torch.randn(gestures + 1, DIM))
        self.register_buffer("prior", torch.full((self.classes,), 1 / self.classes))
        self.align = _alignment(objective)
        self.cluster = ClusteringLoss(
            "contrastive", gamma=math.sqrt(DIM), gamma_contrast=math.sqrt(DIM), negatives="batch", reduction="none"
        )

    @property
    def background(self) -> bool:
        """Whether there is a class for background."""
        return self.classes > self.gestures

    def embed(self, frames: Tensor, real: Tensor) -> Tensor:
        """Embed frames (B, N, d) as vectors of length √DIM, (B, N, DIM), with zeros for padding."""
        if self.training:
            frames = frames + NOISE * torch.randn_like(frames)
        wide: Tensor = self.window((frames * real[..., None]).mT).mT
        if self.training:  # drop channels: one draw per trial and channel
            wide = wide * ((torch.rand(len(wide), 1, WIDTH, device=wide.device) > 0.2) / 0.8)
        X = wide.new_zeros(*real.shape, DIM)
        X[real] = nn.functional.layer_norm(self.network(wide[real]), (DIM,))
        return X

    @property
    def vectors(self) -> Tensor:
        """The embeddings of gestures and background, (G + 1, DIM), of length √DIM."""
        found: Tensor = nn.functional.normalize(self.embeddings, dim=1) * math.sqrt(DIM)
        return found

    def log_p(self, X: Tensor, classes: int) -> Tensor:
        """The log-probabilities (…, classes) of embedded frames."""
        found: Tensor = (X @ self.vectors[:classes].T / math.sqrt(DIM)).log_softmax(dim=-1)
        return found

    def forward(self, batch: Labeled) -> Tensor:
        """The loss of each trial, (B,)."""
        t = batch.tensors
        X = self.embed(t.frames, t.real)
        if self.objective.loss == "supervised":
            return cross_entropy(self.log_p(X, self.classes), batch.labels, self.gestures)
        log_p = self.log_p(X, self.classes)
        prior = log_p[t.real].exp().mean(dim=0)
        ratios = (log_p - prior.clamp_min(1e-6).log()) * t.real[..., None]
        total = self.aligned(ratios, t)
        if self.objective.cluster:
            Z = self.vectors[t.ids.clamp_min(0)]
            clustered = self.cluster.values(pairs(Z, X, t.z_lengths, t.x_lengths, t.ids))
            total = total + self.objective.cluster * clustered
        return total

    def aligned(self, ratios: Tensor, t: Tensors) -> Tensor:
        """The alignment loss of each trial per frame, (B,)."""
        if self.align is None:
            blank = self.gestures
            values = ctc_loss(ratios.transpose(0, 1), t.ids.clamp_min(0), t.x_lengths, t.z_lengths, blank, "none")
            return values / t.x_lengths
        Z = nn.functional.one_hot(t.ids.clamp_min(0), self.classes).to(ratios)
        told = {"z_lengths": t.z_lengths, "x_lengths": t.x_lengths, "ids": t.ids}
        align = self.align.changed(drop_x=-ratios[..., -1]) if self.background else self.align
        if not self.objective.entry.contrast:
            found: Tensor = align(Z, ratios, **told)
            return found
        p: Pairs = pairs(Z, ratios, t.z_lengths, t.x_lengths, t.ids)
        places = shuffled(p)
        wrong = {"wrong": Z.gather(1, places[..., None].expand_as(Z)), "wrong_ids": t.ids.gather(1, places)}
        loss = MarginLoss(align, self.objective.margin, reduction="none")
        contrasted: Tensor = loss(Z, ratios, **told, **wrong, wrong_lengths=t.z_lengths)
        return contrasted

    @torch.no_grad()
    def count(self, videos: StepDataset) -> None:
        """Set p(g) to its mean over all frames of the videos."""
        self.eval()
        total = torch.cat([self._log_p(video) for video in videos]).exp()
        self.prior.copy_(total.mean(dim=0))

    def _log_p(self, video: StepVideo) -> Tensor:
        frames = torch.from_numpy(video.frames)[None].to(self.prior.device)
        return self.log_p(self.embed(frames, torch.ones(1, frames.shape[1], dtype=torch.bool)), self.classes)[0]

    @property
    def settings(self) -> tuple[float, ...]:
        """Candidates for the drops of inference: an offset of the background's cost, or a percentile."""
        return OFFSETS if self.background else (*PERCENTILES, 90.0, 100.0)

    @torch.no_grad()
    def costs(self, video: StepVideo) -> tuple[Array, Array | None]:
        """Match costs (K, N), and the drop costs (N,) of a background class, or None."""
        self.eval()
        ratios = (self._log_p(video) - self.prior.clamp_min(1e-6).log()).cpu().numpy()
        return -ratios[:, video.step_ids].T, -ratios[:, -1] if self.background else None


class FlatStart(nn.Module):
    """The model with another loss: the cross-entropy of gestures that divide the frames of a trial evenly."""

    def __init__(self, model: GestureModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Labeled) -> Tensor:
        """The loss of each trial, (B,). The class of background takes no part."""
        t = batch.tensors
        log_p = self.model.log_p(self.model.embed(t.frames, t.real), self.model.gestures)
        return cross_entropy(log_p, batch.labels, self.model.gestures)


def cross_entropy(log_p: Tensor, labels: Tensor, background: int) -> Tensor:
    """The mean over the frames of each trial, (B,). background : the class of label −1."""
    real = labels > -2
    target = torch.where(labels >= 0, labels, background).where(real, 0)
    found = -log_p.gather(2, target[..., None])[..., 0] * real
    return found.sum(dim=1) / real.sum(dim=1)


def match(Z: Tensor, X: Tensor) -> Tensor:
    """The match costs (B, K, N) of one-hot gestures and log-ratios."""
    return -(Z @ X.mT)


def _alignment(objective: Objective) -> AlignmentLoss | None:
    """Build the alignment loss: per frame, with the soft minimum at γ = 1, because costs are negative logarithms."""
    loss = objective.entry.loss
    if loss is None:
        return None
    options: dict[str, Any] = {
        "match": match, "normalize": "x", "reducer": "soft", "gamma": 1.0, "reduction": "none",
    }  # fmt: skip
    if loss.drops:
        options.update(many_to_one=False, contiguous=True)
    drop: Any = 0.0 if objective.entry.background else f"percentile:{objective.percentile:g}"
    module = loss.build({"drop_x": drop}, **options)
    assert isinstance(module, (AlignmentLoss, D3TWLoss))
    return module
