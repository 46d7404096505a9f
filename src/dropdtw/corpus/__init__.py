"""Corpora that outgrow one machine: Parquet in, Parquet out, on Ray or on this machine alone.

`import dropdtw` does not import this. It needs `pip install dropdtw[parquet]`, and for `engine="ray"` `dropdtw[ray]`.
"""

from dropdtw.corpus.records import write
from dropdtw.corpus.run import Run
from dropdtw.corpus.tasks import Options, localize, pairwise, retrieve

__all__ = ["Options", "Run", "localize", "pairwise", "retrieve", "write"]
