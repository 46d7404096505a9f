"""A corpus in Parquet, cut into shards that depend on nothing but its files: what was done can be found again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw.arrays import as_sequence
from dropdtw.scale import records
from dropdtw.scale.records import NEEDED, Bad, Record
from dropdtw.scale.storage import Storage, arrow


@dataclass(frozen=True)
class Shard:
    """Row groups [first, stop) of a file, which are its rows [row, row + rows)."""

    file: str
    first: int
    stop: int
    row: int
    rows: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """The files of a corpus and its shards. broken : files of which nothing can be read."""

    storage: Storage
    shards: tuple[Shard, ...]
    broken: tuple[Bad, ...]
    fingerprint: str

    @property
    def name(self) -> str:
        """Where it is."""
        return self.storage.url

    @property
    def rows(self) -> int:
        """How many records the readable files hold, good or bad."""
        return sum(shard.rows for shard in self.shards)

    def read(self, number: int, *, steps: bool = False) -> Iterator[Record | Bad]:
        """The records of a shard, good or bad."""
        s = self.shards[number]
        return records.read(self.storage, s.file, range(s.first, s.stop), s.row, steps=steps)


class Given:
    """Records that are in memory, in place of a corpus: one shard."""

    shards: tuple[Shard, ...]
    broken: tuple[Bad, ...] = ()

    def __init__(self, given: Iterable[tuple[object, npt.ArrayLike]], name: str) -> None:
        self.name = name
        self.records = [Record(name, k, str(key), as_sequence(X, f"{name}[{k}]")) for k, (key, X) in enumerate(given)]
        if not self.records:
            raise ValueError(f"{name} is empty; give at least one (id, sequence)")
        self.rows = len(self.records)
        self.shards = (Shard(name, 0, 1, 0, self.rows),)
        total = hashlib.sha256()
        for r in self.records:
            total.update(f"{r.id}{r.X.dtype}{r.X.shape}".encode() + np.ascontiguousarray(r.X).tobytes())
        self.fingerprint = total.hexdigest()[:16]

    def read(self, number: int, *, steps: bool = False) -> Iterator[Record | Bad]:
        """All of them."""
        return iter(self.records)


@dataclass(frozen=True)
class _Footer:
    """What the end of a file says: the records in its row groups, or why it cannot be read."""

    file: str
    groups: tuple[int, ...]
    mark: str
    broken: str = ""


def dataset(url: str | os.PathLike[str], shard_rows: int) -> Dataset:
    """Look at the ends of all files. url : a .parquet file, or a folder of them; those below it count as well.

    shard_rows : row groups are put together until they hold so many records; one that holds more is a shard alone.
    """
    storage = Storage(url)
    single = storage.fs.isfile(storage.root)
    names = [""] if single else [name for name in storage.names() if name.endswith(".parquet")]
    if not names:
        raise ValueError(f"{storage.url} holds no .parquet files; write some with dropdtw.scale.write")
    with ThreadPoolExecutor(16) as pool:  # far stores answer slowly, but many at a time
        footers = list(pool.map(lambda name: _footer(storage, name), names))
    if single:
        name = storage.root.rsplit("/", 1)[1]
        storage = storage.above()
        footers = [_Footer(name, f.groups, f.mark, f.broken) for f in footers]
    shards = [shard for footer in footers for shard in _shards(footer, shard_rows)]
    broken = tuple(Bad(f.file, 0, None, f.broken, 0) for f in footers if f.broken)
    if not shards:
        raise ValueError(
            f"{storage.url} holds no records: {broken[0].file}: {broken[0].reason}"
            if broken
            else f"the files of {storage.url} hold no records"
        )
    known = [[f.file, f.groups, f.mark, f.broken] for f in footers]
    return Dataset(storage, tuple(shards), broken, hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16])


def _footer(storage: Storage, name: str) -> _Footer:
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    try:
        with storage.open(name) as file:
            found: Any = parquet.ParquetFile(file)
            about, columns = found.metadata, found.schema_arrow.names
            missing = [column for column in NEEDED if column not in columns]
            groups = tuple(about.row_group(g).num_rows for g in range(about.num_row_groups))
            # Sizes, offsets and statistics of every column: a file that was written anew has others.
            mark = hashlib.sha256(json.dumps(about.to_dict(), default=str, sort_keys=True).encode()).hexdigest()[:16]
    except (pa.ArrowException, OSError) as error:
        return _Footer(name, (), "", str(records.unreadable(error, name)))
    if missing:
        return _Footer(name, (), mark, f"it has the columns {', '.join(columns)}, but no {', '.join(missing)}")
    return _Footer(name, groups, mark)


def _shards(footer: _Footer, shard_rows: int) -> Iterator[Shard]:
    first = row = 0
    for g in range(len(footer.groups)):
        rows = sum(footer.groups[first : g + 1])
        last = g + 1 == len(footer.groups)
        if rows and (last or rows + footer.groups[g + 1] > shard_rows):
            yield Shard(footer.file, first, g + 1, row, rows)
            first, row = g + 1, row + rows
