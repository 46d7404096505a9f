"""The tasks on a corpus: find steps in every record, compare all pairs of two corpora, find the nearest records."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple, Unpack

import numpy.typing as npt

from dropdtw.aligner import Aligner
from dropdtw.corpus.engines import Engine
from dropdtw.corpus.records import whole
from dropdtw.corpus.run import Run, run
from dropdtw.corpus.shards import GivenRecords, open_corpus
from dropdtw.corpus.tasks import Localize, Pairwise, Retrieve
from dropdtw.files.progress import Progress
from dropdtw.problem.errors import OptionError, refuse_unknown
from dropdtw.problem.options import MethodOptions
from dropdtw.problem.spec import Spec
from dropdtw.tables.methods import METHODS

Drop = float | str | None

Url = str | os.PathLike[str]


class CorpusOptions(MethodOptions, total=False):
    """The options that all tasks share, as keyword arguments.

    match, method, one_to_many, many_to_one, contiguous, window, threshold : as in `dropdtw.align`, with the same
        defaults ("auto", "drop_dtw", True, True, False, None, None). `match` and `method` must be names, because the
        manifest stores them.
    aligner : a `dropdtw.Aligner` with these options, instead of the options of an alignment here.
    drop_x, drop_z : None, a number, or a rule: "percentile:30", "suggest", which finds a drop cost for each pair, or,
        for drop_x with `match="softmax"`, "logit:30". Default: None.
    open_x, open_z : a number, or "suggest", which finds an opening cost for each pair. Default: 0.
    warp : a number. Default: 0.
    engine : "local" (the default) uses all cores of this machine. "ray" uses a cluster: the one that this process is
        connected to, else the one that RAY_ADDRESS names, else a new one on this machine. Both give byte-identical
        results.
    workers : the number of parallel workers. Default: None, one per core.
    num_cpus, num_gpus : the resources of one worker; `num_cpus` is for Ray only. With a GPU, `dropdtw.torch` computes
        the values on it. Defaults: 1 and 0.
    shard_rows : records per shard, the unit of work that is resumed. Row groups of the files are never split. Default:
        1000.
    strict : whether to stop at the first bad record. By default (False), the record goes to errors.jsonl with the
        reason, and the run continues.
    progress : as in `dropdtw.pairwise`. Default: None.

    >>> from dropdtw.corpus import CorpusOptions
    >>> options: CorpusOptions = {"match": "cosine", "drop_x": "percentile:30", "shard_rows": 5000}
    """

    aligner: Aligner
    match: str
    drop_x: Drop
    drop_z: Drop
    engine: str
    workers: int | None
    num_cpus: float
    num_gpus: float
    shard_rows: int
    strict: bool
    progress: Progress


def localize(
    steps: npt.ArrayLike | None, corpus: Url, out: Url, *, fps: float | None = None, **options: Unpack[CorpusOptions]
) -> Run:
    """Find steps in every record of a corpus.

    steps : Z (K, d), or symbols, the same for every record; None: each record has its own.
    corpus : a .parquet file or a folder of them, as written by `dropdtw.corpus.write`; a path or any fsspec URL.
    out : a folder for the results, with one file per shard in parts/. Its columns are id, cost, and segments, a list
        of {step, start, stop}, with start_time and stop_time if records have times. To resume an interrupted run, call
        this again with the same arguments.
    fps : frames per second, if records have no times: segments then have times in seconds.
    options : see `dropdtw.corpus.CorpusOptions`. Three defaults differ: each frame belongs to at most one step
        (`many_to_one=False`), the frames of a step are consecutive (`contiguous=True`), and if the method has drop
        costs, one is suggested for each record (`drop_x="suggest"`).

    Returns a `dropdtw.corpus.Run`. Raises ValueError if an option, the corpus or the folder is invalid, or if a record
    is bad and `strict` is True; TypeError if an option is unknown; RuntimeError if a shard fails; and ImportError
    without pyarrow and fsspec, or without Ray for engine="ray".

    >>> import numpy as np, tempfile, dropdtw.corpus as corpora
    >>> rng, folder = np.random.default_rng(0), tempfile.mkdtemp()
    >>> Z = np.eye(3, 8)
    >>> talks = ((f"talk {k}", rng.normal(size=(30, 8)) / 2 + 2 * np.repeat(Z, 10, axis=0)) for k in range(100))
    >>> corpora.write(f"{folder}/talks.parquet", talks)
    100
    >>> run = corpora.localize(Z, f"{folder}/talks.parquet", f"{folder}/found", drop_x=0.5)
    >>> run.rows, run.errors
    (100, 0)
    """
    settings: dict[str, Any] = dict(options)
    if "aligner" not in settings:
        settings = {"many_to_one": False, "contiguous": True} | settings
        entry = METHODS.get(str(settings.get("method", "drop_dtw")))
        if entry is not None and entry.takes_drops:
            settings.setdefault("drop_x", "suggest")
    asked = _request(settings)
    task = Localize(steps, open_corpus(corpus, asked.shard_rows), asked.spec, asked.device, fps)
    return run(task, out, **asked.running)


def pairwise(left: Url, right: Url, out: Url, **options: Unpack[CorpusOptions]) -> Run:
    """Align every record of one corpus with every record of another, and store the values.

    left, right : corpora, as in `dropdtw.corpus.localize`; the records of `left` are the Z, those of `right` the X.
    out : a folder for the results, with one file per pair of shards in parts/. Its columns are z, x (ids) and cost.
    options : see `dropdtw.corpus.CorpusOptions`.

    Returns a `dropdtw.corpus.Run`. Raises the errors of `dropdtw.corpus.localize`.

    >>> import tempfile, dropdtw.corpus as corpora
    >>> folder = tempfile.mkdtemp()
    >>> corpora.write(f"{folder}/walks.parquet", [("a", [1, 2, 3]), ("b", [1, 2, 9, 3])])
    2
    >>> run = corpora.pairwise(f"{folder}/walks.parquet", f"{folder}/walks.parquet", f"{folder}/pairs", drop_x=0.5)
    >>> run.rows  # a and b, each with a and b
    4
    """
    asked = _request(dict(options))
    both = open_corpus(left, asked.shard_rows), open_corpus(right, asked.shard_rows)
    return run(Pairwise(*both, asked.spec, asked.device), out, **asked.running)


def retrieve(
    queries: Url | Iterable[tuple[object, npt.ArrayLike]],
    corpus: Url,
    out: Url,
    k: int = 10,
    **options: Unpack[CorpusOptions],
) -> Run:
    """Find the k records of a corpus that are cheapest to align with each query, as `dropdtw.nearest` does.

    queries : the Z: a corpus that fits into memory, or a list of (id, sequence).
    corpus : the X to search, as in `dropdtw.corpus.localize`.
    out : a folder for the results. Its nearest.parquet has the columns query, rank, id, length and cost, best first.
        On ties, the record that comes first in the corpus wins.
    k : how many records to find for each query.
    options : see `dropdtw.corpus.CorpusOptions`. If drop and opening costs are numbers, lower bounds prune most
        records. Costs that depend on the match costs differ from record to record, so all records are aligned.

    Returns a `dropdtw.corpus.Run`. Raises the errors of `dropdtw.corpus.localize`, and ValueError if k is less
    than 1.

    >>> import pyarrow.parquet, tempfile, dropdtw.corpus as corpora
    >>> folder = tempfile.mkdtemp()
    >>> corpora.write(f"{folder}/walks.parquet", [("up", [1, 2, 9, 3]), ("down", [3, 2, 1])])
    2
    >>> run = corpora.retrieve([("query", [1, 2, 3])], f"{folder}/walks.parquet", f"{folder}/found", k=1, drop_x=0.5)
    >>> pyarrow.parquet.read_table(f"{run.out}/nearest.parquet")["id"].to_pylist()
    ['up']
    """
    asked = _request(dict(options))
    rows = asked.shard_rows
    Zs = open_corpus(queries, rows) if isinstance(queries, (str, os.PathLike)) else GivenRecords(queries, "queries")
    task = Retrieve(Zs, open_corpus(corpus, rows), asked.spec, asked.device, k)
    return run(task, out, **asked.running)


class _Request(NamedTuple):
    """The caller's options: the request, the device, the records per shard, and the arguments of `run`."""

    spec: Spec
    device: str
    shard_rows: int
    running: dict[str, Any]


def _request(options: dict[str, Any]) -> _Request:
    """Parse and check the options, so that bad ones fail now and not on every record."""
    refuse_unknown(options, CorpusOptions.__annotations__, "a corpus")
    rows = options.pop("shard_rows", 1000)
    if not whole(rows):
        raise ValueError(f"shard_rows is {rows!r}; give the number of records per shard, 1 or more")
    names = {"engine": "name", "workers": "workers", "num_cpus": "num_cpus", "num_gpus": "num_gpus"}
    engine = Engine(**{inside: options.pop(name) for name, inside in names.items() if name in options})
    running = {"engine": engine} | {name: options.pop(name) for name in ("strict", "progress") if name in options}
    aligner = options.pop("aligner", None)
    if aligner is None:
        aligner = Aligner(**options)
    elif options:
        name, value = next(iter(options.items()))
        raise OptionError(name, value, "put it into the aligner, or leave out aligner", ", and aligner is given")
    for name in aligner.changed:
        if name not in CorpusOptions.__annotations__:
            raise OptionError(name, aligner.changed[name], "leave it out", ", which corpora do not take")
    spec = aligner.spec
    spec.settings()  # raises if the manifest cannot store it
    return _Request(spec, "cuda" if engine.num_gpus else "cpu", int(rows), running)
