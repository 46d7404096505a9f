"""Kernels for older processors, and those that read tables at run time, agree with the reference.

The level is chosen when the module is loaded, so each one runs in a process of its own.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

_cpp = pytest.importorskip("dropdtw._cpp", reason="the compiled executor is not installed")

CODE = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("error")
import dropdtw
from dropdtw import _cpp
rng = np.random.default_rng(0)
both, steps = {"drop_x": 0.4, "drop_z": 0.6}, {"many_to_one": False, "contiguous": True}
METHODS = [
    ("dtw", {}), ("dtw", {"window": 9}), ("drop_dtw", {"drop_x": 0.4}), ("drop_dtw", {"drop_z": 0.4}),
    ("drop_dtw", both), ("drop_dtw", {"drop_x": "percentile:30", "open_x": 0.2}), ("drop_dtw_paper", both),
    ("drop_dtw", {"drop_x": 0.4, **steps}), ("drop_dtw", {**both, **steps}), ("otam", {}), ("subsequence", {}),
    ("needleman_wunsch", both), ("symmetricP1", {}), ("lcss", {"threshold": 0.3}),
]
executor = None if sys.argv[1] == "none" else sys.argv[1]
found = {"level": _cpp.instruction_set, "unrolled": _cpp.unrolled, "results": {}}
for number, (method, options) in enumerate(METHODS):
    for dtype in ("float32", "float64"):
        Z, X = (rng.random((n, 2)).astype(dtype) for n in (13, 21))
        how = {"method": method, **options, "executor": executor}
        a = dropdtw.align(Z, X, match="sqeuclidean", **how)
        pairs = dropdtw.pairwise([Z, Z[2:]], [X, X[3:], X[::-1].copy()], match="sqeuclidean", **how)
        C = ((Z[:, None] - X[None]) ** 2).sum(-1)
        chances = None if method == "lcss" else dropdtw.posterior(C, gamma=0.3, **how).match.tolist()
        found["results"][f"{number} {method} {dtype}"] = [float(a.cost), a.pairs.tolist(), pairs.tolist(), chances]
hits = dropdtw.find(rng.random(5), rng.random(300), match="sqeuclidean", drop_x=0.05, executor=executor)
found["results"]["find"] = [0.0, [[h.start, h.stop] for h in hits], [h.cost for h in hits], None]
print(json.dumps(found))
"""


def run(level, executor):
    environment = {k: v for k, v in os.environ.items() if k != "DROPDTW_ISA"} | (
        {"DROPDTW_ISA": level} if level else {}
    )
    command = [sys.executable, "-c", CODE, executor]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def truth():
    return run("", "reference")["results"]


@pytest.mark.parametrize("level", ["baseline", "v3", "v4"])
def test_every_level_gives_the_results_of_the_reference(level, truth):
    found = run(level, "none")
    if found["level"] != level:
        pytest.skip(f"this build has no kernels for {level}, or this processor cannot run them")
    assert found["unrolled"] is (level in _cpp.levels.split(","))
    for name, (cost, pairs, matrix, posterior) in found["results"].items():
        expected = truth[name]
        near = {"rel": 1e-5, "abs": 1e-6} if "float32" in name else {"rel": 1e-9, "abs": 1e-9}
        assert cost == pytest.approx(expected[0], **near), name
        assert pairs == expected[1], name
        for part, wanted in ((matrix, expected[2]), (posterior, expected[3])):
            if part is not None:
                assert np.asarray(part) == pytest.approx(np.asarray(wanted), **near), name


def test_an_older_processor_is_told_once_to_reinstall(monkeypatch):
    from dropdtw.executors import cpu

    monkeypatch.delenv("DROPDTW_ISA", raising=False)
    assert (cpu.outdated() is None) is _cpp.unrolled
    monkeypatch.setattr(_cpp, "unrolled", False)
    monkeypatch.setattr(_cpp, "levels", "v9")
    said = cpu.outdated()
    assert "compiled for processors of level v9, which this one is not" in said
    assert "Reinstall it on this machine" in said
