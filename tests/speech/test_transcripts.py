"""Words with times, from the files that recognizers write."""

import json
import sys

import pytest

from dropdtw import speech
from dropdtw.speech import SpokenWord, read_transcript

WORDS = (SpokenWord(0.5, 0.9, "Good"), SpokenWord(1.0, 1.6, "evening."), SpokenWord(3.0, 3.2, "So"))


def whisper(words, key="word"):
    entries = [{key: f" {w.text}", "start": w.start, "end": w.stop, "probability": 0.9} for w in words]
    return {"text": "…", "segments": [{"id": 0, "words": entries[:2]}, {"id": 1, "words": entries[2:]}]}


FILES = {
    "whisper": json.dumps(whisper(WORDS)),
    "byte order mark": "\ufeff" + json.dumps(whisper(WORDS)),
    "plain list": json.dumps(whisper(WORDS)["segments"][0]["words"] + whisper(WORDS)["segments"][1]["words"]),
    "words of the API": json.dumps({"words": [{"word": w.text, "start": w.start, "end": w.stop} for w in WORDS]}),
    "ctm": ";; comment\ntalk A 0.5 0.4 Good 0.9\ntalk A 1.0 0.6 evening. 0.8\n\ntalk A 3.0 0.2 So\n",
    "a word per cue": (
        "WEBVTT\n\n00:00.500 --> 00:00.900\nGood\n\n00:01.000 --> 00:01.600\nevening.\n\n00:03.000 --> 00:03.200\nSo\n"
    ),
    "highlighted words": (
        "WEBVTT\n\n00:00.500 --> 00:00.900\n<u>Good</u> evening.\n\n00:00.900 --> 00:01.000\nGood evening.\n\n"
        "00:01.000 --> 00:01.600\nGood <u>evening.</u>\n\n00:03.000 --> 00:03.200\n<u>So</u>\n"
    ),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_all_formats_hold_the_same_words(text):
    found = read_transcript(text)
    assert [w.text for w in found.words] == [w.text for w in WORDS]
    assert [(w.start, w.stop) for w in found.words] == [pytest.approx((w.start, w.stop)) for w in WORDS]
    assert not found.estimated


def test_rolling_captions_are_read_once():
    text = (
        "WEBVTT\n\n00:01.000 --> 00:03.000\n \nnow<00:01.500><c> we</c><00:02.000><c> boil</c>\n\n"
        "00:03.000 --> 00:03.010\nnow we boil\n \n\n"
        "00:03.010 --> 00:05.000\nnow we boil\nthe<00:03.500><c> water</c>\n"
    )
    words = read_transcript(text).words
    assert [(w.start, w.text) for w in words] == [
        (1.0, "now"), (1.5, "we"), (2.0, "boil"), (3.01, "the"), (3.5, "water"),
    ]  # fmt: skip


def test_words_within_a_cue_share_its_time():
    found = read_transcript("1\n00:00:01,000 --> 00:00:03,000\nabc d\n")
    assert found == ((SpokenWord(1.0, 2.5, "abc"), SpokenWord(2.5, 3.0, "d")), True)


@pytest.mark.parametrize("form", ['{{"segments": {}}}', "{}"])
def test_words_within_a_segment_share_its_time(form):
    segments = [{"start": 1, "end": 3, "text": " abc – d"}, {"start": 4, "stop": 5, "text": "e"}]
    found = read_transcript(form.format(json.dumps(segments)))
    assert found == ((SpokenWord(1.0, 2.5, "abc"), SpokenWord(2.5, 3.0, "d"), SpokenWord(4.0, 5.0, "e")), True)
    assert not read_transcript(form.format(json.dumps(segments[1:]))).estimated


def test_words_without_times_lie_between_their_neighbors():
    words = [{"word": "in", "start": 1.0, "end": 1.2}, {"word": "1984"}, {"word": "it", "start": 2.0, "end": 2.1}]
    found = read_transcript(json.dumps({"segments": [{"words": words}]})).words
    assert found[1] == SpokenWord(1.2, 2.0, "1984")
    found = read_transcript(json.dumps({"segments": [{"words": words[1:]}]})).words
    assert found[0] == SpokenWord(2.0, 2.0, "1984")


def test_no_words_are_no_error():
    assert read_transcript(json.dumps({"segments": []})).words == ()
    assert read_transcript("").words == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"segments": [{"start": 0, "text": "hi"}]}', "entry 0 of the timed JSON"),
        ('{"segments": [{"words": [{"word": "hi"}]}]}', "no word has a time"),
        ('{"segments": [{"words": [{"word": "hi", "start": 2, "end": 1}]}]}', "stops at 1.000 s, before it starts"),
        ('{"segments": [{"words": [{"word": "hi", "start": "x", "end": 1}]}]}', "could not convert"),
        ('{"segments": [{"words": [{"word": "hi", "start": true, "end": 1}]}]}', "give seconds"),
        ('{"segments": [{"words": [{"word": "hi", "start": [1], "end": 1}]}]}', "give seconds"),
        ('{"segments": [{"words": [3]}]}', "a word is 3"),
        ('{"segments": [{"words": [{"word": "hi", "start": 0, "end": Infinity}]}]}', "give finite seconds"),
        ('{"segments": 3}', "give JSON of Whisper or WhisperX"),
        ('{"segments": [', "is not valid JSON"),
        ("Once upon a time there was a talk.", "line 1 is 'Once upon a time there was a talk.'"),
        ("talk A 0.5 -0.4 hi", "before it starts"),
        ("talk A 0.5", "line 1 is"),
    ],
)
def test_a_file_that_holds_no_words_with_times_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        read_transcript(text)


def test_a_model_is_a_folder_and_needs_its_package(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"which is not a folder; download .*: hf download Systran/"):
        speech.transcribe("talk.mp3", "tiny.en")
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(ImportError, match=r"pip install 'dropdtw\[speech\]'"):
        speech.transcribe("talk.mp3", str(tmp_path))


def test_the_model_is_only_read_from_its_folder(tmp_path, monkeypatch):
    """A stand-in for faster-whisper: it must be told to download nothing."""
    from types import ModuleType, SimpleNamespace

    class Model:
        def __init__(self, folder, **options):
            assert folder == str(tmp_path)
            assert options["local_files_only"] is True

        def transcribe(self, recording, **options):
            assert options["word_timestamps"] is True
            words = [SimpleNamespace(start=w.start, end=w.stop, word=f" {w.text}") for w in WORDS]
            noise = SimpleNamespace(start=4.0, end=4.1, word=" …")
            return iter([SimpleNamespace(words=[*words, noise], end=4.1)]), SimpleNamespace(duration=5.0)

    package = ModuleType("faster_whisper")
    package.WhisperModel = Model
    monkeypatch.setitem(sys.modules, "faster_whisper", package)
    assert speech.transcribe("talk.mp3", str(tmp_path)).words == WORDS
