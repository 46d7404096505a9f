"""Align two sequences by their common signal and drop the rest.

`align` takes two sequences, `solve` a matrix of match costs; both give an `Alignment`. `distance`, `cost` and
`pairwise` give values alone, `posterior` the probability of every match and drop, `nearest` the cheapest of many
sequences, and `Online` an alignment that grows frame by frame.
"""

from dropdtw import costs, drops
from dropdtw.alignment import Alignment, Segment
from dropdtw.api import align, cost, distance, pairwise, posterior, solve
from dropdtw.methods import METHODS
from dropdtw.online import Now, Online
from dropdtw.posterior import Posterior
from dropdtw.recurrence import Edge, Recurrence, edges
from dropdtw.retrieval import Corpus, Nearest, nearest
from dropdtw.suggest import Suggestion, suggest_drop

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Alignment",
    "Corpus",
    "Edge",
    "Nearest",
    "Now",
    "Online",
    "Posterior",
    "Recurrence",
    "Segment",
    "Suggestion",
    "align",
    "cost",
    "costs",
    "distance",
    "drops",
    "edges",
    "nearest",
    "pairwise",
    "posterior",
    "solve",
    "suggest_drop",
]
