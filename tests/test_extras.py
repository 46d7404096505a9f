"""The table of extras in docs/cli.md: each command runs with the extras it names, and without the last one says so.

These run where DROPDTW_TEST_PACKAGING=1 is set, in environments that hold nothing but the extras.
"""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

bare = pytest.importorskip("bare", reason="packaging is not installed")

ROOT = Path(__file__).parents[1]
TALK = [str(ROOT / "examples" / "chapters" / name) for name in ("steps.txt", "talk.srt")]
SOUND = [str(ROOT / "examples" / "diff" / name) for name in ("a.ogg", "b.ogg")]
READING = [str(ROOT / "examples" / "sync" / name) for name in ("tea.md", "tea.json")]
COMMANDS = {
    "align": ["align", "Z.npy", "X.npy", "--out", "a.json"],
    "find": ["find", "Z.npy", "X.npy"],
    "retrieve": ["retrieve", "Z.npy", "sequences"],
    "info": ["info", "--json"],
    "align --plot": ["align", "Z.npy", "X.npy", "--plot", "a.png"],
    "find --plot": ["find", "Z.npy", "X.npy", "--plot", "b.svg"],
    "chapters": ["chapters", *TALK],
    "diff of transcripts and features": ["diff", TALK[1], TALK[1]],
    "retime of subtitles": ["retime", TALK[1], "--to", TALK[1], "--out", "same.srt"],
    "diff of recordings": ["diff", *SOUND, "--out", "edits.html"],
    "retime of recordings": ["retime", TALK[1], "--from", SOUND[0], "--to", SOUND[1], "--force", "--out", "moved.srt"],
    "sync": ["sync", *READING],
    "sync --out page.html": ["sync", *READING, "--out", "page.html"],
    "explore": ["explore", "Z.npy", "X.npy", "--no-browser"],
    "explore with steps and a talk": ["explore", *TALK, "--no-browser"],
    "corpus": ["corpus", "localize", "Z.npy", "corpus", "--out", "found"],
    "corpus --engine ray": ["corpus", "localize", "Z.npy", "corpus", "--out", "more", "--engine", "ray"],
}
pytestmark = pytest.mark.skipif(
    os.environ.get("DROPDTW_TEST_PACKAGING") != "1", reason="runs every command: set DROPDTW_TEST_PACKAGING=1"
)


def documented():
    """The extras of each command, as docs/cli.md lists them; where others would do as well, the first."""
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = re.search(r"## What to install\n(.*?)\n## ", page, re.S).group(1)
    found = {}
    for names, extras in re.findall(r"^\| (`.*) \| `(.*?)`.* \|$", section, re.M):
        for name in names.split(", "):
            found[name.replace("`", "")] = tuple(extras.split(","))
    return found


EXTRAS = documented()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files for the commands."""
    place = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3, 6)).astype(np.float32)
    X = np.repeat(Z, 5, axis=0) + 0.1 * rng.normal(size=(15, 6)).astype(np.float32)
    np.save(place / "Z.npy", Z)
    np.save(place / "X.npy", X)
    (place / "sequences").mkdir()
    np.save(place / "sequences" / "a.npy", X)
    import dropdtw.corpus

    (place / "corpus").mkdir()
    dropdtw.corpus.write(str(place / "corpus" / "0.parquet"), [("a", X), ("b", X[:9])])
    return place


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    """Makes each environment once."""
    made = {}

    def environment(extras):
        if extras not in made:
            made[extras] = bare.environment(tmp_path_factory.mktemp("environments") / "site", extras)
        return made[extras]

    return environment


def test_every_command_is_in_the_table():
    from dropdtw.cli import app

    names = {command.name or command.callback.__name__ for command in app.app.registered_commands}
    names |= {group.name for group in app.app.registered_groups}
    assert set(EXTRAS) == set(COMMANDS)
    assert {name.split()[0] for name in EXTRAS} == names


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.split()[0] != "explore" and "ray" not in name])
def test_a_command_needs_no_more_than_its_extras(environments, folder, name):
    done = bare.run(environments(EXTRAS[name]), "-m", "dropdtw", *COMMANDS[name], cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.split()[0] == "explore"])
def test_the_explorer_needs_no_more_than_its_extras(environments, folder, name):
    command = [sys.executable, "-S", "-m", "dropdtw", *COMMANDS[name]]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environments(EXTRAS[name]), cwd=folder, text=True, **pipes) as running:
        try:
            address = running.stdout.readline().strip()
            assert address.startswith("http://"), running.stderr.read()
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert answer.status == 200
        finally:
            running.kill()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_its_extra_names_it(environments, folder, name):
    extras = EXTRAS[name]
    lacking = tuple(sorted({"cli", *extras[:-1]} - {extras[-1]})) if extras != ("cli",) else ()
    if name == "corpus --engine ray":
        lacking = ("cli", "parquet")
    arguments = [a.replace("found", "other").replace("more", "other") for a in COMMANDS[name]]
    done = bare.run(environments(lacking), "-m", "dropdtw", *arguments, cwd=folder)
    assert done.returncode in (1, 2)
    assert done.stdout == ""  # nothing was computed
    assert f"pip install 'dropdtw[{extras[-1]}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("package", ["torch", "sklearn"])
def test_a_package_without_its_extra_names_it(environments, folder, package):
    done = bare.run(environments(()), "-c", f"import dropdtw.{package}", cwd=folder)
    assert done.returncode == 1
    assert f"pip install 'dropdtw[{package}]'" in done.stderr.splitlines()[-1]
