"""The results of all tasks on Parquet corpora on one machine; test_ray.py does the same on Ray."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dropdtw
import dropdtw.corpus
from corpus_cases import BOTH, STEPS, content, corpus, nearest_of, record, rows
from dropdtw.corpus import shards as corpora

RULE = {"drop_x": "percentile:20"}
SUGGEST = {"drop_x": "suggest", "drop_z": "suggest"}


def test_localize_gives_what_align_gives(tmp_path):
    made = corpus(tmp_path / "c")
    done = dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, shard_rows=10)
    assert (done.rows, done.errors, done.shards, done.done) == (60, 0, 6, 6)
    for (name, X), row in zip(made, rows(tmp_path / "out"), strict=True):
        a = dropdtw.align(STEPS, X, 0.5, many_to_one=False, contiguous=True)
        assert row["id"] == name
        assert row["cost"] == a.cost
        assert [tuple(s.values()) for s in row["segments"]] == a.segments()


def test_localize_suggests_a_drop_cost_for_each_record(tmp_path):
    made = corpus(tmp_path / "c", 12)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out")
    how = {"many_to_one": False, "contiguous": True}
    for (_, X), row in zip(made, rows(tmp_path / "out"), strict=True):
        d = dropdtw.suggest_drop(STEPS, X, **how).constant
        assert row["cost"] == dropdtw.align(STEPS, X, d, **how).cost


def test_localize_takes_suggest_for_both_sides_and_each(tmp_path):
    made = corpus(tmp_path / "c", 12)
    how = {"many_to_one": False, "contiguous": True}
    for name, drops in (("both", SUGGEST), ("z", {"drop_x": 0.5, "drop_z": "suggest"})):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / name, **drops)
        expected = dropdtw.pairwise([STEPS], [X for _, X in made], **drops, **how)[0]
        assert [row["cost"] for row in rows(tmp_path / name)] == pytest.approx(expected.tolist(), rel=1e-6)


def test_localize_may_be_told_to_drop_nothing(tmp_path):
    made = corpus(tmp_path / "c", 6)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=None, many_to_one=True, contiguous=False)
    assert [row["cost"] for row in rows(tmp_path / "out")] == [dropdtw.align(STEPS, X).cost for _, X in made]


def test_localize_finds_each_records_own_steps(tmp_path):
    made = corpus(tmp_path / "c", 12, steps=True)
    dropdtw.corpus.localize(
        None, tmp_path / "c", tmp_path / "out", drop_x="percentile:30", many_to_one=True, contiguous=False
    )
    for (_, X, Z), row in zip(made, rows(tmp_path / "out"), strict=True):
        assert row["cost"] == dropdtw.align(Z, X, "percentile:30").cost


@pytest.mark.parametrize(
    "how",
    [BOTH, RULE, SUGGEST, {"drop_x": "suggest"}, {"drop_z": "suggest"}, {"match": "euclidean"}, {"method": "otam"}],
    ids=str,
)
def test_pairwise_gives_what_pairwise_gives(tmp_path, how):
    left, right = corpus(tmp_path / "a", 7, files=2, group=2), corpus(tmp_path / "b", 11, files=2, group=3)
    done = dropdtw.corpus.pairwise(tmp_path / "a", tmp_path / "b", tmp_path / "out", shard_rows=4, **how)
    assert done.rows == 77
    found = {(row["z"], row["x"]): row["cost"] for row in rows(tmp_path / "out")}
    assert len(found) == 77
    full = dropdtw.pairwise([X for _, X in left], [X for _, X in right], **how)
    for (z, _), values in zip(left, full, strict=True):
        assert [found[z, x] for x, _ in right] == values.tolist()


@pytest.mark.parametrize("how", [BOTH, RULE, SUGGEST, {"match": "softmax:0.5"}], ids=str)
def test_retrieve_gives_the_nearest_of_all(tmp_path, how):
    made = corpus(tmp_path / "c", 40, group=3)
    queries = [("q0", record(100)), ("q1", record(101)), ("q2", record(3))]
    done = dropdtw.corpus.retrieve(queries, tmp_path / "c", tmp_path / "out", 4, shard_rows=7, **how)
    assert done.rows == 12
    full = dropdtw.pairwise([X for _, X in queries], [X for _, X in made], **how)
    found = nearest_of(tmp_path / "out")
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
        dropdtw.corpus.write(tmp_path / f"c/{f}.parquet", [(f"{f}-{k}", X) for k in range(4)], group=2)
    dropdtw.corpus.write(tmp_path / "q.parquet", [("q", record(2))])
    dropdtw.corpus.retrieve(tmp_path / "q.parquet", tmp_path / "c", tmp_path / "out", 6, shard_rows=2, **BOTH)
    found = [row["id"] for row in nearest_of(tmp_path / "out")]
    assert found == ["0-0", "0-1", "0-2", "0-3", "1-0", "1-1"]


def test_more_are_asked_for_than_there_are(tmp_path):
    corpus(tmp_path / "c", 5)
    assert dropdtw.corpus.retrieve([("q", record(9))], tmp_path / "c", tmp_path / "out", 50, **BOTH).rows == 5


def test_any_fsspec_address_will_do(tmp_path):
    import fsspec

    made = corpus(tmp_path / "c", 10)
    fs = fsspec.filesystem("memory")
    for f, part in content(tmp_path / "c").items():
        fs.pipe_file(f"/dropdtw/c/{f}", part)
    dropdtw.corpus.write("memory://dropdtw/one.parquet", made[:3])
    dropdtw.corpus.localize(STEPS, "memory://dropdtw/c", "memory://dropdtw/out", drop_x=0.5, shard_rows=4)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, shard_rows=4)
    there = {str(p).removeprefix("/dropdtw/out/"): fs.cat_file(p) for p in fs.find("/dropdtw/out")}
    assert there == content(tmp_path / "out")
    assert dropdtw.corpus.localize(STEPS, "memory://dropdtw/one.parquet", tmp_path / "one", drop_x=0.5).rows == 3
    fs.rm("/dropdtw", recursive=True)


def test_a_single_file_is_a_corpus_as_well(tmp_path):
    corpus(tmp_path / "c", 10, files=1)
    dropdtw.corpus.localize(STEPS, tmp_path / "c/0.parquet", tmp_path / "a", drop_x=0.5)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "b", drop_x=0.5)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_threads_do_not_matter(tmp_path):
    corpus(tmp_path / "c")
    for workers in (1, 4):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / f"{workers}", workers=workers)
        dropdtw.corpus.pairwise(tmp_path / "c", tmp_path / "c", tmp_path / f"p{workers}", workers=workers, **BOTH)
    assert content(tmp_path / "1") == content(tmp_path / "4")
    assert content(tmp_path / "p1") == content(tmp_path / "p4")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 20))
def test_shards_hold_every_row_once_and_in_order(groups, shard_rows):
    shards = list(corpora._shards(corpora._CorpusFile("f", tuple(groups), ""), shard_rows))
    assert sum(s.rows for s in shards) == sum(groups)
    row, covered = 0, []
    for s in shards:
        assert s.row == row
        assert s.rows == sum(groups[s.first : s.stop]) > 0
        assert s.rows <= shard_rows or sum(n > 0 for n in groups[s.first : s.stop]) == 1  # row groups are not split
        row += s.rows
        covered += range(s.first, s.stop)
    assert covered == sorted(set(covered))
    assert all(groups[g] == 0 for g in set(range(len(groups))) - set(covered))


def test_a_file_with_very_many_row_groups(tmp_path):
    """Its footer is longer than the first read."""
    dropdtw.corpus.write(tmp_path / "c/0.parquet", ((str(k), np.ones((1, 2))) for k in range(500)), group=1)
    data = corpora.open_corpus(tmp_path / "c", 100)
    with data.storage.open("0.parquet") as file:
        assert len(corpora._end(file).footer) > 1 << 16
    assert [shard.rows for shard in data.shards] == [100] * 5
    assert [r.id for r in data.read(3)] == [str(k) for k in range(300, 400)]


def test_a_giant_row_group_is_warned_of(tmp_path):
    corpus(tmp_path / "c", 30, files=1, group=30)
    with pytest.warns(UserWarning, match=r"0\.parquet has 30 records in one row group"):
        corpora.open_corpus(tmp_path / "c", 2)


def test_large_records_are_held_one_by_one(monkeypatch):
    from dropdtw.corpus import records

    monkeypatch.setattr(records, "BATCH_BYTES", 100)
    some = [records.Record("f", k, "r", np.ones((n, 1))) for k, n in enumerate([20, 1, 1, 12, 1])]
    bad = records.Bad("f", 9, None, "no")
    assert [[r.row for r in part] for part in records.together([*some, bad], 4)] == [[0], [1, 2, 3], [4, 9]]
    assert [[r.row for r in part] for part in records.together([bad] * 5, 4)] == [[9] * 4, [9]]


def test_numbers_of_numpy_are_numbers(tmp_path):
    corpus(tmp_path / "c", 6)
    how = {"drop_x": np.float32(0.5), "window": np.int64(30), "contiguous": np.bool_(True), "shard_rows": np.int64(9)}
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "a", **how)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "b", drop_x=0.5, window=30, shard_rows=9)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_methods_without_drops_get_none(tmp_path):
    made = corpus(tmp_path / "c", 6)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", method="dtw", many_to_one=True, contiguous=False)
    assert rows(tmp_path / "out")[0]["cost"] == dropdtw.align(STEPS, made[0][1], method="dtw").cost
