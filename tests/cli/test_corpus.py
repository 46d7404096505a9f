"""`dropdtw corpus …`: corpora in Parquet."""

import json

import numpy as np
import pytest

import dropdtw
import dropdtw.corpus
from cli_cases import call, run
from corpus_cases import STEPS, content, corpus, record, rows, table


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
    command = ("corpus", "localize", "steps.npy", "c", "--out", "out", "--drop-x", "0.5", "--shard-rows", "4")
    done = run(*command)
    assert done.stdout == "20 results in out/parts (7 of 7 shards computed by this command)\n"
    assert done.stderr == "dropdtw: bad records skipped: 1; the reasons are in out/errors.jsonl\n"
    dropdtw.corpus.localize(STEPS, "c", "same", drop_x=0.5, shard_rows=4)
    assert content(folder / "out") == content(folder / "same")
    assert "(0 of 7 shards computed by this command)" in run(*command).stdout


def test_localize_suggests_drop_costs_and_takes_each_records_own_steps(folder):
    corpus(folder / "own", 6, steps=True)
    run("corpus", "localize", "own", "own", "--out", "out", "--match", "euclidean")
    dropdtw.corpus.localize(None, "own", "same", match="euclidean")
    assert content(folder / "out") == content(folder / "same")
    assert len(rows(folder / "out")) == 6


def test_retrieve_from_a_corpus(folder):
    how = ("--drop-x", "0.4", "--drop-z", "0.4", "--top", "3")
    done = run("corpus", "retrieve", "query.npy", "c", "--out", "out", *how)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["query", "#", "cost", "length", "id"]
    assert lines[1][0::4] == ["query.npy", "r5"]
    assert float(lines[1][2]) == pytest.approx(dropdtw.distance(record(5), record(5), 0.4, 0.4), abs=1e-5)
    assert done.stdout.splitlines()[-1] == "3 results in out/nearest.parquet (4 of 4 shards computed by this command)"
    assert "suggested" not in done.stderr
    dropdtw.corpus.write("q.parquet", [("a", record(7)), ("b", record(8))])
    done = run("corpus", "retrieve", "q.parquet", "c", "--out", "many", *how)
    assert [line.split()[0::4] for line in done.stdout.splitlines()[1::3][:2]] == [["a", "r7"], ["b", "r8"]]


def test_retrieve_suggests_a_drop_cost_once_for_all(folder):
    done = run("corpus", "retrieve", "query.npy", "c", "--out", "out", "--top", "1")
    assert "suggested, from 6 of 21 sequences" in done.stderr
    assert done.stdout.splitlines()[1].split()[4] == "r5"


def test_suggestions_go_where_they_were_asked_for(folder):
    for k, (asked, given) in enumerate([(("suggest", "none"), None), (("suggest", "0.4"), 0.4)]):
        out = f"out{k}"
        flags = ("--match", "cosine", "--drop-x", asked[0], "--drop-z", asked[1])
        run("corpus", "retrieve", "query.npy", "c", "--out", out, *flags)
        settings = json.loads((folder / out / "manifest.json").read_text())["settings"]
        assert settings["drop_z"] == given
        assert 0 < settings["drop_x"] < 1


def test_pairs_of_two_corpora(folder):
    corpus(folder / "left", 3)
    done = run(
        "corpus", "pairwise", "left", "c", "--out", "out", "--drop-x", "0.4", "--drop-z", "suggest", "--match", "cosine"
    )
    assert done.stdout == "60 results in out/parts (12 of 12 shards computed by this command)\n"
    assert "suggested, from 6 of 21 sequences" in done.stderr
    price = json.loads((folder / "out/manifest.json").read_text())["settings"]["drop_z"]
    assert 0 < price < 1
    dropdtw.corpus.pairwise("left", "c", "same", drop_x=0.4, drop_z=price, match="cosine")
    assert content(folder / "out") == content(folder / "same")


GIVEN = {
    "default": ([], {}),
    "none": (
        ["--drop-x", "none", "--many-to-one", "--no-contiguous"],
        {"drop_x": None, "many_to_one": True, "contiguous": False},
    ),
    "suggest": (["--drop-x", "suggest", "--drop-z", "suggest"], {"drop_x": "suggest", "drop_z": "suggest"}),
    "warp": (["--no-one-to-many", "--window", "0.9"], {"one_to_many": False, "window": 0.9}),
    "otam": (["--method", "otam"], {"method": "otam"}),
    "lcss": (["--method", "lcss", "--threshold", "percentile:20"], {"method": "lcss", "threshold": "percentile:20"}),
}


@pytest.mark.parametrize("option", GIVEN)
def test_every_option_is_passed_on(folder, option):
    flags, given = GIVEN[option]
    run("corpus", "localize", "steps.npy", "c", "--out", "out", "--workers", "1", *flags)
    dropdtw.corpus.localize(STEPS, "c", "same", **given)
    assert content(folder / "out") == content(folder / "same")


WRONG = {
    "no out": (["localize", "steps.npy", "c"], "Missing option '--out'"),
    "no out to retrieve": (["retrieve", "query.npy", "c"], "Missing option '--out'"),
    "no folder": (["retrieve", "query.npy", "c", "--out", "-"], "but the results are several files; give a folder"),
    "no format": (["localize", "steps.npy", "c", "--out", "o", "--format", "srt"], "No such option: --format"),
    "no such engine": (["localize", "steps.npy", "c", "--out", "o", "--engine", "spark"], "engine is 'spark'"),
    "strict": (["localize", "steps.npy", "c", "--out", "o", "--strict"], "bad.parquet, row 0"),
    "no mean": (["retrieve", "query.npy", "c", "--out", "o", "--mean"], "No such option: --mean"),
    "bad queries": (["retrieve", "c/bad.parquet", "c", "--out", "o"], "first records of c/bad.parquet are unusable"),
    "no steps": (["localize", "nothing.npy", "c", "--out", "o"], "there is no file nothing.npy"),
    "match": (
        ["localize", "steps.npy", "c", "--out", "o", "--match", "magic"],
        "match is 'magic'; choose one of 'cosine'",
    ),
    "drop": (["localize", "steps.npy", "c", "--out", "o", "--drop-x", "lots"], "--drop-x is 'lots'; give a number"),
    "drops": (["localize", "steps.npy", "c", "--out", "o", "--drop-x", "d.txt"], "records differ in length"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_told_in_one_line(folder, monkeypatch, capsys, mistake):
    arguments, message = WRONG[mistake]
    (folder / "d.txt").write_text("1\n2\n")
    code, _, said = call(monkeypatch, capsys, "corpus", *arguments)
    assert code == 2
    assert said.count("\n") == 1
    assert message in said


@pytest.mark.parametrize("command", ["localize", "retrieve", "pairwise"])
def test_help_is_worth_reading(command):
    shown = run("corpus", command, "--help").stdout
    assert f"dropdtw corpus {command}" in shown.partition("Example:")[2]
    for option in ("--out", "--engine", "--workers", "--num-gpus", "--shard-rows", "--strict", "--drop-x", "--window"):
        assert option in shown


def test_the_group_alone_shows_its_commands(monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "corpus")
    assert code == 2
    assert all(f" {command} " in out + err for command in ("localize", "retrieve", "pairwise"))
