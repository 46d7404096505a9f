"""The documentation: it builds without a warning, is complete, links to what exists, and fetches nothing."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs", reason="the documentation is not built here: make setup")
pytest.importorskip("mkdocstrings", reason="the documentation is not built here: make setup")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
EXPERIMENTS = ("reproduction.md", "beyond.md")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
"""What a browser fetches without being asked; of `link`, everything but `canonical` and the like."""


def beside(name):
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Page(HTMLParser):
    """What a page loads, what it links to, which places it has, and what its copy buttons copy."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.places, self.copied, self.prompts = [], [], set(), [], 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places |= {attrs[name] for name in ("id", "name") if attrs.get(name)}
        if attrs.get("data-copy"):
            self.copied.append(attrs["data-copy"])
        self.prompts += attrs.get("class") == "gp"
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


def test_copy_buttons_copy_code_alone(pages):
    """Without prompts and results; and what has prompts is colored as a session, not as a program."""
    copied = [code for page in pages.values() for code in page.copied]
    assert len(copied) > 100
    assert not [code for code in copied if re.search(r"^(>>>|\.\.\.)", code, re.MULTILINE) or "array([" in code[:7]]
    for code in copied:
        compile(code, "a copied block", "exec")
    for path, page in pages.items():
        shown = len(re.findall(r"^(?:<[^>]*>)*&gt;&gt;&gt;", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert page.prompts >= shown, path


def test_signatures_explain_their_types(site):
    """`DropCost` and the like are links, and so is where other arguments are explained; nothing is called "others"."""
    text = (site / "api" / "align.html").read_text(encoding="utf-8")
    for place in ("costs.html#dropdtw.drops.DropCost", "costs.html#dropdtw.costs.MatchCost", "#dropdtw.api.solve"):
        assert f'href="{place}"' in text, place
    assert not [path for path in site.glob("api/*.html") if "<code>others</code>" in path.read_text(encoding="utf-8")]


@every_page
def test_python_of_a_page_is_run(page):
    """Blocks of Python are examples with their results (`pycon`), which pytest runs; nobody would run anything else.

    Except blocks of `python3`: imports of other libraries, which `make peers` runs.
    """
    for kind, block in re.findall(r"```(python|pycon|py)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        assert kind == "pycon", block
        assert block.lstrip().startswith(">>> "), block


SHOWN = [
    pytest.param(command, output, id=f"{page.name}-{command}")
    for page in [ROOT / "README.md", *PAGES]
    for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for command, output in re.findall(r"^\$ dropdtw (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_a_command_prints_what_the_page_shows(command, output):
    pytest.importorskip("wordllama", reason="needs the extra text")
    done = subprocess.run(
        [sys.executable, "-m", "dropdtw", *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    assert printed == output.splitlines()


@every_page
def test_a_page_has_one_title(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


@every_page
def test_a_page_opens_with_a_sentence(page):
    """Before any heading, code, table or list."""
    assert re.match(r"# .+\n\n[^\s#|>!`-]|# .+\n\n`[^`]", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", EXPERIMENTS)
def test_experiments_begin_with_their_conclusion(page):
    """Each section with its conclusion, in bold; each with a measurement with a picture above it."""
    text = re.sub(r"```.*?```", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    sections = re.split(r"^##+ (.+)\n", text, flags=re.MULTILINE)[1:]
    for title, section in zip(sections[::2], sections[1::2], strict=True):
        assert section.startswith(("\n**", "\n- **")), title
    for chapter in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        assert 0 < chapter.find("](pictures/chart-") < (chapter.find("\n|---") % len(chapter)), chapter[:60]


def test_charts_are_drawn_from_the_tables():
    charts = beside("charts")
    drawn = {
        name for page in EXPERIMENTS for name in re.findall(r"chart-([\w-]+)\.svg", (DOCS / page).read_text("utf-8"))
    }
    assert drawn == set(charts.CHARTS)
    rows = {row["method"]: row for row in charts.table("reproduction.md", "Retrieval")}
    assert charts.score(rows["DTW"]["90 %"]) == (3, 0, "3")
    assert charts.table("beyond.md", "Inference")[2]["noise"] == "1.5"  # said two rows above
    with pytest.raises(ValueError, match="no table"):
        charts.table("beyond.md", "No such heading")


def test_pictures_are_up_to_date():
    """They are committed; each says what it was drawn from."""
    assert beside("make_pictures").stale() == [], "run `python docs/make_pictures.py`"


def test_no_two_pages_draw_the_same_picture(monkeypatch):
    pictures = beside("make_pictures")
    monkeypatch.setattr(pictures, "PAGES", ("sensors.md", "sensors.md"))
    with pytest.raises(ValueError, match=r"^sensors.md draws sensors.svg again; give each picture a name of its own$"):
        pictures.wanted()


def test_the_picture_of_the_readme_is_up_to_date():
    cover = beside("cover")
    for theme in cover.THEMES:
        drawn = (DOCS / "images" / f"alignment-{theme}.svg").read_text(encoding="utf-8")
        assert drawn == cover.picture(theme), "run `python docs/cover.py`"


def test_the_readme_shows_what_it_names():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r'(?:src|srcset)="([^"]+)"|\]\(([^)#:]+)(?:#[^)]*)?\)', readme)
    missing = [name for pair in named for name in pair if name and not (ROOT / name).is_file()]
    assert missing == []
    assert {"make demo", "make test"} <= set(re.findall(r"^make \w+", readme, re.MULTILINE))


ARGUED = {
    "dropdtw": (
        *("align", "solve", "distance", "cost", "pairwise", "posterior", "suggest_drop"),
        *("nearest", "find", "barycenter", "Online"),
    ),
    "dropdtw.sklearn": [f"Alignment{kind}" for kind in ("KNeighborsClassifier", "Transformer", "KMeans", "KMedoids")],
}
"""What takes many arguments."""


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in ARGUED.items() for name in names])
def test_every_argument_is_explained(module, name):
    what = getattr(pytest.importorskip(module), name)
    entries = re.findall(r"^- \*\*(.+?)\*\*:", beside("docstrings").to_markdown(inspect.getdoc(what)), re.MULTILINE)
    explained = {each.strip("`") for entry in entries for each in entry.split(", ")}
    assert set(inspect.signature(what).parameters) - explained == set()


def test_docstrings_become_markdown():
    to_markdown = beside("docstrings").to_markdown
    text = "Add.\n\na, b : numbers,\n    or strings.   c : more.\nThe end.\n\n>>> 1 + 1\n2\n\nReally."
    assert to_markdown(text) == (
        "Add.\n\n- **`a`, `b`**: numbers,\n  or strings.\n- **`c`**: more.\n\nThe end.\n\n"
        "```pycon\n>>> 1 + 1\n2\n```\n\nReally."
    )
    assert to_markdown("a, b,\n    c : as\n    in `solve` and `no_such_thing`.") == (
        "\n- **`a`, `b`, `c`**: as\n  in [`solve`][dropdtw.api.solve] and `no_such_thing`."
    )


def test_a_drawing_names_every_state_and_edge():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from dropdtw.tables import recurrence

    automaton = beside("automaton")
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


def screen(browser, width, scheme="light"):
    """Show pages as on a screen of this width, to a reader with this color scheme."""
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def test_a_copy_button_copies_code_alone(browser, site):
    screen(browser, 1400)
    browser.get((site / "start.html").as_uri())
    button = browser.execute_async_script(
        """const done = arguments[0];
        document.addEventListener("copy", () => { window.copied = document.activeElement.value; });
        (function look() {
          const found = document.querySelector(".highlight:has(.go) button[data-clipboard-target]");
          if (!found) return setTimeout(look, 50);
          found.scrollIntoView({block: "center"});
          done(found);
        })();"""
    )
    button.click()
    copied = browser.execute_script("return window.copied")
    assert copied.startswith("import dropdtw\nsteps = [")
    assert copied.endswith("\na")
    assert ">>>" not in copied
    assert "Alignment by" not in copied


@pytest.mark.parametrize("page", ["index", "api/align"])
def test_search_works_in_pages_opened_as_files(browser, site, page):
    """Each task has its page among the first results."""
    screen(browser, 1400)
    browser.get((site / f"{page}.html").as_uri())
    tasks = {"sensor logs": "sensors.html", "train": "training.html", "chapters": "recordings.html"}
    for words, first in tasks.items():
        found = browser.execute_async_script(
            """const [words, done] = arguments, field = document.querySelector(".md-search__input");
            if (!document.getElementById("__search").checked) document.getElementById("__search").click();
            field.focus();
            field.value = words;
            field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
            let last = "";
            (function look() {
              const links = document.querySelectorAll(".md-search-result__link");
              const found = [...links].map((a) => a.getAttribute("href"));
              const now = found.join();
              if (now && now === last) return done(found);
              last = now;
              setTimeout(look, 300);
            })();""",
            words,
        )
        assert any(first in link for link in found[:12]), (words, found[:12])


@pytest.mark.parametrize("page", ["index", "start", "sklearn", "reproduction", "cli", "api/align"])
def test_a_page_fits_a_phone(browser, site, page):
    """Nothing makes it wider than the screen, and numbers in tables stay on one line."""
    screen(browser, 390, "dark")
    browser.get((site / f"{page}.html").as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    broken = browser.execute_script(
        """return [...document.querySelectorAll('td[style*="right"]')].filter((cell) => {
          const all = document.createRange();
          all.selectNodeContents(cell);
          return new Set([...all.getClientRects()].map((box) => Math.round(box.bottom / 9))).size > 1;
        }).map((cell) => cell.textContent)"""
    )
    assert broken == []
