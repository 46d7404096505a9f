"""Commands on random and broken files: the exit status is 0, 1 or 2, and an error is one line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from dropdtw import cli

SAID = ("now we chop the onions", "(music)", "((((", "the water boils.", "<i>hello</i>", "okay so")


def case(rng: np.random.Generator) -> str:
    """One command on files, some of them broken."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        command = str(rng.choice(["align", "retrieve", "chapters"]))
        d = int(rng.integers(1, 4))
        if command == "chapters":
            words = [steps(rng, here), talk(rng, here)]
        elif command == "retrieve":
            (here / "many").mkdir()
            for k in range(3):
                data(rng, here / "many", f"s{k}", d)
            words = [data(rng, here, "q", d), str(here / "many")]
        else:
            words = [data(rng, here, "z", d), data(rng, here, "x", d)]
        words += options(rng, command, here)
        code, said = call([command, *words])
    assert code in (0, 1, 2), (code, words, said)
    assert "Traceback" not in said, said
    lines = [line for line in said.splitlines() if line.startswith("dropdtw:")]
    assert code != 2 or lines, (code, words, said)
    return f"{command} {code}"


def call(words: list[str]) -> tuple[int, str]:
    """Run the program with these arguments; returns its exit status and all its output."""
    out, err, before, argv = io.StringIO(), io.StringIO(), os.getcwd(), sys.argv
    sys.argv = ["dropdtw", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    else:
        code = 0
    finally:
        sys.argv = argv
        os.chdir(before)
    return code, out.getvalue() + err.getvalue()


def options(rng: np.random.Generator, command: str, here: Path) -> list[str]:
    """A few options, sensible or not."""
    drops = ["0.3", "1", "percentile:30", "suggest", "none"] * 4 + ["nan", "inf", "-1", "1e400", "lots", "percentile:x"]
    some = [["--drop-x", str(rng.choice(drops))]]
    if command == "chapters":
        some += [["--format", str(rng.choice(["json", "csv", "srt", "vtt", "youtube", "html", "pdf"]))]]
        some += [["--skip", str(rng.choice(["0.1", "0", "-1", "nan", "x"]))]]
    else:
        some += [["--drop-z", str(rng.choice(drops))], ["--window", str(rng.choice(["3", "0.1", "-2", "x"]))]]
        some += [["--match", str(rng.choice(["cosine", "euclidean", "softmax:0.1", "auto", "auto", "magic"]))]]
        some += [
            ["--method", str(rng.choice(["drop_dtw", "drop_dtw", "needleman_wunsch", "dtw", "lcss", "greedy", "zzz"]))]
        ]
    some += [["--out", str(here / str(rng.choice(["a.json", "a.csv", "a.npz", "no/where/a.json", "a.xyz"])))]]
    chosen = rng.choice(len(some), rng.integers(0, len(some)), replace=False)
    return [word for k in chosen for word in some[k]]


def data(rng: np.random.Generator, here: Path, name: str, d: int) -> str:
    """A sequence of d features (rarely d + 1) in a file of some format, sometimes broken."""
    values = rng.normal(size=(int(rng.integers(1, 9)), d if rng.random() < 0.95 else d + 1))
    path = here / f"{name}.{rng.choice(['npy', 'csv', 'tsv', 'jsonl', 'npz'])}"
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".npz":
        np.savez(path, x=values)
    elif path.suffix in (".csv", ".tsv"):
        header = str(rng.choice(["", "", "", ",".join("abcd"[:d]) + "\n", ",".join("0123"[:d]) + "\n", "1_000\n"]))
        path.write_text(header + "\n".join(",".join(f"{v:.6g}" for v in row) for row in values) + "\n")
    else:
        path.write_text("\n".join(json.dumps(row.tolist()) for row in values) + "\n")
    spoil(rng, path)
    return str(path) if rng.random() > 0.03 else str(here / "nothing.npy")


def steps(rng: np.random.Generator, here: Path) -> str:
    """A list of steps as people write them."""
    path = here / "steps.txt"
    lines = ["1. Chop the onions", "- Boil the water", "", "Serve", "=cmd()", "\x1b[31mred"]
    path.write_text("\n".join(str(rng.choice(lines)) for _ in range(int(rng.integers(0, 6)))) + "\n")
    spoil(rng, path)
    return str(path)


def talk(rng: np.random.Generator, here: Path) -> str:
    """Subtitles, some with impossible times."""
    path = here / "talk.srt"
    cues, t = [], 0.0
    for k in range(int(rng.integers(0, 12))):
        t += float(rng.uniform(-1 if rng.random() < 0.1 else 0, 9))
        begin, end = clock(t), clock(t + float(rng.uniform(-1 if rng.random() < 0.05 else 0, 5)))
        text = str(
            rng.choice(["now we chop the onions", "(music)", "((((", "the water boils.", "<i>hello</i>", "okay so"])
        )
        cues.append(f"{k + 1}\n{begin} --> {end}\n{text}\n")
    path.write_text("\n".join(cues))
    spoil(rng, path)
    return str(path)


def clock(seconds: float) -> str:
    """A time in the format of subtitles."""
    whole = max(0, int(seconds))
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{int(abs(seconds) * 1000) % 1000:03}"


def spoil(rng: np.random.Generator, path: Path) -> None:
    """Sometimes truncate a file, change bytes in it, or replace its content."""
    kind = rng.random()
    content = path.read_bytes()
    if kind < 0.1:
        path.write_bytes(content[: rng.integers(len(content) + 1)])
    elif kind < 0.25 and content:
        spoiled = bytearray(content)
        for _ in range(int(rng.integers(1, 5))):
            spoiled[rng.integers(len(spoiled))] = rng.integers(256)
        path.write_bytes(bytes(spoiled))
    elif kind < 0.3:
        path.write_bytes(rng.bytes(int(rng.integers(0, 200))))
    elif kind < 0.33:
        path.write_text("[" * 5000 if rng.random() < 0.5 else "1" + "0" * 400)
