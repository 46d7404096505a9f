"""The alignment losses that experiments compare, and their names in the paper.

Each experiment lists the losses it offers in a registry `LOSSES` of these entries: `steps/losses.py`, `penn/model.py`
and `ave/model.py`. Modules are built on demand, so that the command line can list a registry without PyTorch.
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
    """A loss by which models are trained.

    title : its name in the paper.   variant : tells apart entries with the same title.
    make : builds its module from the options of an `AlignmentLoss`; None: nothing is aligned.
    drops : whether `make` also takes drop costs, as `DropDTWLoss` does.
    learned : builds a drop cost that is trained too, from the dimension of the embeddings and a percentile.
    inference : the method, by its name in `METHODS`, that localizes in the same way as this loss aligns.
    """

    title: str
    make: Callable[..., AlignmentLoss] | None
    drops: bool = False
    inference: str = "drop_dtw"
    variant: str = ""
    learned: Callable[[int, float], LearnedDrop] | None = None

    @property
    def label(self) -> str:
        """Title and variant."""
        return f"{self.title}, {self.variant}" if self.variant else self.title

    def build(self, drops: Mapping[str, Any], **options: Any) -> AlignmentLoss:
        """The module. drops : drop costs and what else only a loss that drops can be told."""
        if self.make is None:
            raise ValueError(f"{self.label!r} aligns nothing, so there is no module to build; choose another loss")
        return self.make(**options, **(drops if self.drops else {}))


def from_torch(name: str) -> Callable[..., AlignmentLoss]:
    """Builds the loss of this name in `dropdtw.torch`."""

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
