"""Atomic writes: a file is written under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from dropdtw.files import arrays
from dropdtw.problem.inputs import Array

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = None  # type: ignore[assignment]

DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
BESIDE: Final = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp", re.S)
"""Temporary names: of files that are being written, or that a killed writer left behind."""
LONGEST: Final = 40
"""Maximum number of characters of a file's name in its temporary name."""
DAY: Final = 86400.0
"""Age in seconds at which a temporary file counts as abandoned, if the file system has no locks."""


def write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a file atomically, see `writing`. Also removes temporary files that killed writers of this file left.

    Returns the path.
    """
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    place = Path(os.path.realpath(path))
    if place.is_file():
        sweep(place.parent, place.name)
    return Path(path)


def create(path: str | os.PathLike[str], content: bytes) -> bool:
    """Exclusive create: write a file unless it exists. Returns whether it was written.

    If several processes try at the same time, exactly one gets True.
    """
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    with _beside(place, 0o666) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, place)
        except FileExistsError:
            return False
        return True


def sweep(folder: str | os.PathLike[str], name: str | None = None) -> None:
    """Remove temporary files that killed writers left in a folder: all of them, or those of one file.

    The files of live writers stay.
    """
    for path in Path(folder).glob(".*.tmp"):
        found = BESIDE.fullmatch(path.name)
        if found and (name is None or found[1] == name[:LONGEST]):
            _remove_abandoned(path)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for atomic writing: it appears under its name when it is complete, or not at all.

    Missing folders are created. Links are followed. An existing file keeps its mode and, if permissions allow it, its
    owner. Pipes and devices cannot be replaced, so they are written to directly.

    Raises PermissionError if an existing file is read-only, and IsADirectoryError for a folder.
    """
    there = _stat(path)
    if (number := descriptor(path)) is not None:
        if number == 1:
            sys.stdout.flush()  # earlier output must come first
        with os.fdopen(os.dup(number), "wb") as stream:
            yield stream
        return
    if there is not None and not stat.S_ISREG(there.st_mode):
        with open(path, "wb") as stream:
            yield stream
        return
    place = Path(os.path.realpath(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    with _beside(place, 0o666 if there is None else 0o600) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        if there is not None:
            _dress(file.name, there)
        if fcntl is None:
            file.close()
        os.replace(file.name, place)


def descriptor(path: str | os.PathLike[str]) -> int | None:
    """The file descriptor that a name such as /dev/stdout or /dev/fd/63 stands for; None for other names."""
    name = os.fspath(path)
    if name in ("/dev/stdout", "/dev/stderr"):
        return 1 + (name == "/dev/stderr")
    found = DESCRIPTOR.fullmatch(name)
    return int(found[1]) if found else None


def _stat(path: str | os.PathLike[str]) -> os.stat_result | None:
    """The status of the file to be replaced; None if there is none. Raises if it cannot be replaced."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(f"{os.fspath(path)} is a folder; give the name of a file")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{os.fspath(path)} is read-only; make it writable, or give another name")
    return there


@contextmanager
def _beside(place: Path, mode: int) -> Iterator[BinaryIO]:
    """A temporary file in the same folder. It is removed afterward unless it was renamed."""
    file = _created(place, mode)
    try:
        with file:
            yield file
    finally:
        with suppress(FileNotFoundError):
            os.unlink(file.name)


def _created(place: Path, mode: int) -> BinaryIO:
    """A new temporary file, locked while it is open. The lock tells `sweep` that its writer is alive."""
    while True:
        beside = place.with_name(f".{place.name[:LONGEST]}.{secrets.token_hex(4)}.tmp")
        try:
            file = _opened(beside, mode)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(place)) from None
        if _lock(file) is not False and beside.exists():
            return file
        file.close()  # it was swept before it was locked


def _opened(path: Path, mode: int) -> BinaryIO:
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def _lock(file: BinaryIO) -> bool | None:
    """Lock a file while it is open. Returns False if another process holds the lock, None if locks are unsupported."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return None
    return True


def _remove_abandoned(path: Path) -> None:
    # It may be gone already, or belong to another user. On Windows, a file that is open raises PermissionError.
    with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
        if fcntl is None:
            path.unlink()
            return
        with path.open("r+b") as file:
            free = _lock(file)
            if free is None:
                free = time.time() - os.fstat(file.fileno()).st_mtime > DAY
            if free:
                path.unlink()


def _dress(name: str, like: os.stat_result) -> None:
    """Give a file the owner and the mode of the file that it replaces."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only root can change the owner
            os.chown(name, like.st_uid, like.st_gid)
    os.chmod(name, stat.S_IMODE(like.st_mode))  # after chown, which clears some bits


def write_json(path: str | os.PathLike[str], value: object) -> Path:
    """Write plain data as JSON, with keys in the given order. Raises ValueError on NaN and infinity: JSON has none."""
    return write(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_arrays(path: str | os.PathLike[str], named: Mapping[str, Array]) -> Path:
    """Write named arrays as an .npz file."""
    memory = io.BytesIO()
    np.savez(memory, **named)  # type: ignore[arg-type]  # numpy's stub takes them for its own options
    return write(path, memory.getvalue())


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read the arrays of an .npz file by name. Nothing is unpickled. Raises ValueError if it is damaged."""
    content = Path(path).read_bytes()
    try:
        return {name: arrays.npz(content, name) for name in arrays.npz_names(content)}
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not an .npz of plain arrays: {error}; make it again") from None
