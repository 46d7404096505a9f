"""Alignment as a proxy task (paper Section 4.3): pairs of videos of one action, their contamination, and encoders.

A pair is X and Y, N frames each, strided over the whole of two videos of the same action. Ŷ is Y with frames of another
action strewn in; X is left as it is. Everything about a pair follows from its number and a seed, so that training can
be interrupted and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from dropdtw.experiments.common.losses import DROP, SMOOTH, Loss
from dropdtw.experiments.common.registry import find
from dropdtw.problem.inputs import Array

FRAMES: Final = 20
"""N: how many frames of a video a pair has."""

LOSSES: Final[dict[str, Loss]] = {"smooth": SMOOTH, "drop": DROP}
"""The alignment losses that are compared; a new one is an entry."""

OFFSETS: Final = (-4, -2, 0, 2, 4)
"""The neighbours of a frame that an encoder sees, itself among them."""


@dataclass(frozen=True, eq=False)
class Clips:
    """Videos of several actions.

    actions, lengths : of each video.   read : (video, frame numbers (n,)) → frames (n, …), poses or images.
    phases : for each video how far the action has got in each frame, 0 to 1, where that is known; None where not.
    """

    actions: tuple[str, ...]
    lengths: tuple[int, ...]
    read: Callable[[int, Array], Array]
    phases: tuple[Array, ...] | None = None

    def __len__(self) -> int:
        return len(self.actions)

    @cached_property
    def by_action(self) -> dict[str, list[int]]:
        """The actions in the order of their names, with the numbers of their videos."""
        found: dict[str, list[int]] = {action: [] for action in sorted(set(self.actions))}
        for k, action in enumerate(self.actions):
            found[action].append(k)
        return found

    def of(self, action: str) -> list[int]:
        """The numbers of the videos of an action."""
        return self.by_action.get(action, [])

    def only(self, which: Sequence[int]) -> Clips:
        """Some of the videos."""
        chosen = [int(k) for k in which]
        phases = None if self.phases is None else tuple(self.phases[k] for k in chosen)
        actions, lengths = (tuple(part[k] for k in chosen) for part in (self.actions, self.lengths))
        return Clips(actions, lengths, lambda k, at: self.read(chosen[k], at), phases)  # type: ignore[arg-type]

    def inside(self, video: int, offsets: Sequence[int] = OFFSETS) -> Array:
        """The frames of a video that have all their neighbours.

        Others are not used: from neighbours that are made up an encoder could tell how near the end is.
        """
        first, stop = -min(offsets), self.lengths[video] - max(offsets)
        if first >= stop:
            raise ValueError(
                f"video {video} has {self.lengths[video]} frames, and none of them has neighbours {tuple(offsets)}; "
                "leave it out, or use nearer neighbours"
            )
        return np.arange(first, stop)

    def windows(self, video: int, at: Array, offsets: Sequence[int] = OFFSETS) -> Array:
        """(n, W, …): frames `at` of a video, each with its neighbours."""
        wanted = np.asarray(at)[:, None] + np.asarray(offsets)
        each, back = np.unique(wanted, return_inverse=True)  # an image that several windows share is read once
        return self.read(video, each)[back.reshape(wanted.shape)]


@dataclass(frozen=True, eq=False)
class ClipPair:
    """X (N, 2) and Ŷ (M, 2) as (video, frame), and which of Ŷ are outliers, (M,)."""

    x: Array
    y: Array
    outlier: Array


def strided(frames: Array, count: int, start: float) -> Array:
    """`count` frames at equal distances that cover all of them; start : 0 ≤ start < 1, where in its share each lies."""
    return np.asarray(frames[((np.arange(count) + start) * len(frames) / count).astype(np.int64)])


def outliers(share: float, count: int = FRAMES, share_of: str = "mixed") -> int:
    """How many outliers go with `count` frames of Y. The paper's "p % outlier frames" can be read in two ways.

    share_of : "mixed", they are this share of Ŷ; or "own", they are as many as this share of Y's frames.

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
    """Strew rows of `strange`, in random order, between the rows of y, which keep theirs; (M, …) and (M,) which are."""
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
    """The pair of this number: an action, two of its videos, and outliers from a video of another action."""
    rng = np.random.default_rng([seed, number])
    actions = list(clips.by_action)
    action, other = rng.choice(len(actions), 2, replace=False) if len(actions) > 1 else (0, 0)
    a, b = rng.choice(clips.of(actions[action]), 2, replace=False)
    x, y = (
        np.stack([np.full(count, k), strided(clips.inside(int(k), offsets), count, rng.random())], axis=1)
        for k in (a, b)
    )
    # The random numbers above are the same for every share: levels differ in their outliers alone.
    wanted = outliers(share, count, share_of)
    if not wanted:
        return ClipPair(x, y, np.zeros(count, bool))
    if action == other:
        raise ValueError("there is one action only, and no other to take outliers from; give videos of two or more")
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
        """The frames of these pairs."""
        return cls(*(_stacked([_frames(clips, part, offsets) for part in parts])
                     for parts in ([p.x for p in chosen], [p.y for p in chosen])))  # fmt: skip

    def to(self, device: Any) -> Windows:
        """On another device."""
        return Windows(self.x.to(device), self.y.to(device))


def _stacked(parts: list[Array]) -> Tensor:
    return torch.from_numpy(np.stack(parts))


def _frames(clips: Clips, places: Array, offsets: Sequence[int]) -> Array:
    """(M, W, …) for (video, frame) rows."""
    parts = {int(video): places[:, 0] == video for video in np.unique(places[:, 0])}
    found = {video: clips.windows(video, places[rows, 1], offsets) for video, rows in parts.items()}
    first = next(iter(found.values()))
    whole = np.empty((len(places), *first.shape[1:]), first.dtype)
    for video, rows in parts.items():
        whole[rows] = found[video]
    return whole


class PoseEncoder(nn.Module):
    """A pose (d,) with its neighbours, (…, W, d), → a vector of length 1, (…, size)."""

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
        """The embeddings."""
        return nn.functional.normalize(self.layers(windows), dim=-1)


class ImageEncoder(nn.Module):
    """An image with its neighbours, bytes (…, W, H, H', 3), → a vector of length 1, (…, size).

    As in temporal cycle-consistency learning (Dwibedi et al. 2019): a ConvNet on each image, a convolution over the
    neighbours' maps, the maximum over all places and times, and a linear layer. The ConvNet is small and starts from
    scratch; another one that maps (n, 3, H, H') in [0, 1] to (n, channels, h, w) can be given.
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
        """The embeddings."""
        lead, (W, H, across, colours) = windows.shape[:-4], windows.shape[-4:]
        images = windows.reshape(-1, H, across, colours).permute(0, 3, 1, 2).float() / 255
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
    """loss : a name of `LOSSES`.   percentile : of the drop cost, where the loss has one.

    gamma_match : temperature of the softmax over X's frames (Eq. 4).   gamma : of the smooth minimum.
    """

    loss: str = "drop"
    percentile: float = 30.0
    gamma_match: float = 0.1
    gamma: float = 0.1

    def module(self) -> nn.Module:
        """The loss: Z is the clean X, all of which is matched; Ŷ is what may be dropped."""
        return find(LOSSES, self.loss, "loss").build(
            {"drop_x": f"percentile:{self.percentile:g}"},
            gamma_match=self.gamma_match,
            gamma=self.gamma,
            normalize="x",
            reduction="none",
        )


class Aligner(nn.Module):
    """An encoder, and the loss that it is trained with: maps a batch of pairs to their losses."""

    def __init__(self, encoder: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.encoder, self.loss = encoder, objective.module()

    def forward(self, batch: Windows) -> Tensor:
        """The loss of each pair, (B,). The softmax cost keeps embeddings from falling together: no other term does."""
        found: Tensor = self.loss(self.encoder(batch.x), self.encoder(batch.y))
        return found

    @torch.no_grad()
    def embed(self, clips: Clips, video: int, batch: int = 256) -> Array:
        """(n, size): the embeddings of all frames inside a video."""
        self.eval()
        offsets: Any = self.encoder.offsets
        device = next(self.parameters()).device
        at = clips.inside(video, offsets)
        parts = [
            self.encoder(torch.from_numpy(clips.windows(video, at[k : k + batch], offsets)).to(device)).cpu().numpy()
            for k in range(0, len(at), batch)
        ]
        return np.concatenate(parts)
