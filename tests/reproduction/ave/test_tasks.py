"""Training and test streams: batches depend only on their indices; and the linear baseline."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from ave_cases import write_grid  # noqa: E402
from reproduction.ave import tasks  # noqa: E402


@pytest.fixture
def sentences(tmp_path):
    """A tiny version of GRID."""
    return write_grid(tmp_path)


def test_batches_follow_from_their_numbers(sentences):
    task = tasks.of_grid(sentences, reach=1)
    assert (len(task.train), len(task.validation), len(task.test)) == (20, 3, 6)
    assert task.test.events[:3] == ((0, 8, 14), (0, 14, 21), (0, 24, 30))
    np.testing.assert_allclose(task.train.audio.mean(axis=(0, 1)), 0, atol=1e-4)
    np.testing.assert_allclose(task.train.audio.std(axis=(0, 1)), 1, atol=1e-3)
    whole = task.load([3, 4, 5], "both", 1, 24)
    torch.testing.assert_close(task.load([4], "both", 1, 24).audio[0], whole.audio[1])
    assert whole.audio.shape == (3, 24 + 8, 240)
    visual = task.load([3, 4, 5], "visual", 1, 24)
    assert visual.audio.shape[1] == 24
    assert visual.visual.shape[1] == 32
    clean = task.load([3, 4, 5], "none", 1, 24)
    torch.testing.assert_close(clean.audio, visual.audio)
    for k, video in enumerate(task._videos([3, 4, 5], seed=1)):  # both crops have the same frames
        spans = [
            [s for s in range(17) if np.array_equal(stream[video, s : s + 24], crop[k].numpy())]
            for stream, crop in ((task.train.audio, clean.audio), (task.train.visual, clean.visual))
        ]
        assert len(spans[0]) == 1
        assert spans[0] == spans[1]
    for k in range(3):  # pairs stay together: the spliced crop contains the clean one in order
        rows = iter(visual.visual[k].tolist())
        assert all(row in rows for row in clean.visual[k].tolist())
    halved = replace(task, crops=(18, 36))  # twice as many frames get twice as many passages
    assert halved.load([3], "both", 1, 36).audio.shape[1] == 36 + 2 * 8
    assert halved.load([3], "none", 1).audio.shape[1] == 40
    every = task._videos(range(20), seed=1)
    assert sorted(every) == list(range(20))
    assert every != task._videos(range(20), seed=2)


def test_linear_cca_has_its_crop_chosen_too(sentences, monkeypatch):
    task = replace(tasks.of_grid(sentences, reach=0), crops=(20, 40))
    crops = []

    def evaluated(audio, visual, part, tolerances):
        crops.append(len(crops))
        return np.full((2, 2), [0.5, 0.1, 0.4, 0.2][len(crops) - 1])  # validation and test, of each crop

    monkeypatch.setattr(tasks, "evaluated", evaluated)
    assert tasks.linear(task, "visual", 0)[0, 0] == 0.1  # its streams differ in length
