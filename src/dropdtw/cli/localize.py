"""`dropdtw localize`: where each step of a written procedure is talked about in subtitles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dropdtw.cli import options, screen
from dropdtw.text.evidence import SKIP

if TYPE_CHECKING:
    from dropdtw.text import FoundStep, Sentence

T = TypeVar("T")


def localize(
    steps: Annotated[
        str,
        typer.Argument(
            metavar="STEPS",
            help="A text with one step to a line; numbers and bullets are ignored.",
        ),
    ],
    talk: Annotated[
        str,
        typer.Argument(
            metavar="TALK",
            help="Subtitles: .srt, .vtt, or JSON with start, stop and text; - for stdin.",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="json, csv, srt, vtt, ffmetadata, youtube or html. Default: a table, or by the end of --out.",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Write the chapters to this file.")] = None,
    drop_x: Annotated[
        str,
        typer.Option(
            metavar="COST",
            help="What leaving out a sentence costs: a number, percentile:10, suggest, or none (every sentence belongs "
            "to a step); lower drops more.",
        ),
    ] = "suggest",
    open_x: Annotated[
        str | None,
        typer.Option(
            "--open-x",
            metavar="COST",
            help="What each run of left-out sentences costs on top: a number, or suggest; higher leaves fewer, longer "
            "gaps. Default: 0.",
        ),
    ] = None,
    skip: Annotated[
        float,
        typer.Option(
            min=0,
            help="What leaving out a step costs, in drop costs of a sentence; lower reports more steps as not found.",
        ),
    ] = SKIP,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with status 1 if most steps are missing; the output is the same.")
    ] = False,
) -> None:
    """Find where each step of a written procedure is talked about, and write chapters.

    Off-topic talk is left out, and a step that nobody talks about is reported as not found. Nothing has to be set; the
    drop costs are chosen for each talk. The confidence is the probability that the step is talked about there: of the
    steps at 70 %, about 70 % are.
    """
    from dropdtw import text
    from dropdtw.files import formats

    kind = _kind(form, out)
    if steps == talk == "-":
        raise ValueError("STEPS and TALK are both '-', but standard input can be read once; give one of them as a file")
    options.refuse_overwriting({"--out": out}, (steps, talk, drop_x))
    wanted = _parsed(steps, text.read_steps, "a step to a line")
    said = text.sentences(_parsed(talk, text.read_subtitles, "subtitles"))
    price, opening = options.drop_cost(drop_x, "drop-x"), options.opening_cost(open_x, "open-x")
    times = [(s.start, s.stop) for s in said]
    found = text.localize(wanted, [s.text for s in said], times, drop_x=price, open_x=opening, skip=skip)
    if kind is not None:
        formats.write(out or "-", text.write_chapters(found, kind))
    if kind is None or out not in (None, "-"):
        _show(found, said)
    missing = sum(not f.found for f in found)
    if 2 * missing > len(found):
        screen.note(
            f"{missing} of {len(found)} steps were not found: these steps do not seem to be in this talk; check that "
            "STEPS and TALK belong together"
        )
        if strict:
            raise typer.Exit(1)


def _kind(form: str | None, out: str | None) -> str | None:
    """The format that is to be written, None for the table alone."""
    from dropdtw.text import FORMATS

    if form is None and out is not None:
        end = Path(out).suffix.lower().lstrip(".")
        if end not in FORMATS:
            raise ValueError(f"--out is {out!r}, whose end names no format; add --format {'|'.join(FORMATS)}")
        return end
    if form is not None and form not in FORMATS:
        raise ValueError(f"--format is {form!r}; choose one of {', '.join(FORMATS)}")
    return form


def _parsed(place: str, parse: Callable[[str], T], holding: str) -> T:
    from dropdtw.files import formats

    content, shown = formats.content_of(place, holding)
    try:
        return parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"{shown} is no text in UTF-8; save it as UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from None


def _show(found: list[FoundStep], said: list[Sentence]) -> None:
    from dropdtw.text.chapters import clock

    rows = []
    for f in found:
        if f.start is None or f.stop is None or f.sentences is None:
            rows.append([str(f.index + 1), f.step, "not found", "", "", ""])
            continue
        words = said[f.sentences[0]].text
        short = words if len(words) <= 48 else f"{words[:47].rsplit(' ', 1)[0]} …"
        rows.append([str(f.index + 1), f.step, clock(f.start), clock(f.stop), f"{f.confidence:.0%}", short])
    screen.table([">#", "step", ">start", ">stop", ">sure", "~begins with"], rows)
    missing = sum(not f.found for f in found)
    print(f"{len(found) - missing} of {len(found)} steps found among {len(said)} sentences")
