"""`dropdtw find`: what it prints, writes and draws, and what it refuses."""

import csv
import json
from typing import NamedTuple

import numpy as np
import pytest

import cli_cases
import dropdtw

SIGNAL = np.array([9.0, 1, 2, 3, 9, 9, 1, 7, 2, 3, 9])


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(monkeypatch, capsys):
    """What `dropdtw …` does."""
    return lambda *arguments: Done(*cli_cases.call(monkeypatch, capsys, *arguments))


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "query.npy", np.array([1.0, 2, 3]))
    np.save(tmp_path / "signal.npy", SIGNAL)
    return [str(tmp_path / "query.npy"), str(tmp_path / "signal.npy")]


def test_a_table_lists_the_best_first(call, files):
    done = call("find", *files, "--max-cost", "1", "--drop-x", "0.5", "--fps", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "euclidean costs: 3 z in 11 x, 2 occurrences"
    assert lines[1].split() == [
        "#",
        "cost",
        "start",
        "stop",
        "length",
        "dropped",
        "x",
        "dropped",
        "z",
        "start",
        "time",
        "stop",
        "time",
    ]
    assert lines[2].split() == ["1", "0", "1", "4", "3", "0", "0", "0.50", "s", "2.00", "s"]
    assert lines[3].split() == ["2", "0.5", "6", "10", "4", "1", "0", "3.00", "s", "5.00", "s"]


def test_what_is_written_is_what_find_gives(call, files, tmp_path):
    wanted = dropdtw.find([1, 2, 3], SIGNAL, 3, drop_x=0.5, drop_z=2.0, overlap=0.5)
    options = ["-k", "3", "--drop-x", "0.5", "--drop-z", "2", "--overlap", "0.5"]
    done = call("find", *files, *options, "--out", "-")
    found = json.loads(done.stdout)["occurrences"]
    assert [(o["start"], o["stop"], o["cost"]) for o in found] == [(o.start, o.stop, o.cost) for o in wanted]
    assert [o["dropped_x"] for o in found] == [
        (o.start + np.flatnonzero(o.alignment.dropped_x)).tolist() for o in wanted
    ]
    out = tmp_path / "found.csv"
    assert call("find", *files, *options, "--out", str(out)).returncode == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(int(r["rank"]), int(r["start"])) for r in rows] == [(n, o.start) for n, o in enumerate(wanted, 1)]


def test_a_picture_is_drawn(call, files, tmp_path):
    pytest.importorskip("matplotlib")
    done = call("find", *files, "-k", "2", "--drop-x", "0.5", "--plot", str(tmp_path / "found.svg"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "found.svg").read_text().startswith("<?xml")


def test_missing_elements_are_left_out_if_asked(call, tmp_path):
    (tmp_path / "query.csv").write_text("1\n2\n3\n")
    (tmp_path / "signal.csv").write_text("9\n1\nnan\n2\n3\nnan\n9\n")
    files = [str(tmp_path / "query.csv"), str(tmp_path / "signal.csv")]
    refused = call("find", *files)
    assert refused.returncode == 2
    assert "signal.csv has NaN or infinity in element 2" in refused.stderr
    assert "or give --missing drop" in refused.stderr
    done = call("find", *files, "--missing", "drop", "-k", "1", "--out", "-")
    assert [(o["start"], o["stop"], o["cost"]) for o in json.loads(done.stdout)["occurrences"]] == [(1, 5, 0.0)]
    assert "--missing is 'fill'; give drop" in call("find", *files, "--missing", "fill").stderr


def test_nothing_found_is_said(call, files):
    done = call("find", *files, "--max-cost", "-1")
    assert done.stdout == "euclidean costs: 3 z in 11 x, 0 occurrences\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-k", "0"], "k is 0"),
        (["--overlap", "2"], "overlap is 2.0; give a fraction from 0 (none) to 1 (any)"),
        (["--fps", "0"], "--fps is 0.0"),
        (["--out", "found.npz"], "occurrences are written as .json or .csv"),
        (["--plot", "found.gif"], "pictures are written as .png, .svg or .pdf"),
        (["--drop-x", "cheap"], "--drop-x is 'cheap'"),
    ],
    ids=str,
)
def test_mistakes_are_answered_in_one_line(call, files, options, says):
    done = call("find", *files, *options)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_exchanged_files_are_recognized(call, files):
    done = call("find", *files[::-1])
    assert done.returncode == 2
    assert "query has 11 elements and signal has 3" in done.stderr
    assert "both '-'" in call("find", "-", "-").stderr
