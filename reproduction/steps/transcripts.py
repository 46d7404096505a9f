"""Key steps in transcripts of cooking videos, to compare methods on."""

from __future__ import annotations

from reproduction.data import transcripts
from reproduction.steps.inference import Fold, cosine_cost, cosine_similarity
from reproduction.steps.splits import Source


def folds(source: Source) -> list[Fold]:
    """One third of the videos for validation, the rest for testing."""
    assert source.folder is not None
    parts = transcripts.load(source.folder).split({"val": 1 / 3, "test": 2 / 3}, seed=0)
    return [Fold(cosine_cost, parts["val"], parts["test"], cosine_similarity)]
