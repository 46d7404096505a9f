"""Words with times: read what speech recognizers write, or let one transcribe a recording."""

from __future__ import annotations

import html
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from dropdtw.files import jsons
from dropdtw.files.progress import Progress, reporter
from dropdtw.problem.errors import described
from dropdtw.text.cues import INNER, CueFile, in_order, seconds
from dropdtw.text.subtitles import TAG, read_subtitles

FORMATS: Final = "JSON of Whisper or WhisperX with words, WebVTT or SubRip, or CTM"
MARKED: Final = re.compile(r"<u>(.*?)</u>", re.S)
"""The current word in subtitles that Whisper writes with --highlight_words."""
LETTER: Final = re.compile(r"[^\W_]|[%&$£€]")


class SpokenWord(NamedTuple):
    """A word that a recognizer heard, from `start` to `stop`, in seconds."""

    start: float
    stop: float
    text: str


class Transcript(NamedTuple):
    """The words of a recording, in order of time.

    estimated : whether times within a cue were interpolated by counting letters, because the file has none.
    """

    words: tuple[SpokenWord, ...]
    estimated: bool = False


def read_transcript(text: str) -> Transcript:
    """The words that a recognizer wrote, with their times.

    text : the content of a file: JSON of Whisper or WhisperX, WebVTT with times in its cues or a word in each, SubRip,
        or CTM. The format is recognized by the content.

    If JSON has times of segments only, those of words are estimated, as for subtitles.

    Raises ValueError if it is none of these, or if a time is invalid.

    >>> read_transcript("talk 1 0.50 0.25 hello 0.98").words
    (SpokenWord(start=0.5, stop=0.75, text='hello'),)
    """
    text = text.lstrip("\ufeff")
    estimated = False
    if text.lstrip()[:1] in ("{", "["):
        found, estimated = _json(text)
    elif "-->" in text:
        found, estimated = _subtitles(text)
    else:
        found = list(_ctm(text))
    words = [_checked(word) for word in found if LETTER.search(word.text)]
    return Transcript(tuple(sorted(words, key=lambda word: (word.start, word.stop))), estimated)


def transcribe(recording: str, model: str, *, language: str | None = None, progress: Progress = None) -> Transcript:
    """Let faster-whisper transcribe a recording. Needs `pip install 'dropdtw[speech]'`. Nothing is downloaded.

    model : the folder of a model in CTranslate2's format.
    language : such as "en"; None: the model detects it.
    """
    if not Path(model).is_dir():
        raise ValueError(
            f"the model is {model!r}, which is not a folder; download a model for faster-whisper first, for example: "
            "hf download Systran/faster-whisper-small.en --local-dir models/faster-whisper-small.en"
        )
    try:
        from faster_whisper import WhisperModel
    except ModuleNotFoundError:
        raise ImportError("transcribing needs faster-whisper: pip install 'dropdtw[speech]'") from None
    try:
        recognizer = WhisperModel(model, device="cpu", compute_type="int8", local_files_only=True)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{model} holds no model that faster-whisper reads ({error}); give another folder") from None
    report = reporter("transcribing", progress)
    segments, about = recognizer.transcribe(
        recording, language=language, word_timestamps=True, condition_on_previous_text=False
    )
    found = []
    for segment in segments:
        found += [SpokenWord(word.start, word.end, word.word.strip()) for word in segment.words or ()]
        report(round(segment.end), max(1, round(about.duration)))
    return Transcript(tuple(_checked(word) for word in found if LETTER.search(word.text)))


def _checked(word: SpokenWord) -> SpokenWord:
    in_order(word.start, word.stop, f"the word {word.text[:40]!r}")
    return word


def _json(text: str) -> tuple[list[SpokenWord], bool]:
    """The words of JSON, and whether their times are interpolated, because only segments have times."""
    try:
        data = jsons.loads(text)
    except ValueError as error:
        raise ValueError(f"it begins like JSON, but is not valid JSON ({error}); correct the file") from None
    entries = _entries(data)
    if entries is not None:
        return list(_told(entries)), False
    cues = [(cue, [word for word in cue.text.split() if LETTER.search(word)]) for cue in read_subtitles(text)]
    found = [word for cue, words in cues for word in _shared(words, cue.start, cue.stop)]
    return found, any(len(words) > 1 for _, words in cues)


def _told(entries: list[dict[str, Any]]) -> Iterator[SpokenWord]:
    """The words of entries; those without a time share the time between their neighbors."""
    times = [_times(entry) for entry in entries]
    ends = {k: when for k, when in enumerate(times) if when is not None}
    known = list(ends)
    if entries and not known:
        raise ValueError("no word has a time; run whisper with --word_timestamps True")
    for k, entry in enumerate(entries):
        when = times[k]
        if when is None:  # WhisperX does not time numbers: they share the time between their neighbors
            at = bisect(known, k)
            first, last = known[at - 1] if at else -1, known[at] if at < len(known) else len(entries)
            low = ends[first][1] if at else ends[last][0]
            share = (max(low, ends[last][0]) - low) / (last - first - 1) if at < len(known) else 0.0
            when = (low + share * (k - first - 1), low + share * (k - first))
        yield SpokenWord(*when, str(entry.get("word", entry.get("text", ""))).strip())


def _entries(data: Any) -> list[dict[str, Any]] | None:
    """The words of all segments; None if segments have only a text. Raises ValueError if there are no segments."""
    where = data.get("segments", data.get("words", data.get("word_segments"))) if isinstance(data, dict) else data
    if not isinstance(where, list) or not all(isinstance(part, dict) for part in where):
        raise ValueError(f"the JSON is {jsons.brief(data)}; give JSON of Whisper or WhisperX, with segments")
    parts = [part["words"] if isinstance(part.get("words"), list) else None for part in where]
    if where and all(part is None for part in parts):
        if all("word" in part for part in where):  # a plain list of words
            return where
        return None
    found = [entry for part in parts for entry in part or ()]
    for entry in found:
        if not isinstance(entry, dict) or not ("word" in entry or "text" in entry):
            raise ValueError(f'a word is {jsons.brief(entry)}; give {{"word", "start", "end"}} in seconds')
    return found


def _times(entry: dict[str, Any]) -> tuple[float, float] | None:
    start, stop = entry.get("start"), entry.get("end", entry.get("stop"))
    if start is None or stop is None:
        return None
    if isinstance(start, bool) or isinstance(stop, bool):
        raise ValueError(f"a word has the times {jsons.brief([start, stop])}; give seconds")
    try:
        return in_order(float(start), float(stop), f"the word {jsons.brief(entry)}")
    except (TypeError, OverflowError):
        raise ValueError(f"a word has the times {jsons.brief([start, stop])}; give seconds") from None


def _subtitles(text: str) -> tuple[list[SpokenWord], bool]:
    """The words of cues, and whether some of their times are interpolated."""
    file = CueFile(text)
    texts = [file.text_of(cue) for cue in file.cues]
    inner = any(map(INNER.search, texts))
    marked = sum(len(MARKED.findall(each)) == 1 for each in texts) * 2 > len(texts)
    found: list[SpokenWord] = []
    estimated = False
    shown: list[str] = []
    for cue, whole in zip(file.cues, texts, strict=True):
        lines = whole.splitlines()
        if marked:
            now = MARKED.findall(whole)
            lines = now[:1] if len(now) == 1 else []
        elif inner:  # rolling captions repeat lines, without the times
            lines = [line for line in lines if INNER.search(line) or _plain(line) not in shown]
            shown = [_plain(line) for line in whole.splitlines()]
        for part in _timed(" ".join(lines), cue.start, cue.stop):
            words = [word for word in part.text.split() if LETTER.search(word)]
            estimated |= len(words) > 1
            found += _shared(words, part.start, part.stop)
    return found, estimated


def _timed(line: str, start: float, stop: float) -> Iterator[SpokenWord]:
    """The parts of a cue between the times inside it."""
    parts = INNER.split(line)
    times = [start, *(seconds(clock, 0) for clock in parts[1::2]), stop]
    for text, (begin, end) in zip(parts[::2], pairwise(times), strict=True):
        if plain := _plain(text):
            yield SpokenWord(begin, max(begin, end), plain)


def _plain(text: str) -> str:
    return html.unescape(TAG.sub("", INNER.sub("", text))).replace("\u200b", "").strip()


def _shared(words: Sequence[str], start: float, stop: float) -> Iterator[SpokenWord]:
    """Words that share a time in proportion to their letters."""
    pace = (stop - start) / max(1, sum(map(len, words)))
    for word in words:
        yield SpokenWord(start, start + pace * len(word), word)
        start += pace * len(word)


def _ctm(text: str) -> Iterator[SpokenWord]:
    """NIST's format: recording, channel, start, duration, word, and perhaps a confidence."""
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        try:
            start, length, word = float(fields[2]), float(fields[3]), fields[4]
        except (IndexError, ValueError):
            raise ValueError(f"line {number} is {described(line[:60])}; give {FORMATS}") from None
        yield SpokenWord(start, start + length, word.replace("_", " "))
