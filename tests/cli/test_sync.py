"""`dropdtw sync`, as one calls it."""

import json
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

import page_checks
from cli_cases import call, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "sync"


def beeps(place):
    """A recording that sounds where the words of the example do."""
    sound = np.zeros(16000 * 40, np.int16)
    for segment in json.loads((EXAMPLE / "tea.json").read_text())["segments"]:
        start, stop = (int(16000 * segment[name]) for name in ("start", "end"))
        sound[start:stop] = 8000 * np.sin(np.arange(stop - start))
    with wave.open(str(place), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(sound.tobytes())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("tea.md", "tea.json"):
        (tmp_path / name).write_bytes((EXAMPLE / name).read_bytes())
    (tmp_path / "tea.mp3").write_bytes(b"sound")
    beeps(tmp_path / "tea.wav")
    (tmp_path / "other.txt").write_text("Knead the dough. Let it rest for an hour. Bake it until the crust is brown.")
    (tmp_path / "talk.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    (tmp_path / "empty.json").write_text("\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_says_what_is_read_and_what_is_not(folder):
    lines = run("sync", "tea.md", "tea.json").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:9]] == [str(n) for n in range(1, 9)]
    assert "not read" in lines[4]
    assert lines[9] == "7 of 8 sentences are read"
    assert lines[10].startswith("0:12 not in the text: sorry let me just turn off my phone")


def test_the_end_of_the_name_tells_the_format(folder):
    for name in ("a.srt", "a.vtt", "a.TextGrid", "a.json"):
        run("sync", "tea.md", "tea.json", "--out", name)
    assert (folder / "a.vtt").read_text().startswith("WEBVTT")
    assert (folder / "a.TextGrid").read_text().startswith('File type = "ooTextFile"')
    assert len(json.loads((folder / "a.json").read_text())["sentences"]) == 8
    assert run("sync", "tea.md", "tea.json", "-f", "srt").stdout == (folder / "a.srt").read_text()


def test_the_page_links_to_the_recording(folder):
    pytest.importorskip("jinja2")
    pytest.importorskip("av")
    (folder / "tea.wav").rename("tea #1.wav")
    run("sync", "tea.md", "tea #1.wav", "--words", "tea.json", "--out", "pages/tea.html")
    page = (folder / "pages" / "tea.html").read_text()
    assert 'src="../tea%20%231.wav"' in page
    assert "<title>The tea shop</title>" in page


def test_sentences_begin_and_end_at_pauses_of_the_recording(folder, monkeypatch, capsys):
    pytest.importorskip("av")
    data = json.loads((folder / "tea.json").read_text())
    exact = [(s["start"], s["end"]) for s in data["segments"] if "sorry" not in s["text"]]
    for segment in data["segments"]:  # as recognizers do: the last word includes half of the pause
        segment["words"][-1]["end"] += 0.2
        segment["words"][0]["start"] -= 0.15
    (folder / "late.json").write_text(json.dumps(data))
    arguments = ["sync", "tea.md", "tea.wav", "--words", "late.json", "-f", "json"]
    found = [s for s in json.loads(run(*arguments).stdout)["sentences"] if s["start"] is not None]
    del exact[3]  # said twice
    np.testing.assert_allclose([(s["start"], s["stop"]) for s in found], exact, atol=0.03)
    monkeypatch.setitem(sys.modules, "av", None)
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, json.loads(out)["sentences"][0]["start"]) == (0, exact[0][0] - 0.15)
    assert "times are those of the words alone: reading sound and video needs PyAV" in err


def test_a_text_that_is_not_read_is_said_plainly(folder, monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "sync", "other.txt", "tea.json")
    assert code == 0
    assert out.count("not read") == 3
    assert "no sentence is read, so nothing is timed; check that TEXT and RECORDING belong together" in err
    assert call(monkeypatch, capsys, "sync", "other.txt", "tea.json", "--strict")[0] == 1
    (folder / "silence.json").write_text('{"segments": []}')
    code, out, err = call(monkeypatch, capsys, "sync", "tea.md", "silence.json", "--out", "a.srt")
    assert (code, out) == (1, "")
    assert "no word was heard in the recording, so nothing is timed" in err
    assert not (folder / "a.srt").exists()


@pytest.mark.parametrize("kind", ["srt", "vtt", "json"])
def test_no_empty_subtitles_are_written(folder, monkeypatch, capsys, kind):
    code, _, err = call(monkeypatch, capsys, "sync", "other.txt", "tea.json", "--out", f"a.{kind}")
    assert code == (kind != "json")
    assert (folder / f"a.{kind}").exists() == (kind == "json")
    assert err.startswith("dropdtw: no sentence is read")


def test_words_that_outlast_the_recording_are_not_moved_to_its_pauses(folder):
    pytest.importorskip("av")
    data = json.loads((folder / "tea.json").read_text())
    for segment in data["segments"]:
        for part in (segment, *segment["words"]):
            part["start"] += 10.1
            part["end"] += 10.1
    (folder / "late.json").write_text(json.dumps(data))
    done = run("sync", "tea.md", "tea.wav", "--words", "late.json", "-f", "json")
    assert "the words run to 0:48, but tea.wav lasts 0:40; check that they belong together" in done.stderr
    assert done.stdout == run("sync", "tea.md", "late.json", "-f", "json").stdout
    assert "belong" not in run("sync", "tea.md", "tea.wav", "--words", "tea.json", "-f", "json").stderr


def test_segments_without_words_are_estimated_as_subtitles_are(folder):
    data = json.loads((folder / "tea.json").read_text())
    for segment in data["segments"]:
        segment["text"] = " ".join(word["word"] for word in segment.pop("words"))
    (folder / "plain.json").write_text(json.dumps(data))
    done = run("sync", "tea.md", "plain.json")
    assert "7 of 8 sentences are read" in done.stdout
    assert "the file has no times of single words; they are estimated within each cue" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tea.md", "tea.mp3", "--words", "tea.json"], "FFmpeg cannot read 'tea.mp3' as sound or video"),
        (["tea.md", "tea.mp3"], "what is said in tea.mp3 is not known yet; give --whisper FOLDER"),
        (["tea.mp3", "tea.md"], "tea.mp3 is a recording, not a text; give TEXT first"),
        (["talk.srt", "tea.md"], "talk.srt: it looks like subtitles, not like a text"),
        (["tea.json", "tea.md"], "tea.json: it looks like a transcript, not like a text; give TEXT first"),
        (["tea.md", "empty.json"], "empty.json is empty"),
        (["tea.md", "tea.wav", "--words", "tea.wav"], "whisper tea.wav --word_timestamps True --output_format json"),
        (["tea.md", "other.txt"], "other.txt: line 1 is"),
        (["tea.md", "tea.json", "--words", "tea.json"], "with --words, give audio or video"),
        (
            ["tea.md", "tea.mp3", "--words", "tea.json", "--whisper", "m"],
            "--words and --whisper both say what is heard",
        ),
        (["tea.md", "tea.mp3", "--whisper", "none"], "the model is 'none', which is not a folder"),
        (["tea.md", "gone.mp3", "--words", "tea.json"], "there is no file gone.mp3"),
        (["tea.md", "tea.json", "--out", "a.docx"], "whose extension is not a known format"),
        (["tea.md", "tea.json", "--format", "docx"], "--format is 'docx'; choose one of"),
        (["tea.md", "tea.json", "--out", "tea.json"], "which would overwrite an input (tea.json)"),
        (
            ["tea.md", "tea.mp3", "--words", "tea.json", "--out", "tea.mp3", "-f", "html"],
            "overwrite an input (tea.mp3)",
        ),
        (["tea.md", "tea.json", "--out", "tea.md", "-f", "srt"], "which would overwrite an input (tea.md)"),
        (["-", "-"], "TEXT and RECORDING are both '-'"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder, monkeypatch, capsys, arguments, said):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    code, out, err = call(monkeypatch, capsys, "sync", *arguments)
    assert (code, out) == (2, "") or (code, out) == (1, "")
    assert said in err
    assert err.startswith("dropdtw: ")
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_the_page_highlights_what_is_read_and_plays_from_a_click(folder, browser):
    pytest.importorskip("av")
    run("sync", "tea.md", "tea.wav", "--words", "tea.json", "--out", "tea.html")
    browser.get((folder / "tea.html").as_uri())
    seek = """
        const done = arguments[1];
        player.addEventListener("seeked", () => setTimeout(() => done(
            [...document.querySelectorAll(".now")].map(e => e.textContent)), 50), {once: true});
        player.currentTime = arguments[0];
    """
    data = json.loads((folder / "tea.json").read_text())["segments"]
    word = data[2]["words"][1]
    shown = browser.execute_async_script(seek, (word["start"] + word["end"]) / 2)
    assert shown == ["She sold twenty-one kinds of tea, and one kind of cake.", "sold"]
    (shown,) = browser.execute_async_script(seek, data[3]["start"] + 0.5)
    assert shown.startswith("0:12 not in the text: sorry")
    assert browser.execute_async_script(seek, data[1]["end"] + 0.15) == []  # in a pause
    browser.find_elements("css selector", ".sentence")[4].click()
    reached = browser.execute_script("return player.currentTime")
    assert reached == pytest.approx(data[5]["start"], abs=0.3)
    browser.execute_script("player.pause()")
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_every_mark_of_the_page_is_in_its_legend_and_looks_alike_there(folder, browser):
    lines = (folder / "tea.md").read_text().splitlines()
    assert lines[0] == "# The tea shop"
    (folder / "tea.md").write_text("\n".join(["# An old bicycle", *lines[1:]]))
    run("sync", "tea.md", "tea.wav", "--words", "tea.json", "--out", "tea.html")
    browser.get((folder / "tea.html").as_uri())
    look = """
        const seen = (e) => ["textDecorationLine", "textDecorationStyle", "borderLeftColor", "borderLeftWidth"]
          .map((name) => getComputedStyle(e)[name]).join();
        const looks = (selector) => [...document.querySelectorAll(selector)].map(seen);
        return [looks("p .sentence.unread"), looks(".marks .unread"), looks(".extra"), looks(".marks .bar")];
    """
    unread, unread_key, extra, extra_key = browser.execute_script(look)
    assert len(unread) == 2  # the heading, too
    assert set(unread) == set(unread_key)
    assert unread[0].startswith("line-through")
    assert len(extra) == 3
    assert len(extra_key) == 2  # what is not in the text, and what is said again
    assert set(extra) == set(extra_key)
    assert "2 not read (struck out)" in browser.find_element("css selector", ".marks").text


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_fits_screens_and_can_be_read(folder, browser, width):
    run("sync", "tea.md", "tea.wav", "--words", "tea.json", "--out", "tea.html")
    for scheme in ("light", "dark"):
        page_checks.dress(browser, width, scheme)
        browser.get("about:blank")
        browser.get((folder / "tea.html").as_uri())
        browser.execute_script("show(arguments[0])", 8.0)
        assert len(browser.find_elements("css selector", ".now")) == 2
        assert page_checks.spilled(browser) == []
        assert page_checks.unreadable(browser) == {}
