"""The explorer of a talk in a real browser: it speaks of steps, sentences and times, and saves chapters."""

from pathlib import Path

import pytest

pytest.importorskip("wordllama", reason="wordllama is not installed: pip install 'dropdtw[text]'")

import explore_page
import page_checks
from dropdtw.explore import talks
from dropdtw.explore.session import Session
from explore_page import Page

EXAMPLES = Path(__file__).parents[2] / "examples" / "chapters"


@pytest.fixture(scope="module")
def place():
    """An explorer of the talk about a bicycle tire."""
    yield from explore_page.serving(Session(talks.read_talk(str(EXAMPLES / "steps.txt"), str(EXAMPLES / "talk.srt"))))


def shown(page):
    """All texts of the page, but the names of methods and what they do."""
    return page.run(
        "document.getElementById('method-note').textContent = '';"
        "return document.body.innerText.replace(document.getElementById('method').innerText, '')"
    )


def test_it_speaks_of_steps_and_sentences(browser, place):
    page = Page(browser, place).open()
    assert page.text("what").startswith("steps.txt × talk.srt: 7 steps (rows) × 40 sentences (columns)")
    assert (page.text("matched"), page.text("lost-x"), page.text("lost-z")) == ("10 of 40", "30 of 40", "1 of 7")
    page.find("picture").send_keys("d")
    page.until(lambda: page.text("why-cell-name").startswith("step "))
    words = shown(page).split()
    assert not {"x", "z", "X", "Z"} & {word.strip("().,:;“”") for word in words}
    assert not [word for word in words if word.startswith(("x_", "z_"))]


def test_it_counts_from_one_as_the_commands_do(browser, place):
    page = Page(browser, place).open()
    page_checks.record(browser)
    page.slide("gamma-range", -1)
    labels = [label for label, *_ in page_checks.drawn(browser)]
    assert any(label.startswith("1 Take the wheel") for label in labels)
    assert not any(label.startswith("0 ") for label in labels)
    assert [label for label in labels if label in "1234567"][:6] == ["1", "2", "3", "4", "6", "7"]
    page.find("picture").send_keys("\ue011")  # Home
    page.until(lambda: page.text("why-x-name").startswith("sentence 1 (0:0"))


def test_it_saves_chapters(browser, place):
    page = Page(browser, place).open()
    page.run("URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text }); return '#' }")
    page.find("save-chapters").click()
    lines = page.until(lambda: page.run("return window.saved ?? null")).splitlines()
    assert lines[:2] == ["0:00 Introduction", "0:35 Take the wheel off the bike"]


@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_clipped_and_no_label_covers_another(browser, place, width):
    page = Page(browser, place).open(width, height=844)
    page_checks.record(browser)
    page.slide("gamma-range", -1)
    labels = page_checks.drawn(browser)
    labels = labels[-len(labels) // 2 :]  # the picture is drawn twice, without the new posterior and with it
    assert page_checks.spilled(browser) == []
    assert page_checks.touching(labels) == []
    right = page.run("return document.getElementById('canvas').clientWidth")
    assert all(left >= 0 and end <= right for _, left, _, end, _ in labels)
    assert not any("…" in label for label, *_ in labels)
    page.run("document.getElementById('drawer').open = true")
    assert page_checks.spilled(browser) == []


def test_the_names_of_curves_stand_above_them(browser, place):
    page = Page(browser, place).open()
    page_checks.record(browser)
    page.slide("gamma-range", -1)
    (bottom,) = {label[4] for label in page_checks.drawn(browser) if label[0] == "cost of the best match"}
    top = page.run(
        """const c = document.getElementById("canvas"), r = devicePixelRatio, x = c.width / 2;
        const data = c.getContext("2d").getImageData(x, 0, 1, c.height).data, ground = data.slice(0, 3).join();
        for (let y = 0; y < c.height; y++) if (data.slice(4 * y, 4 * y + 3).join() !== ground) return y / r;"""
    )
    assert bottom <= top + 0.5  # the frame of the curves is the first thing in the middle of the picture
