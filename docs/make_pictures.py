"""Draws the pictures of the documentation into docs/pictures, while the site is built or as a program.

Most pictures are drawn by the code of the pages: it is run from the top, and where a page shows a picture, what has
been drawn since the last one is saved under its name. `table-*.svg` are drawn from `dropdtw.tables.recurrence`, and
`chart-*.svg` from the tables of numbers in the pages (`charts.py`).
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "pictures"
PAGES = (
    "index.md",
    "start.md",
    "drop-cost.md",
    "recipes.md",
    "gallery.md",
    "orders.md",
    "windows.md",
    "sensors.md",
    "diff.md",
    "sklearn.md",
    "speech.md",
)
TABLES = (
    *("dtw", "one_sided", "two_sided", "algorithm_2", "subsequence", "needleman_wunsch", "smith_waterman"),
    *("one_sided_charged", "two_sided_charged", "symmetric2", "symmetric_p1", "asymmetric"),
)
SHOWN = re.compile(r"!\[[^\]]*\]\(pictures/([\w-]+\.svg)\)")
STYLE = {"svg.hashsalt": "dropdtw", "font.size": 9, "savefig.facecolor": "white"}


def on_pre_build(config: Any) -> None:
    """Draw what is missing or out of date before MkDocs reads the folder."""
    sources = [*DOCS.glob("*.md"), *DOCS.glob("*.py"), *(DOCS.parent / "src" / "dropdtw").glob("*.py")]
    sources += (DOCS.parent / "src" / "dropdtw" / "plot").glob("*.py")
    made = [PICTURES / name for name in wanted()]
    if not all(p.exists() for p in made) or min(map(_age, made)) < max(map(_age, sources)):
        main()


def wanted() -> list[str]:
    """The names of all pictures."""
    pages = [name for page in PAGES for name in SHOWN.findall((DOCS / page).read_text(encoding="utf-8"))]
    drawn = [f"table-{name}.svg" for name in TABLES] + [f"chart-{name}.svg" for name in _beside("charts").CHARTS]
    return pages + drawn


def main() -> None:
    """Draw all pictures."""
    import matplotlib

    matplotlib.use("Agg")
    PICTURES.mkdir(exist_ok=True)
    with matplotlib.rc_context(STYLE):
        for page in PAGES:
            draw_page(page)
        for name in TABLES:
            draw_table(name)
        for name in _beside("charts").CHARTS:
            draw_chart(name)


def draw_page(page: str) -> None:
    """Run the code of a page, and save a picture wherever it shows one."""
    import matplotlib.pyplot as plt

    parts = SHOWN.split((DOCS / page).read_text(encoding="utf-8"))
    known: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(DOCS.parent)  # pages name files from there
    try:
        for text, name in zip(parts[::2], [*parts[1::2], None], strict=True):
            for example in doctest.DocTestParser().get_examples(text, page):
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(example.source, f"<{page}>", "exec"), known)
            if name is not None:
                _save(plt.gcf(), name)
            plt.close("all")
    finally:
        os.chdir(before)


def draw_table(name: str) -> None:
    """Draw one table of `dropdtw.tables.recurrence`."""
    import matplotlib.pyplot as plt

    from dropdtw.tables import recurrence

    automaton = _beside("automaton")
    figure, ax = plt.subplots(layout="constrained")
    plain = name.removesuffix("_charged")
    automaton.draw(getattr(recurrence, plain)(**({} if plain == name else {"charged": True})), ax)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    figure.set_size_inches(0.85 * (right - left), 0.85 * (top - bottom))
    _save(figure, f"table-{name}.svg")
    plt.close(figure)


def draw_chart(name: str) -> None:
    """Draw one chart of `charts.py`."""
    import matplotlib.pyplot as plt

    figure = _beside("charts").draw(name)
    _save(figure, f"chart-{name}.svg")
    plt.close(figure)


def _beside(name: str) -> Any:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _save(figure: Any, name: str) -> None:
    half = PICTURES / f".{name}"
    figure.savefig(half, format="svg", bbox_inches="tight", metadata={"Date": None})
    half.replace(PICTURES / name)


def _age(path: Path) -> float:
    return path.stat().st_mtime


if __name__ == "__main__":
    sys.exit(main())
