"""The page of chapters in a real browser: what a person sees and does."""

import wave

import pytest

import page_checks
from dropdtw.text import Closest, FoundStep, Sentence, write_chapters

pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")

from selenium.webdriver.common.by import By

TALK = [Sentence(2.0 * k, 2.0 * k + 2, f"This is sentence number {k} of the talk.") for k in range(60)]
STEPS = [
    FoundStep(0, "Boil the water in the kettle", 20.0, 26.0, 0.9, (10, 13)),
    FoundStep(1, "Warm the pot", None, None, None, None, closest=Closest(40.0, 42.0, 0.2, (20, 21))),
    FoundStep(2, "Pour", 60.0, 70.0, 0.4, (30, 35)),
]


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of these steps in the browser."""

    def write(width=1280, mark="", **more):
        place = tmp_path / "chapters.html"
        place.write_text(write_chapters(STEPS, "html", TALK, title="A pot of tea", **more), encoding="utf-8")
        page_checks.dress(browser, width, "light")
        browser.get("about:blank")
        browser.get(place.as_uri() + mark)
        return browser

    return write


def click(page, text):
    page.find_element(By.LINK_TEXT, text).click()


def in_view(page, start):
    return page.execute_script(
        "const b = document.getElementById(arguments[0]).getBoundingClientRect();"
        "return b.height > 0 && b.top >= 0 && b.bottom <= innerHeight",
        f"t={start}",
    )


def test_a_time_shows_what_is_said_then(opened):
    page = opened()
    assert page.title == page.find_element(By.TAG_NAME, "h1").text == "A pot of tea"
    click(page, "0:40")
    assert in_view(page, 40)
    assert page.current_url.endswith("#t=40")
    assert in_view(opened(mark="#t=60"), 60)


def test_a_time_seeks_in_the_player(opened, tmp_path):
    with wave.open(str(tmp_path / "talk.wav"), "wb") as sound:
        sound.setparams((1, 1, 1000, 0, "NONE", ""))
        sound.writeframes(bytes([128]) * 120_000)
    page = opened(recording="talk.wav")
    click(page, "1:00–1:10")
    at = "return document.getElementById('media').currentTime"
    assert 60 <= page.execute_script(at) < 62
    page.execute_script("document.querySelector('.bar a').click()")
    assert 20 <= page.execute_script(at) < 22


def test_a_button_copies_for_youtube(opened):
    page = opened()
    page.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.find_element(By.ID, "copy").click()
    assert page.execute_script("return copied") == "0:00 Introduction\n0:20 Boil the water in the kettle\n1:00 Pour\n"
    assert page.find_element(By.ID, "copied").text == "copied"
    page.execute_script("navigator.clipboard.writeText = async () => { throw new Error('no') }")
    page.find_element(By.ID, "copy").click()
    assert "Ctrl-C" in page.find_element(By.ID, "copied").text
    assert page.execute_script("return getSelection().toString()").startswith("0:00 Introduction")


def test_the_colors_of_the_strip_are_explained(opened):
    page = opened()
    color = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    look = "return getComputedStyle(document.querySelector(arguments[0])).outline.replace(/-2px/, '')"
    entries = [entry.text for entry in page.find_elements(By.CSS_SELECTOR, ".key > span")]
    assert entries == [
        *("a step, numbered as in the table if there is room", "a step that is less than 50% sure (? in the table)"),
        "the rest of the talk",
    ]
    for key, shown in ((".key .step", ".bar a"), (".key > span:last-child i", ".bar")):
        assert page.execute_script(color, key) == page.execute_script(color, shown)
    assert page.execute_script(look, ".key .doubtful") == page.execute_script(look, ".bar a.unsure")
    assert "a blue bar marks those of a step" in page.find_element(By.TAG_NAME, "summary").text


@pytest.mark.parametrize("width", [1400, 390])
def test_it_fits_and_can_be_read(opened, width):
    page = opened(width, mark="#t=40", recording="talk.mp4")
    assert page_checks.spilled(page) == []
    for scheme in ("light", "dark"):
        page_checks.dress(page, width, scheme)
        assert page_checks.unreadable(page) == {}
