"""Timed transcripts of YouCook2, if available, and subtitles as files."""

import os
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import diff_texts  # noqa: E402
from diff_texts import subrip  # noqa: E402

__all__ = ["diff_texts", "held_out_talks", "subrip"]


def held_out_talks():
    """Talks as cues, without the first half of the transcripts, which set the constants of `dropdtw.media.words`."""
    place = Path(os.environ.get("DROPDTW_DATA", "/nonexistent")) / "youcook2_text" / "yc2_transcripts.json.gz"
    if not place.exists():
        pytest.skip("the transcripts are not here: set DROPDTW_DATA to a folder with youcook2_text/")
    return diff_texts.talks(place)
