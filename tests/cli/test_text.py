"""`dropdtw align --text` and `--letters`: words and letters of two files, one above the other."""

import json

import pytest

import cli_cases
import dropdtw


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """What `dropdtw align …` does in a folder with two texts."""
    (tmp_path / "a.txt").write_text("the cat sat\non the mat\n")
    (tmp_path / "b.txt").write_text("the cat sat down on a mat")
    (tmp_path / "a.fa").write_text(">one sequence\nGATT\nACA\n")
    (tmp_path / "b.fa").write_text("GATCA\n")
    (tmp_path / "two.fa").write_text(">one\nGA\n>two\nGA\n")
    (tmp_path / "empty.txt").write_text("\n")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: cli_cases.call(monkeypatch, capsys, "align", *arguments)


def test_words_are_printed_with_the_edit_distance(call):
    code, out, _ = call("--text", "a.txt", "b.txt")
    assert code == 0
    assert out.splitlines() == [
        "the cat sat ---- on the mat",
        "|   |   |        |  .   |",
        "the cat sat down on a   mat",
        "",
        "identity 5/7 (71%), cost 2",
    ]


def test_letters_of_fasta_files(call):
    code, out, _ = call("--letters", "a.fa", "b.fa", "--out", "-")
    assert code == 0
    found = dropdtw.Alignment.from_dict(json.loads(out))
    expected = dropdtw.align("GATTACA", "GATCA", 1, 1, method="needleman_wunsch")
    assert found.cost == expected.cost == 2
    assert found.pairs.tolist() == expected.pairs.tolist()


@pytest.mark.parametrize(("name", "content"), [
    ("b.srt", "1\n00:00:01,000 --> 00:00:02,000\nthe <i>cat</i> sat\n\n2\n00:00:02,000 --> 00:00:03,000\ndown on a mat\n"),
    ("b.json", '{"text": "…", "segments": [{"start": 0, "end": 2, "text": " the cat sat down on a mat"}]}'),
])  # fmt: skip
def test_subtitles_are_read_as_what_is_said(call, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert call("--text", "a.txt", name)[1] == call("--text", "a.txt", "b.txt")[1]


def test_options_of_your_own_replace_the_edit_distance(call):
    code, out, _ = call("--text", "a.txt", "b.txt", "--method", "lcss", "--threshold", "0")
    assert code == 0
    assert out.splitlines()[-1].endswith("cost -5")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--text", "a.txt", "b.txt", "--fps", "3"), "--fps is for sequences of numbers"),
        (("--text", "a.txt", "b.txt", "--no-header"), "--header is for sequences of numbers"),
        (("--letters", "a.fa", "two.fa"), "two.fa holds 2 sequences; give a file with one"),
        (("--text", "a.txt", "empty.txt"), "empty.txt holds no words; give a text"),
        (("--text", "a.txt", "c.txt"), "there is no file c.txt"),
        (("--text", "a.txt", "b.txt", "--match", "cosine"), "use 'equal'"),
    ],
)
def test_mistakes_are_named(call, arguments, says):
    code, out, err = call(*arguments)
    assert code != 0
    assert says in err
    assert out == ""
