"""Charts of the experiments, drawn from the tables of the pages that show them: each number stands in one place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent
PAGES = ("beyond.md", "reproduction.md")
"""Whose tables are drawn."""
OURS, OTHERS, PAPER = "#0072b2", "#7f7f7f", "#000000"
"""Drop-DTW (or what it is used with), everything else, and what is quoted."""


class Score(NamedTuple):
    """A cell of a table: a number, its standard error (0 where none is given), and how the table writes it."""

    mean: float
    error: float
    text: str


def table(page: str, heading: str) -> list[dict[str, str]]:
    """The first table below a heading, a dictionary for each row; an empty first cell repeats the one above it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    below = re.search(rf"^#+ {re.escape(heading)}.*?\n(\|.+?)\n\n", text + "\n\n", re.MULTILINE | re.DOTALL)
    if below is None:
        raise ValueError(f"{page} has no table below a heading {heading!r}")
    lines = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in below[1].splitlines()]
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]
    first = lines[0][0]
    for above, row in pairwise(rows):
        row[first] = row[first] or above[first]
    return rows


def score(cell: str, part: int = 0) -> Score | None:
    """The number of a cell such as "82 ± 2", "96.8 %" or, in its second part, "53.4 / 30.6"; None where there is none.

    >>> score("−0.004 ± 0.009"), score("53.4 / **30.0**", 1), score("–")
    (Score(mean=-0.004, error=0.009, text='-0.004'), Score(mean=30.0, error=0.0, text='30.0'), None)
    """
    cells = cell.replace("−", "-").split("/")
    numbers = re.findall(r"-?\d+(?:\.\d+)?", cells[part]) if part < len(cells) else []
    return Score(float(numbers[0]), float([*numbers, "0"][1]), numbers[0]) if numbers else None


def draw(name: str) -> Any:
    """The figure of a chart."""
    return CHARTS[name]()


def lines(
    levels: Sequence[str], curves: dict[str, Sequence[str]], ours: dict[str, str], *, xlabel: str, ylabel: str
) -> Any:
    """Curves with error bars: `ours` blue, each in its line style, and the others gray, each with its marker."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    at = [float(level.split()[0]) for level in levels]
    markers = iter("s^vDPX*")
    for name, cells in curves.items():
        found = [score(cell) for cell in cells]
        assert all(each is not None for each in found), (name, cells)
        blue = name in ours
        ax.errorbar(at, [s.mean for s in found], [s.error for s in found], label=name,
                    color=OURS if blue else OTHERS, linewidth=2.2 if blue else 1.1, capsize=2,
                    linestyle=ours.get(name, "-"), marker="o" if blue else next(markers), markersize=4.5)  # fmt: skip
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    return figure


def dots(
    rows: Sequence[tuple[str, Sequence[Score | None]]],
    titles: Sequence[str],
    *,
    ours: Callable[[str], bool] = lambda name: "Drop-DTW" in name,
    quoted: Callable[[str], bool] = lambda name: name.startswith("paper"),
) -> Any:
    """A panel for each score and a line for each row: a dot with its standard error and its number, ours blue."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(titles), figsize=(6.2, 0.8 + 0.3 * len(rows)), sharey=True, squeeze=False,
                                layout="constrained")  # fmt: skip
    for column, (ax, title) in enumerate(zip(axes[0], titles, strict=True)):
        for y, (name, scores) in enumerate(rows):
            found = scores[column]
            if found is None:
                continue
            color = OURS if ours(name) and not quoted(name) else PAPER if quoted(name) else OTHERS
            ax.errorbar(found.mean, y, xerr=found.error or None, color=color, capsize=2.5, markersize=7,
                        marker="D" if quoted(name) else "o", mfc="white" if quoted(name) else color)  # fmt: skip
            ax.annotate(found.text, (found.mean + found.error, y), (6, 0), textcoords="offset points",
                        va="center", fontsize="small", color=color)  # fmt: skip
        ax.set_title("\n".join(fill(line, 60 // len(titles)) for line in title.splitlines()), fontsize="medium")
        ax.locator_params(axis="x", nbins=3 if len(titles) > 1 else 6, steps=[1, 2, 5, 10])
        ax.margins(x=0.22)
        ax.grid(axis="x", alpha=0.3)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0][0].set_yticks(range(len(rows)), [name.replace("`", "") for name, _ in rows])
    axes[0][0].set_ylim(len(rows) - 0.4, -0.6)
    return figure


def panels(
    page: str,
    heading: str,
    columns: Sequence[str],
    *,
    name: str | None = None,
    part: int = 0,
    keep: Callable[[str], bool] = lambda _: True,
    titles: Sequence[str] | None = None,
    **how: Any,
) -> Any:
    """Dots for some columns of a table.

    name : the column that names the rows; the first if None.   part : of cells such as "53.4 / 30.6".
    keep : which rows to draw, by their names.
    """
    rows = table(page, heading)
    name = name or next(iter(rows[0]))
    chosen = [(row[name], [score(row[column], part) for column in columns]) for row in rows if keep(row[name])]
    chosen = [(each, scores) for each, scores in chosen if any(found is not None for found in scores)]
    return dots(chosen, titles or [f"{column} in %" for column in columns], **how)


def retrieval() -> Any:
    """Recall against blur, for the methods that matter to the argument."""
    rows = {row.pop("method"): row for row in table("reproduction.md", "Retrieval")}
    shown = ("Drop-DTW, percentile", "Drop-DTW, two constants", "Drop-DTW, one constant", "Needleman–Wunsch",
             "Smith–Waterman", "OTAM, subsequence DTW", "DTW")  # fmt: skip
    levels = [level for level in rows["DTW"] if level.endswith("%")]
    return lines(levels, {name: [rows[name][level] for level in levels] for name in shown},
                 {shown[0]: "-", shown[1]: "--", shown[2]: ":"}, xlabel="blurred frames in %",
                 ylabel="Recall@1 in %")  # fmt: skip


def penn() -> Any:
    """Kendall's tau against the share of outliers, over all actions."""
    heading = "Penn Action: representation learning with outliers (Section 4.3, Fig. 5)"
    rows = {row.pop(""): row for row in table("reproduction.md", heading)}
    return lines(list(rows["Drop-DTW"]),
                 {name: list(rows[name].values()) for name in ("Drop-DTW", "SmoothDTW")},
                 {"Drop-DTW": "-"}, xlabel="outliers in training in %", ylabel="Kendall's τ, all actions")  # fmt: skip


def orders() -> Any:
    """IoU against noise for each way to state an order."""
    rows = table("beyond.md", "Inference")
    levels = list(dict.fromkeys(row["noise"] for row in rows))
    names = ("true order (bound)", "graph", "list", "no order")
    curves = {name: [row["IoU"] for row in rows if row["order"] == name] for name in names}
    return lines(levels, curves, {"graph": "-"}, xlabel="noise of the simulated features", ylabel="IoU in %")


def grid() -> Any:
    """Words found within two frames, a panel for each kind of training streams."""
    rows = table("reproduction.md", "Audio-visual localization (Section 4.4, Table 3)")
    kinds = ("both", "visual", "clean")
    titles = ("splices in both streams, %", "splices in the visual stream, %", "clean streams, %")
    chosen = [(row["loss"].replace("the paper's ", ""), [score(row[f"{kind}, A2V"]) for kind in kinds]) for row in rows]
    return dots(chosen, titles)


def openings() -> Any:
    """A panel for each data set: its first score without, with a chosen and with the suggested opening cost."""
    rows = [row for row in table("beyond.md", "Opening costs for runs of drops") if "%" in row["none"]]
    first = {row["data"].split(",")[0].split(" in ")[0]: row for row in reversed(rows)}
    ways = ("none", "chosen on validation", "suggested")
    chosen = [(way, [score(row[way]) for row in reversed(first.values())]) for way in ways]
    titles = [f"{name}: {row['score']}, %" for name, row in reversed(first.items())]
    return dots(chosen, titles, ours=lambda name: name != "none")


SCORES = ("recall", "accuracy", "IoU")
VIDEOS = ("GTEA (21 videos)", "50Salads eval (50)", "50Salads mid (50)", "JIGSAWS (39)")
CHARTS: dict[str, Callable[[], Any]] = {
    "real-video": lambda: panels(
        "reproduction.md",
        "Real video: Table 2",
        VIDEOS,
        part=1,
        keep=lambda name: "DTW" in name and "OTAM" not in name,
        titles=[f"{name.split(' (')[0]}\nIoU, %" for name in VIDEOS],
    ),
    "music": lambda: panels(
        "reproduction.md",
        "Music: score against performance",
        ("matches", "insertions", "deletions"),
        ours=lambda name: name.startswith("time"),
    ),
    "transcripts": lambda: panels(
        "reproduction.md",
        "Training from transcripts",
        ("0 %", "40 %", "60 %"),
        titles=[f"{share} % junk: IoU, %" for share in (0, 40, 60)],
    ),
    "retrieval": retrieval,
    "localization": lambda: panels(
        "reproduction.md", "Localization", SCORES[1:], keep=lambda name: "nothing" not in name
    ),
    "losses": lambda: panels("reproduction.md", "Table 1: losses", ("recall", "IoU")),
    "ablation": lambda: panels("reproduction.md", "Table 4: what the losses contribute", ("recall", "IoU")),
    "minimum": lambda: panels("reproduction.md", "Table 5: the minimum", SCORES, ours=lambda name: True),
    "drop-cost": lambda: panels("reproduction.md", "Table 6: the drop cost", SCORES, ours=lambda name: True),
    "inference": lambda: panels(
        "reproduction.md",
        "Table 2: methods of inference",
        ("`tmnist-steps`", "UTKinect", "transcripts: accuracy / IoU / F1"),
        part=1,
        titles=("tmnist-steps: IoU, %", "UTKinect: IoU, %", "transcripts: IoU, %"),
    ),
    "penn": penn,
    "grid": grid,
    "openings": openings,
    "orders": orders,
    "training": lambda: panels("beyond.md", "Training from orders alone", ("accuracy",), ours=lambda n: n == "graph"),
    "digits": lambda: panels("beyond.md", "Digits: shuffled steps", SCORES, ours=lambda name: name == "graph"),
}
