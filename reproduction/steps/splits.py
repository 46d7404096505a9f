"""Input and output of the loaders of step localization: the location of files, and three parts of a data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reproduction.data.steps import StepDataset


@dataclass(frozen=True)
class Splits:
    """Three disjoint parts of a data set."""

    train: StepDataset
    val: StepDataset
    test: StepDataset


@dataclass(frozen=True)
class Source:
    """Where the user's data are; each data set reads the fields it needs.

    cache : folder for cached results.   folder, features, embeddings : annotations, frame features and step embeddings
    in their published formats.   skip_broken : skip unreadable videos and report them.
    mnist, encoder : digits and frame encoder of a stand-in.   quick : generate tiny data.
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
