"""What commands print: tables that fit the terminal, and progress."""

import io
import re
import sys

import pytest

pytest.importorskip("rich", reason="rich is not installed")

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
    shown = re.sub(r"\x1b\[[01]m", "", sys.stdout.getvalue())  # bold is no colour
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
