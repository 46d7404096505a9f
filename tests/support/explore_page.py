"""The explorer's page in a real browser: what it shows, and simulated user actions."""

import threading
import time
from typing import NamedTuple

import numpy as np
import pytest

import page_checks

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'dropdtw[explore]'")
pytest.importorskip("selenium", reason="selenium is not installed: pip install selenium")

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

from dropdtw.explore import load, server, settings  # noqa: E402
from dropdtw.explore.session import Session  # noqa: E402


class Place(NamedTuple):
    address: str
    session: Session

    def lost(self, **more):
        """How many x should be dropped with the initial settings, or with others."""
        chosen = settings.parse(self.session.first.to_json() | more)
        return int(self.session.alignment(chosen).dropped_x.sum())


def place(tmp_path_factory):
    """An explorer with four steps and a recording of them with junk in between."""
    folder = tmp_path_factory.mktemp("explore")
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(4, 16))
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1, 3, -1], [6, 8, 5, 3, 9, 7, 4, 8, 7])
    noise = rng.normal(size=(len(truth), 16))
    np.save(folder / "Z.npy", Z)
    np.save(folder / "X.npy", np.where(truth[:, None] >= 0, Z[truth] + 0.5 * noise, noise))
    np.save(folder / "truth.npy", truth)
    data = load.read(str(folder / "Z.npy"), str(folder / "X.npy"), truth=str(folder / "truth.npy"), fps=10)
    yield from serving(Session(data))


def serving(session):
    """A running explorer, which stops with the generator."""
    held = server.listen()
    port = held.getsockname()[1]
    app = server.make_app(session, "token", port)
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [held]}, daemon=True)
    thread.start()
    try:
        yield Place(f"http://127.0.0.1:{port}/token/", session)
    finally:
        running.should_exit = True
        thread.join(10)
        held.close()


class Page:
    def __init__(self, browser, place):
        self.browser, self.place = browser, place

    def open(self, width=1280, scheme="light", height=900):
        self.dress(width, scheme, height)
        self.browser.get("about:blank")
        self.browser.get(self.place.address)
        self.settle()
        return self

    def dress(self, width=1280, scheme="light", height=900):
        page_checks.dress(self.browser, width, scheme, height)

    def until(self, condition):
        for _ in range(400):
            if found := condition():
                return found
            time.sleep(0.025)
        raise AssertionError(self.browser.find_element(By.TAG_NAME, "body").text)

    def settle(self):
        self.until(lambda: self.run("return document.body.dataset.busy") == "no")

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, name):
        return self.browser.find_element(By.ID, name)

    def text(self, name):
        return self.find(name).text

    def lost(self):
        return int(self.text("lost-x").split()[0])

    def slide(self, name, value):
        """Move a slider as a user does, through an input event."""
        self.run(
            "const e = document.getElementById(arguments[0]); document.body.dataset.busy = 'yes';"
            "e.value = arguments[1]; e.dispatchEvent(new Event('input', {bubbles: true}))",
            name,
            value,
        )
        self.settle()

    def choose(self, name, value):
        self.run("document.body.dataset.busy = 'yes'")
        Select(self.find(name)).select_by_value(value)
        self.settle()

    def click(self, name):
        self.run("document.body.dataset.busy = 'yes'")
        self.find(name).click()
        self.settle()

    def pixels(self, name="canvas"):
        """The colors on a canvas, and how often each occurs."""
        return self.run(
            """const c = document.getElementById(arguments[0]), found = {};
            const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
            for (let k = 0; k < data.length; k += 4) {
              const key = [data[k], data[k + 1], data[k + 2]].join();
              found[key] = (found[key] ?? 0) + 1;
            }
            return found""",
            name,
        )
