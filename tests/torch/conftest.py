"""Fixtures that switch between the fused and the general path of losses."""

import pytest


@pytest.fixture
def quick(monkeypatch):
    """Without a GPU, compute alignments with the compiled CPU kernels instead of Triton's interpreter."""
    from dropdtw.torch import stages
    from fused_cases import Compiled, kernels

    if kernels.INTERPRETED:
        monkeypatch.setattr(stages.kernels(), "align", Compiled)


@pytest.fixture
def switch(monkeypatch):
    """A function that turns the fused path on or off, and returns a list of the fused calls so far."""
    from dropdtw.torch import fused, fused_clustering, stages

    ran = []

    def count(module, name):
        original = getattr(module, name)

        def counted(*given):
            ran.append(name)
            return original(*given)

        monkeypatch.setattr(module, name, counted)

    count(stages, "forward")
    count(fused_clustering, "_value")

    def turn(on):
        ran.clear()
        monkeypatch.setattr(fused, "runs_on", lambda A: on)
        return ran

    return turn
