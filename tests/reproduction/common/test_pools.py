"""Pools of encoded clips, and their cache."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the encoder needs PyTorch: pip install dropdtw[torch]")

from clip_cases import made_up
from reproduction.common import encoder as encoders
from reproduction.common import pools
from reproduction.common.cache import Cache, fingerprint
from reproduction.data import tmnist
from reproduction.data.mnist import Mnist


def test_noise_replaces_a_share_of_the_frames_by_blurred_ones():
    videos = made_up(0)
    clips, chosen = videos.noisy(0.5, np.random.default_rng(1))
    for clip, lost, clean, blurred in zip(clips, chosen, videos.part, videos.blurred, strict=True):
        assert lost.sum() == round(0.5 * len(clean))
        np.testing.assert_array_equal(clip[lost], blurred[lost])
        np.testing.assert_array_equal(clip[~lost], clean[~lost])
    for none, clean in zip(videos.noisy(0.0, np.random.default_rng(1))[0], videos.part, strict=True):
        np.testing.assert_array_equal(none, clean)


def test_centered_codes_have_mean_zero():
    videos = made_up(0)
    centered = videos.centered(videos.mean)
    np.testing.assert_allclose(centered.mean, 0, atol=1e-12)
    np.testing.assert_allclose(
        centered.blurred[0] - videos.blurred[0], np.broadcast_to(-videos.mean, (len(videos.blurred[0]), 6))
    )


def test_videos_are_encoded_once(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (20, 28, 28), dtype=np.uint8), np.arange(20) % 10
    data = Mnist(images, labels, images, labels, "noise")
    encoder = encoders.Encoder()
    classes = [tmnist.CLASSES[3], tmnist.CLASSES[40]]
    (first,) = pools.encode(encoder, data, [7], classes, Cache(tmp_path))
    clips = tmnist.data_set(images, labels, True, 7, classes)
    np.testing.assert_allclose(first.part[1], encoder.codes(clips[1].frames), atol=1e-5)
    np.testing.assert_allclose(first.blurred[1], encoder.codes(tmnist.blurred(clips[1].frames)), atol=1e-5)
    calls = []
    monkeypatch.setattr(encoders.Encoder, "codes", lambda *a, **k: calls.append(1) or np.zeros((len(a[1]), 288)))
    (again,) = pools.encode(encoder, data, [7], classes, Cache(tmp_path))
    assert not calls
    for a, b in zip(first.full + first.part + first.blurred, again.full + again.part + again.blurred, strict=True):
        np.testing.assert_array_equal(a, b)
    pools.encode(encoder, data, [8], classes, Cache(tmp_path))
    pools.encode(encoders.Encoder(), data, [7], classes, Cache(tmp_path))  # other weights, other codes
    assert len(calls) == 2


def test_a_broken_cache_file_is_made_anew(tmp_path):
    cache = Cache(tmp_path)
    assert cache.arrays("a", "k", lambda: {"x": np.arange(3)})["x"].tolist() == [0, 1, 2]
    assert cache.arrays("a", "k", lambda: {})["x"].tolist() == [0, 1, 2]
    (tmp_path / "a-k.npz").write_bytes(b"PK\x03\x04 half a file")
    assert cache.arrays("a", "k", lambda: {"x": np.arange(2)})["x"].tolist() == [0, 1]
    assert cache.arrays("a", "k", lambda: {})["x"].tolist() == [0, 1]


def test_fingerprints_tell_things_apart():
    x = np.arange(6.0)
    prints = [fingerprint(v) for v in (x, x.reshape(2, 3), x.astype(np.float32), x + 1, [1, 2], tmnist, pools)]
    assert len(set(prints)) == len(prints)
    assert fingerprint(x, 1) == fingerprint(x.copy(), 1) != fingerprint(x, 2)
