"""What the rows of `error_cases.py` call: small problems, and mistakes that take more than a line."""

import importlib
import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import dropdtw
from dropdtw import align, solve
from dropdtw.executors import EXECUTORS

C = np.array([[0.1, 0.9, 0.2, 0.8], [0.7, 0.3, 0.6, 0.4]])
Z, X = np.eye(2), np.ones((3, 2))
ANY = np.inf  # forbids everything if it is the only cost
LOCKSTEP = dropdtw.Recurrence(
    states=("m",),
    start="m",
    final=("m",),
    name="lockstep",
    edges=dropdtw.edges("m", to="m", moves="diag", cost="match"),
)


FORBIDDEN = ("every alignment is forbidden", "allow more matches in C, give drop costs (drop_x, drop_z)")
MASKED = np.ma.masked_equal([[1.0, 2.0], [3.0, -9999.0], [5.0, 6.0]], -9999.0)


def changed(**entries):
    """Read back a serialized alignment with some entries changed; None removes an entry."""
    data = solve(C).to_dict(costs=True) | entries
    return dropdtw.Alignment.from_dict({k: v for k, v in data.items() if v is not None})


def banded(band):
    """Read back a serialized alignment with another band."""
    data = solve(C).to_dict(costs=True)
    return dropdtw.Alignment.from_dict(data | {"problem": data["problem"] | {"band": band}})


def with_holes(value):
    holes = C.copy()
    holes[1, 2] = value
    return holes


def plotting(name, *args, **options):
    """Call a function of `dropdtw.plot` without leaving a figure open."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    try:
        return getattr(importlib.import_module("dropdtw.plot"), name)(*args, **options)
    finally:
        pyplot.close("all")


def without_matplotlib():
    with mock.patch.dict(sys.modules, {"matplotlib": None, "matplotlib.pyplot": None}):
        solve(C).plot()


def with_little_memory():
    with mock.patch("dropdtw.problem.match.LARGEST", 40):
        align(Z, X, "percentile:30")


def on_a_picky_executor():
    with mock.patch.dict(EXECUTORS, {"picky": SimpleNamespace(supports=lambda table, **how: False)}):
        solve(C, 1, executor="picky")


def case(call, says, does="", *, error=ValueError):
    """A row: the call, what its message says about what arrived, and what it says to do."""
    return call, error, says, does
