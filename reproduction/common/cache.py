"""An on-disk cache of expensive results, keyed by everything they depend on."""

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
    """A short hash of arrays, plain data and modules; a module counts by its source, so that changed code reruns."""
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
    """Named arrays in a folder. An unreadable file is recomputed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def arrays(self, name: str, key: str, make: Callable[[], Arrays]) -> Arrays:
        """The arrays cached under this name and key; on a miss, call `make` and cache its result."""
        path = self.folder / f"{name}-{key}.npz"
        try:
            return atomic.read_arrays(path)
        except (FileNotFoundError, ValueError):
            made = make()
            atomic.write_arrays(path, made)
            return made
