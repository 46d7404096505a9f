"""A corpus in Parquet, cut into shards. The shards depend only on the files, so a run can be resumed."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dropdtw.corpus import records
from dropdtw.corpus.records import CONTENT, Bad, Record, as_values, content
from dropdtw.corpus.storage import Storage, arrow
from dropdtw.problem.warn import warn

FIRST: Final = 100
"""Number of records that are read to find out how many features they have."""


@dataclass(frozen=True)
class Shard:
    """Row groups [first, stop) of a file, which are its rows [row, row + rows)."""

    file: str
    first: int
    stop: int
    row: int
    rows: int


@dataclass(frozen=True, eq=False)
class Corpus:
    """The files of a corpus and its shards.

    source : the file or folder that the caller named.   storage : the folder that file names are relative to.
    marks : a fingerprint of each file, taken when the run began.   broken : files that cannot be read at all.
    times : the type of times, as Arrow's; None if no file has any.
    """

    source: Storage
    storage: Storage
    shards: tuple[Shard, ...]
    marks: dict[str, str]
    broken: tuple[Bad, ...]
    fingerprint: str
    times: Any = None

    @property
    def name(self) -> str:
        """The path or URL that the caller gave."""
        return self.source.url

    @property
    def rows(self) -> int:
        """How many records the readable files hold, good or bad."""
        return sum(shard.rows for shard in self.shards)

    def read(self, number: int, *, steps: bool = False, times: bool = False) -> Iterator[Record | Bad]:
        """The records of a shard, good or bad."""
        s = self.shards[number]
        with self.storage.open(s.file) as opened:
            end = _end(opened)
            if _mark(end, self.storage, s.file) != self.marks[s.file]:
                raise ValueError(f"{s.file} of {self.name} has changed since the run began; start over in a new folder")
            groups = range(s.first, s.stop)
            yield from records.read(opened, end.metadata, s.file, groups, s.row, steps=steps, times=times)


class GivenRecords:
    """Records in memory instead of a corpus, as a single shard."""

    shards: tuple[Shard, ...]
    broken: tuple[Bad, ...] = ()

    def __init__(self, given: Iterable[tuple[object, npt.ArrayLike]], name: str) -> None:
        self.name = name
        self.records = [Record(name, k, str(key), as_values(X, f"{name}[{k}]")) for k, (key, X) in enumerate(given)]
        if not self.records:
            raise ValueError(f"{name} is empty; give at least one (id, sequence)")
        self.rows = len(self.records)
        self.shards = (Shard(name, 0, 1, 0, self.rows),)
        total = hashlib.sha256()
        for r in self.records:
            total.update(f"{r.id}{r.X.dtype}{r.X.shape}".encode() + np.ascontiguousarray(r.X).tobytes())
        self.fingerprint = total.hexdigest()[:16]

    def read(self, number: int) -> Iterator[Record | Bad]:
        """All records."""
        return iter(self.records)


def content_of(data: Corpus | GivenRecords) -> str:
    """What the records hold, such as "8 features", judging by the first good ones."""
    every = (record for number in range(len(data.shards)) for record in data.read(number))
    some = islice((r for r in every if isinstance(r, Record)), FIRST)
    counted = Counter(content(r.X) for r in some)
    if not counted:
        raise ValueError(f"{data.name} has no good record; the first bad one is {next(iter(data.read(0)))}")
    return counted.most_common(1)[0][0]


class _Footer(NamedTuple):
    """The footer of a Parquet file: its bytes, and the parsed metadata."""

    footer: bytes
    metadata: Any


@dataclass(frozen=True)
class _CorpusFile:
    """A file of the corpus: the number of records in each row group, or why it cannot be read."""

    name: str
    groups: tuple[int, ...]
    mark: str
    broken: str = ""
    times: Any = None


def open_corpus(url: str | os.PathLike[str], shard_rows: int) -> Corpus:
    """Read the footers of all files. url : a .parquet file, or a folder of them, searched recursively.

    shard_rows : the target number of records per shard. Row groups are combined up to this number; a larger row group
        is a shard of its own.
    """
    source = storage = Storage(url)
    if source.fs.isfile(source.root):
        names, storage = [source.root.rpartition("/")[2]], source.above()
    else:
        names = [name for name in source.names() if name.lower().endswith(".parquet")]
    if not names:
        what = "has no .parquet files" if source.fs.exists(source.root) else "does not exist"
        raise ValueError(f"{source.url} {what}; name a .parquet file or a folder of them, see dropdtw.corpus.write")
    with ThreadPoolExecutor(16) as pool:  # remote stores are slow, but handle many requests at once
        files = list(pool.map(lambda name: _file(storage, name), names))
    shards = [shard for file in files for shard in _shards(file, shard_rows)]
    broken = tuple(Bad(f.name, 0, None, f.broken, 0) for f in files if f.broken)
    if not shards:
        raise ValueError(
            f"{source.url} has no readable records: {broken[0].file}: {broken[0].reason}"
            if broken
            else f"the files of {source.url} contain no records; write some with dropdtw.corpus.write"
        )
    largest = max(shards, key=lambda shard: shard.rows)
    if largest.rows > 10 * shard_rows:
        warn(
            f"{largest.file} has {largest.rows} records in one row group, which a single worker has to process (for "
            "pairs, in memory); write it with smaller row groups (the default of dropdtw.corpus.write is 256)"
        )
    kinds = {str(f.times): f for f in reversed(files) if f.times is not None and not f.broken}
    if len(kinds) > 1:
        said = " and ".join(f"{f.name} ({kind})" for kind, f in list(kinds.items())[:-3:-1])
        raise ValueError(f"the times of {source.url} differ in type: {said}; write all as the same type")
    times = next((f.times for f in kinds.values()), None)
    known = json.dumps([[f.name, f.groups, f.mark, f.broken] for f in files])
    marks = {f.name: f.mark for f in files}
    return Corpus(source, storage, tuple(shards), marks, broken, hashlib.sha256(known.encode()).hexdigest()[:16], times)


def _file(storage: Storage, name: str) -> _CorpusFile:
    pa = arrow()
    try:
        with storage.open(name) as file:
            end = _end(file)
            mark = _mark(end, storage, name)
            schema = end.metadata.schema.to_arrow_schema()
            wrong, times = records.schema_error(schema), records.times_type(schema)
    except (pa.ArrowException, OSError) as error:
        return _CorpusFile(name, (), "", records.unreadable(error))
    groups = tuple(end.metadata.row_group(g).num_rows for g in range(end.metadata.num_row_groups))
    return _CorpusFile(name, () if wrong else groups, mark, wrong, times)


def _end(file: BinaryIO) -> _Footer:
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - (1 << 16)))
    tail = file.read()
    length = int.from_bytes(tail[-8:-4], "little")
    if size < 12 or tail[-4:] != b"PAR1" or length > size - 12:
        raise pa.ArrowInvalid("it has no Parquet footer")
    if length + 8 > len(tail):
        file.seek(size - 8 - length)
        tail = file.read()
    footer = tail[-8 - length :]
    return _Footer(footer, parquet.read_metadata(pa.BufferReader(b"PAR1" + footer)))


def _mark(end: _Footer, storage: Storage, name: str) -> str:
    """A fingerprint that changes with the file: a hash of its footer, where `write` stores a hash of the content."""
    known = end.metadata.metadata or {}
    about = b""
    if CONTENT.encode() not in known:  # a footer alone may miss swapped values
        info = storage.fs.info(storage.path(name))
        about = str(info.get("ETag") or info.get("mtime") or info.get("LastModified") or "").encode()
    return hashlib.sha256(end.footer + about).hexdigest()[:16]


def _shards(file: _CorpusFile, shard_rows: int) -> Iterator[Shard]:
    first = row = 0
    for g in range(len(file.groups)):
        rows = sum(file.groups[first : g + 1])
        last = g + 1 == len(file.groups)
        if rows and (last or rows + file.groups[g + 1] > shard_rows):
            yield Shard(file.name, first, g + 1, row, rows)
            first, row = g + 1, row + rows
