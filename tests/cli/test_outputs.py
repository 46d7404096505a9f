"""What commands write, and what they leave as it is."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from cli_cases import call, run

EXAMPLES = Path(__file__).parents[2] / "examples" / "chapters"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two sequences, a corpus of two, steps and a talk, and other names for some of them."""
    rng = np.random.default_rng(7)
    Z, X = rng.normal(size=(4, 16)), rng.normal(size=(20, 16))
    np.save(tmp_path / "Z.npy", Z)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    np.savez(tmp_path / "both.npz", Z=Z, X=X)
    np.savetxt(tmp_path / "d.csv", np.full(20, 0.5))
    (tmp_path / "corpus").mkdir()
    for name in ("a.csv", "b.csv"):
        np.savetxt(tmp_path / "corpus" / name, X, delimiter=",")
    (tmp_path / "steps.json").write_text((EXAMPLES / "steps.txt").read_text())
    (tmp_path / "talk.srt").write_text((EXAMPLES / "talk.srt").read_text())
    (tmp_path / "link.csv").symlink_to("x.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "x.csv")
    (tmp_path / "drawn.csv").symlink_to("picture.png")
    (tmp_path / "picture.png").write_text((tmp_path / "x.csv").read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRITING = {
    "align": ["align", "Z.npy", "x.csv", "--drop-x", "1"],
    "find": ["find", "Z.npy", "x.csv"],
    "retrieve": ["retrieve", "Z.npy", "corpus", "--drop-x", "1"],
    "chapters": ["chapters", "steps.json", "talk.srt", "--format", "json"],
    "diff": ["diff", "talk.srt", "talk.srt", "--format", "json"],
    "retime": ["retime", "talk.srt", "--from", "talk.srt", "--to", "talk.srt"],
}


@pytest.mark.parametrize("command", WRITING)
def test_a_command_says_which_file_it_wrote(folder, command):
    if command == "chapters":
        pytest.importorskip("wordllama", reason="wordllama is not installed")
    kind = ".srt" if command == "retime" else ".json"
    assert f"dropdtw: wrote out{kind}\n" in run(*WRITING[command], "--out", f"out{kind}").stderr
    assert Path(f"out{kind}").read_text()
    assert "wrote" not in run(*WRITING[command], "--out", "-").stderr


ALIGN = ["align", "Z.npy", "x.csv"]
OVER = {
    "x": [*ALIGN, "--out", "x.csv"],
    "another way to say it": [*ALIGN, "--out", "corpus/../x.csv"],
    "link": [*ALIGN, "--out", "link.csv"],
    "read through a link": ["align", "Z.npy", "link.csv", "--out", "x.csv"],
    "hard link": [*ALIGN, "--out", "hard.csv"],
    "array of a file": ["align", "both.npz:Z", "both.npz:X", "--out", "both.npz"],
    "drop costs": [*ALIGN, "--drop-x", "d.csv", "--out", "d.csv"],
    "plot": ["align", "Z.npy", "drawn.csv", "--plot", "picture.png"],
    "steps": ["chapters", "steps.json", "talk.srt", "--out", "steps.json"],
    "talk": ["chapters", "steps.json", "talk.srt", "--out", "talk.srt"],
    "query": ["retrieve", "x.csv", "corpus", "--out", "x.csv"],
    "one of many": ["retrieve", "Z.npy", "corpus", "--out", "corpus/b.csv"],
}


@pytest.mark.parametrize("case", OVER)
def test_no_command_overwrites_what_it_reads(folder, monkeypatch, capsys, case):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.setattr("dropdtw.files.formats.read", lambda place: pytest.fail("it was read, and then computed with"))
    code, out, err = call(monkeypatch, capsys, *OVER[case])
    assert (code, out) == (2, "")
    assert "which would overwrite an input (" in err
    assert err.endswith("; give another file\n")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_standard_input_is_not_overwritten_either(folder):
    with open("x.csv") as file:
        done = subprocess.run(
            [sys.executable, "-m", "dropdtw", "align", "Z.npy", "-", "--out", "x.csv"],
            stdin=file, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 2
    assert "--out is x.csv, which would overwrite an input (standard input)" in done.stderr
    assert len(np.loadtxt("x.csv", delimiter=",")) == 20


def test_a_ranking_does_not_become_a_sequence_of_the_corpus(folder, monkeypatch, capsys):
    code, _, err = call(monkeypatch, capsys, "retrieve", "Z.npy", "corpus", "--out", "corpus/deep/ranking.csv")
    assert code == 2
    assert "which is in the folder to search" in err
    assert sorted(os.listdir("corpus")) == ["a.csv", "b.csv"]


def test_copies_and_other_files_are_written(folder):
    """What only looks like an input is no input."""
    Path("copy.csv").write_text(Path("x.csv").read_text())
    run(*ALIGN, "--drop-x", "0.5", "--out", "copy.csv", "--plot", "new.png")
    assert Path("copy.csv").read_text().startswith("what,z,x\n")
    assert Path("new.png").read_bytes().startswith(b"\x89PNG")
    run(*ALIGN, "--drop-x", "0.5", "--out", "corpus/found.json")  # no corpus to this command
    run("retrieve", "Z.npy", "corpus", "--drop-x", "0.5", "--skip-broken", "--out", "ranking.csv")
    assert Path("ranking.csv").read_text().startswith("rank,sequence")


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_what_was_there_keeps_its_mode_and_links_lead_to_it(folder):
    Path("real.json").write_text("old")
    Path("real.json").chmod(0o600)
    Path("out.json").symlink_to("real.json")
    run(*ALIGN, "--drop-x", "0.5", "--out", "out.json")
    assert Path("out.json").is_symlink()
    assert json.loads(Path("real.json").read_text())["method"] == "drop_dtw"
    assert stat.S_IMODE(Path("real.json").stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_takes_the_answer(folder):
    got = []
    os.mkfifo("pipe.json")
    reader = threading.Thread(target=lambda: got.append(Path("pipe.json").read_text()), daemon=True)
    reader.start()
    run(*ALIGN, "--drop-x", "0.5", "--out", "pipe.json")
    reader.join(10)
    assert json.loads(got[0])["method"] == "drop_dtw"
    assert stat.S_ISFIFO(os.stat("pipe.json").st_mode)


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_written(folder, monkeypatch, capsys):
    code, _, err = call(monkeypatch, capsys, *ALIGN, "--drop-x", "0.5", "--out", "a.json", "--plot", "a.doc")
    assert code == 2
    assert "written as .png, .svg or .pdf" in err
    assert not Path("a.json").exists()
