import os
import shutil
import zlib

import pytest

import fast_interpreter
from dropdtw.executors import EXECUTORS

try:
    import hypothesis
except ImportError:
    pass
else:
    # A busy machine may take long to draw an example, which says nothing about the code.
    hypothesis.settings.register_profile(
        "dropdtw", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("dropdtw")

try:
    import torch
except ImportError:
    pass
else:
    torch.set_num_threads(1)  # tensors here are small, and two test runs share the cores
    if not torch.cuda.is_available():
        # Without a GPU the CUDA kernels run in Triton's interpreter, which must be enabled before Triton is imported.
        os.environ.setdefault("TRITON_INTERPRET", "1")
        fast_interpreter.install()


SAMPLED = 4
"""`make test` runs one in this many cases of a sweep."""


def pytest_collection_modifyitems(config, items):
    """Run a fixed sample of each sweep; `make test-all`, which also selects exhaustive tests, runs all cases."""
    if config.getoption("markexpr") != "not exhaustive":
        return
    left_out = [
        item
        for item in items
        if item.get_closest_marker("sweep") and zlib.crc32(item.name.encode()) % SAMPLED and not _is_named(config, item)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        left_out = set(left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_named(config, item):
    """Whether the command line asks for this very test."""
    return any("::" in argument and item.nodeid.startswith(argument) for argument in config.args)


@pytest.fixture(params=list(EXECUTORS))
def executor(request):
    """Every executor of this installation, so that tests cover all of them."""
    return request.param


@pytest.fixture(scope="session")
def browser():
    """An installed headless Chromium with its driver; nothing is downloaded."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    names = (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",))
    program, driver = (next(filter(None, map(shutil.which, some)), None) for some in names)
    if program is None or driver is None:
        pytest.skip("no Chromium with its driver is installed (Debian: apt install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield chrome
    chrome.quit()
