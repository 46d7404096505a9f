"""Pairs of videos and their contamination; encoders and losses."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from penn_cases import made_up  # noqa: E402
from reproduction.penn import model as models  # noqa: E402
from reproduction.penn.model import Aligner, ClipPair, Clips, Objective, Windows, contaminate, make_pair  # noqa: E402


@pytest.mark.parametrize(
    ("share", "share_of", "count"), [(0.0, "mixed", 0), (0.3, "mixed", 9), (0.5, "mixed", 20), (0.5, "own", 10)]
)
def test_contamination_adds_frames_of_another_action_to_y_alone(share, share_of, count):
    clips = made_up()
    for number in range(30):
        clean = make_pair(clips, number, 0.0, seed=3)
        pair = make_pair(clips, number, share, seed=3, share_of=share_of)
        np.testing.assert_array_equal(pair.x, clean.x)
        np.testing.assert_array_equal(pair.y[~pair.outlier], clean.y)  # complete and in order
        assert pair.outlier.sum() == count
        assert len(pair.y) == 20 + count
        assert len(set(pair.x[:, 0]) | set(clean.y[:, 0])) == 2  # two different videos
        one = {clips.actions[k] for k in pair.x[:, 0]} | {clips.actions[k] for k in clean.y[:, 0]}
        assert len(one) == 1
        strange = {clips.actions[k] for k in pair.y[pair.outlier, 0]}
        assert len(strange) == bool(count)
        assert not strange & one
        for video, frame in np.concatenate([pair.x, pair.y]).tolist():
            assert 4 <= frame < clips.lengths[video] - 4
        for part in (clean.x, clean.y):
            assert (np.diff(part[:, 1]) >= 0).all()
            assert part[-1, 1] - part[0, 1] > 0.8 * (clips.lengths[part[0, 0]] - 8)  # covers the whole video


def test_the_seed_decides_and_outliers_are_everywhere():
    clips = made_up()
    a, b, c = (make_pair(clips, 5, 0.5, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.y, b.y)
    assert a.y.shape != c.y.shape or (a.y != c.y).any()
    places = np.mean([make_pair(clips, n, 0.5, seed=1).outlier for n in range(300)], axis=0)
    assert (abs(places - 0.5) < 0.15).all()
    mixed, outlier = contaminate(np.arange(4), np.arange(10, 13), np.random.default_rng(0))
    assert mixed[~outlier].tolist() == [0, 1, 2, 3]
    assert sorted(mixed[outlier].tolist()) == [10, 11, 12]


def test_pairs_that_cannot_be_made_are_refused():
    with pytest.raises(ValueError, match=r"share of outliers is 1; give a number from 0"):
        models.outliers(1)
    with pytest.raises(ValueError, match="share_of is 'all'"):
        models.outliers(0.5, share_of="all")
    alone = made_up(actions=1)
    assert not make_pair(alone, 0, 0.0, seed=0).outlier.any()
    with pytest.raises(ValueError, match="only one action"):
        make_pair(alone, 0, 0.3, seed=0)
    with pytest.raises(ValueError, match="has 8 frames, none of which has all neighbors"):
        replace(alone, lengths=(8,) * len(alone)).inside(0)


def test_windows_are_frames_with_their_neighbors():
    clips = Clips(("a",) * 2, (20, 20), lambda k, at: 100 * k + np.asarray(at, np.float32)[:, None])
    assert clips.windows(1, np.array([4, 9]))[..., 0].tolist() == [[100, 102, 104, 106, 108], [105, 107, 109, 111, 113]]
    assert clips.inside(0).tolist() == list(range(4, 16))
    x = np.array([[0, 5], [0, 6]])
    y = np.array([[1, 5], [0, 8], [1, 4]])
    batch = Windows.of(clips, [ClipPair(x, y, np.zeros(3, bool))])
    assert batch.x.shape == (1, 2, 5, 1)
    assert batch.y[0, :, 2, 0].tolist() == [105, 8, 104]
    some = made_up().only([7, 2])
    assert some.actions == ("action 1", "action 0")
    np.testing.assert_array_equal(some.read(0, np.arange(3)), made_up().read(7, np.arange(3)))


def test_encoders_have_one_interface():
    poses = models.PoseEncoder(6)(torch.randn(2, 3, 5, 6))
    images = torch.randint(0, 256, (2, 3, 5, 16, 16, 3), dtype=torch.uint8)
    encoder = models.ImageEncoder(channels=16, size=24)
    seen = encoder(images)
    assert poses.shape == (2, 3, 64)
    assert seen.shape == (2, 3, 24)
    for found in (poses, seen):
        torch.testing.assert_close(found.norm(dim=-1), torch.ones(2, 3))
    single = encoder(images[1:, 2:])
    torch.testing.assert_close(single[0, 0], seen[1, 2])
    loss = Aligner(encoder, Objective("drop"))(Windows(images, images))
    loss.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="loss is 'l2'; choose one of smooth, drop"):
        Objective("l2").module()
