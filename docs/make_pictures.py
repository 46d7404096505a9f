"""Draws the pictures of the documentation into docs/pictures: as a program, or with the site if they are out of date.

They are committed, because pages are read on GitHub, too. Each ends with a digest of what it was drawn from. Most
pictures are drawn by the code of the pages: it is run from the top, and where a page shows a picture, what has
been drawn since the last one is saved under its name. `table-*.svg` are drawn from `dropdtw.tables.recurrence`, and
`chart-*.svg` from the tables of numbers in the pages (`charts.py`).
"""

from __future__ import annotations

import contextlib
import doctest
import hashlib
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
    "training.md",
    "sensors.md",
    "symbols.md",
    "sklearn.md",
    "speech.md",
)
TABLES = (
    *("dtw", "one_sided", "two_sided", "algorithm_2", "subsequence", "needleman_wunsch", "smith_waterman"),
    *("one_sided_charged", "two_sided_charged", "symmetric2", "symmetric_p1", "asymmetric"),
)
SHOWN = re.compile(r"!\[[^\]]*\]\(pictures/([\w-]+\.svg)\)")
STYLE = {"svg.hashsalt": "dropdtw", "svg.fonttype": "none", "font.size": 9, "savefig.facecolor": "white"}


def on_pre_build(config: Any) -> None:
    """Draw what is missing or out of date before MkDocs reads the folder."""
    if stale():
        main()


def wanted() -> dict[str, str]:
    """The names of all pictures, each with a digest of what it is drawn from."""
    digests = {}
    for page in PAGES:
        parts = SHOWN.split((DOCS / page).read_text(encoding="utf-8"))
        for k, name in enumerate(parts[1::2]):
            if name in digests:
                raise ValueError(f"{page} draws {name} again; give each picture a name of its own")
            code = (example.source for text in parts[: 2 * k + 1 : 2] for example in _examples(text, page))
            digests[name] = _digest(*code)
    from dropdtw.tables import recurrence

    automaton = (DOCS / "automaton.py").read_text(encoding="utf-8")
    for name in TABLES:
        digests[f"table-{name}.svg"] = _digest(automaton, repr(_table(recurrence, name)))
    charts = _beside("charts")
    pages = [(DOCS / page).read_text(encoding="utf-8") for page in charts.PAGES]
    cells = "\n".join(line for page in pages for line in page.splitlines() if line.startswith("|"))
    for name in charts.CHARTS:
        digests[f"chart-{name}.svg"] = _digest((DOCS / "charts.py").read_text(encoding="utf-8"), cells)
    return digests


def stale() -> list[str]:
    """The pictures that are missing, or drawn from something else than what is there now."""
    return [name for name, digest in wanted().items() if _drawn_from(PICTURES / name) != digest]


def main() -> None:
    """Draw all pictures."""
    import matplotlib

    matplotlib.use("Agg")
    PICTURES.mkdir(exist_ok=True)
    digests = wanted()
    with matplotlib.rc_context(STYLE):
        for page in PAGES:
            draw_page(page)
        for name in TABLES:
            draw_table(name)
        for name in _beside("charts").CHARTS:
            draw_chart(name)
    for name, digest in digests.items():
        with (PICTURES / name).open("a", encoding="utf-8") as file:
            file.write(f"<!-- drawn from {digest} -->\n")
    for path in PICTURES.glob("*.svg"):
        if path.name not in digests:
            path.unlink()


def draw_page(page: str) -> None:
    """Run the code of a page, and save a picture wherever it shows one."""
    import matplotlib.pyplot as plt

    parts = SHOWN.split((DOCS / page).read_text(encoding="utf-8"))
    known: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(DOCS.parent)  # pages name files from there
    try:
        for text, name in zip(parts[::2], [*parts[1::2], None], strict=True):
            for example in _examples(text, page):
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
    automaton.draw(_table(recurrence, name), ax)
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


def _table(recurrence: Any, name: str) -> Any:
    plain = name.removesuffix("_charged")
    return getattr(recurrence, plain)(**({} if plain == name else {"charged": True}))


def _examples(text: str, page: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(text, page)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _drawn_from(path: Path) -> str | None:
    found = re.search(r"<!-- drawn from (\w+) -->\s*$", path.read_text(encoding="utf-8")) if path.exists() else None
    return found and found[1]


if __name__ == "__main__":
    sys.exit(main())
