"""Speech alignments as files: what other programs read."""

import json
import re

import numpy as np
import pytest

from dropdtw import speech
from dropdtw.text import read_subtitles

WORDS = ["one", 'a "big"\nword', "<gone>", "end & out"]
TOKENS = ["-", "a", "b", "c", "d"]


@pytest.fixture
def found():
    path = [0, 1, 1, 0, 2, 3, 3, 0, 4, 4, 0, 0]
    p = np.full((len(path), 6), 0.01)
    p[range(len(path)), path] = 0.95
    return speech.align(np.log(p), [[1], [2, 3], [5, 5], [4]], skip=3.0)


def test_subtitles_can_be_read_again(found):
    for kind in ("srt", "vtt"):
        text = speech.write_alignment(found, WORDS, kind, fps=10)
        assert [(c.start, c.stop, c.text) for c in read_subtitles(text)] == [
            (0.1, 0.3, "one"),
            (0.4, 0.7, 'a "big" word'),
            (0.8, 1.0, "end & out"),
        ]
    assert "&amp; out" in text


def test_a_subtitle_can_have_several_words(found):
    text = speech.write_alignment(found, WORDS, "srt", fps=10, cues=[2, 1, 1])
    assert text == (
        '1\n00:00:00,100 --> 00:00:00,700\none a "big" word\n\n2\n00:00:00,800 --> 00:00:01,000\nend & out\n\n'
    )


def test_a_textgrid_covers_the_recording_without_gaps(found):
    text = speech.write_alignment(found, WORDS, "textgrid", fps=10, tokens=[*TOKENS, "e"])
    tiers = text.split("item [")[2:]
    for tier, wanted in zip(
        tiers,
        (["", "one", "", 'a ""big"" word', "", "end & out", ""], ["", "a", "", "b", "c", "", "d", ""]),
        strict=True,
    ):
        spans = re.findall(r'intervals \[\d+\]:\s+xmin = (\S+)\s+xmax = (\S+)\s+text = "(.*)"', tier)
        assert [text for *_, text in spans] == wanted
        assert int(re.search(r"intervals: size = (\d+)", tier).group(1)) == len(wanted)
        ends = [0.0, *(float(stop) for _, stop, _ in spans)]
        assert [float(start) for start, *_ in spans] == ends[:-1]
        assert ends[-1] == 1.2
    assert text.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 1.2\n')


def test_ctm_has_six_fields(found):
    lines = speech.write_alignment(found, WORDS, "ctm", fps=10, name="my talk").splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["my_talk", "1", "0.100", "0.200", "one"],
        ["my_talk", "1", "0.400", "0.300", 'a_"big"_word'],
        ["my_talk", "1", "0.800", "0.200", "end_&_out"],
    ]
    assert all(float(line.split()[5]) == pytest.approx(w.probability, abs=1e-3)
               for line, w in zip(lines, found.words, strict=True))  # fmt: skip


def test_json_has_everything():
    path = [1, 0, 3, 3, 3, 0, 2]
    p = np.full((len(path), 5), 0.01)
    p[range(len(path)), path] = 0.96
    found = speech.align(np.log(p), [[1], [4], [2]], skip=2.0, garbage=1.0, within_words=False)
    data = json.loads(speech.write_alignment(found, ["x", "y", "z"], "json", fps=2, tokens=TOKENS))
    assert [(w["index"], w["text"], w["start"], w["stop"]) for w in data["words"]] == [
        (0, "x", 0.0, 0.5),
        (2, "z", 3.0, 3.5),
    ]
    assert data["words"][1]["tokens"][0]["token"] == "b"
    assert data["words"][0]["probability"] == pytest.approx(found.words[0].probability, abs=1e-6)
    assert data["extra"] == [{"start": 1.0, "stop": 2.5}]
    assert data["skipped"] == [{"index": 1, "text": "y", "spoken": pytest.approx(found.spoken[1], abs=1e-6)}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "textgird"}, "the format is 'textgird'; did you mean 'textgrid'"),
        ({"words": WORDS[:2]}, "there are 2 words, but the alignment has 4"),
        ({"fps": 0}, "fps is 0; give the number of frames per second"),
        ({"cues": [1, 1]}, "cues has the sum 2, but there are 4 words"),
    ],
)
def test_errors_say_what_to_do(found, change, message):
    with pytest.raises(ValueError, match=message):
        speech.write_alignment(**({"found": found, "words": WORDS, "kind": "srt", "fps": 10} | change))
