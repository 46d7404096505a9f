"""The paper's data sets: annotations, frame features and step embeddings in their published formats."""

from __future__ import annotations

from collections.abc import Callable

from reproduction.data.steps import StepDataset
from reproduction.steps.splits import Source, Splits


def splits(load: Callable[..., StepDataset], test: str) -> Callable[[Source, int], Splits]:
    """A loader of a data set with its own split; one tenth of the training videos is held out for validation.

    load : the `load` of a module such as `reproduction.data.coin`.   test : name of the published subset to test on.
    """

    def of(source: Source, seed: int) -> Splits:
        train, tested = (
            load(source.folder, source.features, source.embeddings, subset=subset) for subset in ("train", test)
        )
        if source.skip_broken:
            train, tested = (part.usable(report=source.say) for part in (train, tested))
        inner = train.split({"train": 0.9, "val": 0.1}, seed=seed)
        return Splits(inner["train"], inner["val"], tested)

    return of
