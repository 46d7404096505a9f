"""Edit lists in files: for programs, editors and eyes."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from fractions import Fraction

import pytest

from dropdtw.media.edits import Edits, Segment
from dropdtw.media.output import FORMATS, Setting, table, write_edits
from dropdtw.media.timeline import Recording

EDITS = Edits.of_same(
    [((0, 10), (5, 15), 0.99), ((20, 60), (45, 85), 0.75)], (60, 90), notes=["the end is <quiet>"]
)  # only B 0–5, only A 10–20, only B 15–45, only B 85–90


def test_json_has_the_rows_in_order():
    segments = json.loads(write_edits(EDITS, "json"))["segments"]
    assert [s["kind"] for s in segments] == ["only_b", "same", "only_a", "only_b", "same", "only_b"]
    assert segments[1] == {"kind": "same", "a": [0, 10], "b": [5, 15], "confidence": 0.99}
    assert segments[2] == {"kind": "only_a", "a": [10, 20], "b": None, "confidence": 0.75}


def test_csv_has_a_row_each_with_empty_cells_for_what_is_not_there():
    rows = list(csv.DictReader(io.StringIO(write_edits(EDITS, "csv"))))
    assert len(rows) == 6
    assert (rows[2]["kind"], rows[2]["a_start"], rows[2]["b_start"]) == ("only_a", "10", "")


def test_audacity_labels_lie_on_the_times_of_b():
    lines = [line.split("\t") for line in write_edits(EDITS, "audacity").splitlines()]
    assert [(float(start), float(stop)) for start, stop, _ in lines] == [
        (0, 5), (5, 15), (15, 15), (15, 45), (45, 85), (85, 90),
    ]  # fmt: skip
    assert lines[2][2] == "only A: 0:10.000–0:20.000"


@pytest.mark.parametrize("video", [False, True])
def test_the_filter_keeps_of_b_what_both_have(video):
    text = write_edits(EDITS, "ffmpeg", Setting((Recording("A"), Recording("B", rate=Fraction(25) if video else None))))
    cut = "[0:a]atrim=start=5.000:end=15.000,asetpts=PTS-STARTPTS[a0];"
    assert cut in text
    assert "[0:a]atrim=start=45.000:end=85.000,asetpts=PTS-STARTPTS[a1];" in text
    assert text.count("atrim") == 2
    assert text.endswith("[v0][a0][v1][a1]concat=n=2:v=1:a=1[v][a]\n" if video else "[a0][a1]concat=n=2:v=0:a=1[a]\n")


def test_the_filter_runs_to_the_end_where_b_has_no_extras_there():
    text = write_edits(Edits.of_same([((0, 10), (5, 15), 1.0)], (12, 15.0004)), "ffmpeg")
    assert text.splitlines() == ["[0:a]atrim=start=5.000,asetpts=PTS-STARTPTS[a0];", "[a0]concat=n=1:v=0:a=1[a]"]


def test_where_nothing_would_be_left_there_is_no_filter():
    nothing = Edits.of_same([], (60, 50))
    with pytest.raises(
        ValueError, match="B shares nothing with A, so everything would be cut out; nothing was written"
    ):
        write_edits(nothing, "ffmpeg")


def test_an_unknown_format_is_refused():
    with pytest.raises(
        ValueError, match="the format is 'xls'; choose one of json, csv, audacity, ffmpeg, edl, otio, fcpxml, html"
    ):
        write_edits(EDITS, "xls")


def test_the_page_shows_each_row_and_escapes_what_others_wrote():
    text = write_edits(EDITS, "html", Setting((Recording("<b>a</b>.mp3"), Recording("b\u202e.mp3"))))
    svg = ET.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    kinds = [part.get("class") for part in svg if part.tag in ("rect", "polygon")]
    assert (kinds.count("ribbon"), kinds.count("same"), kinds.count("only")) == (2, 4, 4)
    assert "&lt;b&gt;a&lt;/b&gt;.mp3" in text
    assert "\u202e" not in text
    assert "the end is &lt;quiet&gt;" in text
    assert "<script" not in text
    assert "0:50 in common; only in A 0:10, only in B 0:40." in text


def test_each_color_of_the_strips_is_explained_if_it_occurs():
    def key(edits):
        text = write_edits(edits, "html")
        return re.findall(r'<span><i class="(\w+)"></i>(.*?)</span>', text[: text.index("<table>")])

    both, one = ("same", "in both, joined by ribbons"), ("only", "only in one of them")
    assert key(EDITS) == [both, one]
    assert key(Edits.of_same([((0, 60), (0, 60), 1.0)], (60, 60))) == [both]
    assert key(Edits.of_same([], (60, 50))) == [one]
    short = Edits.of_same([((0, 10), (0, 10), 1.0), ((10, 60), (10.5, 60.5), 1.0)], (60, 60.5))
    assert key(short) == [both, ("rest", "different, but too short to list")]
    invisible = Edits.of_same([((0, 10), (0, 10), 1.0), ((10, 60), (10.002, 60.002), 1.0)], (60, 60.002))
    assert key(invisible) == [both]
    assert key(Edits.uncompared((60, 50), ["B is silent"])) == [("rest", "not compared")]


@pytest.mark.parametrize("speed", [None, 1.0042])
def test_the_page_has_a_column_of_speeds_where_they_were_compared(speed):
    text = write_edits(Edits((Segment("same", (0, 10), (0, 10), 0.9, speed),), (10, 10)), "html")
    assert ("<th>speed</th>" in text) == (speed is not None)
    assert text.count("<td>") == (5 if speed is None else 6)
    assert ("<td>1.0042</td>" in text) == (speed is not None)


def test_the_strips_and_ribbons_lie_where_the_passages_are():
    text = write_edits(Edits.of_same([((10, 60), (0, 50), 1.0)], (60, 100)), "html")
    svg = ET.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    x = lambda t: 34 + 940 * t / 100  # noqa: E731
    boxes = [
        (part.get("class"), *(float(part.get(name)) for name in ("x", "y", "width")))
        for part in svg.iter("rect")
        if part.get("class") != "rest"
    ]
    assert sorted(boxes) == [
        ("only", x(0), 8, x(10) - x(0)),
        ("only", x(50), 146, pytest.approx(x(100) - x(50))),
        ("same", x(0), 146, x(50) - x(0)),
        ("same", x(10), 8, pytest.approx(x(60) - x(10))),
    ]
    (ribbon,) = svg.iter("polygon")
    corners = [tuple(map(float, corner.split(","))) for corner in ribbon.get("points").split()]
    assert corners == [(x(10), 42), (x(60), 42), (x(50), 146), (x(0), 146)]


def test_the_page_of_unrelated_recordings_says_so_once_and_keeps_other_notes():
    notes = ["A is damaged", "these have nothing in common"]
    text = write_edits(Edits.of_same([], (60, 50), notes=notes), "html")
    assert "<h1>These have nothing in common.</h1>" in text
    assert text.count("nothing in common") == 1
    assert "A is damaged" in text


def test_what_was_not_compared_is_nowhere_called_different():
    nothing = Edits.uncompared((60, 50), ["B is silent, so the recordings were not compared"])
    text = write_edits(nothing, "html")
    assert "<h1>Nothing was compared.</h1>" in text
    assert "B is silent" in text
    assert write_edits(nothing, "csv").count("\n") == 1
    with pytest.raises(ValueError, match="nothing was compared, so there is nothing to cut"):
        write_edits(nothing, "ffmpeg")


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_takes_long_recordings_and_speeds(kind):
    edits = Edits((Segment("same", (0.0, 36000.0), (0.0, 36010.0), 0.9, 0.9997),), (36000.0, 36010.0))
    assert write_edits(edits, kind)
    columns, rows = table(edits)
    assert columns[-1] == ">speed"
    assert rows[0][-1] == "0.9997"


def test_the_rows_of_texts_quote_them_and_the_page_names_what_it_counts():
    text = write_edits(EDITS, "html", Setting(timed=False, unit="words", quotes=["one", "two", "<i>three", *"456"]))
    assert "<th>words in A</th><th>words in B</th><th>words</th>" in text
    assert text.count("<th>begins with</th>") == 1
    assert "<td>&lt;i&gt;three</td>" in text
    columns, rows = table(EDITS, quotes=list("123456"))
    assert [columns[-1], *(row[-1] for row in rows)] == ["~begins with", *"123456"]
    assert "begins with" not in write_edits(EDITS, "html")


def test_places_without_times_are_plain_numbers():
    _, rows = table(Edits.of_same([((0, 20), (0, 20), 1.0)], (20, 25)), timed=False)
    assert rows[1] == ["only B", "", "", "20", "25", "5", "100%"]
    assert "0:" not in "".join(cell for row in rows for cell in row)
