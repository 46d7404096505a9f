"""Files by path or by any URL that fsspec knows, written whole or not at all."""

from __future__ import annotations

import copy
import io
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from dropdtw.files import atomic


class Storage:
    """A folder or a file: a local path, or an address such as s3://bucket/corpus."""

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
        """Where a file of the folder is; "" is the folder itself."""
        return f"{self.root}/{name}" if name else self.root

    def above(self) -> Storage:
        """The folder that this is in."""
        folder = copy.copy(self)
        folder.root = self.root.rpartition("/")[0]
        return folder

    def overlaps(self, other: Storage) -> bool:
        """Whether one of both lies in the other."""
        a, b = (f"{os.path.realpath(s.root) if s.local else s.root}/" for s in (self, other))
        return type(self.fs) is type(other.fs) and (a.startswith(b) or b.startswith(a))

    def open(self, name: str) -> BinaryIO:
        """A file, to read."""
        return cast(BinaryIO, self.fs.open(self.path(name), "rb"))

    def read(self, name: str) -> bytes | None:
        """All of a file, None where there is none."""
        try:
            with self.open(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self.fs.exists(self.path(name)))

    def table(self, name: str) -> Any:
        """All of a small Parquet file, as an Arrow table.

        Read as bytes and without threads: Arrow's may still hold a Python file when the interpreter ends, and abort it.
        """
        buffer = arrow().BufferReader(self.read(name) or b"")
        return arrow("pyarrow.parquet").read_table(buffer, use_threads=False)

    def rows(self, name: str) -> int:
        """How many rows a Parquet file has."""
        with self.open(name) as file:
            return int(arrow("pyarrow.parquet").read_metadata(file).num_rows)

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that nobody finds half of it."""
        with self.writing(name) as file:
            file.write(content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one; False: there is. Two who try at a time do not both get True, locally."""
        if not self.local:
            if self.exists(name):
                return False
            self.write(name, content)
            return self.read(name) == content
        place = Path(self.path(name))
        beside = atomic.write(place.with_name(f".{place.name}.{uuid.uuid4().hex}"), content)
        try:
            os.link(beside, place)
        except FileExistsError:
            return False
        finally:
            beside.unlink()
        return True

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A file to write to; it appears at its place, complete, when all is done."""
        place = self.path(name)
        if self.local:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=Path(place).parent if self.local else None, prefix=".", ignore_cleanup_errors=True
        ) as folder:
            beside = Path(folder, "whole")
            with beside.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if self.local:
                os.replace(beside, place)
                return
            far = f"{place}.{uuid.uuid4().hex}.tmp"
            self.fs.makedirs(place.rpartition("/")[0], exist_ok=True)
            self.fs.put_file(str(beside), far)
            self.fs.mv(far, place)

    def names(self, folder: str = "") -> list[str]:
        """The files in a folder and below it, sorted; what is hidden or begins with an underscore is left out."""
        base = self.path(folder)
        self.fs.invalidate_cache()  # others write there, too
        try:
            found = self.fs.find(base)
        except FileNotFoundError:
            return []
        cut = [str(path)[len(base) :].lstrip("/") for path in found]
        return sorted(name for name in cut if not any(part[:1] in "._" for part in name.split("/")))

    def sweep(self, folder: str) -> None:
        """Remove what writers that were killed have left behind."""
        base = self.path(folder)
        for path in map(str, self.fs.find(base)):
            first = path[len(base) :].lstrip("/").partition("/")[0]
            if first.startswith(".") or path.endswith(".tmp"):
                self.fs.rm_file(path)
                if self.local and Path(path).parent != Path(base):
                    Path(path).parent.rmdir()


def parquet_bytes(table: Any) -> bytes:
    """A table as a file; the same table, the same bytes."""
    memory = io.BytesIO()
    arrow("pyarrow.parquet").write_table(table, memory, compression="zstd")
    return memory.getvalue()


def arrow(name: str = "pyarrow") -> Any:
    """A module of pyarrow."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError("corpora need fsspec and pyarrow: pip install 'dropdtw[parquet]'") from None
