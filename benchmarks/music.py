"""Which played note is which note of the score: compared with parangonar.

python benchmarks/music.py DIR                       # all match files 1.0.0 in DIR, such as those of Vienna 4x22
python benchmarks/music.py DIR --names '*_p0[1-5]'   # five performances of each excerpt

Both get the same notes, of two voices in unison one, and are compared with the same truth: ours with its default
constants (`Constants` in `reproduction/music/matching.py`), parangonar's DualDTWNoteMatcher with its default settings
and without trill signs. Times are those of matching. Run it with PYTHONPATH=. in the environment of `make bench`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fnmatch import fnmatch

import numpy as np
import parangonar

from dropdtw.problem.inputs import Array
from reproduction.data import match
from reproduction.data.match import Performance
from reproduction.music.matching import Constants, matched
from reproduction.music.notes import Notes
from reproduction.music.scores import KINDS, Counts

SCORE = [("onset_beat", "f4"), ("pitch", "i4"), ("is_grace", "?"), ("id", "U16")]
PLAYED = [("onset_sec", "f4"), ("pitch", "i4"), ("velocity", "i4"), ("id", "U16")]


def ours(p: Performance) -> Array:
    """Pairs of rows of the performance."""
    notes = Notes.sort(p)
    return notes.rows(matched(notes, Constants()))


def theirs(p: Performance) -> Array:
    """The same by parangonar, whose notes are sorted by time and pitch."""
    notes = Notes.sort(p)
    z = notes.score[np.lexsort((notes.pitch, p.onset[notes.score]))]
    score, played = np.empty(len(z), SCORE), np.empty(len(p.key), PLAYED)
    for (name, _), column in zip(SCORE, (p.onset[z], p.pitch[z], p.grace[z], z), strict=True):
        score[name] = column
    x = notes.played
    for (name, _), column in zip(PLAYED, (p.time[x], p.key[x], p.velocity[x], x), strict=True):
        played[name] = column
    found = parangonar.DualDTWNoteMatcher()(score, played)
    pairs = [(int(each["score_id"]), int(each["performance_id"])) for each in found if each["label"] == "match"]
    return np.array(pairs, np.int64).reshape(-1, 2)


def main() -> None:
    """Print a line for each of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder of match files 1.0.0")
    parser.add_argument("--names", default="*", help="pattern of the names of files, without .match")
    asked = parser.parse_args()
    performances = [p for p in match.load(asked.folder) if fnmatch(p.name, asked.names)]
    if not performances:
        parser.error(f"no match file in {asked.folder} has a name like {asked.names!r}; choose another --names")
    notes = sum(len(p.pitch) for p in performances)
    print(f"{len(performances)} performances, {notes:,} score notes; F1 in %")
    matchers: dict[str, Callable[[Performance], Array]] = {
        "dropdtw": ours,
        f"parangonar {parangonar.__version__}, DualDTW": theirs,
    }
    for name, matcher in matchers.items():
        matcher(performances[0])  # what is compiled on first use
        start = time.perf_counter()
        found = [matcher(p) for p in performances]
        seconds = time.perf_counter() - start
        scores = Counts.sum(Counts.of(p, pairs) for p, pairs in zip(performances, found, strict=True)).f1()
        shown = ", ".join(f"{kind} {100 * value:.2f}" for kind, value in zip(KINDS, scores, strict=True))
        print(f"{name}: {shown}; {1000 * seconds / notes:.2f} s per 1,000 notes")


if __name__ == "__main__":
    main()
