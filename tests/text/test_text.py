"""Steps, chapters, and where each step is talked about."""

import csv
import importlib.util
import io
import json
from pathlib import Path

import numpy as np
import pytest

from dropdtw import text
from dropdtw.text import FORMATS, FoundStep, Sentence, read_steps, read_subtitles, sentences, write_chapters
from dropdtw.text.localize import meaning_costs
from dropdtw.text.words import echo_costs

EXAMPLES = Path(__file__).parents[2] / "examples" / "localize"
needs_wordllama = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")

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


def test_ffmetadata_escapes_and_counts_milliseconds():
    lines = write_chapters(FOUND, "ffmetadata").splitlines()
    assert lines[:6] == [
        *(";FFMETADATA1", "[CHAPTER]", "TIMEBASE=1/1000", "START=61500", "END=70250"),
        'title=Mix \\= "stir" <slowly>',
    ]
    assert lines[-1] == "title=Bake\\; cool \\#1"


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


# --- Localization -----------------------------------------------------------------------------------------------


def talk(steps, subtitles):
    said = sentences(read_subtitles((EXAMPLES / subtitles).read_text(encoding="utf-8")))
    wanted = read_steps((EXAMPLES / steps).read_text(encoding="utf-8"))
    return wanted, [s.text for s in said], [(s.start, s.stop) for s in said]


TRUTH = {  # seconds in which each step is talked about; None: nobody does
    ("steps.txt", "talk.srt"): [
        *((35.9, 46.3), (56.2, 66.6), (84.1, 95.8), (109.8, 119.4), None, (141.2, 152.8), (160.4, 170.7))
    ],
    ("telescope-steps.txt", "telescope.vtt"): [
        *((22.6, 34.0), (42.3, 52.3), (69.0, 80.2), (94.7, 102.7), (119.8, 130.8), (138.5, 145.5))
    ],
}


@needs_wordllama
@pytest.mark.parametrize(("steps", "subtitles"), TRUTH)
def test_steps_of_the_samples_are_found_where_they_are_talked_about(steps, subtitles):
    wanted, said, times = talk(steps, subtitles)
    found = text.localize(wanted, said, times)
    assert [f.step for f in found] == wanted
    for f, truth in zip(found, TRUTH[steps, subtitles], strict=True):
        assert f.found == (truth is not None), f
        if truth is not None:
            assert truth[0] - 0.5 <= f.start < f.stop <= truth[1] + 0.5, f
            assert f.confidence > 0.5, f


@needs_wordllama
def test_foreign_steps_are_not_found():
    _, said, times = talk("steps.txt", "talk.srt")
    wanted, _, _ = talk("telescope-steps.txt", "telescope.vtt")
    bicycle = read_steps((EXAMPLES / "steps.txt").read_text(encoding="utf-8"))
    found = text.localize([*bicycle[:4], *wanted[3:], *bicycle[4:]], said, times)
    assert [f.index for f in found if not f.found] == [4, 5, 6, 7]


@needs_wordllama
def test_times_may_be_starts_alone():
    wanted, said, times = talk("telescope-steps.txt", "telescope.vtt")
    starts = [start for start, _ in times]
    a, b = text.localize(wanted, said, times), text.localize(wanted, said, starts)
    assert [f.sentences for f in a] == [f.sentences for f in b]
    assert all(g.stop == starts[g.sentences[1]] for g in b)


@needs_wordllama
def test_drop_costs_can_be_given():
    wanted, said, times = talk("telescope-steps.txt", "telescope.vtt")
    assert not any(f.found for f in text.localize(wanted, said, times, drop_x=0.01, skip=1.0))
    more = text.localize(wanted, said, times, drop_x="percentile:30")
    assert sum(f.stop - f.start for f in more if f.found) > sum(
        f.stop - f.start for f in text.localize(wanted, said, times)
    )


@needs_wordllama
def test_smallest_talks():
    (one,) = text.localize(["boil water"], ["boil the water"], [(2.0, 3.0)])
    assert (one.start, one.stop) in ((2.0, 3.0), (None, None))
    assert len(text.localize(["a b", "c d", "e f"], ["hello"], [0.0])) == 3


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
        text.localize(steps, said, times)


@needs_wordllama
def test_automatic_captions_without_full_stops_do_as_well():
    cues = read_subtitles((EXAMPLES / "talk.srt").read_text(encoding="utf-8"))
    said = sentences([cue._replace(text=cue.text.lower().translate(str.maketrans("", "", ".,!?"))) for cue in cues])
    wanted = read_steps((EXAMPLES / "steps.txt").read_text(encoding="utf-8"))
    found = text.localize(wanted, [s.text for s in said], [(s.start, s.stop) for s in said])
    right = [
        f.found and min(f.stop, truth[1]) - max(f.start, truth[0]) > 1 if truth else not f.found
        for f, truth in zip(found, TRUTH["steps.txt", "talk.srt"], strict=True)
    ]
    assert sum(right) >= 6, found
