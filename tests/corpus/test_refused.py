"""What is refused before anything is written."""

import sys

import numpy as np
import pytest

import dropdtw.corpus
from corpus_cases import BOTH, STEPS, corpus, table


@pytest.mark.parametrize("missing", ["pyarrow", "fsspec.core"])
def test_it_says_what_to_install(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"corpora need fsspec and pyarrow: pip install 'dropdtw\[parquet\]'"):
        dropdtw.corpus.write(tmp_path / "a.parquet", [("a", [[1.0]])])


def test_it_says_what_ray_needs(tmp_path, monkeypatch):
    corpus(tmp_path / "c", 3)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'dropdtw\[ray\]', or use the engine 'local'"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, engine="ray")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, r"engine is 'spark'; choose one of 'local', 'ray'"),
        ({"workers": 0}, r"workers is 0; give the number of workers, 1 or more"),
        ({"num_cpus": 0}, r"num_cpus is 0 and num_gpus 0; give the CPUs \(> 0\)"),
        ({"shard_rows": 0}, r"shard_rows is 0; give the number of records per shard"),
        ({"match": np.dot}, r"match is <.*>, which the manifest of a run cannot record; give a name"),
        ({"match": "cosin"}, r"cosin"),
        ({"method": "drop"}, r"'drop'"),
        ({"drop_x": [1.0, 2.0]}, r"drop_x is \[1.0, 2.0\]; give a number, or a rule"),
        ({"drop_x": True}, "drop_x is True; give a number"),
        ({"drop_z": "sugest"}, r"drop_z is 'sugest'; give None, a number"),
        ({"method": "dtw"}, r"drop"),
        ({"threshold": 0.5}, r"threshold"),
        ({"drop_x": np.bool_(True)}, "drop_x is .*True.?; give a number"),
        ({"open_x": -1}, r"open_x is -1; give a finite number ≥ 0"),
        ({"open_z": 1.0}, r"open_z is 1.0, but no z may be dropped"),
        ({"warp": "suggest"}, r"warp is 'suggest'; give a finite number ≥ 0"),
        ({"num_gpus": 1}, r"PyTorch sees no GPU here"),
    ],
    ids=str,
)
def test_settings_that_would_fail_on_every_record_are_refused_at_once(tmp_path, options, message):
    corpus(tmp_path / "c", 3)
    with pytest.raises(ValueError, match=message):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", **({"drop_x": 0.5} | options))
    assert not (tmp_path / "out").exists()


def test_other_refusals(tmp_path):
    corpus(tmp_path / "c", 3)
    with pytest.raises(TypeError, match=r"a corpus has no option drop_y; did you mean drop_[xz]"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_y=1)
    with pytest.raises(ValueError, match=r"steps has 5 features and .* has 6 features; both need the same"):
        dropdtw.corpus.localize(STEPS[:, :5], tmp_path / "c", tmp_path / "out")
    with pytest.raises(ValueError, match=r"queries has 5 features and .* has 6"):
        dropdtw.corpus.retrieve([("q", STEPS[:, :5])], tmp_path / "c", tmp_path / "out", **BOTH)
    with pytest.raises(ValueError, match="k is 0"):
        dropdtw.corpus.retrieve(tmp_path / "c", tmp_path / "c", tmp_path / "out", 0, **BOTH)
    with pytest.raises(ValueError, match=r"queries is empty; give at least one \(id, sequence\)"):
        dropdtw.corpus.retrieve([], tmp_path / "c", tmp_path / "out", **BOTH)
    (tmp_path / "c").rename(tmp_path / ".c")  # hidden
    with pytest.raises(ValueError, match=r"has no \.parquet files; name a \.parquet file or a folder"):
        dropdtw.corpus.localize(STEPS, tmp_path, tmp_path / "out")
    with pytest.raises(ValueError, match="nowhere does not exist; name a"):
        dropdtw.corpus.localize(STEPS, tmp_path / "nowhere", tmp_path / "out")
    table(tmp_path / "e/0.parquet", id=[], features=[], shape=[])
    with pytest.raises(ValueError, match="contain no records; write some"):
        dropdtw.corpus.localize(STEPS, tmp_path / "e", tmp_path / "out")
    (tmp_path / "e/0.parquet").write_bytes(b"x")
    with pytest.raises(
        ValueError,
        match=r"has no readable records: 0\.parquet: it cannot be read as Parquet: it has no Parquet footer",
    ):
        dropdtw.corpus.localize(STEPS, tmp_path / "e", tmp_path / "out")
    table(tmp_path / "n/0.parquet", id=["a"], features=[None], shape=[[1, 6]])
    with pytest.raises(
        ValueError, match=r"has no good record; the first bad one is 0\.parquet, row 0 \(id 'a'\): it has no"
    ):
        dropdtw.corpus.pairwise(tmp_path / "n", tmp_path / "n", tmp_path / "out", **BOTH)


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([], {}, "there are no records to write"),
        ([("a",)], {}, r"record 0 has 1 parts; give \(id, X\), \(id, X, steps\) or"),
        ([("a", [[1.0]]), ("b", np.full((2, 2), np.nan))], {}, r"feature sequence of record 1 has NaN"),
        ([("a", [[1.0]])], {"group": 0}, "group is 0"),
        (
            [("a", np.ones((1, 1), np.float32)), ("b", np.ones((1, 1)))],
            {"group": 1},
            "records 1 to 1 differ in type from the first ones; give all records",
        ),
        ([("a", [[1.0]], [[1.0]]), ("b", [[1.0]])], {"group": 1}, "records 1 to 1 differ in type"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, records, options, message):
    with pytest.raises(ValueError, match=message):
        dropdtw.corpus.write(tmp_path / "a.parquet", records, **options)
    assert not list(tmp_path.iterdir())


def test_a_file_needs_its_ending(tmp_path):
    with pytest.raises(ValueError, match=r"give a file name that ends in \.parquet"):
        dropdtw.corpus.write(tmp_path / "a.csv", [("a", [[1.0]])])


def test_an_aligner_stands_for_its_options(tmp_path):
    dropdtw.corpus.write(
        tmp_path / "c.parquet", [(str(k), np.random.default_rng(k).normal(size=(6, 2))) for k in range(4)]
    )
    aligner = dropdtw.Aligner(0.5, 0.4, match="euclidean", window=3)
    how = {"drop_x": 0.5, "drop_z": 0.4, "match": "euclidean", "window": 3}
    for name, options in (("a", {"aligner": aligner}), ("b", how)):
        dropdtw.corpus.pairwise(tmp_path / "c.parquet", tmp_path / "c.parquet", tmp_path / name, **options)
    a, b = ((tmp_path / name / "manifest.json").read_text() for name in "ab")
    assert a == b
    for wrong, says in (
        ({"aligner": aligner, "warp": 0.1}, "warp is 0.1, and aligner is given"),
        ({"aligner": aligner.replace(reducer="soft")}, "reducer is 'soft', which corpora do not take"),
    ):
        with pytest.raises(ValueError, match=says):
            dropdtw.corpus.pairwise(tmp_path / "c.parquet", tmp_path / "c.parquet", tmp_path / "x", **wrong)
