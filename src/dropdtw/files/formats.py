"""Read sequences and write alignments, in the format of the file name extension. "-" is standard input or output."""

from __future__ import annotations

import csv
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from dropdtw.files import arrays, atomic, jsons, tables, texts
from dropdtw.files.tables import Table, numbers, rectangle
from dropdtw.problem.clock import Clocks
from dropdtw.problem.inputs import Array, Columns, as_sequence, shortened
from dropdtw.results.alignment import Alignment

MANY_CELLS: Final = 1 << 24
"""Maximum number of match costs that an alignment in .npz includes by default."""


def read(place: str | os.PathLike[str], *, header: bool | None = None, holes: bool = False, or_else: str = "") -> Array:
    """Read a sequence (length, d).

    place : a file that ends in .npy, .npz (with several arrays, name one: "file.npz:name"), .csv, .tsv or .txt (with
        or without a line of names), .parquet, .jsonl or .ndjson (one row per line), or .json (a list of rows); or "-"
        for standard input, in any of these formats. Nothing is unpickled.
    header : whether .csv, .tsv and .txt begin with a line of names. None decides by the first line: it holds names if
        it has no number. It also holds names if it is exactly 0,1,…,d−1 in two or more columns, as pandas numbers
        them; then a warning is issued. Another warning says that a first column of row numbers was left out, as pandas
        writes it: whole numbers that increase, without a name.
    holes : whether NaN is allowed; otherwise it is an error.   or_else : further advice in that error.

    Raises FileNotFoundError if there is no such file, ImportError for .parquet without pyarrow, and ValueError if the
    file cannot be read.
    """
    return read_table(place, header=header, holes=holes, or_else=or_else).values


class SequencePair(NamedTuple):
    """Two sequences with the same columns, and their clocks, if they have a column of times."""

    Z: Array
    X: Array
    times: Clocks | None


def read_pair(
    z: str | os.PathLike[str],
    x: str | os.PathLike[str],
    *,
    header: bool | None = None,
    time: str | None = None,
    holes: bool = False,
    or_else: str = "",
) -> SequencePair:
    """Read two sequences. If both name their columns, those of X are put into the order of Z's.

    time : the column of times of X, which is not part of the sequence; Z may have it, too. "uptime,time" names those of
        Z and of X.
    The other arguments are those of `read`.

    Raises the errors of `read_table`, and ValueError if the two have columns of different names.
    """
    of_z, of_x, both = both_times(time)
    first = read_table(z, header=header, time=of_z, needed=both, holes=holes, or_else=or_else)
    second = read_table(x, header=header, time=of_x, holes=holes, or_else=or_else)
    X = in_order_of(first, second, os.fspath(z), os.fspath(x), (of_z, of_x))
    return SequencePair(first.values, X, None if time is None else Clocks(first.times, second.times))


def both_times(time: str | None) -> tuple[str | None, str | None, bool]:
    """The columns of times of Z and of X by the name of one, or by both ("uptime,time"); and whether both are named."""
    of_z, comma, of_x = (None, "", None) if time is None else time.rpartition(",")
    return of_z if comma else of_x, of_x, bool(comma)


def read_symbols(place: str, *, letters: bool = False) -> list[str]:
    """Read the words of a text, separated by white space; or its letters, without white space.

    A line that begins with ">" names a sequence (FASTA) and is left out.

    Raises FileNotFoundError, and ValueError if the file is no text, is empty, or holds several named sequences.
    """
    content, shown = content_of(place, "a text")
    lines = texts.decoded(content, shown).splitlines()
    kept = [line for line in lines if not line.startswith(">")]
    if len(lines) - len(kept) > 1:
        raise ValueError(f"{shown} holds {len(lines) - len(kept)} sequences; give a file with one")
    words = " ".join(kept).split()
    if not words:
        raise ValueError(f"{shown} holds no words; give a text")
    return list("".join(words)) if letters else words


def in_order_of(first: Table, second: Table, z: str, x: str, times: tuple[str | None, str | None]) -> Array:
    """The values of the second table, its columns in the order of the first one's if both name them.

    z, x : what to call the two in the error.   times : the columns of times that the two may have.

    Raises ValueError if the two have columns of different names.
    """
    of_z, of_x = (
        [] if tables.is_numbered(table.names) else [name for name in table.names if name != time]
        for table, time in zip((first, second), times, strict=True)
    )
    order = Columns(tuple(of_z), z).order(of_x, x)
    return second.values if order is None else second.values[:, order]


def read_table(
    place: str | os.PathLike[str],
    *,
    header: bool | None = None,
    time: str | None = None,
    needed: bool = True,
    holes: bool = False,
    or_else: str = "",
) -> Table:
    """Read a sequence with the names of its columns, and its times, if it has them.

    place, header : as in `read`. Only .csv, .tsv and .txt have named columns.
    time : the name of a column, which is not part of the sequence; it holds seconds, h:mm:ss, or ISO 8601 dates.
    needed : whether a missing column is an error; if not, there are no times.

    Raises the errors of `read`, and ValueError if a time is invalid.
    """
    name, _, member = _split(os.fspath(place))
    path = Path(name)
    kind = path.suffix.lower()
    told = kind in READERS and name != "-"
    if not told and not _is_stream(path) and not path.is_dir():
        end = f"ends in {kind!r}" if kind else "has no file extension"
        advice = "; `dropdtw diff` compares recordings" if texts.is_recording(name) else ""
        advice = "; for words, `dropdtw align --text`" if kind in (".srt", ".vtt", ".sbv", ".md") else advice
        raise ValueError(f"{name} {end}; sequences are read from {', '.join(READERS)}{advice}")
    content, shown = content_of(name, "one sequence")
    if not told:
        kind = _sniff(content)
    if not content:
        raise ValueError(f"{shown} is empty; give a file with a row per element")
    if time is not None and needed and kind not in tables.ENDS:
        raise ValueError(
            f"{shown} has no named columns, so none is called {time!r}; times are read from {', '.join(tables.ENDS)}"
        )
    try:
        found = READERS[kind](_File(content, shown, member, header, time, needed))
    except (ValueError, TypeError, csv.Error) as error:
        if (kind == ".txt" or not told) and tables.is_prose(content):
            raise ValueError(
                f"{shown} holds text, not numbers; `dropdtw align --text` aligns words, --letters letters"
            ) from None
        raise ValueError(f"{shown} cannot be read as {kind}: {error}") from None
    if found.row_numbers:
        warnings.warn(
            f"the first column of {shown}, increasing whole numbers without a name, is taken for row numbers "
            "that pandas wrote, and left out; to keep it, give it a name",
            stacklevel=3,
        )
    elif header is None and tables.is_numbered(found.names):
        warnings.warn(
            f"the first line of {shown}, '{shortened(found.names)}', is taken for column names that pandas wrote; "
            "if it is an element, pass --no-header (header=False)",
            stacklevel=3,
        )
    return found._replace(values=as_sequence(found.values, shown, holes=holes, or_else=or_else))


def file_of(place: str | os.PathLike[str]) -> str:
    """The file that `read` opens: "file.npz" for "file.npz:name"."""
    return _split(os.fspath(place))[0]


def content_of(place: str, holding: str) -> tuple[bytes, str]:
    """Read the bytes of a file, of a pipe or, for "-", of standard input. Also return its name for error messages.

    holding : what the file should contain, for the error message if it is a folder.
    """
    if place == "-":
        if sys.stdin is None:
            raise ValueError("standard input is closed; give a file instead of '-'")
        return sys.stdin.buffer.read(), "standard input"
    path = Path(place)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {place}")
    if path.is_dir():
        raise ValueError(f"{place} is a folder; give a file with {holding}")
    return path.read_bytes(), place


def sequences(place: str | os.PathLike[str]) -> list[str]:
    """List the sequences in a folder and its subfolders, or the arrays of an .npz file, as names for `read`.

    Raises ValueError if there are none.
    """
    path = Path(place)
    if path.is_dir():
        found = sorted(str(p) for p in path.rglob("*") if p.suffix.lower() in READERS and p.is_file())
        if not found:
            raise ValueError(f"{path} contains no sequences; give a folder with files that end in {', '.join(READERS)}")
        return found
    if path.suffix.lower() == ".npz":
        content, _ = content_of(os.fspath(place), "sequences")
        try:
            return [f"{path}:{name}" for name in arrays.npz_names(content)]
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as .npz: {error}") from None
    raise ValueError(f"{path} is neither a folder nor an .npz file; give a folder with one sequence per file")


def write(place: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file atomically, or write to standard output for "-"."""
    if os.fspath(place) != "-":
        atomic.write(place, content)
        return
    data = content.encode() if isinstance(content, str) else content
    out = getattr(sys.stdout, "buffer", None)
    if out is None:
        sys.stdout.write(data.decode())
    else:
        sys.stdout.flush()
        out.write(data)
        out.flush()


def alignment_content(a: Alignment, kind: str, *, costs: bool | None = None) -> bytes | str:
    """Convert an alignment to the content of a file.

    kind : ".json" (`Alignment.from_dict` reads it), ".csv" (a row for each match and each drop), or ".npz".
    costs : whether to include match and drop costs (.json and .npz). None includes them in .npz, up to `MANY_CELLS`.

    Raises ValueError if the kind is unknown.
    """
    if kind not in WRITERS:
        raise ValueError(f"alignments are written as {', '.join(WRITERS)}, not {kind!r}; change the file extension")
    return WRITERS[kind](a, costs)


def _split(name: str) -> tuple[str, str, str]:
    head, mark, member = name.rpartition(".npz:")
    return (f"{head}.npz", mark, member) if mark else (name, "", "")


def _is_stream(path: Path) -> bool:
    """Whether this is standard input or a pipe, whose name does not tell its format."""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def _sniff(content: bytes) -> str:
    """Detect the format of a stream from its first bytes."""
    for start, kind in ((arrays.MAGIC, ".npy"), (b"PK", ".npz"), (b"PAR1", ".parquet")):
        if content.startswith(start):
            return kind
    text = content.lstrip()
    if not text.startswith((b"[", b"{")):
        return ".csv"
    try:
        whole = jsons.loads(text, parse_int=float)
    except ValueError:
        return ".jsonl"
    return ".json" if isinstance(whole, list) and whole and isinstance(whole[0], list | dict) else ".jsonl"


class _File(NamedTuple):
    """The bytes to read, and how. Fields after `shown` matter only to some formats."""

    content: bytes
    shown: str
    member: str
    header: bool | None
    time: str | None
    needed: bool

    def table(self) -> Table:
        """Read the content as a table."""
        return tables.read(texts.decoded(self.content, self.shown), self.header, self.time, self.needed)


def _npz(content: bytes, member: str) -> Array:
    names = arrays.npz_names(content)
    if member and member not in names:
        raise ValueError(f"it has no array {member!r}; its arrays are {', '.join(names)}")
    if not member and len(names) != 1:
        raise ValueError(f"it holds {len(names)} arrays ({', '.join(names)}); name one: file.npz:name")
    return arrays.npz(content, member or names[0])


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig")


def _rows(values: Iterable[tuple[str, Any]]) -> Array:
    keys: list[str] | None = None
    out = []
    for where, value in values:
        if isinstance(value, dict):
            keys = list(value) if keys is None else keys
            if set(value) != set(keys):
                raise ValueError(f"{where} has the keys {', '.join(value)}, the first one {', '.join(keys)}")
            value = [value[key] for key in keys]
            if len(value) == 1 and isinstance(value[0], list):
                value = value[0]
        out.append(numbers(value if isinstance(value, list) else [value], where))
    return rectangle(out)


def _json(content: bytes) -> Array:
    whole = jsons.loads(_text(content), parse_int=float)
    if not isinstance(whole, list):
        raise ValueError("it is not a list of rows")
    return _rows((f"row {k}", row) for k, row in enumerate(whole, 1))


def _json_lines(content: bytes) -> Array:
    def parsed() -> Iterator[tuple[str, Any]]:
        for n, line in enumerate(_text(content).splitlines(), 1):
            if line.strip():
                try:
                    yield f"line {n}", jsons.loads(line, parse_int=float)
                except ValueError as error:
                    raise ValueError(f"line {n} is not JSON ({error})") from None

    return _rows(parsed())


def _parquet(content: bytes) -> Array:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError("parquet files need pyarrow: pip install 'dropdtw[parquet]'") from None
    try:
        table = parquet.read_table(arrow.BufferReader(content))
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(str(error)) from None
    columns = [column.to_pylist() for column in table.columns]
    if len(columns) == 1 and columns[0] and isinstance(columns[0][0], list):  # one vector to a row
        return _rows((f"row {k}", row) for k, row in enumerate(columns[0], 1))
    return _rows((f"row {k}", list(row)) for k, row in enumerate(zip(*columns, strict=True), 1))


READERS: Final[dict[str, Callable[[_File], Table]]] = {
    ".npy": lambda file: Table(arrays.npy(file.content)),
    ".npz": lambda file: Table(_npz(file.content, file.member)),
    **dict.fromkeys(tables.ENDS, _File.table),
    ".parquet": lambda file: Table(_parquet(file.content)),
    ".jsonl": lambda file: Table(_json_lines(file.content)),
    ".ndjson": lambda file: Table(_json_lines(file.content)),
    ".json": lambda file: Table(_json(file.content)),
}
"""Functions that read a sequence, by file name extension."""


def _as_json(a: Alignment, costs: bool | None) -> str:
    return a.to_json(costs=bool(costs))


def _as_csv(a: Alignment, costs: bool | None) -> str:
    return a.to_csv()


def _as_npz(a: Alignment, costs: bool | None) -> bytes:
    held: dict[str, Any] = {
        "cost": a.cost,
        "pairs": a.pairs,
        "labels": a.labels,
        "dropped_x": a.dropped_x,
        "dropped_z": a.dropped_z,
        "segments": np.array(a.segments(), np.int64).reshape(-1, 3),
        "shape": np.array(a.shape),
        "method": a.method,
    }
    for side, clock in a.clocks._asdict().items() if a.clocks else ():
        if clock is not None:
            held[f"times_{side}"] = np.stack([clock.begin, clock.end], axis=1)
    if a.shape[0] * a.shape[1] <= MANY_CELLS if costs is None else costs:
        given = a.solved().given
        held |= {"C": given.matrix, "drop_x": given.drop_x, "drop_z": given.drop_z}
        if any(given.charges):
            held |= given.charges._asdict()
    out = io.BytesIO()
    np.savez_compressed(out, **held)
    return out.getvalue()


WRITERS: Final[dict[str, Callable[[Alignment, bool | None], bytes | str]]] = {
    ".json": _as_json,
    ".csv": _as_csv,
    ".npz": _as_npz,
}
"""Functions that write an alignment, by file name extension."""
