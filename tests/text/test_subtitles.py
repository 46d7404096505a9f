"""Subtitles, and the sentences that are spoken in them."""

import json
from itertools import pairwise
from time import process_time

import pytest

from dropdtw.text import Sentence, read_subtitles, sentences, sentences_of_words

SRT = """1
00:00:01,000 --> 00:00:02,500
Hello <i>there</i>,

2
00:01:02,000 --> 01:00:00,250 X1:0
{\\an8}&gt;&gt; boil
- the water.

3
00:01:00,000 --> 00:01:01,000
[Music]
"""
VTT = """WEBVTT Kind: captions

NOTE 00:00 is not a cue

STYLE
::cue { color: red }

first
00:01.000 --> 00:02.500 align:start
Hello <00:00:01.500><c>there</c>,

00:01:02.000 --> 01:00:00.250
>> boil
- the water.
"""
JSON = [
    {"start": 1, "end": 2.5, "text": "Hello there,"},
    {"start": 62, "duration": 3538.25, "text": "boil\nthe water."},
]
CUES = [Sentence(1.0, 2.5, "Hello there,"), Sentence(62.0, 3600.25, "boil the water.")]


@pytest.mark.parametrize(
    "content",
    [SRT, "\ufeff" + SRT.replace("\n", "\r\n"), VTT, json.dumps(JSON), json.dumps({"segments": JSON[::-1]})],
    ids=["srt", "srt, Windows", "vtt", "json", "json, Whisper"],
)
def test_every_format_gives_the_same_cues(content):
    assert read_subtitles(content) == CUES


def test_no_cues_have_no_sentences():
    assert sentences([]) == []


def test_cue_follows_cue_without_a_blank_line():
    assert read_subtitles("00:01.0 --> 00:02.0\na\n00:02.0 --> 00:03.0\nb") == [(1, 2, "a"), (2, 3, "b")]


def test_rolling_captions_are_heard_once():
    rolling = "WEBVTT\n\n" + "\n\n".join(
        f"00:0{t}.000 --> 00:0{t + 1}.000\n{lines}"
        for t, lines in enumerate(["one", "one\ntwo", "two", "two\nthree", "three\ntwo"])
    )
    assert " ".join(cue.text for cue in read_subtitles(rolling)) == "one two three two"


def test_what_is_said_again_later_is_heard_again():
    cues = read_subtitles("00:00.0 --> 00:01.0\nStir.\n\n00:09.0 --> 00:10.0\nStir.")
    assert [cue.text for cue in cues] == ["Stir.", "Stir."]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "the text has no subtitles"),
        ("Just a text.\nNo times.", "the text has no subtitles"),
        ("[", "begin like JSON, but are not valid"),
        ('{"text": "x"}', "timed JSON is a list"),
        ('[{"start": 1, "text": "x"}]', "entry 0 of the timed JSON"),
        ('[{"start": "x", "end": 1, "text": "x"}]', "entry 0 of the timed JSON"),
        ("[3]", "entry 0 of the timed JSON is 3"),
        ('[{"start": NaN, "end": 1, "text": "x"}]', "entry 0 of the timed JSON lasts from nan s to 1 s; give finite"),
        (f'[{{"start": {10**400}, "end": 1, "text": "x"}}]', "entry 0 of the timed JSON is"),
        ('[{"start": 3, "end": 2, "text": "x"}]', "entry 0 of the timed JSON stops at 2.000 s, before it starts"),
        ("1\n99:99:99,000 --> 99:99:99,500\nx", "line 2 has the time 99:99:99,000, but minutes .* write it as hours"),
        ("00:59.9 --> 00:60.0\nx", "line 1 has the time 00:60.0, but"),
        ("60:00.0 --> 61:00.0\nx", "line 1 has the time 60:00.0, but"),
        ("00:01.0 --> 00:02.0\nx\n\n00:09.5 --> 00:08.0\ny", "line 4: the cue stops at 8.000 s, .* or delete it"),
        (f"{'9' * 400}:00:00 --> {'9' * 400}:00:01\nx", "line 1: the cue lasts from inf s"),
    ],
)
def test_wrong_subtitles(content, reason):
    with pytest.raises(ValueError, match=reason):
        read_subtitles(content)


def test_the_last_times_of_a_clock_are_times():
    assert read_subtitles("123:59:59,999 --> 123:59:59,999\nx") == [(446399.999, 446399.999, "x")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        *((sound, "") for sound in ("[Music]", "(applause)", "- [Music] -", "♪ la, la ♪", "((a b))", "♪♪", "[ ]")),
        *((line, line) for line in ("Stir (gently)", "(one) (two)", "(now", "now)", ")now(", "♪ la ♪ la ♪", "…")),
        ("Fry <b>it", "Fry it"),
        ("{\\an8}3 < 4 <i>and</i> 5 > 4", "3 < 4 and 5 > 4"),
    ],
)
def test_sounds_and_tags_are_not_said(line, said):
    cues = read_subtitles(f"00:01.0 --> 00:02.0\nx\n{line}")
    assert cues[0].text == f"x {said}".strip()


@pytest.mark.parametrize("piece", [*"(♪<-. &", "((a", "♪a", "<a", "{\\", "[)", ".)", "1:", "a\n"])
def test_no_line_is_read_again_and_again(piece):
    """40 KB take hundredths of a second; whatever scans the rest of a line at each letter takes tens of seconds."""
    content = piece * (40_000 // len(piece))
    begun = process_time()
    for end in ("", "a"):
        lines = f"x\n{content}{end}"
        sentences(read_subtitles(f"00:01.0 --> 00:02.0\n{lines}\n\n00:02.0 --> 00:03.0\n{lines}"))
    assert process_time() - begun < 2


def test_sentences_end_at_full_stops_and_pauses_not_at_abbreviations():
    cues = [
        Sentence(0, 4, "Mr. Bun waits. Are you"),
        Sentence(4, 6, "ready? Yes"),
        Sentence(8, 9, "no"),
        Sentence(9, 9.5, "…"),
    ]
    assert [s.text for s in sentences(cues)] == ["Mr. Bun waits.", "Are you ready?", "Yes", "no …"]


def test_sentences_keep_all_words_and_their_time():
    cues = [Sentence(k, k + 1, "so we go on and on") for k in range(20)]
    found = sentences(cues)
    assert " ".join(s.text for s in found) == " ".join(c.text for c in cues)
    assert (found[0].start, found[-1].stop) == (0, 20)
    assert all(a.stop == b.start for a, b in pairwise(found))
    assert len(found) == 20  # nobody set full stops: every cue is a piece


def spoken(*lines):
    return [s.text for s in sentences([Sentence(2 * k, 2 * k + 2, line) for k, line in enumerate(lines)])]


def test_without_full_stops_a_line_is_not_joined_to_the_one_before():
    lines = ["today my brother is visiting from canada", "okay then", "peel and chop the onions", "mind your fingers"]
    assert spoken(*lines) == lines


def test_cues_of_single_words_are_joined():
    assert spoken("now", "peel", "and", "chop", "the", "onions", "for") == ["now peel and chop", "the onions for"]


def test_where_a_full_stop_was_forgotten_a_capital_begins_a_sentence():
    lines = ["Hello. Today my brother is visiting from Canada", "Peel and chop the onions.", "See", "you, then."]
    assert spoken(*lines) == [
        "Hello.",
        "Today my brother is visiting from Canada",
        "Peel and chop the onions.",
        "See you, then.",
    ]


@pytest.mark.parametrize("after", ["I do.", "I'm told.", "NASA does.", "he does.", "“really” does."])
def test_other_capitals_begin_no_sentence(after):
    assert spoken("So.", "That is how", after) == ["So.", f"That is how {after}"]
    assert spoken("So.", "Ask for him,", "Mister Bun.") == ["So.", "Ask for him, Mister Bun."]


def test_subviewer_is_read_as_youtube_writes_it():
    text = "0:00:01.000,0:00:04.105\nHello everybody,\nwelcome\n\n0:00:04.455,0:00:07.635\nback\n"
    assert read_subtitles(text) == [Sentence(1.0, 4.105, "Hello everybody, welcome"), Sentence(4.455, 7.635, "back")]


def test_words_become_sentences_at_full_stops_and_pauses():
    said = ["So", "now", "we", "boil", "water", "in", "Kent.", "Then", "wait"]
    words = [Sentence(0.5 * k, 0.5 * k + 0.4, word) for k, word in enumerate(said)]
    found = sentences_of_words(words)
    assert [(s.start, s.stop, s.text) for s in found] == [
        (0.0, 3.4, "So now we boil water in Kent."),
        (3.5, 4.4, "Then wait"),
    ]
    assert sentences_of_words([]) == []

    def later(seconds):
        return [w._replace(start=w.start + seconds, stop=w.stop + seconds) if k > 3 else w for k, w in enumerate(words)]

    assert [s.text for s in sentences_of_words(later(2))][:2] == ["So now we boil", "water in Kent."]  # a pause
    assert sentences_of_words(later(0.5))[0].text == "So now we boil water in Kent."  # a breath


def test_words_without_full_stops_become_sentences_at_breaths():
    words = [Sentence(0.5 * k + (k // 5), 0.5 * k + 0.4 + (k // 5), f"word{k}") for k in range(40)]
    assert [len(s.text.split()) for s in sentences_of_words(words)] == [5] * 8
