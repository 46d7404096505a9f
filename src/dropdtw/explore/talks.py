"""Data to explore from a list of steps and a talk, or from a synthetic demo."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from dropdtw.explore.load import Data, from_costs, from_sequences
from dropdtw.files import formats, texts
from dropdtw.files.sanitize import one_line
from dropdtw.orders.blocks import read_blocks
from dropdtw.text.evidence import SKIP

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
    lines = [
        "from pathlib import Path",
        "",
        "import dropdtw",
        "from dropdtw import text",
        "from dropdtw.text.embeddings import embed",
        "from dropdtw.orders.blocks import read_blocks",
        "from dropdtw.text.find import match_costs",
        "",
        f"steps = read_blocks(Path({os.path.abspath(steps)!r}).read_text('utf-8-sig'))",
        f"cues = text.read_subtitles(Path({os.path.abspath(talk)!r}).read_text('utf-8-sig'))",
        "talk = text.sentences(cues)",
        "C = match_costs(steps.names, [s.text for s in talk], embed)",
    ]
    if wanted.order is not None:
        lines.append("order = steps.order")
    return from_costs(
        match_costs(wanted.names, [s.text for s in said], embed),
        title=f"{Path(steps).name} × {Path(talk).name}",
        lines=tuple(lines),
        names=tuple(map(one_line, wanted.names)),
        said=tuple(one_line(s.text) for s in said),
        times=tuple(s.start for s in said),
        steps=wanted if wanted.order is not None or wanted.optional else None,
        begin={"many_to_one": False, "contiguous": True},
        skip=SKIP,
        **more,
    )


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
