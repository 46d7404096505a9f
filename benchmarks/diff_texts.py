"""Measure `dropdtw retime` by subtitles, on simulated versions of the timed transcripts of YouCook2.

python benchmarks/diff_texts.py [--data FOLDER] [--talks 100] [--unrelated 300] [--seed 20]

FOLDER holds yc2_transcripts.json.gz; default: youcook2_text in DROPDTW_DATA. The constants of `dropdtw.media.words`
were fitted to the first half of the transcripts; this measures the second half. Each talk is compared with itself 3.3 s
later, which must not be split. It is also compared with a version that has cuts and breaks, and its subtitles are moved
to that version. Unrelated talks, drawn at random, should share nothing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dropdtw.media.retime import between, retime
from dropdtw.media.words import Words, diff_words
from dropdtw.text.cues import timestamp
from dropdtw.text.subtitles import Sentence

OFFSET = 3.3
TUNED = 136
"""Transcripts that constants were fitted to."""


def talks(file: Path) -> list[list[Sentence]]:
    """The held-out talks as cues."""
    found = list(json.loads(gzip.decompress(file.read_bytes())).values())[TUNED:]
    return [_cues(t["times"], t["sentences"]) for t in found if len(t["sentences"]) > 20]


def _cues(starts: list[float], texts: list[str]) -> list[Sentence]:
    stops = [min(following, start + 6) for start, following in zip(starts, [*starts[1:], starts[-1] + 3], strict=True)]
    return [Sentence(s, max(s + 0.3, e), text) for s, e, text in zip(starts, stops, texts, strict=True)]


def subrip(cues: list[Sentence]) -> str:
    """Cues as the content of a file."""
    return "".join(
        f"{n}\n{timestamp(c.start, ',')} --> {timestamp(c.stop, ',')}\n{c.text}\n\n" for n, c in enumerate(cues, 1)
    )


def later(cues: list[Sentence], by: float) -> list[Sentence]:
    """The same cues, shifted by one offset."""
    return [cue._replace(start=cue.start + by, stop=cue.stop + by) for cue in cues]


def simulated(cues: list[Sentence], rng: np.random.Generator) -> tuple[list[Sentence], list[float | None]]:
    """Another version: every 9 to 13 cues, 2 to 5 cues are cut out or a break of 5 to 40 s is put in.

    Its cues, and the shift of each old cue; None where it was cut out.
    """
    spots = [int(rng.integers(4, 8))]
    while (following := spots[-1] + int(rng.integers(9, 14))) < len(cues) - 8:
        spots.append(following)
    shift, skip = 30.0, 0
    out: list[Sentence] = []
    shifts: list[float | None] = []
    for k, cue in enumerate(cues):
        if k in spots:
            if rng.random() < 0.5:
                skip = int(rng.integers(2, 6))
                shift -= cues[k + skip].start - cue.start
            else:
                shift += rng.uniform(5, 40)
        if skip or cue.start + shift < 0:
            skip = max(0, skip - 1)
            shifts.append(None)
            continue
        shifts.append(shift)
        out.append(cue._replace(start=cue.start + shift, stop=cue.stop + shift))
    return out, shifts


class Scores(NamedTuple):
    """What became of the cues of one talk, or of several."""

    cues: int
    right: int
    split: int


def measure(cues: list[Sentence], rng: np.random.Generator) -> Scores:
    """Cues that move within 0.1 s of their true place or are rightly left out; whether one offset was split."""
    here = subrip(cues)
    other, shifts = simulated(cues, rng)
    found = retime(here, between(here, subrip(other))).times
    right = 0
    for cue, when, shift in zip(cues, found, shifts, strict=True):
        if shift is None or when is None:
            right += shift is None and when is None
        else:
            right += abs(when[0] - cue.start - shift) <= 0.1
    return Scores(len(cues), right, len(between(here, subrip(later(cues, OFFSET))).same) != 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DROPDTW_DATA", "."), "youcook2_text"))
    parser.add_argument("--talks", type=int, default=100)
    parser.add_argument("--unrelated", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    known = talks(given.data / "yc2_transcripts.json.gz")
    rng = np.random.default_rng(given.seed)
    cues, right, split = (sum(of) for of in zip(*(measure(t, rng) for t in known[: given.talks]), strict=True))
    print(f"{right} of {cues} cues are right, {100 * right / cues:.2f} %")
    print(f"{split} of {min(given.talks, len(known))} single offsets were split")
    words = [Words.of_cues(cues) for cues in known]
    drawn = [rng.choice(len(words), 2, replace=False) for _ in range(given.unrelated)]
    shares = np.array([diff_words(words[i], words[j]).common for i, j in drawn])
    print(
        f"{(shares > 0).sum()} of {len(shares)} unrelated pairs claim something in common, "
        f"{(shares >= 0.05).sum()} claim 5 % or more; the most is {100 * shares.max():.1f} %"
    )


if __name__ == "__main__":
    main()
