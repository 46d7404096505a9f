"""Interrupted runs, folders that belong to another run, and corpora that have changed."""

import json

import numpy as np
import pytest

import dropdtw.corpus
from corpus_cases import BOTH, STEPS, bad_corpus, content, corpus, table
from dropdtw.corpus import shards as corpora


class CutError(Exception):
    """The machine went away."""


def cut_after(monkeypatch, count):
    """Interrupt the run after this many shards."""
    from dropdtw.corpus import engines

    real, done = engines.ShardWork.__call__, []

    def sometimes(self, number, threads):
        if number >= count:
            raise CutError
        done.append(number)
        return real(self, number, threads)

    monkeypatch.setattr(engines.ShardWork, "__call__", sometimes)


@pytest.mark.parametrize("task", ["localize", "pairwise", "retrieve"])
def test_a_run_that_was_cut_off_goes_on_where_it_was(tmp_path, monkeypatch, task):
    corpus(tmp_path / "c", 20, files=2, group=2)
    bad_corpus(tmp_path / "c")

    def go(out):
        if task == "localize":
            return dropdtw.corpus.localize(STEPS, tmp_path / "c", out, shard_rows=4)
        return getattr(dropdtw.corpus, task)(tmp_path / "c", tmp_path / "c", out, shard_rows=8, **BOTH)

    with monkeypatch.context() as patch:
        cut_after(patch, 2)
        with pytest.raises(CutError):
            go(tmp_path / "out")
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out/parts").iterdir()}
    assert sorted(before) == ["00000.parquet", "00001.parquet"]
    (tmp_path / "out/parts/.00002.parquet.0123abcd.tmp").write_bytes(b"half")  # left behind by a killed writer
    done = go(tmp_path / "out")
    whole = go(tmp_path / "whole")
    assert done.done == whole.done - 2
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert before.items() <= {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out/parts").iterdir()}.items()
    assert go(tmp_path / "out").done == 0


def test_a_shard_that_is_there_is_not_done_again(tmp_path):
    from dropdtw.corpus.engines import Done, ShardWork
    from dropdtw.corpus.folder import RunFolder

    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/00007.parquet").touch()
    assert ShardWork(None, RunFolder(tmp_path), strict=False)(7, 1) == Done(7)  # without a task, it could not redo it


def test_far_files_appear_whole_as_well(monkeypatch):
    from dropdtw.corpus.storage import Storage

    place = Storage("memory://dropdtw-half")
    with monkeypatch.context() as patch:
        patch.setattr(type(place.fs), "mv", lambda *paths: (_ for _ in ()).throw(CutError))
        with pytest.raises(CutError):
            place.write("parts/00000.parquet", b"half of it")
    assert place.read("parts/00000.parquet") is None
    assert not place.fs.find(place.root)
    place.write("parts/00000.parquet", b"all of it")
    assert place.read("parts/00000.parquet") == b"all of it"
    place.fs.rm(place.root, recursive=True)


def test_another_run_is_refused_in_the_same_folder(tmp_path):
    corpus(tmp_path / "c", 6)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    with pytest.raises(ValueError, match="holds another run, which differs in settings"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.6)
    with pytest.raises(ValueError, match="differs in steps"):
        dropdtw.corpus.localize(STEPS + 1, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    corpus(tmp_path / "c", 6, group=1)  # the same records, in other row groups
    with pytest.raises(ValueError, match="differs in corpus"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    (tmp_path / "out/manifest.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").touch()
    with pytest.raises(ValueError, match=r"holds other files, such as notes\.txt"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "mine", drop_x=0.5)
    with pytest.raises(ValueError, match=r"notes\.txt is a file; give a folder"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "mine/notes.txt", drop_x=0.5)
    (tmp_path / "link").symlink_to("c")
    for out in ("c", "c/out", ".", "link/out"):
        with pytest.raises(ValueError, match="overlap; give a folder elsewhere"):
            dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / out, drop_x=0.5)


def test_a_corpus_whose_values_have_changed_is_another_one(tmp_path):
    dropdtw.corpus.write(tmp_path / "c.parquet", [("a", np.ones((3, 6)))])
    dropdtw.corpus.localize(STEPS, tmp_path / "c.parquet", tmp_path / "out", drop_x=0.5)
    dropdtw.corpus.write(tmp_path / "c.parquet", [("a", 2 * np.ones((3, 6)))])
    with pytest.raises(ValueError, match="differs in corpus"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c.parquet", tmp_path / "out", drop_x=0.5)


def test_a_foreign_file_whose_values_were_exchanged_is_another_one(tmp_path):
    """Sizes and extremes are the same, and so is the whole footer."""
    for order in ((0, 1), (1, 0)):
        X = [[1.0] * 6, [2.0] * 6]
        table(tmp_path / "c/0.parquet", id=["a", "b"], features=[X[k] for k in order], shape=[[1, 6]] * 2)
        if order == (0, 1):
            dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, drop_z=0.5)
    with pytest.raises(ValueError, match="differs in corpus"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, drop_z=0.5)


def test_values_that_were_exchanged_make_another_corpus(tmp_path):
    one, two = np.random.default_rng(0).normal(size=(2, 1, 6))  # incompressible: all sizes stay the same
    dropdtw.corpus.write(tmp_path / "c.parquet", [("a", one), ("b", two)])
    before = corpora.open_corpus(tmp_path / "c.parquet", 1000).fingerprint
    dropdtw.corpus.write(tmp_path / "c.parquet", [("a", two), ("b", one)])
    assert corpora.open_corpus(tmp_path / "c.parquet", 1000).fingerprint != before
    dropdtw.corpus.write(tmp_path / "c.parquet", [("a", one), ("b", two)])
    assert corpora.open_corpus(tmp_path / "c.parquet", 1000).fingerprint == before


def test_a_corpus_that_was_copied_is_the_same(tmp_path):
    import shutil

    corpus(tmp_path / "c", 6)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    shutil.copytree(tmp_path / "c", tmp_path / "copy")
    assert dropdtw.corpus.localize(STEPS, tmp_path / "copy", tmp_path / "out", drop_x=0.5).done == 0


def test_a_file_that_changes_during_the_run_stops_it(tmp_path, monkeypatch):
    corpus(tmp_path / "c", 10, files=2)
    data = corpora.open_corpus(tmp_path / "c", 1000)
    corpus(tmp_path / "c", 12, files=2)
    with pytest.raises(ValueError, match=r"0\.parquet of .* has changed since .*; start over in a new folder"):
        list(data.read(0))


def test_a_folder_is_claimed_by_one_run(tmp_path):
    from dropdtw.corpus.storage import Storage

    for place in (Storage(tmp_path), Storage("memory://dropdtw-claim")):
        assert place.create("manifest.json", b"mine")
        assert not place.create("manifest.json", b"yours")
        assert place.read("manifest.json") == b"mine"
        assert [str(p).rpartition("/")[2] for p in place.fs.find(place.root)] == ["manifest.json"]
    place.fs.rm(place.root, recursive=True)


def test_strict_refuses_a_run_with_errors(tmp_path):
    bad_corpus(tmp_path / "c")
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    with pytest.raises(ValueError, match=r"a\.parquet, row 1: it has no id; give a string \(strict=True stops here\)"):
        dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, strict=True)


def test_the_manifest_and_the_summary_say_what_was_done(tmp_path):
    corpus(tmp_path / "c", 6)
    dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["task"] == "localize"
    assert manifest["settings"] == {
        "match": "auto",
        "method": "drop_dtw",
        "one_to_many": True,
        "many_to_one": False,
        "contiguous": True,
        "window": None,
        "drop_x": 0.5,
        "drop_z": None,
        "threshold": None,
        "device": "cpu",
    }
    assert manifest["corpus"]["rows"] == 6
    assert json.loads((tmp_path / "out/summary.json").read_text()) == {"rows": 6, "errors": 0, "shards": 3}


def test_the_manifest_keeps_charges_as_plain_numbers(tmp_path):
    corpus(tmp_path / "c", 6)

    def go(**more):
        return dropdtw.corpus.localize(STEPS, tmp_path / "c", tmp_path / "out", drop_x=0.5, **more)

    go(open_x=np.float32(0.5), warp=1)
    settings = json.loads((tmp_path / "out/manifest.json").read_text())["settings"]
    assert (settings["open_x"], settings["warp"], "open_z" in settings) == (0.5, 1, False)
    assert go(open_x=0.5, warp=1.0).done == 0
    with pytest.raises(ValueError, match="holds another run, which differs in settings"):
        go(open_x="suggest", warp=1)


def test_progress_is_told(tmp_path):
    corpus(tmp_path / "c", 6)
    seen = []
    dropdtw.corpus.localize(
        STEPS, tmp_path / "c", tmp_path / "out", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
