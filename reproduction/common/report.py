"""A report: findings, figures and tables in one self-contained HTML file, and the tables as text."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dropdtw import metrics, palette
from dropdtw.files import atomic
from dropdtw.problem.inputs import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG: Final = 14
"""On a phone, a cell gets its own line if it is longer than this, or its column's name longer than twice this."""

QUOTED: Final = "quoted from the paper"
"""Label of rows whose numbers come from the paper."""

STYLE: Final = (
    palette.css()
    + """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--ground); }
h1 { font-size: 1.6rem; margin-bottom: .3rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
.about { color: var(--soft); margin-top: 0; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; display: block; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .3rem; }
.leads { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.leads figure { margin: 0; padding: 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
.leads figure:only-child { max-width: 40rem; }
.finding { font-size: 1.1rem; font-weight: 600; margin: 0 0 .7rem; }
table { border-collapse: collapse; margin: 1rem 0; min-width: min(100%, 34rem); font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; } thead th { border-bottom-width: 2px; }
tbody th { font-weight: 500; } tbody tr:hover { background: var(--panel); }
caption { text-align: left; padding-bottom: .4rem; }
.quoted { font-style: italic; color: var(--soft); }
.tag { font-style: normal; font-size: .75rem; border: 1px solid var(--line); border-radius: 1em; padding: 0 .5em;
  margin-left: .5em; white-space: nowrap; }
.scroll { overflow-x: auto; }
summary { cursor: pointer; color: var(--accent); padding: .3rem 0; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
code { background: var(--panel); padding: .1rem .3rem; border-radius: .2rem; overflow-wrap: anywhere; }
@media (max-width: 700px) { /* a row becomes a small card: nothing is scrolled sideways */
  body { margin-top: 1rem; }
  table, tbody, caption { display: block; } thead { display: none; }
  tbody tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.6rem, 1fr)); gap: .1rem .8rem;
    padding: .5rem 0; border-bottom: 1px solid var(--line); }
  tbody th, td { border: 0; padding: 0; text-align: left; }
  td:not(.long) { white-space: nowrap; font-size: .95rem; }
  tbody th { grid-column: 1 / -1; font-weight: 600; }
  td.none { display: none; } td.long { grid-column: 1 / -1; font-size: .9rem; }
  td.long::before { content: attr(data-name) ": "; color: var(--soft); }
  td:not(.long)::before { content: attr(data-name); display: block; font-size: .75rem; line-height: 1.2;
    white-space: normal; color: var(--soft); }
}
"""
)


@dataclass(frozen=True)
class Table:
    """A table of strings; the first column names the rows. quoted : indices of the rows quoted from the paper."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    quoted: Collection[int] = ()

    def html(self) -> str:
        """Render as an HTML element."""
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in self.head)
        lengths = [(len(name), max(len(row[k]) for row in self.rows)) for k, name in enumerate(self.head) if self.rows]
        long = [name > 2 * LONG or cell > LONG for name, cell in lengths[1:]]
        body = "".join(self._row(number, row, long) for number, row in enumerate(self.rows))
        caption = f"<caption>{escape(self.caption)}</caption>"
        return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'

    def _row(self, number: int, row: Sequence[str], long: Sequence[bool]) -> str:
        kind, tag = (' class="quoted"', f'<span class="tag">{QUOTED}</span>') if number in self.quoted else ("", "")
        cells = "".join(
            f'<td data-name="{escape(name)}"{_kind(cell, wide)}>{escape(cell)}</td>'
            for name, cell, wide in zip(self.head[1:], row[1:], long, strict=True)
        )
        return f'<tr{kind}><th scope="row">{escape(row[0])}{tag}</th>{cells}</tr>'

    def text(self) -> str:
        """Render as lines of text with aligned columns.

        >>> print(Table("Scores", ["method", "IoU"], [["DTW", "9.1"], ["Drop-DTW", "91.2"]], quoted=[1]).text())
        Scores
        method                             IoU
        DTW                                9.1
        Drop-DTW (quoted from the paper)  91.2
        """
        marked = [
            [f"{row[0]} ({QUOTED})", *row[1:]] if number in self.quoted else row for number, row in enumerate(self.rows)
        ]
        widths = [max(len(row[k]) for row in (self.head, *marked)) for k in range(len(self.head))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            ).rstrip()
            for row in (self.head, *marked)
        ]
        return "\n".join([self.caption, *lines])


def _kind(cell: str, wide: bool) -> str:
    """The CSS class of a cell on a phone: empty cells are hidden, cells of wide columns get their own line."""
    return ' class="none"' if cell in ("", "–") else ' class="long"' if wide else ""


def _said(text: str) -> str:
    """Escape a text for HTML and keep numbers and units together with non-breaking spaces."""
    return escape(text).replace(" %", "&nbsp;%").replace(" ×", "&nbsp;×")


def cells(values: Array, digits: int, scale: float = 1, error_digits: int | None = None) -> list[str]:
    """Format the mean ± standard error of each column of values (n, columns), times a scale; one value has no error."""
    if len(values) == 1:
        return [f"{scale * float(value):.{digits}f}" for value in values[0]]
    last = digits if error_digits is None else error_digits
    return [f"{mean:.{digits}f} ± {error:.{last}f}" for mean, error in _means(values, scale)]


def averaged(count: int, what: str) -> str:
    """What `cells` wrote, for a caption: over how many `what`, a plural.

    >>> averaged(5, "seeds"), averaged(1, "seeds")
    ('mean ± standard error of 5 seeds', '1 seed')
    """
    return f"mean ± standard error of {count} {what}" if count > 1 else f"{count} {what.removesuffix('s')}"


def rounded(values: Array, digits: int, scale: float = 1) -> list[dict[str, float]]:
    """The same values as numbers, for results.json."""
    return [{"mean": round(mean, digits), "error": round(error, digits)} for mean, error in _means(values, scale)]


def _means(values: Array, scale: float) -> list[tuple[float, float]]:
    errors = metrics.standard_error(values)
    return [(scale * float(m), scale * float(e)) for m, e in zip(values.mean(axis=0), errors, strict=True)]


@dataclass
class Report:
    """Collects sections in order, then writes `report.html` and each figure as a file to a folder.

    The page begins with the leads, one finding with its figure per experiment. The sections follow, then the details
    of the run.
    """

    title: str
    folder: Path
    leads: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    about: str = ""
    run: list[str] = field(default_factory=list)

    def introduce(self, about: str, command: str, facts: str) -> None:
        """Set the introduction, the command that created the report, if any, and the data it ran on."""
        self.about = about
        self.run = [f"<p>{_said(facts)}</p>", *([f"<p><code>{escape(command)}</code></p>"] if command else [])]

    def lead(self, finding: str, name: str, content: Figure | bytes, alt: str) -> None:
        """Add the finding of an experiment: one sentence and a figure."""
        self.leads.append(
            f'<figure><p class="finding">{_said(finding)}</p>{self._image(name, content, alt)}'
            f"<figcaption>{_said(alt)}</figcaption></figure>"
        )

    def heading(self, text: str) -> None:
        """Start a section."""
        self.parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self.parts.append(f"<p>{_said(text)}</p>")

    def table(self, table: Table) -> None:
        """Add a table."""
        self.parts.append(table.html())

    def picture(self, name: str, content: Figure | bytes, alt: str, *, folded: str = "") -> None:
        """Add a figure with a caption.

        content : a matplotlib figure, or the bytes of a PNG or GIF.
        folded : if given, the figure is collapsed under this label.
        """
        made = f"<figure>{self._image(name, content, alt)}<figcaption>{_said(alt)}</figcaption></figure>"
        self.parts.append(f"<details><summary>{escape(folded)}</summary>{made}</details>" if folded else made)

    def _image(self, name: str, content: Figure | bytes, alt: str) -> str:
        """An image element with embedded data; the image is also written next to the report."""
        if not isinstance(content, bytes):
            import matplotlib.pyplot as plt

            memory = io.BytesIO()
            content.savefig(memory, format="png", dpi=150)
            plt.close(content)
            content = memory.getvalue()
        kind = "gif" if content.startswith(b"GIF8") else "png"
        atomic.write(self.folder / f"{name}.{kind}", content)
        data = base64.b64encode(content).decode()
        return f'<img src="data:image/{kind};base64,{data}" alt="{escape(alt)}">'

    def write(self) -> Path:
        """Write report.html."""
        about = [f'<p class="about">{escape(self.about)}</p>'] if self.about else []
        leads = ['<div class="leads">', *self.leads, "</div>"] if self.leads else []
        run = ["<h2>How it was run</h2>", *self.run] if self.run else []
        page = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            # Without this icon, browsers request /favicon.ico.
            '<link rel="icon" href="data:,">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head><body>\n"
            f"<h1>{escape(self.title)}</h1>\n" + "\n".join([*about, *leads, *self.parts, *run]) + "\n</body></html>\n"
        )
        return atomic.write(self.folder / "report.html", page)
