"""What a corpus holds: a record is an id, a sequence of features and, for localization, the steps to be found in it.

id           string (whole numbers become strings)
features     list of floats: X, row after row
shape        list of two whole numbers: (N, d)
steps        list of floats: Z, row after row; may be missing
steps_shape  list of two whole numbers: (K, d)
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
CONTENT: Final = "dropdtw.content"
"""Where a file that `write` has made says, in its footer, what is in it: a hash of all sequences."""

BATCH_BYTES: Final = 1 << 26
"""Records are held in batches of about so many bytes, or one by one if they are larger."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Record:
    """A good record: where it stands, X (N, d) and its own steps Z (K, d), if it has any."""

    file: str
    row: int
    id: str
    X: Array
    steps: Array | None = None


@dataclass(frozen=True)
class Bad:
    """What could not be used, and why. rows : how many records that is, from `row` on; 0: the whole file."""

    file: str
    row: int
    id: str | None
    reason: str
    rows: int = 1

    def __str__(self) -> str:
        which = {0: "", 1: f", row {self.row}"}.get(self.rows, f", rows {self.row} to {self.row + self.rows - 1}")
        return f"{self.file}{which}{'' if self.id is None else f' (id {self.id!r})'}: {self.reason}"


def write(url: str | os.PathLike[str], records: Iterable[tuple[Any, ...]], *, group: int = 256) -> int:
    """Write records as one Parquet file of a corpus; gives their number.

    url : a path or any fsspec address that ends in .parquet. The file appears when it is complete.
    records : (id, X) or (id, X, steps); any iterable, which is gone through once, `group` of them in memory at a time.
    group : records in a row group, the smallest part that a worker takes.

    >>> import numpy as np, tempfile, dropdtw.corpus as corpora
    >>> folder = tempfile.mkdtemp()
    >>> corpora.write(f"{folder}/a.parquet", ((f"walk {k}", np.ones((5, 3))) for k in range(10)))
    10
    """
    if not str(url).endswith(".parquet"):
        raise ValueError(f"url is {str(url)!r}; give a file name that ends in .parquet")
    if not whole(group):
        raise ValueError(f"group is {group!r}; give the number of records in a row group, 1 or more")
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    count, total = 0, hashlib.sha256()
    rest = chunks(records, group)
    first = next(rest, None)
    if first is None:
        raise ValueError("there are no records to write; give at least one")
    schema = _table(pa, first, 0, total.copy()).schema
    with (
        Storage(url).writing("") as file,
        # Features hardly compress, and zstd would halve the speed of reading them.
        parquet.ParquetWriter(file, schema, compression="lz4", use_dictionary=["id"]) as writer,
    ):
        while first is not None:
            table = _table(pa, first, count, total)
            if table.schema != schema:
                raise ValueError(
                    f"records {count} to {count + len(first) - 1} are not of the type of the first ones (float64, or "
                    "with steps); give all of them alike"
                )
            writer.write_table(table)
            count += len(first)
            first = next(rest, None)
        writer.add_key_value_metadata({CONTENT: total.hexdigest()})
    return count


def whole(value: object) -> bool:
    """Whether this is a whole number, 1 or more."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Items in lists of `size`, the last one shorter."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def together(records: Iterable[Record | Bad], size: int) -> Iterator[list[Record | Bad]]:
    """Records in lists of `size` at most, and of about `BATCH_BYTES`."""
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
            A = None if values is None else as_sequence(values, f"{name} of record {k}")
            columns[name].append(None if A is None else A.ravel())
            columns[shape].append(None if A is None else list(A.shape))
            if A is not None:
                total.update(f"{A.dtype}{A.shape}".encode() + np.ascontiguousarray(A).tobytes())
    given = [name for name in columns if any(v is not None for v in columns[name])]
    wide = any(v is not None and v.dtype == np.float64 for name in ("features", "steps") for v in columns[name])
    number = pa.float64() if wide else pa.float32()
    types = {"id": pa.string()} | dict.fromkeys(("features", "steps"), pa.list_(number))
    return pa.table({name: pa.array(columns[name], types.get(name, pa.list_(pa.int64()))) for name in given})


def amiss(schema: Any) -> str:
    """What makes a file useless whose columns are these; "" where nothing does."""
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
            return f"its column {name} is {kind}; give lists of {'whole ' if name.endswith('shape') else ''}numbers"
    return ""


def read(
    opened: Any, metadata: Any, file: str, groups: Sequence[int], first: int, *, steps: bool
) -> Iterator[Record | Bad]:
    """The records of some row groups of an open file, good or bad, in their order.

    first : the row of the file that the first group begins with.   steps : whether their steps are wanted.
    """
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    # A buffer instead of all of a row group; and Arrow's threads hold no Python file.
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
    """What to say of content that makes no sense; a store that does not answer is another matter, and raises."""
    # Arrow raises a plain OSError without a number for what it cannot decode.
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
        raise ValueError(f"its {shape} is {size!r}, but {name} holds {len(flat)} numbers; give (length, d)")
    return as_sequence(flat.reshape(size), f"its {name}")
