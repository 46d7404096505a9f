"""Corpora on a GPU: the same functions of dropdtw.torch, here on the CPU."""

import numpy as np
import pytest

import dropdtw
import dropdtw.corpus
from corpus_cases import BOTH, STEPS, corpus, errors, nearest_of, pretend_gpu, record, rows, table
from dropdtw.problem.spec import Spec


@pytest.mark.parametrize("match", ["cosine", "softmax:0.5", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize(
    "drops",
    [
        BOTH,
        {"drop_x": "percentile:30"},
        {"drop_x": "suggest", "drop_z": "suggest"},
        {},
        {**BOTH, "open_x": 0.3, "open_z": 0.2, "warp": 0.05},
        {"drop_x": "suggest", "drop_z": 0.3, "open_x": "suggest", "open_z": "suggest", "window": 0.9},
    ],
    ids=str,
)
def test_torch_gives_the_same_values_and_alignments(match, drops, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.corpus import gpu

    monkeypatch.setattr(gpu, "CELLS", 200)  # several batches
    Xs = [record(k).astype(np.float64) for k in range(9)]
    Zs = [STEPS.astype(np.float64)[: 1 + k % 3] + k for k in range(9)]
    expected = [dropdtw.align(Z, X, match=match, **drops) for Z, X in zip(Zs, Xs, strict=True)]
    costs = [a.cost for a in expected]
    spec = Spec.of(match=match, **drops)
    every = dropdtw.pairwise(Zs, Xs, match=match, **drops)
    np.testing.assert_allclose(gpu.values(Zs, Xs, spec, "cpu"), every, rtol=1e-6, atol=1e-6)
    found = gpu.align(Zs, Xs, spec, "cpu")
    np.testing.assert_allclose([cost for cost, _ in found], costs, rtol=1e-6, atol=1e-6)
    assert [segments for _, segments in found] == [a.segments() for a in expected]


POWERS = [
    (np.float32, 0),
    (np.float32, 100),
    (np.float32, -100),
    (np.float64, 0),
    (np.float64, 900),
    (np.float64, -900),
]


@pytest.mark.parametrize(("dtype", "power"), POWERS, ids=str)
@pytest.mark.parametrize("d", [1, 3, 24])
@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-30])
def test_euclidean_costs_are_those_of_distance_at_any_scale(d, dtype, power, apart):
    """Values about 2^power, and pairs that are closer than that by any factor; some are equal."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.corpus import gpu

    rng = np.random.default_rng(d)
    size = 2.0**power
    Zs = [(rng.normal(size=(K, d)) * size).astype(dtype) for K in (3, 5)]
    for Z in Zs:
        Z[1] = 0
    Xs = [np.repeat(Z, 2, axis=0) for Z in Zs]
    for X in Xs:
        X += (apart * size * rng.normal(size=X.shape)).astype(dtype)
        X[0] = 0
    how = {"match": "euclidean", "drop_x": size, "drop_z": 2 * size}
    expected = [[dropdtw.distance(Z.astype(np.float64), X.astype(np.float64), **how) for X in Xs] for Z in Zs]
    tolerance = 100 * np.finfo(dtype).eps
    spec = Spec.of(**how)
    np.testing.assert_allclose(gpu.values(Zs, Xs, spec, "cpu"), expected, rtol=tolerance, atol=0)
    np.testing.assert_allclose([c for c, _ in gpu.align(Zs, Xs, spec, "cpu")], np.diag(expected), rtol=tolerance)
    ours = [[dropdtw.distance(Z, X, **how) for X in Xs] for Z in Zs]
    np.testing.assert_allclose(gpu.values(Zs, Xs, spec, "cpu"), ours, rtol=tolerance, atol=0)


def test_torch_suggests_a_drop_cost_for_each_pair_and_says_where_there_is_no_alignment():
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.corpus import gpu

    Xs = [record(0), record(1), record(2)[:2]]
    how = {"many_to_one": False, "window": 0.9, "drop_x": "suggest", "open_x": "suggest"}
    found = gpu.align([STEPS] * 3, Xs, Spec.of(**how), "cpu")
    for k in (0, 1):
        a = dropdtw.align(STEPS, Xs[k], **how)
        assert found[k] == (pytest.approx(a.cost, rel=1e-5), a.segments())
    assert found[2] == (np.inf, [])


def test_on_a_gpu_all_tasks_run(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.corpus import gpu

    real, seen = gpu._batches, []

    def on_cpu(Zs, Xs, which, spec, device):
        assert device == "cuda"
        for some, pairs in real(Zs, Xs, which, spec, "cpu"):
            seen.append(len(some))
            yield some, pairs

    monkeypatch.setattr(gpu, "_batches", on_cpu)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    made = corpus(tmp_path / "c", 10)
    table(tmp_path / "c/x.parquet", id=["bad", "short"], features=[None, [1.0] * 6], shape=[[1, 6], [1, 6]])
    for name, drop_x in (("l", 0.5), ("s", "suggest")):
        done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / name, num_gpus=1, drop_x=drop_x)
        assert (done.rows, done.errors) == (10, 2)
        for (_, X), row in zip(made, rows(tmp_path / name), strict=True):
            how = {"many_to_one": False, "contiguous": True}
            d = 0.5 if name == "l" else dropdtw.suggest_drop(STEPS, X, **how).constant
            a = dropdtw.align(STEPS, X, d, **how)
            assert row["cost"] == pytest.approx(a.cost, rel=1e-5)
            assert [tuple(s.values()) for s in row["segments"]] == a.segments()
        assert [e["reason"] for e in errors(tmp_path / name)][1] == "every alignment is forbidden"
    (tmp_path / "c/x.parquet").unlink()
    seen.clear()
    dropdtw.corpus.retrieve([("q", record(4))], tmp_path / "c", tmp_path / "r", 1, num_gpus=1, **BOTH)
    assert nearest_of(tmp_path / "r")[0]["id"] == "r4"
    assert dropdtw.corpus.pairwise(tmp_path / "c", tmp_path / "c", tmp_path / "p", num_gpus=1, **BOTH).rows == 100
    assert sorted(seen) == [3, 3, 4, *[9] * 4, *[12] * 4, 16]  # pairs of two shards together


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_pairs_without_an_alignment_cost_infinity_and_are_near_nothing(tmp_path, monkeypatch, device):
    if device == "gpu":
        pretend_gpu(monkeypatch)
    dropdtw.corpus.write(tmp_path / "c.parquet", [("short", np.ones((2, 2))), ("long", np.ones((4, 2)))])
    how = {"drop_x": 0.3, "many_to_one": False, "num_gpus": int(device == "gpu")}
    done = dropdtw.corpus.pairwise(tmp_path / "c.parquet", tmp_path / "c.parquet", tmp_path / "p", **how)
    assert [(row["z"], row["x"], row["cost"]) for row in rows(tmp_path / "p")] == [
        ("short", "short", pytest.approx(0, abs=1e-6)),
        ("short", "long", pytest.approx(0, abs=1e-6)),
        ("long", "short", np.inf),
        ("long", "long", pytest.approx(0, abs=1e-6)),
    ]
    assert done.errors == 0
    done = dropdtw.corpus.retrieve(tmp_path / "c.parquet", tmp_path / "c.parquet", tmp_path / "r", 5, **how)
    assert [(row["query"], row["id"]) for row in nearest_of(tmp_path / "r")] == [
        ("short", "short"),
        ("short", "long"),
        ("long", "long"),
    ]
    assert done.errors == 0
