"""Alignment as a proxy task (paper Section 4.3): pairs of videos of one action, their contamination, and encoders.

A pair is X and Y, N frames each, sampled evenly from two videos of the same action. Ŷ is Y with frames of another
action inserted at random; X stays clean. A pair depends only on its index and a seed, so that training can be
interrupted and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.problem.inputs import Array
from reproduction.common.losses import DROP, SMOOTH, Loss
from reproduction.common.registry import find

FRAMES: Final = 20
"""N, the number of frames of each video in a pair."""

LOSSES: Final[dict[str, Loss]] = {"smooth": SMOOTH, "drop": DROP}
"""The alignment losses to compare."""

OFFSETS: Final = (-4, -2, 0, 2, 4)
"""Offsets of the frames that an encoder sees around a frame, including the frame itself."""


@dataclass(frozen=True, eq=False)
class Clips:
    """Videos of several actions.

    actions, lengths : one per video.   read : (video, frame indices (n,)) → frames (n, …), poses or images.
    phases : the progress of the action in each frame of each video, 0 to 1; None if unknown.
    """

    actions: tuple[str, ...]
    lengths: tuple[int, ...]
    read: Callable[[int, Array], Array]
    phases: tuple[Array, ...] | None = None

    def __len__(self) -> int:
        return len(self.actions)

    @cached_property
    def by_action(self) -> dict[str, list[int]]:
        """The actions, sorted by name, with the indices of their videos."""
        found: dict[str, list[int]] = {action: [] for action in sorted(set(self.actions))}
        for k, action in enumerate(self.actions):
            found[action].append(k)
        return found

    def of(self, action: str) -> list[int]:
        """The indices of the videos of an action."""
        return self.by_action.get(action, [])

    def only(self, which: Sequence[int]) -> Clips:
        """Select some of the videos."""
        chosen = [int(k) for k in which]
        phases = None if self.phases is None else tuple(self.phases[k] for k in chosen)
        actions, lengths = (tuple(part[k] for k in chosen) for part in (self.actions, self.lengths))
        return Clips(actions, lengths, lambda k, at: self.read(chosen[k], at), phases)  # type: ignore[arg-type]

    def inside(self, video: int, offsets: Sequence[int] = OFFSETS) -> Array:
        """The frames of a video that have all their neighbors.

        The others are not used: padded neighbors would reveal how close the end of the video is.
        """
        first, stop = -min(offsets), self.lengths[video] - max(offsets)
        if first >= stop:
            raise ValueError(
                f"video {video} has {self.lengths[video]} frames, none of which has all neighbors {tuple(offsets)}; "
                "remove the video, or use closer neighbors"
            )
        return np.arange(first, stop)

    def windows(self, video: int, at: Array, offsets: Sequence[int] = OFFSETS) -> Array:
        """The frames `at` of a video, each with its neighbors: (n, W, …)."""
        wanted = np.asarray(at)[:, None] + np.asarray(offsets)
        each, back = np.unique(wanted, return_inverse=True)  # read images shared by several windows once
        return self.read(video, each)[back.reshape(wanted.shape)]


@dataclass(frozen=True, eq=False)
class ClipPair:
    """X (N, 2) and Ŷ (M, 2) as rows (video, frame), and a mask (M,) of the outliers in Ŷ."""

    x: Array
    y: Array
    outlier: Array


def strided(frames: Array, count: int, start: float) -> Array:
    """Sample `count` evenly spaced frames; start : position within each interval, 0 ≤ start < 1."""
    return np.asarray(frames[((np.arange(count) + start) * len(frames) / count).astype(np.int64)])


def outliers(share: float, count: int = FRAMES, share_of: str = "mixed") -> int:
    """The number of outliers for `count` frames of Y. The paper's "p % outlier frames" can be read in two ways.

    share_of : "mixed", this share of all frames of Ŷ; or "own", this share of the number of Y's frames.

    >>> [outliers(p / 100) for p in (0, 10, 20, 30, 40, 50)]
    [0, 2, 5, 9, 13, 20]
    >>> outliers(0.5, share_of="own")
    10
    """
    if share_of not in ("mixed", "own"):
        raise ValueError(f"share_of is {share_of!r}; choose 'mixed' (of all frames of Ŷ) or 'own' (of Y's frames)")
    if not 0 <= share < 1:
        raise ValueError(f"the share of outliers is {share}; give a number from 0 to less than 1, such as 0.3")
    return round(count * share / (1 - share) if share_of == "mixed" else count * share)


def contaminate(y: Array, strange: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Insert the rows of `strange`, shuffled, at random places in y; return the result (M, …) and their mask (M,)."""
    total = len(y) + len(strange)
    outlier = np.zeros(total, bool)
    outlier[rng.choice(total, len(strange), replace=False)] = True
    mixed = np.empty((total, *y.shape[1:]), y.dtype)
    mixed[~outlier], mixed[outlier] = y, rng.permutation(strange)
    return mixed, outlier


def make_pair(
    clips: Clips,
    number: int,
    share: float,
    seed: int,
    *,
    share_of: str = "mixed",
    count: int = FRAMES,
    offsets: Sequence[int] = OFFSETS,
) -> ClipPair:
    """Create the pair with this index: two videos of one action, and outliers from a video of another action."""
    rng = np.random.default_rng([seed, number])
    actions = list(clips.by_action)
    action, other = rng.choice(len(actions), 2, replace=False) if len(actions) > 1 else (0, 0)
    a, b = rng.choice(clips.of(actions[action]), 2, replace=False)
    x, y = (
        np.stack([np.full(count, k), strided(clips.inside(int(k), offsets), count, rng.random())], axis=1)
        for k in (a, b)
    )
    # The random numbers above do not depend on the share: levels differ only in their outliers.
    wanted = outliers(share, count, share_of)
    if not wanted:
        return ClipPair(x, y, np.zeros(count, bool))
    if action == other:
        raise ValueError("there is only one action, so there are no outliers to draw; give two or more actions")
    c = int(rng.choice(clips.of(actions[other])))
    inside = clips.inside(c, offsets)
    drawn = rng.choice(inside, wanted, replace=len(inside) < wanted)
    mixed, outlier = contaminate(y, np.stack([np.full(wanted, c), drawn], axis=1), rng)
    return ClipPair(x, mixed, outlier)


@dataclass(frozen=True, eq=False)
class Windows:
    """A batch of pairs: X (B, N, W, …) and Ŷ (B, M, W, …)."""

    x: Tensor
    y: Tensor

    @classmethod
    def of(cls, clips: Clips, chosen: Sequence[ClipPair], offsets: Sequence[int] = OFFSETS) -> Windows:
        """Read the frames of these pairs."""
        return cls(*(_stacked([_frames(clips, part, offsets) for part in parts])
                     for parts in ([p.x for p in chosen], [p.y for p in chosen])))  # fmt: skip

    def to(self, device: Any) -> Windows:
        """Copy to another device."""
        return Windows(self.x.to(device), self.y.to(device))


def _stacked(parts: list[Array]) -> Tensor:
    return torch.from_numpy(np.stack(parts))


def _frames(clips: Clips, places: Array, offsets: Sequence[int]) -> Array:
    """Read the windows (M, W, …) of (video, frame) rows."""
    parts = {int(video): places[:, 0] == video for video in np.unique(places[:, 0])}
    found = {video: clips.windows(video, places[rows, 1], offsets) for video, rows in parts.items()}
    first = next(iter(found.values()))
    whole = np.empty((len(places), *first.shape[1:]), first.dtype)
    for video, rows in parts.items():
        whole[rows] = found[video]
    return whole


class PoseEncoder(nn.Module):
    """Maps poses with their neighbors (…, W, d) to unit vectors (…, size)."""

    def __init__(self, dim: int, *, offsets: Sequence[int] = OFFSETS, hidden: int = 128, size: int = 64) -> None:
        super().__init__()
        self.offsets = tuple(offsets)
        self.layers = nn.Sequential(
            nn.Flatten(-2),
            nn.Linear(len(self.offsets) * dim, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, size),
        )

    def forward(self, windows: Tensor) -> Tensor:
        """Compute the embeddings."""
        return nn.functional.normalize(self.layers(windows), dim=-1)


class ImageEncoder(nn.Module):
    """Maps images with their neighbors, bytes (…, W, H, H', 3), to unit vectors (…, size).

    As in temporal cycle-consistency learning (Dwibedi et al. 2019), it applies a ConvNet to each image, a convolution
    over the neighbors' maps, a maximum over all positions and times, and a linear layer. The default ConvNet is small
    and untrained; `backbone` can be any module that maps (n, 3, H, H') in [0, 1] to (n, channels, h, w).
    """

    def __init__(
        self,
        *,
        offsets: Sequence[int] = OFFSETS,
        backbone: nn.Module | None = None,
        channels: int = 128,
        size: int = 128,
    ) -> None:
        super().__init__()
        self.offsets = tuple(offsets)
        self.backbone = backbone or _small_convnet(channels)
        self.over_time = nn.Conv3d(channels, channels, (len(self.offsets), 3, 3), padding=(0, 1, 1))
        self.last = nn.Linear(channels, size)

    def forward(self, windows: Tensor) -> Tensor:
        """Compute the embeddings."""
        lead, (W, H, across, colors) = windows.shape[:-4], windows.shape[-4:]
        images = windows.reshape(-1, H, across, colors).permute(0, 3, 1, 2).float() / 255
        maps = self.backbone(images)
        maps = maps.view(-1, W, *maps.shape[1:]).transpose(1, 2)
        pooled = torch.relu(self.over_time(maps)).amax(dim=(2, 3, 4))
        return nn.functional.normalize(self.last(pooled), dim=-1).view(*lead, -1)


def _small_convnet(channels: int) -> nn.Module:
    layers: list[nn.Module] = []
    before = 3
    for after in (32, 64, 96, channels):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(8, after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers)


@dataclass(frozen=True)
class Objective:
    """The training objective. loss : a key of `LOSSES`.   percentile : for the drop cost, if the loss has one.

    gamma_match : temperature of the softmax over X's frames (Eq. 4).   gamma : smoothness of the minimum.
    """

    loss: str = "drop"
    percentile: float = 30.0
    gamma_match: float = 0.1
    gamma: float = 0.1

    def module(self) -> nn.Module:
        """Build the loss: Z is the clean X, which is matched completely; frames of Ŷ may be dropped."""
        return find(LOSSES, self.loss, "loss").build(
            {"drop_x": f"percentile:{self.percentile:g}"},
            match=f"softmax:{self.gamma_match}",
            gamma=self.gamma,
            normalize="x",
            reduction="none",
        )


class Aligner(nn.Module):
    """An encoder with its training loss; maps a batch of pairs to their losses."""

    def __init__(self, encoder: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.encoder, self.loss = encoder, objective.module()

    def forward(self, batch: Windows) -> Tensor:
        """The loss of each pair, (B,). Only the softmax in the match cost prevents the embeddings from collapsing."""
        found: Tensor = self.loss(self.encoder(batch.x), self.encoder(batch.y))
        return found

    @torch.no_grad()
    def embed(self, clips: Clips, video: int, batch: int = 256) -> Array:
        """Embed the frames `clips.inside` a video: (n, size)."""
        self.eval()
        offsets: Any = self.encoder.offsets
        device = next(self.parameters()).device
        at = clips.inside(video, offsets)
        parts = [
            self.encoder(torch.from_numpy(clips.windows(video, at[k : k + batch], offsets)).to(device)).cpu().numpy()
            for k in range(0, len(at), batch)
        ]
        return np.concatenate(parts)
