"""Results of long work on disk, found again by everything that they depend on."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np

from dropdtw.files import atomic
from dropdtw.problem.inputs import Array

Arrays = dict[str, Array]


def fingerprint(*parts: object) -> str:
    """A short name for arrays, modules (their source, so that changed code is run anew) and plain data."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        elif isinstance(part, ModuleType):
            total.update(inspect.getsource(part).encode())
        else:
            total.update(json.dumps(part, sort_keys=True).encode())
    return total.hexdigest()[:16]


class Cache:
    """Named arrays in a folder. A file that is there but cannot be read is made anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def arrays(self, name: str, key: str, make: Callable[[], Arrays]) -> Arrays:
        """What is kept under this name and key, else what `make` gives, kept for the next time."""
        path = self.folder / f"{name}-{key}.npz"
        try:
            return atomic.read_arrays(path)
        except (FileNotFoundError, ValueError):
            made = make()
            atomic.write_arrays(path, made)
            return made
