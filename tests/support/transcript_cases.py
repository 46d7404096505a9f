"""Timed transcripts of YouCook2, if available."""

import gzip
import json
import os
from pathlib import Path

import pytest

from dropdtw.text.subtitles import Sentence, timestamp


def held_out_talks():
    """Talks as cues; without the first half of the transcripts, which set the constants of `dropdtw.media.words`."""
    place = Path(os.environ.get("DROPDTW_DATA", "/nonexistent")) / "youcook2_text" / "yc2_transcripts.json.gz"
    if not place.exists():
        pytest.skip("the transcripts are not here: set DROPDTW_DATA to a folder with youcook2_text/")
    talks = list(json.loads(gzip.decompress(place.read_bytes())).values())[136:]
    return [_cues(t["times"], t["sentences"]) for t in talks if len(t["sentences"]) > 20]


def _cues(starts, texts):
    stops = [min(following, start + 6) for start, following in zip(starts, [*starts[1:], starts[-1] + 3], strict=True)]
    return [Sentence(s, max(s + 0.3, e), text) for s, e, text in zip(starts, stops, texts, strict=True)]


def subrip(cues):
    """Cues as the content of an .srt file."""
    return "".join(
        f"{n}\n{timestamp(c.start, ',')} --> {timestamp(c.stop, ',')}\n{c.text}\n\n" for n, c in enumerate(cues, 1)
    )
