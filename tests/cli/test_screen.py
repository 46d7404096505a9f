"""What commands print: tables that fit the terminal and do not steer it, and progress."""

import csv
import io
import re
import sys

import numpy as np
import pytest

pytest.importorskip("rich", reason="rich is not installed")

from cli_cases import call, run
from dropdtw.cli import screen


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("width", "said"), [("120", "begins with"), ("50", None)])
def test_tables_fit_the_terminal(monkeypatch, width, said):
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    screen.table([">#", "step", "~begins with"], [["1", "boil [b]water[/b] in a pot that is large", "so " * 60]])
    shown = re.sub(r"\x1b\[[01]m", "", sys.stdout.getvalue())  # bold is no color
    assert all(len(line) <= int(width) for line in shown.splitlines())
    assert "[b]water[/b]" in shown  # no markup
    assert ("begins with" in shown) == (said is not None)
    assert "\x1b" not in shown


def test_progress_shows_on_terminals_alone(monkeypatch):
    for stream, expected in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        with screen.progress("aligning", 2) as advance:
            advance(2)
        assert ("aligning" in stream.getvalue()) == expected


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_tables_steer_no_terminal(monkeypatch, stream):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    screens = []
    for text in ("?[31mred?", "\x1b[31mred\x07"):
        monkeypatch.setattr(sys, "stdout", stream())
        screen.table(["step", ">at"], [[text, "1"], ["two\nlines", "2"]])
        screens.append(sys.stdout.getvalue().replace("\ufffd", "?"))
    assert screens[0] == screens[1]
    assert "two lines" in screens[0]


def test_notes_and_errors_steer_no_terminal(tmp_path, monkeypatch, capsys):
    screen.note("a\x1b[2Jb")
    assert capsys.readouterr().err == "dropdtw: a\ufffd[2Jb\n"
    code, _, err = call(monkeypatch, capsys, "align", tmp_path / "\x1b[2J.npy", "x.npy")
    assert code == 2
    assert "\x1b" not in err


def test_names_of_files_are_shown_and_written_safely(tmp_path, monkeypatch):
    (tmp_path / "=c").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("q.npy", "=c/a\x1b[31m.npy"):
        np.save(name, np.eye(3))
    done = run("retrieve", "q.npy", "=c", "--drop-x", "1", "--out", "r.csv")
    assert "\x1b" not in done.output
    with open("r.csv", newline="") as file:
        assert [row["sequence"] for row in csv.DictReader(file)] == ["'=c/a\ufffd[31m.npy"]
