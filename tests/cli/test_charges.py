"""Opening costs and the warp penalty on the command line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dropdtw
import dropdtw.corpus
from cli_cases import call, run
from corpus_cases import STEPS, content, corpus, record

EXAMPLES = Path(__file__).parents[2] / "examples" / "chapters"
STEPS_TXT, TALK = EXAMPLES / "steps.txt", EXAMPLES / "talk.srt"
FEW = ["--open-x", "5"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two recordings, X with two foreign passages, beside a few others; steps and a corpus in Parquet."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 16))
    X = np.concatenate([Z[:10], rng.normal(size=(8, 16)), Z[10:20], rng.normal(size=(8, 16)), Z[20:]])
    np.save(tmp_path / "Z.npy", Z)
    np.save(tmp_path / "X.npy", X + 0.3 * rng.normal(size=X.shape))
    (tmp_path / "many").mkdir()
    for k in range(5):
        np.save(tmp_path / "many" / f"{k}.npy", rng.normal(size=(20 + k, 16)))
    np.save(tmp_path / "many/near.npy", Z)
    np.save(tmp_path / "steps.npy", STEPS)
    np.save(tmp_path / "query.npy", record(5))
    corpus(tmp_path / "c", 8)
    monkeypatch.chdir(tmp_path)
    return tmp_path


GIVEN = {
    "open_x": (["--open-x", "0.8"], {"open_x": 0.8}),
    "open_z": (["--open-z", "0.4"], {"open_z": 0.4}),
    "warp": (["--warp", "0.05"], {"warp": 0.05}),
    "all": (["--open-x", "suggest", "--open-z", "suggest"], {"open_x": "suggest", "open_z": "suggest"}),
    "none": ([], {}),
}


@pytest.mark.parametrize("option", GIVEN)
def test_align_passes_charges_on(folder, option):
    flags, given = GIVEN[option]
    run("align", "Z.npy", "X.npy", "--drop-x", "0.3", "--drop-z", "0.2", *flags, "--out", "a.json", "--costs")
    a = dropdtw.Alignment.from_dict(json.loads((folder / "a.json").read_text()))
    b = dropdtw.align(np.load("Z.npy"), np.load("X.npy"), 0.3, 0.2, **given)
    np.testing.assert_array_equal(a.pairs, b.pairs)
    assert (a.cost, a.problem.table, a.problem.costs.charges) == (b.cost, b.problem.table, b.problem.costs.charges)


def test_align_counts_the_runs_that_it_charges(folder):
    plain = run("align", "Z.npy", "X.npy", "--drop-x", "0.3").stdout
    assert " runs" not in plain
    assert re.search(r"x dropped, in \d+ runs\n", run("align", "Z.npy", "X.npy", "--open-x", "0.1").stdout)
    few = run("align", "Z.npy", "X.npy", "--drop-x", "0.3", "--open-x", "suggest")
    assert "16 x dropped, in 2 runs\n" in few.stdout
    assert re.fullmatch(r"dropdtw: opening cost 0\.\d+ suggested for x: .*\n", few.stderr)
    both = run("align", "Z.npy", "X.npy", "--drop-x", "0.3", "--drop-z", "0.1", "--open-x", "3", "--open-z", "2")
    assert "0 z and 16 x dropped, in 0 runs of z and 2 of x\n" in both.stdout
    one = run("align", "Z.npy", "X.npy", "--drop-x", "0.3", "--open-x", "100").stdout
    assert "0 x dropped, in 0 runs\n" in one
    assert "runs" not in run("align", "Z.npy", "X.npy", "--drop-x", "0.3", "--warp", "0.1").stdout


def test_an_alignment_in_npz_keeps_its_charges(folder):
    run("align", "Z.npy", "X.npy", "--drop-x", "0.3", "--open-x", "0.8", "--warp", "0.05", "--out", "a.npz")
    with np.load("a.npz") as data:
        assert (data["open_x"], data["open_z"], data["warp"]) == (0.8, 0, 0.05)
    run("align", "Z.npy", "X.npy", "--drop-x", "0.3", "--out", "b.npz")
    with np.load("b.npz") as data:
        assert "open_x" not in data


@pytest.mark.parametrize("mean", [False, True])
def test_retrieve_ranks_by_charged_costs(folder, mean):
    flags = ["--drop-x", "0.3", "--drop-z", "0.2", "--open-x", "0.5", "--open-z", "0.1", "--warp", "0.02"]
    run("retrieve", "Z.npy", "many", *flags, *(["--mean"] if mean else []), "--out", "r.json")
    found = json.loads((folder / "r.json").read_text())["nearest"]
    how = {"open_x": 0.5, "open_z": 0.1, "warp": 0.02}
    Z = np.load("Z.npy")
    assert len(found) == 6
    for entry in found:
        X = np.load(entry["sequence"])
        cost = dropdtw.distance(Z, X, 0.3, 0.2, **how)
        assert entry["cost"] == pytest.approx(cost / (len(Z) + len(X)) if mean else cost, abs=1e-9)


def test_retrieve_suggests_one_opening_cost_for_all(folder):
    done = run("retrieve", "Z.npy", "many", "--open-x", "suggest", "--open-z", "0.1", "--out", "r.json")
    assert "drop cost" in done.stderr
    said = re.search(r"opening cost (\S+) suggested for x, from 6 of 6 sequences", done.stderr)
    assert float(said[1]) > 0
    drop = float(re.search(r"drop cost (\S+) suggested", done.stderr)[1])
    nearest = json.loads((folder / "r.json").read_text())["nearest"]
    assert nearest[0]["sequence"].endswith("near.npy")
    for entry in nearest:  # the same number for all of them
        how = {"open_x": float(said[1]), "open_z": 0.1}
        expected = dropdtw.distance(np.load("Z.npy"), np.load(entry["sequence"]), drop, drop, **how)
        assert entry["cost"] == pytest.approx(expected, rel=1e-2, abs=1e-9)


def test_corpora_keep_charges_in_their_manifests_and_resume_with_them(folder):
    flags = ("--drop-x", "0.3", "--open-x", "0.2", "--drop-z", "0.3", "--open-z", "suggest", "--warp", "0.1")
    flags += ("--many-to-one", "--no-contiguous")
    command = ("corpus", "localize", "steps.npy", "c", "--out", "out", *flags)
    run(*command)
    settings = json.loads((folder / "out/manifest.json").read_text())["settings"]
    assert {name: settings[name] for name in ("open_x", "open_z", "warp")} == {
        "open_x": 0.2, "open_z": "suggest", "warp": 0.1
    }  # fmt: skip
    how = {"drop_x": 0.3, "drop_z": 0.3, "open_x": 0.2, "open_z": "suggest", "warp": 0.1}
    dropdtw.corpus.localize(STEPS, "c", "same", **how, many_to_one=True, contiguous=False)
    assert content(folder / "out") == content(folder / "same")
    assert "(0 of" in run(*command).stdout


def test_another_opening_cost_is_another_run(folder, monkeypatch, capsys):
    command = ("corpus", "localize", "steps.npy", "c", "--out", "out", "--drop-x", "0.3")
    run(*command, "--open-x", "0.2")
    for other in (["--open-x", "0.3"], []):
        code, _, said = call(monkeypatch, capsys, *command, *other)
        assert code == 2
        assert "out holds another run, which differs in settings" in said


@pytest.mark.parametrize("task", ["retrieve", "pairwise"])
def test_corpora_compare_by_charged_costs(folder, task):
    of = ("query.npy", "c") if task == "retrieve" else ("c", "c")
    flags = ("--match", "cosine", "--drop-x", "0.3", "--drop-z", "0.3", "--open-x", "suggest", "--open-z", "0.2")
    flags += ("--warp", "0.1")
    done = run("corpus", task, *of, "--out", "out", *flags)
    settings = json.loads((folder / "out/manifest.json").read_text())["settings"]
    assert (settings["open_z"], settings["warp"]) == (0.2, 0.1)
    assert settings["open_x"] > 0
    assert f"opening cost {settings['open_x']:.4g} suggested for x, from 8 of 8 sequences" in done.stderr
    how = {name: settings[name] for name in ("match", "drop_x", "drop_z", "open_x", "open_z", "warp")}
    if task == "retrieve":
        dropdtw.corpus.retrieve([("query.npy", record(5))], "c", "same", **how)
    else:
        dropdtw.corpus.pairwise("c", "c", "same", **how)
    assert content(folder / "out") == content(folder / "same")


WRONG = {
    "no number": (["align", "Z.npy", "X.npy", "--open-x", "lots"], "--open-x is 'lots'; give a number, or suggest"),
    "negative": (["align", "Z.npy", "X.npy", "--open-x", "-1"], "--open-x is -1.0; give a finite number ≥ 0"),
    "rule": (["retrieve", "Z.npy", "many", "--open-z", "percentile:3"], "--open-z is 'percentile:3'; give a number"),
    "no warp": (["align", "Z.npy", "X.npy", "--warp", "suggest"], "Invalid value for '--warp'"),
    "endless warp": (["align", "Z.npy", "X.npy", "--warp", "inf"], "--warp is inf; give a finite number ≥ 0"),
    "no drop of z": (["align", "Z.npy", "X.npy", "--open-z", "1"], "--open-z is 1.0, but no z may be dropped"),
    "no drops": (["align", "Z.npy", "X.npy", "--method", "dtw", "--open-x", "1"], "takes no opening costs"),
    "in a folder": (["retrieve", "Z.npy", "many", "--drop-x", "none", "--open-x", "suggest"], "no x may be dropped"),
    "in a corpus": (["corpus", "localize", "steps.npy", "c", "--out", "o", "--open-z", "1"], "no z may be dropped"),
    "of pairs": (["corpus", "pairwise", "c", "c", "--out", "o", "--open-x", "-1"], "--open-x is -1.0; give a"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_charges_that_make_no_sense_are_told_in_one_line(folder, monkeypatch, capsys, mistake):
    arguments, message = WRONG[mistake]
    code, _, said = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert message in said.splitlines()[-1]


@pytest.mark.parametrize("command", ["align", "retrieve", "corpus localize", "corpus retrieve", "corpus pairwise"])
def test_help_names_them(command):
    shown = run(*command.split(), "--help").stdout
    assert all(option in shown for option in ("--open-x", "--open-z", "--warp"))


def test_chapters_passes_its_opening_cost_on(monkeypatch, capsys):
    pytest.importorskip("wordllama", reason="wordllama is not installed")
    usual, none, some = (run("chapters", STEPS_TXT, TALK, *more).stdout for more in ([], ["--open-x", "0"], FEW))
    assert usual == none != some
    code, _, said = call(monkeypatch, capsys, "chapters", STEPS_TXT, TALK, "--drop-x", "none", *FEW)
    assert code == 2
    assert "no x may be dropped" in said
