"""What can be done with a corpus: find steps in every record, all pairs of two corpora, the nearest of a corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy.typing as npt

from dropdtw.corpus.engines import Engine
from dropdtw.corpus.records import whole
from dropdtw.corpus.run import Run, run
from dropdtw.corpus.shards import Given, open_corpus
from dropdtw.corpus.tasks import Localize, Pairwise, Retrieve
from dropdtw.files.progress import Progress
from dropdtw.problem.charges import Opening
from dropdtw.problem.spec import Spec
from dropdtw.tables.methods import METHODS

Drop = float | str | None

Url = str | os.PathLike[str]


class CorpusOptions(TypedDict, total=False):
    """What all tasks take, besides what they work on.

    match, method, one_to_many, many_to_one, contiguous, window, threshold : as in `dropdtw.align`; names, not
        functions, since the manifest keeps them.
    drop_x, drop_z : a number or a rule: "percentile:30", or "suggest", which finds a drop cost for each pair.
    open_x, open_z : a number, or "suggest", which finds an opening cost for each pair.   warp : a number.
    engine : "local", this machine, all cores; or "ray", a cluster: the one this process is connected to, the one that
        RAY_ADDRESS names, or one that is started on this machine. The results are the same bytes.
    workers : how many work at a time; None: as many as there are cores.
    num_cpus, num_gpus : what one worker of Ray takes. With a GPU the values are computed on it, by `dropdtw.torch`.
    shard_rows : records in a shard, the part that is done or not done; row groups of the files are not divided.
    strict : stop at the first bad record. Otherwise it goes to errors.jsonl with its reason, and the run goes on.
    progress : as in `dropdtw.pairwise`.
    """

    match: str
    drop_x: Drop
    drop_z: Drop
    method: str
    one_to_many: bool
    many_to_one: bool
    contiguous: bool
    open_x: Opening
    open_z: Opening
    warp: float
    window: float | None
    threshold: Drop
    engine: str
    workers: int | None
    num_cpus: float
    num_gpus: float
    shard_rows: int
    strict: bool
    progress: Progress


def localize(steps: npt.ArrayLike | None, corpus: Url, out: Url, **options: Unpack[CorpusOptions]) -> Run:
    """Find steps in every record of a corpus.

    steps : Z (K, d), the same for every record; None: each record has its own.
    corpus : a .parquet file or a folder of them, as `dropdtw.corpus.write` makes them; a path or any fsspec address.
    out : a folder for the results, one file in parts/ for each shard, with the columns id, cost, and segments: a list
        of {step, start, stop}. Started again with the same arguments, a run that was cut off does the rest.
    options : see `dropdtw.corpus.CorpusOptions`. Unless told otherwise each frame belongs to one step and each step is
        one stretch (`many_to_one=False, contiguous=True`), and `drop_x="suggest"` finds a drop cost for every record.

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
    settings: dict[str, Any] = {"many_to_one": False, "contiguous": True} | dict(options)
    entry = METHODS.get(str(settings.get("method", "drop_dtw")))
    if entry is not None and entry.takes_drops:
        settings.setdefault("drop_x", "suggest")
    asked = _asked(settings)
    task = Localize(steps, open_corpus(corpus, asked.shard_rows), asked.spec, asked.device)
    return run(task, out, **asked.running)


def pairwise(left: Url, right: Url, out: Url, **options: Unpack[CorpusOptions]) -> Run:
    """Compute the value of every record of one corpus with every record of another one.

    left, right : corpora, as in `localize`; the records of `left` are the Z, those of `right` the X.
    out : a folder for the results, one file in parts/ for each pair of shards, with the columns z, x (ids) and cost.
    options : see `dropdtw.corpus.CorpusOptions`.
    """
    asked = _asked(dict(options))
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

    queries : the Z: a corpus that fits into memory, or a list of (id, sequence).   corpus : what is searched, the X.
    out : a folder; nearest.parquet has the columns query, rank, id, length and cost, best first; of equal costs the
        record that comes first in the corpus.
    options : see `dropdtw.corpus.CorpusOptions`. With drop and opening costs that are numbers, lower bounds spare most
        alignments; one that is read off the match costs is another number for every record, so all are aligned.
    """
    asked = _asked(dict(options))
    rows = asked.shard_rows
    Zs = open_corpus(queries, rows) if isinstance(queries, (str, os.PathLike)) else Given(queries, "queries")
    task = Retrieve(Zs, open_corpus(corpus, rows), asked.spec, asked.device, k)
    return run(task, out, **asked.running)


class _Asked(NamedTuple):
    """What a caller said: the request, where it is computed, records in a shard, and arguments of `run`."""

    spec: Spec
    device: str
    shard_rows: int
    running: dict[str, Any]


def _asked(options: dict[str, Any]) -> _Asked:
    """Refuse now what would fail on every record."""
    known = CorpusOptions.__annotations__
    unknown = options.keys() - known.keys()
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))} is no option; there are {', '.join(known)}")
    rows = options.pop("shard_rows", 1000)
    if not whole(rows):
        raise ValueError(f"shard_rows is {rows!r}; give how many records make a shard, 1 or more")
    names = {"engine": "name", "workers": "workers", "num_cpus": "num_cpus", "num_gpus": "num_gpus"}
    engine = Engine(**{inside: options.pop(name) for name, inside in names.items() if name in options})
    running = {"engine": engine} | {name: options.pop(name) for name in ("strict", "progress") if name in options}
    spec = Spec.of(**options)
    spec.settings()  # a manifest has to hold it
    return _Asked(spec, "cuda" if engine.num_gpus else "cpu", int(rows), running)
