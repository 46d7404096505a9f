"""Corpora that outgrow one machine: Parquet in, Parquet out, on Ray or on this machine alone.

`import dropdtw` does not import this. It needs `pip install dropdtw[parquet]`, and for `engine="ray"` `dropdtw[ray]`.

The modules, each importing only those before it: `storage`, `records`, `shards`, `folder` (files); `gpu`, `compute`
(alignments); `tasks` (the work on one shard); `engines` (who does the shards); `run` (claim, resume, finish); `api`.
"""

from dropdtw.corpus.api import CorpusOptions, localize, pairwise, retrieve
from dropdtw.corpus.records import write
from dropdtw.corpus.run import Run

__all__ = ["CorpusOptions", "Run", "localize", "pairwise", "retrieve", "write"]
