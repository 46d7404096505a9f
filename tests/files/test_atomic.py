"""Files are whole or not there."""

import os
import stat

import numpy as np
import pytest

from dropdtw.files import atomic


def test_a_file_is_written_with_its_folder_and_replaced(tmp_path):
    path = tmp_path / "a" / "b.txt"
    assert atomic.write(path, "ä") == path
    assert path.read_bytes() == "ä".encode()
    atomic.write(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["b.txt"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = atomic.write(tmp_path / "a", "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        atomic.write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]
    with pytest.raises(ValueError, match="Out of range float values"):
        atomic.write_json(path, float("nan"))
    assert path.read_text() == "old"


def test_arrays_come_back_and_foreign_files_are_refused(tmp_path):
    path = atomic.write_arrays(tmp_path / "a.npz", {"x": np.arange(3), "y": np.eye(2)})
    found = atomic.read_arrays(path)
    assert found.keys() == {"x", "y"}
    np.testing.assert_array_equal(found["y"], np.eye(2))
    np.save(tmp_path / "one.npy", np.arange(3))
    np.savez(tmp_path / "objects.npz", x=np.array([print], dtype=object))
    (tmp_path / "half.npz").write_bytes(path.read_bytes()[:100])
    for name in ("one.npy", "objects.npz", "half.npz"):
        with pytest.raises(ValueError, match=rf"{name} is not an \.npz of plain arrays.*make it anew"):
            atomic.read_arrays(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        atomic.read_arrays(tmp_path / "missing.npz")
