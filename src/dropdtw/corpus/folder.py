"""The folder of a run. A part file appears atomically, after its errors; it alone marks a shard as done.

out/manifest.json       the settings and inputs, written first; a different run is refused in the same folder
out/parts/00000.parquet the results of a shard; exists only when the shard is done
out/errors/00000.jsonl  its bad records, if there are any
out/errors.jsonl        all bad records, written at the end
out/summary.json        counts, written last
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from dropdtw.corpus.records import Bad
from dropdtw.corpus.storage import Storage, parquet_bytes


class RunFolder:
    """The files that a run has written so far, by shard number."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.storage = Storage(url)
        self.url = self.storage.url

    def has(self, number: int) -> bool:
        """Whether a shard is done."""
        return self.storage.exists(_part(number))

    def done(self) -> set[int]:
        """The shards that are done."""
        return {int(name.split(".")[0]) for name in self.storage.names("parts") if name.endswith(".parquet")}

    def keep(self, number: int, table: Any, bad: list[Bad]) -> None:
        """Write the results of a shard. Errors come first, so that a part implies that everything is there."""
        if bad:
            self.storage.write(f"errors/{number:05}.jsonl", lines(bad))
        self.storage.write(_part(number), parquet_bytes(table))

    def parts(self, count: int) -> Iterator[Any]:
        """The results of shards 0 to count − 1 as Arrow tables, in order."""
        return (self.storage.table(_part(number)) for number in range(count))

    def rows(self, count: int) -> int:
        """How many results shards 0 to count − 1 hold."""
        with ThreadPoolExecutor(16) as pool:  # remote stores are slow, but handle many requests at once
            return sum(pool.map(lambda number: self.storage.rows(_part(number)), range(count)))

    def errors(self) -> Iterator[bytes]:
        """The bad records as lines of JSON, one chunk per shard that has any."""
        for name in self.storage.names("errors"):
            if name.endswith(".jsonl"):
                yield self.storage.read(f"errors/{name}") or b""


def lines(bad: list[Bad]) -> bytes:
    """Bad records as lines of JSON."""
    return "".join(json.dumps(asdict(b), ensure_ascii=False) + "\n" for b in bad).encode()


def _part(number: int) -> str:
    return f"parts/{number:05}.parquet"
