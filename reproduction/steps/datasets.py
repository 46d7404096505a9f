"""The data sets of step localization by name: `python -m reproduction steps --data NAME`.

To add one, add an entry to `DATASETS` and a module that loads it. The command line lists the data sets without PyTorch,
so loaders import it lazily.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reproduction.common.registry import find
from reproduction.data import coin, crosstask, youcook2
from reproduction.steps import published, scores, stand_in, transcripts, utkinect
from reproduction.steps.inference import Fold
from reproduction.steps.splits import Source, Splits

STAND_IN: Final = "tmnist-steps"
STAND_IN_OWN: Final = "tmnist-steps-own"

NEEDS: Final = {
    "folder": "--folder (the folder of its annotations)",
    "features": "--features (a folder of .npy files, say)",
    "embeddings": "--embeddings (a file)",
}
"""The fields of `Source` that a data set may need, with the option that sets each."""


@dataclass(frozen=True)
class Dataset:
    """A data set to train models on or to compare methods on.

    title : for captions.   splits : loads train, val and test for a seed; None if there is nothing to train on.
    folds : loads the folds to compare methods on, as a list, or several lists by name; None if there are none.
    chosen_by : score that tunes percentiles there.   needs : keys of `NEEDS`.
    key : fingerprint of what the splits depend on besides the seed, to find cached rows; None if no tables are trained
    on it.   stand_in : whether it replaces data that are not public.
    """

    title: str
    splits: Callable[[Source, int], Splits] | None = None
    folds: Callable[[Source], list[Fold] | dict[str, list[Fold]]] | None = None
    chosen_by: str = "iou"
    needs: tuple[str, ...] = ()
    key: Callable[[Source], str] | None = None
    stand_in: bool = False


DATASETS: Final[dict[str, Dataset]] = {
    STAND_IN: Dataset(
        "tmnist-steps, a stand-in", stand_in.splits, folds=stand_in.folds, key=stand_in.key, stand_in=True
    ),
    STAND_IN_OWN: Dataset(
        "tmnist-steps-own, a stand-in with recognizable background",
        stand_in.own_splits,
        folds=stand_in.own_folds,
        key=stand_in.own_key,
        stand_in=True,
    ),
    "utkinect": Dataset("UTKinect, leave one subject out", utkinect.splits, folds=utkinect.folds, needs=("folder",)),
    "coin": Dataset("COIN", published.splits(coin.load, "test"), needs=tuple(NEEDS)),
    "crosstask": Dataset("CrossTask", published.splits(crosstask.load, "val"), needs=tuple(NEEDS)),
    "youcook2": Dataset("YouCook2", published.splits(youcook2.load, "val"), needs=tuple(NEEDS)),
    "transcripts": Dataset(
        "key steps in YouCook2 transcripts", folds=transcripts.folds, chosen_by="f1", needs=("folder",)
    ),
    "scores": Dataset("frame scores of real video", folds=scores.folds, needs=("folder",)),
}


def trainable() -> dict[str, Callable[[Source, int], Splits]]:
    """Loaders of the data sets to train on."""
    return {name: entry.splits for name, entry in DATASETS.items() if entry.splits is not None}


def comparable() -> dict[str, Callable[[Source], list[Fold] | dict[str, list[Fold]]]]:
    """Loaders of the data sets to compare methods on."""
    return {name: entry.folds for name, entry in DATASETS.items() if entry.folds is not None}


def load_splits(name: str, source: Source, seed: int) -> Splits:
    """Load the three parts of a data set."""
    load = find(trainable(), name, "--data")
    _check(name, source)
    return load(source, seed)


def load_folds(name: str, source: Source) -> dict[str, list[Fold]]:
    """Load the folds to compare methods on, by title: one list for most data sets."""
    load = find(comparable(), name, "--data")
    _check(name, source)
    found = load(source)
    return found if isinstance(found, dict) else {DATASETS[name].title: found}


def _check(name: str, source: Source) -> None:
    missing = [how for what, how in NEEDS.items() if what in DATASETS[name].needs and getattr(source, what) is None]
    if missing:
        raise ValueError(f"{name} needs {' and '.join(missing)}")
