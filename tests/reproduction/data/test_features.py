"""Files of features and step embeddings: every layout, and the errors for broken ones."""

import sys
from typing import ClassVar

import numpy as np
import pytest

from array_cases import claiming, saved, zipped
from loader_cases import frames
from reproduction.data.features import Features, step_embeddings
from reproduction.data.steps import BrokenVideoError


def write_h5(path, **arrays):
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def test_features_of_a_folder_in_every_format(tmp_path):
    X = frames(5)
    np.save(tmp_path / "-a_b.npy", X)
    np.save(tmp_path / "half.npy", X[:, None].astype(np.float16))  # (N, 1, d)
    np.savez(tmp_path / "only.npz", whatever=X)
    np.savez(tmp_path / "usual.npz", labels=np.arange(5), features=X)
    (tmp_path / "deeper").mkdir()
    np.save(tmp_path / "deeper" / "below.npy", X.astype(np.float64))
    (tmp_path / "notes.txt").write_text("not a feature")
    write_h5(tmp_path / "packed.h5", features=X, times=np.arange(5))
    features = Features(tmp_path)
    assert sorted(features) == ["-a_b", "below", "half", "only", "packed", "usual"]
    assert len(features) == 6
    assert "half" in features
    assert "notes" not in features
    for name in features:
        assert features[name].dtype == np.float32
        np.testing.assert_allclose(features[name], X, atol=2e-3)
    np.savez(tmp_path / "usual.npz", labels=np.arange(5), features=X, other=2 * X)
    np.testing.assert_allclose(Features(tmp_path, key="other")["usual"], 2 * X)
    with pytest.raises(BrokenVideoError, match=r"usual\.npz has labels, features, other, not 'x'; choose one with"):
        Features(tmp_path, key="x")["usual"]


def test_features_of_one_hdf5_file(tmp_path):
    X = frames(3)
    write_h5(
        tmp_path / "all.h5", one=X, **{"two/features": X + 1, "two/labels": np.arange(3), "many/a": X, "many/b": X}
    )
    features = Features(tmp_path / "all.h5")
    assert sorted(features) == ["many", "one", "two"]
    np.testing.assert_array_equal(features["one"], X)
    np.testing.assert_array_equal(features["two"], X + 1)
    with pytest.raises(BrokenVideoError, match=r"all\.h5:many has a, b, none of the usual names; choose one with key="):
        features["many"]
    with pytest.raises(BrokenVideoError, match=r"all\.h5 has no dataset three; extract"):
        features["three"]


def test_broken_features_are_named_with_a_fix(tmp_path):
    X = frames(50)
    np.save(tmp_path / "cut.npy", X)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:300])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "junk.npy").write_bytes(b"<html>404</html>")
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], object), allow_pickle=True)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "flat.npy", X[0])
    np.save(tmp_path / "none.npy", X[:0])
    holes = X.copy()
    holes[[3, 7], 2] = np.nan
    np.save(tmp_path / "holes.npy", holes)
    np.savez(tmp_path / "cutzip.npz", X)
    (tmp_path / "cutzip.npz").write_bytes((tmp_path / "cutzip.npz").read_bytes()[:200])
    np.save(tmp_path / "double.npy", X)
    np.savez(tmp_path / "double.npz", X)
    features = Features(tmp_path)
    for name, message in {
        "cut": r"cut\.npy cannot be read .*; download or extract it again, or skip the video",
        "empty": r"empty\.npy cannot be read",
        "junk": r"junk\.npy cannot be read \(it does not begin like an \.npy file\); download",
        "pickled": r"pickled\.npy cannot be read \(it holds Python objects, .*save plain numbers\); download",
        "words": r"words\.npy holds <U1, not numbers; write the features as float32",
        "flat": r"flat\.npy has shape \(6,\); give \(length, d\)",
        "none": r"none\.npy has shape \(0, 6\); give \(length, d\), with at least one row",
        "holes": r"holes\.npy has NaN or infinity in 2 of 50 rows, first in row 3; extract its features again",
        "cutzip": r"cutzip\.npz cannot be read",
        "double": r"video double has 2 files, .*double\.npy and .*double\.npz; keep one",
        "missing": r"has no missing\.npy, \.npz or \.h5; extract the features of this video, or skip it",
        "../cut": r"has no \.\./cut\.npy",
    }.items():
        with pytest.raises(BrokenVideoError, match=message):
            features[name]
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist; give a folder of features"):
        Features(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"cut\.npy is neither a folder nor an \.h5 file"):
        Features(tmp_path / "cut.npy")


class Waking:
    """Notes when it is unpickled."""

    woken: ClassVar = []

    def __reduce__(self):
        return Waking.woken.append, (1,)


LIES = {
    "lying header": (claiming((10**12, 3), follow=bytes(40)), r"header claims [\d,]+ bytes of numbers, but 40 follow"),
    "header beyond any address": (claiming((10**30, 3)), r"header claims [\d,]+ bytes of numbers, but 0 follow"),
    "cut": (saved(np.save, np.ones((50, 6)))[:300], r"header claims 2,400 bytes of numbers, but 172 follow"),
    "cut header": (saved(np.save, np.ones((50, 6)))[:50], "its header is damaged"),
    "no NumPy file": (b"<html>404</html>", "it does not begin like an .npy file"),
    "objects": (saved(np.save, np.array([Waking()], object), allow_pickle=True), "it holds Python objects, which are"),
}


@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize(("content", "message"), LIES.values(), ids=LIES)
def test_files_that_lie_are_broken_videos_and_nothing_is_unpickled(tmp_path, content, message, ending):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content if ending == "npy" else zipped(features=content))
    for read in (lambda: Features(tmp_path)["a"], lambda: step_embeddings(path, [1, 2])):
        with pytest.raises(BrokenVideoError, match=rf"a\.{ending} cannot be read \(.*{message}.*; download or"):
            read()
    assert not Waking.woken


def test_arrays_that_are_not_asked_for_may_be_anything(tmp_path):
    """Only the requested array is read."""
    X = frames(5)
    (tmp_path / "a.npz").write_bytes(zipped(features=saved(np.save, X), extra=LIES["objects"][0]))
    np.testing.assert_array_equal(Features(tmp_path)["a"], X)


def test_a_dataset_larger_than_memory_is_a_broken_video(tmp_path):
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("features", (10**12, 300), "f8", chunks=(1, 300))
    with pytest.raises(BrokenVideoError, match=r"a\.h5 cannot be read \(.*allocate.*download or extract it again"):
        Features(tmp_path)["a"]


def test_broken_hdf5_and_missing_h5py(tmp_path, monkeypatch):
    pytest.importorskip("h5py", reason="HDF5 files need h5py")
    (tmp_path / "bad.h5").write_bytes(b"not HDF5 at all")
    with pytest.raises(BrokenVideoError, match=r"bad\.h5 cannot be read"):
        Features(tmp_path)["bad"]
    with pytest.raises(BrokenVideoError, match=r"bad\.h5 cannot be read"):
        Features(tmp_path / "bad.h5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"bad\.h5 is an HDF5 file, which needs h5py: pip install h5py"):
        Features(tmp_path)["bad"]


def test_step_embeddings_in_every_format(tmp_path):
    E = frames(3)
    np.save(tmp_path / "a.npy", E[:, None].astype(np.float16))
    np.savez(
        tmp_path / "b.npz", step_id=[30, 10, 20], embedding=E[[2, 0, 1]], description=["c", "a", "b"], cls=[0, 0, 0]
    )
    np.savez(tmp_path / "c.npz", E)
    write_h5(tmp_path / "d.h5", step_id=[10, 20, 30], embedding=E)
    for name in "abcd":
        found = step_embeddings(next(tmp_path.glob(f"{name}.*")), [10, 20, 30])
        np.testing.assert_allclose(found.of([20, 30, 10, 20]), E[[1, 2, 0, 1]], atol=2e-3)
        assert set(found) == {10, 20, 30}
        assert found.of([]).shape == (0, 6)
    assert list(step_embeddings(tmp_path / "a.npy", [1, 2], [5, 6, 7])) == [5, 6, 7]
    write_h5(tmp_path / "e.h5", steps=E)  # without ids
    assert list(step_embeddings(tmp_path / "e.h5", [5, 6, 7])) == [5, 6, 7]
    with pytest.raises(KeyError, match=r"a\.npy has no step 4 among its 3"):
        step_embeddings(tmp_path / "a.npy", [1, 2, 3])[4]


def test_wrong_step_embeddings(tmp_path):
    np.save(tmp_path / "a.npy", frames(3))
    np.savez(tmp_path / "twice.npz", step_id=[1, 1, 2], embedding=frames(3))
    np.savez(tmp_path / "names.npz", step_id=["a", "b", "c"], embedding=frames(3))
    np.save(tmp_path / "pickled.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "steps.csv").write_text("1,2")
    for name, message in {
        "a.npy": r"has shape \(3, 6\), but there are 2 steps; give one row per step",
        "twice.npz": "has 3 rows for 3 step ids, 2 of them distinct",
        "names.npz": r"step_id in .* is <U1 of shape \(3,\); give integers",
        "pickled.npy": "holds Python objects",
        "steps.csv": r"ends in '\.csv'; give \.npy, \.npz",
    }.items():
        with pytest.raises(ValueError, match=message):
            step_embeddings(tmp_path / name, [1, 2])
    with pytest.raises(FileNotFoundError, match=r"none\.npy does not exist; give the file with the step embeddings"):
        step_embeddings(tmp_path / "none.npy", [1])
