"""Align corpora that may outgrow one machine: Parquet in, Parquet out, on this machine or on Ray.

- `write` stores sequences as a corpus.
- `localize` finds steps in every record, `pairwise` aligns every pair of records, and `retrieve` finds the records that
  are nearest to a query. All three take the options in `CorpusOptions` and return a `Run`.

`import dropdtw` does not import this module. It needs `pip install 'dropdtw[parquet]'`, and `'dropdtw[ray]'` for
`engine="ray"`.
"""

# Each module imports only those before it: storage, records, shards, folder (files); gpu, compute (alignments); tasks
# (the work on one shard); engines (threads or Ray); run (claim, resume, finish); api.

from dropdtw.corpus.api import CorpusOptions, localize, pairwise, retrieve
from dropdtw.corpus.records import write
from dropdtw.corpus.run import Run

__all__ = ["CorpusOptions", "Run", "localize", "pairwise", "retrieve", "write"]
