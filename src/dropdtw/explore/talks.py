"""Data to explore from a list of steps and a talk, or from a synthetic demo."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dropdtw import drops
from dropdtw.explore.load import Data, from_costs, from_sequences
from dropdtw.explore.settings import Choice, PageSettings
from dropdtw.files import formats, texts
from dropdtw.files.sanitize import one_line
from dropdtw.orders.blocks import read_blocks
from dropdtw.results.alignment import Alignment
from dropdtw.text.evidence import SKIP
from dropdtw.text.find import FoundStep, least_confidence, located

TALKS: Final = (".srt", ".vtt", ".sbv")
"""File extensions of subtitles."""

JUNK, DONE = (9, 8, 16, 7, 10), (14, 6, 12, 14)
"""Frames in the demo: of junk before, between and after the steps, and of each step."""

FEATURES = 48
"""Features of a frame of the demo, enough to tell steps and junk apart clearly."""


def read_talk(steps: str, talk: str, **more: Any) -> Data:
    """Load a file with one step per line, and subtitles in which to find the steps. Needs the extra `text`."""
    from dropdtw import text
    from dropdtw.text.embeddings import embed
    from dropdtw.text.find import match_costs

    wanted = _parsed(steps, read_blocks)
    said = text.sentences(_parsed(talk, text.read_subtitles))
    blocks = wanted.order is not None or bool(wanted.optional)
    paths = [f"Path({os.path.abspath(place)!r}).read_text('utf-8-sig')" for place in (steps, talk)]
    reading = [
        "from pathlib import Path",
        "",
        f"from dropdtw import {'orders, ' if blocks else ''}text",
        "",
        f"steps = {'orders.parse_steps' if blocks else 'text.read_steps'}({paths[0]})",
        f"talk = text.sentences(text.read_subtitles({paths[1]}))",
    ]
    costs = ["from dropdtw.text.embeddings import embed", "from dropdtw.text.find import match_costs"]
    lines = [*reading[:2], "import dropdtw", *reading[2:3], *costs, *reading[3:]]
    lines.append(f"C = match_costs(steps{'.names' if blocks else ''}, [s.text for s in talk], embed)")
    if wanted.order is not None:
        lines.append("order = steps.order")
    return from_costs(
        match_costs(wanted.names, [s.text for s in said], embed),
        title=f"{Path(steps).name} × {Path(talk).name}",
        lines=tuple(lines),
        reading=tuple(reading),
        names=tuple(map(one_line, wanted.names)),
        said=tuple(one_line(s.text) for s in said),
        times=tuple(s.start for s in said),
        stops=tuple(s.stop for s in said),
        steps=wanted if blocks else None,
        begin={"many_to_one": False, "contiguous": True},
        skip=SKIP,
        **more,
    )


def as_skip(settings: PageSettings, data: Data) -> float | None:
    """The `skip` of `find_steps` that stands for the costs of skipping a step; ValueError if none does."""
    x, z = settings.drop_x, settings.drop_z
    if z.kind == "none":
        return None
    rule = drops.resolve(x.option(None), "drop_x")
    price = 0.0 if rule is None or data.C is None else float(np.mean(np.asarray(rule(data.C))))
    if z.kind != "constant" or not price > 0 or z.value < 0:
        raise ValueError("the cost of skipping a step is no multiple of that of dropping a sentence")
    found = (float(f"{z.value / price:.{digits}g}") for digits in range(1, 17))
    return next((skip for skip in found if f"{skip * price:.4g}" == f"{z.value:.4g}"), z.value / price)


def chapters(settings: PageSettings, data: Data, a: Alignment) -> list[FoundStep]:
    """The steps that an alignment finds, as `find_steps` returns them for the same costs."""
    try:
        floor = least_confidence(as_skip(settings, data))
    except ValueError:
        floor = 0.0
    steps, spans = data.steps, np.column_stack([data.times, data.stops])
    assert data.C is not None
    found = located(data.C, a, data.names, spans, optional=steps.optional if steps else (), floor=floor)
    return found if steps and steps.order is not None else sorted(found, key=lambda f: f.index)


def code(settings: PageSettings, data: Data) -> str | None:
    """Code that finds the steps by `find_steps`; None if it cannot be told these settings."""
    plain = replace(
        settings, drop_x=Choice(), drop_z=Choice(), open_x=0.0, gamma=None, many_to_one=False, contiguous=True
    )
    found = (settings.many_to_one, settings.contiguous, settings.drop_x.kind in ("constant", "percentile"))
    if plain != PageSettings(many_to_one=False, contiguous=True) or found != (False, True, True):
        return None
    try:
        skip = as_skip(settings, data)
    except ValueError:
        return None
    given = {
        "order": "steps.order" if data.steps and data.steps.order is not None else None,
        "optional": "steps.optional" if data.steps and data.steps.optional else None,
        "drop_x": repr(settings.drop_x.option(None)),
        "open_x": repr(settings.open_x) if settings.open_x else None,
        "skip": repr(skip) if skip != SKIP else None,
    }
    names = "steps.names" if data.steps else "steps"
    lines = [
        *data.reading,
        "found = text.find_steps(",
        f"    {names}, [s.text for s in talk], [(s.start, s.stop) for s in talk],",
        f"    {', '.join(f'{name}={value}' for name, value in given.items() if value is not None)},",
        ")",
        'print(text.write_chapters(found, "youtube", talk))',
        "",
    ]
    return "\n".join(lines)


def demo() -> Data:
    """Five steps and a recording of four of them with junk in between, to try the explorer without files."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(5, FEATURES))
    lengths = [n for both in zip(JUNK, (*DONE, 0), strict=True) for n in both]
    truth = np.repeat([-1, 0, -1, 1, -1, 2, -1, 3, -1, 4], lengths)
    noise = rng.normal(size=(len(truth), FEATURES))
    X = np.where(truth[:, None] >= 0, Z[truth] + 0.7 * noise, noise)
    return from_sequences(
        Z,
        X,
        title="demo",
        lines=("import dropdtw", "from dropdtw.explore import talks", "", "Z, X = talks.demo().Z, talks.demo().X"),
        truth=truth,
        fps=10.0,
        names=("take the wheel off", "pull out the tube", "find the hole", "glue on a patch", "oil the chain"),
        begin={"many_to_one": False, "contiguous": True},
        skip=SKIP,
    )


def read_names(place: str, K: int) -> tuple[str, ...]:
    """Read the names of the K elements of Z, one per line."""
    names = tuple(one_line(line.strip()) for line in _parsed(place, str.splitlines) if line.strip())
    if len(names) != K:
        raise ValueError(f"{place} has {len(names)} names; give one line for each of the {K} elements of Z")
    return names


def _parsed(place: str, parse: Any) -> Any:
    content, shown = formats.content_of(place, "text")
    try:
        return parse(texts.decoded(content, shown))
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from None
