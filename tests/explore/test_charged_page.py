"""Opening costs and the warp penalty on the explorer's page, in a real browser."""

import pytest

import dropdtw
import explore_page
from dropdtw.explore import settings
from explore_page import Page

place = pytest.fixture(explore_page.place, scope="module")


@pytest.fixture
def page(browser, place):
    return Page(browser, place).open()


def runs(page):
    """How many runs of drops the page counts."""
    return int(page.text("open_x-note").split()[0])


def test_an_opening_cost_is_a_slider_that_aligns_anew(page):
    page.choose("drop_x-kind", "percentile")
    page.slide("drop_x-range", 12)
    width, counts = float(page.place.session.costs("cosine").max()), []
    for part in (0, 0.15, 0.3, 0.5):
        page.slide("open_x-range", part)
        counts.append(runs(page))
        cost = float(page.find("open_x-number").get_attribute("value"))
        assert cost == pytest.approx(5 * width * part**2, rel=0.01)
        chosen = settings.parse(
            page.place.session.first.to_json() | {"drop_x": {"kind": "percentile", "value": 12}, "open_x": cost}
        )
        assert page.text("cost") == f"{page.place.session.alignment(chosen).cost:.6g}"
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_the_opening_cost_of_z_appears_with_its_drops(page):
    assert page.find("open_x").is_displayed()
    assert not page.find("open_z").is_displayed()
    page.choose("drop_z-kind", "constant")
    assert page.find("open_z").is_displayed()
    page.slide("open_z-number", 0.3)
    assert "open_z=0.3" in page.find("code").get_attribute("value")
    page.choose("drop_z-kind", "none")
    assert not page.find("open_z").is_displayed()
    assert "open_z" not in page.find("code").get_attribute("value")
    assert not page.find("error").is_displayed()


def test_code_with_charges_gives_what_is_shown(page):
    page.choose("drop_z-kind", "constant")
    page.slide("drop_z-range", 0.1)
    page.slide("open_x-number", 0.6)
    page.slide("open_z-number", 0.2)
    page.slide("warp-number", 0.05)
    code, scope = page.find("code").get_attribute("value"), {}
    exec(code, scope)
    assert "open_x=0.6, open_z=0.2, warp=0.05" in code
    shown = float(page.run("return document.getElementById('cost').dataset.exact"))
    assert scope["a"].cost == pytest.approx(shown, rel=1e-12)
    assert runs(page) == scope["a"].charged.open_x
    page.until(lambda: "open_x" in page.browser.current_url)
    page.browser.refresh()
    page.settle()
    assert page.find("open_x-number").get_attribute("value") == "0.6"


def test_an_opening_cost_is_suggested_on_request(page):
    page.click("suggest-opening")
    assert "no opening cost is needed" in page.until(lambda: page.text("opening"))
    page.choose("drop_x-kind", "percentile")
    page.slide("drop_x-range", 30)
    chosen = page.place.session.first.to_json() | {"drop_x": {"kind": "percentile", "value": 30}}
    expected = page.place.session.suggest_opening(settings.parse(chosen))["open_x"]
    page.click("suggest-opening")
    page.until(lambda: page.find("open_x-number").get_attribute("value") == str(expected))
    page.until(lambda: f"open_x={expected}" in page.find("code").get_attribute("value"))
    assert "chance" in page.text("opening")
    page.click("suggest")  # a drop cost alone
    assert page.find("open_x-number").get_attribute("value") == str(expected)
    page.click("reset")
    assert page.text("opening") == ""
    assert page.find("open_x-number").get_attribute("value") == "0"


def test_methods_hide_the_charges_that_they_do_not_take(page):
    page.slide("open_x-number", 0.5)
    page.slide("warp-number", 0.05)
    page.click("contiguous")
    for method in ("drop_dtw_paper", "symmetric2", "needleman_wunsch", "dtw"):
        entry = dropdtw.METHODS[method]
        page.choose("method", method)
        assert page.find("open_x").is_displayed() == entry.takes_opening
        assert page.find("warp").is_displayed() == entry.takes_warp
        assert page.find("contiguous").is_enabled() != (entry.one_to_one or entry.fixes_moves)
        assert not page.find("error").is_displayed(), page.text("error")


def test_other_match_costs_forget_the_charges(page):
    page.slide("open_x-number", 0.5)
    page.choose("match", "euclidean")
    assert page.find("open_x-number").get_attribute("value") == "0"
    page.slide("open_x-range", 1)
    assert float(page.find("open_x-number").get_attribute("value")) > 20
