"""The command line: answers, errors in one line, and quiet pipes."""

import csv
import importlib.util
import io
import itertools
import json
import re
import subprocess
import sys
import warnings
import wave
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="typer is not installed")
import typer

import dropdtw
from cli_cases import call, run
from dropdtw import cli, speech, text
from dropdtw.cli import options
from dropdtw.cli.app import app
from dropdtw.cli.panels import ADVANCED, COMMON

EXAMPLES = Path(__file__).parents[2] / "examples" / "chapters"
STEPS, TALK = str(EXAMPLES / "steps.txt"), str(EXAMPLES / "talk.srt")
COMMANDS = ["align", "chapters", "find", "diff", "retime", "retrieve"]
COMMANDS += ["corpus", "explore", "info"]
GROUPS = ["corpus"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Four steps in Z, a recording of them in X, a corpus in which one sequence is like Z."""
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(4, 16))
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1, 3, -1], [6, 8, 5, 3, 9, 7, 4, 8, 7])
    noise = rng.normal(size=(len(truth), 16))
    np.save(tmp_path / "Z.npy", Z)
    np.save(tmp_path / "X.npy", np.where(truth[:, None] >= 0, Z[truth] + 0.5 * noise, noise))
    np.save(tmp_path / "truth.npy", truth)
    (tmp_path / "empty.txt").write_text("...\n\n")
    (tmp_path / "blank.json").write_text("\ufeff\n", encoding="utf-8")
    (tmp_path / "plain.srt").write_text("no times\n")
    (tmp_path / "talk.mp4").touch()
    (tmp_path / "talk.csv").write_text("at,text\n1,Hello\n")
    (tmp_path / "corpus").mkdir()
    for k in range(9):
        np.save(tmp_path / "corpus" / f"{k}.npy", rng.normal(size=(12 + k, 16)))
    np.save(tmp_path / "corpus" / "near.npy", np.repeat(Z, 3, axis=0) + 0.2 * rng.normal(size=(12, 16)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- align ------------------------------------------------------------------------------------------------------


def test_align_finds_the_steps_without_any_option(folder):
    done = run("align", "Z.npy", "X.npy", "--out", "a.json")
    data = json.loads((folder / "a.json").read_text())
    assert (np.array(data["labels"]) == np.load("truth.npy")).mean() > 0.9
    assert re.search(r"dropdtw: drop cost 0\.\d+ suggested \(percentile:\S+, confidence \d+%\)", done.stderr)
    assert "drop_dtw, cosine costs: 4 z with 57 x" in done.stdout


def test_align_says_nothing_of_suggestions_where_it_was_told(folder):
    done = run("align", "Z.npy", "X.npy", "--drop-x", "percentile:15")
    assert done.stderr == ""
    assert done.stdout.splitlines()[1].split() == ["z", "start", "stop", "length"]


GIVEN = {
    "contiguous": (["--contiguous"], {"contiguous": True}),
    "many_to_one": (["--no-many-to-one"], {"many_to_one": False}),
    "one_to_many": (["--no-one-to-many"], {"one_to_many": False}),
    "window": (["--window", "0.4"], {"window": 0.4}),
    "columns": (["--window", "20"], {"window": 20}),
    "match": (["--match", "euclidean"], {"match": "euclidean"}),
    "method": (["--method", "greedy"], {"method": "greedy"}),
}


@pytest.mark.parametrize("option", GIVEN)
def test_align_passes_every_option_on(folder, option):
    flags, given = GIVEN[option]
    run("align", "Z.npy", "X.npy", "--drop-x", "0.7", "--drop-z", "0.3", *flags, "--out", "a.json", "--costs")
    a = dropdtw.Alignment.from_dict(json.loads((folder / "a.json").read_text()))
    b = dropdtw.align(np.load("Z.npy"), np.load("X.npy"), 0.7, 0.3, **given)
    assert a.cost == pytest.approx(b.cost)
    np.testing.assert_array_equal(a.pairs, b.pairs)
    assert (a.method, a.problem.table) == (b.method, b.problem.table)
    assert (a.problem.costs.band is None) == (b.problem.costs.band is None)


def test_align_by_other_methods(folder):
    assert "dtw, cosine costs" in run("align", "Z.npy", "X.npy", "--method", "dtw").stdout
    assert "lcss" in run("align", "Z.npy", "X.npy", "--method", "lcss", "--threshold", "0.5").stdout
    assert "0 x dropped" in run("align", "Z.npy", "X.npy", "--drop-x", "none").stdout


def test_align_takes_a_drop_cost_per_element(folder):
    costs = np.full(57, 0.5)
    costs[:3] = 0
    np.save("d.npy", costs)
    run("align", "Z.npy", "X.npy", "--drop-x", "d.npy", "--out", "a.npz")
    with np.load("a.npz") as data:
        np.testing.assert_array_equal(data["drop_x"], costs)
        assert data["dropped_x"][:3].all()


def test_align_reads_a_pipe_and_writes_one(folder):
    data = np.load("Z.npy")
    text = "\n".join(",".join(map(repr, row)) for row in data.tolist())
    done = run("align", "-", "X.npy", "--drop-x", "0.5", "--out", "-", input=text)
    assert json.loads(done.stdout)["shape"] == [4, 57]  # nothing but JSON
    assert done.stderr == ""


def test_align_gives_times_and_pictures(folder):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    out = run("align", "Z.npy", "X.npy", "--drop-x", "0.5", "--contiguous", "--fps", "10", "--plot", "a.svg").stdout
    assert "0.60 s" in out
    assert "<svg" in Path("a.svg").read_text()


def test_align_compares_numbers_as_numbers(folder):
    Path("z.txt").write_text("0\n1\n2\n")
    Path("x.txt").write_text("0\n1\n50\n2\n")
    assert "euclidean costs" in run("align", "z.txt", "x.txt", "--drop-x", "1").stdout


def test_align_takes_times_from_a_column(folder):
    Path("z.csv").write_text("value\n1\n5\n")
    Path("x.csv").write_text("Zeit;value\n0:10;1\n0:12,5;9\n0:20;5\n")
    done = run("align", "z.csv", "x.csv", "--time", "Zeit", "--drop-x", "1", "--out", "a.json")
    assert [line.split()[-4:] for line in done.stdout.splitlines()[2:]] == [
        ["10.00", "s", "12.50", "s"],
        ["20.00", "s", "25.00", "s"],
    ]
    assert [s["start_time"] for s in json.loads(Path("a.json").read_text())["segments"]] == [10, 20]
    Path("z.csv").write_text("value,Zeit\n1,0\n5,1\n")
    assert run("align", "z.csv", "x.csv", "--time", "Zeit", "--drop-x", "1").stdout == done.stdout


def test_align_shows_a_screenful(folder):
    np.savetxt("z.txt", np.arange(50))
    assert "… and 30 more; --out writes them all" in run("align", "z.txt", "z.txt", "--drop-x", "none").stdout


@pytest.mark.usefixtures("wordllama")
@pytest.mark.parametrize("name", ["start", "when"])
def test_chapters_takes_a_table(folder, name):
    from dropdtw import text

    cues = text.read_subtitles(Path(TALK).read_text())
    with Path("talk.csv").open("w") as file:
        csv.writer(file).writerows([(name, "text", "end"), *((c.start, c.text, c.stop) for c in cues)])
    more = [] if name == "start" else ["--time", name]
    assert run("chapters", STEPS, "talk.csv", *more).stdout == run("chapters", STEPS, TALK).stdout


@pytest.mark.usefixtures("wordllama")
def test_chapters_takes_a_plain_text_and_counts_its_sentences(folder):
    from dropdtw import text

    said = text.sentences(text.read_subtitles(Path(TALK).read_text()))
    (folder / "talk.txt").write_bytes("\n".join(s.text for s in said).encode("cp1252"))
    found = json.loads(run("chapters", STEPS, "talk.txt", "--format", "json").stdout)["segments"]
    timed = json.loads(run("chapters", STEPS, TALK, "--format", "json").stdout)["segments"]
    for plain, clocked in zip(found, timed, strict=True):
        assert (plain["start"], plain["confidence"]) == (None, clocked["confidence"])
        if clocked["start"] is not None:
            first, last = plain["sentences"]
            assert (said[first].start, said[last - 1].stop) == (clocked["start"], clocked["stop"])
    assert "sentences" in run("chapters", STEPS, "talk.txt", "--format", "html").stdout


WRONG = {
    "no file": (["align", "nothing.npy", "X.npy"], "there is no file nothing.npy"),
    "no such command": (["alin"], "No such command 'alin'"),
    "no such option": (["align", "Z.npy", "X.npy", "--drop"], "No such option: --drop"),
    "missing argument": (["align", "Z.npy"], "Missing argument 'X'; see: dropdtw align --help"),
    "drop": (["align", "Z.npy", "X.npy", "--drop-x", "lots"], "--drop-x is 'lots'; give a number, percentile:30"),
    "percentile": (["align", "Z.npy", "X.npy", "--drop-x", "percentile:300"], "--drop-x is 'percentile:300'"),
    "drops": (["align", "Z.npy", "X.npy", "--drop-x", "X.npy"], "has 16 numbers per row"),
    "method": (["align", "Z.npy", "X.npy", "--method", "magic"], "--method is 'magic'; choose one of"),
    "not taken": (["align", "Z.npy", "X.npy", "--method", "dtw", "--drop-x", "1"], "takes no drop costs"),
    "match": (["align", "Z.npy", "X.npy", "--match", "magic"], "--match is 'magic'; choose one of 'cosine'"),
    "threshold": (["align", "Z.npy", "X.npy", "--threshold", "low"], "--threshold is 'low'; give a number, perc"),
    "window": (["align", "Z.npy", "X.npy", "--window", "wide"], "--window is 'wide'"),
    "wide window": (["align", "Z.npy", "X.npy", "--window", "2.5"], "--window is '2.5'; give a number of columns"),
    "prose": (["align", STEPS, TALK], "steps.txt holds text, not numbers; `dropdtw align --text` aligns words"),
    "fps": (["align", "Z.npy", "X.npy", "--fps", "0"], "--fps is 0.0"),
    "two clocks": (["align", "Z.npy", "X.npy", "--fps", "25", "--time", "t"], "--fps and --time both set the times"),
    "no clock": (["align", "Z.npy", "X.npy", "--time", "t"], "X.npy has no named columns, so none is called 't'"),
    "no column": (["chapters", STEPS, "talk.csv"], "talk.csv: there is no column of times among at, text"),
    "out": (["align", "Z.npy", "X.npy", "--out", "a.xml"], "written as .json, .csv or .npz"),
    "costs": (["align", "Z.npy", "X.npy", "--out", "a.csv", "--costs"], "a .csv file has no place for --costs; give a"),
    "plot": (["align", "Z.npy", "X.npy", "--plot", "a.doc"], "written as .png, .svg or .pdf"),
    "two pipes": (["align", "-", "-"], "can be read only once"),
    "features": (["align", "Z.npy", "truth.npy"], "Z has 16 features and X has 1"),
    "no talk": (["chapters", STEPS, "nothing.srt"], "there is no file nothing.srt"),
    "no text": (["chapters", STEPS, "X.npy"], "X.npy is not a text file; give one that is saved as UTF-8"),
    "no subtitles": (["chapters", STEPS, "plain.srt"], "the text has no subtitles"),
    "nothing": (["chapters", STEPS, "blank.json"], "blank.json is empty; give a file with subtitles"),
    "no sentences": (["chapters", STEPS, "empty.txt"], "empty.txt has no sentences; give one per line"),
    "no times": (["chapters", STEPS, STEPS, "--format", "srt"], "has no times, but srt needs them"),
    "format": (["chapters", STEPS, TALK, "--format", "docx"], "--format is 'docx'; choose one of json"),
    "which format": (["chapters", STEPS, TALK, "--out", "a.txt"], "add --format json|csv|srt|vtt|ffmetadata"),
    "model": (["chapters", STEPS, TALK, "--model", "no-such-folder"], "give 'wordllama' or the folder of"),
    "no recording": (["chapters", STEPS, TALK, "-o", "a.html", "--recording", "b.mp4"], "b.mp4, which is not a file"),
    "subtitles": (["chapters", STEPS, "talk.mp4"], "talk.mp4 is a recording; give its subtitles"),
    "transcribe": (["chapters", STEPS, "talk.mp4"], "with --whisper FOLDER, a model for faster-whisper (pip install"),
    "swapped": (["chapters", "talk.mp4", STEPS], "talk.mp4 is a recording, not a list of steps; give STEPS first"),
    "gone": (["chapters", STEPS, "gone.mp4"], "there is no file gone.mp4"),
    "whisper": (["chapters", STEPS, TALK, "--whisper", "x"], "omit --whisper, or give a recording"),
    "no whisper": (["chapters", STEPS, "talk.mp4", "--whisper", "x"], "the model is 'x', which is not a folder"),
    "skip": (["chapters", STEPS, TALK, "--skip", "-1"], "Invalid value for '--skip'"),
    "no drop_z": (["chapters", STEPS, TALK, "--drop-z", "0.2"], "No such option: --drop-z"),
    "no engine": (["chapters", STEPS, TALK, "--engine", "ray"], "No such option: --engine"),
    "no ray": (["retrieve", "Z.npy", "corpus", "--engine", "ray"], "No such option: --engine"),
    "two texts": (["chapters", "-", "-"], "can be read only once"),
    "corpus": (["retrieve", "Z.npy", "X.npy"], "X.npy is neither a folder nor an .npz file"),
    "top": (["retrieve", "Z.npy", "corpus", "--top", "0"], "Invalid value for '--top'"),
    "ranking": (["retrieve", "Z.npy", "corpus", "--out", "a.npz"], "written as .json or .csv"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_give_one_line_and_exit_code_2(folder, monkeypatch, capsys, mistake):
    if mistake == "no recording":  # is seen when the steps are found
        pytest.importorskip("wordllama", reason="wordllama is not installed")
    arguments, reason = WRONG[mistake]
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("dropdtw: ")
    assert reason in err
    last = err.splitlines()[-1]
    assert reason in last
    assert all("suggested" in line for line in err.splitlines()[:-1])


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["--method", "magic"], "'asymmetricP1'"),
        (["--match", "magic"], "'auto'"),
        (["--drop-x", "1", "--warp", "-1"], "--warp is -1.0; give a finite number ≥ 0"),
        (["--drop-x", "none", "--no-one-to-many"], "pass --one-to-many, or give --drop-x"),
    ],
)
def test_advice_is_what_a_shell_can_follow(folder, monkeypatch, capsys, arguments, last):
    _, _, err = call(monkeypatch, capsys, "align", "Z.npy", "X.npy", *arguments)
    assert err.endswith(f"{last}\n")


def test_file_names_are_not_taken_for_options(folder, monkeypatch, capsys):
    Path("drop_x.csv").write_text("a,b\n1,c\n")
    _, _, err = call(monkeypatch, capsys, "align", "Z.npy", "drop_x.csv")
    assert err.startswith("dropdtw: drop_x.csv cannot be read as .csv")


def test_traceback_can_be_asked_for(folder, monkeypatch):
    monkeypatch.setenv("DROPDTW_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["dropdtw", "align", "nothing.npy", "X.npy"])
    with warnings.catch_warnings(), pytest.raises(FileNotFoundError):
        cli.main()


def test_ctrl_c_is_130(monkeypatch, capsys):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr("dropdtw.cli.info.gather", stop)
    assert call(monkeypatch, capsys, "info")[0] == 130


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"needs typer: pip install 'dropdtw\[cli\]'"):
        cli.main()


# --- chapters ---------------------------------------------------------------------------------------------------


@pytest.fixture
def wordllama():
    pytest.importorskip("wordllama", reason="wordllama is not installed")


@pytest.mark.usefixtures("wordllama")
def test_chapters_prints_a_table():
    lines = run("chapters", STEPS, TALK).stdout.splitlines()
    assert lines[0].split() == ["#", "step", "start", "stop", "confidence", "begins", "with"]
    assert re.match(r"1  Take the wheel off the bike +0:35 +0:46 +\d+%  First turn the bicycle", lines[1])
    assert re.match(r"5  Oil the chain +not found +closest: \d:\d\d, \d+%$", lines[5])
    assert lines[-1] == "6 of 7 steps found among 40 sentences"


@pytest.mark.usefixtures("wordllama")
def test_chapters_writes_json_alone_to_a_pipe():
    done = run("chapters", STEPS, "-", "--format", "json", input=Path(TALK).read_text())
    segments = json.loads(done.stdout)["segments"]
    closest = segments[4].pop("closest")
    assert [set(s) for s in segments] == [{"number", "index", "step", "start", "stop", "confidence"}] * 7
    assert 0 <= closest["confidence"] < 0.5
    assert segments[3]["stop"] <= closest["start"] < closest["stop"] <= segments[5]["start"]
    nothing = {"start": None, "stop": None, "confidence": None}
    assert segments[4] == {"number": "5", "index": 4, "step": "Oil the chain"} | nothing


@pytest.mark.usefixtures("wordllama")
def test_chapters_tells_the_format_by_the_name(folder):
    assert "steps found" in run("chapters", STEPS, TALK, "--out", "a.vtt").stdout
    assert Path("a.vtt").read_text().startswith("WEBVTT\n")
    run("chapters", STEPS, TALK, "--out", "a.txt", "--format", "youtube", "--drop-x", "percentile:10", "--skip", "0.2")
    assert Path("a.txt").read_text().startswith("0:00 Introduction\n")


@pytest.mark.usefixtures("wordllama")
def test_chapters_plays_a_recording_and_titles_its_page(folder):
    Path("films").mkdir()
    with wave.open("films/short.wav", "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(16000 * 31))
    done = run("chapters", STEPS, TALK, "--out", "a.html", "--recording", "films/short.wav")
    if importlib.util.find_spec("av"):
        assert "but films/short.wav lasts 0:31; check that they belong together" in done.stderr
    Path("films/my talk.mp4").touch()
    run("chapters", STEPS, TALK, "--out", "a.html", "--recording", "films/my talk.mp4")
    page = Path("a.html").read_text()
    assert '<video id="media" src="films/my%20talk.mp4"' in page
    assert "<h1>talk</h1>" in page
    site = ["--recording", "https://x.org/1", "--title", "Tires"]
    page = run("chapters", STEPS, TALK, "--format", "html", *site).stdout
    assert "<h1>Tires</h1>" in page
    assert 'href="https://x.org/1#t=35"' in page
    note = "dropdtw: --recording and --title: only pages use this; add --out NAME.html"
    assert note in run("chapters", STEPS, TALK, *site).stderr
    assert "only pages" not in run("chapters", STEPS, TALK, "--out", "a.html", *site).stderr


@pytest.mark.usefixtures("wordllama")
def test_chapters_transcribes_a_recording(folder, monkeypatch, capsys):
    Path("talk.mp3").touch()
    said = [word for s in text.sentences(text.read_subtitles(Path(TALK).read_text())) for word in spoken(s)]
    asked = []

    def transcribe(recording, model):
        asked.append((recording, model))
        return speech.Transcript(tuple(said))

    monkeypatch.setattr(speech, "transcribe", transcribe)
    code, out, _ = call(monkeypatch, capsys, "chapters", STEPS, "talk.mp3", "--whisper", "here", "--out", "a.html")
    assert (code, asked) == (0, [("talk.mp3", "here")])
    assert "6 of 7 steps found among" in out
    assert re.search(r"1  Take the wheel off the bike +0:35 +0:46", out)
    assert '<audio id="media" src="talk.mp3"' in Path("a.html").read_text()
    said.clear()
    code, _, err = call(monkeypatch, capsys, "chapters", STEPS, "talk.mp3", "--whisper", "here")
    assert code == 2
    assert "no word was heard in talk.mp3" in err


def spoken(sentence):
    """The words of a sentence, each with an equal share of its time."""
    words = sentence.text.split()
    share = (sentence.stop - sentence.start) / len(words)
    return [
        speech.SpokenWord(sentence.start + k * share, sentence.start + (k + 1) * share, word)
        for k, word in enumerate(words)
    ]


@pytest.mark.usefixtures("wordllama")
def test_chapters_passes_its_costs_on():
    """A step that costs more to skip is found; without drops every sentence belongs to a step."""
    usual = run("chapters", STEPS, TALK).stdout
    assert run("chapters", STEPS, TALK, "--drop-x", "suggest", "--skip", "0.15").stdout == usual
    assert "7 of 7 steps found" in run("chapters", STEPS, TALK, "--skip", "100").stdout
    done = run("chapters", STEPS, TALK, "--drop-x", "none", "--format", "json")
    found = [s for s in json.loads(done.stdout)["segments"] if s["start"] is not None]
    assert all(a["stop"] <= b["start"] for a, b in itertools.pairwise(found))
    assert found[0]["start"] == pytest.approx(0, abs=5)


# --- retrieve ---------------------------------------------------------------------------------------------------


def test_retrieve_finds_the_nearest(folder):
    done = run("retrieve", "Z.npy", "corpus", "--top", "3")
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert lines[1].endswith("near.npy")
    assert "suggested, from 8 of 10 sequences" in done.stderr


@pytest.mark.parametrize("mean", [False, True])
def test_retrieve_ranks_by_pairwise_costs(folder, monkeypatch, mean):
    monkeypatch.setattr("dropdtw.cli.retrieve.CHUNK", 3000)  # several chunks
    run("retrieve", "Z.npy", "corpus", "--drop-x", "0.3", "--drop-z", "0.4", "-o", "r.csv", *(["--mean"] * mean))
    rows = list(csv.DictReader(io.StringIO(Path("r.csv").read_text())))
    Z = np.load("Z.npy")
    corpus = {str(p): np.load(p) for p in Path("corpus").iterdir()}
    costs = {name: dropdtw.distance(Z, X, 0.3, 0.4) / (len(Z) + len(X) if mean else 1) for name, X in corpus.items()}
    assert [row["sequence"] for row in rows] == sorted(costs, key=costs.get)
    assert [float(row["cost"]) for row in rows] == pytest.approx(sorted(costs.values()))
    assert [int(row["length"]) for row in rows] == [len(corpus[row["sequence"]]) for row in rows]


def test_retrieve_takes_arrays_of_one_file(folder):
    np.savez("all.npz", **{p.stem: np.load(p) for p in Path("corpus").iterdir()})
    done = run("retrieve", "Z.npy", "all.npz", "--method", "dtw", "--out", "-", "--top", "2")
    assert json.loads(done.stdout)["nearest"][0]["sequence"] == "all.npz:near"


def test_retrieve_stops_at_broken_files_unless_told(folder, monkeypatch, capsys):
    Path("corpus/bad.csv").write_text("1,x\n")
    np.save("corpus/thin.npy", np.zeros((5, 3)))
    told = ["retrieve", "Z.npy", "corpus", "--drop-x", "0.3"]
    code, out, err = call(monkeypatch, capsys, *told)
    assert (code, out) == (2, "")
    assert "bad.csv cannot be read" in err
    assert "--skip-broken skips such files" in err
    done = run(*told, "--skip-broken", "--top", "1")
    assert done.stdout.splitlines()[1].endswith("near.npy")
    assert [Path(n).name for n in re.findall(r"skipped: (\S+)", done.stderr)] == ["bad.csv", "thin.npy"]


def test_retrieve_needs_something_readable(folder, monkeypatch, capsys):
    Path("bad").mkdir()
    Path("bad/a.csv").write_text("1,x\n")
    for more, reason in (
        (["--drop-x", "1"], "bad holds no readable sequence"),
        ([], "no readable sequence to suggest"),
    ):
        code, _, err = call(monkeypatch, capsys, "retrieve", "Z.npy", "bad", "--skip-broken", *more)
        assert code == 2
        assert reason in err


# --- info, help -------------------------------------------------------------------------------------------------


def test_info_names_version_and_executors():
    facts = json.loads(run("info", "--json").stdout)
    assert facts["dropdtw"] == dropdtw.__version__
    assert "reference" in facts["executors"]
    assert int(facts["threads"]) > 0
    assert "GPU" in run("info").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_is_worth_reading(command):
    for flag in ("--help", "-h"):
        shown = run(command, flag).stdout
    assert len(shown) > 200
    if command not in GROUPS:
        assert f"dropdtw {command}" in shown.partition("Example:")[2]


def test_help_lists_the_commands(monkeypatch, capsys):
    shown = run("--help").stdout
    assert all(f" {command} " in shown for command in COMMANDS)
    code, out, err = call(monkeypatch, capsys)
    assert code == 2
    assert (out + err).count("Usage:") == 1


def test_commands_are_in_the_order_in_which_people_need_them():
    listed = re.findall(r"^│ (\w+) ", run("--help").stdout.partition("Common commands")[2], re.M)
    assert listed[0] == "chapters"
    assert set(listed[-2:]) == {"corpus", "info"}
    assert listed.index("align") < listed.index("retrieve")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_common_options_first(command):
    found = typer.main.get_command(app).commands[command]
    if command in GROUPS:
        found = next(iter(found.commands.values()))
    options = [p for p in found.get_params(typer.Context(found)) if p.param_type_name == "option"]
    assert getattr(found, "common", set()) <= {option.name for option in options}
    panels = [getattr(option, "rich_help_panel", None) for option in options]
    if set(panels) != {None}:  # a command with few options has one panel
        assert panels == sorted(panels, key=[COMMON, ADVANCED].index)
        assert {COMMON, ADVANCED} == set(panels)
    common = [option.name for option, panel in zip(options, panels, strict=True) if panel != ADVANCED]
    assert 2 <= len(common) <= 9
    assert "help" in common
    assert "contiguous" not in common


def test_version(monkeypatch, capsys):
    assert call(monkeypatch, capsys, "--version") == (0, f"dropdtw {dropdtw.__version__}\n", "")


def test_completion_is_offered():
    assert "--install-completion" in run("--help").stdout


def test_windows_are_columns_or_shares():
    assert options.window_width("20") == 20
    assert isinstance(options.window_width("20"), int)
    assert options.window_width("0.5") == 0.5
    assert options.window_width(None) is None


# --- As a program -----------------------------------------------------------------------------------------------


def program(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "dropdtw", *arguments], capture_output=True, text=True, timeout=120, **options
    )


def test_program_pipes_quietly(folder):
    done = program("align", "Z.npy", "X.npy", "--drop-x", "0.5")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout


def test_program_fails_in_one_line(folder):
    done = program("align", "Z.npy", "nothing.npy")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dropdtw: there is no file nothing.npy\n"


def test_warnings_are_one_line(folder):
    done = program("align", "truth.npy", "truth.npy", "--match", "cosine", "--drop-x", "1")
    assert done.returncode == 0
    assert done.stderr.startswith("dropdtw: the cosine of one-dimensional elements")
    assert len(done.stderr.splitlines()) == 1


def test_reader_that_leaves_early_is_no_error(folder):
    command = [sys.executable, "-m", "dropdtw", "align", "Z.npy", "X.npy", "--drop-x", "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 1


# --- what is not installed --------------------------------------------------------------------------------------

WITHOUT = {
    "matplotlib": (
        ["align", "Z.npy", "X.npy", "--plot", "a.png"],
        "--plot needs matplotlib: pip install 'dropdtw[plot]'",
    ),
    "wordllama": (["chapters", STEPS, TALK], "sentence embeddings need wordllama: pip install 'dropdtw[text]'"),
    "uvicorn": (["explore", "Z.npy", "X.npy"], "the explorer needs uvicorn: pip install 'dropdtw[explore]'"),
    "av": (["diff", "Z.wav", "X.wav"], "reading sound and video needs PyAV: pip install 'dropdtw[media]'"),
}


@pytest.mark.parametrize("module", WITHOUT)
def test_a_command_names_the_extra_that_it_needs(folder, module):
    arguments, said = WITHOUT[module]
    (folder / "Z.wav").write_bytes(b"RIFF")
    (folder / "X.wav").write_bytes(b"RIFF")
    code = f"import sys; sys.modules[{module!r}] = None; from dropdtw import cli; cli.main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dropdtw: {said}\n"


@pytest.mark.parametrize(("package", "module"), [("dropdtw.torch", "torch"), ("dropdtw.sklearn", "sklearn")])
def test_a_package_names_the_extra_that_it_needs(package, module):
    code = f"import sys; sys.modules[{module!r}] = None; import {package}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert f"pip install 'dropdtw[{module}]'" in done.stderr.splitlines()[-1]
