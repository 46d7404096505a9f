"""Performances of piano scores whose notes are matched by people, in match files 1.0.0 (Foscarin et al. 2022).

A line of the file is a note of the score with the note that was played for it, or a note of the score that was left out
(deletion), or a played note that is not in the score (insertion). Other lines, such as those of pedals, are skipped.
Repeats are written out: the score has its notes in the order of the performance.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dropdtw.problem.inputs import Array

VERSION: Final = "1.0.0"
STEPS: Final = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
ACCIDENTALS: Final = {"n": 0, "": 0, "#": 1, "x": 2, "##": 2, "b": -1, "bb": -2}
TRILL: Final = "trill-mark"

INFO: Final = re.compile(r"info\((\w+),(.*)\)\.\s*$")
SCORE: Final = re.compile(
    r"snote\([^,]+,\[([A-G]),([^\]]*)\],(-?\d+),[^,]+,[^,]+,[^,]+,(-?[\d.]+),(-?[\d.]+),\[([^\]]*)\]\)-(note\(.*|deletion\.)"
)
PLAYED: Final = re.compile(r"(?:.*-)?note\([^,]+,(\d+),(-?\d+),-?\d+,(\d+)[,)]")


@dataclass(frozen=True)
class Performance:
    """A score, a performance of it, and the true pairs of their notes.

    Of each note of the score, onset : in beats.   grace : whether it has no duration.   pitch : as in MIDI.
    trill : whether it has a trill sign.   Of each played note, time : of its onset, in seconds.   key : its pitch.
    velocity : how hard it was struck, 1 to 127.   pairs : (matches, 2), as (note of the score, played note).
    """

    name: str
    piece: str
    onset: Array
    grace: Array
    pitch: Array
    trill: Array
    time: Array
    key: Array
    velocity: Array
    pairs: Array


def load(place: str | os.PathLike[str]) -> list[Performance]:
    """All match files in a folder and its subfolders, by path."""
    root = Path(place)
    paths = sorted(root.rglob("*.match"))
    if not paths:
        raise FileNotFoundError(f"{root} has no .match files; give the folder of a corpus, such as Vienna 4x22")
    return [read(path) for path in paths]


def read(path: str | os.PathLike[str]) -> Performance:
    """Read a match file."""
    about = {"piece": Path(path).stem, "midiClockUnits": "480", "midiClockRate": "500000"}
    score: list[tuple[float, bool, int, bool]] = []
    played: list[tuple[int, int, int]] = []
    pairs: list[tuple[int, int]] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if info := INFO.match(line):
            about[info[1]] = info[2]
        elif line.startswith("snote("):
            note = SCORE.match(line)
            if note is None or note[2] not in ACCIDENTALS:
                raise ValueError(f"{path}, line {number}: not a score note of match file {VERSION}: {line[:80]!r}")
            score.append(_written(note))
            if note[7] != "deletion.":
                pairs.append((len(score) - 1, len(played)))
                played.append(_played(path, number, note[7]))
        elif "-note(" in line:
            played.append(_played(path, number, line))
    if about.get("matchFileVersion") != VERSION:
        raise ValueError(
            f"{path} is a match file of version {about.get('matchFileVersion', 'unknown')}; convert it to {VERSION}, "
            "for example with partitura"
        )
    if not score or not played:
        raise ValueError(f"{path} has {len(score)} score notes and {len(played)} played notes; it needs both")
    onset, grace, pitch, trill = zip(*score, strict=True)
    ticks, key, velocity = np.array(played).T
    second = float(about["midiClockRate"]) / 1e6 / float(about["midiClockUnits"])
    return Performance(
        Path(path).stem,
        about["piece"],
        np.array(onset),
        np.array(grace),
        np.array(pitch),
        np.array(trill),
        ticks * second,
        key,
        velocity,
        np.array(pairs, np.int64).reshape(-1, 2),
    )


def _written(note: re.Match[str]) -> tuple[float, bool, int, bool]:
    """Onset, grace, pitch and trill of a score note."""
    begin, end = float(note[4]), float(note[5])
    signs = note[6].split(",")
    pitch = 12 * (int(note[3]) + 1) + STEPS[note[1]] + ACCIDENTALS[note[2]]
    return begin, end <= begin or "grace" in signs, pitch, TRILL in signs


def _played(path: str | os.PathLike[str], number: int, text: str) -> tuple[int, int, int]:
    """Onset in ticks, pitch and velocity of a played note."""
    found = PLAYED.match(text)
    if found is None:
        raise ValueError(f"{path}, line {number}: not a played note of match file {VERSION}: {text[:80]!r}")
    return int(found[2]), int(found[1]), int(found[3])
