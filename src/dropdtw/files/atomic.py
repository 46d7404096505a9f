"""Files that are whole or not there: written beside their place, then moved into it."""

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
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None  # type: ignore[assignment]

DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
BESIDE: Final = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp", re.S)
"""The name of a file that is being written, or was when its writer was killed."""
LONGEST: Final = 40
"""Letters of a file's name that stand in such a name."""
DAY: Final = 86400.0
"""Seconds after which such a file is taken for abandoned where nothing else tells."""


def write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a file atomically, see `writing`; what killed writers of the same file left behind is removed."""
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    place = Path(os.path.realpath(path))
    if place.is_file():
        sweep(place.parent, place.name)
    return Path(path)


def create(path: str | os.PathLike[str], content: bytes) -> bool:
    """Write a file unless there is one; False: there is. Of several that try at the same time, one gets True."""
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
    """Remove what killed writers left in a folder, all of them or those of one file; live writers keep theirs."""
    for path in Path(folder).glob(".*.tmp"):
        found = BESIDE.fullmatch(path.name)
        if found and (name is None or found[1] == name[:LONGEST]):
            _remove_abandoned(path)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to; it appears at its place when it is complete, or not at all. Its folder is made.

    Links are followed. A file that is there keeps its mode and, as far as we may decide that, its owner; one that may
    not be written is refused. Pipes and devices are written to directly: they have no place beside them.
    """
    there = _stat(path)
    if (number := descriptor(path)) is not None:
        if number == 1:
            sys.stdout.flush()  # what was printed before comes before
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
    """The number of the open file that a name such as /dev/stdout or /dev/fd/63 stands for."""
    name = os.fspath(path)
    if name in ("/dev/stdout", "/dev/stderr"):
        return 1 + (name == "/dev/stderr")
    found = DESCRIPTOR.fullmatch(name)
    return int(found[1]) if found else None


def _stat(path: str | os.PathLike[str]) -> os.stat_result | None:
    """What there is to be replaced, None for nothing; raises where it must stay."""
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
    """A new file in the same folder, which is gone afterwards unless it was moved away."""
    file = _created(place, mode)
    try:
        with file:
            yield file
    finally:
        with suppress(FileNotFoundError):
            os.unlink(file.name)


def _created(place: Path, mode: int) -> BinaryIO:
    """A new file beside its place, locked while it is open: that is how `sweep` knows that its writer lives."""
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
    """Lock a file for as long as it is open; False: somebody else holds it. None: there are no locks here."""
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
    # It may be gone already, or not be ours; on Windows, what is being written gives a PermissionError.
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
    """Give a file the owner and the mode of another."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only root gives files away
            os.chown(name, like.st_uid, like.st_gid)
    os.chmod(name, stat.S_IMODE(like.st_mode))  # after chown, which takes bits away


def write_json(path: str | os.PathLike[str], value: object) -> Path:
    """Write plain data as JSON, keys in the order given; NaN and infinities are refused, for JSON has none."""
    return write(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_arrays(path: str | os.PathLike[str], named: Mapping[str, Array]) -> Path:
    """Write named arrays as an .npz."""
    memory = io.BytesIO()
    np.savez(memory, **named)  # type: ignore[arg-type]  # numpy's stub takes them for its own options
    return write(path, memory.getvalue())


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read an .npz of plain arrays; nothing is unpickled."""
    content = Path(path).read_bytes()
    try:
        return {name: arrays.npz(content, name) for name in arrays.npz_names(content)}
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not an .npz of plain arrays: {error}; make it anew") from None
