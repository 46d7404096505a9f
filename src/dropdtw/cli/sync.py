"""`dropdtw sync`: find when each sentence of a text is read aloud in a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dropdtw.cli import options, screen

if TYPE_CHECKING:
    from dropdtw.problem.inputs import Array
    from dropdtw.speech import Page, Reading, Transcript

ENDS = {".srt": "srt", ".vtt": "vtt", ".textgrid": "textgrid", ".json": "json", ".html": "html"}
"""The format of each extension of --out."""


def sync(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text: .txt or .md. - for stdin.")],
    recording: Annotated[
        str,
        typer.Argument(
            metavar="RECORDING",
            help="A recording of it, with --words or --whisper. Or only the words that a recognizer heard, as for "
            "--words.",
        ),
    ],
    words: Annotated[
        str | None,
        typer.Option(
            "--words",
            "-w",
            metavar="FILE",
            help="The words of the recording with their times: .json of Whisper (--word_timestamps True) or WhisperX, "
            ".vtt, .srt or .ctm.",
        ),
    ] = None,
    whisper: Annotated[
        str | None,
        typer.Option(
            "--whisper",
            metavar="FOLDER",
            help="Transcribe the recording with the faster-whisper model in this folder. Nothing is downloaded.",
        ),
    ] = None,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="For --whisper: the language, such as en. Default: detected.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="srt, vtt, textgrid (Praat), json or html. Default: from the name of --out, else a table.",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Write the read-along to this file.")] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with status 1 if most sentences are not read."),
    ] = False,
) -> None:
    """Find when each sentence and each word of a text is read aloud, what is left out, and what is added.

    The words that a recognizer heard are matched with the text by their sound, so recognition errors, other spellings
    and digits cost little. The confidence of a sentence is the probability that its times are right within 0.3 s. An
    html page highlights the text while the recording plays. It links to the recording; do not move either file
    afterwards.
    """
    from dropdtw import speech
    from dropdtw.files import templates
    from dropdtw.files.texts import is_recording

    kind = options.format_of(form, out, ENDS, speech.READING_FORMATS)
    if kind == "html":
        templates.require()
    sound = recording if is_recording(recording) else None
    if is_recording(text):
        raise ValueError(f"{text} is a recording, not a text; give TEXT first, then RECORDING")
    options.refuse_one_stream(TEXT=text, RECORDING=recording, _words=words)
    options.refuse_overwriting({"--out": None if out == "-" else out}, (text, recording, words))
    written = options.parsed(text, _plain, "a text")
    heard = _heard(recording, sound, words, whisper, language)
    if not heard.words:
        screen.note("no word was heard in the recording, so nothing is timed")
        raise typer.Exit(1)
    found = speech.sync(written, heard.words, pauses=_pauses(sound, heard))
    if heard.estimated:
        screen.note("the file has no times of single words; they are estimated within each cue")
    read, total = len(found.sentences) - len(found.unread), len(found.sentences)
    if few := 2 * read < total:
        missing = f"only {read} of {total} sentences are read" if read else "no sentence is read, so nothing is timed"
        screen.note(f"{missing}; check that TEXT and RECORDING belong together")
    if not read and kind in ("srt", "vtt"):
        screen.note(f"nothing was written, because {kind} would be empty")
        raise typer.Exit(1)
    if kind is not None:
        screen.write(out or "-", speech.write_reading(found, kind, _page(text, written, sound, out)))
    if kind is None or out not in (None, "-"):
        _show(found)
    if few and strict:
        raise typer.Exit(1)


def _plain(text: str) -> str:
    if "-->" in text:
        raise ValueError("it looks like subtitles, not like a text; give TEXT first, then RECORDING")
    if text.lstrip("\ufeff \n\r\t")[:1] in ("{", "[") and _is_json(text):
        raise ValueError("it looks like a transcript, not like a text; give TEXT first, then RECORDING")
    return text


def _is_json(text: str) -> bool:
    from dropdtw.files import jsons

    try:
        jsons.loads(text.lstrip("\ufeff"))
    except ValueError:
        return False
    return True


def _heard(
    recording: str, sound: str | None, words: str | None, whisper: str | None, language: str | None
) -> Transcript:
    """The words of the recording, from a file or from a recognizer."""
    from dropdtw.files.texts import is_recording
    from dropdtw.speech import read_transcript, transcribe

    if words is not None and whisper is not None:
        raise ValueError("--words and --whisper both say what is heard; give only one of them")
    if sound is None:
        if words is not None or whisper is not None:
            option = "--words" if words is not None else "--whisper"
            raise ValueError(f"RECORDING is {recording}, which is no recording; with {option}, give audio or video")
        return options.parsed(recording, read_transcript, "timed words")
    if not Path(sound).exists():
        raise FileNotFoundError(f"there is no file {sound}")
    if words is not None and is_recording(words):
        raise ValueError(
            f"--words is {words}, a recording; give the words in it, which whisper {words} --word_timestamps True "
            "--output_format json writes"
        )
    if words is not None:
        return options.parsed(words, read_transcript, "timed words")
    if whisper is not None:
        return transcribe(sound, whisper, language=language)
    name = Path(sound).stem
    raise ValueError(
        f"what is said in {sound} is not known yet; give --whisper FOLDER (a model for faster-whisper), or --words "
        f"{name}.json, which whisper {sound} --word_timestamps True --output_format json writes"
    )


def _pauses(sound: str | None, heard: Transcript) -> Array | None:
    """The pauses of the recording; None if there is none, if its words are not these, or if an extra is missing."""
    from dropdtw.media import pauses

    if sound is None:
        return None
    try:
        found = pauses(sound)
    except ImportError as error:
        screen.note(f"times are those of the words alone: {error}")
        return None
    if (doubt := options.outlasting("the words", [(w.start, w.stop) for w in heard.words], sound)) is not None:
        screen.note(doubt)
        return None
    return found


def _page(text: str, written: str, sound: str | None, out: str | None) -> Page:
    """The title of a page, the first heading of the text or the name of its file, and the place of the recording."""
    from dropdtw.speech import Page

    link = None if sound is None else options.address_of(sound, out, "RECORDING")
    heading = next((line.lstrip("#") for line in written.splitlines() if line.startswith("#")), None)
    return Page((heading or ("Read-along" if text == "-" else Path(text).stem)).strip(" #"), link)


def _show(found: Reading) -> None:
    from dropdtw.text.labels import clock

    rows = [
        [
            str(s.index + 1),
            "not read" if s.start is None else clock(s.start),
            "" if s.stop is None else clock(s.stop),
            f"{s.confidence:.0%}",
            s.text,
        ]
        for s in found.sentences
    ]
    screen.table([">#", ">start", ">stop", ">confidence", "~sentence"], rows)
    print(f"{len(found.sentences) - len(found.unread)} of {len(found.sentences)} sentences are read")
    for e in found.extra:
        what = "not in the text" if e.repeats is None else f"sentence {e.repeats + 1} again"
        print(f"{clock(e.start)} {what}: {_brief(e.text)}")


def _brief(text: str) -> str:
    from dropdtw.files.sanitize import one_line

    line = one_line(text)
    return line if len(line) <= 72 else f"{line[:71]}…"
