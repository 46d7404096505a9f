"""Long sequences are aligned without materializing C: percentiles run in strips, and memory stays well below C."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dropdtw
from dropdtw.drops import percentile_drop, percentile_of_strips
from dropdtw.problem.match import Pair


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(1, 41),
    st.sampled_from([0.0, 0.5, 30.0, 50.0, 97.5, 100.0]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["any", "tied", "holes", "forbidden"]),
    st.sampled_from(["fair", "misleading", "forbidden"]),
    st.integers(0, 2**32 - 1),
)
def test_percentile_of_strips_is_that_of_the_whole(K, N, width, p, dtype, kind, sample, seed):
    """The result does not depend on the sample, which only decides where to search first."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(K, N)).astype(dtype)
    if kind == "tied":
        C = np.round(C)
    if kind in ("holes", "forbidden"):
        C[rng.random(C.shape) < (0.5 if kind == "holes" else 1)] = np.inf
    some = {"fair": C[:, ::3], "misleading": C[:, ::3] * dtype(0.01) + 7, "forbidden": np.full((K, 1), np.inf, dtype)}
    passes = []

    def strips():
        passes.append(0)
        return (C[:, start : start + width] for start in range(0, N, width))

    found = percentile_of_strips(strips, some[sample], p)
    assert found == pytest.approx(percentile_drop(C, p), rel=1e-5 if dtype is np.float32 else 1e-12)
    assert len(passes) <= 4


DROPS = [("percentile:20", None), ("percentile:20", 0.4), (0.4, "percentile:40"), (None, 0.6), (None, "percentile:40")]


@pytest.mark.parametrize("match", ["cosine", "euclidean", "sqeuclidean", "softmax"])
@pytest.mark.parametrize("drops", DROPS)
def test_neither_percentiles_nor_paths_need_a_matrix(match, drops, monkeypatch):
    if match == "softmax" and drops[0] is None:
        pytest.skip("a table for drops of z alone wants rows, and the softmax compares rows")
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(280, 12)), rng.normal(size=(300, 12))
    pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")
    whole = dropdtw.align(Z, X, *drops, match=match)
    monkeypatch.setattr("dropdtw.problem.match.WHOLE", 0)
    monkeypatch.setattr("dropdtw.executors.cpu.STRIPS_FROM", 0)
    monkeypatch.setattr("dropdtw.executors.cpu.STRIP", 0)
    monkeypatch.setattr(Pair, "matrix", property(lambda self: pytest.fail("all of C was asked for")))
    strips = dropdtw.align(Z, X, *drops, match=match)
    assert strips.cost == pytest.approx(whole.cost)
    np.testing.assert_array_equal(strips.labels, whole.labels)
    assert dropdtw.distance(Z, X, *drops, match=match) == pytest.approx(whole.cost)


PROGRAM = """
import json, resource, sys
import numpy as np, dropdtw
K, N = 1_000, 80_000
rng = np.random.default_rng(0)
Z = rng.normal(size=(K, 8)).astype(np.float32)
X = np.repeat(Z, N // K, axis=0)
X[::7] = rng.normal(size=(len(X[::7]), 8))
dropdtw.align(Z[:300], X[:3000], 0.3)   # what libraries take once
peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
found = dropdtw.align(Z, X, sys.argv[1], 0.5, match=sys.argv[2])
right = (found.labels[1::7] == np.repeat(np.arange(K), N // K)[1::7]).mean()
print(json.dumps([(peak() - before) / (4 * K * N), float(right)]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no getrusage")
@pytest.mark.parametrize("match", ["cosine", "sqeuclidean"])
def test_memory_stays_below_the_match_costs(match):
    """Including the path and a percentile of all match costs; C alone would take 320 MB."""
    pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, "percentile:3", match], capture_output=True, text=True, check=True, timeout=300
    )
    of_costs, right = json.loads(found.stdout)
    assert of_costs < 0.5
    assert right > 0.99
