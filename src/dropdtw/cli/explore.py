"""`dropdtw explore`: serve a local page that realigns while you move its sliders."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dropdtw.cli import options, screen
from dropdtw.cli.flags import Flags, of_alignment


@of_alignment(("open_x", "open_z", "warp", "match"))
def explore(
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="Z",
            help="The query or the steps: numbers, or a text file with one step per line. An .npz that holds Z and X, "
            "or C, needs no second file (`dropdtw align --out a.npz` writes one).",
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(metavar="X", help="The signal or the frames; if Z is a text, subtitles (.srt, .vtt, .sbv)."),
    ] = None,
    drop_x: Annotated[
        str | None,
        typer.Option(
            "--drop-x",
            metavar="COST",
            help="Initial cost of dropping an element of X: a number, percentile:30, suggest (choose it from the "
            "data), or none (drop nothing). Default: none if --drop-z is given; otherwise as stored in an "
            "alignment (.npz, or .json with costs), or suggest.",
        ),
    ] = None,
    drop_z: Annotated[
        str | None,
        typer.Option(
            "--drop-z",
            metavar="COST",
            help="The same for elements of Z. Default: none if --drop-x is given, otherwise the cost stored in an "
            "alignment. Without one: suggest for talks, the demo, needleman_wunsch and smith_waterman, else none.",
        ),
    ] = None,
    *,
    flags: Flags,
    method: Annotated[
        str | None,
        typer.Option("--method", help="Initial method. Default: as stored in the .npz or .json, or drop_dtw."),
    ] = None,
    order: options.OrderFile = None,
    settings: Annotated[
        str | None,
        typer.Option(
            "--settings",
            metavar="FILE",
            help="Initial options as JSON, as the page and Aligner.to_dict write them; flags override them.",
        ),
    ] = None,
    header: options.Header = None,
    truth: Annotated[
        str | None, typer.Option(help="A file with the true z of each x (-1: none), to compare with.")
    ] = None,
    fps: options.Fps = None,
    time: options.Time = None,
    missing: options.Missing = None,
    names: Annotated[str | None, typer.Option(help="A file with the names of the elements of Z, one per line.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Explore made-up data; needs no files.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve on; 0 picks a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser, or only print the address.")
    ] = True,
) -> None:
    """Explore an alignment in the browser: move a slider, and see what is matched, what is dropped, and why.

    The page is served on this machine only, at an address that contains a secret. Press Ctrl-C to stop.
    """
    from dataclasses import replace

    from dropdtw.explore import talks
    from dropdtw.explore.load import NO_STREAM
    from dropdtw.explore.order import with_order
    from dropdtw.explore.server import serve
    from dropdtw.explore.session import Session

    if order == "-":
        raise ValueError(NO_STREAM)
    options.holes(missing)  # raises if it is neither drop nor omitted
    numbers = {"fps": fps, "header": header, "time": time, "missing": missing}
    options.check_clock(fps, time)
    data = _data(first, second, demo, truth, numbers)
    if names is not None:
        data = replace(data, names=talks.read_names(names, data.shape[0]))
    if order is not None:
        data = with_order(data, options.order_of(order, data.shape[0]), order)
    session = Session(data)
    charges = flags.parsed()
    begin = None if (match := charges.pop("match")) == "auto" else match
    if settings is not None:
        said = _said(drop_x, drop_z) | _named(match=begin, method=method)
        session.first = session.opened(options.stored_aligner(settings).replace(**said))
    elif begin or method or drop_x or drop_z:
        session.first = _first(session, begin, method, drop_x, drop_z)
    if any(charges.values()):
        session.first = _charged(session, charges)

    def opened(address: str) -> None:
        print(address, flush=True)
        if browser:
            import webbrowser

            webbrowser.open(address)
        screen.note(f"{'opened in the browser' if browser else 'open this address in a browser'}; press Ctrl-C to stop")

    serve(session, port, opened=opened)


def _data(first: str | None, second: str | None, demo: bool, truth: str | None, numbers: dict[str, Any]) -> Any:
    """The data to explore: the demo, steps and a talk, or files of numbers.

    numbers : the options that only files of numbers have.
    """
    from pathlib import Path

    from dropdtw.explore import load, talks

    talk = second is not None and Path(second).suffix.lower() in talks.TALKS
    if demo and first is not None:
        raise ValueError(f"--demo brings its own data, but Z is {first}; give only one of them")
    if not demo and first is None:
        raise ValueError("there is nothing to explore; give Z and X, steps and a talk, or --demo")
    if demo or talk:
        for name, value in {**numbers, "truth": truth if demo else None}.items():
            if value is not None:
                owner = "the demo" if demo else "a talk"
                raise ValueError(f"--{name} is for files of numbers; omit it, since {owner} does not need it")
    if demo:
        return talks.demo()
    assert first is not None
    if talk:
        assert second is not None
        return talks.read_talk(first, second, **({} if truth is None else {"truth": load.read_truth(truth)}))
    return load.read(first, second, truth=truth, **numbers)


def _first(session: Any, match: str | None, method: str | None, drop_x: str | None, drop_z: str | None) -> Any:
    """The initial settings, from the options."""
    from dataclasses import replace

    from dropdtw.explore.settings import Choice

    if match and session.data.Z is None:
        raise ValueError(f"--match is {match!r}, but only match costs were given; omit it, or give Z and X")
    begin = session.opening(match, method)
    if drop_x is None and drop_z is None:
        return begin
    asked = {"drop_x": None, "drop_z": None} | _said(drop_x, drop_z)
    return replace(
        begin,
        **{
            side: begin.drop_x if isinstance(cost, str) and cost == "suggest" else Choice.of(side, cost)
            for side, cost in asked.items()
        },
    )


def _charged(session: Any, asked: dict[str, Any]) -> Any:
    """The initial settings with opening costs and warp. Raises if the method has none, since the page hides them."""
    from dataclasses import replace

    asked = {name: cost for name, cost in asked.items() if cost}
    session.aligner(session.first).replace(**asked)
    if "suggest" in asked.values():
        found = session.suggest_opening(session.first)
        asked = {name: found[name] if cost == "suggest" else cost for name, cost in asked.items()}
    return replace(session.first, **asked)


def _said(drop_x: str | None, drop_z: str | None) -> dict[str, Any]:
    """The drop costs that were given as flags."""
    given = _named(drop_x=drop_x, drop_z=drop_z)
    return {side: options.drop_cost(text, side.replace("_", "-")) for side, text in given.items()}


def _named(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
