"""The data sets of step localization by name: `dropdtw reproduce steps --data NAME`.

A new one is an entry in `DATASETS` and a file that loads it. The command line lists them without PyTorch, so loaders
import it only where they use it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dropdtw.data import coin, crosstask, youcook2
from dropdtw.experiments.common.registry import find
from dropdtw.experiments.steps import published, stand_in, transcripts, utkinect
from dropdtw.experiments.steps.inference import Fold
from dropdtw.experiments.steps.splits import Source, Splits

STAND_IN: Final = "tmnist-steps"

NEEDS: Final = {
    "folder": "--folder (the folder of its annotations)",
    "features": "--features (a folder of .npy files, say)",
    "embeddings": "--embeddings (a file)",
}
"""What a data set can need of a `Source`, and how a user says it."""


@dataclass(frozen=True)
class Dataset:
    """A data set that models are trained on, or methods compared.

    title : for captions.   splits : loads train, val and test for a seed; None: there is nothing to train on.
    folds : loads what methods are compared on; None: they are not.   chosen_by : the score that chooses percentiles
    there.   needs : names of `NEEDS`.   key : what the splits depend on beside the seed, to find trained rows again;
    None: tables are not trained on it.   stand_in : whether it replaces data that not everyone can have.
    """

    title: str
    splits: Callable[[Source, int], Splits] | None = None
    folds: Callable[[Source], list[Fold]] | None = None
    chosen_by: str = "iou"
    needs: tuple[str, ...] = ()
    key: Callable[[Source], str] | None = None
    stand_in: bool = False


DATASETS: Final[dict[str, Dataset]] = {
    STAND_IN: Dataset(
        "tmnist-steps, a stand-in", stand_in.splits, folds=stand_in.folds, key=stand_in.key, stand_in=True
    ),
    "utkinect": Dataset("UTKinect, leave one subject out", utkinect.splits, folds=utkinect.folds, needs=("folder",)),
    "coin": Dataset("COIN", published.splits(coin.load, "test"), needs=tuple(NEEDS)),
    "crosstask": Dataset("CrossTask", published.splits(crosstask.load, "val"), needs=tuple(NEEDS)),
    "youcook2": Dataset("YouCook2", published.splits(youcook2.load, "val"), needs=tuple(NEEDS)),
    "transcripts": Dataset(
        "key steps in YouCook2 transcripts", folds=transcripts.folds, chosen_by="f1", needs=("folder",)
    ),
}


def trainable() -> dict[str, Callable[[Source, int], Splits]]:
    """What loads the data sets to train on."""
    return {name: entry.splits for name, entry in DATASETS.items() if entry.splits is not None}


def comparable() -> dict[str, Callable[[Source], list[Fold]]]:
    """What loads the data sets to compare methods on."""
    return {name: entry.folds for name, entry in DATASETS.items() if entry.folds is not None}


def load_splits(name: str, source: Source, seed: int) -> Splits:
    """The three parts of a data set."""
    load = find(trainable(), name, "--data")
    _check(name, source)
    return load(source, seed)


def load_folds(name: str, source: Source) -> list[Fold]:
    """What methods are compared on."""
    load = find(comparable(), name, "--data")
    _check(name, source)
    return load(source)


def _check(name: str, source: Source) -> None:
    missing = [how for what, how in NEEDS.items() if what in DATASETS[name].needs and getattr(source, what) is None]
    if missing:
        raise ValueError(f"{name} needs {' and '.join(missing)}")
