"""Corpora in Parquet on one machine: results, bad records, resuming. Ray does the same in test_scale_ray.py."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dropdtw
from dropdtw import scale
from dropdtw.scale import dataset as datasets
from dropdtw.scale.how import How
from scale_cases import STEPS, content, corpus, errors, record, rows, table

BOTH = {"drop_x": 0.4, "drop_z": 0.4}
RULE = {"drop_x": "percentile:20"}


# What comes out


def test_localize_gives_what_align_gives(tmp_path):
    made = corpus(tmp_path / "c")
    done = scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, shard_rows=10)
    assert (done.rows, done.errors, done.shards, done.done) == (60, 0, 6, 6)
    for (name, X), row in zip(made, rows(tmp_path / "out"), strict=True):
        a = dropdtw.align(STEPS, X, 0.5, many_to_one=False, contiguous=True)
        assert row["id"] == name
        assert row["cost"] == a.cost
        assert [tuple(s.values()) for s in row["segments"]] == a.segments()


def test_localize_suggests_a_drop_cost_for_each_record(tmp_path):
    made = corpus(tmp_path / "c", 12)
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS)
    how = {"many_to_one": False, "contiguous": True}
    for (_, X), row in zip(made, rows(tmp_path / "out"), strict=True):
        d = dropdtw.suggest_drop(STEPS, X, **how).constant
        assert row["cost"] == dropdtw.align(STEPS, X, d, **how).cost


def test_localize_finds_each_records_own_steps(tmp_path):
    made = corpus(tmp_path / "c", 12, steps=True)
    scale.localize(tmp_path / "c", tmp_path / "out", drop_x="percentile:30", many_to_one=True, contiguous=False)
    for (_, X, Z), row in zip(made, rows(tmp_path / "out"), strict=True):
        assert row["cost"] == dropdtw.align(Z, X, "percentile:30").cost


@pytest.mark.parametrize(
    "how", [BOTH, {"drop_x": "percentile:20"}, {"match": "euclidean"}, {"method": "otam"}], ids=str
)
def test_pairwise_gives_what_pairwise_gives(tmp_path, how):
    left, right = corpus(tmp_path / "a", 7, files=2, group=2), corpus(tmp_path / "b", 11, files=2, group=3)
    done = scale.pairwise(tmp_path / "a", tmp_path / "b", tmp_path / "out", shard_rows=4, **how)
    assert done.rows == 77
    found = {(row["z"], row["x"]): row["cost"] for row in rows(tmp_path / "out")}
    assert len(found) == 77
    full = dropdtw.pairwise([X for _, X in left], [X for _, X in right], **how)
    for (z, _), values in zip(left, full, strict=True):
        assert [found[z, x] for x, _ in right] == values.tolist()


@pytest.mark.parametrize("how", [BOTH, RULE, {"match": "softmax:0.5"}], ids=str)
def test_retrieve_gives_the_nearest_of_all(tmp_path, how):
    made = corpus(tmp_path / "c", 40, group=3)
    queries = [("q0", record(100)), ("q1", record(101)), ("q2", record(3))]
    done = scale.retrieve(queries, tmp_path / "c", tmp_path / "out", 4, shard_rows=7, **how)
    assert done.rows == 12
    full = dropdtw.pairwise([X for _, X in queries], [X for _, X in made], **how)
    found = scale_table(tmp_path / "out")
    for (name, _), values in zip(queries, full, strict=True):
        best = np.argsort(values, kind="stable")[:4]
        mine = [row for row in found if row["query"] == name]
        assert [row["rank"] for row in mine] == [1, 2, 3, 4]
        assert [row["id"] for row in mine] == [made[k][0] for k in best]
        assert [row["cost"] for row in mine] == values[best].tolist()
        assert [row["length"] for row in mine] == [len(made[k][1]) for k in best]


def test_of_equal_costs_the_first_record_wins_across_shards(tmp_path):
    X = record(1)
    for f in range(3):
        scale.write(tmp_path / f"c/{f}.parquet", [(f"{f}-{k}", X) for k in range(4)], group=2)
    scale.write(tmp_path / "q.parquet", [("q", record(2))])
    scale.retrieve(tmp_path / "q.parquet", tmp_path / "c", tmp_path / "out", 6, shard_rows=2, **BOTH)
    found = [row["id"] for row in scale_table(tmp_path / "out")]
    assert found == ["0-0", "0-1", "0-2", "0-3", "1-0", "1-1"]


def test_more_are_asked_for_than_there_are(tmp_path):
    corpus(tmp_path / "c", 5)
    assert scale.retrieve([("q", record(9))], tmp_path / "c", tmp_path / "out", 50, **BOTH).rows == 5


def scale_table(out):
    import pyarrow.parquet as pq

    return pq.read_table(Path(out, "nearest.parquet")).to_pylist()


def test_any_fsspec_address_will_do(tmp_path):
    import fsspec

    made = corpus(tmp_path / "c", 10)
    fs = fsspec.filesystem("memory")
    for f, part in content(tmp_path / "c").items():
        fs.pipe_file(f"/dropdtw/c/{f}", part)
    scale.write("memory://dropdtw/one.parquet", made[:3])
    scale.localize("memory://dropdtw/c", "memory://dropdtw/out", STEPS, drop_x=0.5, shard_rows=4)
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, shard_rows=4)
    there = {str(p).removeprefix("/dropdtw/out/"): fs.cat_file(p) for p in fs.find("/dropdtw/out")}
    assert there == content(tmp_path / "out")
    assert scale.localize("memory://dropdtw/one.parquet", tmp_path / "one", STEPS, drop_x=0.5).rows == 3
    fs.rm("/dropdtw", recursive=True)


def test_a_single_file_is_a_corpus_as_well(tmp_path):
    corpus(tmp_path / "c", 10, files=1)
    scale.localize(tmp_path / "c/0.parquet", tmp_path / "a", STEPS, drop_x=0.5)
    scale.localize(tmp_path / "c", tmp_path / "b", STEPS, drop_x=0.5)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_threads_do_not_matter(tmp_path):
    corpus(tmp_path / "c")
    for workers in (1, 4):
        scale.localize(tmp_path / "c", tmp_path / f"{workers}", STEPS, workers=workers)
        scale.pairwise(tmp_path / "c", tmp_path / "c", tmp_path / f"p{workers}", workers=workers, **BOTH)
    assert content(tmp_path / "1") == content(tmp_path / "4")
    assert content(tmp_path / "p1") == content(tmp_path / "p4")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 20))
def test_shards_hold_every_row_once_and_in_order(groups, shard_rows):
    shards = list(datasets._shards(datasets._File("f", tuple(groups), ""), shard_rows))
    assert sum(s.rows for s in shards) == sum(groups)
    row, covered = 0, []
    for s in shards:
        assert s.row == row
        assert s.rows == sum(groups[s.first : s.stop]) > 0
        assert s.rows <= shard_rows or sum(n > 0 for n in groups[s.first : s.stop]) == 1  # alone, as it is not divided
        row += s.rows
        covered += range(s.first, s.stop)
    assert covered == sorted(set(covered))
    assert all(groups[g] == 0 for g in set(range(len(groups))) - set(covered))


# On a GPU: the same functions of dropdtw.torch, here on the CPU


@pytest.mark.parametrize("match", ["cosine", "softmax:0.5", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("drops", [BOTH, {"drop_x": "percentile:30"}, {}], ids=str)
def test_torch_gives_the_same_values_and_alignments(match, drops, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.scale import gpu

    monkeypatch.setattr(gpu, "CELLS", 200)  # several batches
    Xs = [record(k).astype(np.float64) for k in range(9)]
    Zs = [STEPS.astype(np.float64)[: 1 + k % 3] + k for k in range(9)]
    expected = [dropdtw.align(Z, X, match=match, **drops) for Z, X in zip(Zs, Xs, strict=True)]
    costs = [a.cost for a in expected]
    every = dropdtw.pairwise(Zs, Xs, match=match, **drops)
    np.testing.assert_allclose(gpu.values(Zs, Xs, How(match=match, **drops)), every, rtol=1e-6, atol=1e-6)
    found = gpu.align(Zs, Xs, How(match=match, **drops))
    np.testing.assert_allclose([cost for cost, _ in found], costs, rtol=1e-6, atol=1e-6)
    assert [segments for _, segments in found] == [a.segments() for a in expected]


def test_torch_takes_a_drop_cost_for_each_pair_and_says_where_there_is_no_alignment():
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.scale import gpu

    Xs = [record(0), record(1), record(2)[:2]]
    found = gpu.align([STEPS] * 3, Xs, How(many_to_one=False, drop_x=9.0), [0.2, 0.9, 0.5])
    for k, d in ((0, 0.2), (1, 0.9)):
        a = dropdtw.align(STEPS, Xs[k], d, many_to_one=False)
        assert found[k] == (pytest.approx(a.cost, rel=1e-5), a.segments())
    assert found[2] == (np.inf, [])


def test_on_a_gpu_all_tasks_run(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
    from dropdtw.scale import gpu

    real, seen = gpu._batches, []

    def on_cpu(Zs, Xs, which, how):
        assert how.device == "cuda"
        for some, pairs in real(Zs, Xs, which, How(match=how.match)):
            seen.append(len(some))
            yield some, pairs

    monkeypatch.setattr(gpu, "_batches", on_cpu)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    made = corpus(tmp_path / "c", 10)
    table(tmp_path / "c/x.parquet", id=["bad", "short"], features=[None, [1.0] * 6], shape=[[1, 6], [1, 6]])
    for name, drop_x in (("l", 0.5), ("s", "suggest")):
        done = scale.localize(tmp_path / "c", tmp_path / name, STEPS, num_gpus=1, drop_x=drop_x)
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
    scale.retrieve([("q", record(4))], tmp_path / "c", tmp_path / "r", 1, num_gpus=1, **BOTH)
    assert scale_table(tmp_path / "r")[0]["id"] == "r4"
    assert scale.pairwise(tmp_path / "c", tmp_path / "c", tmp_path / "p", num_gpus=1, **BOTH).rows == 100
    assert sorted(seen) == [3, 3, 4, *[9] * 4, *[12] * 4, 16]  # pairs of two shards together


# Bad records


def bad_corpus(folder):
    """Two good records, and one of each kind of bad one."""
    X = record(0)
    good = X.ravel().tolist()
    size = list(X.shape)
    table(
        folder / "a.parquet",
        id=["good", None, "nothing", "no shape", "wrong shape", "hole", "empty", "flat", "null inside", "also good"],
        features=[good, good, None, good, good, [*good[:-1], np.nan], [], good, [*good[:-1], None], good],
        shape=[size, size, size, None, [2, 6], size, [0, 6], [len(good)], size, size],
    )
    return X


def test_a_bad_record_is_noted_and_the_others_are_done(tmp_path):
    X = bad_corpus(tmp_path / "c")
    (tmp_path / "c/b.parquet").write_bytes(b"PAR1 this is no parquet PAR1")
    table(tmp_path / "c/c.parquet", id=["x"], frames=[[1.0]])
    table(tmp_path / "c/d.parquet", id=["narrow"], features=[[1.0, 2.0]], shape=[[1, 2]])
    done = scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    assert [row["id"] for row in rows(tmp_path / "out")] == ["good", "also good"]
    assert rows(tmp_path / "out")[0]["cost"] == dropdtw.align(STEPS, X, 0.5, many_to_one=False, contiguous=True).cost
    found = {(e["file"], e["row"]): e for e in errors(tmp_path / "out")}
    assert done.errors == len(found) == 11
    reasons = {key: e["reason"] for key, e in found.items()}
    for key, part in {
        ("a.parquet", 1): "it has no id; give a string",
        ("a.parquet", 2): "it has no features",
        ("a.parquet", 3): f"its shape is None, but features holds {X.size} numbers",
        ("a.parquet", 4): f"its shape is [2, 6], but features holds {X.size} numbers",
        ("a.parquet", 5): "its features has NaN or infinity in element",
        ("a.parquet", 6): "at least one element",
        ("a.parquet", 7): f"its shape is [{X.size}]",
        ("a.parquet", 8): "its features has NaN",
        ("b.parquet", 0): "it cannot be read as Parquet",
        ("c.parquet", 0): "it has the columns id, frames, but no features, shape",
        ("d.parquet", 0): "it has 2 features, and the steps have 6",
    }.items():
        assert part in reasons[key], key
    assert found["a.parquet", 5]["id"] == "hole"
    assert found["a.parquet", 1]["id"] is None


def test_strict_stops_at_the_first_bad_record_and_keeps_what_was_done(tmp_path):
    corpus(tmp_path / "c", 10, files=1)
    bad_corpus(tmp_path / "c")
    with pytest.raises(ValueError, match=r"a\.parquet, row 1: it has no id.*strict=True stops here"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, strict=True)
    assert sorted(p.name for p in (tmp_path / "out/parts").iterdir()) == ["00000.parquet"]
    done = scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    assert (done.rows, done.errors, done.done) == (12, 8, 1)


def test_a_record_without_an_alignment_is_a_bad_one(tmp_path):
    corpus(tmp_path / "c", 3)
    table(tmp_path / "c/x.parquet", id=["short"], features=[[1.0] * 6], shape=[[1, 6]])
    done = scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    assert (done.rows, done.errors) == (3, 1)
    assert errors(tmp_path / "out")[0]["reason"].startswith(
        "3 elements of Z cannot each have an x of their own among 1"
    )


def test_a_file_with_very_many_row_groups(tmp_path):
    """Its end is longer than what is read at first."""
    scale.write(tmp_path / "c/0.parquet", ((str(k), np.ones((1, 2))) for k in range(500)), group=1)
    data = datasets.dataset(tmp_path / "c", 100)
    with data.storage.open("0.parquet") as file:
        assert len(datasets._end(file).footer) > 1 << 16
    assert [shard.rows for shard in data.shards] == [100] * 5
    assert [r.id for r in data.read(3)] == [str(k) for k in range(300, 400)]


@pytest.mark.parametrize("missing", ["pyarrow", "fsspec.core"])
def test_it_says_what_to_install(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"corpora need fsspec and pyarrow: pip install 'dropdtw\[parquet\]'"):
        scale.write(tmp_path / "a.parquet", [("a", [[1.0]])])


def test_it_says_what_ray_needs(tmp_path, monkeypatch):
    corpus(tmp_path / "c", 3)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'dropdtw\[ray\]', or take engine='local'"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, engine="ray")


def test_strict_refuses_an_unreadable_file(tmp_path):
    corpus(tmp_path / "c", 3, files=1)
    (tmp_path / "c/b.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"b\.parquet: it cannot be read as Parquet"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, strict=True)


def test_a_page_that_is_corrupt_costs_its_row_group_only(tmp_path):
    import pyarrow.parquet as pq

    corpus(tmp_path / "c", 30, files=1, group=10)
    path = tmp_path / "c/0.parquet"
    group = pq.ParquetFile(path).metadata.row_group(1)
    where = group.column(1).data_page_offset
    data = bytearray(path.read_bytes())
    data[where : where + 200] = b"\xff" * 200
    path.write_bytes(bytes(data))
    done = scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, shard_rows=100)
    assert [row["id"] for row in rows(tmp_path / "out")] == [f"r{k}" for k in [*range(10), *range(20, 30)]]
    assert done.errors == 10
    (error,) = errors(tmp_path / "out")
    assert (error["row"], error["rows"]) == (10, 10)
    assert "cannot be read as Parquet" in error["reason"]


def test_a_store_that_does_not_answer_is_no_bad_record(tmp_path, monkeypatch):
    corpus(tmp_path / "c", 3)
    broken = PermissionError(13, "no")
    monkeypatch.setattr("dropdtw.scale.storage.Storage.open", lambda self, name: (_ for _ in ()).throw(broken))
    with pytest.raises(PermissionError):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)


def test_a_bad_record_of_pairs_is_noted_once(tmp_path):
    for side in ("a", "b"):
        corpus(tmp_path / side, 8, files=1, group=2)
        table(tmp_path / side / "bad.parquet", id=["hole"], features=[[np.nan] * 6], shape=[[1, 6]])
        table(tmp_path / side / "narrow.parquet", id=["narrow"], features=[[1.0]], shape=[[1, 1]])
    done = scale.pairwise(tmp_path / "a", tmp_path / "b", tmp_path / "p", shard_rows=2, **BOTH)
    assert (done.rows, done.errors) == (64, 4)
    done = scale.retrieve(tmp_path / "a", tmp_path / "b", tmp_path / "r", 2, shard_rows=2, **BOTH)
    assert (done.rows, done.errors) == (16, 4)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_pairs_without_an_alignment_cost_infinity_and_are_near_nothing(tmp_path, monkeypatch, device):
    if device == "gpu":
        pytest.importorskip("torch", reason="torch is not installed: pip install 'dropdtw[torch]'")
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
        monkeypatch.setattr("dropdtw.scale.gpu._batches", cpu_batches())
    scale.write(tmp_path / "c.parquet", [("short", np.ones((2, 2))), ("long", np.ones((4, 2)))])
    how = {"drop_x": 0.3, "many_to_one": False, "num_gpus": int(device == "gpu")}
    done = scale.pairwise(tmp_path / "c.parquet", tmp_path / "c.parquet", tmp_path / "p", **how)
    assert [(row["z"], row["x"], row["cost"]) for row in rows(tmp_path / "p")] == [
        ("short", "short", pytest.approx(0, abs=1e-6)),
        ("short", "long", pytest.approx(0, abs=1e-6)),
        ("long", "short", np.inf),
        ("long", "long", pytest.approx(0, abs=1e-6)),
    ]
    assert done.errors == 0
    done = scale.retrieve(tmp_path / "c.parquet", tmp_path / "c.parquet", tmp_path / "r", 5, **how)
    assert [(row["query"], row["id"]) for row in scale_table(tmp_path / "r")] == [
        ("short", "short"),
        ("short", "long"),
        ("long", "long"),
    ]
    assert done.errors == 0


def cpu_batches():
    """The batches of `gpu`, on the CPU."""
    from dropdtw.scale import gpu

    real = gpu._batches
    return lambda Zs, Xs, which, how: real(Zs, Xs, which, How(match=how.match))


def test_a_pair_that_fails_does_not_keep_others_from_their_values(monkeypatch):
    real = dropdtw.pairwise

    def picky(Zs, Xs, **how):
        if any(len(X) == 3 for X in Xs) and any(Z[0, 0] == 7 for Z in Zs):
            raise ValueError("three and seven")
        return real(Zs, Xs, **how)

    monkeypatch.setattr(dropdtw, "pairwise", picky)
    Zs, Xs = [np.full((2, 2), v) for v in (1.0, 7.0)], [np.ones((n, 2)) for n in (2, 3, 4)]
    values, reasons = How(drop_x=0.1).values(Zs, Xs, 1)
    assert reasons == {(1, 1): "three and seven"}
    assert np.isnan(values[1, 1])
    np.testing.assert_allclose(np.delete(values.ravel(), 4), 0, atol=1e-6)


# Runs that were cut off


class CutError(Exception):
    """The machine went away."""


def cut_after(monkeypatch, count):
    """Let the run break off when so many shards are done."""
    from dropdtw.scale import run as runs

    real, done = runs.Work.__call__, []

    def sometimes(self, number, threads):
        if number >= count:
            raise CutError
        done.append(number)
        return real(self, number, threads)

    monkeypatch.setattr(runs.Work, "__call__", sometimes)


@pytest.mark.parametrize("task", ["localize", "pairwise", "retrieve"])
def test_a_run_that_was_cut_off_goes_on_where_it_was(tmp_path, monkeypatch, task):
    corpus(tmp_path / "c", 20, files=2, group=2)
    bad_corpus(tmp_path / "c")

    def go(out):
        if task == "localize":
            return scale.localize(tmp_path / "c", out, STEPS, shard_rows=4)
        return getattr(scale, task)(tmp_path / "c", tmp_path / "c", out, shard_rows=8, **BOTH)

    with monkeypatch.context() as patch:
        cut_after(patch, 2)
        with pytest.raises(CutError):
            go(tmp_path / "out")
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out/parts").iterdir()}
    assert sorted(before) == ["00000.parquet", "00001.parquet"]
    (tmp_path / "out/parts/.00002.parquet.half").write_bytes(b"half")  # as a killed writer leaves it
    done = go(tmp_path / "out")
    whole = go(tmp_path / "whole")
    assert done.done == whole.done - 2
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert before.items() <= {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out/parts").iterdir()}.items()
    assert go(tmp_path / "out").done == 0


def test_a_shard_that_is_there_is_not_done_again(tmp_path):
    from dropdtw.scale.run import Done, Work
    from dropdtw.scale.storage import Storage

    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/00007.parquet").touch()
    assert Work(None, Storage(tmp_path), strict=False)(7, 1) == Done(7)  # there is no job that could do it


def test_far_files_appear_whole_as_well(monkeypatch):
    from dropdtw.scale.storage import Storage

    place = Storage("memory://dropdtw-half")
    with monkeypatch.context() as patch:
        patch.setattr(type(place.fs), "mv", lambda *paths: (_ for _ in ()).throw(CutError))
        with pytest.raises(CutError):
            place.write("parts/00000.parquet", b"half of it")
    assert place.read("parts/00000.parquet") is None
    assert len(place.fs.find(place.root)) == 1
    place.sweep("parts")
    assert not place.fs.find(place.root)
    place.write("parts/00000.parquet", b"all of it")
    assert place.read("parts/00000.parquet") == b"all of it"
    place.fs.rm(place.root, recursive=True)


def test_another_run_is_refused_in_the_same_folder(tmp_path):
    corpus(tmp_path / "c", 6)
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    with pytest.raises(ValueError, match="holds another run, which differs in settings"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.6)
    with pytest.raises(ValueError, match="differs in steps"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS + 1, drop_x=0.5)
    corpus(tmp_path / "c", 6, group=1)  # the same records, in other row groups
    with pytest.raises(ValueError, match="differs in corpus"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    (tmp_path / "out/manifest.json").write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    with pytest.raises(ValueError, match=r"holds other files, such as notes\.txt"):
        scale.localize(tmp_path / "c", tmp_path / "mine", STEPS, drop_x=0.5)
    with pytest.raises(ValueError, match=r"notes\.txt is a file; give a folder"):
        scale.localize(tmp_path / "c", tmp_path / "mine/notes.txt", STEPS, drop_x=0.5)
    for out in ("c", "c/out", "."):
        with pytest.raises(ValueError, match="lie in each other; give a folder elsewhere"):
            scale.localize(tmp_path / "c", tmp_path / out, STEPS, drop_x=0.5)


def test_a_corpus_whose_values_have_changed_is_another_one(tmp_path):
    scale.write(tmp_path / "c.parquet", [("a", np.ones((3, 6)))])
    scale.localize(tmp_path / "c.parquet", tmp_path / "out", STEPS, drop_x=0.5)
    scale.write(tmp_path / "c.parquet", [("a", 2 * np.ones((3, 6)))])
    with pytest.raises(ValueError, match="differs in corpus"):
        scale.localize(tmp_path / "c.parquet", tmp_path / "out", STEPS, drop_x=0.5)


def test_a_foreign_file_whose_values_were_exchanged_is_another_one(tmp_path):
    """Sizes and extremes are the same; so is everything that its end says."""
    for order in ((0, 1), (1, 0)):
        X = [[1.0] * 6, [2.0] * 6]
        table(tmp_path / "c/0.parquet", id=["a", "b"], features=[X[k] for k in order], shape=[[1, 6]] * 2)
        if order == (0, 1):
            scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, drop_z=0.5)
    with pytest.raises(ValueError, match="differs in corpus"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, drop_z=0.5)


def test_values_that_were_exchanged_make_another_corpus(tmp_path):
    one, two = np.random.default_rng(0).normal(size=(2, 1, 6))  # which nothing compresses: all sizes stay the same
    scale.write(tmp_path / "c.parquet", [("a", one), ("b", two)])
    before = datasets.dataset(tmp_path / "c.parquet", 1000).fingerprint
    scale.write(tmp_path / "c.parquet", [("a", two), ("b", one)])
    assert datasets.dataset(tmp_path / "c.parquet", 1000).fingerprint != before
    scale.write(tmp_path / "c.parquet", [("a", one), ("b", two)])
    assert datasets.dataset(tmp_path / "c.parquet", 1000).fingerprint == before


def test_a_corpus_that_was_copied_is_the_same(tmp_path):
    import shutil

    corpus(tmp_path / "c", 6)
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    shutil.copytree(tmp_path / "c", tmp_path / "copy")
    assert scale.localize(tmp_path / "copy", tmp_path / "out", STEPS, drop_x=0.5).done == 0


def test_a_file_that_changes_during_the_run_stops_it(tmp_path, monkeypatch):
    corpus(tmp_path / "c", 10, files=2)
    data = datasets.dataset(tmp_path / "c", 1000)
    corpus(tmp_path / "c", 12, files=2)
    with pytest.raises(ValueError, match=r"0\.parquet of .* has changed since the run began; start anew elsewhere"):
        list(data.read(0))


def test_a_folder_is_claimed_by_one_run(tmp_path):
    from dropdtw.scale.storage import Storage

    for place in (Storage(tmp_path), Storage("memory://dropdtw-claim")):
        assert place.create("manifest.json", b"mine")
        assert not place.create("manifest.json", b"yours")
        assert place.read("manifest.json") == b"mine"
        assert [str(p).rpartition("/")[2] for p in place.fs.find(place.root)] == ["manifest.json"]
    place.fs.rm(place.root, recursive=True)


def test_strict_refuses_a_run_with_errors(tmp_path):
    bad_corpus(tmp_path / "c")
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    with pytest.raises(ValueError, match=r"a\.parquet, row 1: it has no id; give a string \(strict=True stops here\)"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5, strict=True)


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_drop_cost_that_cannot_be_suggested_is_an_error_of_its_record(tmp_path):
    scale.write(tmp_path / "c.parquet", [("far", np.full((10, 6), 1e200)), ("near", record(0).astype(np.float64))])
    done = scale.localize(tmp_path / "c.parquet", tmp_path / "out", STEPS, match="sqeuclidean")
    assert (done.rows, done.errors) == (1, 1)
    assert errors(tmp_path / "out")[0]["reason"].startswith("every match is forbidden")


@pytest.mark.parametrize("moment", ["end", "middle"])
def test_a_store_that_falls_silent_stops_the_run(tmp_path, monkeypatch, moment):
    """It is no bad record: the same run again will find the data."""
    from dropdtw.scale.storage import Storage

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
                raise TimeoutError("no answer")  # without a number, as fsspec's
            return self.file.read(*size)

    monkeypatch.setattr(Storage, "open", lambda self, name: Silent(real(self, name)))
    with pytest.raises(TimeoutError):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"features": [b"1234"]}, "its column features is binary; give lists of numbers"),
        ({"features": [[[1.0, 2.0]]]}, "its column features is list"),
        ({"features": [1.0]}, "its column features is double"),
        ({"shape": [[1.0, 2.0]]}, "its column shape is list.*; give lists of whole numbers"),
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
    done = scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
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
    done = scale.localize(tmp_path / "c", tmp_path / "out", np.eye(1, 6), drop_x=0.5)
    assert (done.rows, done.errors) == (1, 0)
    assert rows(tmp_path / "out") == [{"id": "7", "cost": 0.0, "segments": [{"step": 0, "start": 0, "stop": 1}]}]


def test_a_giant_row_group_is_warned_of(tmp_path):
    corpus(tmp_path / "c", 30, files=1, group=30)
    with pytest.warns(UserWarning, match=r"0\.parquet has 30 records in one row group"):
        datasets.dataset(tmp_path / "c", 2)


def test_large_records_are_held_one_by_one(monkeypatch):
    from dropdtw.scale import records

    monkeypatch.setattr(records, "BATCH_BYTES", 100)
    some = [records.Record("f", k, "r", np.ones((n, 1))) for k, n in enumerate([20, 1, 1, 12, 1])]
    bad = records.Bad("f", 9, None, "no")
    assert [[r.row for r in part] for part in records.together([*some, bad], 4)] == [[0], [1, 2, 3], [4, 9]]
    assert [[r.row for r in part] for part in records.together([bad] * 5, 4)] == [[9] * 4, [9]]


def test_the_manifest_and_the_summary_say_what_was_done(tmp_path):
    corpus(tmp_path / "c", 6)
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_x=0.5)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["task"] == "localize"
    assert manifest["settings"]["drop_x"] == 0.5
    assert manifest["corpus"]["rows"] == 6
    assert json.loads((tmp_path / "out/summary.json").read_text()) == {"rows": 6, "errors": 0, "shards": 3}


def test_numbers_of_numpy_are_numbers(tmp_path):
    corpus(tmp_path / "c", 6)
    how = {"drop_x": np.float32(0.5), "window": np.int64(30), "contiguous": np.bool_(True), "shard_rows": np.int64(9)}
    scale.localize(tmp_path / "c", tmp_path / "a", STEPS, **how)
    scale.localize(tmp_path / "c", tmp_path / "b", STEPS, drop_x=0.5, window=30, shard_rows=9)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_methods_without_drops_get_none(tmp_path):
    made = corpus(tmp_path / "c", 6)
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS, method="dtw", many_to_one=True, contiguous=False)
    assert rows(tmp_path / "out")[0]["cost"] == dropdtw.align(STEPS, made[0][1], method="dtw").cost


def test_progress_is_told(tmp_path):
    corpus(tmp_path / "c", 6)
    seen = []
    scale.localize(tmp_path / "c", tmp_path / "out", STEPS, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, r"engine is 'spark'; choose one of 'local', 'ray'"),
        ({"workers": 0}, r"workers is 0; give how many work at a time"),
        ({"num_cpus": 0}, r"num_cpus is 0 and num_gpus 0"),
        ({"shard_rows": 0}, r"shard_rows is 0; give how many records make a shard"),
        ({"match": np.dot}, r"match is <.*>; give a name: the manifest"),
        ({"match": "cosin"}, r"cosin"),
        ({"method": "drop"}, r"'drop'"),
        ({"drop_x": [1.0, 2.0]}, r"drop_x is \[1.0, 2.0\]; give a number, or a rule"),
        ({"drop_x": True}, r"drop_x is True; give a number"),
        ({"drop_z": "suggest"}, r"suggest"),
        ({"method": "dtw"}, r"drop"),
        ({"threshold": 0.5}, r"threshold"),
        ({"drop_x": np.bool_(True)}, r"drop_x is .*True.*; give a number"),
        ({"num_gpus": 1}, r"PyTorch sees no GPU here"),
    ],
    ids=str,
)
def test_settings_that_would_fail_on_every_record_are_refused_at_once(tmp_path, options, message):
    corpus(tmp_path / "c", 3)
    with pytest.raises(ValueError, match=message):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, **({"drop_x": 0.5} | options))
    assert not (tmp_path / "out").exists()


def test_other_refusals(tmp_path):
    corpus(tmp_path / "c", 3)
    with pytest.raises(TypeError, match="drop_y is no option; there are match"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS, drop_y=1)
    with pytest.raises(ValueError, match="drop_x is 'suggest', which makes the values of different records"):
        scale.pairwise(tmp_path / "c", tmp_path / "c", tmp_path / "out", drop_x="suggest")
    with pytest.raises(ValueError, match=r"steps has 5 features and .* has 6; both need the same number"):
        scale.localize(tmp_path / "c", tmp_path / "out", STEPS[:, :5])
    with pytest.raises(ValueError, match=r"queries has 5 features and .* has 6"):
        scale.retrieve([("q", STEPS[:, :5])], tmp_path / "c", tmp_path / "out", **BOTH)
    with pytest.raises(ValueError, match="k is 0"):
        scale.retrieve(tmp_path / "c", tmp_path / "c", tmp_path / "out", 0, **BOTH)
    with pytest.raises(ValueError, match=r"queries is empty; give at least one \(id, sequence\)"):
        scale.retrieve([], tmp_path / "c", tmp_path / "out", **BOTH)
    (tmp_path / "c").rename(tmp_path / ".c")  # hidden
    with pytest.raises(ValueError, match=r"holds no \.parquet files; write some with"):
        scale.localize(tmp_path, tmp_path / "out", STEPS)
    with pytest.raises(ValueError, match=r"holds no \.parquet files"):
        scale.localize(tmp_path / "nowhere", tmp_path / "out", STEPS)
    table(tmp_path / "e/0.parquet", id=[], features=[], shape=[])
    with pytest.raises(ValueError, match="hold no records"):
        scale.localize(tmp_path / "e", tmp_path / "out", STEPS)
    (tmp_path / "e/0.parquet").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"holds no records: 0\.parquet: it cannot be read as Parquet"):
        scale.localize(tmp_path / "e", tmp_path / "out", STEPS)
    table(tmp_path / "n/0.parquet", id=["a"], features=[None], shape=[[1, 6]])
    with pytest.raises(
        ValueError, match=r"holds no good record; the first one: 0\.parquet, row 0 \(id 'a'\): it has no"
    ):
        scale.pairwise(tmp_path / "n", tmp_path / "n", tmp_path / "out", **BOTH)


def test_a_record_without_steps_is_a_bad_one(tmp_path):
    corpus(tmp_path / "c", 3)
    scale.localize(tmp_path / "c", tmp_path / "out", drop_x=0.5)
    assert {e["reason"] for e in errors(tmp_path / "out")} == {"it has no steps, and none were given for all records"}


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([], {}, "there are no records to write"),
        ([("a",)], {}, r"record 0 has 1 parts; give \(id, X\) or \(id, X, steps\)"),
        ([("a", [[1.0]]), ("b", np.full((2, 2), np.nan))], {}, r"features of record 1 has NaN"),
        ([("a", [[1.0]])], {"group": 0}, "group is 0"),
        (
            [("a", np.ones((1, 1), np.float32)), ("b", np.ones((1, 1)))],
            {"group": 1},
            "records 1 to 1 are not of the type",
        ),
        ([("a", [[1.0]], [[1.0]]), ("b", [[1.0]])], {"group": 1}, "records 1 to 1 are not of the type"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, records, options, message):
    with pytest.raises(ValueError, match=message):
        scale.write(tmp_path / "a.parquet", records, **options)
    assert not list(tmp_path.iterdir())


def test_a_file_needs_its_ending(tmp_path):
    with pytest.raises(ValueError, match=r"give a file name that ends in \.parquet"):
        scale.write(tmp_path / "a.csv", [("a", [[1.0]])])
