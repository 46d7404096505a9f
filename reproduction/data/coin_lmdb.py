"""Convert COIN's published features to `.npy` files without unpickling anything: python coin_lmdb.py LMDB_FOLDER OUT

Run this file in an environment of its own with `pyarrow==11.*`, `numpy<2` and `lmdb`: later versions of pyarrow cannot
read what `pyarrow.serialize` wrote. It imports nothing else. OUT gets `frames/VIDEO.npy` and, if the records have step
embeddings, `steps.npz`; both are what `reproduction.data.coin.load` takes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """The records of all LMDBs in a folder, one per video."""
    import pyarrow

    if not hasattr(pyarrow, "SerializationContext"):
        raise ImportError(
            f"pyarrow {pyarrow.__version__} cannot read these records; run this file where pyarrow 11 is installed"
        )
    import lmdb

    # The default context unpickles what a record asks it to. This one reads plain values and numeric arrays only.
    context = pyarrow.SerializationContext()
    context.set_pickle(None, None)
    for path in sorted(folder.rglob("*.lmdb")):
        with lmdb.open(str(path), subdir=path.is_dir(), readonly=True, lock=False) as data, data.begin() as transaction:
            for key, value in transaction.cursor():
                if key not in (b"__keys__", b"__len__"):
                    yield pyarrow.deserialize(value, context)


def convert(videos: Iterable[dict[str, Any]], out: Path) -> None:
    """Write the features of these records to a new folder. A name is class_number_video."""
    steps: dict[int, np.ndarray] = {}
    (out / "frames").mkdir(parents=True)
    for record in videos:
        video = record["name"].split("_", 2)[2]
        np.save(out / "frames" / f"{video}.npy", record["frames_features"])
        if "steps_features" in record:
            steps.update(zip(record["steps_ids"].tolist(), record["steps_features"], strict=True))
    if steps:
        np.savez(out / "steps.npz", step_id=np.array(list(steps)), embedding=np.array(list(steps.values())))


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    convert(records(source), target)
