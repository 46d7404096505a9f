"""Files by path or by any fsspec URL, written atomically."""

from __future__ import annotations

import copy
import io
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib import import_module
from typing import Any, BinaryIO, Final, cast

from dropdtw.files import atomic

UNFINISHED: Final = ".tmp"
"""Suffix of incomplete files in remote stores."""


class Storage:
    """A folder or a file: a local path, or a URL such as s3://bucket/corpus."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        try:
            fsspec = import_module("fsspec.core")
        except ImportError:
            raise ImportError("corpora need fsspec and pyarrow: pip install 'dropdtw[parquet]'") from None
        self.url = os.fspath(url)
        self.fs, root = fsspec.url_to_fs(self.url)
        self.root = str(root).rstrip("/")
        self.local = "file" in ((self.fs.protocol,) if isinstance(self.fs.protocol, str) else self.fs.protocol)

    def path(self, name: str) -> str:
        """The full path of a file of the folder; "" is the folder itself."""
        return f"{self.root}/{name}" if name else self.root

    def above(self) -> Storage:
        """The parent folder."""
        folder = copy.copy(self)
        folder.root = self.root.rpartition("/")[0]
        return folder

    def overlaps(self, other: Storage) -> bool:
        """Whether one contains the other."""
        a, b = (f"{os.path.realpath(s.root) if s.local else s.root}/" for s in (self, other))
        return type(self.fs) is type(other.fs) and (a.startswith(b) or b.startswith(a))

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return cast(BinaryIO, self.fs.open(self.path(name), "rb"))

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if it does not exist."""
        try:
            with self.open(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        return bool(self.fs.exists(self.path(name)))

    def table(self, name: str) -> Any:
        """A small Parquet file as an Arrow table.

        It is read as bytes and without threads. Arrow's threads may still hold a Python file when the interpreter
        exits, and abort the process.
        """
        buffer = arrow().BufferReader(self.read(name) or b"")
        return arrow("pyarrow.parquet").read_table(buffer, use_threads=False)

    def rows(self, name: str) -> int:
        """How many rows a Parquet file has."""
        with self.open(name) as file:
            return int(arrow("pyarrow.parquet").read_metadata(file).num_rows)

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically."""
        with self.writing(name) as file:
            file.write(content)

    def create(self, name: str, content: bytes) -> bool:
        """Create a file; False if it exists already. Exclusive, and atomic on local disks."""
        if not self.local:
            if self.exists(name):
                return False
            self.write(name, content)
            return self.read(name) == content
        return atomic.create(self.path(name), content)

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a file for writing; it appears in place, complete, when the block ends."""
        place = self.path(name)
        if self.local:
            with atomic.writing(place) as file:
                yield file
            return
        with tempfile.TemporaryFile() as whole:  # unnamed: a kill leaves nothing behind
            yield cast(BinaryIO, whole)
            whole.seek(0)
            far = f"{place}.{uuid.uuid4().hex}{UNFINISHED}"
            self.fs.makedirs(place.rpartition("/")[0], exist_ok=True)
            try:
                with self.fs.open(far, "wb") as file:
                    shutil.copyfileobj(whole, file, 1 << 22)
                self.fs.mv(far, place)
            except BaseException:
                with suppress(Exception):  # the first error is the one to report
                    self.fs.rm_file(far)
                raise

    def names(self, folder: str = "") -> list[str]:
        """The files in a folder, recursively and sorted, without those that begin with a dot or an underscore."""
        base = self.path(folder)
        self.fs.invalidate_cache()  # other processes write there too
        try:
            found = self.fs.find(base)
        except FileNotFoundError:
            return []
        cut = [str(path)[len(base) :].lstrip("/") for path in found]
        return sorted(name for name in cut if not any(part[:1] in "._" for part in name.split("/")))

    def sweep(self, folder: str) -> None:
        """Remove leftovers of killed writers from a folder; files that are being written stay.

        A remote store cannot tell whether a writer is alive, so there only files older than a day are removed.
        """
        if self.local:
            atomic.sweep(self.path(folder))
            return
        for path in map(str, self.fs.find(self.path(folder), maxdepth=1)):
            if path.endswith(UNFINISHED):
                with suppress(FileNotFoundError, NotImplementedError):  # already removed, or a store without timestamps
                    written = self.fs.modified(path)
                    if (datetime.now(written.tzinfo) - written).total_seconds() > atomic.DAY:
                        self.fs.rm_file(path)


def parquet_bytes(table: Any) -> bytes:
    """A table as the bytes of a Parquet file. Deterministic: equal tables give equal bytes."""
    memory = io.BytesIO()
    arrow("pyarrow.parquet").write_table(table, memory, compression="zstd")
    return memory.getvalue()


def arrow(name: str = "pyarrow") -> Any:
    """Import a module of pyarrow."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError("corpora need fsspec and pyarrow: pip install 'dropdtw[parquet]'") from None
