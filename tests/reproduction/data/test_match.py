"""Match files 1.0.0: a score, a performance, and the pairs of their notes."""

import numpy as np
import pytest

from reproduction.data import match

HEAD = [
    "info(matchFileVersion,1.0.0).",
    "info(piece,Study).",
    "info(midiClockUnits,480).",
    "info(midiClockRate,500000).",
]
NOTES = [
    "snote(n1,[C,n],4,1:1,0,1/4,0.0000,1.0000,[v1,staff1])-note(n0,60,480,900,70,0,0).",
    "snote(n2,[B,b],3,1:1,0,1/4,0.0000,1.0000,[v5,staff2])-deletion.",
    "insertion-note(n1,61,500,520,3,0,0).",
    "snote(n3,[F,##],4,1:2,0,0,1.0000,1.0000,[v1,staff1,grace])-note(n2,67,960,1000,64,0,0).",
    "ornament(n4,[trill])-note(n9,62,990,1000,40,0,0).",
    "snote(n4,[C,#],5,1:2,0,1/4,1.0000,2.0000,[v1,staff1,trill-mark])-note(n3,73,1000,1400,64,0,0).",
    "sustain(600,20).",
]


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_file_is_read(tmp_path):
    p = match.read(write(tmp_path / "Study_p01.match", [*HEAD, *NOTES]))
    assert (p.name, p.piece) == ("Study_p01", "Study")
    assert p.pitch.tolist() == [60, 58, 67, 73]
    assert p.onset.tolist() == [0, 0, 1, 1]
    assert p.grace.tolist() == [False, False, True, False]
    assert p.trill.tolist() == [False, False, False, True]
    np.testing.assert_allclose(p.time, np.array([480, 500, 960, 990, 1000]) / 960)
    assert p.key.tolist() == [60, 61, 67, 62, 73]
    assert p.velocity.tolist() == [70, 3, 64, 40, 64]
    assert p.pairs.tolist() == [[0, 0], [2, 2], [3, 4]]


def test_a_folder_is_read_by_path(tmp_path):
    (tmp_path / "match").mkdir()
    for name in ("b", "a"):
        write(tmp_path / "match" / f"{name}.match", [HEAD[0], *NOTES])
    assert [(p.name, p.piece) for p in match.load(tmp_path)] == [("a", "a"), ("b", "b")]
    with pytest.raises(FileNotFoundError, match=r"has no \.match files; give the folder of a corpus"):
        match.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["info(matchFileVersion,5.0).", *NOTES], r"version 5\.0; convert it to 1\.0\.0"),
        (NOTES, "version unknown"),
        ([*HEAD, "snote(n1,[H,n],4,1:1,0,1/4,0,1,[v1])-deletion."], "line 5: not a score note"),
        ([*HEAD, "snote(n1,[C,?],4,1:1,0,1/4,0,1,[v1])-deletion."], "line 5: not a score note"),
        ([*HEAD, "insertion-note(n1,loud)."], "line 5: not a played note"),
        ([*HEAD, NOTES[1]], "has 1 score notes and 0 played notes; it needs both"),
    ],
)
def test_other_files_are_refused(lines, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        match.read(write(tmp_path / "a.match", lines))
