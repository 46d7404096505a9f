"""The alignment losses that the experiments compare, with their names in the paper.

An experiment registers the losses it offers in a dict `LOSSES` of these entries: see `steps/losses.py`, `penn/model.py`
and `ave/model.py`. Modules are built lazily, so that the command line can list a registry without importing PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dropdtw.torch import LearnedDrop
    from dropdtw.torch.losses import AlignmentLoss


@dataclass(frozen=True)
class Loss:
    """A loss to train models with.

    title : its name in the paper.   variant : distinguishes entries with the same title.
    make : builds its module from the options of an `AlignmentLoss`; None for a loss without alignment.
    drops : whether `make` also takes drop costs, as `DropDTWLoss` does.
    learned : builds a trainable drop cost from the dimension of the embeddings and a percentile.
    background : whether that drop cost also takes part in L_clust, as one more class.
    inference : the method in `METHODS` whose alignments correspond to this loss.
    """

    title: str
    make: Callable[..., AlignmentLoss] | None
    drops: bool = False
    inference: str = "drop_dtw"
    variant: str = ""
    learned: Callable[[int, float], LearnedDrop] | None = None
    background: bool = False

    @property
    def label(self) -> str:
        """Title and variant."""
        return f"{self.title}, {self.variant}" if self.variant else self.title

    def build(self, drops: Mapping[str, Any], **options: Any) -> AlignmentLoss:
        """Build the module. drops : drop costs and other options that only a loss with drops takes."""
        if self.make is None:
            raise ValueError(f"{self.label!r} does not align, so it has no module; choose another loss")
        return self.make(**options, **(drops if self.drops else {}))


def from_torch(name: str) -> Callable[..., AlignmentLoss]:
    """A function that builds the loss of this name in `dropdtw.torch`."""

    def make(**options: Any) -> AlignmentLoss:
        import dropdtw.torch

        module: AlignmentLoss = getattr(dropdtw.torch, name)(**options)
        return module

    return make


SMOOTH = Loss("SmoothDTW", from_torch("SmoothDTWLoss"), inference="dtw")
D3TW = Loss("D³TW", from_torch("D3TWLoss"), inference="dtw")
OTAM = Loss("OTAM", from_torch("OTAMLoss"), inference="otam")
DROP = Loss("Drop-DTW", from_torch("DropDTWLoss"), drops=True)
NONE = Loss("no alignment", None)
