"""Step-localization data that tests share: the stand-in with synthetic codes, and videos with unmistakable steps."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

import dropdtw  # noqa: E402
from dropdtw import metrics  # noqa: E402
from reproduction.common.pools import Videos  # noqa: E402
from reproduction.data.steps import StepVideo  # noqa: E402
from reproduction.steps import stand_in  # noqa: E402
from reproduction.steps.splits import Splits  # noqa: E402

D = 32
CLASSES = 14


def pool(seed):
    """Clips of synthetic codes: each class has its own direction, blurred frames have none."""
    directions = np.random.default_rng(9).normal(size=(CLASSES, D))
    rng = np.random.default_rng(seed)

    def clips(strength, length):
        return [(strength * d + 0.5 * rng.normal(size=(length, D))).astype(np.float32) for d in directions]

    return Videos(clips(1.0, 30), clips(1.0, 20), clips(0.0, 20))


HOW = stand_in.Procedures(tasks=8, videos=9, classes=CLASSES, imperfection=0.65)
POOL = [pool(k) for k in range(3)]


def splits(how=HOW, held_out=3):
    z = stand_in.step_embeddings(POOL, how)
    made = [
        stand_in.data_set(POOL[k : k + 1], z, replace(how, videos=n), k)
        for k, n in enumerate((how.videos, held_out, held_out))
    ]
    return Splits(*made)


DATA = splits()


def video(labels, K=3, name="v"):
    """A video whose frames show the steps of `labels` unmistakably."""
    labels = np.asarray(labels)
    eye = np.eye(K + 1, dtype=np.float32)
    segments = [(k, float(s), float(t)) for k, s, t in metrics.segments_of(labels)]
    return StepVideo(
        name,
        "task",
        eye[labels],
        np.arange(K),
        tuple("abcdefgh"[:K]),
        eye[:K],
        clip_seconds=1.0,
        segments=tuple(segments),
    )


def cosine_cost(v):
    return dropdtw.costs.cosine(v.steps, v.frames)
