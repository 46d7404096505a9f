"""The code of the pages draws pictures: without a window, and none is left open."""

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    """Close what a page has drawn."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")
