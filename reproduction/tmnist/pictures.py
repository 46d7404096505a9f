"""The figures of the TMNIST report: samples, recall against noise, and single alignments (Figs. 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

import dropdtw
from dropdtw import plot
from dropdtw.problem.inputs import runs
from reproduction.common.pools import Class, Videos
from reproduction.common.report import Report
from reproduction.data import mnist, tmnist
from reproduction.tmnist import localization, retrieval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUR = 0.5
"""Share of blurred frames in the figure of a query."""


TITLES = {
    "dtw": "DTW",
    "otam": "OTAM",
    "needleman_wunsch": "Needleman–Wunsch",
    "smith_waterman": "Smith–Waterman",
    "lcss": "LCSS",
}


def title(name: str) -> str:
    """The display name of a row."""
    return TITLES.get(name, name)


def best_rows(found: retrieval.Retrieval) -> tuple[str, str]:
    """The rows with the highest mean recall: of Drop-DTW, and of the other methods except DTW."""
    drop = [name for name in found.recall if name.startswith("Drop-DTW")]
    other = [name for name in found.recall if name not in drop and name != "dtw"]
    best, second = (max(names, key=lambda name: float(found.recall[name].mean())) for names in (drop, other))
    return best, second


@dataclass(frozen=True, eq=False)
class Pictures:
    """Adds figures to a report. seeds : seeds of the clips in `test`, to render them again."""

    data: mnist.Mnist
    classes: Sequence[Class]
    seeds: Sequence[int]
    test: Sequence[Videos]

    @cached_property
    def clips(self) -> list[list[Sequence[tmnist.Clip]]]:
        """The whole and partial trajectories of each set, as videos."""
        images, labels = self.data.test_images, self.data.test_labels
        return [
            [tmnist.data_set(images, labels, part, seed, self.classes) for part in (False, True)] for seed in self.seeds
        ]

    def lead_retrieval(self, report: Report, found: retrieval.Retrieval, finding: str) -> None:
        """Draw recall against noise for the most important methods."""
        drop, other = best_rows(found)
        figure = _curves(found, [drop, "dtw", other], (5.4, 3.6))
        said = "Recall@1 by share of blurred frames, of Drop-DTW, DTW and the best other method. Bands: standard error."
        report.lead(finding, "retrieval", figure, said)

    def lead_localization(self, report: Report, placed: localization.Localization, finding: str) -> None:
        """Draw one sequence with the query twice, the true intervals and the result (Fig. 3c)."""
        cases = localization.sequences(self.test, 20, [0, 2])
        apart = (one for one in cases if len(runs(one.truth)) == localization.EVENTS)  # so that both events are visible
        case = next(apart, cases[0])
        setting = placed.chosen["Drop-DTW, longest runs"]
        a = dropdtw.solve(case.C, setting.drop, setting.drop)
        figure = plot.with_frames(
            a,
            np.concatenate([self.clips[copy][1][kind].frames for copy, kind in case.medley.clips]),
            np.concatenate([self.clips[copy][0][kind].frames for copy, kind in case.medley.query]),
            truth_x=runs(case.truth),
            title=f"true {_spans(runs(case.truth))}, found {_spans(runs(setting.find(case.C)))}",
            xlabel="frame of the sequence",
            ylabel="query, twice",
            size=(5.4, 4.0),
        )
        said = (
            f"An event twice in a sequence of {len(case.medley.clips)} clips (above); on the left the query, two whole "
            "trajectories of the event."
        )
        report.lead(finding, "sequence", figure, said)

    def samples(self, report: Report) -> None:
        """Add an animated clip, and some clips as film strips."""
        full, part = self.clips[0]
        rng = np.random.default_rng(0)
        kinds = np.linspace(0, len(full) - 1, 4).round().astype(int)
        shown = [clip for k in kinds for clip in (full[k], tmnist.blur(part[k], BLUR, rng))]
        sheet, moving = report.folder / "samples.png", report.folder / "sample.gif"
        tmnist.contact_sheet(shown, sheet)
        tmnist.gif(full[kinds[0]], moving)
        report.picture("sample", moving.read_bytes(), "A whole trajectory, the first one below.")
        report.picture(
            "samples",
            sheet.read_bytes(),
            "Four classes: a whole trajectory, and below it a partial one as a query, with half of its frames blurred.",
        )

    def all_methods(self, report: Report, found: retrieval.Retrieval) -> None:
        """Draw recall against noise for every method, collapsed (Fig. 3a)."""
        names = [name for name in found.recall if name != "subsequence"]  # the same as otam
        said = "Recall@1 of every method by share of blurred frames; bands: standard error."
        report.picture("methods", _curves(found, names, (9.5, 5.2)), said, folded="Curves of every method")

    def query(self, report: Report, found: retrieval.Retrieval) -> None:
        """Draw a query and its video, aligned by DTW and by Drop-DTW with the chosen constants."""
        (full, part), videos = self.clips[0], self.test[0]
        codes, spoiled = videos.noisy(BLUR, np.random.default_rng(0))
        kind = next(k for k in range(len(full)) if part[k].trajectory.startswith("○") or k == len(full) - 1)
        setting = found.chosen["Drop-DTW, one constant"]
        C = dropdtw.costs.cosine(codes[kind], videos.full[kind])
        dropped = dropdtw.solve(C, setting.drop_x, setting.drop_z)
        figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), layout="constrained", sharey=True)
        both = {"DTW": dropdtw.solve(C, method="dtw"), "Drop-DTW": dropped}
        plot.compare(both, xlabel="frame of the whole video", ylabel="frame of the query", axes=axes)
        report.picture(
            "paths",
            figure,
            "One query: the same match costs (dark is expensive) with both paths. DTW (left) must match the blurred "
            "frames of the query, Drop-DTW (right) may drop them.",
        )
        frames = np.where(spoiled[kind][:, None, None], tmnist.blurred(part[kind].frames), part[kind].frames)
        figure = plot.with_frames(
            dropped,
            full[kind].frames,
            frames,
            spoiled_z=spoiled[kind],
            title=f"A query of {len(frames)} frames, {int(spoiled[kind].sum())} blurred, and the video it is part of",
            xlabel="frame of the whole video",
            ylabel="query",
            size=(7, 5),
        )
        report.picture("query", figure, "The same query: frames of the video above, frames of the query on the left.")


def _curves(found: retrieval.Retrieval, names: Sequence[str], size: tuple[float, float]) -> Figure:
    """Draw the recall of these rows against noise."""
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    plot.curves(
        [100 * level for level in found.levels],
        {title(name): 100 * found.recall[name] for name in names},
        emphasis=[name for name in names if name.startswith("Drop-DTW")],
        xlabel="blurred frames of the query, %",
        ylabel="Recall@1, %",
        ax=ax,
    )
    ax.set_ylim(0, 100)
    return figure


def _spans(intervals: Sequence[tuple[int, int]]) -> str:
    return " and ".join(f"{start}–{stop - 1}" for start, stop in intervals) or "nothing"
