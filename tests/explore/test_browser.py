"""The explorer in a real browser: what a person sees and does."""

import json

import numpy as np
import pytest

import dropdtw
import explore_page
import page_checks
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
    assert page.text("what").startswith("Z.npy × X.npy: 4 elements of Z (rows) × 57 of X (columns)")
    assert page.lost() == page.place.lost() > 20
    assert page.text("agreement") == "98.2 %"
    seen = page.pixels()
    for color in ("0,114,178", "213,94,0", "0,158,115"):  # matched, dropped, truth
        assert seen.get(color, 0) > 100
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
        if dropdtw.METHODS[method].slopes is not None and not takes:  # 57 x are too many for 4 z
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
    page.until(lambda: "would change the total" in page.text("why-x"))
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
    expected += [
        "reset",
        "save-settings",
        "open-settings",
        "picture",
        "save-picture",
        "save-alignment",
        "copy-code",
        "code",
    ]
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


@pytest.mark.parametrize("width", [1280, 800, 390])
def test_nothing_has_to_be_scrolled_sideways(browser, place, width):
    Page(browser, place).open(width)
    assert page_checks.spilled(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_scheme(browser, place, scheme):
    page = Page(browser, place).open(scheme=scheme)
    assert page_checks.unreadable(browser) == {}
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
    corner = page.run("return [...document.getElementById('canvas').getContext('2d').getImageData(1, 1, 1, 1).data]")
    assert f"rgb({', '.join(map(str, corner[:3]))})" == ground


def test_the_scheme_can_be_chosen(page):
    try:
        page.find("theme").click()
        assert page.text("theme") == "Colors: dark"
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
        assert "22,24,28" in page.pixels()
        page.dress(scheme="dark")
        page.find("theme").click()
        assert page.text("theme") == "Colors: light"
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        page.run("localStorage.clear()")


def test_settings_are_saved_and_opened_as_an_aligner(page, tmp_path):
    page.browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.choose("drop_x-kind", "percentile")
    page.slide("drop_x-range", 60)
    page.choose("window-kind", "columns")
    page.slide("window-range", 30)
    shown = page.text("cost")
    page.find("save-settings").click()
    page.until(lambda: list(tmp_path.glob("*.aligner.json")))
    (stored,) = tmp_path.glob("*.aligner.json")
    aligner = dropdtw.Aligner.from_dict(json.loads(stored.read_text()))
    assert (aligner.drop_x, aligner.window, aligner.match) == ("percentile:60", 30, "cosine")
    page.click("reset")
    assert page.text("cost") != shown
    page.run("document.body.dataset.busy = 'yes'")
    page.find("settings-file").send_keys(str(stored))
    page.until(lambda: page.text("opened") == f"opened {stored.name}")
    page.settle()
    assert page.text("cost") == shown
    assert page.find("window-number").get_attribute("value") == "30"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(aligner.replace(match="softmax:0.5", drop_x=0.3, window=None).to_dict()))
    page.find("settings-file").send_keys(str(other))
    page.until(lambda: "match='softmax:0.5'" in page.find("code").get_attribute("value"))
    assert "drop_x=0.3" in page.find("code").get_attribute("value")
    other.write_text('{"windw": 3}')
    page.find("settings-file").send_keys(str(other))
    page.until(lambda: "did you mean window?" in page.text("opened"))
    other.write_text("{")
    page.find("settings-file").send_keys(str(other))
    page.until(lambda: page.text("opened") == "other.json: not valid JSON")


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


def test_a_suggestion_says_at_once_how_far_to_trust_it(browser, place):
    page = Page(browser, place).open(width=390, height=844)
    sure = round(100 * place.session.suggested["confidence"])
    assert sure >= 50
    assert page.text("trust") == f"Suggested drop cost {place.session.suggested['constant']:.4g}: {sure} % sure."
    assert page.run("return document.getElementById('trust').getBoundingClientRect().bottom") < 400
    page = Page(browser, place).open()
    assert page.text("suggestion").startswith(f"{sure} % sure: good matches cost about")
    page.slide("drop_x-range", 0.1)  # a cost of one's own is not judged
    assert not page.find("trust").is_displayed()
    page.click("suggest")
    page.until(lambda: page.find("trust").is_displayed())


def test_noise_does_not_look_like_a_find(browser):
    noise = np.random.default_rng(1).normal(size=(60, 3))
    session = Session(load.from_sequences(noise[:10], noise[10:]))
    sure = round(100 * session.suggested["confidence"])
    assert sure < 50
    for place in explore_page.serving(session):
        page = Page(browser, place).open(width=390, height=844)
        assert page.text("trust").startswith(
            f"Do not rely on this: the suggested drop cost is a guess ({sure} % sure)."
        )
        assert page.find("trust").get_attribute("class") == "doubt"
        assert page.run("return getComputedStyle(document.getElementById('picture')).outlineStyle") == "dashed"
        assert page_checks.unreadable(browser) == {}
        page.dress(scheme="dark")
        assert page_checks.unreadable(browser) == {}


def test_on_a_phone_the_picture_comes_first_and_the_settings_are_in_a_drawer(browser, place):
    page = Page(browser, place).open(width=390, height=844)
    box = "const b = document.getElementById(arguments[0]).getBoundingClientRect(); return [b.top, b.bottom]"
    assert page.run(box, "picture")[0] < 300
    assert not page.find("controls").is_displayed()
    assert page.run(box, "drawer")[1] == 844
    page.find("drawer").find_element("tag name", "summary").click()
    assert page.find("drop_x-range").is_displayed()
    assert page.run(box, "drawer")[0] > page.run(box, "picture")[0] + 80  # part of the picture stays in view
    assert page_checks.spilled(browser) == []


def test_the_costs_show_through_what_is_dropped(page):
    """Of the cells of a dropped x, most points still have a gray level: hatching leaves them."""
    record = page.place.session.alignment(page.place.session.first)
    (j, *_) = np.flatnonzero(record.dropped_x).tolist()
    grays = page.run(
        """const c = document.getElementById("canvas"), left = 108, inner = c.width - left - 12;
        const x = left + (arguments[0] + 0.1) / 57 * inner, w = 0.8 * inner / 57;
        const data = c.getContext("2d").getImageData(x, 120, w, 100).data, grays = [];
        for (let k = 0; k < data.length; k += 4) grays.push(data[k] === data[k + 1] && data[k] === data[k + 2]);
        return grays""",
        j,
    )
    assert 0.6 < np.mean(grays) < 0.98


def labels(page, width=1280):
    """What is written in the picture, drawn once more in the other scheme."""
    page_checks.record(page.browser)
    page.dress(width, "dark")
    page.until(lambda: page_checks.drawn(page.browser))
    return page_checks.drawn(page.browser)


def test_the_legend_explains_colors_hatching_and_curves(page):
    narrow = [label[0] for label in labels(page.open(390), 390)]
    first = narrow.index("component 1")
    assert narrow[first + 1 : first + 3] == ["2", "3"]
    texts = {label[0] for label in labels(page.open())}
    assert {"match cost", "matched", "dropped", "truth", "probability of a match", "P(match)", "P(drop x)"} <= texts
    assert {"component 1", "component 2", "component 3"} <= texts
    assert "time (seconds)" in texts
    assert {"0.0", "0.5", "5.5"} <= texts  # 57 frames at 10 per second


ENDLESS = "a step whose name is far too long for the room that is left of the picture"
PICTURES = {
    "many names": {"K": 90, "N": 300, "names": tuple(f"{ENDLESS} {k}" for k in range(90)), "fps": 25.0},
    "many numbers": {"K": 1200, "N": 900},
    "hours": {"K": 3, "N": 5000, "fps": 0.25},
    "a moment": {"K": 3, "N": 40, "fps": 1000.0},
}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("shown", PICTURES)
def test_labels_never_touch(browser, shown, width):
    more = dict(PICTURES[shown])
    K, N = more.pop("K"), more.pop("N")
    C = np.random.default_rng(0).random((K, N))
    data = load.from_costs(C, truth=np.arange(N) % K, **more)
    for place in explore_page.serving(Session(data)):
        page = Page(browser, place).open(width)
        found = labels(page, width)
        assert len(found) > 12
        assert page_checks.touching(found) == []
        wide = page.run("return document.getElementById('canvas').clientWidth")
        assert all(left > -0.5 and right < wide + 0.5 for _, left, _, right, _ in found)


@pytest.mark.parametrize(("time", "shown"), [(185.0, "3:05"), (0.5, "0.5 s")])
def test_pointing_at_a_talk_quotes_it_and_names_the_step(browser, time, shown):
    data = load.from_costs(
        [[0.1, 0.9], [0.8, 0.2]], names=("boil", "pour"), said=("Now it boils.", "Pour!"), times=(0.0, time)
    )
    pages = explore_page.serving(Session(data))
    page = Page(browser, next(pages)).open()
    page.find("picture").send_keys(Keys.END)
    page.until(lambda: page.text("why-x-name") == f"x_1 ({shown})")
    page.until(lambda: page.text("why-x").startswith("“Pour!” "))
    assert page.text("why-z-name") == "z_0: boil"
    pages.close()
