"""Bad records, bad files and stores that stop responding: what is noted, what stops a run, what is still read."""

import re
from pathlib import Path

import numpy as np
import pytest

import dropdtw
import dropdtw.corpus
from corpus_cases import BOTH, STEPS, bad_corpus, corpus, errors, pretend_gpu, record, rows, table
from dropdtw.corpus import compute
from dropdtw.problem.spec import Spec


def test_a_bad_record_is_noted_and_the_others_are_done(tmp_path):
    X = bad_corpus(tmp_path / "c")
    (tmp_path / "c/b.parquet").write_bytes(b"PAR1 this is no parquet PAR1")
    table(tmp_path / "c/c.parquet", id=["x"], frames=[[1.0]])
    table(tmp_path / "c/d.parquet", id=["narrow"], features=[[1.0, 2.0]], shape=[[1, 2]])
    done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    assert [row["id"] for row in rows(tmp_path / "out")] == ["good", "also good"]
    assert rows(tmp_path / "out")[0]["cost"] == dropdtw.align(STEPS, X, 0.5, many_to_one=False, contiguous=True).cost
    found = {(e["file"], e["row"]): e for e in errors(tmp_path / "out")}
    assert done.errors == len(found) == 11
    reasons = {key: e["reason"] for key, e in found.items()}
    for key, part in {
        ("a.parquet", 1): "it has no id; give a string",
        ("a.parquet", 2): "it has no features",
        ("a.parquet", 3): f"its shape is None, but features has {X.size} numbers",
        ("a.parquet", 4): f"its shape is [2, 6], but features has {X.size} numbers",
        ("a.parquet", 5): "its feature sequence has NaN or infinity in element",
        ("a.parquet", 6): "at least one element",
        ("a.parquet", 7): f"its shape is [{X.size}]",
        ("a.parquet", 8): "its feature sequence has NaN",
        ("b.parquet", 0): "it cannot be read as Parquet",
        ("c.parquet", 0): "it has the columns id, frames, but no features, shape",
        ("d.parquet", 0): "it has 2 features, but the steps have 6",
    }.items():
        assert part in reasons[key], key
    assert found["a.parquet", 5]["id"] == "hole"
    assert found["a.parquet", 1]["id"] is None


def test_strict_stops_at_the_first_bad_record_and_keeps_what_was_done(tmp_path):
    corpus(tmp_path / "c", 10, files=1)
    bad_corpus(tmp_path / "c")
    with pytest.raises(ValueError, match=r"a\.parquet, row 1: it has no id.*strict=True stops here"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, strict=True)
    assert sorted(p.name for p in (tmp_path / "out/parts").iterdir()) == ["00000.parquet"]
    done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    assert (done.rows, done.errors, done.done) == (12, 8, 1)


def test_a_record_without_an_alignment_is_a_bad_one(tmp_path):
    corpus(tmp_path / "c", 3)
    table(tmp_path / "c/x.parquet", id=["short"], features=[[1.0] * 6], shape=[[1, 6]])
    done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    assert (done.rows, done.errors) == (3, 1)
    assert errors(tmp_path / "out")[0]["reason"].startswith(
        "Z has 3 elements and X has 1, so the z cannot each have an x of their own"
    )


def test_strict_refuses_an_unreadable_file(tmp_path):
    corpus(tmp_path / "c", 3, files=1)
    (tmp_path / "c/b.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"b\.parquet: it cannot be read as Parquet"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, strict=True)


def test_a_page_that_is_corrupt_costs_its_row_group_only(tmp_path):
    import pyarrow.parquet as pq

    corpus(tmp_path / "c", 30, files=1, group=10)
    path = tmp_path / "c/0.parquet"
    group = pq.ParquetFile(path).metadata.row_group(1)
    where = group.column(1).data_page_offset
    data = bytearray(path.read_bytes())
    data[where : where + 200] = b"\xff" * 200
    path.write_bytes(bytes(data))
    done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, shard_rows=100)
    assert [row["id"] for row in rows(tmp_path / "out")] == [f"r{k}" for k in [*range(10), *range(20, 30)]]
    assert done.errors == 10
    (error,) = errors(tmp_path / "out")
    assert (error["row"], error["rows"]) == (10, 10)
    assert "cannot be read as Parquet" in error["reason"]


def test_a_store_that_does_not_answer_is_no_bad_record(tmp_path, monkeypatch):
    corpus(tmp_path / "c", 3)
    broken = PermissionError(13, "no")
    monkeypatch.setattr("dropdtw.corpus.storage.Storage.open", lambda self, name: (_ for _ in ()).throw(broken))
    with pytest.raises(PermissionError):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)


def test_a_bad_record_of_pairs_is_noted_once(tmp_path):
    for side in ("a", "b"):
        corpus(tmp_path / side, 8, files=1, group=2)
        table(tmp_path / side / "bad.parquet", id=["hole"], features=[[np.nan] * 6], shape=[[1, 6]])
        table(tmp_path / side / "narrow.parquet", id=["narrow"], features=[[1.0]], shape=[[1, 1]])
    done = dropdtw.corpus.pairwise(tmp_path / "a", tmp_path / "b", tmp_path / "p", shard_rows=2, **BOTH)
    assert (done.rows, done.errors) == (64, 4)
    done = dropdtw.corpus.retrieve(tmp_path / "a", tmp_path / "b", tmp_path / "r", 2, shard_rows=2, **BOTH)
    assert (done.rows, done.errors) == (16, 4)


def test_a_pair_that_fails_does_not_keep_others_from_their_values(monkeypatch):
    real = compute.all_pairs

    def picky(spec, Zs, Xs, *more, **how):
        if any(len(X) == 3 for X in Xs) and any(Z[0, 0] == 7 for Z in Zs):
            raise ValueError("three and seven")
        return real(spec, Zs, Xs, *more, **how)

    monkeypatch.setattr(compute, "all_pairs", picky)
    Zs, Xs = [np.full((2, 2), v) for v in (1.0, 7.0)], [np.ones((n, 2)) for n in (2, 3, 4)]
    values, reasons = compute.values(Spec.of(drop_x=0.1, match="cosine"), "cpu", Zs, Xs, 1)
    assert reasons == {(1, 1): "three and seven"}
    assert np.isnan(values[1, 1])
    np.testing.assert_allclose(np.delete(values.ravel(), 4), 0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_drop_cost_that_cannot_be_suggested_is_an_error_of_its_record(tmp_path, monkeypatch, device):
    if device == "gpu":
        pretend_gpu(monkeypatch)
    dropdtw.corpus.write(
        tmp_path / "c.parquet", [("far", np.full((10, 6), 1e200)), ("near", record(0).astype(np.float64))]
    )
    done = dropdtw.corpus.localize(
        STEPS, tmp_path / "c.parquet", tmp_path / "out", match="sqeuclidean", num_gpus=int(device == "gpu")
    )
    assert (done.rows, done.errors) == (1, 1)
    assert errors(tmp_path / "out")[0]["reason"].startswith("every match is forbidden")


@pytest.mark.parametrize("moment", ["end", "middle"])
def test_a_store_that_falls_silent_stops_the_run(tmp_path, monkeypatch, moment):
    """It is not a bad record: the same call again will find the data."""
    from dropdtw.corpus.storage import Storage

    corpus(tmp_path / "c", 30, files=1)
    real = Storage.open

    class Silent:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *what):
            self.file.close()

        def read(self, *size):
            at_end = self.file.tell() + 4 >= Path(tmp_path / "c/0.parquet").stat().st_size - (1 << 16) and not size
            if moment == "end" or not at_end:
                raise TimeoutError("no answer")  # without an errno, like fsspec's
            return self.file.read(*size)

    monkeypatch.setattr(Storage, "open", lambda self, name: Silent(real(self, name)))
    with pytest.raises(TimeoutError):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"features": [b"1234"]}, "its column features is binary; give lists of numbers"),
        ({"features": [[[1.0, 2.0]]]}, "its column features is list"),
        ({"features": [1.0]}, "its column features is double"),
        ({"shape": [[1.0, 2.0]]}, "its column shape is list.*; give lists of integers"),
        ({"id": [1.5]}, "its column id is double; give strings"),
        ({"steps": [[1.0]]}, "but no steps_shape"),
    ],
)
def test_columns_of_other_types_make_a_file_useless_and_no_more(tmp_path, columns, reason):
    import pyarrow as pa
    import pyarrow.parquet as pq

    corpus(tmp_path / "c", 3)
    usual = {"id": ["a"], "features": [[1.0, 2.0]], "shape": [[1, 2]]}
    pq.write_table(pa.table(usual | columns), tmp_path / "c/x.parquet")
    done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    assert (done.rows, done.errors) == (3, 1)
    assert re.search(reason, errors(tmp_path / "out")[0]["reason"])


@pytest.mark.parametrize("kind", ["float16", "large_list", "fixed_size_list", "int id"])
def test_other_kinds_of_lists_and_numbers_are_read(tmp_path, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = {"float16": pa.list_(pa.float16()), "large_list": pa.large_list(pa.float32())}
    features = pa.array([[1.0, 0, 0, 0, 0, 0]], pa.list_(pa.float64()))
    features = features.cast(lists.get(kind, pa.list_(pa.float32(), 6)))
    ids = pa.array([7]) if kind == "int id" else pa.array(["7"])
    (tmp_path / "c").mkdir()
    pq.write_table(
        pa.table({"id": ids, "features": features, "shape": [[1, 6]], "more": [1]}), tmp_path / "c/0.parquet"
    )
    done = dropdtw.corpus.localize(np.eye(1, 6), tmp_path / "c", tmp_path / "out", drop_x=0.5)
    assert (done.rows, done.errors) == (1, 0)
    assert rows(tmp_path / "out") == [{"id": "7", "cost": 0.0, "segments": [{"step": 0, "start": 0, "stop": 1}]}]


def test_a_record_without_steps_is_a_bad_one(tmp_path):
    corpus(tmp_path / "c", 3)
    dropdtw.corpus.localize(None, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    reason = "it has no steps, and the call gives none; add a steps column, or pass steps"
    assert {e["reason"] for e in errors(tmp_path / "out")} == {reason}
