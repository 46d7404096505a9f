"""The paper's tables of Section 4.2 and its appendix: what each row trains, and how it is shown beside the paper's.

`python -m reproduction table N` makes one. Rows with the same objective are trained once (`experiment.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from scipy import stats

from dropdtw.problem.inputs import Array
from reproduction.common.report import Table, averaged, cells
from reproduction.steps import paper
from reproduction.steps.inference import Inference
from reproduction.steps.losses import LOSSES
from reproduction.steps.model import Objective

TRIPLE: Final = ("recall", "accuracy", "iou")
BEST: Final = Objective("drop-percentile")
"""The row that others are compared with: Drop-DTW with the 30th percentile, and L_clust."""
REFERENCES: Final = {"text": replace(BEST, text="unit")}
"""Tables with another one."""

ROWS: Final[dict[str, dict[str, Objective]]] = {
    "1": {
        "MIL-NCE": Objective("none", cluster=False),
        **{loss.label: Objective(name) for name, loss in LOSSES.items() if loss.make is not None},
    },
    "4": {
        "pre-trained features": Objective("none", cluster=False),
        **{
            LOSSES[name].title: Objective(name, cluster=False) for name in ("smooth", "d3tw", "otam", "drop-percentile")
        },
        "L_clust": Objective("none"),
        **{f"{LOSSES[name].title} + L_clust": Objective(name) for name in ("smooth", "drop-percentile")},
    },
    "5": {
        "soft minimum": Objective("drop-percentile", reducer="soft"),
        "hard minimum": Objective("drop-percentile", reducer="hard"),
        "smooth minimum": Objective("drop-percentile"),
    },
    "6": {
        **{f"p = {p}": Objective("drop-percentile", percentile=float(p)) for p in (10, 30, 50, 70, 90)},
        **{loss.variant: Objective(name) for name, loss in LOSSES.items() if loss.learned is not None},
    },
    "recipe": {
        "as in the other tables": BEST,
        "L_clust contrasts the steps of one video": Objective(negatives="item"),
        "L_clust as printed, ‖I − X̂Zᵀ‖": Objective(form="frobenius"),
        "Algorithm 1 as printed: frames may be shared, runs broken": Objective(exclusive=False),
        "drop cost: 30th percentile of the match costs (Eq. 5)": Objective(drops="percentile"),
        "SmoothDTW + L_clust, one step per frame": Objective("smooth", exclusive=True),
    },
    "text": {
        "features before training": Objective("none", cluster=False, text="unit"),
        **{loss.label: Objective(name, text="unit") for name, loss in LOSSES.items() if loss.make is not None},
    },
}
"""The objectives that each table trains, by row name; MIL-NCE stands for the features before training.

Table 1 has every loss in the registry, and Table 6 every learned drop cost. "recipe" has the differences between the
authors' recipe, which the tables use, and the text of the paper. "text" is Table 1 with steps of a common length only.
"""

PAPER: Final = {"1": paper.TABLE_1, "2": paper.TABLE_2, "4": paper.TABLE_4, "5": paper.TABLE_5, "6": paper.TABLE_6}
TITLES: Final = {
    "1": "Table 1: losses for step localization",
    "2": "Table 2: methods of inference, on the same features",
    "4": "Table 4: what the losses contribute",
    "5": "Table 5: the minimum inside Drop-DTW",
    "6": "Table 6: the drop cost",
    "recipe": "The recipe and the paper's text",
    "text": "Table 1 with step embeddings that are not standardized",
}


def paired(values: Array, reference: Array, level: float = 0.95) -> list[tuple[float, float]]:
    """Mean difference of each column of values (seeds, columns) to the same seeds of a reference, and half the width
    of its confidence interval (Student's t); infinite for a single seed.
    """
    apart = np.asarray(values - reference, np.float64)
    n = len(apart)
    errors = apart.std(axis=0, ddof=1) / n**0.5 if n > 1 else np.full(apart.shape[1], np.inf)
    widths = stats.t.ppf((1 + level) / 2, max(1, n - 1)) * errors
    return [(float(mean), float(width)) for mean, width in zip(apart.mean(axis=0), widths, strict=True)]


def table(number: str, ours: Mapping[str, Array], data: str, reference: Array) -> Table:
    """A trained table: our columns, their differences to the reference, then the paper's columns.

    ours : scores (seeds, 3) in percent, by row.   reference : (seeds, 3). Rows that only the paper has are quoted.
    """
    printed = PAPER.get(number, {})
    names = [*[name for name in printed if name not in ours], *ours]
    names.sort(key=lambda name: list(printed).index(name) if name in printed else len(printed))
    shown = {"MIL-NCE": "MIL-NCE; ours: features before training"}
    columns = [k for k in range(3) if any(cells[k] != paper.NONE for cells in printed.values())]
    rows = []
    for name in names:
        mine = [*cells(ours[name], 1), *differences(ours[name], reference)] if name in ours else ["–"] * 6
        theirs = [_paper(printed[name][k]) if name in printed else "–" for k in columns]
        rows.append([shown.get(name, name), *mine, *theirs])
    head = ["", "recall", "accuracy", "IoU", "Δ recall", "Δ accuracy", "Δ IoU"]
    head += [f"paper (quoted), {paper.DATA_SETS[k]}" for k in columns]
    caption = (
        f"{TITLES[number]}. Ours: {data}, in %, {averaged(len(reference), 'seeds')}; Δ: paired difference to Drop-DTW "
        f"(30th percentile) + L_clust{', ± half of its 95 % confidence interval' if len(reference) > 1 else ''}"
    )
    return Table(caption, head, rows, quoted=[k for k, name in enumerate(names) if name not in ours])


def differences(values: Array, reference: Array) -> list[str]:
    """The `paired` differences as cells of a table; dashes for the reference itself."""
    if np.array_equal(values, reference):
        return ["–"] * 3
    found = paired(values, reference)
    shown = [f"{mean:+.1f}" + (f" ± {width:.1f}" if len(values) > 1 else "") for mean, width in found]
    return [text.replace("-", "−") for text in shown]


def inference_table(ours: Mapping[str, Inference], data: str) -> Table:
    """Table 2: accuracy, IoU and F1 of each method, and the paper's accuracy / IoU; see `scores_table`."""
    printed = PAPER["2"]
    rows = []
    for name, found in ours.items():
        mine = [f"{100 * value:.1f}" for value in (found.scores.accuracy, found.scores.iou, found.scores.f1)]
        theirs = [_paper(printed[name][k]) if name in printed else "–" for k in range(3)]
        rows.append([name, _chosen(found), *mine, *theirs])
    head = ["", "chosen", "accuracy", "IoU", "F1", *(f"paper (quoted), {name}" for name in paper.DATA_SETS)]
    return Table(f"{TITLES['2']}. Ours: {data}, in %", head, rows)


def scores_table(ours: Mapping[str, Inference], data: str) -> Table:
    """Table 2 on the scores of classifiers: means over videos with their standard errors."""
    rows = [[name, _chosen(found), *cells(100 * found.videos, 1)] for name, found in ours.items()]
    count = len(next(iter(ours.values())).videos)
    caption = f"{TITLES['2']}. {data}, {count} videos, in %, ± standard error over videos"
    return Table(caption, ["", "chosen", "accuracy", "IoU", "F1@50", "edit"], rows)


def _chosen(found: Inference) -> str:
    """What was chosen in the folds, each once."""
    shown = [one if isinstance(one, str) else f"{one:g}" for one in dict.fromkeys(sorted(found.chosen, key=str))]
    return ", ".join(sorted(shown, key=lambda text: (len(text), text))) or "–"


def _paper(cells: Sequence[float | None]) -> str:
    if all(cell is None for cell in cells):
        return "–"
    return " / ".join("–" if cell is None else f"{cell:.1f}" for cell in cells)
