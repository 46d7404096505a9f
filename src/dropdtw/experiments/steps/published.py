"""The paper's data sets: annotations, a folder of features and a file of step embeddings, as they are published."""

from __future__ import annotations

from collections.abc import Callable

from dropdtw.data.steps import StepDataset
from dropdtw.experiments.steps.splits import Source, Splits


def splits(load: Callable[..., StepDataset], test: str) -> Callable[[Source, int], Splits]:
    """Loads a data set with its own split; a tenth of the training videos is for validation.

    load : of a module such as `dropdtw.data.coin`.   test : the name of the published subset to test on.
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
