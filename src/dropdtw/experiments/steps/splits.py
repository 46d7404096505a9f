"""What the data sets of step localization take and give: where their files are, and three parts to work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dropdtw.data.steps import StepDataset


@dataclass(frozen=True)
class Splits:
    """Three disjoint parts of a data set."""

    train: StepDataset
    val: StepDataset
    test: StepDataset


@dataclass(frozen=True)
class Source:
    """What a user says about where data are; each data set reads what it needs.

    cache : folder for what is made once.   folder, features, embeddings : annotations, frame features and step
    embeddings in their published layouts.   skip_broken : leave out videos that cannot be read, and say so.
    mnist, encoder : digits and frame encoder of a stand-in.   quick : tiny, where the data are made.
    """

    cache: Path
    folder: Path | None = None
    features: Path | None = None
    embeddings: Path | None = None
    skip_broken: bool = False
    mnist: Path | None = None
    encoder: Path | None = None
    quick: bool = False
    say: Callable[[str], None] = print
