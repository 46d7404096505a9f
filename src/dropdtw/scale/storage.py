"""Files by path or by any URL that fsspec knows, written whole or not at all."""

from __future__ import annotations

import copy
import os
import uuid
from importlib import import_module
from typing import Any, BinaryIO, cast

from dropdtw import files


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
        folder.root = self.root.rsplit("/", 1)[0]
        return folder

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

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that nobody finds half of it."""
        if self.local:
            files.write(self.path(name), content)
            return
        place = self.path(name)
        beside = f"{place}.{uuid.uuid4().hex}.tmp"
        self.fs.makedirs(place.rsplit("/", 1)[0], exist_ok=True)
        self.fs.pipe_file(beside, content)
        self.fs.mv(beside, place)

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
        for path in self.fs.find(self.path(folder)):
            name = str(path).rsplit("/", 1)[1]
            if name.startswith(".") or name.endswith(".tmp"):
                self.fs.rm_file(path)


def arrow(name: str = "pyarrow") -> Any:
    """A module of pyarrow."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError("corpora need fsspec and pyarrow: pip install 'dropdtw[parquet]'") from None
