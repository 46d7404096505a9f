"""Found steps as chapters, in every format."""

import csv
import io
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from dropdtw.text import FORMATS, Closest, FoundStep, Sentence, read_subtitles, write_chapters
from dropdtw.text.chapters import Chapter, chapters, youtube_chapters

FOUND = [
    FoundStep(0, 'Mix = "stir" <slowly>', 61.5, 70.25, 0.9, (3, 5)),
    FoundStep(1, "Wait", None, None, None, None),
    FoundStep(2, "Bake; cool #1", 3700.0, 3720.0, 0.456, (9, 10)),
]


def test_json_is_exactly_this():
    names = ("number", "index", "step", "start", "stop", "confidence")
    rows = [
        ("1", 0, 'Mix = "stir" <slowly>', 61.5, 70.25, 0.9),
        ("2", 1, "Wait", None, None, None),
        ("3", 2, "Bake; cool #1", 3700.0, 3720.0, 0.456),
    ]
    data = json.loads(write_chapters(FOUND, "json"))
    assert data == {"segments": [dict(zip(names, row, strict=True)) for row in rows]}


MISSING = FoundStep(1, "Wait", None, None, None, None, closest=Closest(9.25, 12.0, 0.22, (3, 4)))


def test_json_and_page_give_the_closest_place_of_a_missing_step():
    (segment,) = json.loads(write_chapters([MISSING], "json"))["segments"]
    assert segment["closest"] == {"start": 9.25, "stop": 12.0, "confidence": 0.22}
    untimed = replace(MISSING, closest=Closest(None, None, 0.22, (3, 4)))
    (segment,) = json.loads(write_chapters([untimed], "json"))["segments"]
    assert segment["closest"] == {"sentences": [3, 4], "confidence": 0.22}
    assert 'closest: <a href="#t=9.25">0:09</a>, 22%' in write_chapters([MISSING], "html", TALK)
    assert "<q>Sentence 3 &lt;b&gt;</q>" in write_chapters([MISSING], "html", TALK)
    doubtful = replace(MISSING, closest=Closest(None, None, 0.004, (3, 4)))
    assert "closest: sentence 4, &lt;1%" in write_chapters([FOUND[1], doubtful], "html", TALK)


def test_csv_has_a_row_a_step():
    rows = list(csv.DictReader(io.StringIO(write_chapters(FOUND, "csv"))))
    assert [row["step"] for row in rows] == [f.step for f in FOUND]
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    assert (rows[0]["start"], rows[1]["start"], rows[1]["confidence"]) == ("61.5", "", "")


@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_subtitles_read_back(kind):
    cues = read_subtitles(write_chapters(FOUND[1:], kind))
    assert cues == [Sentence(3700.0, 3720.0, "Bake; cool #1")]


def test_vtt_escapes_what_would_be_a_tag():
    assert "&lt;slowly&gt;" in write_chapters(FOUND, "vtt")


TALK = [Sentence(3.0 * k, 3.0 * k + 2, f"Sentence {k} <b>") for k in range(1400)]


def test_ffmetadata_escapes_and_covers_the_whole_talk_in_milliseconds():
    lines = write_chapters(FOUND, "ffmetadata", TALK, intro="Hello; all").splitlines()
    assert lines == [
        ";FFMETADATA1",
        *("[CHAPTER]", "TIMEBASE=1/1000", "START=0", "END=61500", "title=Hello\\; all"),
        *("[CHAPTER]", "TIMEBASE=1/1000", "START=61500", "END=3700000", 'title=Mix \\= "stir" <slowly>'),
        *("[CHAPTER]", "TIMEBASE=1/1000", "START=3700000", "END=4199000", "title=Bake\\; cool \\#1"),
    ]


def test_steps_that_were_done_out_of_order_become_chapters_in_time():
    found = [FoundStep(1, "Pour", 50.0, 60.0, 0.9, (5, 6)), FoundStep(0, "Boil", 20.0, 30.0, 0.9, (2, 3))]
    assert [c.title for c in chapters(found)] == ["Introduction", "Boil", "Pour"]


def placed(*starts, last=60.0):
    """Steps a, b, c … that begin there, and a talk that ends at `last`."""
    found = [FoundStep(k, "abcdef"[k], start, start + 1, 0.9, (k, k + 1)) for k, start in enumerate(starts)]
    return found, [Sentence(0.0, last, "All that is said")]


def test_youtube_wants_ten_seconds_and_three_chapters():
    kept, remarks = youtube_chapters(*placed(20, 24, 40, 56))
    assert kept == [Chapter(0, 20, "Introduction"), Chapter(20, 40, "a / b"), Chapter(40, 60, "c / d")]
    (remark,) = remarks
    assert "merged 2 chapters under 10 s with a neighbor" in remark
    kept, remarks = youtube_chapters(*placed(20, 40))
    assert (len(kept), remarks) == (3, [])
    kept, (remark,) = youtube_chapters(*placed(40))
    assert "at least 3 chapters, and this list has 2" in remark
    assert youtube_chapters([])[0] == []


def test_youtube_has_no_introduction_that_is_too_short():
    kept, _ = youtube_chapters(*placed(9.9, 20, 40), "Hello")
    assert kept == [Chapter(0, 20, "a"), Chapter(20, 40, "b"), Chapter(40, 60, "c")]
    assert [c.title for c in chapters(*placed(9.9, 20, 40), "Hello")] == ["Hello", "a", "b", "c"]
    assert [c.title for c in chapters(*placed(0.9, 20), "Hello")] == ["a", "b"]


@pytest.mark.parametrize("seed", range(20))
def test_what_youtube_gets_obeys_its_rules(seed):
    rng = np.random.default_rng(seed)
    found, talk = placed(*np.sort(rng.uniform(0, 200, 6)).round(2).tolist(), last=205.0)
    lines = write_chapters(found, "youtube", talk).splitlines()
    starts = [60 * int(minutes) + int(rest) for minutes, rest in (line.split()[0].split(":") for line in lines)]
    assert starts[0] == 0
    assert all(b - a >= 10 for a, b in itertools.pairwise([*starts, 205]))
    assert {title for line in lines for title in line.split()[1:]} >= set("abcdef")


def test_youtube_is_told_what_it_refuses():
    found, talk = placed(20, 40)
    assert "0:20 a ‹b›\n" in write_chapters([replace(found[0], step="a <b>"), found[1]], "youtube", talk)
    _, (remark,) = youtube_chapters([replace(f, step="ö" * 2000) for f in found], talk)
    assert "5000 bytes in a description, and this list has 8" in remark


def test_numbers_of_cues_are_those_of_the_steps():
    for kind in ("srt", "vtt"):
        lines = write_chapters(FOUND, kind).splitlines()
        assert [line for line in lines if line.isdigit()] == ["1", "3"]
    again = [FOUND[0], FOUND[2], FOUND[2]]
    assert [line for line in write_chapters(again, "srt").splitlines() if line.isdigit()] == ["1", "2", "3"]
    assert "\n3.2\n" in write_chapters(again, "vtt")


def test_numbers_are_the_same_in_all_formats():
    again = [FOUND[0], FOUND[2], FOUND[1], FOUND[2]]
    numbers = ["1", "3", "2", "3.2"]
    assert [row["number"] for row in csv.DictReader(io.StringIO(write_chapters(again, "csv")))] == numbers
    assert [s["number"] for s in json.loads(write_chapters(again, "json"))["segments"]] == numbers
    page = write_chapters(again, "html")
    assert re.findall(r"<tr[^>]*><td>([\d.]+)</td>", page) == numbers
    assert 'href="#step-3.2"' in page


def test_the_page_covers_the_talk_and_quotes_it():
    page = write_chapters(FOUND, "html", TALK)
    assert "<span>0:00</span><span>34:59</span><span>1:09:59</span>" in page
    assert "<q>Sentence 3 &lt;b&gt;</q>" in page
    assert "<q>Sentence 9 &lt;b&gt;</q>" in page
    assert page.count("</small> Sentence") == len(TALK)
    assert page.count('class="told">') == 3
    assert "<h3>3. Bake; cool #1</h3>" in page


def test_youtube_begins_at_zero():
    assert write_chapters(FOUND, "youtube").splitlines() == [
        "0:00 Introduction",
        '1:01 Mix = "stir" ‹slowly›',
        "1:01:40 Bake; cool #1",
    ]
    at_once = [FoundStep(0, "Go", 0.4, 2.0, 1.0, (0, 1))]
    assert write_chapters(at_once, "youtube") == "0:00 Go\n"


def test_html_escapes_and_shows_every_step():
    page = write_chapters(FOUND, "html")
    assert "Mix = &#34;stir&#34; &lt;slowly&gt;" in page
    assert "<slowly>" not in page
    assert page.count('<a href="#step-') == 2
    assert page.count('class="unsure"') == 2  # the bar and the row of the third step
    assert "not found" in page
    assert "<details>" not in page


def test_the_page_plays_a_file_and_links_to_the_web():
    title, file = "Soup & <bread>", "films/soup%20%26%20bread.mp4"
    page = write_chapters(FOUND, "html", TALK, title=title, recording=file)
    assert page.count("Soup &amp; &lt;bread&gt;") == 2
    assert f'<video id="media" src="{file}" controls' in page
    assert '<a href="#t=61.5">1:01–1:10</a>' in page
    assert '<audio id="media" src="a.mp3" controls' in write_chapters(FOUND, "html", TALK, recording="a.mp3")
    site = write_chapters(FOUND, "html", TALK, recording="https://x.org/watch?v=1&w=2#t=5")
    assert '<a href="https://x.org/watch?v=1&amp;w=2#t=61" rel="noreferrer">1:01–1:10</a>' in site
    assert 'id="media"' not in site
    plain = write_chapters(FOUND, "html", TALK, recording="javascript:alert(1)")
    assert 'href="javascript' not in plain


def test_the_page_has_what_its_button_copies():
    youtube = write_chapters(FOUND, "youtube", TALK).replace('"', "&#34;")
    assert f'<pre id="youtube" hidden>{youtube}</pre>' in write_chapters(FOUND, "html", TALK)
    few = write_chapters(FOUND[:1], "html", TALK)
    assert "YouTube requires at least 3 chapters, and this list has 2." in few
    assert 'id="copy"' not in write_chapters([MISSING], "html", TALK)


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_found_is_written_all_the_same(kind):
    assert isinstance(write_chapters([FOUND[1]], kind), str)


def test_unknown_format():
    with pytest.raises(ValueError, match="'docx'; choose one of json, csv, srt"):
        write_chapters(FOUND, "docx")
