"""Whatever arrives, a mistake is answered in one line that says what it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli_cases import call

DEEP = "[" * 100_000
HUGE = f"1{'0' * 400}"
SRT = "1\n00:00:01,000 --> 00:00:02,000\nBoil the water\n"


def talk(**cue):
    return json.dumps([{"start": 0, "stop": 1, "text": "Boil the water"}, {"start": 1, "stop": 2, "text": "b"} | cue])


FILES = {
    "deep.json": DEEP,
    "deep.jsonl": f"{DEEP}\n",
    "keys.json": '{"a":' * 100_000,
    "huge.json": f"[[{HUGE}, 1], [2, 3]]",
    "huger.json": f"[[1{'0' * 6000}, 1], [2, 3]]",
    "huge.jsonl": f"[{HUGE}, 1]\n[2, 3]\n",
    "huge.csv": f"{HUGE},1\n2,3\n",
    "z.csv": "1.5,2\n3,4\n",
    "steps.txt": "Boil the water\nPour it\n",
    "talk.srt": SRT,
    "bytes.npz": "random bytes",
    "nan.json": talk(start=float("nan")),
    "inf.json": talk(stop=float("inf")),
    "when.json": talk(start=10**400),
    "span.json": talk(stop=None, duration=10**400),
    "mapped.json": "[[1, 2], {}]",
}
WRONG = {
    "deep list": (["align", "z.csv", "deep.json"], "deep.json cannot be read as .json: it is nested too deeply"),
    "deep line": (["align", "z.csv", "deep.jsonl"], "deep.jsonl cannot be read as .jsonl: line 1 is not JSON (it is"),
    "deep object": (["align", "z.csv", "keys.json"], "keys.json cannot be read as .json: it is nested too deeply"),
    "deep costs": (["explore", "deep.json"], "deep.json cannot be read as .json: it is nested too deeply"),
    "deep talk": (["chapters", "steps.txt", "deep.json"], "deep.json: these subtitles begin like JSON, but are not"),
    "huge": (["align", "z.csv", "huge.json"], "huge.json has NaN or infinity in element 0"),
    "huger": (["align", "z.csv", "huger.json"], "huger.json has NaN or infinity in element 0"),
    "huge line": (["align", "z.csv", "huge.jsonl"], "huge.jsonl has NaN or infinity in element 0"),
    "huge cell": (["align", "z.csv", "huge.csv"], "huge.csv has NaN or infinity in element 0"),
    "NaN": (["chapters", "steps.txt", "nan.json"], "nan.json: entry 1 of the timed JSON"),
    "infinity": (["chapters", "steps.txt", "inf.json"], "inf.json: entry 1 of the timed JSON"),
    "huge start": (["chapters", "steps.txt", "when.json"], "when.json: entry 1 of the timed JSON"),
    "huge duration": (["chapters", "steps.txt", "span.json"], "span.json: entry 1 of the timed JSON"),
    "folder of steps": (["chapters", "folder", "talk.srt"], "folder is a folder; give a file"),
    "folder of talks": (["chapters", "steps.txt", "folder"], "folder is a folder; give a file"),
    "no archive": (["align", "z.csv", "bytes.npz"], "it is damaged (File is not a zip file)"),
    "out is a folder": (["align", "z.csv", "z.csv", "--drop-x", "1", "--out", "f.json"], "f.json is a folder"),
    "corpus out": (["corpus", "localize", "z.csv", "c.parquet", "--out", "z.csv"], "z.csv is a file; give a folder"),
    "no rows": (["align", "z.csv", "mapped.json"], "row 2 has 0 numbers, the first one 2"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("f.json").mkdir()
    for name, content in FILES.items():
        Path(name).write_text(content)
    return tmp_path


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_line(folder, monkeypatch, capsys, case):
    arguments, reason = WRONG[case]
    if arguments[0] == "explore":
        pytest.importorskip("starlette", reason="starlette is not installed: pip install 'dropdtw[explore]'")
    if arguments[0] == "corpus":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'dropdtw[parquet]'")
        import dropdtw.corpus

        dropdtw.corpus.write("c.parquet", [("a", np.eye(2))])
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("dropdtw: ")
    assert reason in err


@pytest.mark.skipif(os.name != "posix", reason="descriptors have no names here")
def test_a_talk_may_come_through_a_pipe(folder, monkeypatch, capsys):
    """As in `dropdtw chapters steps.txt <(…)`."""
    pytest.importorskip("wordllama", reason="wordllama is not installed")
    near, far = os.pipe()
    os.write(far, SRT.encode())
    os.close(far)
    code, out, err = call(monkeypatch, capsys, "chapters", "steps.txt", f"/dev/fd/{near}")
    os.close(near)
    assert (code, err) == (0, "")
    assert "among 1 sentences" in out


@pytest.mark.skipif(os.name != "posix", reason="descriptors have no names here")
def test_a_sequence_may_come_through_a_pipe(folder, monkeypatch, capsys):
    near, far = os.pipe()
    os.write(far, b"1.5,2\n3,4\n")
    os.close(far)
    code, out, _ = call(monkeypatch, capsys, "align", "z.csv", f"/dev/fd/{near}", "--drop-x", "1")
    os.close(near)
    assert code == 0
    assert "2 z with 2 x, cost 0," in out


# --- Streams that are closed or full ----------------------------------------------------------------------------


def shell(command):
    line = command.replace("dropdtw", f"'{sys.executable}' -m dropdtw", 1)
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)


needs_a_shell = pytest.mark.skipif(sys.platform == "win32", reason="there is no bash here")


@needs_a_shell
@pytest.mark.parametrize("command", ["dropdtw info", "dropdtw align z.csv z.csv --drop-x 1 --out -"])
def test_a_closed_standard_output_is_one_line(folder, command):
    done = shell(f"{command} >&-")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "dropdtw: standard output is closed" in done.stderr


@needs_a_shell
def test_a_closed_standard_error_silences_notes_only(folder):
    done = shell("dropdtw align z.csv z.csv --out a.json 2>&-")
    assert done.returncode == 0
    assert "dropdtw:" not in done.stdout  # notes do not land in the answer
    assert Path("a.json").exists()


@needs_a_shell
def test_a_closed_standard_input_is_one_line(folder):
    for command in ("dropdtw align z.csv - <&-", "dropdtw chapters steps.txt - <&-"):
        done = shell(command)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert "standard input is closed" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_full_disk_is_one_line(folder):
    done = shell("dropdtw info >/dev/full")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "No space left on device" in done.stderr
