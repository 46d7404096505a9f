"""The records of a corpus. A record is an id, a sequence of features and, for localization, the steps to find in it.

id           string (integers become strings)
features     list of floats: X, row-major; or symbols: a list of strings, or a string (its letters)
shape        list of two integers: (N, d); not with symbols
steps        like features: Z; may be missing
steps_shape  list of two integers: (K, d); not with symbols
times        list of N numbers (seconds), timestamps or durations; or of 2 N, each x's begin and end; may be missing
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
from dropdtw.problem.clock import Clock, timed
from dropdtw.problem.inputs import Array, Columns, as_sequence
from dropdtw.problem.symbols import listing, symbolic

NEEDED: Final = ("id", "features", "shape")
STEPS: Final = ("steps", "steps_shape")
TIMES: Final = "times"
CALLED: Final = {"features": "feature sequence", "steps": "step sequence"}
"""The names of columns in error messages."""
CONTENT: Final = "dropdtw.content"
"""The footer key under which `write` stores a hash of all sequences."""

BATCH_BYTES: Final = 1 << 26
"""Approximate size of a batch of records in memory; larger records are held one by one."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Record:
    """A good record: its place in the corpus, X (N, d), and its own steps Z (K, d) and times if it has any."""

    file: str
    row: int
    id: str
    X: Array
    steps: Array | None = None
    clock: Clock | None = None


def as_values(values: npt.ArrayLike, name: str) -> Array:
    """Validate a sequence of a corpus: numbers (N, d), or symbols as strings (N, 1)."""
    if not symbolic(values):
        return as_sequence(values, name)
    symbols = listing(values, name)
    for k, symbol in enumerate(symbols):
        if not isinstance(symbol, str):
            raise ValueError(f"element {k} of {name} is {symbol!r}; corpora hold symbols as strings")
    return np.array(symbols)[:, None]


def content(values: Array) -> str:
    """What a sequence holds, for messages; sequences that can be compared hold the same."""
    return "symbols" if values.dtype.kind == "U" else f"{values.shape[1]} features"


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
    records : any iterable of (id, X), (id, X, steps) or (id, X, steps, times), where X is (N, d) or (N,), and steps is
        (K, d), (K,) or None. It is read once, with `group` records in memory at a time.
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
    pa, parquet, columns = arrow(), arrow("pyarrow.parquet"), Columns()
    count, total = 0, hashlib.sha256()
    rest = chunks(records, group)
    first = next(rest, None)
    if first is None:
        raise ValueError("there are no records to write; give at least one")
    schema = _table(pa, first, 0, total.copy(), columns).schema
    with (
        Storage(url).writing("") as file,
        # Features hardly compress, and zstd would halve the reading speed.
        parquet.ParquetWriter(file, schema, compression="lz4", use_dictionary=["id"]) as writer,
    ):
        while first is not None:
            table = _table(pa, first, count, total, columns)
            if table.schema != schema:
                raise ValueError(
                    f"records {count} to {count + len(first) - 1} differ in type from the first ones; give all records "
                    "the same dtype, and steps and times to all or none"
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


def _table(pa: Any, some: Sequence[tuple[Any, ...]], first: int, total: Any, shared: Columns) -> Any:
    columns: dict[str, list[Any]] = {name: [] for name in (*NEEDED, *STEPS)}
    clocks: list[Clock | None] = []
    for k, record in enumerate(some, first):
        if not 2 <= len(record) <= 4:
            raise ValueError(
                f"record {k} has {len(record)} parts; give (id, X), (id, X, steps) or (id, X, steps, times)"
            )
        name, given, steps, times = (*record, None, None)[:4]
        _, X, both = timed((), given, times)
        clocks.append(None if both is None else both.x)
        columns["id"].append(str(name))
        total.update(columns["id"][-1].encode())
        for (column, shape), values in zip((NEEDED[1:], STEPS), (X, steps), strict=True):
            said = f"{CALLED[column]} of record {k}"
            A = None if values is None else as_values(shared.sort(values, said), said)
            columns[column].append(A)
            columns[shape].append(None if A is None or A.dtype.kind == "U" else list(A.shape))
            if A is not None:
                total.update(f"{A.dtype}{A.shape}".encode() + np.ascontiguousarray(A).tobytes())
        if clocks[-1] is not None:
            total.update(repr(clocks[-1].to_dict()).encode())
    arrays = [A for name in ("features", "steps") for A in columns[name] if A is not None]
    if len({A.dtype.kind == "U" for A in arrays}) > 1:
        raise ValueError(f"records {first} to {first + len(some) - 1} hold symbols and numbers; give only one of them")
    types = {"id": pa.string()} | dict.fromkeys(("features", "steps"), pa.list_(_element(pa, arrays)))
    for name in ("features", "steps"):
        columns[name] = [
            None if A is None else A.ravel().tolist() if A.dtype.kind == "U" else A.ravel() for A in columns[name]
        ]
    if any(clock is not None for clock in clocks):
        columns[TIMES], types[TIMES] = _times(pa, clocks)
    filled = [name for name in columns if any(v is not None for v in columns[name])]
    return pa.table({name: pa.array(columns[name], types.get(name, pa.list_(pa.int64()))) for name in filled})


def _element(pa: Any, arrays: Sequence[Array]) -> Any:
    """The type of the elements of some sequences."""
    if arrays[0].dtype.kind == "U":
        return pa.string()
    return pa.float64() if any(A.dtype == np.float64 for A in arrays) else pa.float32()


def _times(pa: Any, clocks: Sequence[Clock | None]) -> tuple[list[Array | None], Any]:
    """The column of times and its type. Ends are written if they are not the beginnings of the next elements."""
    dtypes = {clock.begin.dtype for clock in clocks if clock is not None}
    zones = {clock.zone for clock in clocks if clock is not None}
    if len({dtype.kind for dtype in dtypes}) > 1 or len(zones) > 1:
        raise ValueError(
            "times of records differ in type; give all as seconds, as dates of one time zone, or durations"
        )
    dtype, (zone,) = np.result_type(*dtypes), zones
    if dtype.kind != "f":
        unit = np.datetime_data(dtype)[0]
        unit = unit if unit in ("s", "ms", "us", "ns") else "ns" if unit in ("ps", "fs", "as") else "s"
        dtype = np.dtype(f"{dtype.kind}8[{unit}]")
        kind = pa.duration(unit)
        if dtype.kind == "M":
            kind = pa.timestamp(unit, None if zone is None else pa.lib.tzinfo_to_string(zone))
    else:
        kind = pa.float64()
    found: list[Array | None] = []
    for clock in clocks:
        if clock is None:
            found.append(None)
            continue
        alone = np.array_equal(Clock.of(clock.begin, "x").end, clock.end)
        both = clock.begin if alone else np.stack([clock.begin, clock.end], axis=1).ravel()
        found.append(both.astype(dtype))
    return found, pa.list_(kind)


def schema_error(schema: Any) -> str:
    """Why this schema is unusable; "" if it is fine."""
    types = arrow("pyarrow.types")
    names = schema.names
    symbolic = {name for name in ("features", "steps") if name in names and _of_symbols(schema.field(name).type)}
    needed = [name for name in NEEDED if not (name == "shape" and "features" in symbolic)]
    both = [name for name in STEPS if name in names]
    missing = [name for name in needed if name not in names]
    if len(both) == 1 and "steps" not in symbolic:
        missing += [name for name in STEPS if name not in both]
    if missing:
        return f"it has the columns {', '.join(names)}, but no {', '.join(missing)}"
    for name in (*needed, *both):
        kind = schema.field(name).type
        if name == "id":
            if not (types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind)):
                return f"its column id is {kind}; give strings"
            continue
        right = types.is_integer if name.endswith("shape") else lambda t: types.is_floating(t) or types.is_integer(t)
        if name not in symbolic and not (_is_list(kind) and right(kind.value_type)):
            what = "integers" if name.endswith("shape") else "numbers, or strings"
            return f"its column {name} is {kind}; give lists of {what}"
    if times_type(schema) is None and TIMES in names:
        return f"its column times is {schema.field(TIMES).type}; give lists of seconds, timestamps or durations"
    return ""


def times_type(schema: Any) -> Any:
    """The type of a time in a file; None if it has none."""
    types = arrow("pyarrow.types")
    kind = schema.field(TIMES).type if TIMES in schema.names else None
    if kind is None or not _is_list(kind):
        return None
    if types.is_floating(kind.value_type) or types.is_integer(kind.value_type):
        return arrow().float64()
    return kind.value_type if types.is_timestamp(kind.value_type) or types.is_duration(kind.value_type) else None


def _is_list(kind: Any) -> bool:
    types = arrow("pyarrow.types")
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _of_symbols(kind: Any) -> bool:
    """Whether a column holds symbols: strings, whose letters are symbols, or lists of strings."""
    types = arrow("pyarrow.types")
    inner = kind.value_type if _is_list(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner))


def read(
    opened: Any, metadata: Any, file: str, groups: Sequence[int], first: int, *, steps: bool, times: bool = False
) -> Iterator[Record | Bad]:
    """The records of some row groups of an open file, good or bad, in order.

    first : the row of the file where the first group begins.   steps, times : whether to read them.
    """
    pa, parquet = arrow(), arrow("pyarrow.parquet")
    # Read through a small buffer, not whole row groups; and keep Arrow's threads off the Python file.
    table = parquet.ParquetFile(opened, metadata=metadata, pre_buffer=False, buffer_size=1 << 20)
    wanted = (*NEEDED, *(STEPS if steps else ()), *((TIMES,) if times else ()))
    columns = [name for name in wanted if name in table.schema_arrow.names]
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
    names = set(batch.schema.names)
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
            steps = _sequence(batch, k, *STEPS) if "steps" in names else None
            yield Record(file, row + k, name, X, steps, _clock(batch, k, len(X)) if TIMES in names else None)
        except ValueError as error:
            yield Bad(file, row + k, name, str(error))


def _sequence(batch: Any, k: int, name: str, shape: str) -> Array | None:
    values = batch[name][k]
    if not values.is_valid:
        return None
    if _of_symbols(values.type):
        return as_values(values.as_py(), f"its {CALLED[name]}")
    size = batch[shape][k].as_py()
    flat: npt.NDArray[Any] = values.values.to_numpy(zero_copy_only=False)
    fits = isinstance(size, list) and len(size) == 2 and all(isinstance(n, int) and n >= 0 for n in size)
    if not fits or math.prod(size) != len(flat):
        raise ValueError(f"its {shape} is {size!r}, but {name} has {len(flat)} numbers; give (length, d)")
    return as_sequence(flat.reshape(size), f"its {CALLED[name]}")


def _clock(batch: Any, k: int, length: int) -> Clock | None:
    """The times of a record, in UTC if they are dates."""
    values = batch[TIMES][k]
    if not values.is_valid:
        return None
    times: npt.NDArray[Any] = values.values.to_numpy(zero_copy_only=False)
    if len(times) not in (length, 2 * length):
        raise ValueError(
            f"it has {len(times)} times for {length} elements; give one per element, or begin and end of each"
        )
    return Clock.of(times if len(times) == length else times.reshape(length, 2), "x")
