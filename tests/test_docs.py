"""The documentation: it builds without a warning, is complete, links to what exists, and fetches nothing."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs", reason="the documentation is not built here: pip install 'dropdtw[docs]'")
pytest.importorskip("mkdocstrings", reason="the documentation is not built here: pip install 'dropdtw[docs]'")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
"""What a browser fetches without being asked; of `link`, everything but `canonical` and the like."""


class Page(HTMLParser):
    """What a page loads, what it links to, and which places it has."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.places = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places |= {attrs[name] for name in ("id", "name") if attrs.get(name)}
        if attrs.get(LOADED.get(tag)):
            self.loads.append(attrs[LOADED[tag]])
        if tag == "link" and attrs.get("rel") not in ("canonical", "prev", "next", "edit"):
            self.loads.append(attrs["href"])
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == [page.relative_to(DOCS).as_posix() for page in PAGES]


def test_every_page_is_built(site):
    assert all((site / page.relative_to(DOCS).with_suffix(".html")).is_file() for page in PAGES)
    assert not list(site.rglob("*.py"))


def test_links_lead_somewhere(site, pages):
    dead = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file() or (parts.fragment and target in pages
                                        and unquote(parts.fragment) not in pages[target].places):  # fmt: skip
                dead.append((path.relative_to(site).as_posix(), link))
    assert dead == []


def test_nothing_is_fetched_from_elsewhere(site, pages):
    foreign = re.compile(r"(?:https?:)?//")
    assert [link for page in pages.values() for link in page.loads if foreign.match(link)] == []
    for sheet in site.rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import )[\"']?([^\"')]+)", sheet.read_text(encoding="utf-8")):
            assert not foreign.match(address), (sheet, address)


def test_every_public_name_is_in_the_reference(pages):
    import dropdtw
    import dropdtw.torch

    places = set().union(*(page.places for path, page in pages.items() if path.parent.name == "api"))
    last = {place.rpartition(".")[2] for place in places}
    assert set(dropdtw.__all__) - {"costs", "drops", "windows"} <= last
    assert set(dropdtw.torch.__all__) <= last


def test_every_picture_is_shown(pages):
    shown = {link for page in pages.values() for link in page.loads if "pictures/" in link}
    assert {Path(link).name for link in shown} >= {f"table-{name}.svg" for name in ("dtw", "one_sided", "two_sided")}
    assert len(shown) > 20


@every_page
def test_python_of_a_page_is_run(page):
    """Blocks of Python are examples with their results, which pytest runs; anything else would be run by nobody.

    Except blocks of `python3`: imports of other libraries, which `make peers` runs.
    """
    for block in re.findall(r"```(?:python|pycon|py)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        assert block.lstrip().startswith(">>> "), block


@every_page
def test_a_page_has_one_title(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


def test_docstrings_become_markdown():
    sys.path.insert(0, str(DOCS))
    try:
        from docstrings import to_markdown
    finally:
        sys.path.remove(str(DOCS))
    text = "Add.\n\na, b : numbers,\n    or strings.   c : more.\nThe end.\n\n>>> 1 + 1\n2\n\nReally."
    assert to_markdown(text) == (
        "Add.\n\n- **`a`, `b`**: numbers,\n  or strings.\n- **`c`**: more.\n\nThe end.\n\n"
        "```pycon\n>>> 1 + 1\n2\n```\n\nReally."
    )


def test_a_drawing_names_every_state_and_edge():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from dropdtw.tables import recurrence

    sys.path.insert(0, str(DOCS))
    try:
        import automaton
    finally:
        sys.path.remove(str(DOCS))
    plain = ("dtw", "one_sided", "two_sided", "algorithm_2", "subsequence", "needleman_wunsch", "smith_waterman")
    tables = [getattr(recurrence, name)() for name in (*plain, "symmetric2", "asymmetric", "symmetric_p1")]
    tables += [recurrence.one_sided(charged=True), recurrence.two_sided(charged=True)]
    for table in tables:
        figure, ax = plt.subplots()
        automaton.draw(table, ax)
        written = [text.get_text() for text in ax.texts]
        plt.close(figure)
        assert set(table.states) <= set(written)
        moves = sum(written_moves(text) for text in written if text not in table.states)
        assert moves == len(table.edges)


def written_moves(label):
    return sum(label.split().count(sign) for sign in ("↘", "→", "↓", "stay"))
