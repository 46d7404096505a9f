"""The paper's tables of Section 4.2 and its appendix, with ours next to the paper's: `python -m reproduction table N`.

Each row is trained once per seed and its scores are cached: tables share rows, and an interrupted run can continue. The
drop percentile of inference is tuned on validation videos, and the epoch is chosen by validation recall.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from dropdtw.files import atomic
from dropdtw.files.progress import Progress, reporter, ticking
from reproduction.common import losses as common_losses
from reproduction.common import training
from reproduction.common.cache import fingerprint
from reproduction.common.report import Table, cells
from reproduction.common.training import Plan
from reproduction.steps import experiment, inference, losses, model, paper
from reproduction.steps.inference import Inference
from reproduction.steps.losses import LOSSES
from reproduction.steps.model import Objective
from reproduction.steps.splits import Splits

ROWS: dict[int, dict[str, Objective]] = {
    1: {
        "MIL-NCE": Objective("none", cluster=False),
        **{loss.label: Objective(name) for name, loss in LOSSES.items() if loss.make is not None},
    },
    4: {
        "pre-trained features": Objective("none", cluster=False),
        **{
            LOSSES[name].title: Objective(name, cluster=False) for name in ("smooth", "d3tw", "otam", "drop-percentile")
        },
        "L_clust": Objective("none"),
        **{f"{LOSSES[name].title} + L_clust": Objective(name) for name in ("smooth", "drop-percentile")},
    },
    5: {
        "soft minimum": Objective("drop-percentile", reducer="soft"),
        "hard minimum": Objective("drop-percentile", reducer="hard"),
        "smooth minimum": Objective("drop-percentile"),
    },
    6: {
        **{f"p = {p}": Objective("drop-percentile", percentile=float(p)) for p in (10, 30, 50, 70, 90)},
        **{loss.variant: Objective(name) for name, loss in LOSSES.items() if loss.learned is not None},
    },
}
"""The objectives that each table trains, by row name; MIL-NCE stands for the features before training.

Table 1 has every loss in the registry, and Table 6 every learned drop cost.
"""

PAPER = {1: paper.TABLE_1, 2: paper.TABLE_2, 4: paper.TABLE_4, 5: paper.TABLE_5, 6: paper.TABLE_6}
TITLES = {
    1: "Table 1: losses for step localization",
    2: "Table 2: methods of inference, on the same features",
    4: "Table 4: what the losses contribute",
    5: "Table 5: the minimum inside Drop-DTW",
    6: "Table 6: the drop cost",
}
TRIPLE = ("recall", "accuracy", "iou")


@dataclass(frozen=True)
class Result:
    """A trained row: scores of each seed in percent, (seeds, 3)."""

    scores: tuple[tuple[float, ...], ...]

    def cells(self) -> list[str]:
        """Mean ± standard error of recall, accuracy and IoU."""
        return cells(np.array(self.scores), 1)


def trained_rows(
    rows: Mapping[str, Objective],
    splits: Callable[[int], Splits],
    data_key: str,
    seeds: Sequence[int],
    out: Path,
    *,
    plan: Plan | None = None,
    progress: Progress = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Result]:
    """Train every row with every seed, unless its scores are cached.

    splits : loads the data of a seed.   data_key : fingerprint of everything that the data depend on.
    """
    plan = plan or Plan()
    code = fingerprint(experiment, inference, model, losses, common_losses, training)
    results: dict[str, list[tuple[float, ...]]] = {name: [] for name in rows}
    report = reporter("rows", progress)
    todo = [(seed, name) for seed in seeds for name in rows]
    data: dict[int, Splits] = {}
    with ticking(report):
        for done, (seed, name) in enumerate(todo, 1):
            key = fingerprint(code, data_key, asdict(rows[name]), {**asdict(plan), "seed": seed})
            path = out / "cache" / f"row-{key}.json"
            if not path.exists():
                if seed not in data:
                    data = {seed: splits(seed)}
                scores = _train_row(data[seed], rows[name], plan, seed)
                atomic.write_json(path, {"row": name, "seed": seed, "objective": asdict(rows[name]), "scores": scores})
            results[name].append(tuple(json.loads(path.read_text())["scores"]))
            say(f"{name}, seed {seed}: " + ", ".join(f"{v:.1f}" for v in results[name][-1]))
            report(done, len(todo))
    return {name: Result(tuple(values)) for name, values in results.items()}


def _train_row(data: Splits, objective: Objective, plan: Plan, seed: int) -> list[float]:
    trained, _ = experiment.train_model(data.train, data.val, objective, replace(plan, seed=seed), progress=False)
    found = experiment.evaluate(trained, data.test, experiment.choose_percentile(trained, data.val))
    return [round(100 * getattr(found, name), 4) for name in TRIPLE]


def table(number: int, ours: Mapping[str, Result], data: str, seeds: int) -> Table:
    """A trained table: our columns, then the paper's; rows that only the paper has are marked as quoted."""
    printed = PAPER[number]
    names = [*[name for name in printed if name not in ours], *ours]
    names.sort(key=lambda name: list(printed).index(name) if name in printed else len(printed))
    shown = {"MIL-NCE": "MIL-NCE; ours: features before training"}
    columns = [k for k in range(3) if any(cells[k] != paper.NONE for cells in printed.values())]
    rows = []
    for name in names:
        mine = ours[name].cells() if name in ours else ["–"] * 3
        theirs = [_paper(printed[name][k]) if name in printed else "–" for k in columns]
        rows.append([shown.get(name, name), *mine, *theirs])
    head = ["", "recall", "accuracy", "IoU", *(f"paper (quoted), {paper.DATA_SETS[k]}" for k in columns)]
    caption = f"{TITLES[number]}. Ours: {data}, mean ± standard error of {seeds} seeds, in %"
    return Table(caption, head, rows, quoted=[k for k, name in enumerate(names) if name not in ours])


def inference_table(ours: Mapping[str, Inference], data: str) -> Table:
    """Table 2: accuracy, IoU and F1 of each method, and the paper's accuracy / IoU."""
    printed = PAPER[2]
    rows = []
    for name, found in ours.items():
        chosen = sorted(set(found.percentiles))
        mine = [f"{100 * value:.1f}" for value in (found.scores.accuracy, found.scores.iou, found.scores.f1)]
        theirs = [_paper(printed[name][k]) if name in printed else "–" for k in range(3)]
        rows.append([name, ", ".join(f"{p:g}" for p in chosen) or "–", *mine, *theirs])
    head = ["", "percentile", "accuracy", "IoU", "F1", *(f"paper (quoted), {name}" for name in paper.DATA_SETS)]
    return Table(f"{TITLES[2]}. Ours: {data}, in %", head, rows)


def _paper(cells: Sequence[float | None]) -> str:
    if all(cell is None for cell in cells):
        return "–"
    return " / ".join("–" if cell is None else f"{cell:.1f}" for cell in cells)
