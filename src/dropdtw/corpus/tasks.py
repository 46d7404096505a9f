"""The tasks on one shard of a corpus: find steps in records, compute the values of pairs, find the nearest records.

The results of a shard depend only on the files and the settings, not on which worker computes them or when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

import dropdtw
from dropdtw.corpus import compute
from dropdtw.corpus.compute import Found, Reasons
from dropdtw.corpus.folder import RunFolder
from dropdtw.corpus.records import Bad, Record, as_values, content, together, whole
from dropdtw.corpus.shards import Corpus, GivenRecords, content_of
from dropdtw.corpus.storage import arrow, parquet_bytes
from dropdtw.problem.clock import Clock
from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array
from dropdtw.problem.spec import Spec
from dropdtw.results.alignment import Segment
from dropdtw.search.index import Index
from dropdtw.search.nearest import search

TOGETHER: Final = 256
"""Number of independent records that are held in memory at a time."""

FIELDS: Final = ("step", "start", "stop")
"""The fields of a segment: frames [start, stop) show this step."""

TIMED: Final = ("start_time", "stop_time")
"""More fields, if the frames have times."""


class Task(Protocol):
    """A task on a corpus. It is sent to the workers, so it must be small."""

    name: str

    count: int
    """The number of shards."""

    @property
    def inputs(self) -> tuple[Corpus | GivenRecords, ...]:
        """The corpora that the task reads."""

    def manifest(self) -> dict[str, Any]:
        """Everything that the results depend on, as plain data."""

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """The results of a shard as an Arrow table, and its bad records. A pure function of the number."""

    def finish(self, folder: RunFolder) -> int:
        """Finish after all shards are done; returns the number of results."""


class Localize:
    """Find steps in every record; each shard of the corpus is a shard of the run."""

    name = "localize"

    def __init__(
        self, steps: npt.ArrayLike | None, data: Corpus, spec: Spec, device: str, fps: float | None = None
    ) -> None:
        self.data, self.spec, self.device, self.fps = data, spec, device, fps
        self.Z = None if steps is None else as_values(steps, "steps")
        self.inputs = (data,)
        self.count = len(data.shards)
        if fps is not None:
            Clock.at_rate(fps, 1)  # raise errors now
            if data.times is not None:
                raise OptionError("fps", fps, "leave it out", ", but the records have times")
        _check_content("steps", content_of(data) if self.Z is None else content(self.Z), data, device)

    def manifest(self) -> dict[str, Any]:
        """Everything that the results depend on."""
        mark = None if self.Z is None else hashlib.sha256(self.Z.tobytes()).hexdigest()[:16]
        steps = {"steps": None if self.Z is None else {"shape": self.Z.shape, "dtype": str(self.Z.dtype), "mark": mark}}
        rate = {} if self.fps is None else {"fps": float(self.fps)}
        return _described(self.spec, self.device, corpus=self.data) | steps | rate

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """Align the records of a shard."""
        good: list[tuple[str, float, list[dict[str, Any]]]] = []
        bad: list[Bad] = []
        with ThreadPoolExecutor(threads) as pool:
            for some in together(self.data.read(number, steps=self.Z is None, times=True), TOGETHER):
                for record, found in self._found(some, pool):
                    if isinstance(record, Bad):
                        bad.append(record)
                    elif isinstance(found, ValueError):
                        bad.append(_because(record, found))
                    else:
                        cost, where = found
                        clock = record.clock if self.fps is None else Clock.at_rate(self.fps, len(record.X))
                        good.append((record.id, cost, [_row(segment, clock) for segment in where]))
        pa = arrow()
        kind = self.data.times if self.fps is None else pa.float64()
        fields = [(name, pa.int32()) for name in FIELDS]
        step = pa.struct(fields if kind is None else [*fields, *((name, kind) for name in TIMED)])
        ids, costs, segments = zip(*good, strict=True) if good else ((), (), ())
        columns = [pa.array(ids, pa.string()), pa.array(costs, pa.float64()), pa.array(segments, pa.list_(step))]
        return pa.table(columns, names=["id", "cost", "segments"]), bad

    def _found(self, some: list[Record | Bad], pool: Executor) -> Iterator[tuple[Record | Bad, Found]]:
        """Each record with its cost and segments, or with its error."""
        steps = [self._steps(record) for record in some]
        fine = [
            (Z, r.X) for Z, r in zip(steps, some, strict=True) if isinstance(r, Record) and isinstance(Z, np.ndarray)
        ]
        Zs, Xs = [Z for Z, _ in fine], [X for _, X in fine]
        found = iter(compute.alignments(self.spec, self.device, Zs, Xs, pool))
        for record, Z in zip(some, steps, strict=True):
            yield record, Z if isinstance(Z, ValueError) else next(found)

    def _steps(self, record: Record | Bad) -> Array | ValueError:
        """The steps to find in a record, or why they are unusable."""
        if isinstance(record, Bad):
            return ValueError(record.reason)
        Z = record.steps if self.Z is None else self.Z
        if Z is None:
            return ValueError("it has no steps, and the call gives none; add a steps column, or pass steps")
        if content(Z) != content(record.X):
            return ValueError(f"it has {content(record.X)}, but the steps have {content(Z)}")
        return Z

    def finish(self, folder: RunFolder) -> int:
        """Count the results."""
        return folder.rows(self.count)


class Pairwise:
    """Compute all pairs; a shard of the run is a pair of shards, one from each corpus."""

    name = "pairwise"

    def __init__(self, left: Corpus, right: Corpus, spec: Spec, device: str) -> None:
        self.left, self.right, self.spec, self.device = left, right, spec, device
        self.inputs = (left, right)
        self.count = len(left.shards) * len(right.shards)
        self.content = content_of(left)
        _check_content(left.name, self.content, right, device)

    def manifest(self) -> dict[str, Any]:
        """Everything that the results depend on."""
        return _described(self.spec, self.device, left=self.left, right=self.right)

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """The values of a pair of shards. A bad record is reported once, not for every shard of the other corpus."""
        a, b = divmod(number, len(self.right.shards))
        left, bad_left = _good(self.left, a, self.content)
        right, bad_right = _good(self.right, b, self.content)
        bad = [*(bad_left if b == 0 else []), *(bad_right if a == 0 else [])]
        values, reasons = _values(self, left, right, threads)
        bad += [_because(left[i], f"with {right[j].id!r}: {why}") for (i, j), why in reasons.items()]
        pa = arrow()
        keep = ~np.isnan(values.ravel())
        z = pa.array([r.id for r in left for _ in right], pa.string())
        x = pa.array([r.id for _ in left for r in right], pa.string())
        table = pa.table([z, x, pa.array(values.ravel())], names=["z", "x", "cost"])
        return table.filter(pa.array(keep)), bad

    def finish(self, folder: RunFolder) -> int:
        """Count the results."""
        return folder.rows(self.count)


class Retrieve:
    """Find the nearest records; each shard of the corpus is a shard of the run and yields its own nearest records."""

    name = "retrieve"

    def __init__(self, queries: Corpus | GivenRecords, corpus: Corpus, spec: Spec, device: str, k: int) -> None:
        if not whole(k):
            raise ValueError(f"k is {k!r}; give the number of records to find for each query, 1 or more")
        self.queries, self.corpus, self.k = queries, corpus, int(k)
        self.spec, self.device = spec, device
        self.inputs = (queries, corpus)
        self.count = len(corpus.shards)
        self.content = content_of(queries)
        _check_content(queries.name, self.content, corpus, device)

    def manifest(self) -> dict[str, Any]:
        """Everything that the results depend on."""
        return _described(self.spec, self.device, queries=self.queries, corpus=self.corpus) | {"k": self.k}

    @cached_property
    def _loaded(self) -> tuple[list[Record], list[Bad]]:
        """All queries, good and bad, read once per worker."""
        good: list[Record] = []
        bad: list[Bad] = []
        for number in range(len(self.queries.shards)):
            some, others = _good(self.queries, number, self.content)
            good, bad = good + some, bad + others
        return good, bad

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """The nearest records of a shard, for each query."""
        queries, bad_queries = self._loaded
        records, bad = _good(self.corpus, number, self.content)
        bad = [*(bad_queries if number == 0 else []), *bad]
        index = Index.borrowing([r.X for r in records]) if records and self._prunable else None
        found: list[tuple[int, str, int, float]] = []
        for q, query in enumerate(queries if records else []):
            best, costs, reasons = self._nearest(query, records, index, threads)
            bad += [_because(records[i], f"with the query {query.id!r}: {why}") for i, why in reasons.items()]
            near = zip(best.tolist(), costs.tolist(), strict=True)
            found += [(q, records[i].id, len(records[i].X), cost) for i, cost in near if cost < np.inf]
        pa = arrow()
        columns = list(zip(*found, strict=True)) if found else [(), (), (), ()]
        kinds = [("query", pa.int32()), ("id", pa.string()), ("length", pa.int64()), ("cost", pa.float64())]
        return pa.table({name: pa.array(c, kind) for (name, kind), c in zip(kinds, columns, strict=True)}), bad

    @property
    def _prunable(self) -> bool:
        """Whether lower bounds can prune records: on the CPU, with drop costs that do not depend on match costs."""
        return self.device == "cpu" and not self.spec.needs_costs and self.content != "symbols"

    def _nearest(
        self, query: Record, records: list[Record], index: Index | None, threads: int
    ) -> tuple[Array, Array, dict[int, str]]:
        """The indices and costs of the nearest records, best first, and why others could not be aligned."""
        if index is not None and all(self.spec.fits(len(query.X), len(r.X)) for r in records):
            found = search(self.spec, query.X, index, self.k, threads, progress=False)
            return found.indices, found.costs, {}
        values, reasons = _values(self, [query], records, threads)
        best = np.argsort(values[0], kind="stable")[: self.k]  # NaN sorts last
        return best, values[0, best], {j: why for (_, j), why in reasons.items()}

    def finish(self, folder: RunFolder) -> int:
        """Merge the nearest records of all shards into nearest.parquet."""
        pa = arrow()
        kept: Any = None
        for part in folder.parts(self.count):
            both = part if kept is None else pa.concat_tables([kept, part])
            order = np.lexsort((both["cost"].to_numpy(), both["query"].to_numpy()))  # stable: earlier shards win ties
            rank = _rank(both["query"].to_numpy()[order])
            kept = both.take(pa.array(order[rank <= self.k]))
        query = kept["query"].to_numpy()
        names = np.array([r.id for r in self._loaded[0]], object)
        table = pa.table(
            [
                pa.array(names[query] if len(query) else [], pa.string()),
                pa.array(_rank(query), pa.int32()),
                kept["id"],
                kept["length"],
                kept["cost"],
            ],
            names=["query", "rank", "id", "length", "cost"],
        )
        folder.storage.write("nearest.parquet", parquet_bytes(table))
        return len(table)


def _rank(sorted_groups: Array) -> Array:
    """1, 2, … within each run of equal numbers.

    >>> _rank(np.array([0, 0, 0, 4, 4]))
    array([1, 2, 3, 1, 2])
    """
    n = np.arange(len(sorted_groups))
    new = np.r_[True, np.diff(sorted_groups) != 0][: len(n)]
    return np.asarray(n - np.maximum.accumulate(np.where(new, n, 0)) + 1)


def _values(task: Pairwise | Retrieve, left: list[Record], right: list[Record], threads: int) -> tuple[Array, Reasons]:
    if not left or not right:
        return np.empty((len(left), len(right))), {}
    return compute.values(task.spec, task.device, [r.X for r in left], [r.X for r in right], threads)


def _good(data: Corpus | GivenRecords, number: int, wanted: str) -> tuple[list[Record], list[Bad]]:
    """The good records of a shard, and the bad ones. wanted : what the others hold."""
    good: list[Record] = []
    bad: list[Bad] = []
    for record in data.read(number):
        if isinstance(record, Bad):
            bad.append(record)
        elif (found := content(record.X)) != wanted:
            bad.append(_because(record, f"it has {found}, but the others have {wanted}"))
        else:
            good.append(record)
    return good, bad


def _check_content(name: str, held: str, data: Corpus | GivenRecords, device: str) -> None:
    """Refuse what would fail on every record."""
    if (found := content_of(data)) != held:
        raise ValueError(f"{name} has {held} and {data.name} has {found}; both need the same")
    if held == "symbols" and device != "cpu":
        raise ValueError(f"{data.name} has symbols, which are aligned on the CPU; leave num_gpus at 0")


def _row(segment: Segment, clock: Clock | None) -> dict[str, Any]:
    """A segment as the fields of a result, with its times if there are any."""
    found: dict[str, Any] = dict(zip(FIELDS, segment, strict=True))
    if clock is None:
        return found
    times = clock.begin[segment.start], clock.end[segment.stop - 1]
    return found | {
        name: float(time) if time.dtype.kind == "f" else int(time.astype(np.int64))  # Arrow knows the unit
        for name, time in zip(TIMED, times, strict=True)
    }


def _because(record: Record, reason: Exception | str) -> Bad:
    return Bad(record.file, record.row, record.id, str(reason))


def _described(spec: Spec, device: str, **inputs: Corpus | GivenRecords) -> dict[str, Any]:
    """Settings and inputs for the manifest."""
    found = {name: {"rows": data.rows, "fingerprint": data.fingerprint} for name, data in inputs.items()}
    return {"dropdtw": dropdtw.__version__, "settings": spec.settings() | {"device": device}, **found}
