"""Corpora of symbols, and corpora whose records have times."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dropdtw
import dropdtw.corpus
from corpus_cases import STEPS, record, rows, table

WORDS = ["GATTACA", "GATTTACA", "CCC", "ACAC", "GATACA"]
HOW = {"drop_x": 0.4, "drop_z": 0.4}


@pytest.fixture
def letters(tmp_path):
    dropdtw.corpus.write(
        tmp_path / "letters.parquet", [(f"w{k}", word, "GATA") for k, word in enumerate(WORDS)], group=2
    )
    return tmp_path / "letters.parquet"


def test_symbols_are_aligned_as_without_a_corpus(letters, tmp_path):
    done = dropdtw.corpus.pairwise(letters, letters, tmp_path / "pairs", shard_rows=2, **HOW)
    assert (done.rows, done.errors) == (25, 0)
    costs = {(row["z"], row["x"]): row["cost"] for row in rows(tmp_path / "pairs")}
    expected = dropdtw.pairwise(WORDS, **HOW)
    assert costs == {(f"w{a}", f"w{b}"): expected[a, b] for a in range(5) for b in range(5)}

    dropdtw.corpus.retrieve([("q", "GATTA")], letters, tmp_path / "near", 3, shard_rows=2, **HOW)
    near = pq.read_table(tmp_path / "near" / "nearest.parquet").to_pylist()
    found = dropdtw.nearest("GATTA", WORDS, 3, **HOW)
    assert [row["id"] for row in near] == [f"w{k}" for k in found.indices]
    assert [row["cost"] for row in near] == found.costs.tolist()

    how = {"drop_x": 0.4, "drop_z": 0.4, "many_to_one": False, "contiguous": True}
    for name, steps in (("all", list("GATA")), ("own", None)):
        dropdtw.corpus.localize(steps, letters, tmp_path / name, drop_x=0.4, drop_z=0.4)
        for word, row in zip(WORDS, rows(tmp_path / name), strict=True):
            a = dropdtw.align("GATA", word, **how)
            assert row["cost"] == a.cost
            assert [tuple(s.values()) for s in row["segments"]] == a.segments()


def test_a_column_of_strings_holds_letters(tmp_path):
    pq.write_table(pa.table({"id": ["a", "b", "c"], "features": ["GAT", "", None]}), tmp_path / "plain.parquet")
    done = dropdtw.corpus.pairwise(tmp_path / "plain.parquet", tmp_path / "plain.parquet", tmp_path / "out")
    assert (done.rows, done.errors) == (1, 4)
    assert rows(tmp_path / "out")[0]["cost"] == 0


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([("a", ["x", 3])], r"element 1 of feature sequence of record 0 is 3; corpora hold symbols as strings"),
        ([("a", "GA", [[1.0]])], "hold symbols and numbers"),
        ([("a", [1.0, 2.0], None, [0.0])], "times has 1 entries"),
        ([("a", [1.0], None, [0.0]), ("b", [1.0], None, [np.datetime64(0, "s")])], "times of records differ in type"),
    ],
)
def test_what_cannot_be_written(records, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        dropdtw.corpus.write(tmp_path / "a.parquet", records)


def test_symbols_and_numbers_are_not_compared(letters, tmp_path):
    with pytest.raises(ValueError, match=r"steps has 6 features and .* has symbols; both need the same"):
        dropdtw.corpus.localize(STEPS, letters, tmp_path / "out")
    with pytest.raises(ValueError, match="symbols, which are aligned on the CPU"):
        dropdtw.corpus.localize("GA", letters, tmp_path / "out", num_gpus=1)


NOON = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
CLOCKS = {
    "seconds": lambda n: np.cumsum(np.arange(1.0, n + 1)),
    "with ends": lambda n: np.stack([np.arange(n), np.arange(n) + 0.5], axis=1),
    "dates": lambda n: [NOON + timedelta(seconds=k) for k in range(n)],
    "durations": lambda n: [timedelta(seconds=k) for k in range(n)],
}


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_segments_have_the_times_of_their_record(clock, tmp_path):
    made = [(f"r{k}", record(k)) for k in range(4)]
    given = [(name, X, None, clock(len(X))) for name, X in made]
    dropdtw.corpus.write(tmp_path / "c.parquet", given, group=2)
    dropdtw.corpus.localize(STEPS, tmp_path / "c.parquet", tmp_path / "out", drop_x=0.5, shard_rows=2)
    how = {"many_to_one": False, "contiguous": True}
    for (_, X, _, times), row in zip(given, rows(tmp_path / "out"), strict=True):
        expected = dropdtw.align(STEPS, X, 0.5, times=times, **how).segments()
        assert [s["start"] for s in row["segments"]] == [s.start for s in expected]
        assert [(s["start_time"], s["stop_time"]) for s in row["segments"]] == [
            (s.start_time, s.stop_time) for s in expected
        ]


def test_frames_per_second(tmp_path):
    X = record(0)
    dropdtw.corpus.write(tmp_path / "c.parquet", [("a", X)])
    dropdtw.corpus.localize(STEPS, tmp_path / "c.parquet", tmp_path / "out", drop_x=0.5, fps=4)
    (row,) = rows(tmp_path / "out")
    assert [s["stop_time"] for s in row["segments"]] == [s["stop"] / 4 for s in row["segments"]]
    with pytest.raises(ValueError, match="settings"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c.parquet", tmp_path / "out", drop_x=0.5, fps=5)
    with pytest.raises(ValueError, match="fps is -1"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c.parquet", tmp_path / "out2", fps=-1)


def test_bad_times(tmp_path):
    one = {"id": ["a"], "features": [[1.0, 2.0]], "shape": [[2, 1]]}
    for k, times in enumerate(([0.0], [1.0, 0.0], None)):
        table(tmp_path / f"c/{k}.parquet", **one, times=pa.array([times], pa.list_(pa.float64())))
    done = dropdtw.corpus.localize([[1.0]], tmp_path / "c", tmp_path / "out", drop_x=0.5)
    assert (done.rows, done.errors) == (1, 2)  # without times, a record is as good as before
    assert rows(tmp_path / "out")[0]["segments"][0]["start_time"] is None
    with pytest.raises(ValueError, match=r"fps is 2, but the records have times; leave it out"):
        dropdtw.corpus.localize([[1.0]], tmp_path / "c", tmp_path / "out2", fps=2)
    table(tmp_path / "c/3.parquet", **one, times=pa.array([[datetime.now(UTC)] * 2], pa.list_(pa.timestamp("us"))))
    with pytest.raises(ValueError, match=r"the times of .* differ in type: 0.parquet \(double\) and 3.parquet"):
        dropdtw.corpus.localize([[1.0]], tmp_path / "c", tmp_path / "out3")
    table(tmp_path / "d.parquet", **one, times=["noon"])
    with pytest.raises(ValueError, match="its column times is string; give lists of seconds"):
        dropdtw.corpus.localize([[1.0]], tmp_path / "d.parquet", tmp_path / "out4")
