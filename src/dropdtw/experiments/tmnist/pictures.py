"""The pictures of the TMNIST report: samples, recall against noise, and alignments of single cases (Figs. 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

import dropdtw
from dropdtw import plot
from dropdtw.data import mnist, tmnist
from dropdtw.experiments.common.pools import Class, Videos
from dropdtw.experiments.common.report import Report
from dropdtw.experiments.tmnist import localization, retrieval
from dropdtw.problem.inputs import runs

BLUR = 0.5
"""The share of blurred frames in the picture of a query."""


def draw(
    report: Report,
    data: mnist.Mnist,
    classes: Sequence[Class],
    seeds: Sequence[int],
    test: Sequence[Videos],
    found: retrieval.Retrieval,
    placed: localization.Localization,
) -> None:
    """Draw everything into the report and, for the samples, beside it."""
    clips = [
        [tmnist.data_set(data.test_images, data.test_labels, part, seed, classes) for part in (False, True)]
        for seed in seeds
    ]
    _samples(report, clips[0][0], clips[0][1])
    _recall(report, found)
    _query(report, clips[0][0], clips[0][1], test[0], found)
    _sequence(report, [full for full, _ in clips], [part for _, part in clips], test, placed)


def _samples(report: Report, full: Sequence[tmnist.Clip], part: Sequence[tmnist.Clip]) -> None:
    rng = np.random.default_rng(0)
    kinds = np.linspace(0, len(full) - 1, 4).round().astype(int)
    shown = [clip for k in kinds for clip in (full[k], tmnist.blur(part[k], BLUR, rng))]
    path = report.folder / "samples.png"
    tmnist.contact_sheet(shown, path)
    report.heading("Samples")
    report.picture(
        "samples",
        path.read_bytes(),
        "Four classes: a whole trajectory, and below it a part of one as a query with half of its frames blurred. "
        "sample.gif shows the first of them move.",
    )
    tmnist.gif(full[kinds[0]], report.folder / "sample.gif")


def _recall(report: Report, found: retrieval.Retrieval) -> None:
    shown = {name: 100 * values for name, values in found.recall.items() if name != "subsequence"}  # the same as otam
    figure, ax = plt.subplots(figsize=(9.5, 4.8), layout="constrained")
    plot.curves(
        [100 * level for level in found.levels],
        shown,
        emphasis=[name for name in shown if name.startswith("Drop-DTW") or name == "dtw"],
        xlabel="blurred frames of the query, %",
        ylabel="Recall@1, %",
        title="Retrieval with spoiled queries: recall of the right video",
        ax=ax,
    )
    ax.set_ylim(0, 100)
    report.heading("Recall against noise (Fig. 3a)")
    report.picture("retrieval", figure, "Recall@1 of every method by share of blurred frames; bands: standard error.")


def _query(
    report: Report,
    full: Sequence[tmnist.Clip],
    part: Sequence[tmnist.Clip],
    videos: Videos,
    found: retrieval.Retrieval,
) -> None:
    """A query and the video it belongs to, by DTW and by Drop-DTW with the chosen constants."""
    codes, spoiled = videos.noisy(BLUR, np.random.default_rng(0))
    kind = next(k for k in range(len(full)) if part[k].trajectory.startswith("○") or k == len(full) - 1)
    setting = found.chosen["Drop-DTW, one constant"]
    C = dropdtw.costs.cosine(codes[kind], videos.full[kind])
    dropped = dropdtw.solve(C, setting.drop_x, setting.drop_z)
    warped = dropdtw.solve(C, method="dtw")
    report.heading("One query (Figs. 2 and 3b)")
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True)
    both = {"DTW": warped, "Drop-DTW": dropped}
    plot.compare(both, xlabel="frame of the whole video", ylabel="frame of the query", axes=axes)
    report.picture(
        "paths",
        figure,
        "The same match costs (dark is dear) with both paths: DTW (left) has to match the blurred frames of the query, "
        "Drop-DTW (right) drops them (orange) and follows the true trajectory.",
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
    )
    report.picture("query", figure, "Frames of the video above, of the query on the left (orange edge: blurred).")


def _sequence(
    report: Report,
    full: Sequence[Sequence[tmnist.Clip]],
    part: Sequence[Sequence[tmnist.Clip]],
    test: Sequence[Videos],
    placed: localization.Localization,
) -> None:
    """One sequence for localization: the query twice, the true intervals, what was found."""
    cases = localization.sequences(test, 20, [0, 2])
    case = next((one for one in cases if len(runs(one.truth)) == localization.EVENTS), cases[0])  # apart, to be seen
    setting = placed.chosen["Drop-DTW, longest runs"]
    a = dropdtw.solve(case.C, setting.drop, setting.drop)
    x_frames = np.concatenate([part[copy][kind].frames for copy, kind in case.medley.clips])
    z_frames = np.concatenate([full[copy][kind].frames for copy, kind in case.medley.query])
    found = runs(setting.find(case.C))
    figure = plot.with_frames(
        a,
        x_frames,
        z_frames,
        truth_x=runs(case.truth),
        title=f"An event twice in a sequence of {len(case.medley.clips)} clips: true {_spans(runs(case.truth))}, "
        f"found {_spans(found)}",
        xlabel="frame of the sequence",
        ylabel="query, twice",
    )
    report.heading("One sequence (Fig. 3c)")
    report.picture(
        "sequence", figure, "The sequence above, the query (two whole trajectories of the event) on the left."
    )


def _spans(intervals: Sequence[tuple[int, int]]) -> str:
    return " and ".join(f"{start}–{stop - 1}" for start, stop in intervals) or "nothing"
