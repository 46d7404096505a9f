"""What can be asserted of any page in a browser: it fits its width, its text can be read, its labels do not touch."""

import itertools


def dress(browser, width=1280, scheme="light", height=900):
    """Show pages as on a screen of this width, to a reader with this color scheme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def spilled(browser):
    """The elements that reach beyond the left or right edge; the page itself where it can be scrolled sideways."""
    return browser.execute_script(
        """const found = [...document.querySelectorAll("body *")].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5);
        }).map((e) => e.id || e.tagName);
        if (document.documentElement.scrollWidth > innerWidth) found.push("page");
        return found"""
    )


CONTRAST = """
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const numbers = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0.99) return c;
  }
  return [255, 255, 255];
};
const solid = (e) => e ? Number(getComputedStyle(e).opacity) * solid(e.parentElement) : 1;
const found = {};
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.tagName === "TEXTAREA";
  if (!own || !e.getClientRects().length || e.closest("svg") || e.matches(":disabled")) continue;
  const ground = behind(e), share = solid(e);
  const ink = numbers(getComputedStyle(e).color).slice(0, 3).map((v, k) => share * v + (1 - share) * ground[k]);
  const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
  found[e.id || e.tagName + ":" + e.textContent.slice(0, 20)] = (a + 0.05) / (b + 0.05);
}
return found;
"""


def contrasts(browser):
    """The contrast of every text with its ground, by its element."""
    return browser.execute_script(CONTRAST)


def unreadable(browser):
    """The texts whose contrast is below 4.5, as WCAG 2 asks; there have to be some texts at all."""
    found = contrasts(browser)
    assert len(found) > 5
    return {name: value for name, value in found.items() if value < 4.5}


RECORD = """
window.drawnTexts = [];
if (window.plainFillText) return;
const kind = CanvasRenderingContext2D.prototype;
window.plainFillText = kind.fillText;
kind.fillText = function (text, x, y, ...more) {
  const m = this.measureText(text), t = this.getTransform(), size = Math.hypot(t.a, t.b);
  const at = (dx, dy) => t.transformPoint({ x: x + dx, y: y + dy });
  const a = at(-m.actualBoundingBoxLeft, -m.actualBoundingBoxAscent);
  const b = at(m.actualBoundingBoxRight, m.actualBoundingBoxDescent);
  const box = [Math.min(a.x, b.x), Math.min(a.y, b.y), Math.max(a.x, b.x), Math.max(a.y, b.y)];
  window.drawnTexts.push([String(text), ...box.map((v) => v / size)]);
  return window.plainFillText.call(this, text, x, y, ...more);
};
"""


def record(browser):
    """From now on, remember every text that is drawn on a canvas, with its box."""
    browser.execute_script(RECORD)


def drawn(browser):
    """What was drawn since `record`: (text, left, top, right, bottom), in pixels."""
    return [tuple(one) for one in browser.execute_script("return window.drawnTexts")]


def touching(labels):
    """The pairs of labels whose boxes overlap."""
    return [
        (one[0], other[0])
        for one, other in itertools.combinations(labels, 2)
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]
