"""Align two sequences by their common signal and drop the rest.

Z is the query or the list of steps, with elements z_i. X is the signal or the video, with elements x_j. "The paper" is
Dvornik et al., "Drop-DTW: Aligning Common Signal Between Sequences While Dropping Outliers", NeurIPS 2021
(arXiv:2108.11996).

- `align` takes two sequences, `solve` a matrix of match costs. Both return an `Alignment`, which lists its
  `Segment`s.
- `Aligner` holds the options of all these functions as one value; they are its methods.
- `alignments` aligns all pairs of sequences. `distance`, `cost` and `pairwise` return costs only.
- `posterior` returns the probability of every match and every drop, as a `Posterior`.
- `suggest_drop` suggests a drop cost and gives reasons, as a `Suggestion`.
- `nearest` finds the sequences of a corpus that are closest to a query and returns a `Nearest`. An `Index` prepares a
  corpus for many queries.
- `find` returns every `Occurrence` of a query in a signal.
- `barycenter` averages sequences and returns a `Barycenter`.
- `Online` aligns a stream and returns a `StreamState` after each frame.
- `costs`, `drops`, `orders` and `windows` are modules with values for `match=`, `drop_x=`, `order=` and `mask=`.
- `METHODS` lists the values of `method=`. `free_ends`, `erp` and `wdtw` make methods with parameters. `Recurrence`,
  `Edge` and `edges` define your own.

These modules are imported when you first use them. The extra that each needs is in brackets; for example,
`pip install 'dropdtw[plot]'` installs what `plot` needs.

- `plot` draws alignments [plot], `metrics` scores them [metrics, for Kendall's τ only].
- `torch` has losses for PyTorch [torch], `sklearn` has estimators [sklearn].
- `corpus` aligns corpora in Parquet files [parquet; ray to use a cluster].
- `speech` aligns texts with the scores of a CTC model.
- `text` finds steps in subtitles [text], `media` compares recordings [media, to read files].
- `explore` is the web page of `dropdtw explore` [explore], `palette` has the colors of all plots.

>>> import dropdtw
>>> dropdtw.align([0, 1, 2], [0, 1, 9, 2], drop_x=0.5).labels        # x_2 matches nothing
array([ 0,  1, -1,  2])
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from dropdtw import costs, drops, orders, windows
from dropdtw.aligner import Aligner
from dropdtw.api import align, alignments, cost, distance, pairwise, posterior, solve
from dropdtw.results.alignment import Alignment, Segment
from dropdtw.results.posterior import Posterior
from dropdtw.search.averages import Barycenter, barycenter
from dropdtw.search.find import Occurrence, Occurrences, find
from dropdtw.search.index import Index
from dropdtw.search.nearest import Nearest, nearest
from dropdtw.search.online import Online, StreamState
from dropdtw.search.suggest import Suggestion, suggest_drop
from dropdtw.tables.ends import free_ends
from dropdtw.tables.methods import METHODS, erp, wdtw
from dropdtw.tables.table import Edge, Recurrence, edges

__version__ = "0.1.0"

_ON_DEMAND = ("corpus", "explore", "media", "metrics", "palette", "plot", "sklearn", "speech", "text", "torch")


if not TYPE_CHECKING:  # type checkers would take every misspelled name for a module

    def __getattr__(name: str) -> ModuleType:
        """Import a module on first use: these need extras, or take long to import."""
        if name in _ON_DEMAND:
            return import_module(f"dropdtw.{name}")
        raise AttributeError(f"module 'dropdtw' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})


__all__ = [
    "METHODS",
    "Aligner",
    "Alignment",
    "Barycenter",
    "Edge",
    "Index",
    "Nearest",
    "Occurrence",
    "Occurrences",
    "Online",
    "Posterior",
    "Recurrence",
    "Segment",
    "StreamState",
    "Suggestion",
    "align",
    "alignments",
    "barycenter",
    "cost",
    "costs",
    "distance",
    "drops",
    "edges",
    "erp",
    "find",
    "free_ends",
    "nearest",
    "orders",
    "pairwise",
    "posterior",
    "solve",
    "suggest_drop",
    "wdtw",
    "windows",
]
