"""Switches between the fused and the general path of losses."""

import pytest


@pytest.fixture
def quick(monkeypatch):
    """Alignments by the CPU, where there is no GPU."""
    from dropdtw.torch import stages
    from fused_cases import Compiled, kernels

    if kernels.INTERPRETED:
        monkeypatch.setattr(stages.kernels(), "align", Compiled)


@pytest.fixture
def switch(monkeypatch):
    """Turns the fused path on or off; what it returns counts how often it ran."""
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
