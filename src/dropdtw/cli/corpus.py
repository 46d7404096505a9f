"""`dropdtw corpus …`: align whole corpora in Parquet; see `dropdtw.corpus`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dropdtw.cli import options, screen
from dropdtw.cli.flags import Flags, of_alignment
from dropdtw.cli.panels import panels
from dropdtw.files.sanitize import one_line
from dropdtw.problem.options import MethodOptions

if TYPE_CHECKING:
    from dropdtw.corpus import Run
    from dropdtw.problem.inputs import Array

FEW = 3
"""Number of queries whose results are printed; the output file has all."""

FROM = 8
"""Maximum number of records that a drop cost is suggested from."""

app = typer.Typer(
    help="Align corpora in Parquet, of any size, on this machine or with Ray. Needs: pip install 'dropdtw[parquet]'.",
    no_args_is_help=True,
)

OFTEN = "out drop_x drop_z method engine"

CorpusPlace = Annotated[
    str,
    typer.Argument(metavar="CORPUS", help="A .parquet file or a folder of them: a path or a URL (s3://bucket/x)."),
]
Out = Annotated[
    str,
    typer.Option("--out", "-o", metavar="DIR", help="Folder for the results. To resume a run, repeat its command."),
]
EITHER = {f"drop_{side}": f"Default: suggest; none if --drop-{other} is given." for side, other in ("xz", "zx")}
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray",
        help="local: the cores of this machine. ray: the cluster at RAY_ADDRESS, or else one started here.",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Shards processed at a time. Default: one per core.")]
NumGpus = Annotated[float, typer.Option(min=0, help="GPUs per worker. Above 0, alignments are computed on GPUs.")]
ShardRows = Annotated[int, typer.Option(min=1, help="Records per shard. After a failure, whole shards are repeated.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad record instead of skipping it.")]


@app.command(
    cls=panels(OFTEN), epilog="Example: dropdtw corpus localize steps.npy s3://bucket/talks --engine ray --out found"
)
@of_alignment(
    MethodOptions,
    drop_x="Default: suggest, for each record.",
    drop_z="Default: none.",
    many_to_one=False,
    contiguous=True,
)
def localize(
    steps: Annotated[
        str, typer.Argument(metavar="STEPS", help="A file of step features, (K, d); or 'own': each record's own steps.")
    ],
    corpus: CorpusPlace,
    out: Out,
    *,
    flags: Flags,
    header: options.Header = None,
    fps: Annotated[
        float | None, typer.Option(help="Frames per second, if the records have no times: segments then have times.")
    ] = None,
    engine: Engine = "local",
    workers: Workers = None,
    num_gpus: NumGpus = 0,
    shard_rows: ShardRows = 1000,
    strict: Strict = False,
) -> None:
    """Find steps in every record of a corpus.

    By default, a frame shows at most one step, the frames of a step are consecutive, and each record gets its own drop
    cost (--drop-x suggest).
    """
    import dropdtw.corpus
    from dropdtw.files import formats

    place = _folder(out)
    Z = None if steps == "own" else formats.read(steps, header=header)
    how = flags.parsed()
    if flags.given["drop_x"] is None:  # the library suggests it, if the method has drops
        del how["drop_x"]
    running = _running(engine, workers, num_gpus, shard_rows, strict)
    _show(dropdtw.corpus.localize(Z, corpus, place, fps=fps, **how, **running), f"{place}/parts")


@app.command(
    cls=panels(f"{OFTEN} top"),
    epilog="Example: dropdtw corpus retrieve query.npy talks/ --out near --top 10 --drop-x 0.3 --drop-z 0.3",
)
@of_alignment(MethodOptions, **EITHER)
def retrieve(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="The sequence to look for (Z), in a file; or a corpus of queries, in Parquet."
        ),
    ],
    corpus: CorpusPlace,
    out: Out,
    top: Annotated[int, typer.Option(min=1, help="Number of records to find per query.")] = 10,
    *,
    flags: Flags,
    header: options.Header = None,
    engine: Engine = "local",
    workers: Workers = None,
    num_gpus: NumGpus = 0,
    shard_rows: ShardRows = 1000,
    strict: Strict = False,
) -> None:
    """Find the records of a corpus that are cheapest to align with a query, or with each of many queries.

    Without --drop-x and --drop-z, one drop cost is suggested from a few records and used for all of them, so that
    their costs can be compared.
    """
    import dropdtw.corpus
    from dropdtw.corpus.storage import Storage

    place = _folder(out)
    asked, first = _queries(query, header)
    how = flags.priced(lambda: _sample(first(), corpus))
    running = _running(engine, workers, num_gpus, shard_rows, strict)
    run = dropdtw.corpus.retrieve(asked, corpus, place, top, **how, **running)
    rows = Storage(place).table("nearest.parquet").slice(0, FEW * top).to_pylist()
    shown = [[r["query"], str(r["rank"]), f"{r['cost']:.6g}", str(r["length"]), r["id"]] for r in rows]
    screen.table(["query", ">#", ">cost", ">length", "id"], shown)
    _show(run, f"{place}/nearest.parquet")


@app.command(
    cls=panels(OFTEN), epilog="Example: dropdtw corpus pairwise left/ right/ --out pairs --drop-x 0.3 --drop-z 0.3"
)
@of_alignment(MethodOptions, **EITHER)
def pairwise(
    left: Annotated[str, typer.Argument(metavar="LEFT", help="A corpus; its records are the Z.")],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="A corpus; its records are the X.")],
    out: Out,
    *,
    flags: Flags,
    engine: Engine = "local",
    workers: Workers = None,
    num_gpus: NumGpus = 0,
    shard_rows: ShardRows = 1000,
    strict: Strict = False,
) -> None:
    """Compute the cost of aligning every record of one corpus with every record of another.

    Without --drop-x and --drop-z, one drop cost is suggested from a few pairs and used for all of them, so that their
    costs can be compared.
    """
    import dropdtw.corpus

    place = _folder(out)
    how = flags.priced(lambda: _sample(_first(left), right))
    running = _running(engine, workers, num_gpus, shard_rows, strict)
    _show(dropdtw.corpus.pairwise(left, right, place, **how, **running), f"{place}/parts")


def _running(engine: str, workers: int | None, num_gpus: float, shard_rows: int, strict: bool) -> dict[str, Any]:
    """The options of a run, as `dropdtw.corpus` takes them."""
    return {"engine": engine, "workers": workers, "num_gpus": num_gpus, "shard_rows": shard_rows, "strict": strict}


def _folder(out: str) -> str:
    if out == "-":
        raise ValueError("--out is '-' (standard output), but the results are several files; give a folder")
    return out


def _sample(Z: Array, corpus: str) -> tuple[Array, list[Array], int]:
    """A query, a few usable sequences, spread over the corpus, and how many there are."""
    from dropdtw.corpus.records import Record, content
    from dropdtw.corpus.shards import open_corpus

    data = open_corpus(corpus, 1000)
    shards = sorted({round(k * (len(data.shards) - 1) / (FROM - 1)) for k in range(FROM)})
    each = -(-FROM // len(shards))
    fitting = (
        [r.X for r in islice(data.read(n), 10 * each) if isinstance(r, Record) and content(r.X) == content(Z)][:each]
        for n in shards
    )
    return Z, [X for some in fitting for X in some][:FROM], data.rows


def _queries(query: str, header: bool | None) -> tuple[Any, Callable[[], Array]]:
    """The queries as `dropdtw.corpus.retrieve` takes them, and a function that returns the first one."""
    from dropdtw.files import formats

    if "://" not in query and not query.endswith(".parquet") and not Path(query).is_dir():
        Z = formats.read(query, header=header)
        return [(query, Z)], lambda: Z
    return query, lambda: _first(query)


def _first(corpus: str) -> Array:
    from dropdtw.corpus.records import Record
    from dropdtw.corpus.shards import open_corpus

    for record in open_corpus(corpus, 1).read(0):
        if isinstance(record, Record):
            return record.X
    raise ValueError(f"the first records of {corpus} are unusable; fix or remove them")


def _show(run: Run, where: str) -> None:
    if run.errors and not run.rows:
        raise ValueError(f"no record could be used; the reasons are in {run.out}/errors.jsonl")
    print(f"{run.rows} results in {one_line(where)} ({run.done} of {run.shards} shards computed by this command)")
    if run.errors:
        screen.note(f"bad records skipped: {run.errors}; the reasons are in {run.out}/errors.jsonl")
