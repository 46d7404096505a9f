"""The HTML report: findings first, quoted rows marked, animations embedded, no horizontal scrolling."""

import io

import pytest

pytest.importorskip("PIL", reason="Pillow is not installed: make setup")

from PIL import Image

import page_checks
from reproduction.common.report import QUOTED, Report, Table

NAMES = ["Drop-DTW, longest runs", "Drop-DTW, longest runs", "a method with a name of many words & signs"]


def picture(kind):
    memory = io.BytesIO()
    frames = [Image.new("L", (640, 200), shade) for shade in (0, 255)]
    frames[0].save(memory, kind, **({"save_all": True, "append_images": frames[1:]} if kind == "gif" else {}))
    return memory.getvalue()


@pytest.fixture
def report(tmp_path):
    made = Report("A report", tmp_path)
    made.introduce(
        "What it is about.",
        "python -m reproduction it --out runs/of/a/long/path/without/a/break",
        "Data: made up.",
    )
    made.heading("In full")
    head = ["rule", "chosen", *(f"{k} %" for k in range(0, 100, 10))]
    rows = [[name, "d_x 0.05, d_z 0.2", *(f"{k}.0 ± 0.{k}" for k in range(10, 20))] for name in NAMES]
    made.table(Table("Recall in %", head, rows, quoted=[0]))
    made.picture("moves", picture("gif"), "A picture that moves.")
    made.picture("more", picture("png"), "All the others.", folded="Every method")
    made.lead("One method finds 3 of 4, the other 2.", "first", picture("png"), "What was found.")
    return made


def test_findings_come_first_whatever_was_added_before(report):
    page = report.write().read_text(encoding="utf-8")
    places = [page.index(text) for text in ("<h1>", "What it is about", "One method finds", "<h2>", "How it was run")]
    assert places == sorted(places)
    assert page.index("python -m reproduction it") > places[-1]


def test_pictures_are_inside_and_beside(report):
    page = report.write().read_text(encoding="utf-8")
    assert page.count("data:image/gif;base64,R0lGOD") == 1
    assert page.count("data:image/png;base64,") == 2
    assert {p.name for p in report.folder.iterdir()} == {"report.html", "moves.gif", "more.png", "first.png"}


def test_rows_of_the_paper_are_marked_as_quoted(report):
    page = report.write().read_text(encoding="utf-8")
    assert page.count(f'<span class="tag">{QUOTED}</span>') == page.count('<tr class="quoted">') == 1
    table = Table("Scores", ["", "IoU"], [["DTW", "9.1"], ["DTW", "9.0"]], quoted=[1])
    assert table.text().splitlines()[2:] == ["DTW                          9.1", f"DTW ({QUOTED})  9.0"]
    assert QUOTED not in Table("Scores", ["", "IoU"], [["DTW", "9.1"]]).html()


def test_a_report_without_a_command_says_nothing_of_one(tmp_path):
    made = Report("Plain", tmp_path)
    made.text("a < b")
    page = made.write().read_text(encoding="utf-8")
    assert "<p>a &lt; b</p>" in page
    assert "How it was run" not in page
    assert 'class="leads"' not in page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_a_phone_and_can_be_read(report, browser, scheme):
    browser.get(report.write().as_uri())
    try:
        for width in (1280, 390):
            page_checks.dress(browser, width, scheme)
            assert page_checks.spilled(browser) == []
            assert page_checks.unreadable(browser) == {}
        labels = browser.execute_script(
            "return [...document.querySelectorAll('td')].map((c) => getComputedStyle(c, '::before').content)"
        )
        # Without a table head, each cell shows its column name, and a long cell gets its own line.
        assert labels[:3] == ['"chosen: "', '"0 %"', '"10 %"']
        assert browser.execute_script("return document.querySelectorAll('td.long').length") == len(NAMES)
        tables = browser.execute_script(
            "return [...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth <= e.clientWidth)"
        )
        assert tables == [True]
        assert browser.execute_script("return document.querySelector('details').open") is False
        assert browser.get_log("browser") == []
    finally:
        page_checks.dress(browser)
