"""`--settings`: a stored `Aligner` beside the flags."""

import json
from pathlib import Path

import numpy as np
import pytest

import dropdtw
from cli_cases import call, run

Z, X = np.arange(4.0), np.array([0, 1, 9, 2, 3.0, 3])


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("Z.npy", Z)
    np.save("X.npy", X)

    def store(aligner):
        (tmp_path / "a.json").write_text(json.dumps(aligner.to_dict()))

    return store


@pytest.mark.parametrize(
    "aligner",
    [
        dropdtw.Aligner(0.5, match="sqeuclidean", window=4, method="steps"),
        dropdtw.Aligner("percentile:30", 0.4, open_x=0.1, warp=0.2, window=0.9, reducer="soft"),
        dropdtw.Aligner(0.3, anchors=[(0, 1), (2, 3)]),
        dropdtw.Aligner(),
    ],
    ids=repr,
)
def test_align_aligns_as_the_aligner_does(stored, aligner):
    stored(aligner)
    run("align", "Z.npy", "X.npy", "--settings", "a.json", "--out", "out.json")
    found, a = json.loads(Path("out.json").read_text()), aligner.align(Z, X)
    assert (found["cost"], found["pairs"]) == (a.cost, a.pairs.tolist())


def test_flags_override_settings(stored):
    stored(dropdtw.Aligner(0.5, match="sqeuclidean"))
    run("align", "Z.npy", "X.npy", "--settings", "a.json", "--drop-x", "0.25", "--out", "out.json")
    assert json.loads(Path("out.json").read_text())["cost"] == dropdtw.align(Z, X, 0.25, match="sqeuclidean").cost


def test_find_takes_settings(stored):
    aligner = dropdtw.Aligner(0.5, method="steps")
    stored(aligner)
    run("find", "Z.npy", "X.npy", "--settings", "a.json", "--out", "out.json")
    assert [o["cost"] for o in json.loads(Path("out.json").read_text())["occurrences"]] == [
        o.cost for o in aligner.find(Z, X)
    ]


@pytest.mark.parametrize(
    ("aligner", "says"),
    [
        (
            dropdtw.Aligner(mask=np.ones((4, 6), bool)),
            "--mask is an array of shape (4, 6) in a.json, which this command",
        ),
        (
            dropdtw.Aligner([0.5] * 6),
            "--drop-x is [0.5, 0.5, 0.5, 0.5, 0.5, 0.5] in a.json, and this command takes a file",
        ),
    ],
    ids=["mask", "drop_x"],
)
def test_what_a_flag_cannot_say_is_refused(stored, aligner, says, monkeypatch, capsys):
    stored(aligner)
    code, _, told = call(monkeypatch, capsys, "align", "Z.npy", "X.npy", "--settings", "a.json")
    assert code == 2
    assert says in told


def test_anchors_and_costs_by_the_second(stored, monkeypatch, capsys):
    for said in ("0,1 2,4", "[[0, 1], [2, 4]]", "(0,1),(2,4)"):
        run(
            "align",
            "Z.npy",
            "X.npy",
            "--drop-x",
            "0.5",
            "--anchors",
            said,
            "--per",
            "second",
            "--fps",
            "4",
            "--out",
            "a.json",
        )
        found = json.loads(Path("a.json").read_text())
        a = dropdtw.align(Z, X, 0.5, anchors=[(0, 1), (2, 4)], per="second", fps=4)
        assert (found["cost"], found["pairs"]) == (a.cost, a.pairs.tolist())
    for flags, says in [
        (["--anchors", "1"], "--anchors is '1'; give pairs of indices, counted from 0: z_3 with x_40 is 3,40"),
        (["--anchors", "0,9"], "--anchors is (0, 9)"),
        (["--anchors", "0,3 1,2"], "cross; remove one of them"),
        (["--per", "second"], "--per is 'second', but nothing says how long each x lasts; give --time or --fps"),
        (["--per", "minute"], "--per is 'minute'; give 'second'"),
    ]:
        code, _, told = call(monkeypatch, capsys, "align", "Z.npy", "X.npy", "--drop-x", "0.5", *flags)
        assert code == 2
        assert says in told
