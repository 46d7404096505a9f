"""Takes the README's pictures of the explorer: docs/images/explorer-light.png and -dark.png.

`python docs/explorer.py` needs Chromium with its driver, selenium and Pillow. The pictures are committed, because a
README is read where nothing runs; take them again when the explorer looks different.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH, HEIGHT = 1280, 720
POINTED = {"width": 0.52, "height": 0.75}
"""What the mouse points at, as shares of the picture: a frame that is dropped."""
COLORS = 256
"""A palette of so many colors keeps the files small, and nobody sees the difference."""


def main() -> None:
    """Serve the explorer's demo, and take a picture of it in each color scheme."""
    command = [sys.executable, "-m", "dropdtw", "explore", "--demo", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        try:
            address = served.stdout.readline().strip()
            for scheme in ("light", "dark"):
                _save(_picture(address, scheme), IMAGES / f"explorer-{scheme}.png")
        finally:
            served.terminate()


def _picture(address: str, scheme: str) -> bytes:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium-browser"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(address)
        _wait(lambda: browser.execute_script("return document.body.dataset.busy") == "no")
        canvas = browser.find_element(By.ID, "canvas")
        across, down = (int((share - 0.5) * canvas.size[side]) for side, share in POINTED.items())
        ActionChains(browser).move_to_element_with_offset(canvas, across, down).perform()
        _wait(lambda: "Nothing is chosen" not in browser.find_element(By.ID, "why").text)
        return browser.get_screenshot_as_png()
    finally:
        browser.quit()


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
