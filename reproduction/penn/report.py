"""The output of `python -m reproduction penn`: tables, results.json and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from dropdtw import plot
from dropdtw.problem.inputs import Array
from reproduction.common.losses import DROP
from reproduction.common.report import Report, Table, averaged, cells, rounded
from reproduction.data.penn import JOINTS, LIMBS
from reproduction.penn.model import LOSSES, Objective, make_pair
from reproduction.penn.settings import Settings
from reproduction.penn.videos import Scores, Splits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Found = Mapping[str, Sequence[Sequence[Scores]]]


def described(settings: Settings, objectives: Sequence[Objective]) -> str:
    """Describe the chosen settings of each level."""
    told = []
    for level, objective in zip(settings.levels, objectives, strict=True):
        drop = f"{objective.percentile:g}th percentile, " if LOSSES[objective.loss].drops else ""
        told.append(f"at {100 * level:.0f} %: {drop}temperature {objective.gamma_match:g}")
    return "; ".join(told)


def groups(splits: Splits) -> dict[str, tuple[str, ...]]:
    """The groups of actions to report, plus all actions if there are several groups."""
    every = tuple(action for actions in splits.groups.values() for action in actions)
    return dict(splits.groups) if len(splits.groups) == 1 else {**splits.groups, "all": every}


def by_seed(rows: Sequence[Sequence[Scores]], actions: Sequence[str]) -> Array:
    """The mean τ of these actions, (seeds, levels)."""
    return np.array([[scores.over(actions) for scores in level] for level in rows]).T


def errors(rows: Sequence[Sequence[Scores]]) -> Array:
    """The mean phase error, (seeds, levels), for known phases."""
    return np.array([[np.mean(list(scores.error.values())) for scores in level] for level in rows]).T


def tables(splits: Splits, settings: Settings, base: Scores, found: Found) -> list[Table]:
    """Tables of τ by level and group, of the phase error if phases are known, and of τ by action."""
    head = ["", *(f"{100 * level:.0f} %" for level in settings.levels)]
    what = f"{averaged(settings.seeds, 'trained encoders')}, by share of outliers in training"
    rows = []
    for group, actions in groups(splits).items():
        rows.append([f"{group}: raw", *[f"{base.over(actions):.3f}"] * len(settings.levels)])
        for name, values in found.items():
            rows.append([f"{group}: {LOSSES[name].title}", *cells(by_seed(values, actions), 3)])
        gap = by_seed(found["drop"], actions) - by_seed(found["smooth"], actions)
        rows.append([f"{group}: difference", *cells(gap, 3)])
    made = [Table(f"Kendall's τ on clean test videos, {what}", head, rows)]
    if base.error:
        plain = 100 * float(np.mean(list(base.error.values())))
        rows = [["raw", *[f"{plain:.1f}"] * len(settings.levels)]]
        rows += [[LOSSES[name].title, *cells(errors(values), 1, 100)] for name, values in found.items()]
        made.append(Table(f"Phase error of the nearest neighbor in % of the action, {what}", head, rows))
    each = [
        [action, f"{base.tau[action]:.2f}",
         *(f"{np.mean([s.tau[action] for s in values[k]]):.2f}" for k in (0, -1) for values in found.values())]
        for actions in splits.groups.values() for action in actions
    ]  # fmt: skip
    ends = [f"{LOSSES[name].title}, {100 * settings.levels[k]:.0f} %" for k in (0, -1) for name in found]
    made.append(Table("Kendall's τ by action", ["action", "raw", *ends], each))
    return made


def results(splits: Splits, chosen: Mapping[str, Sequence[Objective]], base: Scores, found: Found) -> dict[str, object]:
    """The results for results.json."""
    return {
        "chosen": {name: [asdict(objective) for objective in some] for name, some in chosen.items()},
        "raw": {group: round(base.over(actions), 4) for group, actions in groups(splits).items()},
        "raw_by_action": {action: round(value, 4) for action, value in base.tau.items()},
        "tau": {
            group: {name: rounded(by_seed(values, actions), 4) for name, values in found.items()}
            for group, actions in groups(splits).items()
        },
        "phase_error": {name: rounded(errors(values), 4) for name, values in found.items()} if base.error else {},
    }


def compose(
    report: Report,
    *,
    splits: Splits,
    settings: Settings,
    chosen: Mapping[str, Sequence[Objective]],
    tables: Sequence[Table],
    base: Scores,
    found: Found,
    poses: bool,
) -> None:
    """Fill the report with text, tables and figures."""
    said = "Kendall's τ by share of outliers in training; bands are standard errors. Higher is better."
    report.lead(finding(splits, settings, base, found), "tau", curves(splits, settings, base, found), said)
    report.heading("Robustness to outliers (Section 4.3, Fig. 5)")
    for name, objectives in chosen.items():
        report.text(f"{LOSSES[name].title}, chosen on held-out training videos: {described(settings, objectives)}.")
    for table in tables:
        report.table(table)
    if not settings.images:
        report.heading("The contamination")
        picture = contamination(splits, settings, poses)
        report.picture("contamination", picture, "A training pair: X above, Ŷ below with its outliers in orange")


def finding(splits: Splits, settings: Settings, base: Scores, found: Found) -> str:
    """The finding in one sentence."""
    *_, actions = groups(splits).values()
    reached = ", ".join(
        f"{by_seed(found[n], actions)[:, -1].mean():.3f} with {LOSSES[n].title}" for n in reversed(list(found))
    )
    return (
        f"With {100 * settings.levels[-1]:.0f} % outliers in training, the order of nearest neighbors agrees with time "
        f"to τ = {reached}; without training, τ = {base.over(actions):.3f}."
    )


def curves(splits: Splits, settings: Settings, base: Scores, found: Found) -> Figure:
    """Draw Fig. 5: τ against the share of outliers, for each group of actions."""
    import matplotlib.pyplot as plt

    shown = groups(splits)
    figure, axes = plt.subplots(1, len(shown), figsize=(5.2 * len(shown), 3.8), layout="constrained", squeeze=False)
    at = [100 * level for level in settings.levels]
    for ax, (group, actions) in zip(axes[0], shown.items(), strict=True):
        lines = {LOSSES[name].title: by_seed(found[name], actions) for name in reversed(list(found))}
        lines["raw"] = np.full((1, len(at)), base.over(actions))
        plot.curves(
            at, lines, emphasis=[DROP.title], xlabel="outliers in training, %", ylabel="Kendall's τ", title=group, ax=ax
        )
    return figure


def contamination(splits: Splits, settings: Settings, poses: bool, level: float = 0.2) -> Figure:
    """Draw X and Ŷ of one pair, frame by frame, like the paper's figure of contamination."""
    import matplotlib.pyplot as plt

    clips = splits.train
    pair = make_pair(clips, 0, level, settings.seed, share_of=settings.share_of)
    figure, axes = plt.subplots(2, 1, figsize=(0.5 * len(pair.y), 2.2), layout="constrained")
    for ax, places, marked in zip(axes, (pair.x, pair.y), (np.zeros(len(pair.x), bool), pair.outlier), strict=True):
        frames = np.stack([clips.read(int(video), np.array([frame]))[0] for video, frame in places])
        if poses:
            _figures(ax, frames.reshape(-1, JOINTS, 2), marked)
        else:
            side = round(frames.shape[1] ** 0.5)
            plot.strip(frames.reshape(-1, side, side), count=len(frames), marked=marked, ax=ax)
        ax.set_xlim(-0.5, len(pair.y) - 0.5)
    names = [clips.actions[int(part[0, 0])] for part in (pair.x, pair.y[pair.outlier])]
    figure.suptitle(f"X and Ŷ: {names[0]}; outliers (orange): {names[1]}", fontsize="medium")
    return figure


def _figures(ax: Any, poses: Array, marked: Array) -> None:
    """Draw poses (T, 13, 2) side by side as stick figures, with the marked ones in orange."""
    for place, (pose, strange) in enumerate(zip(poses, marked, strict=True)):
        for a, b in LIMBS:
            ax.plot(
                place + pose[[a, b], 0], pose[[a, b], 1], color=plot.DROPPED if strange else plot.MATCH, linewidth=1
            )
    ax.set(ylim=(0.7, -0.7), aspect="equal")
    ax.set_axis_off()
