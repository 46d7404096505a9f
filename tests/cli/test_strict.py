"""`dropdtw chapters` on a talk that does not have the steps."""

import json
from pathlib import Path

import pytest

from cli_cases import call, run

pytest.importorskip("wordllama", reason="wordllama is not installed")

EXAMPLES = Path(__file__).parents[2] / "examples" / "chapters"
STEPS, TALK, FOREIGN = EXAMPLES / "steps.txt", EXAMPLES / "talk.srt", EXAMPLES / "telescope-steps.txt"


def test_steps_that_do_not_seem_to_be_in_the_talk_are_said_to_be_missing():
    done = run("chapters", FOREIGN, TALK)
    assert done.stdout.splitlines()[-1] == "0 of 6 steps found among 40 sentences"
    assert done.stderr.startswith("dropdtw: no step was found: these steps do not seem to be in this talk")


def test_steps_and_talk_in_the_wrong_order_are_refused(monkeypatch, capsys):
    code, _, said = call(monkeypatch, capsys, "chapters", str(TALK), str(STEPS))
    assert code == 2
    assert "talk.srt looks like subtitles, not like steps; give STEPS first, then TALK" in said


def test_strict_leaves_with_status_1_if_most_steps_are_missing(monkeypatch, capsys, tmp_path):
    out = tmp_path / "a.json"
    code, _, said = call(monkeypatch, capsys, "chapters", FOREIGN, TALK, "--strict", "--out", out)
    assert code == 1
    assert "do not seem to be in this talk; check that STEPS and TALK belong together" in said
    assert len(json.loads(out.read_text())["segments"]) == 6  # written all the same


def test_strict_says_nothing_of_one_missing_step(monkeypatch, capsys):
    code, shown, said = call(monkeypatch, capsys, "chapters", STEPS, TALK, "--strict")
    assert (code, said) == (0, "")
    assert "6 of 7 steps found" in shown
