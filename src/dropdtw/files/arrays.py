"""Arrays from the bytes of .npy and .npz files, which may be damaged or lie; nothing is unpickled."""

from __future__ import annotations

import io
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array

MAGIC: Final = b"\x93NUMPY"
HEADERS: Final = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""How a header is read, by the version of the file; version 3 is for names of fields, which no sequence has."""


def npy(content: bytes) -> Array:
    """The array of an .npy file. What its header claims is checked before memory is taken for it."""
    if not content.startswith(MAGIC):
        raise ValueError("it does not begin like such a file")
    stream = io.BytesIO(content)
    try:
        header = HEADERS.get(np.lib.format.read_magic(stream))
        shape, _, dtype = header(stream) if header else ((), False, np.dtype(np.void))
    except Exception:  # NumPy parses it as Python: all kinds come, and some advise to unpickle it
        raise ValueError("its header is damaged; write it anew") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled (allow_pickle=False); save plain numbers")
    claimed, there = math.prod(shape) * dtype.itemsize, len(content) - stream.tell()
    if claimed > there:
        raise ValueError(f"its header claims {claimed:,} bytes of numbers, but {there:,} follow; write it anew")
    stream.seek(0)
    with _damages():
        return np.asarray(np.load(stream, allow_pickle=False))


def npz_names(content: bytes) -> list[str]:
    """The names of the arrays in an .npz file."""
    with _damages(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def npz(content: bytes, name: str) -> Array:
    """One array of an .npz file."""
    with _damages(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = archive.read(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
    try:
        return npy(member)
    except ValueError as error:
        raise ValueError(f"its array {name!r} cannot be read: {error}") from None


@contextmanager
def _damages() -> Iterator[None]:
    """Let whatever a damaged file raises be a ValueError."""
    try:
        yield
    except (
        ValueError,
        EOFError,
        OSError,
        RuntimeError,  # encrypted, or compressed in a way that is not known here
        MemoryError,
        OverflowError,  # a length that no integer of the machine holds
        TypeError,  # a length that is no integer
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
    ) as error:
        raise ValueError(f"it is damaged ({str(error) or type(error).__name__})") from None
