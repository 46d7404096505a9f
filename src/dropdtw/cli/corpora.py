"""What `--engine` does: the commands `localize` and `retrieve` over corpora in Parquet, see `dropdtw.corpus`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dropdtw.cli import options, screen

if TYPE_CHECKING:
    from dropdtw.corpus import Run
    from dropdtw.corpus.dataset import Dataset
    from dropdtw.problem.inputs import Array

FEW = 3
"""Queries whose nearest are shown; of more, the file tells."""

FROM = 8
"""Records that a drop cost is suggested from."""


def running(engine: str, workers: int | None, num_gpus: float, shard_rows: int, strict: bool) -> dict[str, Any]:
    """How to run, as `dropdtw.corpus` takes it."""
    return {"engine": engine, "workers": workers, "num_gpus": num_gpus, "shard_rows": shard_rows, "strict": strict}


def localize(
    steps: str, corpus: str, out: str | None, match: str, drop_x: str | None, drop_z: str | None, how: dict[str, Any]
) -> None:
    """Steps in every record of a corpus."""
    import dropdtw.corpus
    from dropdtw.files import formats

    Z = None if steps == "own" else formats.read(steps)
    dx = "suggest" if drop_x is None else options.drop_cost(drop_x, "drop-x")
    dz = options.drop_cost(drop_z, "drop-z")
    place = _folder(out)
    _told(dropdtw.corpus.localize(Z, corpus, place, match=match, drop_x=dx, drop_z=dz, **how), f"{place}/parts")  # type: ignore[arg-type]


def retrieve(
    query: str,
    corpus: str,
    out: str | None,
    top: int,
    drop_x: str | None,
    drop_z: str | None,
    how: dict[str, Any],
    running: dict[str, Any],
) -> None:
    """The nearest records of a corpus, for one query or many."""
    import dropdtw.corpus
    from dropdtw.corpus.dataset import dataset
    from dropdtw.corpus.storage import Storage

    place = _folder(out)
    asked, first = _queries(query)
    how = how | {"window": options.window_width(how["window"])}
    how["threshold"] = options.drop_cost(how["threshold"], "threshold")
    dx, dz = options.drop_cost(drop_x, "drop-x"), options.drop_cost(drop_z, "drop-z")
    if options.takes_a_suggestion(drop_x, drop_z, how["method"]):
        dx = dz = "suggest"
    if "suggest" in [d for d in (dx, dz) if isinstance(d, str)]:
        moves = {name: how[name] for name in how if name not in ("method", "threshold")}
        data = dataset(corpus, running["shard_rows"])
        constant = options.suggested(first, _some(data, first.shape[1]), data.rows, moves)
        dx, dz = (constant if isinstance(d, str) and d == "suggest" else d for d in (dx, dz))
    run = dropdtw.corpus.retrieve(asked, corpus, place, top, drop_x=dx, drop_z=dz, **how, **running)  # type: ignore[arg-type]
    rows = Storage(place).table("nearest.parquet").slice(0, FEW * top).to_pylist()
    shown = [[r["query"], str(r["rank"]), f"{r['cost']:.6g}", str(r["length"]), r["id"]] for r in rows]
    screen.table(["query", ">#", ">cost", ">length", "id"], shown)
    _told(run, f"{place}/nearest.parquet")


def _some(data: Dataset, width: int) -> list[Array]:
    """A few good sequences from all over a corpus."""
    from dropdtw.corpus.records import Record

    shards = sorted({round(k * (len(data.shards) - 1) / (FROM - 1)) for k in range(FROM)})
    each = -(-FROM // len(shards))
    fitting = (
        [r.X for r in islice(data.read(number), 10 * each) if isinstance(r, Record) and r.X.shape[1] == width][:each]
        for number in shards
    )
    return [X for some in fitting for X in some][:FROM]


def _queries(query: str) -> tuple[Any, Array]:
    """What `dropdtw.corpus.retrieve` takes, and the first sequence of it."""
    from dropdtw.corpus.dataset import dataset
    from dropdtw.corpus.records import Record
    from dropdtw.files import formats

    if "://" not in query and not query.endswith(".parquet") and not Path(query).is_dir():
        Z = formats.read(query)
        return [(query, Z)], Z
    for record in dataset(query, 1).read(0):
        if isinstance(record, Record):
            return query, record.X
    raise ValueError(f"{query} begins with records that cannot be used; mend or remove them")


def _folder(out: str | None) -> str:
    if out is None or out == "-":
        raise ValueError("--engine needs --out FOLDER: results are written there as they come, and a run resumes there")
    return out


def _told(run: Run, where: str) -> None:
    if run.errors and not run.rows:
        raise ValueError(f"no record could be used; the reasons are in {run.out}/errors.jsonl")
    print(f"{run.rows} results in {where} ({run.done} of {run.shards} shards done now)")
    if run.errors:
        screen.note(f"bad records left out: {run.errors}; the reasons are in {run.out}/errors.jsonl")
