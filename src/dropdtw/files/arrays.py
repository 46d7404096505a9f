"""Read arrays from the bytes of untrusted .npy and .npz files. Nothing is unpickled."""

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
"""Functions that read a header, by file version. Version 3 is for named fields, which sequences do not have."""


def npy(content: bytes) -> Array:
    """Read the array of an .npy file. The size in its header is checked before memory is allocated.

    Raises ValueError if the file is damaged or holds Python objects.
    """
    if not content.startswith(MAGIC):
        raise ValueError("it does not begin like an .npy file")
    stream = io.BytesIO(content)
    try:
        header = HEADERS.get(np.lib.format.read_magic(stream))
        shape, _, dtype = header(stream) if header else ((), False, np.dtype(np.void))
    except Exception:  # NumPy parses it as Python and raises errors of all kinds; some advise unpickling
        raise ValueError("its header is damaged; write it again") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled (allow_pickle=False); save plain numbers")
    claimed, there = math.prod(shape) * dtype.itemsize, len(content) - stream.tell()
    if claimed > there:
        raise ValueError(f"its header claims {claimed:,} bytes of numbers, but {there:,} follow; write it again")
    stream.seek(0)
    with _damages():
        return np.asarray(np.load(stream, allow_pickle=False))


def npz_names(content: bytes) -> list[str]:
    """The names of the arrays in an .npz file. Raises ValueError if it is damaged."""
    with _damages(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def npz(content: bytes, name: str) -> Array:
    """Read one array of an .npz file. Raises ValueError if it is damaged or missing."""
    with _damages(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = archive.read(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
    try:
        return npy(member)
    except ValueError as error:
        raise ValueError(f"its array {name!r} cannot be read: {error}") from None


@contextmanager
def _damages() -> Iterator[None]:
    """Convert all errors that a damaged file can cause to ValueError."""
    try:
        yield
    except (
        ValueError,
        EOFError,
        OSError,
        RuntimeError,  # encrypted, or an unknown compression method
        MemoryError,
        OverflowError,  # a length that does not fit into a machine integer
        TypeError,  # a length that is not an integer
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
    ) as error:
        raise ValueError(f"it is damaged ({str(error) or type(error).__name__})") from None
