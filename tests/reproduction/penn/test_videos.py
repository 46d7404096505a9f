"""Splits of videos, the stand-in, and scores of embeddings."""

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("scipy", reason="Kendall's tau needs scipy: make setup")

from loader_cases import made_up_digits  # noqa: E402
from penn_cases import made_up  # noqa: E402
from reproduction.common.moving import moving  # noqa: E402
from reproduction.penn import stand_in, videos  # noqa: E402
from reproduction.penn.model import Clips  # noqa: E402


def test_videos_that_are_the_same_have_tau_one_and_no_error():
    frames = np.arange(30, dtype=np.float32)[:, None]
    clips = Clips(("a",) * 3, (30,) * 3, lambda k, at: frames[at], (np.linspace(0, 1, 30),) * 3)
    pairs = videos.pairs_of(clips, 10)
    assert sorted(pairs["a"]) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    found = videos.evaluate(lambda k: frames[clips.inside(k)], clips, pairs)
    assert found.tau == {"a": 1.0}
    assert found.error == {"a": 0.0}
    backwards = videos.evaluate(
        lambda k: frames[clips.inside(k)] if k == 0 else 29 - frames[clips.inside(k)], clips, {"a": [(0, 1)]}
    )
    assert backwards.tau["a"] == pytest.approx(-1)
    assert videos.raw(clips, pairs).tau == {"a": 1.0}
    asked = videos.evaluate(lambda k: frames[clips.inside(k)], clips, pairs, stride=5)
    assert asked.error == {"a": 0.0}


def test_a_stride_leaves_frames_out():
    """Every second frame runs forward, the others backward: only the first are seen with a stride of two."""
    clips = Clips(("a",) * 2, (28,) * 2, lambda k, at: np.asarray(at))
    mixed = np.where(np.arange(20) % 2 == 0, np.arange(20), -np.arange(20))[:, None].astype(np.float32)
    straight = np.arange(20, dtype=np.float32)[:, None]
    score = [videos.evaluate(lambda k: (mixed, straight)[k], clips, {"a": [(0, 1)]}, s).tau["a"] for s in (1, 2)]
    assert score[1] == pytest.approx(1)
    assert score[0] < 0.9


def test_a_fifth_of_each_action_is_held_out():
    clips = made_up(actions=2, each=10)
    train, held = videos.held_out(clips, range(20), seed=0)
    assert sorted(train + held) == list(range(20))
    assert [clips.actions[k] for k in held] == ["action 0"] * 2 + ["action 1"] * 2
    with pytest.raises(ValueError, match="action 0 has 3 training videos; give at least 4"):
        videos.held_out(clips, [0, 1, 2, *range(10, 20)], seed=0)


def test_the_stand_in_moves_at_changing_speed_and_knows_its_phase():
    splits = stand_in.splits(5, seed=1, digits=made_up_digits(np.random.default_rng(0)))
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (24, 16, 16)
    for k in range(len(splits.test)):
        phase = splits.test.phases[k]
        assert phase[0] == 0
        assert phase[-1] == pytest.approx(1)
        steps = np.diff(phase)
        assert (steps > 0).all()
        assert steps.max() > 1.05 * steps.min()
    frames, phase = moving(np.full((28, 28), 255), "/", np.random.default_rng(0))
    places = (frames.reshape(-1, 16, 16).sum(axis=1) * np.arange(16)).sum(axis=1) / frames.sum(axis=1)
    np.testing.assert_allclose((places - places[0]) / (places[-1] - places[0]), phase, atol=0.03)


def test_raw_poses_of_penn_action():
    place = Path(os.environ.get("DROPDTW_DATA", "/nonexistent")) / "pennaction"
    if not place.exists():
        pytest.skip("Penn Action is not here: set DROPDTW_DATA to a folder with pennaction/")
    splits = videos.penn_splits(place)
    assert len(splits.train) + len(splits.validation) == 1258
    assert len(splits.test) == 1068
    base = videos.raw(splits.test, videos.pairs_of(splits.test, 40))
    assert base.over(splits.groups["cyclic"]) == pytest.approx(0, abs=0.06)
    assert base.over(splits.groups["non-cyclic"]) == pytest.approx(0.35, abs=0.08)
