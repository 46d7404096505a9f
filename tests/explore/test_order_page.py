"""The order of the steps on the explorer's page, in a real browser."""

import numpy as np
import pytest

import explore_page
from dropdtw.explore import load
from dropdtw.explore.order import with_order
from dropdtw.explore.session import Session
from dropdtw.orders import parse_steps
from explore_page import Page

TEXT = "Boil\nany order:\n  Warm <b>the</b> pot\n  Open the tin\nrepeat:\n  Pour\n  Stir\none of:\n  Milk\n  Lemon"


@pytest.fixture(scope="module")
def place():
    """A recording: boil, open, warm, pour, stir, pour, stir, lemon."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(7, 16))
    truth = np.repeat([0, -1, 2, 1, -1, 3, 4, -1, 3, 4, 6], 5)
    noise = rng.normal(size=(len(truth), 16))
    data = load.from_sequences(Z, np.where(truth[:, None] >= 0, Z[truth] + 0.3 * noise, noise))
    yield from explore_page.serving(Session(with_order(data, parse_steps(TEXT, 7), "steps.txt")))


@pytest.fixture
def page(browser, place):
    return Page(browser, place).open()


def boxes(page):
    """The numbers on the boxes, by step."""
    return dict(
        page.run(
            """const number = (box) => box.querySelector(".badges text")?.textContent ?? "";
            return [...document.querySelectorAll("#boxes g.box")].map((box) =>
              [box.dataset.step, [number(box), box.getAttribute("class")]])"""
        )
    )


def test_the_boxes_bear_the_order_in_which_they_were_done(page):
    assert page.text("done") == "Done: Boil → Open the tin → Warm <b>the</b> pot → Pour → Stir → Pour → Stir → Lemon"
    found = boxes(page)
    assert {step: badge for step, (badge, _) in found.items()} == {
        **{"0": "1", "1": "3", "2": "2", "3": "4,6", "4": "5,7"},
        **{"5": "", "6": "8"},
    }
    assert "passed" in found["5"][1]
    assert "done" in found["6"][1]
    assert page.run("return document.querySelectorAll('#boxes path.repeat').length") == 1
    assert page.run("return document.querySelectorAll('#boxes path.either').length") == 4
    assert page.run("return document.querySelectorAll('#boxes path.passed').length") == 2
    assert [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_marks_of_the_boxes_are_explained(page, browser):
    assert page.text("order-key") == (
        "done, numbered by time left out · dotted: optional · pale: on another way · purple arrow: back, to repeat"
    )
    colors = """const color = (e, name) => getComputedStyle(document.querySelector(e))[name];
    return [color("#order-key .matched", "backgroundColor"), color("#boxes .done rect", "stroke")]"""
    assert len(set(page.run(colors))) == 1


def test_the_walk_follows_the_sliders(page):
    page.choose("drop_z-kind", "constant")
    page.slide("drop_z-number", 0)
    page.slide("drop_x-number", -2)
    assert page.text("done") == "No step was done."
    assert all(badge == "" for badge, _ in boxes(page).values())
    assert not page.find("open_z").is_displayed()
    assert not page.find("window-kind").is_displayed()
    page.click("reset")
    assert boxes(page)["3"][0] == "4,6"


def test_a_box_leads_to_its_row(page):
    page.run("document.querySelector('#boxes g[data-step=\"6\"]').dispatchEvent(new Event('click'))")
    page.until(lambda: page.text("why-z-name") == "z_6: Lemon")
    assert page.text("why-cell-name") == "z_6, x_50"


def test_a_page_without_an_order_has_no_boxes(browser):
    rng = np.random.default_rng(0)
    served = explore_page.serving(Session(load.from_sequences(*rng.normal(size=(2, 5, 3)))))
    plain = Page(browser, next(served)).open()
    assert not plain.find("order").is_displayed()
    assert plain.find("window-kind").is_displayed()
    served.close()
