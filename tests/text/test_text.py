"""Steps, chapters, and match costs."""

import csv
import io
import json

import numpy as np
import pytest

from dropdtw.text import FORMATS, FoundStep, Sentence, localize, read_steps, read_subtitles, write_chapters
from dropdtw.text.chapters import Chapter, chapters, youtube_chapters
from dropdtw.text.localize import meaning_costs
from dropdtw.text.words import echo_costs

# --- Steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        *("Pour it", "1. Pour it", "12) Pour it", "(3) Pour it", "3: Pour it", "- 2. Pour it", "- [ ] Pour it"),
        *("- Pour it", "* Pour it", "• Pour it", "  – Pour it  ", "Step 4: Pour it", "STEP 4 Pour it"),
    ],
)
def test_marks_are_no_part_of_a_step(line):
    assert read_steps(f"\ufeff{line}\n\n   \n---\n") == ["Pour it"]


@pytest.mark.parametrize("line", ["2 eggs", "350 degrees: bake", "5-minute rest", "Stepwise cooling", "-5 °C is cold"])
def test_numbers_that_belong_to_a_step_stay(line):
    assert read_steps(line) == [line]


def test_no_steps():
    with pytest.raises(ValueError, match="there are no steps"):
        read_steps("# Only a title\n\n")


# --- Chapters ---------------------------------------------------------------------------------------------------

FOUND = [
    FoundStep(0, 'Mix = "stir" <slowly>', 61.5, 70.25, 0.9, (3, 5)),
    FoundStep(1, "Wait", None, None, None, None),
    FoundStep(2, "Bake; cool #1", 3700.0, 3720.0, 0.456, (9, 10)),
]


def test_json_is_exactly_this():
    data = json.loads(write_chapters(FOUND, "json"))
    assert data == {
        "segments": [
            {"index": 0, "step": 'Mix = "stir" <slowly>', "start": 61.5, "stop": 70.25, "confidence": 0.9},
            {"index": 1, "step": "Wait", "start": None, "stop": None, "confidence": None},
            {"index": 2, "step": "Bake; cool #1", "start": 3700.0, "stop": 3720.0, "confidence": 0.456},
        ]
    }


def test_csv_has_a_row_a_step():
    rows = list(csv.DictReader(io.StringIO(write_chapters(FOUND, "csv"))))
    assert [row["step"] for row in rows] == [f.step for f in FOUND]
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


def test_youtube_wants_ten_seconds_and_three_chapters():
    parts = [Chapter(0, 4, "a"), Chapter(4, 20, "b"), Chapter(20, 40, "c"), Chapter(40, 45, "d")]
    kept, remarks = youtube_chapters(parts)
    assert kept == [Chapter(0, 20, "a / b"), Chapter(20, 45, "c / d")]
    assert len(remarks) == 2
    assert "2 shorter ones joined a neighbour" in remarks[0]
    assert "from 3 on, and this list has 2" in remarks[1]
    fine = [Chapter(0, 10, "a"), Chapter(10, 20, "b"), Chapter(20, 30, "c")]
    assert youtube_chapters(fine) == (fine, [])
    assert youtube_chapters([])[0] == []


def test_numbers_of_cues_are_those_of_the_steps():
    for kind in ("srt", "vtt"):
        lines = write_chapters(FOUND, kind).splitlines()
        assert [line for line in lines if line.isdigit()] == ["1", "3"]
    again = [FOUND[0], FOUND[2], FOUND[2]]
    assert [line for line in write_chapters(again, "srt").splitlines() if line.isdigit()] == ["1", "2", "3"]
    assert "\n3.2\n" in write_chapters(again, "vtt")


def test_the_page_covers_the_talk_and_quotes_it():
    page = write_chapters(FOUND, "html", TALK)
    assert "<span>1:09:59</span>" in page
    assert "<q>Sentence 3 &lt;b&gt;</q>" in page
    assert "<q>Sentence 9 &lt;b&gt;</q>" in page


def test_youtube_begins_at_zero():
    assert write_chapters(FOUND, "youtube").splitlines() == [
        "0:00 Introduction",
        '1:01 Mix = "stir" <slowly>',
        "1:01:40 Bake; cool #1",
    ]
    at_once = [FoundStep(0, "Go", 0.4, 2.0, 1.0, (0, 1))]
    assert write_chapters(at_once, "youtube") == "0:00 Go\n"


def test_html_escapes_and_shows_every_step():
    page = write_chapters(FOUND, "html")
    assert "Mix = &quot;stir&quot; &lt;slowly&gt;" in page
    assert "<slowly>" not in page
    assert page.count("<i style") == 2
    assert "not found" in page


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_found_is_written_all_the_same(kind):
    assert isinstance(write_chapters([FOUND[1]], kind), str)


def test_unknown_format():
    with pytest.raises(ValueError, match="'docx'; choose one of json, csv, srt"):
        write_chapters(FOUND, "docx")


# --- Costs ------------------------------------------------------------------------------------------------------


def letters(words):
    """Equal words are alike, different ones are not."""
    vectors = np.zeros((len(words), 4096), np.float32)
    for row, word in zip(vectors, words, strict=True):
        row[sum(ord(c) * 31**k for k, c in enumerate(word)) % 4096] = 1
    return vectors


def test_echo_is_full_for_the_same_words_and_none_for_others():
    C = echo_costs(["stir the soup"], ["The soup, stir!", "walk a dog", "", "soup"], letters)
    assert C.shape == (1, 4)
    assert C[0, :3] == pytest.approx([0, 1, 1], abs=1e-6)
    assert 0 < C[0, 3] < 0.6


def test_words_half_alike_count_a_quarter():
    vectors = {"hot": [1.0, 0.0], "warm": [0.5, 0.75**0.5]}
    C = echo_costs(["hot"], ["warm"], lambda words: np.array([vectors[word] for word in words]))
    assert C[0, 0] == pytest.approx(0.75)


def test_rare_words_count_more():
    said = ["the garlic", "the pan", "the oven", "the sink"]
    C = echo_costs(["the garlic"], ["the", "garlic", *said], letters)
    assert C[0, 1] < C[0, 0]


def test_texts_without_words_are_like_nothing():
    assert echo_costs(["…"], ["hello", "?"], letters).tolist() == [[1, 1]]


def test_what_all_have_in_common_does_not_count():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(5, 16)), rng.normal(size=(30, 16))
    np.testing.assert_allclose(meaning_costs(Z + 7, X + 7), meaning_costs(Z, X), atol=1e-9)
    assert np.ptp(meaning_costs(Z[:1], X)) > 0.5  # of a single step something is left


# --- Talks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "said", "times", "reason"),
    [
        ([], ["a"], [0], "0 steps and 1 sentences"),
        (["a"], [], [], "1 steps and 0 sentences"),
        (["a"], ["b", "c"], [0], r"times has shape \(1,\) for 2 sentences"),
        (["a"], ["b", "c"], [1, 0], "ascending"),
        (["a"], ["b"], [(1, 0)], "each stop after its start"),
        (["a"], ["b"], [np.nan], "finite"),
    ],
)
def test_wrong_talks(steps, said, times, reason):
    with pytest.raises(ValueError, match=reason):
        localize(steps, said, times)
