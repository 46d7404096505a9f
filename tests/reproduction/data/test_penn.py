"""Penn Action: its published labels, and poses."""

import numpy as np
import pytest

pytest.importorskip("scipy", reason="Penn Action's labels need scipy: make setup")

from penn_labels import person, write_labels
from reproduction.data import penn


@pytest.fixture
def folder(tmp_path):
    """Six videos in the published layout."""
    return write_labels(tmp_path)


def test_the_published_labels_are_read(folder):
    videos = penn.load(folder)
    assert [v.name for v in videos] == [f"{k + 1:04d}" for k in range(6)]
    assert [v.action for v in videos] == ["pullup", "tennis_serve"] * 3  # one name for all spellings
    assert [v.train for v in videos] == [True] * 4 + [False] * 2
    assert [len(v) for v in videos] == [20, 21, 22, 23, 24, 25]
    assert videos[0].size == (270, 480)
    np.testing.assert_allclose(videos[2].xy, person(22, 2), rtol=1e-6)
    assert videos[2].visible.all()


def test_the_packed_labels_are_the_same(folder):
    videos = penn.load(folder)
    packed = {
        "xy": np.concatenate([v.xy for v in videos]),
        "visibility": np.concatenate([v.visible for v in videos]).astype(np.uint8),
        "length": np.array([len(v) for v in videos]),
        "action": np.array([v.action for v in videos]),
        "train": np.array([v.train for v in videos]),
        "frame_hw": np.array([v.size for v in videos]),
        "video": np.array([v.name for v in videos]),
    }
    other = folder / "packed"
    other.mkdir()
    path = other / "pennaction_keypoints.npz"
    np.savez(path, **packed)
    for place in (other, path):
        for a, b in zip(penn.load(place), videos, strict=True):
            assert (a.name, a.action, a.train, a.size) == (b.name, b.action, b.train, b.size)
            np.testing.assert_array_equal(a.xy, b.xy)
    np.savez(path, **{**packed, "length": packed["length"] + 1})
    with pytest.raises(ValueError, match=r"lengths sum to 141, but there are 135 frames"):
        penn.load(path)
    del packed["visibility"]
    np.savez(path, **packed)
    with pytest.raises(ValueError, match=r"not in the published layout.*visibility"):
        penn.load(path)


def test_what_is_wrong_with_labels_is_said(folder, tmp_path_factory):
    from scipy.io import loadmat, savemat

    with pytest.raises(FileNotFoundError, match="give Penn Action's folder"):
        penn.load(tmp_path_factory.mktemp("empty"))
    path = folder / "labels" / "0003.mat"
    good = {k: v for k, v in loadmat(path).items() if not k.startswith("__")}
    for change, message in (
        ({"action": "knitting"}, "'knitting'; the actions are"),
        ({"x": good["x"][:, :5]}, "not in the published layout"),
        ({"x": good["x"] * np.nan}, "joints that are not finite"),
        ({"visibility": good["visibility"][:4]}, r"visibility of shape \(4, 13\)"),
    ):
        savemat(path, {**good, **change})
        with pytest.raises(ValueError, match=message):
            penn.load(folder)
    path.write_bytes(b"no mat file at all")
    with pytest.raises(ValueError, match=r"0003\.mat is not in the published layout"):
        penn.load(folder)


def video(xy):
    return penn.Video("0001", "bowl", True, np.asarray(xy, np.float32), np.ones(xy.shape[:2], bool), (300, 300))


def test_neither_place_nor_size_of_the_person_matters():
    xy = person(12)
    poses = video(xy).poses()
    np.testing.assert_allclose(video(2.5 * xy + [40, 7]).poses(), poses, atol=1e-5)
    np.testing.assert_allclose(poses.max(axis=1) + poses.min(axis=1), 0, atol=1e-5)  # the center of the box
    sides = (poses.max(axis=1) - poses.min(axis=1)).max(axis=1)
    assert np.median(sides) == pytest.approx(1, abs=1e-5)


def test_joints_without_a_place_are_interpolated_and_do_not_stretch_the_box():
    xy = person(9)
    xy[:, 4] = np.linspace(60, 140, 9)[:, None]  # moves evenly, well inside
    xy[:, 0], xy[:, 1] = (50, 50), (150, 150)  # the box is the same in all frames
    whole = video(xy).poses()
    lost = xy.copy()
    lost[3:6, 4] = 1
    np.testing.assert_allclose(video(lost).poses(), whole, atol=1e-5)
    lost[:, 4] = 1
    never = video(lost).poses()
    assert not never[:, 4].any()
    np.testing.assert_allclose(np.delete(never, 4, axis=1), np.delete(whole, 4, axis=1), atol=1e-5)
    assert not video(np.ones((5, 13, 2))).poses().any()


def test_frames_are_read_as_squares(folder):
    image = pytest.importorskip("PIL.Image")
    place = folder / "frames" / "0001"
    place.mkdir(parents=True)
    for k in range(3):
        image.fromarray(np.full((20, 30, 3), 80 * k, np.uint8)).save(place / f"{k + 1:06d}.jpg")
    first = penn.load(folder)[0]
    found = penn.frames(folder, first, [2, 0], side=8)
    assert found.shape == (2, 8, 8, 3)
    assert found.dtype == np.uint8
    np.testing.assert_allclose(found.mean(axis=(1, 2, 3)), [160, 0], atol=3)
    with pytest.raises(FileNotFoundError, match=r"000006\.jpg does not exist; download the frames"):
        penn.frames(folder, first, [5])
