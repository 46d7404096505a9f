"""`dropdtw chapters`: find where subtitles talk about each step of a written procedure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dropdtw.cli import options, screen
from dropdtw.files.sanitize import one_line
from dropdtw.orders.blocks import Steps
from dropdtw.orders.order import Order
from dropdtw.text.evidence import SKIP

if TYPE_CHECKING:
    from dropdtw.text import FoundStep, Sentence


PLAYERS = ("srt", "vtt", "ffmetadata", "youtube")
"""Formats that need times."""


def chapters(
    steps: Annotated[
        str,
        typer.Argument(
            metavar="STEPS",
            help='A text file with one step per line; numbers and bullets are ignored. The lines "any order:", '
            '"one of:", "optional:", "repeat:" and "in order:" open indented blocks.',
        ),
    ],
    talk: Annotated[
        str,
        typer.Argument(
            metavar="TALK",
            help="Subtitles: .srt, .vtt, .sbv, .json with start, stop and text, or a .csv or .tsv with such columns. "
            "Or a .txt with one sentence per line, without times. - for stdin. Or, with --whisper, a recording.",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="json, csv, srt, vtt, ffmetadata, youtube or html. Default: from the name of --out, else a table.",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Write the chapters to this file.")] = None,
    drop_x: Annotated[
        str,
        typer.Option(
            metavar="COST",
            help="Cost of dropping a sentence; lower drops more. A number, percentile:10 (of the match costs), suggest "
            "(choose it from the talk), or none (every sentence belongs to a step).",
        ),
    ] = "suggest",
    open_x: Annotated[
        str | None,
        typer.Option(
            "--open-x",
            metavar="COST",
            help="Extra cost of each run of dropped sentences; higher gives fewer, longer gaps. A number, or suggest. "
            "Default: 0.",
        ),
    ] = None,
    skip: Annotated[
        float,
        typer.Option(
            min=0,
            help="Cost of skipping a step, as a multiple of --drop-x; lower reports more steps as not found.",
        ),
    ] = SKIP,
    order: options.OrderFile = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column of times in a .csv or .tsv, if it has an unusual name."),
    ] = None,
    intro: Annotated[
        str, typer.Option(help="Title of the part before the first step, in youtube and ffmetadata.")
    ] = "Introduction",
    title: Annotated[str | None, typer.Option(help="Title of the html page. Default: from the name of TALK.")] = None,
    recording: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Video or audio of the talk, which the html page plays; a page on the web is linked.",
        ),
    ] = None,
    whisper: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="If TALK is a recording: transcribe it with the faster-whisper model in this folder. Nothing is "
            "downloaded.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Model that compares texts: wordllama (included; knows English best), or the folder of a "
            "sentence-transformers model.",
        ),
    ] = "wordllama",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with status 1 if most steps are missing; the output is the same.")
    ] = False,
) -> None:
    """Find where each step of a written procedure is talked about, and write chapters.

    Off-topic sentences are dropped, and a step that nobody talks about is reported as not found. No option is needed:
    drop costs are chosen for each talk. The confidence is the probability that the step is talked about there: of the
    steps with 70 %, about 70 % are right.
    """
    from dropdtw import text
    from dropdtw.files.texts import is_recording
    from dropdtw.orders.blocks import read_blocks
    from dropdtw.text.chapters import youtube_chapters
    from dropdtw.text.page import REMOTE

    kind = options.format_of(form, out, {f".{name}": name for name in text.FORMATS}, text.FORMATS)
    options.refuse_one_stream(STEPS=steps, TALK=talk, _order=order)
    options.refuse_overwriting({"--out": out}, (steps, talk, drop_x, order, recording))
    if is_recording(steps):
        raise ValueError(f"{steps} is a recording, not a list of steps; give STEPS first, then TALK")
    wanted = options.parsed(steps, read_blocks, "one step per line")
    if any("-->" in name for name in wanted.names):
        raise ValueError(f"{steps} looks like subtitles, not like steps; give STEPS first, then TALK")
    if order is not None:
        wanted = _ordered(wanted, order)
    if kind != "html" and (idle := [o for o, v in (("--recording", recording), ("--title", title)) if v is not None]):
        screen.note(f"{' and '.join(idle)}: only pages use this; add --out NAME.html")
    timed = Path(talk).suffix.lower() != ".txt" or time is not None
    if not timed and kind in PLAYERS:
        raise ValueError(f"{talk} has no times, but {kind} needs them; write json, csv or html, or give subtitles")
    if is_recording(talk):
        said = _heard(talk, whisper)
        recording = recording or talk
    elif whisper is not None:
        raise ValueError(f"--whisper transcribes a recording, but TALK is {talk}; omit --whisper, or give a recording")
    else:
        said = _said(talk, timed, time)
    price, opening = options.drop_cost(drop_x, "drop-x"), options.opening_cost(open_x, "open-x")
    found = text.find_steps(
        wanted.names,
        [s.text for s in said],
        [(s.start, s.stop) for s in said] if timed else None,
        order=wanted.order,
        optional=wanted.optional,
        drop_x=price,
        open_x=opening,
        skip=skip,
        model=model,
    )
    if kind is not None:
        name = _title(talk) if title is None else title
        where = "" if recording is None else options.address_of(recording, out, "--recording")
        screen.write(out or "-", text.write_chapters(found, kind, said, intro=intro, title=name, recording=where))
    plays = kind == "html" and timed and recording is not None and not recording.startswith(REMOTE)
    spans = [(s.start, s.stop) for s in said] if plays else []
    if (doubt := options.outlasting("the subtitles", spans, recording)) is not None:
        screen.note(doubt)
    if kind == "youtube":
        for remark in youtube_chapters(found, said, intro)[1]:
            screen.note(remark)
    if kind is None or out not in (None, "-"):
        _show(found, said, wanted)
    there, due = _counts(found)
    if 2 * there < due or not there:
        missing = f"found {there} of {due} steps" if there else "no step was found"
        screen.note(f"{missing}: these steps do not seem to be in this talk; check that STEPS and TALK belong together")
        if strict:
            raise typer.Exit(1)


def _title(talk: str) -> str:
    """The title of a talk, from the name of its file.

    >>> _title("talks/How_to-mend a tire.en.srt"), _title("-")
    ('How to-mend a tire', '')
    """
    stem = re.sub(r"\.[a-z]{2}(-\w+)?$", "", Path(talk).stem)  # yt-dlp adds the language
    return "" if talk == "-" else stem.replace("_", " ")


def _heard(recording: str, whisper: str | None) -> list[Sentence]:
    """The sentences of a recording, from a speech recognizer."""
    from dropdtw import speech, text

    if not Path(recording).is_file():
        raise FileNotFoundError(f"there is no file {recording}")
    if whisper is None:
        raise ValueError(
            f"{recording} is a recording; give its subtitles, which the publisher may have (yt-dlp "
            f"--skip-download --write-subs --write-auto-subs URL), or which whisper {recording} writes; or transcribe "
            "it here with --whisper FOLDER, a model for faster-whisper (pip install 'dropdtw[speech]')"
        )
    words = speech.transcribe(recording, whisper).words
    if not words:
        raise ValueError(f"no word was heard in {recording}; give subtitles of the talk")
    return text.sentences_of_words([text.Sentence(*word) for word in words])


def _said(place: str, timed: bool, time: str | None) -> list[Sentence]:
    """The sentences of a talk. A plain text has one per line, without times. time : the column of times in a table."""
    from dropdtw import text

    if time is not None or Path(place).suffix.lower() in (".csv", ".tsv"):
        return text.sentences(options.parsed(place, partial(text.read_table, time=time), "one sentence per row"))
    if timed:
        return text.sentences(options.parsed(place, text.read_subtitles, "subtitles"))
    lines = options.parsed(place, str.splitlines, "one sentence per line")
    said = [text.Sentence(0.0, 0.0, line.strip()) for line in lines if any(map(str.isalnum, line))]
    if not said:
        raise ValueError(f"{place} has no sentences; give one per line")
    return said


def _ordered(wanted: Steps, place: str) -> Steps:
    """The steps, with the order from a file."""
    if wanted.order is not None:
        raise ValueError(f"--order is {place}, but STEPS has blocks that set an order, too; use only one of them")
    found = options.order_of(place, wanted.names)
    return found._replace(optional=tuple(sorted({*wanted.optional, *found.optional})))


def _counts(found: list[FoundStep]) -> tuple[int, int]:
    """The number of steps found, each counted once, and the number of steps that should have been found."""
    there = {f.index for f in found if f.found}
    return len(there), len(there | {f.index for f in found if not f.left_out})


def _show(found: list[FoundStep], said: list[Sentence], wanted: Steps) -> None:
    from dropdtw.text.labels import absence, begins, clock, percent, quote, step_numbers

    rows = []
    for number, f in zip(step_numbers(found), found, strict=True):
        if f.sentences is None or f.confidence is None:
            near = f.closest and f"closest: {begins(f.closest)}, {percent(f.closest.confidence)}"
            rows.append([number, f.step, absence(f), "", "", near or ""])
            continue
        ends = [str(f.sentences[0] + 1), str(f.sentences[1])]  # if the talk has no times
        if f.start is not None and f.stop is not None:
            ends = [clock(f.start), clock(f.stop)]
        rows.append([number, f.step, *ends, percent(f.confidence), quote(f, said, 48)])
    screen.table([">#", "step", ">start", ">stop", ">confidence", "~begins with"], rows)
    there, due = _counts(found)
    print(f"{there} of {due} steps found among {len(said)} sentences")
    for line in _choices(wanted, {f.index for f in found if f.found}):
        print(one_line(line))


def _choices(wanted: Steps, there: set[int]) -> list[str]:
    """Lines that say which optional steps were left out and which alternatives were taken."""
    said = []
    absent = [wanted.names[i] for i in wanted.optional if i not in there]
    if absent:
        said.append(f"optional and not found: {'; '.join(absent)}")
    for parts in _alternatives(wanted.order):
        names = [" → ".join(wanted.names[i] for i in part.steps) for part in parts]
        taken = [name for name, part in zip(names, parts, strict=True) if there & set(part.steps)]
        said.append(f"one of {' | '.join(names)}: {' and '.join(taken) or 'none found'}")
    return said


def _alternatives(order: Any) -> Iterator[tuple[Order, ...]]:
    """The parts of each `one of` in an order."""
    if isinstance(order, Order):
        if order.kind == "one":
            yield order.parts
        for part in order.parts:
            yield from _alternatives(part)
