"""`dropdtw localize` and `retrieve` with --engine: corpora in Parquet."""

import numpy as np
import pytest

from corpus_cases import STEPS, content, corpus, record, rows, table

pytest.importorskip("typer", reason="typer is not installed")
pytest.importorskip("rich", reason="rich is not installed")

from test_cli import call, run

import dropdtw
import dropdtw.corpus


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Steps, a query, and a corpus with one bad record in it."""
    np.save(tmp_path / "steps.npy", STEPS)
    np.save(tmp_path / "query.npy", record(5))
    corpus(tmp_path / "c", 20)
    table(tmp_path / "c/bad.parquet", id=["hole"], features=[[np.nan] * 6], shape=[[1, 6]])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_localize_a_corpus(folder):
    done = run(
        "localize", "steps.npy", "c", "--engine", "local", "--out", "out", "--drop-x", "0.5", "--shard-rows", "4"
    )
    assert done.stdout == "20 results in out/parts (7 of 7 shards done now)\n"
    assert done.stderr == "dropdtw: bad records left out: 1; the reasons are in out/errors.jsonl\n"
    dropdtw.corpus.localize(STEPS, "c", "same", drop_x=0.5, shard_rows=4)
    assert content(folder / "out") == content(folder / "same")
    again = run(
        "localize", "steps.npy", "c", "--engine", "local", "--out", "out", "--drop-x", "0.5", "--shard-rows", "4"
    )
    assert "(0 of 7 shards done now)" in again.stdout


def test_localize_suggests_drop_costs_and_takes_each_records_own_steps(folder):
    corpus(folder / "own", 6, steps=True)
    run("localize", "own", "own", "--engine", "local", "--out", "out", "--match", "euclidean")
    dropdtw.corpus.localize(None, "own", "same", match="euclidean")
    assert content(folder / "out") == content(folder / "same")
    assert len(rows(folder / "out")) == 6


def test_retrieve_from_a_corpus(folder):
    how = ("--drop-x", "0.4", "--drop-z", "0.4", "--top", "3")
    done = run("retrieve", "query.npy", "c", "--engine", "local", "--out", "out", *how)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["query", "#", "cost", "length", "id"]
    assert lines[1][0::4] == ["query.npy", "r5"]
    assert float(lines[1][2]) == pytest.approx(dropdtw.distance(record(5), record(5), 0.4, 0.4), abs=1e-5)
    assert done.stdout.splitlines()[-1] == "3 results in out/nearest.parquet (4 of 4 shards done now)"
    assert "suggested" not in done.stderr
    dropdtw.corpus.write("q.parquet", [("a", record(7)), ("b", record(8))])
    done = run("retrieve", "q.parquet", "c", "--engine", "local", "--out", "many", *how)
    assert [line.split()[0::4] for line in done.stdout.splitlines()[1::3][:2]] == [["a", "r7"], ["b", "r8"]]


def test_retrieve_suggests_a_drop_cost_once_for_all(folder):
    done = run("retrieve", "query.npy", "c", "--engine", "local", "--out", "out", "--top", "1")
    assert "suggested for both sides, from 6 of 21 sequences" in done.stderr
    assert done.stdout.splitlines()[1].split()[4] == "r5"


def test_suggestions_go_where_they_were_asked_for(folder):
    import json

    for k, (asked, given) in enumerate([(("suggest", "none"), None), (("suggest", "0.4"), 0.4)]):
        out = f"out{k}"
        run("retrieve", "query.npy", "c", "--engine", "local", "--out", out, "--drop-x", asked[0], "--drop-z", asked[1])
        settings = json.loads((folder / out / "manifest.json").read_text())["settings"]
        assert settings["drop_z"] == given
        assert 0 < settings["drop_x"] < 1


def test_mistakes_are_told_in_one_line(folder, monkeypatch, capsys):
    for arguments, message in {
        ("localize", "steps.npy", "c", "--engine", "local"): "--engine needs --out FOLDER",
        (
            "localize",
            "steps.npy",
            "c",
            "--engine",
            "local",
            "--out",
            "o",
            "--format",
            "srt",
        ): "--format srt is for",
        ("localize", "steps.npy", "c", "--engine", "spark", "--out", "o"): "engine is 'spark'",
        ("localize", "steps.npy", "c", "--engine", "local", "--out", "o", "--strict"): "bad.parquet, row 0",
        ("retrieve", "query.npy", "c", "--engine", "local"): "--engine needs --out FOLDER",
        ("retrieve", "query.npy", "c", "--engine", "local", "--out", "o", "--mean"): "--mean and --skip-broken are for",
        (
            "retrieve",
            "c/bad.parquet",
            "c",
            "--engine",
            "local",
            "--out",
            "o",
        ): "begins with records that cannot",
    }.items():
        code, _, said = call(monkeypatch, capsys, *arguments)
        assert code == 2
        assert said.count("\n") == 1
        assert message in said
