"""Files that are whole or not there: written beside their place, then moved into it."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dropdtw.problem.inputs import Array


def write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a file so that nobody, at any moment and after any crash, finds half of it; its folder is made."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())  # mkstemp makes it private
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise
    return place


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
