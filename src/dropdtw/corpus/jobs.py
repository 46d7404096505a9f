"""The work on one shard, for each task. What it gives depends on the files and the settings, not on who does it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import dropdtw
from dropdtw.corpus.dataset import Dataset, Given, features
from dropdtw.corpus.how import How, Reasons
from dropdtw.corpus.records import Bad, Record, together, whole
from dropdtw.corpus.run import parts, rows
from dropdtw.corpus.storage import Storage, arrow, parquet_bytes
from dropdtw.problem.inputs import Array, as_sequence
from dropdtw.search import suggest

TOGETHER: Final = 256
"""Records that are held at a time where they have nothing to do with each other."""

FIELDS: Final = ("step", "start", "stop")
"""What a segment says: frames [start, stop) show this step."""


class Localize:
    """Steps in every record: a shard of the corpus is a shard of the run."""

    name = "localize"

    def __init__(self, data: Dataset, how: How, steps: npt.ArrayLike | None) -> None:
        self.data, self.how = data, how
        self.Z = None if steps is None else as_sequence(steps, "steps")
        self.inputs = (data,)
        self.count = len(data.shards)
        if self.Z is not None:
            _same_width("steps", self.Z.shape[1], data)

    def manifest(self) -> dict[str, Any]:
        """All that the results depend on."""
        mark = None if self.Z is None else hashlib.sha256(self.Z.tobytes()).hexdigest()[:16]
        steps = {"steps": None if self.Z is None else {"shape": self.Z.shape, "dtype": str(self.Z.dtype), "mark": mark}}
        return _described(self.how, corpus=self.data) | steps

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """Align the records of a shard."""
        good: list[tuple[str, float, list[dict[str, int]]]] = []
        bad: list[Bad] = []
        with ThreadPoolExecutor(threads) as pool:
            for some in together(self.data.read(number, steps=self.Z is None), TOGETHER):
                for record, found in zip(some, self._found(some, pool), strict=True):
                    if isinstance(record, Bad):
                        bad.append(record)
                    elif isinstance(found, ValueError):
                        bad.append(_because(record, found))
                    else:
                        cost, segments = found
                        good.append((record.id, cost, [dict(zip(FIELDS, s, strict=True)) for s in segments]))
        pa = arrow()
        step = pa.struct([(name, pa.int32()) for name in FIELDS])
        ids, costs, segments = zip(*good, strict=True) if good else ((), (), ())
        columns = [pa.array(ids, pa.string()), pa.array(costs, pa.float64()), pa.array(segments, pa.list_(step))]
        return pa.table(columns, names=["id", "cost", "segments"]), bad

    def _found(self, some: list[Record | Bad], pool: ThreadPoolExecutor) -> Iterator[Any]:
        """For each record its cost and segments, or the error that it meets; for a bad one anything."""
        if self.how.device == "cpu":
            return pool.map(self._one, some)
        from dropdtw.corpus import gpu

        results = list(pool.map(self._problem, some))
        fine = [(k, r) for k, r in enumerate(some) if isinstance(r, Record) and not isinstance(results[k], ValueError)]
        Zs, prices = [results[k][0] for k, _ in fine], [results[k][1] for k, _ in fine]
        drop_x = prices if self.how.drop_x == "suggest" else None
        for (k, _), found in zip(fine, gpu.align(Zs, [r.X for _, r in fine], self.how, drop_x), strict=True):
            results[k] = found if np.isfinite(found[0]) else ValueError("every alignment is forbidden")
        return iter(results)

    def _one(self, record: Record | Bad) -> Any:
        problem = self._problem(record)
        if isinstance(problem, ValueError) or isinstance(record, Bad):
            return problem
        Z, drop_x = problem
        try:
            a = dropdtw.align(Z, record.X, **self.how.options() | {"drop_x": drop_x})
        except ValueError as error:
            return error
        return a.cost, a.segments()

    def _problem(self, record: Record | Bad) -> Any:
        """The steps and the drop cost of a record, or what is wrong with them."""
        if isinstance(record, Bad):
            return ValueError(record.reason)
        Z, o = record.steps if self.Z is None else self.Z, self.how
        if Z is None:
            return ValueError("it has no steps, and none were given for all records")
        if Z.shape[1] != record.X.shape[1]:
            return ValueError(f"it has {record.X.shape[1]} features, and the steps have {Z.shape[1]}")
        if o.drop_x != "suggest":
            return Z, o.drop_x
        try:
            return Z, suggest.constant(Z, record.X, match=o.match, window=o.window)
        except ValueError as error:
            return error

    def finish(self, out: Storage) -> int:
        """Nothing is left to do but to count."""
        return rows(out, self)


class Pairwise:
    """All pairs: a shard of the run is a shard of each corpus."""

    name = "pairwise"

    def __init__(self, left: Dataset, right: Dataset, how: How) -> None:
        self.left, self.right, self.how = left, right, how
        self.inputs = (left, right)
        self.count = len(left.shards) * len(right.shards)
        self.features = features(left)
        _same_width(left.name, self.features, right)

    def manifest(self) -> dict[str, Any]:
        """All that the results depend on."""
        return _described(self.how, left=self.left, right=self.right)

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """The values of two shards. A bad record is reported once, not with every shard of the other corpus."""
        a, b = divmod(number, len(self.right.shards))
        left, bad_left = _good(self.left, a, self.features)
        right, bad_right = _good(self.right, b, self.features)
        bad = [*(bad_left if b == 0 else []), *(bad_right if a == 0 else [])]
        values, reasons = _values(self.how, left, right, threads)
        bad += [_because(left[i], f"with {right[j].id!r}: {why}") for (i, j), why in reasons.items()]
        pa = arrow()
        keep = ~np.isnan(values.ravel())
        z = pa.array([r.id for r in left for _ in right], pa.string())
        x = pa.array([r.id for _ in left for r in right], pa.string())
        table = pa.table([z, x, pa.array(values.ravel())], names=["z", "x", "cost"])
        return table.filter(pa.array(keep)), bad

    def finish(self, out: Storage) -> int:
        """Nothing is left to do but to count."""
        return rows(out, self)


class Retrieve:
    """The nearest records: a shard of the corpus is a shard of the run, and gives the nearest of its own."""

    name = "retrieve"

    def __init__(self, queries: Dataset | Given, corpus: Dataset, how: How, k: int) -> None:
        if not whole(k):
            raise ValueError(f"k is {k!r}; give how many records to find for each query, 1 or more")
        self.queries, self.corpus, self.how, self.k = queries, corpus, how, int(k)
        self.inputs = (queries, corpus)
        self.count = len(corpus.shards)
        self.features = features(queries)
        _same_width(queries.name, self.features, corpus)

    def manifest(self) -> dict[str, Any]:
        """All that the results depend on."""
        return _described(self.how, queries=self.queries, corpus=self.corpus) | {"k": self.k}

    @cached_property
    def _asked(self) -> tuple[list[Record], list[Bad]]:
        """All queries, read once by each worker."""
        good: list[Record] = []
        bad: list[Bad] = []
        for number in range(len(self.queries.shards)):
            some, others = _good(self.queries, number, self.features)
            good, bad = good + some, bad + others
        return good, bad

    def do(self, number: int, threads: int) -> tuple[Any, list[Bad]]:
        """The nearest records of a shard, for each query."""
        queries, bad_queries = self._asked
        records, bad = _good(self.corpus, number, self.features)
        bad = [*(bad_queries if number == 0 else []), *bad]
        corpus = dropdtw.Corpus([r.X for r in records]) if records and self.how.prunable else None
        found: list[tuple[int, str, int, float]] = []
        for q, query in enumerate(queries if records else []):
            best, costs, reasons = self._nearest(query, records, corpus, threads)
            bad += [_because(records[i], f"with the query {query.id!r}: {why}") for i, why in reasons.items()]
            near = zip(best.tolist(), costs.tolist(), strict=True)
            found += [(q, records[i].id, len(records[i].X), cost) for i, cost in near if cost < np.inf]
        pa = arrow()
        columns = list(zip(*found, strict=True)) if found else [(), (), (), ()]
        kinds = [("query", pa.int32()), ("id", pa.string()), ("length", pa.int64()), ("cost", pa.float64())]
        return pa.table({name: pa.array(c, kind) for (name, kind), c in zip(kinds, columns, strict=True)}), bad

    def _nearest(
        self, query: Record, records: list[Record], corpus: dropdtw.Corpus | None, threads: int
    ) -> tuple[Array, Array, dict[int, str]]:
        """Places and costs of the nearest records, best first, and why others could not be aligned."""
        if corpus is not None and all(self.how.fits(query.X, r.X) for r in records):
            found = dropdtw.nearest(query.X, corpus, self.k, **self.how.options(), n_jobs=threads, progress=False)
            return found.indices, found.costs, {}
        values, reasons = _values(self.how, [query], records, threads)
        best = np.argsort(values[0], kind="stable")[: self.k]  # NaN is last
        return best, values[0, best], {j: why for (_, j), why in reasons.items()}

    def finish(self, out: Storage) -> int:
        """The nearest of all shards, into nearest.parquet."""
        pa = arrow()
        kept: Any = None
        for part in parts(out, self):
            both = part if kept is None else pa.concat_tables([kept, part])
            order = np.lexsort((both["cost"].to_numpy(), both["query"].to_numpy()))  # stable: the first shard first
            rank = _rank(both["query"].to_numpy()[order])
            kept = both.take(pa.array(order[rank <= self.k]))
        query = kept["query"].to_numpy()
        names = np.array([r.id for r in self._asked[0]], object)
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
        out.write("nearest.parquet", parquet_bytes(table))
        return len(table)


def _rank(sorted_groups: Array) -> Array:
    """1, 2, … within each run of equal numbers.

    >>> _rank(np.array([0, 0, 0, 4, 4]))
    array([1, 2, 3, 1, 2])
    """
    n = np.arange(len(sorted_groups))
    new = np.r_[True, np.diff(sorted_groups) != 0][: len(n)]
    return np.asarray(n - np.maximum.accumulate(np.where(new, n, 0)) + 1)


def _values(how: How, left: list[Record], right: list[Record], threads: int) -> tuple[Array, Reasons]:
    if not left or not right:
        return np.empty((len(left), len(right))), {}
    return how.values([r.X for r in left], [r.X for r in right], threads)


def _good(data: Dataset | Given, number: int, width: int) -> tuple[list[Record], list[Bad]]:
    """The records of a shard, and those that do not fit."""
    good: list[Record] = []
    bad: list[Bad] = []
    for record in data.read(number):
        if isinstance(record, Bad):
            bad.append(record)
        elif record.X.shape[1] != width:
            bad.append(_because(record, f"it has {record.X.shape[1]} features, and the others have {width}"))
        else:
            good.append(record)
    return good, bad


def _same_width(name: str, width: int, data: Dataset | Given) -> None:
    """Refuse what would fail on every record."""
    if (found := features(data)) != width:
        raise ValueError(f"{name} has {width} features and {data.name} has {found}; both need the same number")


def _because(record: Record, reason: Exception | str) -> Bad:
    return Bad(record.file, record.row, record.id, str(reason))


def _described(how: How, **inputs: Dataset | Given) -> dict[str, Any]:
    """Settings and inputs, as a manifest has them."""
    found = {name: {"rows": data.rows, "fingerprint": data.fingerprint} for name, data in inputs.items()}
    return {"dropdtw": dropdtw.__version__, "settings": asdict(how), **found}
