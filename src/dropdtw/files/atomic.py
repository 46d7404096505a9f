"""Files that are whole or not there: written beside their place, then moved into it."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import stat
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from dropdtw.problem.inputs import Array

DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


def write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a file atomically, see `writing`."""
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


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
    beside = place.with_name(f".{place.name[:40]}.{secrets.token_hex(4)}.tmp")
    try:
        return open(beside, "xb", opener=lambda name, flags: os.open(name, flags, mode))
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(place)) from None


def _dress(name: str, like: os.stat_result) -> None:
    """Give a file the owner and the mode of another."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only root gives files away
            os.chown(name, like.st_uid, like.st_gid)
    os.chmod(name, stat.S_IMODE(like.st_mode))  # after chown, which takes bits away


def write_json(path: str | os.PathLike[str], value: object) -> Path:
    """Write plain data as JSON, keys in the order given; NaN and infinities are refused, for JSON has none."""
    return write(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> Path:
    """Write named arrays as an .npz."""
    memory = io.BytesIO()
    np.savez(memory, **arrays)  # type: ignore[arg-type]  # numpy's stub takes them for its own options
    return write(path, memory.getvalue())


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read an .npz of plain arrays; nothing is unpickled."""
    memory = io.BytesIO(Path(path).read_bytes())  # np.load leaves a broken file open
    try:
        stored = np.load(memory, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array without a name")
        return {name: stored[name] for name in stored.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{os.fspath(path)} is not an .npz of plain arrays: {error}; make it anew") from None
