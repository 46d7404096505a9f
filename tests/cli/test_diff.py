"""`dropdtw diff` and `dropdtw retime`, as one calls them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli_cases import call, run
from dropdtw.cli.app import app
from dropdtw.text.subtitles import Sentence, read_subtitles
from sound_cases import gusts, write
from transcript_cases import subrip

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in ("lm", "nt", "rk", "st", "p")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Subtitles of two versions of a talk, the second with an advertisement and without the last third; a stranger."""
    rng = np.random.default_rng(3)
    a = [Sentence(3.5 * k, 3.5 * k + 3, " ".join(rng.choice(WORDS, 8))) for k in range(30)]
    advert = [Sentence(35 + 3.5 * k, 38 + 3.5 * k, " ".join(rng.choice(WORDS, 8))) for k in range(4)]
    b = [*a[:10], *advert, *(c._replace(start=c.start + 14, stop=c.stop + 14) for c in a[10:20])]
    other = [c._replace(text=" ".join(rng.choice(WORDS, 8))) for c in a]
    for name, cues in (("a", a), ("b", b), ("other", other)):
        (tmp_path / f"{name}.srt").write_text(subrip(cues))
        (tmp_path / f"{name}.md").write_text("\n".join(c.text for c in cues))
        (tmp_path / f"{name}.txt").write_text("\n".join(c.text for c in cues))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_says_what_is_where(folder):
    lines = run("diff", "a.srt", "b.srt").stdout.splitlines()
    assert [line.split("  ")[0].strip() for line in lines[1:-1]] == ["same", "only B", "same", "only A"]
    assert lines[-1] == "83% of the shorter file also occurs in the other"  # 69.5 of 83.5 s


def test_the_end_of_the_name_tells_the_format(folder):
    run("diff", "a.srt", "b.srt", "--out", "e.json")
    kinds = [s["kind"] for s in json.loads((folder / "e.json").read_text())["segments"]]
    assert kinds == ["same", "only_b", "same", "only_a"]
    run("diff", "a.srt", "b.srt", "-o", "e.html")
    assert (folder / "e.html").read_text().startswith("<!doctype html>")
    assert json.loads(run("diff", "a.srt", "b.srt", "-f", "json").stdout)["segments"][0]["kind"] == "same"


def test_swapped_arguments_get_a_hint(folder):
    (folder / "short.srt").write_text(subrip(read_subtitles((folder / "a.srt").read_text())[:10]))
    hint = "but --format audacity labels B; if you mean a.srt, swap A and B"
    assert hint in run("diff", "a.srt", "short.srt", "-f", "audacity").stderr
    assert "swap" not in run("diff", "short.srt", "a.srt", "-f", "audacity").stderr
    assert "swap" not in run("diff", "a.srt", "short.srt", "-f", "json").stderr


def test_transcripts_are_compared_by_their_words(folder):
    rows = json.loads(run("diff", "a.txt", "b.txt", "-f", "json").stdout)["segments"]
    assert [(s["kind"], s["a"], s["b"]) for s in rows] == [
        ("same", [0, 80], [0, 80]), ("only_b", None, [80, 112]), ("same", [80, 160], [112, 192]),
        ("only_a", [160, 240], None),
    ]  # fmt: skip
    assert "0:" not in run("diff", "a.txt", "b.txt").stdout


def test_each_row_of_two_texts_says_how_it_begins(folder):
    said = [cue.text.split() for cue in read_subtitles((folder / "b.srt").read_text())]
    lines = run("diff", "a.txt", "b.txt").stdout.splitlines()
    assert lines[0].endswith("begins with")
    assert lines[1].endswith(f"  {' '.join(said[0])} …")
    assert lines[2].endswith(f"  {' '.join(said[10])} …")
    cues = read_subtitles((folder / "a.srt").read_text())
    late = [cue._replace(start=cue.start + 40 * (k > 9), stop=cue.stop + 40 * (k > 9)) for k, cue in enumerate(cues)]
    (folder / "late.srt").write_text(subrip(late))
    paused = run("diff", "a.srt", "late.srt").stdout.splitlines()
    assert next(line for line in paused if line.startswith("only B")).endswith("  (no words)")


def test_subtitles_move_to_the_other_version(folder):
    done = run("retime", "a.srt", "--to", "b.srt", "--out", "moved.srt")
    assert "20 of 30 cues moved, 10 left out" in done.stderr
    moved, wanted = (folder / "moved.srt").read_text(), (folder / "b.srt").read_text()
    assert moved.count("-->") == 20
    assert "00:00:49,000 --> 00:00:52,000" in moved
    assert all(line in wanted for line in moved.splitlines() if "-->" in line)
    assert run("retime", "a.srt", "--to", "b.srt").stdout == moved


def test_subtitles_move_to_the_times_of_a_recognizer(folder):
    cues = [cue._asdict() for cue in read_subtitles((folder / "b.srt").read_text())]
    (folder / "b.json").write_text(json.dumps({"text": "", "segments": cues}))
    assert run("retime", "a.srt", "--to", "b.json").stdout == run("retime", "a.srt", "--to", "b.srt").stdout


def test_where_the_versions_do_not_belong_together_nothing_is_written(folder, monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "retime", "a.srt", "--to", "other.srt", "--out", "moved.srt")
    assert (code, out) == (1, "")
    assert "the two versions have nothing in common" in err
    assert "nothing was written; --force writes the file anyway" in err
    assert not (folder / "moved.srt").exists()


def test_force_writes_what_is_doubtful(folder):
    (folder / "start.srt").write_text("\n\n".join((folder / "b.srt").read_text().split("\n\n")[:6]) + "\n")
    arguments = ["retime", "a.srt", "--to", "start.srt", "--out", "moved.srt"]
    assert CliRunner().invoke(app, arguments).exit_code == 1
    assert not (folder / "moved.srt").exists()
    done = run(*arguments, "--force")
    assert "6 of 30 cues moved, 24 left out" in done.stderr
    assert (folder / "moved.srt").read_text().count("-->") == 6


def test_at_another_speed_no_confidence_is_shown_without_the_option(folder):
    cues = read_subtitles((folder / "a.srt").read_text())
    (folder / "slow.srt").write_text(subrip([c._replace(start=1.04 * c.start, stop=1.04 * c.stop) for c in cues]))
    done = run("diff", "a.srt", "slow.srt", "--min", "3")
    assert "compare them with speed=True (--speed)" in done.stderr
    assert "?" in done.stdout
    assert "100%" not in done.stdout.splitlines()[1]
    assert "?" not in run("diff", "a.srt", "slow.srt", "--min", "3", "--speed").stdout


def test_markdown_is_a_text(folder):
    assert run("diff", "a.md", "b.txt", "-f", "json").stdout == run("diff", "a.txt", "b.txt", "-f", "json").stdout


@pytest.mark.parametrize("kind", ["srt", "json", "list"])
def test_a_plain_text_and_one_with_times_are_compared_by_words(folder, kind):
    cues = [cue._asdict() for cue in read_subtitles((folder / "b.srt").read_text())]
    timed = "b.srt" if kind == "srt" else "b.json"
    if kind != "srt":
        (folder / timed).write_text(json.dumps(cues if kind == "list" else {"text": "", "segments": cues}))
    by_words = run("diff", "a.txt", "b.txt")
    assert "has no times" not in by_words.stderr
    done = run("diff", "a.txt", timed)
    assert done.stdout == by_words.stdout
    assert done.stderr == "dropdtw: a.txt has no times, so A and B are compared by words, and positions count words\n"
    assert run("diff", timed, "a.txt").stdout == run("diff", "b.txt", "a.txt").stdout
    run("diff", "a.txt", timed, "--out", "e.html")
    assert "<h1>160 words in common; only in A 80, only in B 32.</h1>" in (folder / "e.html").read_text()
    done = run("diff", "a.srt", timed)
    assert done.stdout == run("diff", "a.srt", "b.srt").stdout
    assert done.stderr == ""


def test_numbers_in_json_are_a_sequence(folder):
    rows = np.random.default_rng(0).normal(size=(40, 3)).round(3).tolist()
    (folder / "lists.json").write_text(json.dumps(rows))
    (folder / "named.json").write_text(json.dumps([dict(zip("abc", row, strict=True)) for row in rows]))
    assert run("diff", "lists.json", "named.json").stdout.splitlines()[1].split()[:5] == ["same", "0", "40", "0", "40"]


def test_unrelated_texts_are_said_to_be_so(folder):
    done = run("diff", "a.srt", "other.srt")
    assert "these have nothing in common" in done.stderr
    assert "0% of the shorter file also occurs in the other" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diff", "a.srt", "b.npy"], "A is a text (a.srt) and B is a sequence (b.npy); give two of the same kind"),
        (["diff", "a.json", "b.txt"], "A is a sequence (a.json) and B is a text (b.txt); give two of the same kind"),
        (["diff", "cut.json", "b.txt"], "cut.json: these subtitles begin like JSON, but are not valid JSON"),
        (["diff", "a.srt", "b.srt", "--format", "xls"], "--format is 'xls'; choose one of json"),
        (["diff", "a.srt", "b.srt", "--out", "e.doc"], "whose extension is not a known format; use .json, .csv"),
        (["diff", "a.srt", "b.srt", "--fps", "3"], "--fps is only for sequences of features, but A is a text; omit it"),
        (["diff", "a.srt", "b.srt", "--out", "a.srt", "-f", "csv"], "which would overwrite an input (a.srt)"),
        (["diff", "none.srt", "b.srt"], "none.srt"),
        (["retime", "a.srt", "--to", "b.mp3"], "also give the recording that SUBS was made for: --from A"),
        (["retime", "a.srt", "--from", "b.srt", "--to", "b.mp3"], "give two of the same kind"),
        (["retime", "a.txt", "--to", "b.srt"], "a.txt: the text has no subtitles"),
        (["retime", "a.srt", "--to", "b.srt", "--out", "b.srt"], "which would overwrite an input (b.srt)"),
        (["retime", "a.srt", "--to", "b.srt", "--out", "./a.srt"], "which would overwrite an input (a.srt)"),
        (["retime", "a.srt", "--to", "b.srt", "--out", "c.vtt"], "the same; give a name that ends in .srt"),
        (["retime", "a.srt", "--from", "a.txt", "--to", "b.txt"], "--from is a.txt, which has no times"),
        (["retime", "a.srt", "--from", "a.npy", "--to", "b.npy"], "--from is a.npy, which has no times"),
        (["retime", "a.srt", "--to", "b.txt"], "--to is b.txt, which has no times"),
        (["diff", "a.srt", "b.srt", "--min", "0"], "min is 0.0; give a number above 0"),
        (["diff", "a.srt", "b.srt", "-f", "ffmpeg"], "--format ffmpeg is for recordings, but B is a text"),
        (["diff", "a.txt", "b.txt", "-f", "audacity"], "--format audacity needs times in seconds, but a.txt has none"),
        (["diff", "a.srt", "b.txt", "-f", "audacity"], "--format audacity needs times in seconds, but b.txt has none"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(folder, monkeypatch, capsys, arguments, said):
    (folder / "a.json").write_text("[[1, 2], [3, 4]]")
    (folder / "cut.json").write_text('{"text": "now we')
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err


# --- Recordings -----------------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[2] / "examples/diff"
ROWS = [
    ("same", [0, 9], [0, 9]),
    ("only_a", [9, 15], None),
    ("same", [15, 27], [9, 21]),
    ("only_b", None, [21, 29.5]),
    ("same", [27, 35], [29.5, 37.5]),
    ("only_a", [35, 40], None),
    ("same", [40, 46], [37.5, 43.5]),
]


@pytest.fixture
def recordings(tmp_path, monkeypatch):
    """The committed pair, with a space in the name of B."""
    pytest.importorskip("av", reason="PyAV is not installed: pip install 'dropdtw[media]'")
    shutil.copy(EXAMPLE / "a.ogg", tmp_path / "a.ogg")
    shutil.copy(EXAMPLE / "b.ogg", tmp_path / "the b.ogg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_recordings_give_the_json_that_is_documented(recordings):
    done = run("diff", "a.ogg", "the b.ogg", "--format", "json")
    found = json.loads(done.stdout)
    assert list(found) == ["segments"]
    assert [row["kind"] for row in found["segments"]] == [kind for kind, _, _ in ROWS]
    for row, (_, a, b) in zip(found["segments"], ROWS, strict=True):
        assert list(row) == ["kind", "a", "b", "confidence"]
        assert row["a"] == (None if a is None else pytest.approx(a, abs=0.03))
        assert row["b"] == (None if b is None else pytest.approx(b, abs=0.03))
        assert 0.9 < row["confidence"] <= 1
    assert done.stderr == ""


def test_the_filter_comes_with_a_command_that_a_shell_can_run(recordings):
    done = run("diff", "a.ogg", "the b.ogg", "--format", "ffmpeg", "--out", "cut it.txt")
    command = """ffmpeg -i 'the b.ogg' -filter_complex "$(cat 'cut it.txt')" -map '[a]' shorter.mp3"""
    assert f"to cut: {command}" in done.stderr
    if shutil.which("ffmpeg") is None or os.name != "posix":
        pytest.skip("there is no ffmpeg, or no shell that expands $(…): the command was not run")
    subprocess.run(command.replace("ffmpeg", "ffmpeg -v error", 1), shell=True, check=True)
    rows = json.loads(run("diff", "a.ogg", "shorter.mp3", "-f", "json").stdout)["segments"]
    assert [row["kind"] for row in rows if row["kind"] != "same"] == ["only_a", "only_a"]


def test_a_timeline_goes_to_editors(recordings):
    run("diff", "a.ogg", "the b.ogg", "--out", "edit.otio")
    tracks = json.loads(Path("edit.otio").read_text())["tracks"]["children"]
    clips = [[item["name"] for item in track["children"] if item["OTIO_SCHEMA"] == "Clip.1"] for track in tracks]
    assert clips[0] == [f"a.ogg: {kind}" for kind in ("same", "only A", "same", "same", "only A", "same")]
    assert clips[1] == [f"the b.ogg: {kind}" for kind in ("same", "same", "only B", "same", "same")]
    url = tracks[1]["children"][0]["media_reference"]["target_url"]
    assert url == (recordings / "the b.ogg").as_uri()


def test_the_recording_with_extras_is_cut_and_the_command_says_which(recordings):
    write(recordings / "short.wav", gusts(1, 20))
    write(recordings / "long.wav", np.concatenate([gusts(1, 20), gusts(2, 10)]))
    done = run("diff", "long.wav", "short.wav", "--out", "cut.edl")
    assert "A is cut to what B has, because only A has extras" in done.stderr
    assert "00:00:00:00 00:00:20:00 00:00:00:00 00:00:20:00" in Path("cut.edl").read_text()
    assert "ffmpeg -i long.wav" in run("diff", "long.wav", "short.wav", "-f", "ffmpeg").stderr
    assert "B is cut to what A has" in run("diff", "short.wav", "long.wav", "-f", "edl").stderr
    assert "B has nothing that A lacks" in run("diff", "short.wav", "short.wav", "-f", "edl").stderr


def test_subtitles_move_by_the_sound_of_both_versions(recordings):
    cues = [Sentence(t, t + 2, f"cue {t}") for t in (1, 10, 16, 25, 28, 36, 41)]
    Path("a.srt").write_text(subrip(cues))
    done = run("retime", "a.srt", "--from", "a.ogg", "--to", "the b.ogg", "--out", "b.srt")
    assert "5 of 7 cues moved, 2 left out; the versions match with confidence 100%" in done.stderr
    assert "left out 0:10.000: cue 10" in done.stderr
    moved = read_subtitles(Path("b.srt").read_text())
    assert [c.text for c in moved] == ["cue 1", "cue 16", "cue 25", "cue 28", "cue 41"]
    assert [c.start for c in moved] == pytest.approx([1, 10, 19, 30.5, 38.5], abs=0.03)


def test_subtitles_that_outlast_their_recording_are_not_moved(recordings, monkeypatch, capsys):
    cues = [Sentence(t, t + 2, f"cue {t}") for t in (1, 16, 28, 41, 44.5, 63)]  # A lasts 46 s
    arguments = ["retime", "a.srt", "--from", "a.ogg", "--to", "the b.ogg", "--out", "b.srt"]
    Path("a.srt").write_text(subrip(cues))
    code, _, err = call(monkeypatch, capsys, *arguments)
    assert code == 1
    assert "SUBS runs to 1:05, but --from lasts 0:46; are they for another version?" in err
    assert not Path("b.srt").exists()
    run(*arguments, "--force")
    Path("a.srt").write_text(subrip(cues[:-1]))  # half a second may lie past the end
    assert "runs to" not in run(*arguments).stderr


def test_subtitles_are_not_moved_by_recordings_that_are_strangers(recordings, monkeypatch, capsys):
    write(recordings / "other.wav", gusts(3, 30))
    Path("a.srt").write_text(subrip([Sentence(1, 3, "hello")]))
    arguments = ["retime", "a.srt", "--from", "a.ogg", "--to", "other.wav", "--out", "b.srt"]
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, out) == (1, "")
    assert "the two versions have nothing in common" in err
    assert not Path("b.srt").exists()
