"""Pools of encoded TMNIST clips: each frame is encoded clean and blurred, once; experiments combine the codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dropdtw.files.progress import Progress, reporter
from dropdtw.problem.inputs import Array
from reproduction.common import encoder as encoders
from reproduction.common.cache import Cache, fingerprint
from reproduction.common.encoder import Encoder
from reproduction.data import mnist, tmnist

Class = tuple[int, str]


@dataclass(frozen=True, eq=False)
class Videos:
    """TMNIST-full and TMNIST-part of one seed as frame codes (T, d), one clip of each class in the same order.

    blurred : the clips of `part` with every frame blurred.
    """

    full: list[Array]
    part: list[Array]
    blurred: list[Array]

    @property
    def mean(self) -> Array:
        """The mean code of the clean frames."""
        return np.asarray(np.concatenate(self.full + self.part).mean(axis=0))

    def centered(self, mean: Array) -> Videos:
        """Subtract a mean code: a component common to all frames carries no information and inflates every cosine."""
        full, part, blurred = ([codes - mean for codes in clips] for clips in (self.full, self.part, self.blurred))
        return Videos(full, part, blurred)

    def noisy(self, share: float, rng: np.random.Generator) -> tuple[list[Array], list[Array]]:
        """The clips of `part` with a share of their frames blurred, and masks (T,) of the blurred frames."""
        clips, chosen = [], []
        for clean, blurred in zip(self.part, self.blurred, strict=True):
            lost = tmnist.chosen_frames(len(clean), share, rng)
            clips.append(np.where(lost[:, None], blurred, clean))
            chosen.append(lost)
        return clips, chosen


def trained_encoder(
    data: mnist.Mnist,
    cache: Cache,
    *,
    epochs: int = 15,
    batch: int = 128,
    seed: int = 0,
    digits: int | None = None,
    path: str | None = None,
    device: str = "cpu",
    progress: Progress = None,
) -> Encoder:
    """Load an encoder from a file, or train one on `digits` digits (None: all) and cache it."""
    if path is not None:
        return encoders.load(path).to(device)
    some = slice(None) if digits is None else slice(None, None, max(1, len(data.train_images) // digits))
    fewer = replace(data, train_images=data.train_images[some], train_labels=data.train_labels[some])
    weights = cache.folder / f"encoder-{fingerprint(encoders, fewer.train_images, epochs, batch, seed, device)}.npz"
    if not weights.exists():
        trained = encoders.train(fewer, epochs=epochs, batch=batch, seed=seed, device=device, progress=progress)
        encoders.save(trained, weights)
    return encoders.load(weights).to(device)


def encode(
    encoder: Encoder,
    data: mnist.Mnist,
    seeds: Sequence[int],
    classes: Sequence[Class],
    cache: Cache,
    progress: Progress = None,
) -> list[Videos]:
    """Generate and encode the videos of each seed from the test digits; results are cached."""
    weights = [value.cpu().numpy() for value in encoder.state_dict().values()]
    device = encoder.classify.weight.device.type
    known = fingerprint(tmnist, encoders, data.test_images, data.test_labels, [list(c) for c in classes], device)
    known = fingerprint(known, *weights)
    return [_encode(encoder, data, seed, classes, cache, known, progress) for seed in seeds]


def _encode(
    encoder: Encoder,
    data: mnist.Mnist,
    seed: int,
    classes: Sequence[Class],
    cache: Cache,
    known: str,
    progress: Progress,
) -> Videos:
    def make() -> dict[str, Array]:
        full, part = (
            tmnist.data_set(data.test_images, data.test_labels, is_part, seed, classes) for is_part in (False, True)
        )
        frames = [clip.frames for clip in full + part] + [tmnist.blurred(clip.frames) for clip in part]
        report = reporter(f"encoding the videos of seed {seed}", progress)
        return {
            "codes": encoder.codes(np.concatenate(frames), report=report).astype(np.float32),
            "lengths": np.array([len(f) for f in frames]),
        }

    found = cache.arrays(f"videos-{seed}", fingerprint(known, seed), make)
    clips = np.split(found["codes"], np.cumsum(found["lengths"])[:-1])
    n = len(classes)
    return Videos(clips[:n], clips[n : 2 * n], clips[2 * n :])
