"""Orders of steps on the command line."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from cli_cases import call, run

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS, TALK = EXAMPLES / "orders" / "steps.txt", EXAMPLES / "orders" / "talk.srt"
needs_words = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")


@needs_words
def test_the_example_says_what_was_done_left_out_and_chosen():
    lines = run("chapters", STEPS, TALK).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:12]] == ["1", "3", "4", "2", "5", "7", "8", "9", "8.2", "9.2", "11"]
    assert (lines[12].split()[0], lines[12].split()[-1]) == ("6", "optional")
    assert (lines[13].split()[0], lines[13].split()[-2:]) == ("10", ["not", "taken"])
    assert lines[14:] == [
        "9 of 9 steps found among 35 sentences",
        "optional and not found: Let the batter rest for half an hour",
        "one of Spread jam on the pancakes | Squeeze lemon juice over the pancakes: "
        "Squeeze lemon juice over the pancakes",
    ]


def test_the_guide_shows_the_example_as_it_is():
    guide = (EXAMPLES.parent / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"```text\n{STEPS.read_text(encoding='utf-8')}```" in guide


@needs_words
@pytest.mark.parametrize("kind", ["json", "youtube", "html"])
def test_files_have_the_chapters_in_time(kind, tmp_path):
    out = tmp_path / f"chapters.{kind}"
    run("chapters", STEPS, TALK, "--format", kind, "--out", out)
    content = out.read_text(encoding="utf-8")
    places = [content.index(word) for word in ("Weigh", "Pour in the milk", "Add a pinch", "Crack the eggs", "Whisk")]
    assert places == sorted(places)
    # It is done twice. The page has it in the bar (as a title and as a label), the table, the transcript and the
    # lines for YouTube.
    assert content.count("Pour a ladle") == (2 * 5 if kind == "html" else 2)


@pytest.fixture
def plain(tmp_path):
    """The steps of the example without blocks, and their order in every form a file may have."""
    from dropdtw.orders import parse_steps

    text = STEPS.read_text(encoding="utf-8")
    found = parse_steps(text)
    (tmp_path / "steps.txt").write_text("\n".join(found.names), encoding="utf-8")
    (tmp_path / "order.json").write_text(json.dumps(found.order.to_dict()), encoding="utf-8")
    (tmp_path / "order.txt").write_text(text, encoding="utf-8")
    return tmp_path


@needs_words
def test_an_order_may_be_a_file_of_its_own(plain):
    blocks = run("chapters", STEPS, TALK, "--format", "json").stdout
    assert run("chapters", plain / "steps.txt", TALK, "--order", plain / "order.txt", "-f", "json").stdout == blocks
    numbered = json.loads(
        run("chapters", plain / "steps.txt", TALK, "--order", plain / "order.json", "-f", "json").stdout
    )
    wanted = json.loads(blocks)
    assert [s["start"] for s in numbered["segments"]] == [s["start"] for s in wanted["segments"]]
    listed = json.loads(run("chapters", plain / "steps.txt", TALK, "-f", "json").stdout)
    assert [s["index"] for s in listed["segments"]] == list(range(11))


@needs_words
def test_pairs_by_name_do_for_an_order(plain):
    (plain / "order.json").write_text('{"before": [["Whisk the batter until it is smooth", "Flip the pancake over"]]}')
    (plain / "few.txt").write_text("Flip the pancake over\nWhisk the batter until it is smooth\nMelt the butter")
    found = run("chapters", plain / "few.txt", TALK, "--order", plain / "order.json", "-f", "json").stdout
    assert [s["index"] for s in json.loads(found)["segments"] if s["start"]] == [1, 2, 0]


@needs_words
def test_a_talk_about_something_else_is_called_one():
    done = run("chapters", STEPS, EXAMPLES / "chapters" / "telescope.vtt")
    assert "no step was found: these steps do not seem to be in this talk" in done.stderr
    assert "none found" in done.stdout


@needs_words
def test_a_talk_that_has_none_of_the_optional_steps_is_called_something_else(tmp_path):
    (tmp_path / "steps.txt").write_text(
        "optional:\n  Lever the tire off the rim\n  Roughen the rubber and glue on a patch"
    )
    done = run("chapters", tmp_path / "steps.txt", EXAMPLES / "chapters" / "telescope.vtt")
    assert "no step was found: these steps do not seem to be in this talk" in done.stderr


def test_mistakes_are_said_in_one_line(monkeypatch, capsys, plain):
    def says(*arguments):
        code, _, err = call(monkeypatch, capsys, *arguments)
        assert code == 2
        assert err.count("\n") == 1
        return err

    bad = plain / "bad.txt"
    bad.write_text("Boil\nany order:\nPour")
    assert f"{bad}: line 2: 'any order:' opens a block" in says("chapters", bad, TALK)
    assert "STEPS has blocks that set an order, too" in says("chapters", STEPS, TALK, "--order", plain / "order.json")
    assert "'Boil' is none of the 11 steps" in says("chapters", plain / "steps.txt", TALK, "--order", bad)
    assert "there is no file nothing.json" in says("chapters", plain / "steps.txt", TALK, "--order", "nothing.json")
    assert "standard input can be read only once" in says("chapters", plain / "steps.txt", "-", "--order", "-")
    assert "would overwrite an input" in says(
        *("chapters", plain / "steps.txt", TALK, "--order", plain / "order.json", "--out", plain / "order.json")
    )
    bad.write_text("repeat:\n  any order:\n    Boil\n    Pour")
    if importlib.util.find_spec("wordllama"):
        assert "steps in any order are repeated" in says("chapters", bad, TALK)


# --- Two sequences ----------------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path):
    """Four steps, and a sequence in which the third comes before the second and nobody does the fourth."""
    np.save(tmp_path / "Z.npy", np.eye(5)[:4])
    np.save(tmp_path / "X.npy", np.eye(5)[[4, 0, 2, 2, 4, 1, 1, 4]] + 0.01)
    (tmp_path / "order.txt").write_text("zero\nany order:\n  one\n  two\noptional:\n  three")
    (tmp_path / "order.json").write_text('{"before": [[0, 1], [0, 2], [1, 3], [2, 3]]}')
    return tmp_path


def shown(text):
    return [tuple(map(int, line.split()[:3])) for line in text.splitlines()[2:]]


def test_align_takes_an_order(pair):
    done = run("align", pair / "Z.npy", pair / "X.npy", "--order", pair / "order.txt", "--drop-x", 0.3)
    assert shown(done.stdout) == [(0, 1, 2), (2, 2, 4), (1, 5, 7)]
    assert "1 z and 3 x dropped" in done.stdout
    every = run("align", pair / "Z.npy", pair / "X.npy", "--order", pair / "order.json", "--drop-x", 0.3)
    assert "0 z and" in every.stdout  # nothing says that the fourth may be left out
    priced = run(
        *("align", pair / "Z.npy", pair / "X.npy", "--order", pair / "order.txt", "--drop-x", 0.3, "--drop-z", 0.1)
    )
    assert shown(priced.stdout) == shown(done.stdout)


def test_align_says_what_does_not_go_with_an_order(monkeypatch, capsys, pair):
    files = ("align", pair / "Z.npy", pair / "X.npy", "--order", pair / "order.txt", "--drop-x", 0.3)
    code, _, err = call(monkeypatch, capsys, *files, "--drop-z", "percentile:30")
    assert (code, err.count("\n")) == (2, 1)
    assert "--drop-z is 'percentile:30', but the order has optional steps" in err
    code, _, err = call(monkeypatch, capsys, *files, "--window", 3)
    assert (code, "window is 3, a band along the diagonal" in err) == (2, True)
    (pair / "order.txt").write_text("zero\none")
    code, _, err = call(monkeypatch, capsys, *files)
    assert (code, "the order has 2 steps, but there are 4" in err) == (2, True)
    code, _, err = call(monkeypatch, capsys, "align", "-", pair / "X.npy", "--order", "-")
    assert (code, "Z and --order are both '-'" in err) == (2, True)
