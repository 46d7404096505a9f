"""The examples of docstrings draw pictures: without a window, and none is left open."""

import os
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Close what an example has drawn."""
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")
