"""The records of a corpus. A record is an id, a sequence of features and, for localization, the steps to find in it.

id           string (integers become strings)
features     list of floats: X, row-major
shape        list of two integers: (N, d)
steps        list of floats: Z, row-major; may be missing
steps_shape  list of two integers: (K, d)
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from dropdtw.corpus.storage import Storage, arrow
from dropdtw.problem.inputs import Array, as_sequence

NEEDED: Final = ("id", "features", "shape")
STEPS: Final = ("steps", "steps_shape")
CALLED: Final = {"features": "feature sequence", "steps": "step sequence"}
"""The names of columns in error messages."""
CONTENT: Final = "dropdtw.content"
"""The footer key under which `write` stores a hash of all sequences."""

BATCH_BYTES: Final = 1 << 26
"""Approximate size of a batch of records in memory; larger records are held one by one."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Record:
    """A good record: its place in the corpus, X (N, d), and its own steps Z (K, d) if it has any."""

    file: str
    row: int
    id: str
    X: Array
    steps: Array | None = None


@dataclass(frozen=True)
class Bad:
    """A bad record, with the reason. rows : the number of bad records from `row` on; 0: the whole file."""

    file: str
    row: int
    id: str | None
    reason: str
    rows: int = 1

    def __str__(self) -> str:
        which = {0: "", 1: f", row {self.row}"}.get(self.rows, f", rows {self.row} to {self.row + self.rows - 1}")
        return f"{self.file}{which}{'' if self.id is None else f' (id {self.id!r})'}: {self.reason}"


def write(url: str | os.PathLike[str], records: Iterable[tuple[Any, ...]], *, group: int = 256) -> int:
    """Write records as one Parquet file of a corpus.

    url : a path or any fsspec URL that ends in .parquet. The file is written atomically.
    records : any iterable of (id, X) or (id, X, steps), where X is (N, d) or (N,), and steps is (K, d) or (K,). It is
        read once, with `group` records in memory at a time.
    group : records per row group, the smallest unit of work.

    Returns the number of records. Raises ValueError if the URL or a record is invalid, or if there are no records, and
    ImportError without pyarrow and fsspec.

    >>> import numpy as np, tempfile, dropdtw.corpus as corpora
    >>> folder = tempfile.mkdtemp()
    >>> corpora.write(f"{folder}/a.parquet", ((f"walk {k}", np.ones((5, 3))) for k in range(10)))
    10
    """
    if not str(url).endswith(".parquet"):
        raise ValueError(f"url is {str(url)!r}; give a file name that ends in .parquet")
    if not whole(group):
        raise ValueError(f"group is {group!r}; give the number of records per row group, 1 or more")
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    count, total = 0, hashlib.sha256()
    rest = chunks(records, group)
    first = next(rest, None)
    if first is None:
        raise ValueError("there are no records to write; give at least one")
    schema = _table(pa, first, 0, total.copy()).schema
    with (
        Storage(url).writing("") as file,
        # Features hardly compress, and zstd would halve the reading speed.
        parquet.ParquetWriter(file, schema, compression="lz4", use_dictionary=["id"]) as writer,
    ):
        while first is not None:
            table = _table(pa, first, count, total)
            if table.schema != schema:
                raise ValueError(
                    f"records {count} to {count + len(first) - 1} differ in type from the first ones; give all records "
                    "the same dtype, and steps to all or none"
                )
            writer.write_table(table)
            count += len(first)
            first = next(rest, None)
        writer.add_key_value_metadata({CONTENT: total.hexdigest()})
    return count


def whole(value: object) -> bool:
    """Whether this is an integer, 1 or more."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Items in lists of `size`; the last one may be shorter."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def together(records: Iterable[Record | Bad], size: int) -> Iterator[list[Record | Bad]]:
    """Records in lists of at most `size` and about `BATCH_BYTES`."""
    some: list[Record | Bad] = []
    held = 0
    for record in records:
        some.append(record)
        held += record.X.nbytes if isinstance(record, Record) else 0
        if len(some) == size or held >= BATCH_BYTES:
            yield some
            some, held = [], 0
    if some:
        yield some


def _table(pa: Any, some: Sequence[tuple[Any, ...]], first: int, total: Any) -> Any:
    columns: dict[str, list[Any]] = {name: [] for name in (*NEEDED, *STEPS)}
    for k, record in enumerate(some, first):
        if len(record) not in (2, 3):
            raise ValueError(f"record {k} has {len(record)} parts; give (id, X) or (id, X, steps)")
        columns["id"].append(str(record[0]))
        total.update(columns["id"][-1].encode())
        for (name, shape), values in zip((NEEDED[1:], STEPS), (record[1], *record[2:], None), strict=False):
            A = None if values is None else as_sequence(values, f"{CALLED[name]} of record {k}")
            columns[name].append(None if A is None else A.ravel())
            columns[shape].append(None if A is None else list(A.shape))
            if A is not None:
                total.update(f"{A.dtype}{A.shape}".encode() + np.ascontiguousarray(A).tobytes())
    given = [name for name in columns if any(v is not None for v in columns[name])]
    wide = any(v is not None and v.dtype == np.float64 for name in ("features", "steps") for v in columns[name])
    number = pa.float64() if wide else pa.float32()
    types = {"id": pa.string()} | dict.fromkeys(("features", "steps"), pa.list_(number))
    return pa.table({name: pa.array(columns[name], types.get(name, pa.list_(pa.int64()))) for name in given})


def schema_error(schema: Any) -> str:
    """Why this schema is unusable; "" if it is fine."""
    types = arrow("pyarrow.types")
    names = schema.names
    missing = [name for name in NEEDED if name not in names]
    if len(both := [name for name in STEPS if name in names]) == 1:
        missing += [name for name in STEPS if name not in both]
    if missing:
        return f"it has the columns {', '.join(names)}, but no {', '.join(missing)}"
    for name in (*NEEDED, *both):
        kind = schema.field(name).type
        if name == "id":
            if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
                return f"its column id is {kind}; give strings"
            continue
        listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        right = types.is_integer if name.endswith("shape") else lambda t: types.is_floating(t) or types.is_integer(t)
        if not listed or not right(kind.value_type):
            return f"its column {name} is {kind}; give lists of {'integers' if name.endswith('shape') else 'numbers'}"
    return ""


def read(
    opened: Any, metadata: Any, file: str, groups: Sequence[int], first: int, *, steps: bool
) -> Iterator[Record | Bad]:
    """The records of some row groups of an open file, good or bad, in order.

    first : the row of the file where the first group begins.   steps : whether to read the steps.
    """
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    # Read through a small buffer, not whole row groups; and keep Arrow's threads off the Python file.
    table = parquet.ParquetFile(opened, metadata=metadata, pre_buffer=False, buffer_size=1 << 20)
    columns = [name for name in (*NEEDED, *(STEPS if steps else ())) if name in table.schema_arrow.names]
    for g in groups:
        about = metadata.row_group(g)
        size = max(1, min(1024, BATCH_BYTES * about.num_rows // max(1, about.total_byte_size)))
        row, end = first, first + about.num_rows
        try:
            for batch in table.iter_batches(size, row_groups=[g], columns=columns, use_threads=False):
                for record in _decode(batch, file, row):
                    yield record
                    row += 1
        except (pa.ArrowException, OSError) as error:
            yield Bad(file, row, None, unreadable(error), end - row)
        first = end


def unreadable(error: Exception) -> str:
    """The reason for content that cannot be decoded. I/O errors of the store are raised instead."""
    # For content that it cannot decode, Arrow raises a plain OSError without an errno.
    if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
        raise error
    return f"it cannot be read as Parquet: {' '.join(str(error).split())}"


def _decode(batch: Any, file: str, row: int) -> Iterator[Record | Bad]:
    has_steps = set(batch.schema.names).issuperset(STEPS)
    for k in range(batch.num_rows):
        name = None
        try:
            value = batch["id"][k].as_py()
            if value is None:
                raise ValueError("it has no id; give a string")
            name = str(value)
            X = _sequence(batch, k, "features", "shape")
            if X is None:
                raise ValueError("it has no features; give a list of numbers and their shape")
            yield Record(file, row + k, name, X, _sequence(batch, k, *STEPS) if has_steps else None)
        except ValueError as error:
            yield Bad(file, row + k, name, str(error))


def _sequence(batch: Any, k: int, name: str, shape: str) -> Array | None:
    values, size = batch[name][k], batch[shape][k].as_py()
    if not values.is_valid:
        return None
    flat: npt.NDArray[Any] = values.values.to_numpy(zero_copy_only=False)
    fits = isinstance(size, list) and len(size) == 2 and all(isinstance(n, int) and n >= 0 for n in size)
    if not fits or math.prod(size) != len(flat):
        raise ValueError(f"its {shape} is {size!r}, but {name} has {len(flat)} numbers; give (length, d)")
    return as_sequence(flat.reshape(size), f"its {CALLED[name]}")
