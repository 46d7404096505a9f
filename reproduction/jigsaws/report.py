"""The output of `python -m reproduction jigsaws`: tables, results.json and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.common.pictures import dots
from reproduction.common.report import Report, Table, averaged, cells, rounded
from reproduction.steps.tables import differences

SCORES: Final = ("accuracy", "IoU", "segment F1@50", "edit score")
REFERENCES: Final = ("Drop-DTW, percentile", "Drop-DTW, percentile, contrast of orders")
"""The rows that others are compared with. D³TW contrasts orders, as the second does."""


@dataclass(frozen=True)
class Row:
    """Scores (seeds, V, 4) of each subject's trials, with the junk and as recorded.

    percentiles : the drop costs in training that were chosen for each subject, if any.
    """

    videos: Sequence[Array]
    recorded: Sequence[Array]
    percentiles: Sequence[float]

    def by_subject(self, *, recorded: bool = False) -> Array:
        """(subjects, 4) means over seeds and trials, in percent."""
        means = [one.mean(axis=(0, 1)) for one in (self.recorded if recorded else self.videos)]
        return np.asarray(100 * np.stack(means))

    def by_seed(self) -> Array:
        """(seeds, 4) means over all trials, in percent."""
        return np.asarray(100 * np.concatenate(self.videos, axis=1).mean(axis=1))


Scores = Mapping[float, Mapping[str, Row]]


def reference(row: str) -> str:
    """The row that a row is compared with: same regularizer, and contrast of orders or not."""
    name, plus, cluster = row.partition(" + ")
    contrast = name == "D³TW" or name == REFERENCES[1]
    return REFERENCES[contrast] + plus + cluster


def tables(scores: Scores) -> list[Table]:
    """A table for each share of junk: scores over subjects, IoU on trials as recorded, and paired differences."""
    made = []
    for junk, rows in sorted(scores.items()):
        lines = []
        for name, row in rows.items():
            values = row.by_subject()
            other = rows.get(reference(name))
            apart = differences(values, other.by_subject())[1] if other is not None else "–"
            lines.append(
                [
                    name,
                    *cells(values, 1),
                    cells(row.by_subject(recorded=True)[:, 1:2], 1)[0],
                    apart,
                    ", ".join(f"{p:g}" for p in row.percentiles) or "–",
                ]
            )
        subjects, seeds = len(values), len(next(iter(rows.values())).videos[0])
        caption = (
            f"Junk {100 * junk:.0f} %: in %, {averaged(subjects, 'subjects')}, each the mean of its trials and of "
            f"{seeds} seeds; Δ: paired difference to Drop-DTW with a percentile and the same L_clust (with a "
            "contrast of orders for losses that have one), ± half of its 95 % confidence interval over subjects"
        )
        made.append(Table(caption, ["", *SCORES, "IoU as recorded", "Δ IoU", "percentiles chosen"], lines))
    return made


def results(scores: Scores) -> dict[str, object]:
    """The results for results.json, in percent."""
    return {
        "junk": {
            f"{100 * junk:.0f}": {
                name: {
                    "by_subject": row.by_subject().round(2).tolist(),
                    "by_seed": row.by_seed().round(2).tolist(),
                    "recorded": row.by_subject(recorded=True).round(2).tolist(),
                    "percentiles": list(row.percentiles),
                    "mean": dict(zip(SCORES, rounded(row.by_subject(), 2), strict=True)),
                }
                for name, row in rows.items()
            }
            for junk, rows in sorted(scores.items())
        }
    }


def compose(report: Report, *, scores: Scores, tables: Sequence[Table]) -> None:
    """Fill the report with the finding, a figure and the tables."""
    most = 0.4 if 0.4 in scores else max(scores)
    rows = {name: row.by_subject()[:, 1:2] for name, row in scores[most].items() if " + " not in name}
    best = max((name for name in rows if name.startswith("Drop")), key=lambda name: float(rows[name].mean()))
    others = ", ".join(f"{name} {rows[name].mean():.1f} %" for name in ("SmoothDTW", "OTAM", "D³TW") if name in rows)
    finding = f"With {100 * most:.0f} % junk, {best} has an IoU of {rows[best].mean():.1f} %; {others}."
    alt = f"IoU with {100 * most:.0f} % junk, mean and standard error over subjects, without L_clust."
    report.lead(finding, "losses", dots(rows, ["IoU"], xlabel="IoU, %"), alt)
    for table in tables:
        report.table(table)
