"""The rows of the paper's step-localization tables as printed, in percent: (recall, accuracy, IoU), or the last two.

None marks numbers that the paper does not give. Data sets are in the order of the paper's columns.
"""

from __future__ import annotations

from typing import Final

from reproduction.common.losses import D3TW, DROP, OTAM, SMOOTH
from reproduction.steps.losses import LOSSES

Cells = tuple[float | None, ...]

DATA_SETS: Final = ("CrossTask", "COIN", "YouCook2")

NONE: Final = (None, None, None)

TABLE_1: Final[dict[str, tuple[Cells, ...]]] = {
    "MaxMargin": ((33.6, None, None), NONE, NONE),
    "UniVL": ((42.0, None, None), NONE, NONE),
    "NN-Viterbi": (NONE, (None, 21.2, None), NONE),
    "ISBA": (NONE, (None, 34.3, None), NONE),
    "ProcNet": (NONE, NONE, (None, None, 37.5)),
    "MIL-NCE": ((39.1, 66.9, 20.9), (33.0, 50.2, 23.3), (70.7, 63.7, 43.7)),
    SMOOTH.title: ((43.1, 70.2, 30.5), (37.7, 52.7, 27.7), (75.3, 66.0, 47.5)),
    D3TW.title: ((43.2, 70.4, 30.6), (37.9, 52.8, 27.7), (75.3, 66.4, 47.1)),
    OTAM.title: ((43.8, 70.6, 30.8), (37.2, 52.6, 27.2), (75.4, 66.9, 46.8)),
    LOSSES["drop-percentile"].label: ((48.9, 71.3, 34.2), (40.8, 54.8, 29.5), (77.4, 68.4, 49.4)),
    LOSSES["drop-learned"].label: ((49.7, 74.1, 36.9), (42.8, 59.6, 29.5), (76.8, 69.6, 48.4)),
}
"""Training losses, each combined with L_clust."""

TABLE_2: Final[dict[str, tuple[Cells, ...]]] = {
    "dtw": ((11.2, 10.1), (21.6, 18.3), (35.0, 31.1)),
    "otam": ((19.5, 11.6), (26.5, 19.5), (43.4, 34.7)),
    "lcss": ((50.3, 4.1), (47.0, 4.5), (43.4, 9.0)),
    "needleman_wunsch": ((68.8, 9.5), (52.1, 7.4), (50.1, 11.7)),
    "greedy": ((60.1, 13.8), (45.0, 18.9), (54.3, 34.1)),
    "drop_dtw": ((70.2, 30.5), (52.7, 27.7), (66.0, 47.5)),
}
"""Inference on fixed features: accuracy and IoU."""

TABLE_4: Final[dict[str, tuple[Cells, ...]]] = {
    "pre-trained features": TABLE_1["MIL-NCE"],
    SMOOTH.title: ((29.6, 48.5, 9.0), (29.1, 38.8, 17.8), (70.2, 61.1, 39.7)),
    DROP.title: ((33.8, 56.6, 14.2), (30.6, 43.7, 20.1), (71.5, 63.4, 41.6)),
    "L_clust": ((43.4, 70.2, 29.8), (37.7, 53.6, 27.6), (75.8, 66.3, 47.3)),
    f"{SMOOTH.title} + L_clust": TABLE_1[SMOOTH.title],
    f"{DROP.title} + L_clust": TABLE_1[LOSSES["drop-percentile"].label],
}
"""Ablation of the losses."""

TABLE_5: Final[dict[str, tuple[Cells, ...]]] = {
    "soft minimum": ((46.1, 70.8, 32.9), NONE, NONE),
    "hard minimum": ((48.3, 71.2, 34.3), NONE, NONE),
    "smooth minimum": ((48.9, 71.3, 34.2), NONE, NONE),
}
"""Ablation of the minimum inside Drop-DTW."""

TABLE_6: Final[dict[str, tuple[Cells, ...]]] = {
    "p = 10": ((47.5, 71.4, 34.9), NONE, NONE),
    "p = 30": ((48.9, 71.3, 34.2), NONE, NONE),
    "p = 50": ((46.2, 69.5, 31.0), NONE, NONE),
    "p = 70": ((45.3, 68.4, 31.0), NONE, NONE),
    "p = 90": ((44.6, 67.7, 30.0), NONE, NONE),
    LOSSES["drop-learned"].variant: ((49.7, 74.1, 36.9), NONE, NONE),
}
"""Ablation of the drop cost."""
