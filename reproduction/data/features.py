"""Features from files: the frames of each video, and the embeddings of steps.

Nothing is unpickled: files with Python objects are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from dropdtw.files import arrays
from dropdtw.problem.inputs import Array
from reproduction.data.steps import BrokenVideoError

ENDINGS: Final = (".npy", ".npz", ".h5", ".hdf5")
KEYS: Final = ("features", "frames", "embedding", "embeddings", "steps")
"""Names to try, in this order, for the array to read from a file with several."""

Embed = Callable[[Sequence[str]], Array]
"""Maps n texts to embeddings (n, d), for steps without a file of embeddings (see `dropdtw.text.embeddings`)."""


def default_embed() -> Embed:
    """`dropdtw.text.embeddings.embed`, imported lazily."""
    from dropdtw.text.embeddings import embed

    return embed


class Features:
    """The frames of videos, (N, d) float32 each, from a folder or from one HDF5 file.

    place : a folder, searched recursively, with `<video>.npy`, `.npz`, `.h5` or `.hdf5` for every video; or one HDF5
        file with a dataset (or a group with one dataset) per video.
    key : the array's name in .npz and .h5 files with several arrays; by default `features`, `frames` and so on
        (`KEYS`).

    `features[video]` reads the array and checks that it has finite numbers and shape (N, d) or (N, 1, d). A missing or
    malformed file raises :class:`BrokenVideoError` with the file's name.
    """

    def __init__(self, place: str | os.PathLike[str], *, key: str | None = None) -> None:
        self.place, self.key = Path(place), key
        if not self.place.exists():
            raise FileNotFoundError(f"{self.place} does not exist; give a folder of features or one HDF5 file")
        self._found: dict[str, list[Path]] = {}
        if self.place.is_dir():
            for path in sorted(self.place.rglob("*")):
                if path.suffix in ENDINGS:
                    self._found.setdefault(path.stem, []).append(path)
        elif self.place.suffix in (".h5", ".hdf5"):
            with _opening(self.place), _h5py(self.place).File(self.place, "r") as file:
                self._found = {name: [self.place] for name in file}
        else:
            raise ValueError(f"{self.place} is neither a folder nor an .h5 file; give the folder with the files")

    def __contains__(self, video: object) -> bool:
        return video in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, video: str) -> Array:
        """The frames of a video, (N, d) float32."""
        paths = self._found.get(video, [])
        if not paths:
            wanted = f"dataset {video}" if self.place.is_file() else f"{video}.npy, .npz or .h5"
            raise BrokenVideoError(f"{self.place} has no {wanted}; extract the features of this video, or skip it")
        if len(paths) > 1:
            raise BrokenVideoError(f"video {video} has {len(paths)} files, {' and '.join(map(str, paths))}; keep one")
        if self.place.is_dir():
            return as_rows(_one_array(paths[0], self.key), f"{paths[0]}")
        with _opening(self.place), _h5py(self.place).File(self.place, "r") as file:
            return as_rows(_pick(file[video], self.key, f"{self.place}:{video}"), f"{self.place}:{video}")


class StepEmbeddings(Mapping[int, Array]):
    """The embedding (d,) of each step, by the step's id.

    >>> steps = StepEmbeddings([3, 8], np.eye(2))
    >>> steps.of([8, 3, 8])
    array([[0., 1.], [1., 0.], [0., 1.]], dtype=float32)
    """

    def __init__(self, ids: Sequence[int] | Array, vectors: Array, source: str = "these step embeddings") -> None:
        self.vectors, self.source = as_rows(vectors, source), source
        self._row = {int(step): row for row, step in enumerate(ids)}
        if not len(ids) == len(self._row) == len(self.vectors):
            raise ValueError(
                f"{source} has {len(self.vectors)} rows for {len(ids)} step ids, {len(self._row)} of them distinct; "
                "give one row per step, in the order of the ids"
            )

    def __getitem__(self, step: int) -> Array:
        if step not in self._row:
            raise KeyError(f"{self.source} has no step {step} among its {len(self)}; use the file of this data set")
        row: Array = self.vectors[self._row[step]]
        return row

    def __iter__(self) -> Iterator[int]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    def of(self, steps: Sequence[int] | Array) -> Array:
        """(K, d) embeddings of these steps."""
        rows = [self[int(step)] for step in steps]
        return np.stack(rows) if rows else self.vectors[:0]


def step_embeddings(path: str | os.PathLike[str], *ids: Sequence[int], key: str | None = None) -> StepEmbeddings:
    """Step embeddings from a file. ids : the step ids of its rows; of several lists, the first one of matching length.

    - `.npy`: (n, d) or (n, 1, d), one row per step, in the order of `ids` (see each loader);
    - `.npz` or `.h5`: an array of that shape under `embedding` (or `key`, or one of `KEYS`). An array `step_id`, (n,),
      gives the ids of its rows; without it, the rows are in the order of `ids`.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"{place} does not exist; give the file with the step embeddings")
    vectors = _one_array(place, key, prefer="embedding")
    own = None if place.suffix == ".npy" else _one_array(place, "step_id", missing=None)
    if own is not None and (own.ndim != 1 or own.dtype.kind not in "iu"):
        raise ValueError(f"step_id in {place} is {own.dtype} of shape {own.shape}; give integers, (n,)")
    if own is None and len(vectors) not in map(len, ids):
        counts = " or ".join(str(len(steps)) for steps in ids)
        raise ValueError(f"{place} has shape {vectors.shape}, but there are {counts} steps; give one row per step")
    chosen = own if own is not None else next(steps for steps in ids if len(steps) == len(vectors))
    return StepEmbeddings(chosen, vectors, str(place))


def as_rows(array: Array, source: str) -> Array:
    """Check an array from a file and convert it to (n, d) float32; (n, 1, d) becomes (n, d)."""
    if array.dtype.kind not in "iuf":
        raise BrokenVideoError(f"{source} holds {array.dtype}, not numbers; write the features as float32")
    if array.ndim == 3 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 2 or 0 in array.shape:
        raise BrokenVideoError(f"{source} has shape {array.shape}; give (length, d), with at least one row")
    rows = array.astype(np.float32)
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise BrokenVideoError(
            f"{source} has NaN or infinity in {bad.sum()} of {len(rows)} rows, first in row {bad.argmax()}; "
            "extract its features again"
        )
    return rows


_REQUIRED: Final = object()


def _one_array(path: Path, key: str | None, *, prefer: str = "features", missing: object = _REQUIRED) -> Any:
    """The array under `key`, the only array, or the one under a usual name; `missing` if `key` is absent."""
    with _opening(path):
        if path.suffix == ".npy":
            return arrays.npy(path.read_bytes())
        if path.suffix == ".npz":
            content = path.read_bytes()
            names = arrays.npz_names(content)
            if missing is not _REQUIRED and key not in names:
                return missing
            return arrays.npz(content, _name(names, key, prefer, str(path)))
        if path.suffix in (".h5", ".hdf5"):
            with _h5py(path).File(path, "r") as file:
                if missing is not _REQUIRED and key not in file:
                    return missing
                return _pick(file, key, str(path), prefer)
    raise ValueError(f"{path} ends in {path.suffix!r}; give {', '.join(ENDINGS)}")


def _pick(node: Any, key: str | None, source: str, prefer: str = "features") -> Array:
    """Read a whole dataset, or the dataset in a group."""
    if hasattr(node, "shape"):
        return np.asarray(node[()])
    chosen = node[_name([name for name in node if hasattr(node[name], "shape")], key, prefer, source)]
    return np.asarray(chosen[()])


def _name(names: list[str], key: str | None, prefer: str, source: str) -> str:
    if key is not None and key in names:
        return key
    if key is None and len(names) == 1:
        return names[0]
    usual = [name for name in (prefer, *KEYS) if name in names]
    if key is None and usual:
        return usual[0]
    wanted = "none of the usual names" if key is None else f"not {key!r}"
    raise BrokenVideoError(f"{source} has {', '.join(names) or 'no array'}, {wanted}; choose one with key=")


class _opening:  # noqa: N801 (used like a function)
    """Turns errors while reading a file into errors with its name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, BrokenVideoError | ImportError):
            return
        if isinstance(error, OSError | ValueError | KeyError | MemoryError):
            raise BrokenVideoError(
                f"{self.path} cannot be read ({error}); download or extract it again, or skip the video"
            ) from error


def _h5py(path: Path) -> ModuleType:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(f"{path} is an HDF5 file, which needs h5py: pip install h5py") from error
    module: ModuleType = h5py
    return module
