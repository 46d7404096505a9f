"""Steps and a talk in the explorer, made data, and names."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("wordllama", reason="wordllama is not installed: pip install 'dropdtw[text]'")

from cli_cases import call
from dropdtw import text
from dropdtw.explore import talks
from dropdtw.explore.session import Session

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
    scope = {}
    exec(session.code(session.first), scope)
    assert scope["a"].cost == pytest.approx(session.alignment(session.first).cost, rel=1e-12)


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
