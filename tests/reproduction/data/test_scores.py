"""Frame scores of classifiers in their published layout, and methods compared on them."""

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("torch")
from scipy.io import savemat

from dropdtw.drops import Background
from reproduction.data import scores
from reproduction.steps import inference, tables
from reproduction.steps.scores import folds
from reproduction.steps.splits import Source

TRUTH = (np.repeat([0, 2, 0, 1, 0], [3, 4, 2, 4, 3]), np.repeat([1, 0, 2, 1], [4, 4, 4, 4]))


def cells(values):
    found = np.empty((1, len(values)), object)
    found[0, :] = values
    return found


def write(folder, splits=3, noise=0.5):
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for split in range(1, splits + 1):
        S = [2 * np.eye(3)[y] + rng.normal(size=(len(y), 3)) * noise for y in TRUTH]
        savemat(folder / f"{split}.mat", {"S": cells(S), "Y": cells([y[None] for y in TRUTH])})


def test_videos_are_read_as_published(tmp_path):
    write(tmp_path / "Kitchen" / "eval" / "SVM")
    write(tmp_path / "Other" / "SVM", splits=2)
    found = scores.load(tmp_path)
    assert {name: len(splits) for name, splits in found.items()} == {"Kitchen/eval": 3, "Other": 2}
    assert list(scores.load(tmp_path / "Other")) == ["Other"]
    assert list(scores.load(tmp_path / "Other" / "SVM")) == ["Other"]
    first, second = found["Other"][0]
    assert (first.step_ids.tolist(), second.step_ids.tolist()) == ([2, 1], [1, 2, 1])
    for video, y in zip((first, second), TRUTH, strict=True):
        np.testing.assert_array_equal(video.labels, np.where(y == 0, -1, y))
        np.testing.assert_array_equal(video.touched, video.rows)
    assert first.name == "1, video 1"


def test_probabilities_become_their_logarithms(tmp_path):
    folder = tmp_path / "A" / "net"
    folder.mkdir(parents=True)
    p = np.full((16, 3), 0.25) + np.eye(3)[TRUTH[0]] * 0.25
    savemat(folder / "1.mat", {"S": cells([p]), "Y": cells([TRUTH[0][None]])})
    (video,) = scores.load(tmp_path)["A"][0]
    np.testing.assert_allclose(video.frames, np.log(p), rtol=1e-6)


def test_methods_choose_on_the_other_splits(tmp_path, monkeypatch):
    write(tmp_path / "A" / "SVM", noise=1.0)
    parts = folds(Source(tmp_path, tmp_path))["A"]
    assert [(len(fold.validation), len(fold.test)) for fold in parts] == [(4, 2)] * 3
    assert all(not set(fold.validation.names) & set(fold.test.names) for fold in parts)
    video = parts[0].test[0]
    log_p = video.frames - np.log(np.exp(video.frames).sum(1, keepdims=True))
    np.testing.assert_allclose(parts[0].cost(video), -log_p[:, [2, 1]].T, rtol=1e-5)
    np.testing.assert_allclose(parts[0].background(video), Background(np.exp(log_p[:, 0])).values, rtol=1e-5)
    table = inference.compare_methods(parts)
    for k in range(3):
        tried = {
            offset: inference.scores(
                (v, inference.localize(parts[k].cost(v), parts[k].background(v) + offset), None)
                for v in parts[k].validation
            ).iou
            for offset in inference.OFFSETS
        }
        assert tried[table[inference.BY_BACKGROUND].chosen[k]] == max(tried.values())
    best = table[inference.BEST_RULE]
    assert set(best.chosen) <= {"percentile", "background"}
    assert best.videos.shape == (6, 4)
    assert best.scores.iou == pytest.approx(best.videos[:, 1].mean())
    right = inference.Inference((), best.scores, np.ones((6, 4)))
    (row,) = tables.scores_table({"right": right}, "A").rows
    assert row == ["right", "–", *["100.0 ± 0.0"] * 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"S": cells([np.zeros((16, 3))])}, "is not in the published layout: the cells S and Y: no 'Y'"),
        ({"S": cells([]), "Y": cells([TRUTH[0]])}, "zip"),
        ({"S": cells([np.zeros((4, 3))]), "Y": cells([TRUTH[0]])}, "scores of shape .4, 3. and 16 true classes"),
        ({"S": cells([np.zeros((16, 2))]), "Y": cells([TRUTH[0]])}, "a class from 0 to the number of classes"),
        ({"S": cells([np.full((16, 3), np.nan)]), "Y": cells([TRUTH[0]])}, "give finite scores"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "A" / "SVM").mkdir(parents=True)
    savemat(tmp_path / "A" / "SVM" / "1.mat", content)
    with pytest.raises(ValueError, match=message):
        scores.load(tmp_path)


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no \.mat files of frame scores"):
        scores.load(tmp_path)
    write(tmp_path / "A" / "SVM", splits=1)
    with pytest.raises(ValueError, match="A has one split, but settings are chosen on other splits"):
        folds(Source(tmp_path, tmp_path))
