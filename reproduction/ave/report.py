"""The output of `python -m reproduction ave`: tables, results.json and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from dropdtw.problem.inputs import Array
from reproduction.ave.model import Recipe, chance
from reproduction.ave.tasks import WAYS, Task
from reproduction.common.losses import DROP, OTAM, SMOOTH
from reproduction.common.pictures import dots
from reproduction.common.report import Report, Table, averaged, cells, rounded

PAPER: Final = {
    OTAM.title: (37.5, 32.7),
    SMOOTH.title: (39.8, 33.9),
    DROP.title: (41.1, 35.8),
    "supervised (Tian et al.)": (44.8, 34.8),
}
"""Table 3: A2V and V2A in percent."""


def tables(task: Task, found: Mapping[str, Mapping[str, Array]], lines: Mapping[str, Array]) -> list[Table]:
    """One table per kind of splicing, A2V and V2A in percent; on the paper's data, with the paper's numbers."""
    near = ["" if t == 0 else f" ±{t}" for t in task.tolerances]
    head = ["", *(f"{way}{tolerance}" for way in WAYS for tolerance in near)]
    guess = chance(task.test.events, task.test.audio.shape[1], task.tolerances)
    made = []
    for spliced, rows in found.items():
        seeds = len(next(iter(rows.values())))
        body = [["chance", *(f"{100 * g:.1f}" for _ in WAYS for g in guess)]]
        if spliced in lines:
            body.append(["linear CCA", *(f"{100 * v:.1f}" for v in lines[spliced].ravel())])
        body += [[name, *cells(values.reshape(seeds, -1), 1, 100)] for name, values in rows.items()]
        ours = len(body)
        if task.papers:
            body += [[name, *(f"{v:.1f}" for v in values)] for name, values in PAPER.items()]
        strange = {"none": "clean training streams", "visual": "foreign passages in the visual streams"}
        caption = f"{task.kind}: found in %, {averaged(seeds, 'models')}"
        if not task.papers:
            caption += f"; {strange.get(spliced, 'foreign passages in both streams')}"
        made.append(Table(caption, head, body, quoted=list(range(ours, len(body)))))
    return made


def finding(rows: Mapping[str, Array], within: str) -> str:
    """The finding in one sentence. rows : (seeds, ways) in percent, by loss."""
    means = {name: values.mean() for name, values in rows.items()}
    best = max((name for name in means if not name.startswith(DROP.title)), key=lambda name: means[name])
    return (
        f"Trained with Drop-DTW, {means[DROP.title]:.1f} % of the passages are found in the other stream{within}; with "
        f"{best}, the best other loss, {means[best]:.1f} %."
    )


def results(
    task: Task,
    chosen: Mapping[str, Recipe],
    found: Mapping[str, Mapping[str, Array]],
    lines: Mapping[str, Array],
) -> dict[str, object]:
    """The results for results.json."""
    return {
        "chosen": {title: asdict(recipe) for title, recipe in chosen.items()},
        "tolerances": list(task.tolerances),
        "paper": {title: dict(zip(WAYS, values, strict=True)) for title, values in PAPER.items()},
        "linear_cca": {spliced: _percent(values[None]) for spliced, values in lines.items()},
        "found": {s: {title: _percent(values) for title, values in rows.items()} for s, rows in found.items()},
    }


def _percent(values: Array) -> dict[str, list[dict[str, float]]]:
    return {way: rounded(values[:, k], 2, 100) for k, way in enumerate(WAYS)}


def compose(
    report: Report, *, task: Task, found: Mapping[str, Mapping[str, Array]], tables: Sequence[Table], told: str
) -> None:
    """Fill the report with text, a figure and tables. told : the chosen settings of each row."""
    rows = {name: 100 * values[:, :, -1] for name, values in found[list(found)[-1]].items()}  # (seeds, ways)
    within = f" within ±{task.tolerances[-1]} segments" if task.tolerances[-1] else ""
    picture = dots(rows, WAYS, xlabel=f"found{within}, %", quoted=PAPER if task.papers else None)
    said = "How often a passage of sound is found in the picture (A2V) and the reverse (V2A), with standard errors."
    report.lead(finding(rows, within), "found", picture, said)
    report.heading("Cross-modality localization (Section 4.4, Table 3)")
    if not task.papers:
        report.text(f"These data ({task.kind}) are not the paper's, so its numbers on AVE are not comparable.")
        report.text(f"Settings chosen on validation videos, from equally many candidates for each row: {told}.")
    for table in tables:
        report.table(table)
