"""What a corpus holds: a record is an id, a sequence of features and, for localization, the steps to be found in it.

id           string (whole numbers become strings)
features     list of floats: X, row after row
shape        list of two whole numbers: (N, d)
steps        list of floats: Z, row after row; may be missing
steps_shape  list of two whole numbers: (K, d)
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from dropdtw.arrays import Array, as_sequence
from dropdtw.scale.storage import Storage, arrow

NEEDED: Final = ("id", "features", "shape")
STEPS: Final = ("steps", "steps_shape")
BATCH_BYTES: Final = 1 << 26
"""Records are decoded in batches of about so many bytes, or one by one if they are larger."""

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


def write(
    url: str | os.PathLike[str],
    records: Iterable[tuple[Any, ...]],
    *,
    group: int = 256,
) -> int:
    """Write records as one Parquet file of a corpus; gives their number.

    url : a path or any fsspec address that ends in .parquet. The file appears when it is complete.
    records : (id, X) or (id, X, steps); any iterable, which is gone through once.
    group : records in a row group, the smallest part that a worker takes.

    >>> import numpy as np, tempfile, dropdtw.scale as scale
    >>> folder = tempfile.mkdtemp()
    >>> scale.write(f"{folder}/a.parquet", ((f"walk {k}", np.ones((5, 3))) for k in range(10)))
    10
    """
    if not str(url).endswith(".parquet"):
        raise ValueError(f"url is {str(url)!r}; give a file name that ends in .parquet")
    if not whole(group):
        raise ValueError(f"group is {group!r}; give the number of records in a row group, 1 or more")
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    place = Storage(url)
    memory, count, writer = io.BytesIO(), 0, None
    for some in chunks(records, group):
        table = _table(pa, some, count)
        # Features hardly compress, and zstd would halve the speed of reading them.
        writer = writer or parquet.ParquetWriter(memory, table.schema, compression="lz4", use_dictionary=["id"])
        if table.schema != writer.schema:
            raise ValueError(
                f"records {count} to {count + len(some) - 1} are not of the type of the first ones (float64, or with "
                "steps); give all of them alike"
            )
        writer.write_table(table)
        count += len(some)
    if writer is None:
        raise ValueError("there are no records to write; give at least one")
    writer.close()
    place.write("", memory.getvalue())
    return count


def whole(value: object) -> bool:
    """Whether this is a whole number, 1 or more."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Items in lists of `size`, the last one shorter."""
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def _table(pa: Any, some: Sequence[tuple[Any, ...]], first: int) -> Any:
    columns: dict[str, list[Any]] = {name: [] for name in (*NEEDED, *STEPS)}
    for k, record in enumerate(some, first):
        if len(record) not in (2, 3):
            raise ValueError(f"record {k} has {len(record)} parts; give (id, X) or (id, X, steps)")
        columns["id"].append(str(record[0]))
        for (name, shape), values in zip((NEEDED[1:], STEPS), (record[1], *record[2:], None), strict=False):
            A = None if values is None else as_sequence(values, f"{name} of record {k}")
            columns[name].append(None if A is None else A.ravel())
            columns[shape].append(None if A is None else list(A.shape))
    given = [name for name in columns if any(v is not None for v in columns[name])]
    wide = any(v is not None and v.dtype == np.float64 for name in ("features", "steps") for v in columns[name])
    number = pa.float64() if wide else pa.float32()
    types = {"id": pa.string()} | dict.fromkeys(("features", "steps"), pa.list_(number))
    return pa.table({name: pa.array(columns[name], types.get(name, pa.list_(pa.int64()))) for name in given})


def read(storage: Storage, file: str, groups: Sequence[int], first: int, *, steps: bool) -> Iterator[Record | Bad]:
    """The records of some row groups of a file, good or bad, in their order.

    first : the row of the file that the first group begins with.   steps : whether their steps are wanted.
    """
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    with storage.open(file) as opened:
        try:
            table = parquet.ParquetFile(opened)
            columns = [name for name in (*NEEDED, *(STEPS if steps else ())) if name in table.schema_arrow.names]
        except (pa.ArrowException, OSError) as error:
            raise unreadable(error, file) from None
        for g in groups:
            about = table.metadata.row_group(g)
            size = max(1, min(1024, BATCH_BYTES * about.num_rows // max(1, about.total_byte_size)))
            row, end = first, first + about.num_rows
            try:
                for batch in table.iter_batches(size, row_groups=[g], columns=columns):
                    for record in _decode(batch, file, row):
                        yield record
                        row += 1
            except (pa.ArrowException, OSError) as error:
                yield Bad(file, row, None, str(unreadable(error, file)), end - row)
            first = end


def unreadable(error: Exception, file: str) -> ValueError:
    """What to say of a file whose content makes no sense; a store that does not answer is another matter."""
    if isinstance(error, OSError) and error.errno is not None:  # what Arrow cannot decode has no number
        raise error
    return ValueError(f"it cannot be read as Parquet: {' '.join(str(error).split())}")


def _decode(batch: Any, file: str, row: int) -> Iterator[Record | Bad]:
    names = set(batch.schema.names)
    for k in range(batch.num_rows):
        name = None
        try:
            value = batch["id"][k].as_py()
            if not isinstance(value, (str, int)):
                raise ValueError(f"its id is {value!r}; give a string")
            name = str(value)
            X = _sequence(batch, k, "features", "shape")
            if X is None:
                raise ValueError("it has no features; give a list of numbers and their shape")
            own = _sequence(batch, k, *STEPS) if names.issuperset(STEPS) else None
            yield Record(file, row + k, name, X, own)
        except ValueError as error:
            yield Bad(file, row + k, name, str(error))


def _sequence(batch: Any, k: int, name: str, shape: str) -> Array | None:
    values, size = batch[name][k], batch[shape][k].as_py()
    if not values.is_valid:
        return None
    flat: npt.NDArray[Any] = values.values.to_numpy(zero_copy_only=False)
    whole = isinstance(size, list) and len(size) == 2 and all(isinstance(n, int) and n >= 0 for n in size)
    if not whole or math.prod(size) != len(flat):
        raise ValueError(f"its {shape} is {size!r}, but {name} holds {len(flat)} numbers; give (length, d)")
    return as_sequence(flat.reshape(size), f"its {name}")
