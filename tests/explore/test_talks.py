"""Steps and a talk in the explorer, made data, and names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("wordllama", reason="wordllama is not installed: pip install 'dropdtw[text]'")

from cli_cases import call
from dropdtw import text
from dropdtw.explore import talks
from dropdtw.explore.session import Session
from dropdtw.explore.settings import Choice

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS, TALK = str(EXAMPLES / "chapters" / "steps.txt"), str(EXAMPLES / "chapters" / "talk.srt")


def test_a_talk_begins_as_chapters_aligns_it():
    session = Session(talks.read_talk(STEPS, TALK))
    said = text.sentences(text.read_subtitles(Path(TALK).read_text()))
    found = text.find_steps(text.read_steps(Path(STEPS).read_text()), [s.text for s in said])
    a = session.alignment(session.first)
    assert set(np.flatnonzero(~a.dropped_z)) == {f.index for f in found if f.found}
    for f in (f for f in found if f.found):
        here = np.flatnonzero(a.labels == f.index)
        assert f.sentences[0] >= here[0]
        assert f.sentences[1] <= here[-1] + 1


def test_a_page_gets_names_sentences_and_times():
    info = Session(talks.read_talk(STEPS, TALK)).info()
    assert info["names"][0] == "Take the wheel off the bike"
    assert len(info["said"]) == len(info["times"]) == info["shape"][1] == 40
    assert 0 < info["suggested"]["confidence"] <= 1


@pytest.mark.parametrize("steps", [STEPS, str(EXAMPLES / "orders" / "steps.txt")])
def test_the_code_of_a_talk_gives_what_is_shown(steps):
    talk = TALK if steps == STEPS else str(EXAMPLES / "orders" / "talk.srt")
    session = Session(talks.read_talk(steps, talk))
    opened = replace(session.first, open_x=0.01, drop_x=Choice("percentile", 10.0))
    for settings in (session.first, replace(session.first, drop_x=Choice("constant", 0.6)), opened):
        scope = {}
        exec(session.code(settings), scope)
        a = session.alignment(settings)
        shown = {(f.index, f.sentences[0]) for f in talks.chapters(settings, session.data, a) if f.found}
        assert shown == {(f.index, f.sentences[0]) for f in scope["found"] if f.found}
        assert shown <= {(i, first) for i, first, _ in a.visits}
        assert len(shown) > 3
    assert "aligner" not in session.code(session.first)


@pytest.mark.parametrize("change", [{"contiguous": False}, {"method": "dtw", "drop_x": Choice(), "drop_z": Choice()}])
def test_what_find_steps_cannot_be_told_is_code_for_solve(change):
    session = Session(talks.read_talk(STEPS, TALK))
    settings, scope = replace(session.first, **change), {}
    exec(session.code(settings), scope)
    assert scope["a"].cost == pytest.approx(session.alignment(settings).cost, rel=1e-12)


def test_chapters_are_those_of_the_command(capsys):
    session = Session(talks.read_talk(STEPS, TALK))
    exec(session.code(session.first), {})
    assert session.chapters(session.first, "youtube")["content"] == capsys.readouterr().out[:-1]
    lines = session.chapters(session.first, "youtube")["content"].splitlines()
    assert lines[:2] == ["0:00 Introduction", "0:35 Take the wheel off the bike"]
    page = session.chapters(session.first, "html")["content"]
    assert "<h1>steps.txt × talk.srt</h1>" in page
    assert "closest: " in page
    with pytest.raises(ValueError, match="'docx'; choose one of json"):
        session.chapters(session.first, "docx")
    demo = Session(talks.demo())
    with pytest.raises(ValueError, match="chapters are for steps and a talk"):
        demo.chapters(demo.first, "json")


def test_the_demo_needs_no_files_finds_its_steps_and_can_be_made_again():
    session = Session(talks.demo())
    a = session.alignment(session.first)
    assert (a.labels == session.data.truth).mean() > 0.9
    assert a.dropped_z.tolist() == [False, False, False, False, True]
    scope = {}
    exec(session.code(session.first), scope)
    assert scope["a"].cost == pytest.approx(a.cost, rel=1e-12)


WRONG = {
    "nothing": (["explore"], "there is nothing to explore; give Z and X, steps and a talk, or --demo"),
    "both": (["explore", "Z.npy", "--demo"], "--demo brings its own data, but Z is Z.npy"),
    "names": (["explore", "--demo", "--names", "names.txt"], "names.txt has 2 names; give one line for each of the 5"),
    "no talk": (["explore", STEPS, "names.srt"], "names.srt: the text has no subtitles"),
    "fps": (["explore", "--demo", "--fps", "5"], "--fps is for files of numbers; omit it, since the demo"),
    "truth": (["explore", "--demo", "--truth", "t.npy"], "--truth is for files of numbers"),
    "header": (["explore", STEPS, TALK, "--no-header"], "--header is for files of numbers; omit it, since a talk"),
    "no names": (["explore", "--demo", "--names", "none.txt"], "there is no file none.txt"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_refused_with_a_way_out(tmp_path, monkeypatch, capsys, mistake):
    monkeypatch.chdir(tmp_path)
    for name in ("names.txt", "names.srt"):
        Path(name).write_text("one\ntwo\n")
    arguments, said = WRONG[mistake]
    code, _, err = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert said in err


def test_names_are_read_one_to_a_line(tmp_path):
    place = tmp_path / "names.txt"
    place.write_text("boil\n\n pour \n")
    assert talks.read_names(str(place), 2) == ("boil", "pour")
