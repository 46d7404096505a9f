"""`dropdtw align`: align two sequences from files, and show or write the result."""

from __future__ import annotations

from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dropdtw.cli import options, pictures, screen
from dropdtw.cli.flags import FILE, Flags, of_alignment, suggests
from dropdtw.problem.options import SequenceOptions

if TYPE_CHECKING:
    from dropdtw.results.alignment import Alignment

SPOKEN = (".srt", ".vtt", ".sbv", ".json")
"""Extensions of subtitles and transcripts, which --text and --letters read without numbers and times."""
SHOWN = 20
"""Maximum number of segments listed on screen."""


@of_alignment(
    SequenceOptions,
    drop_x=f"{FILE}Default: suggest; none if --drop-z is given.",
    drop_z="Default: none; for needleman_wunsch and smith_waterman, suggest unless --drop-x is given.",
)
def align(
    z: Annotated[
        str,
        typer.Argument(metavar="Z", help="The query or the steps: .npy, .npz, .csv, .parquet, .jsonl …; - for stdin."),
    ],
    x: Annotated[str, typer.Argument(metavar="X", help="The signal or the frames, in which junk is dropped.")],
    *,
    flags: Flags,
    order: options.OrderFile = None,
    header: options.Header = None,
    fps: options.Fps = None,
    time: options.Time = None,
    missing: options.Missing = None,
    text: Annotated[
        bool,
        typer.Option(
            "--text", help="Z and X are texts or subtitles: align their words, and print one text above the other."
        ),
    ] = False,
    letters: Annotated[
        bool, typer.Option("--letters", help="Align the letters of two texts, without white space, instead of words.")
    ] = False,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write to a .json, .csv or .npz file; - for JSON on stdout.")
    ] = None,
    costs: Annotated[
        bool | None,
        typer.Option(
            help="Also write match and drop costs, in a .json or .npz file. Default: only in .npz, and only up to 16 "
            "million match costs."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the alignment to a .png, .svg or .pdf file.")] = None,
) -> None:
    """Align two sequences: show which elements match, which are dropped, and where each element of Z lies in X.

    Without --drop-x and --drop-z, a drop cost is suggested from the match costs, if the method has drop costs. To drop
    nothing, give --drop-x none.

    With --text or --letters, every dropped or replaced word or letter costs 1 (edit distance), unless you give a drop
    cost, a match cost or a method.
    """
    import dropdtw
    from dropdtw.files import formats
    from dropdtw.results.text import NARROWEST
    from dropdtw.tables.methods import METHODS, Matching

    options.refuse_one_stream(Z=z, X=x, _order=order)
    options.check_clock(fps, time)
    kind = options.kind_of_output(out, tuple(formats.WRITERS), "alignments")
    if costs and kind == ".csv":
        raise ValueError(f"--out is {out!r}, but a .csv file has no place for --costs; give a .json or .npz file")
    if plot:
        pictures.check(plot)
    options.refuse_overwriting({"--out": out, "--plot": plot}, (z, x, *flags.files, order))
    how = flags.parsed()
    Z: Any
    X: Any
    if symbols := text or letters:
        if given := [name for name, value in {"header": header, "fps": fps, "time": time}.items() if value is not None]:
            raise ValueError(f"--{given[0]} is for sequences of numbers; leave it out, or leave out --text")
        (Z, X), times = [_symbols(place, letters) for place in (z, x)], None
    else:
        Z, X, times = formats.read_pair(z, x, header=header, time=time, **options.holes(missing))
    steps = None if order is None else options.order_of(order, len(Z))
    if symbols and flags.drop_nothing and (how["match"], how["method"]) == ("auto", "drop_dtw"):
        how |= {"method": "needleman_wunsch", "drop_x": 1.0, "drop_z": 1.0}
    elif flags.drop_nothing:
        how |= {"drop_x": "suggest", "drop_z": "suggest" if METHODS[how["method"]].one_to_one else None}
    drops = [name for name in ("drop_x", "drop_z") if suggests(how[name])]
    if drops:
        alike = {name: how[name] for name in ("match", "method", "window", *Matching._fields)}
        pair = (Z, X) if symbols else map(options.complete, (Z, X))
        found = dropdtw.suggest_drop(*pair, drop_z=how["drop_z"] is not None, **alike)
        how |= dict.fromkeys(drops, found.constant)
        screen.note(
            f"drop cost {found.constant:.4g} suggested ({found.rule}, confidence {found.confidence:.0%}): {found.why}"
        )
    if steps is not None:
        how |= {"order": steps.order, "drop_z": options.with_optional(how["drop_z"], steps.optional, len(Z))}
    a = dropdtw.align(Z, X, times=times, fps=fps, missing=missing, **how)
    for side in ("x", "z"):
        if how[f"open_{side}"] == "suggest":
            opening = getattr(a.solved().given.charges, f"open_{side}")
            why = "high enough that" if opening else "with these drop costs,"
            screen.note(
                f"opening cost {opening:.4g} suggested for {side}: {why} chance matches do not split a run of drops"
            )
    if out:
        screen.write(out, formats.alignment_content(a, kind, costs=costs))
    if plot:
        pictures.save(a.plot(), plot)
    if out != "-" and symbols:
        print(a.text(width=max(NARROWEST, get_terminal_size().columns)))
    elif out != "-":
        _show(a)


def _symbols(place: str, letters: bool) -> list[str]:
    """The words or letters of a file: a text, or subtitles and transcripts, of which only what is said counts."""
    from dropdtw.files import formats
    from dropdtw.text.subtitles import read_subtitles

    if not place.lower().endswith(SPOKEN):
        return formats.read_symbols(place, letters=letters)
    words = " ".join(cue.text for cue in options.parsed(place, read_subtitles, "subtitles")).split()
    return list("".join(words)) if letters else words


def _show(a: Alignment) -> None:
    K, N = a.shape
    print(
        f"{a.method}, {a.match} costs: {K} z with {N} x, cost {a.cost:.6g}, {len(a.pairs)} pairs, "
        f"{int(a.dropped_z.sum())} z and {int(a.dropped_x.sum())} x dropped{_runs(a)}"
    )
    segments = a.segments()
    if a.walked is not None:  # the steps have an order: list them as they were done
        segments.sort(key=lambda s: (s.start, s.stop))
    rows = [[*map(str, (s.label, s.start, s.stop, s.length)), *screen.times(s)] for s in segments[:SHOWN]]
    screen.table([">z", ">start", ">stop", ">length", *screen.time_columns(segments)], rows)
    if len(segments) > SHOWN:
        print(f"… and {len(segments) - SHOWN} more; --out writes them all")


def _runs(a: Alignment) -> str:
    """The number of runs of drops, for the sides that have an opening cost, as the end of a sentence."""
    charges = a.solved().given.charges
    counts = {side: int(getattr(a.charged, f"open_{side}")) for side in "zx" if getattr(charges, f"open_{side}")}
    if len(counts) == 2:
        return f", in {_count(counts['z'])} of z and {counts['x']} of x"
    return "".join(f", in {_count(n)}" + (" of z" if side == "z" else "") for side, n in counts.items())


def _count(runs: int) -> str:
    return f"{runs} run{'' if runs == 1 else 's'}"
