"""The encoder of TMNIST frames (paper appendix): a four-layer ConvNet trained to classify digits.

An image of 28 × 28 becomes a map of 3 × 3 × 32. The classifier uses its mean over the 3 × 3 cells. A video frame is
64 × 64, with the digit somewhere on it. It passes through the same convolutions at its native scale, because the
network has not learned shrunken digits. Its last map is averaged into 3 × 3 cells: what is seen, and roughly where.
"""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, cross_entropy

from dropdtw.files import atomic
from dropdtw.files.progress import Progress, Report, reporter
from dropdtw.problem.inputs import Array
from reproduction.data.mnist import Mnist

CHANNELS = (3, 64, 128, 64, 32)
"""Channels of the input and of each layer."""


class Encoder(nn.Module):
    """Four times conv 3 × 3 → batch norm → ReLU → max pool → dropout; the last layer has no pooling."""

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for number, (before, after) in enumerate(pairwise(CHANNELS)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if number < 3 else []
            layers += [nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers)
        self.classify = nn.Linear(CHANNELS[-1], 10)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # twice as fast on CPUs

    def maps(self, images: Tensor) -> Tensor:
        """The last layer's map, (B, 32, h, w), of gray images (B, H, W) in [0, 1]."""
        colored = images[:, None].expand(-1, 3, -1, -1)
        found: Tensor = self.layers(colored.contiguous(memory_format=torch.channels_last))
        return found

    def forward(self, images: Tensor) -> Tensor:
        """Compute the logits of the ten digits, (B, 10)."""
        logits: Tensor = self.classify(self.maps(images).mean(dim=(2, 3)))
        return logits

    @torch.no_grad()
    def codes(self, frames: Array, batch: int | None = None, report: Report = lambda done, total: None) -> Array:
        """Encode frames (T, H, W) in [0, 1] as codes (T, 3 · 3 · 32)."""
        self.eval()
        device = self.classify.weight.device
        # On the CPU, larger maps are allocated again for each batch, which takes a third of the time.
        batch = batch or (8 if device.type == "cpu" else 128)
        parts = []
        for start in range(0, len(frames), batch):
            maps = self.maps(torch.as_tensor(frames[start : start + batch], device=device))
            parts.append(adaptive_avg_pool2d(maps, 3).flatten(1).cpu().numpy())
            report(min(start + batch, len(frames)), len(frames))
        return np.concatenate(parts)


def save(encoder: Encoder, path: str | os.PathLike[str]) -> None:
    """Write the weights as a plain .npz of arrays."""
    atomic.write_arrays(path, {name: value.cpu().numpy() for name, value in encoder.state_dict().items()})


def load(path: str | os.PathLike[str]) -> Encoder:
    """Read weights written by `save`."""
    encoder = Encoder()
    wanted = {name: tuple(value.shape) for name, value in encoder.state_dict().items()}
    found = atomic.read_arrays(path)
    if {name: value.shape for name, value in found.items()} != wanted:
        raise ValueError(f"{os.fspath(path)} does not fit this encoder: names or shapes differ; train a new one")
    encoder.load_state_dict({name: torch.as_tensor(value) for name, value in found.items()})
    return encoder


def shifted(images: Tensor, by: int, generator: torch.Generator) -> Tensor:
    """Shift each image by up to `by` pixels in both directions, padded with zeros."""
    B, H, W = images.shape
    wide = nn.functional.pad(images, (by, by, by, by))
    row, column = (torch.randint(0, 2 * by + 1, (B, 1, 1), generator=generator) for _ in range(2))
    i = torch.arange(H)[:, None] + row
    j = torch.arange(W) + column
    return wide[torch.arange(B)[:, None, None], i, j]


def train(
    data: Mnist,
    *,
    epochs: int = 15,
    batch: int = 128,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress = None,
) -> Encoder:
    """Train an encoder on the digits, shifted by up to 2 pixels.

    The optimizer is Adam with a one-cycle schedule. On one device, the same seed gives the same encoder.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # for the weights and the dropout
        encoder = Encoder().to(device)
        images = torch.as_tensor(np.array(data.train_images)).float() / 255
        labels = torch.as_tensor(np.array(data.train_labels)).long()
        steps = epochs * -(-len(images) // batch)
        optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3, weight_decay=1e-5)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
        report = reporter("training the encoder", progress)
        done = 0
        for _ in range(epochs):
            encoder.train()
            order = torch.randperm(len(images), generator=generator)
            for chosen in torch.split(order, batch):
                optimizer.zero_grad()
                logits = encoder(shifted(images[chosen], 2, generator).to(device))
                torch.autograd.backward(cross_entropy(logits, labels[chosen].to(device)))
                optimizer.step()
                schedule.step()
                done += 1
                report(done, steps)
    return encoder


@torch.no_grad()
def accuracy(encoder: Encoder, images: Array, labels: Array, batch: int = 100) -> float:
    """The share of digits that the encoder classifies correctly."""
    encoder.eval()
    device = encoder.classify.weight.device
    right = 0
    for start in range(0, len(images), batch):
        part = torch.as_tensor(images[start : start + batch].astype(np.float32) / 255, device=device)
        right += int((encoder(part).argmax(dim=1).cpu().numpy() == labels[start : start + batch]).sum())
    return right / len(images)
