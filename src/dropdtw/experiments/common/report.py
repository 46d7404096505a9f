"""A report: tables and pictures as one HTML file that needs nothing else, and the same tables as text."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dropdtw import metrics
from dropdtw.files import atomic
from dropdtw.problem.inputs import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom-width: 2px; }
tbody tr:hover { background: var(--soft); } caption { text-align: left; padding-bottom: .4rem; }
.scroll { overflow-x: auto; } figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: white; } figcaption { color: GrayText; font-size: .9rem; }
code { background: var(--soft); padding: .1rem .3rem; border-radius: .2rem; }
"""


@dataclass(frozen=True)
class Table:
    """A table of texts; the first column names the rows."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def html(self) -> str:
        """As an HTML element."""
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in self.head)
        body = "".join(
            f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(c)}</td>" for c in row[1:]) + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{escape(self.caption)}</caption>"
        return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'

    def text(self) -> str:
        """As lines of text, columns aligned.

        >>> print(Table("Scores", ["method", "IoU"], [["DTW", "9.1"], ["Drop-DTW", "91.2"]]).text())
        Scores
        method     IoU
        DTW        9.1
        Drop-DTW  91.2
        """
        widths = [max(len(row[k]) for row in (self.head, *self.rows)) for k in range(len(self.head))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            ).rstrip()
            for row in (self.head, *self.rows)
        ]
        return "\n".join([self.caption, *lines])


def cells(values: Array, digits: int, scale: float = 1) -> list[str]:
    """The mean ± standard error of each column of (n, columns) values, times a scale, as texts."""
    return [f"{mean:.{digits}f} ± {error:.{digits}f}" for mean, error in _means(values, scale)]


def rounded(values: Array, digits: int, scale: float = 1) -> list[dict[str, float]]:
    """The same as numbers, for results.json."""
    return [{"mean": round(mean, digits), "error": round(error, digits)} for mean, error in _means(values, scale)]


def _means(values: Array, scale: float) -> list[tuple[float, float]]:
    errors = metrics.standard_error(values)
    return [(scale * float(m), scale * float(e)) for m, e in zip(values.mean(axis=0), errors, strict=True)]


@dataclass
class Report:
    """Collects parts in order, then writes `report.html` and one PNG for each picture into a folder."""

    title: str
    folder: Path
    parts: list[str] = field(default_factory=list)

    def introduce(self, about: str, command: str, facts: str) -> None:
        """Say what the report is about, the command that made it, where there is one, and what it was run on."""
        self.text(about)
        if command:
            self.code(command)
        self.text(facts)

    def heading(self, text: str) -> None:
        """Begin a section."""
        self.parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self.parts.append(f"<p>{escape(text)}</p>")

    def code(self, text: str) -> None:
        """Add a command."""
        self.parts.append(f"<p><code>{escape(text)}</code></p>")

    def table(self, table: Table) -> None:
        """Add a table."""
        self.parts.append(table.html())

    def picture(self, name: str, content: Figure | bytes, alt: str) -> None:
        """Add a picture, a figure of matplotlib or the bytes of a PNG, with a sentence that says what it shows."""
        if not isinstance(content, bytes):
            import matplotlib.pyplot as plt

            memory = io.BytesIO()
            content.savefig(memory, format="png", dpi=110)
            plt.close(content)
            content = memory.getvalue()
        atomic.write(self.folder / f"{name}.png", content)
        data = base64.b64encode(content).decode()
        self.parts.append(
            f'<figure><img src="data:image/png;base64,{data}" alt="{escape(alt)}">'
            f"<figcaption>{escape(alt)}</figcaption></figure>"
        )

    def write(self) -> Path:
        """Write report.html."""
        page = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            # Without an icon of its own a page makes browsers ask for /favicon.ico.
            '<link rel="icon" href="data:,">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head><body>\n"
            f"<h1>{escape(self.title)}</h1>\n" + "\n".join(self.parts) + "\n</body></html>\n"
        )
        return atomic.write(self.folder / "report.html", page)
