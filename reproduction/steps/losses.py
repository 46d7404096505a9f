"""The losses of step localization by name: `python -m reproduction steps --loss NAME`. To add one, extend `LOSSES`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reproduction.common.losses import D3TW, DROP, NONE, OTAM, SMOOTH, Loss

if TYPE_CHECKING:
    from dropdtw.torch import LearnedDrop


def _learned(dim: int, percentile: float) -> LearnedDrop:
    from dropdtw.torch import LearnedDrop

    return LearnedDrop(dim, depth=2, output="logit", scale=0.5 / math.sqrt(dim))  # a larger one drops ever more


def _anchored(dim: int, percentile: float) -> LearnedDrop:
    from torch import nn

    from dropdtw.torch import LearnedDrop

    drop = LearnedDrop(dim, output="logit", residual=False, scale=1 / math.sqrt(dim), anchor=percentile)
    for parameter in drop.parameters():
        nn.init.zeros_(parameter)  # training starts from the percentile alone
    return drop


LOSSES: Final[dict[str, Loss]] = {
    "drop-percentile": replace(DROP, variant="percentile"),
    "drop-learned": replace(DROP, variant="learned", learned=_learned),
    "drop-background": replace(DROP, variant="learned, in L_clust", learned=_learned, background=True),
    "drop-anchored": replace(DROP, variant="learned and anchored", learned=_anchored),
    "smooth": SMOOTH,
    "d3tw": D3TW,
    "otam": OTAM,
    "none": NONE,
}
""""drop-learned" is the paper's learned drop cost (Eq. 6, as a logit), with one hidden layer in f. With
"drop-background" it is also one more class of L_clust, as in the authors' experiments. "drop-anchored" learns which
frames to drop, while a percentile sets how many. "none" trains with L_clust alone, or not at all."""
