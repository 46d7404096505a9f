"""Files are whole or not there."""

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from dropdtw.files import atomic

posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and locks are those of POSIX")


def test_a_file_is_written_with_its_folder_and_replaced(tmp_path):
    path = tmp_path / "a" / "b.txt"
    assert atomic.write(path, "ä") == path
    assert path.read_bytes() == "ä".encode()
    atomic.write(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["b.txt"]
    mask = os.umask(0)
    os.umask(mask)
    assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


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
        with pytest.raises(ValueError, match=rf"{name} is not an \.npz of plain arrays.*make it again"):
            atomic.read_arrays(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        atomic.read_arrays(tmp_path / "missing.npz")


# --- What is there already --------------------------------------------------------------------------------------


@posix
def test_links_are_followed_to_the_file_they_name(tmp_path):
    (tmp_path / "far").mkdir()
    there = atomic.write(tmp_path / "far" / "real.txt", "old")
    link, chain, dangling = (tmp_path / name for name in ("link", "chain", "dangling"))
    link.symlink_to("far/real.txt")
    chain.symlink_to(link)
    dangling.symlink_to("far/new.txt")
    for path in (link, chain):
        atomic.write(path, f"by {path.name}")
        assert path.is_symlink()
        assert there.read_text() == f"by {path.name}"
    atomic.write(dangling, "made")
    assert dangling.is_symlink()
    assert sorted(os.listdir(tmp_path / "far")) == ["new.txt", "real.txt"]
    assert (tmp_path / "far" / "new.txt").read_text() == "made"


@posix
def test_a_link_that_leads_nowhere_is_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        atomic.write(tmp_path / "a", "lost")
    assert (tmp_path / "a").is_symlink()


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = atomic.write(tmp_path / "a", "old")
    path.chmod(mode)
    atomic.write(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_keeps_its_owner(tmp_path):
    path = atomic.write(tmp_path / "a", "old")
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    atomic.write(path, "new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o640)


def test_a_file_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    path = atomic.write(tmp_path / "a", "old")
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)  # root may write everything
    with pytest.raises(PermissionError, match=r"a is read-only; .*another name"):
        atomic.write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        atomic.write(tmp_path, "lost")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_written_to_and_stays(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    atomic.write(pipe, "through")
    reader.join(10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


# Devices of a test are terminals of its own and names below /proc: code that is wrong cannot replace those.


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals here")
def test_a_device_is_written_to_and_stays():
    far, near = os.openpty()
    name = os.ttyname(near)
    atomic.write(name, "shown")
    assert os.read(far, 100) == b"shown"
    assert stat.S_ISCHR(os.stat(name).st_mode)
    os.close(near)
    os.close(far)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors have no names here")
@pytest.mark.parametrize("where", ["pipe", "file"])
def test_standard_output_by_its_name_keeps_the_order(tmp_path, where):
    """Redirected into a file, what is printed before and after is still there."""
    code = "from dropdtw.files import atomic; print('a'); atomic.write('/proc/self/fd/1', 'b\\n'); print('c')"
    out = tmp_path / "out.txt"
    with out.open("w") as file:
        to = {"stdout": file} if where == "file" else {"capture_output": True}
        done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, **to)
    assert (out.read_bytes() if where == "file" else done.stdout) == b"a\nb\nc\n"


def test_names_of_descriptors_are_known():
    names = {"/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/63": 63, "/proc/self/fd/7": 7, "/dev/null": None, "1": None}
    assert {name: atomic.descriptor(name) for name in names} == names


def test_errors_name_the_file_and_not_its_stand_in(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise PermissionError(13, "Permission denied", "/somewhere/.hidden")

    monkeypatch.setattr("builtins.open", fail)
    with pytest.raises(PermissionError, match=r"Permission denied: '.*a\.json'"):
        atomic.write(tmp_path / "a.json", "new")


def test_long_names_can_be_written(tmp_path):
    path = atomic.write(tmp_path / ("ä" * 120), "kept")
    assert path.read_text() == "kept"


def test_the_umask_is_never_touched(tmp_path, monkeypatch):
    """Changing it, if only to look, changes it for other threads."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("it was changed"))
    atomic.write(tmp_path / "a", "new")


# --- What killed writers leave ----------------------------------------------------------------------------------


def test_the_next_write_removes_what_a_killed_one_left(tmp_path):
    code = (
        "import os, signal, sys\nfrom dropdtw.files import atomic\n"
        "os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGTERM)\n"
        "atomic.write(sys.argv[1], 'half')"
    )
    for name in ("a.npz", "b.npz"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=False, timeout=60)
    assert len(os.listdir(tmp_path)) == 2
    atomic.write(tmp_path / "a.npz", "new")
    assert sorted(name.split(".")[1] for name in os.listdir(tmp_path)) == ["b", "npz"]  # b is another file
    atomic.sweep(tmp_path)
    assert os.listdir(tmp_path) == ["a.npz"]


def test_what_is_being_written_is_not_swept(tmp_path):
    path = tmp_path / "a.npz"
    with atomic.writing(path) as file:
        file.write(b"first")
        atomic.write(path, "second")  # another process writes the same file, and removes what killed ones left
        atomic.sweep(tmp_path)
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a.npz"]


@posix
def test_a_file_that_was_swept_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    real, made = atomic._opened, []

    def swept(path, mode):
        made.append(path)
        file = real(path, mode)
        if len(made) == 1:
            path.unlink()
        return file

    monkeypatch.setattr(atomic, "_opened", swept)
    assert atomic.write(tmp_path / "a", "new").read_text() == "new"
    assert len(made) == 2


@posix
@pytest.mark.parametrize(("age", "left"), [(2.0, []), (0.5, [".a.00000000.tmp"])])
def test_without_locks_age_decides(tmp_path, monkeypatch, age, left):
    path = tmp_path / ".a.00000000.tmp"
    path.touch()
    then = path.stat().st_mtime - age * atomic.DAY
    os.utime(path, (then, then))

    def no_locks(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", no_locks)
    atomic.sweep(tmp_path)
    assert os.listdir(tmp_path) == left
    atomic.write(tmp_path / "b", "new")
    assert sorted(os.listdir(tmp_path)) == [*left, "b"]


def test_without_fcntl_files_are_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    (tmp_path / ".a.00000000.tmp").touch()
    atomic.write(tmp_path / "a", "old")
    assert atomic.write(tmp_path / "a", "new").read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_is_created_once(tmp_path):
    path = tmp_path / "deep" / "a"
    assert atomic.create(path, b"mine")
    assert not atomic.create(path, b"yours")
    assert path.read_bytes() == b"mine"
    assert os.listdir(path.parent) == ["a"]
