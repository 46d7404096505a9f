"""Takes the pictures of pages: docs/images/explorer-light.png, chapters-light.png and their dark twins.

`python docs/screens.py` needs Chromium with its driver, selenium and Pillow. The pictures are committed, because a
README is read where nothing runs; take them again when a page looks different.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).resolve().parent / "images"
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DROPDTW = (sys.executable, "-m", "dropdtw")
EXPLORER, PAGE = (1280, 720), (900, 660)
"""The sizes of the pictures."""
POINTED = {"width": 0.52, "height": 0.75}
"""What the mouse points at in the explorer, as shares of the picture: a frame that is dropped."""
COLORS = 256
"""A palette of so many colors keeps the files small, and nobody sees the difference."""


def main() -> None:
    """Take each picture in each color scheme."""
    with _browser() as browser, tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "chapters.html"
        talk = [str(EXAMPLES / "chapters" / name) for name in ("steps.txt", "talk.srt")]
        form = ["--title", "Mending a bicycle tire", "--out", str(page)]
        subprocess.run([*DROPDTW, "chapters", *talk, *form], check=True, capture_output=True)
        demo = [*DROPDTW, "explore", "--demo", "--no-browser"]
        with subprocess.Popen(demo, stdout=subprocess.PIPE, text=True) as served:
            assert served.stdout is not None
            try:
                address = served.stdout.readline().strip()
                for scheme in ("light", "dark"):
                    _open(browser, address, EXPLORER, scheme)
                    _point(browser)
                    _save(browser.get_screenshot_as_png(), IMAGES / f"explorer-{scheme}.png")
                    _open(browser, page.as_uri(), PAGE, scheme)
                    _save(browser.get_screenshot_as_png(), IMAGES / f"chapters-{scheme}.png")
            finally:
                served.terminate()


@contextmanager
def _browser() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium-browser"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def _open(browser: Any, address: str, size: tuple[int, int], scheme: str) -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(address)


def _point(browser: Any) -> None:
    """Point at a cell of the explorer, which then says why it is matched or dropped."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    _wait(lambda: browser.execute_script("return document.body.dataset.busy") == "no")
    canvas = browser.find_element(By.ID, "canvas")
    across, down = (int((share - 0.5) * canvas.size[side]) for side, share in POINTED.items())
    ActionChains(browser).move_to_element_with_offset(canvas, across, down).perform()
    _wait(lambda: "Nothing is chosen" not in browser.find_element(By.ID, "why").text)


def _wait(ready: Callable[[], bool]) -> None:
    for _ in range(100):
        if ready():
            return
        time.sleep(0.1)
    raise RuntimeError("the explorer is not ready after ten seconds")


def _save(picture: bytes, path: Path) -> None:
    from PIL import Image

    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
