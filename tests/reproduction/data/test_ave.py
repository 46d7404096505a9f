"""The published files of AVE and GRID."""

import os
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py", reason="AVE's files need h5py: make setup")

from ave_cases import SPANS, write, write_ave, write_grid  # noqa: E402
from reproduction.data import ave, grid  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """Eight videos in AVE's published layout, with features."""
    return write_ave(tmp_path)


@pytest.fixture
def sentences(tmp_path):
    """A tiny GRID."""
    return write_grid(tmp_path)


def test_the_published_files_of_ave_are_read(folder):
    found = ave.read_annotations(folder)
    assert [(a.start, a.stop) for a in found] == SPANS
    assert found[1] == ave.Annotation("Church bell", "video1", "good", 6, 8)
    with h5py.File(folder / "audio_feature.h5") as file:
        audio = file["avadataset"][()]
    parts = ave.load(folder)
    assert {split: len(part) for split, part in parts.items()} == {"train": 4, "val": 2, "test": 2}
    np.testing.assert_allclose(parts["train"].audio, audio[[3, 0, 5, 1]], rtol=1e-6)
    assert parts["train"].visual.shape == (4, 10, 512)
    assert [ave.event(row) for row in parts["test"].labels] == [(1, 4), (2, 9)]
    assert ave.event(parts["train"].labels[2]) is None  # a video without any event
    assert ave.event(np.array([True, False, True])) is None


def test_a_header_is_no_video(folder):
    path = folder / "Annotations.txt"
    path.write_text("Category&VideoID&Quality&StartTime&EndTime\n" + path.read_text())
    assert len(ave.read_annotations(folder)) == 8


def test_what_is_wrong_with_ave_is_said(folder, tmp_path_factory):
    with pytest.raises(FileNotFoundError, match=r"Annotations\.txt does not exist; give the folder of AVE"):
        ave.read_annotations(tmp_path_factory.mktemp("empty"))
    write(folder / "audio_feature.h5", "avadataset", np.zeros((8, 10, 64)))
    with pytest.raises(ValueError, match=r"audio_feature\.h5 has shape \(8, 10, 64\); expected \(8, 10, 128\)"):
        ave.load(folder)
    write(folder / "audio_feature.h5", "other", np.zeros((8, 10, 128)))
    with pytest.raises(ValueError, match=r"audio_feature\.h5 is not in the published layout.*'avadataset'"):
        ave.load(folder)
    assert ave.has_features(folder)
    (folder / "audio_feature.h5").unlink()
    assert not ave.has_features(folder)
    with pytest.raises(FileNotFoundError, match="features of AVE are published separately"):
        ave.load(folder)
    write(folder / "audio_feature.h5", "avadataset", np.zeros((8, 10, 128)))
    write(folder / "val_order_match.h5", "order", np.array([2, 8]))
    with pytest.raises(ValueError, match=r"val_order_match\.h5 lists videos outside 0 to 7; download it again"):
        ave.load(folder)
    (folder / "test_order_match.h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"test_order_match\.h5 does not exist"):
        ave.orders(folder)
    (folder / "Annotations.txt").write_text("Bell&a&good&3&11\n")
    with pytest.raises(ValueError, match=r"line 1 .*seconds 3 to 11 do not satisfy"):
        ave.read_annotations(folder)
    write(folder / "labels_closs.h5", "avadataset", np.zeros((8, 9)))
    with pytest.raises(ValueError, match=r"labels_closs\.h5 has shape \(8, 9\); expected \(n, 10\)"):
        ave.labels(folder)
    with pytest.raises(ValueError, match="the same number of sequences, of the same length"):
        ave.Streams(np.zeros((2, 10, 3)), np.zeros((2, 9, 3)), np.zeros((2, 10), bool))


def test_the_annotations_of_ave_and_its_labels_agree():
    place = Path(os.environ.get("DROPDTW_DATA", "/nonexistent")) / "ave"
    if not place.exists():
        pytest.skip("AVE is not here: set DROPDTW_DATA to a folder with ave/")
    seconds = np.arange(10)
    spans = [(a.start <= seconds) & (seconds < a.stop) for a in ave.read_annotations(place)]
    np.testing.assert_array_equal(ave.labels(place), spans)
    splits = ave.orders(place)
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 3339, "val": 402, "test": 402}
    assert sorted(np.concatenate(list(splits.values()))) == list(range(4143))
    # In every test video of the localization task, there is an event to find.
    events = [ave.event(row) for row in ave.labels(place)[splits["test"]]]
    assert all(event is not None and event != (0, 10) for event in events)


def test_grid_is_read_without_silences_and_lost_faces(sentences):
    clips = grid.load(sentences)
    assert len(clips) == 29
    assert "clip4" not in clips.names
    assert clips.lips.shape == clips.sound.shape == (29, 40, 80)
    assert clips.words[0] == (("bin", 8, 14), ("blue", 14, 21), ("now", 24, 30))
    with np.load(sentences / grid.FILE) as file:
        content = dict(file)
    np.testing.assert_allclose(clips.sound[0, 3], content["logmel"][0, 6:8].ravel(), rtol=1e-6)
    with pytest.raises(FileNotFoundError, match="give the folder with grid_s1"):
        grid.load(sentences / "elsewhere")
    content["logmel"] = content["logmel"][:, ::2]
    np.savez(sentences / grid.FILE, **content)
    with pytest.raises(ValueError, match="expected two columns of sound per frame"):
        grid.load(sentences / grid.FILE)
    del content["words"]
    content["logmel"] = np.repeat(content["logmel"], 2, axis=1)
    np.savez(sentences / grid.FILE, **content)
    with pytest.raises(ValueError, match=r"not in the published layout.*words"):
        grid.load(sentences)


def test_context_is_the_neighbors():
    stream = np.arange(4.0)[None, :, None]
    assert grid.with_context(stream, 1)[0].tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 3]]
