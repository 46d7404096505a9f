"""Subtitles that move to another version of a recording."""

import numpy as np
import pytest

from dropdtw.media.edits import Edits
from dropdtw.media.retime import retime
from dropdtw.text.cues import CueFile
from dropdtw.text.subtitles import Sentence, read_subtitles
from transcript_cases import diff_texts, held_out_talks, subrip

SRT = (
    "\ufeff1\r\n00:00:01,000 --> 00:00:03,000\r\n<i>Hello</i>\r\nyou\r\n\r\n"
    "2\r\n00:00:12,000 --> 00:00:14,000\r\nBuy this now\r\n\r\n"
    "3\r\n00:00:21,000 --> 00:00:23,500\r\n- Welcome back\r\n"
)
VTT = (
    "WEBVTT - a talk\n\nSTYLE\n::cue { color: red }\n\nNOTE 00:00 is the beginning\n\nfirst\n"
    "00:01.000 --> 00:03.000 align:start line:90%\nHello\n\n00:00:21.000 --> 00:00:23.500\n<v Ann>Welcome\n"
)
CUT = Edits.of_same([((0, 10), (0, 10), 0.99), ((20, 60), (10, 50), 0.99)], (60, 50))


@pytest.mark.parametrize("text", [SRT, VTT])
def test_without_edits_not_a_byte_changes_but_the_form_of_times(text):
    found = retime(text, Edits.of_same([((0, 60), (0, 60), 1.0)], (60, 60)))
    assert found.text.replace("00:00:01.000", "00:01.000").replace("00:00:03.000", "00:03.000") == text
    assert (found.removed, found.doubts) == ((), ())


def test_cues_in_what_was_taken_out_go_and_the_others_keep_their_form():
    found = retime(SRT, CUT)
    assert found.text == (
        "\ufeff1\r\n00:00:01,000 --> 00:00:03,000\r\n<i>Hello</i>\r\nyou\r\n\r\n"
        "2\r\n00:00:11,000 --> 00:00:13,500\r\n- Welcome back\r\n"
    )
    assert found.removed == (1,)
    assert found.times[2] == pytest.approx((11.0, 13.5))


def test_styles_notes_names_and_settings_of_webvtt_stay():
    text = retime(VTT, CUT).text
    assert text.startswith("WEBVTT - a talk\n\nSTYLE\n::cue { color: red }\n\nNOTE 00:00 is the beginning\n\nfirst\n")
    assert "00:00:01.000 --> 00:00:03.000 align:start line:90%\nHello" in text
    assert "00:00:11.000 --> 00:00:13.500\n<v Ann>Welcome" in text


def test_a_decimal_point_in_subrip_stays():
    text = retime("1\n00:00:01.000 --> 00:00:03.000\nHello\n", CUT).text
    assert text == "1\n00:00:01.000 --> 00:00:03.000\nHello\n"


def test_times_inside_a_cue_move_with_it():
    text = "WEBVTT\n\n00:21.000 --> 00:23.500\nWell<00:21.400><c> come</c><00:00:22.000><c> back</c> at <b>12:30</b>\n"
    assert retime(text, CUT).text == (
        "WEBVTT\n\n00:00:11.000 --> 00:00:13.500\n"
        "Well<00:00:11.400><c> come</c><00:00:12.000><c> back</c> at <b>12:30</b>\n"
    )


def test_cues_without_a_spoken_word_move_too():
    assert retime("1\n00:00:21,000 --> 00:00:23,000\n[Music]\n", CUT).times == (pytest.approx((11.0, 13.0)),)


def test_a_cue_at_a_cut_moves_with_the_passage_that_holds_most_of_it_and_keeps_its_length():
    cues = [Sentence(8.0, 10.5, "mostly before"), Sentence(19.5, 22.0, "mostly behind"), Sentence(9.5, 12.0, "gone")]
    found = retime(subrip(cues), CUT)
    assert found.times[:2] == (pytest.approx((8.0, 10.5)), pytest.approx((9.5, 12.0)))
    assert found.removed == (2,)


def test_a_cue_in_a_gap_too_short_for_a_row_moves_with_the_nearer_passage():
    edits = Edits.of_same([((0, 10), (0, 10), 0.99), ((10.8, 60), (20.8, 70), 0.99)], (60, 70))
    found = retime(subrip([Sentence(10.5, 10.7, "late"), Sentence(10.1, 10.3, "early")]), edits)
    assert found.times == (pytest.approx((20.5, 20.7)), pytest.approx((10.1, 10.3)))


def test_a_cue_without_length_stays_or_goes_with_its_passage():
    found = retime(subrip([Sentence(15.0, 15.0, "gone"), Sentence(30.0, 30.0, "kept")]), CUT)
    assert found.times == (None, pytest.approx((20.0, 20.0)))


def test_cues_are_stretched_where_the_other_version_is_slower():
    edits = Edits.of_same([((0, 60), (0, 62.4), 0.99)], (60, 62.4))
    assert retime(subrip([Sentence(50.0, 52.0, "slow")]), edits).times == (pytest.approx((52.0, 54.08)),)


def test_no_cue_begins_before_the_other_version_does():
    edits = Edits.of_same([((5, 60), (0, 55), 0.99)], (60, 55), min=10)
    found = retime(subrip([Sentence(4.0, 7.0, "half"), Sentence(1.0, 3.0, "none"), Sentence(6.0, 9.0, "all")]), edits)
    assert found.times == (pytest.approx((0.0, 2.0)), None, pytest.approx((1.0, 4.0)))


def test_low_confidence_and_strange_versions_are_doubted():
    unsure = Edits.of_same([((0, 10), (0, 10), 0.99), ((20, 60), (10, 50), 0.4)], (60, 50))
    assert retime(SRT, unsure).doubts == (
        "the average confidence of the passages is 60%, below 90%; the lowest is 40%, at 0:10.000–0:20.000",
    )
    nothing = Edits.of_same([], (60, 50), notes=["these have nothing in common"])
    assert retime(SRT, nothing).doubts == ("the two versions have nothing in common",)
    silent = Edits.of_same([], (60, 50), notes=["B is silent"])
    assert retime(SRT, silent).doubts == ("the two versions have nothing in common", "B is silent")
    damaged = Edits.of_same([((0, 60), (0, 60), 1.0)], (60, 60), notes=["A is damaged"])
    assert retime(SRT, damaged).doubts == ("A is damaged",)
    mostly = Edits.of_same([((0, 5), (0, 5), 0.99)], (60, 5))
    assert "2 of 3 cues lie in passages" in retime(SRT, mostly).doubts[0]
    assert retime(SRT, CUT).doubts == ()


LATER = Edits.of_same([((0, 60), (40, 100), 1.0)], (60, 100))
TIMED = {
    "without a blank line": "1\n00:00:01,000 --> 00:00:02,000\nHello\n2\n00:00:03,000 --> 00:00:04,000\nyou\n",
    "without numbers": "00:01.0 --> 00:02.0\n3\n00:02.0 --> 00:03.0\n2\n",
    "before zero": "1\n-00:00:01,500 --> 00:00:02,000\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nyou\n",
    "a mark and no number": "\ufeff00:00:01,000 --> 00:00:02,000\nHello\n",
    "short times": "1\n0:0:1,5 --> 0:0:02,0000\nHello\n",
    "WebVTT": "WEBVTT\n00:01.000 --> 00:02.000 line:0\nHello\n00:03.000 --> 00:04.000\nyou\n\nNOTE end\n",
    "SubViewer": "0:00:01.000,0:00:02.000\nHello\n\n0:00:03.000,0:00:04.000\nyou\n",
    "both": "1\n00:00:01,000 --> 00:00:02,000\nHello\n\n0:00:03.000,0:00:04.000\nyou\n",
}


@pytest.mark.parametrize("text", TIMED.values(), ids=TIMED)
def test_every_cue_that_is_read_is_moved(text):
    before, after = read_subtitles(text), read_subtitles(retime(text, LATER).text)
    assert [(cue.start + 40, cue.stop + 40, cue.text) for cue in before] == [tuple(cue) for cue in after]
    assert len(retime(text, LATER).times) == len(before)


@pytest.mark.parametrize("text", TIMED.values(), ids=TIMED)
@pytest.mark.parametrize("gone", [0, 1])
def test_a_cue_that_is_left_out_takes_its_own_lines_and_no_others(text, gone):
    file = CueFile(text)
    times = [None if k == gone else (cue.start, cue.stop) for k, cue in enumerate(file.cues)]
    rest = [tuple(cue) for k, cue in enumerate(read_subtitles(text)) if k != gone]
    if rest:
        assert [tuple(cue) for cue in read_subtitles(file.moved(times))] == rest
    assert file.moved(times).startswith(text[: len("WEBVTT")]) or not text.startswith("WEBVTT")


def test_text_below_a_blank_line_goes_with_its_cue():
    text = SRT.replace("Buy this now", "Buy\r\n\r\nthis now")
    assert retime(text, CUT).text == retime(SRT, CUT).text


@pytest.mark.parametrize(
    "times",
    [
        "00:00:01:000 --> 00:00:02:000",
        "00:00:01,000 -> 00:00:02,000",
        "0:1 --> 0:2:3:4",
        "00:00:xx,486 --> 00:00:23,557",
        "0x:00:20,486 --> 00:00:23,557",
        "00:00:20,486 --> garbage",
        "00:00:20;486 --> 00:00:23;557",
        "00:00:2x.486 --> 00:00:23.557",
        "0:00:02.xxx,0:00:05.000",
        "0:00:02.000,0:00:0x.000",
    ],
)
def test_times_that_cannot_be_read_are_named(times):
    text = f"1\n{times}\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nyou\n"
    for read in (read_subtitles, CueFile):
        with pytest.raises(ValueError, match=f"line 2 has the times '{times}', which cannot be read; write them as"):
            read(text)


def test_what_is_no_subtitle_file_is_refused():
    with pytest.raises(ValueError, match="the text has no subtitles"):
        CueFile('[{"start": 0, "stop": 1, "text": "timed JSON"}]')


@pytest.mark.parametrize("files", [20, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_simulated_cuts_of_real_talks_are_followed_and_one_offset_is_never_split(files):
    talks = held_out_talks()[:files]
    assert len(talks) == files
    rng = np.random.default_rng(20)
    found = [diff_texts.measure(cues, rng) for cues in talks]
    assert sum(scores.right for scores in found) >= 0.99 * sum(scores.cues for scores in found)
    assert not any(scores.split for scores in found)
