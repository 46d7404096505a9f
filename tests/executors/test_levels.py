"""Kernels for older processors, and those that read tables at run time, agree with the reference and each other.

The level is chosen when the module is loaded, so each level runs in a process of its own.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cases import paid
from dropdtw.executors import emit
from dropdtw.problem.band import band
from dropdtw.problem.charges import Charges
from dropdtw.tables import recurrence

cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")
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
found = {"level": _cpp.instruction_set, "unrolled": _cpp.unrolled, "results": {}, "bits": {}}
for number, (method, options) in enumerate(METHODS):
    for dtype in ("float32", "float64"):
        Z, X = (rng.random((n, 2)).astype(dtype) for n in (13, 21))
        how = {"method": method, **options, "executor": executor}
        a = dropdtw.align(Z, X, match="sqeuclidean", **how)
        pairs = dropdtw.pairwise([Z, Z[2:]], [X, X[3:], X[::-1].copy()], match="sqeuclidean", **how)
        C = ((Z[:, None] - X[None]) ** 2).sum(-1)
        D = rng.random((13, 21)).astype(dtype)
        found["bits"][f"{number} {method} {dtype}"] = float(dropdtw.cost(D, **how)).hex()
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
    compare(found["results"], truth)


@pytest.mark.skipif("DROPDTW_GOLDEN" not in os.environ, reason="DROPDTW_GOLDEN names no results of another machine")
def test_another_machine_gives_the_same_results():
    """As docs/performance.md promises: hard minima of given costs to the last bit, all else up to rounding."""
    golden, found = json.loads(Path(os.environ["DROPDTW_GOLDEN"]).read_text()), run("", "none")
    assert found["bits"] == golden["bits"]
    compare(found["results"], golden["results"])


def compare(found, truth):
    assert found.keys() == truth.keys()
    for name, (cost, pairs, matrix, posterior) in found.items():
        expected = truth[name]
        near = {"rel": 1e-5, "abs": 1e-6} if "float32" in name else {"rel": 1e-9, "abs": 1e-9}
        assert cost == pytest.approx(expected[0], **near), name
        assert pairs == expected[1], name
        for part, wanted in ((matrix, expected[2]), (posterior, expected[3])):
            if part is not None:
                assert np.asarray(part) == pytest.approx(np.asarray(wanted), **near), name


@pytest.mark.skipif(os.environ.get("DROPDTW_LEVELS") != "all", reason="DROPDTW_LEVELS=all is not set")
def test_a_build_of_all_levels_lacks_none():
    x86 = platform.machine() in ("x86_64", "AMD64")
    expected = "baseline,v3,v4" if x86 else "baseline"
    assert _cpp.levels == expected, "built for fewer: remove .venv/.ready and build again"


def test_an_older_processor_is_told_once_to_reinstall(monkeypatch):
    from dropdtw.executors import cpu

    monkeypatch.delenv("DROPDTW_ISA", raising=False)
    assert (cpu.outdated() is None) is _cpp.unrolled
    monkeypatch.setattr(_cpp, "unrolled", False)
    monkeypatch.setattr(_cpp, "levels", "v9")
    said = cpu.outdated()
    assert "compiled for processors of level v9, which this one is not" in said
    assert "Reinstall it on this machine" in said


TIERS = [
    recurrence.dtw(one_to_many=False),
    recurrence.dtw(charged=True),
    recurrence.one_sided(),
    recurrence.one_sided(many_to_one=False, contiguous=True),
    recurrence.one_sided().transpose(),
    recurrence.one_sided(charged=True),
    recurrence.two_sided(),
    recurrence.two_sided(many_to_one=False, contiguous=True),
    recurrence.two_sided(charged=True),
    recurrence.subsequence(),
    recurrence.needleman_wunsch(),
    recurrence.needleman_wunsch(charged=True),
    recurrence.smith_waterman(),
    recurrence.symmetric2(),
    recurrence.asymmetric(),
    recurrence.symmetric_p1(),
    recurrence.asymmetric_p1(),
]


def results(table, problems):
    """Hard values, paths and what they pay, of all problems."""
    found = []
    for costs in problems:
        t = cpu.trace(table, costs)
        parts = [None if part is None else np.asarray(part).tolist() for part in (t.pairs, t.drop_x, t.drop_z)]
        found.append([t.value, cpu.within(table, costs, 5.0).value, *parts, tuple(t.charges)])
    return found


@pytest.mark.skipif(not _cpp.unrolled, reason="this build has no unrolled kernels for this processor")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", TIERS, ids=lambda t: t.name)
def test_both_tiers_give_the_same_bits(table, dtype, monkeypatch):
    """Unrolled or read at run time, a table gives the same values, paths and ties, with bands and limits too."""
    rng = np.random.default_rng(0)
    problems = []
    for K, N in ((1, 1), (5, 9), (17, 17), (40, 70), (130, 90)):
        for whole, width in ((False, None), (True, None), (False, 12)):
            draw = (lambda *n: rng.integers(0, 4, n)) if whole else (lambda *n: rng.random(n))
            C, drop_x, drop_z = (draw(*n).astype(dtype) for n in ((K, N), (N,), (K,)))
            C[rng.random((K, N)) < 0.05] = np.inf
            limits = None if width is None else band(K, N, max(width, abs(K - N)))
            problems.append(paid(C, drop_x, drop_z, limits, Charges(0.25, 0.5, 0.125)))
    cpu.compiled.cache_clear()
    unrolled = results(table, problems)
    monkeypatch.setattr(cpu, "UNROLLED", 0)
    cpu.compiled.cache_clear()
    assert results(table, problems) == unrolled
    monkeypatch.undo()
    cpu.compiled.cache_clear()


def test_every_unrolled_family_is_compared():
    families = {emit.locate(table).family for table in TIERS}
    assert families == set(range(emit.UNROLLED))


if __name__ == "__main__":  # writes the results of this machine, for DROPDTW_GOLDEN on another one
    print(json.dumps(run("", "none")))
