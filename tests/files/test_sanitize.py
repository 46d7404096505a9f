"""Text of others neither steers a terminal nor starts a spreadsheet's formulas."""

import csv
import io
import json
import unicodedata

import pytest

from dropdtw.files.sanitize import cell, one_line
from dropdtw.text import FORMATS, FoundStep, write_chapters

ESCAPES = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\x08\x08gone", "a\x00b", "\u202etxt.exe", "\udc9b31m", "\x7f"]
FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1"]


def obeyed(text):
    """What is left in a text that a terminal may obey."""
    return [c for c in text if c == "\u202e" or (unicodedata.category(c) in ("Cc", "Cs") and c != "\n")]


@pytest.mark.parametrize("text", ESCAPES)
def test_nothing_is_left_to_obey(text):
    assert obeyed(text)
    assert not obeyed(one_line(text))
    assert "\ufffd" in one_line(text)


@pytest.mark.parametrize("text", ["Öl erhitzen", "煮沸", "👩\u200d🍳 cook", "נער", "1 [b]egg[/b]", "50 % – now…"])
def test_what_people_write_stays(text):
    assert one_line(text) == cell(text) == text


def test_lines_are_joined():
    assert one_line("a\r\nb\tc\u2028d") == "a b c d"


@pytest.mark.parametrize("text", FORMULAS)
def test_cells_are_no_formulas(text):
    assert cell(text).startswith("'")
    assert cell(text)[1:] == one_line(text)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("text", [*ESCAPES[:-2], "a\n\n[CHAPTER]\ntitle=b"])
def test_chapters_hold_no_escapes_and_no_lines_of_their_own(kind, text):
    if kind == "html":
        pytest.importorskip("jinja2", reason="jinja2 is not installed")
    clean = write_chapters([FoundStep(0, "x", 0.0, 1.0, 0.9, (0, 1))], kind)
    found = write_chapters([FoundStep(0, text, 0.0, 1.0, 0.9, (0, 1))], kind)
    assert not obeyed(found)
    assert len(found.splitlines()) == len(clean.splitlines())


def test_labels_are_no_formulas_in_csv_and_whole_elsewhere():
    found = [FoundStep(k, text, None, None, None, None) for k, text in enumerate(["=cmd()", "Boil -1 egg"])]
    rows = list(csv.DictReader(io.StringIO(write_chapters(found, "csv"))))
    assert [row["step"] for row in rows] == ["'=cmd()", "Boil -1 egg"]
    assert json.loads(write_chapters(found, "json"))["segments"][0]["step"] == "=cmd()"
