"""The explorer in a real browser: what a person sees and does."""

import json

import numpy as np
import pytest

import dropdtw
import explore_page
from dropdtw.explore import load
from dropdtw.explore.session import Session
from explore_page import Page

pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

place = pytest.fixture(explore_page.place, scope="module")


@pytest.fixture
def page(browser, place):
    return Page(browser, place).open()


def test_it_loads_without_complaints_and_shows_what_there_is(page):
    assert page.text("what").startswith("Z.npy × X.npy: 4 elements of Z (down) × 57 of X (right)")
    assert page.lost() == page.place.lost() > 20
    assert page.text("agreement") == "98.2 %"
    seen = page.pixels()
    for colour in ("0,114,178", "213,94,0", "0,158,115"):  # matched, dropped, truth
        assert seen.get(colour, 0) > 100
    assert [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_slider_aligns_anew(page):
    page.choose("drop_x-kind", "percentile")
    counts, oranges = [], []
    for p in (2, 20, 60, 95):
        page.slide("drop_x-range", p)
        counts.append(page.lost())
        oranges.append(page.pixels().get("213,94,0", 0))
        assert page.find("drop_x-number").get_attribute("value") == str(p)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
    assert oranges[0] > oranges[-1]


def test_only_the_latest_of_many_moves_counts(page):
    page.choose("drop_x-kind", "percentile")
    page.run(
        """const e = document.getElementById("drop_x-range");
        document.body.dataset.busy = "yes";
        for (let p = 0; p <= 95; p++) { e.value = p; e.dispatchEvent(new Event("input", {bubbles: true})); }"""
    )
    page.settle()
    many = page.text("cost")
    page.slide("drop_x-range", 50)
    assert page.text("cost") != many
    page.slide("drop_x-range", 95)
    assert page.text("cost") == many


def test_the_code_gives_what_is_shown(page):
    page.choose("drop_z-kind", "percentile")
    page.slide("drop_z-range", 40)
    page.click("contiguous")
    page.choose("window-kind", "share")
    page.slide("window-range", 0.6)
    page.slide("gamma-range", -2)
    scope = {}
    exec(page.find("code").get_attribute("value"), scope)
    shown = float(page.run("return document.getElementById('cost').dataset.exact"))
    assert scope["a"].cost == pytest.approx(shown, rel=1e-12)
    assert page.text("lost-x") == f"{scope['a'].dropped_x.sum()} of 57"
    assert page.text("lost-z") == f"{scope['a'].dropped_z.sum()} of 4"
    assert scope["p"].gamma == float(page.find("gamma-number").get_attribute("value"))


def test_every_method_runs_or_says_why_not(page):
    for method in reversed([name for name, m in dropdtw.METHODS.items() if not m.needs_sequences]):
        page.choose("method", method)
        assert page.text("method-note") == dropdtw.METHODS[method].summary
        takes = dropdtw.METHODS[method].takes_drops
        assert page.find("drop_x-range").is_enabled() == takes
        assert page.find("threshold").is_displayed() == dropdtw.METHODS[method].takes_threshold
        if dropdtw.METHODS[method].slopes is not None:  # 57 x are too many for 4 z
            assert f"no path of method '{method}' leads through 4 × 57" in page.text("error")
        elif method != "needleman_wunsch":  # which would have to drop z
            assert not page.find("error").is_displayed(), page.text("error")


def test_settings_that_fit_nothing_say_so_and_can_be_left(page):
    page.choose("drop_x-kind", "none")
    page.click("one_to_many")
    assert "cannot each have a z of their own" in page.text("error")
    assert page.text("cost") == "–"
    assert not page.find("save-alignment").is_enabled()
    page.click("one_to_many")
    assert not page.find("error").is_displayed()
    assert page.text("lost-x") == "0 of 57"
    assert [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_other_match_costs_bring_their_own_scale(page):
    before = page.find("drop_x-range").get_attribute("max")
    page.choose("match", "euclidean")
    assert float(page.find("drop_x-range").get_attribute("max")) > 2 * float(before)
    assert 20 < page.lost() < 40  # a constant of the old costs is replaced by one that suits the new ones
    page.click("reset")
    assert page.find("match").get_attribute("value") == "cosine"
    assert page.lost() == page.place.lost()


def test_a_suggestion_is_taken_over_and_explained(page):
    page.slide("drop_x-range", 0)
    assert page.text("lost-x") == "53 of 57"
    page.click("suggest")
    page.until(lambda: page.lost() == page.place.lost())
    assert "% sure: good matches cost about" in page.text("suggestion")


def test_pointing_explains(page):
    area = page.find("canvas")
    ActionChains(page.browser).move_to_element_with_offset(area, -300, 0).perform()
    cell = page.until(lambda: page.text("why-cell-name").startswith("z_") and page.text("why-cell-name"))
    j = int(cell.partition("x_")[2])
    page.until(lambda: "whole would cost" in page.text("why-x"))
    scope = {}
    exec(page.find("code").get_attribute("value"), scope)
    assert f"x_{j} is {page.text('why-x')}".startswith(str(scope["a"].explain(j)))
    assert page.text("why-x-name") == f"x_{j} ({j / 10:.2f} s)"
    assert "posterior" in page.text("why-cell")


def test_the_keyboard_is_enough(page):
    page.find("theme").send_keys(Keys.TAB)
    reached = []
    for _ in range(40):
        focused = page.browser.switch_to.active_element
        name = focused.get_attribute("id")
        if not name or name in reached:
            break
        reached.append(name)
        style = page.run(
            "return getComputedStyle(arguments[0]).outlineStyle + getComputedStyle(arguments[0]).outlineWidth", focused
        )
        assert style == "solid3px", name
        focused.send_keys(Keys.TAB)
    expected = ["drop_x-kind", "drop_x-range", "drop_x-number", "suggest"]
    expected += ["open_x-range", "open_x-number", "suggest-opening", "drop_z-kind", "match", "method"]
    expected += ["one_to_many", "many_to_one", "contiguous", "warp-range", "warp-number", "window-kind"]
    expected += ["posterior", "gamma-range", "gamma-number"]
    expected += ["reset", "picture", "save-picture", "save-alignment", "copy-code", "code"]
    assert reached[: len(expected)] == expected
    unnamed = page.run(
        """return [...document.querySelectorAll("input, select, textarea, button")].filter((e) =>
        !e.labels?.length && !e.getAttribute("aria-label") && !e.textContent.trim()).map((e) => e.id)"""
    )
    assert unnamed == []


def test_arrow_keys_move_a_cursor_that_explains(page):
    picture = page.find("picture")
    picture.send_keys(Keys.END)
    page.until(lambda: page.text("why-cell-name") == "z_0, x_56")
    picture.send_keys(Keys.ARROW_LEFT)
    picture.send_keys(Keys.ARROW_DOWN)
    page.until(lambda: page.text("why-cell-name") == "z_1, x_55")
    page.until(lambda: page.text("why-x").startswith("dropped for"))
    picture.send_keys(Keys.HOME)
    picture.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT)
    page.until(lambda: page.text("why-cell-name") == "z_1, x_10")
    picture.send_keys("d")
    page.until(lambda: page.text("why-cell-name") == "z_1, x_14")
    assert page.pixels("cursor").keys() - {"0,0,0"}


def test_tabs_do_not_mix(page):
    page.choose("drop_x-kind", "percentile")
    page.slide("drop_x-range", 5)
    first, mine = page.lost(), page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    try:
        other = Page(page.browser, page.place).open()
        other.choose("drop_x-kind", "none")
        assert other.lost() == 0
        second = page.browser.current_window_handle
        page.browser.switch_to.window(mine)
        assert page.lost() == first
        page.click("contiguous")
        assert page.lost() == page.place.lost(drop_x={"kind": "percentile", "value": 5}, contiguous=True) != first
        page.browser.switch_to.window(second)
        assert other.lost() == 0
    finally:
        for handle in set(page.browser.window_handles) - {mine}:
            page.browser.switch_to.window(handle)
            page.browser.close()
        page.browser.switch_to.window(mine)


def test_a_reloaded_tab_shows_the_same(page):
    page.choose("drop_x-kind", "percentile")
    page.slide("drop_x-range", 12)
    cost = page.text("cost")
    page.until(lambda: "percentile" in page.browser.current_url)
    page.browser.refresh()
    page.settle()
    assert page.text("cost") == cost
    assert page.find("drop_x-number").get_attribute("value") == "12"
    page.run("history.replaceState(null, '', '#nonsense')")
    page.browser.refresh()
    page.settle()
    assert page.lost() == page.place.lost()


@pytest.mark.parametrize("width", [1280, 800])
def test_nothing_has_to_be_scrolled_sideways(browser, place, width):
    page = Page(browser, place).open(width)
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    spilled = page.run(
        """return [...document.querySelectorAll("body *")].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5);
        }).map((e) => e.id || e.tagName)"""
    )
    assert spilled == []


CONTRAST = """
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0.99) return c;
  }
  return [255, 255, 255];
};
const found = {};
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.tagName === "TEXTAREA";
  if (!own || !e.getClientRects().length) continue;
  const [a, b] = [light(numbers(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
  found[e.id || e.tagName + ":" + e.textContent.slice(0, 20)] = (a + 0.05) / (b + 0.05);
}
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_scheme(browser, place, scheme):
    page = Page(browser, place).open(scheme=scheme)
    contrast = page.run(CONTRAST)
    assert len(contrast) > 30
    assert min(contrast.values()) >= 4.5, {name: v for name, v in contrast.items() if v < 4.5}
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
    corner = page.run("return [...document.getElementById('canvas').getContext('2d').getImageData(1, 1, 1, 1).data]")
    assert f"rgb({', '.join(map(str, corner[:3]))})" == ground


def test_the_scheme_can_be_chosen(page):
    try:
        page.find("theme").click()
        assert page.text("theme") == "Colours: dark"
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
        assert "22,24,28" in page.pixels()
        page.dress(scheme="dark")
        page.find("theme").click()
        assert page.text("theme") == "Colours: light"
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        page.run("localStorage.clear()")


def test_picture_and_alignment_are_saved(page, tmp_path):
    page.browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.find("save-picture").click()
    page.find("save-alignment").click()
    picture, alignment = tmp_path / "Z.npy_X.npy.png", tmp_path / "Z.npy_X.npy.alignment.json"
    page.until(lambda: picture.exists() and alignment.exists())
    assert picture.read_bytes().startswith(b"\x89PNG")
    a = dropdtw.Alignment.from_dict(json.loads(alignment.read_text()))
    assert page.text("lost-x") == f"{a.dropped_x.sum()} of 57"


def test_a_server_that_is_gone_is_said(page):
    page.run("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
    page.slide("drop_x-range", 0.1)
    assert "is `dropdtw explore` still running?" in page.text("error")


def test_the_first_suggestion_says_how_far_to_trust_it(page):
    assert "% sure: good matches cost about" in page.text("suggestion")


def test_a_doubtful_suggestion_stands_out(browser):
    noise = np.random.default_rng(1).normal(size=(60, 3))
    pages = explore_page.serving(Session(load.from_sequences(noise[:10], noise[10:])))
    page = Page(browser, next(pages)).open()
    sure = int(page.text("suggestion").split()[0])
    assert sure < 50
    assert page.find("suggestion").get_attribute("class") == "hint doubt"
    pages.close()


def test_on_a_phone_the_picture_comes_first_and_the_settings_open_on_demand(browser, place):
    page = Page(browser, place).open(width=390)
    top = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
    assert page.run(top, "picture") < page.run(top, "drawer")
    assert not page.find("controls").is_displayed()
    page.find("drawer").find_element("tag name", "summary").click()
    assert page.find("controls").is_displayed()
    assert page.run("return document.documentElement.scrollWidth") <= 390


def test_pointing_at_a_talk_quotes_it_and_names_the_step(browser):
    data = load.from_costs(
        [[0.1, 0.9], [0.8, 0.2]], names=("boil", "pour"), said=("Now it boils.", "Pour!"), times=(0.0, 65.0)
    )
    pages = explore_page.serving(Session(data))
    page = Page(browser, next(pages)).open()
    page.find("picture").send_keys(Keys.END)
    page.until(lambda: page.text("why-x-name") == "x_1 (1:05)")
    page.until(lambda: page.text("why-x").startswith("“Pour!” "))
    assert page.text("why-z-name") == "z_0: boil"
    pages.close()
