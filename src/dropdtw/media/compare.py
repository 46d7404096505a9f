"""What two recordings have in common, and what only one of them has: `diff`, and `diff_features` for any features."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy.typing as npt

from dropdtw.files.progress import Progress, Report, reporter, working
from dropdtw.media.borders import fitted, refined, with_typical_slope
from dropdtw.media.confidence import StretchEvidence, evidence, probability
from dropdtw.media.edits import NOTHING, OTHER_SPEED, Edits, Segment, Span, check_min, too_short
from dropdtw.media.features import Frames, center_of, frames_of_rows, frames_of_sound
from dropdtw.media.matching import Stretch, level, match, merged, stretches, without_overlaps
from dropdtw.media.sound import Sound, Source
from dropdtw.problem.inputs import Array, as_pair

DROP = 0.2
"""Maximum cost of dropping a frame. Two frames match where matching them costs less than dropping both."""

TIGHT = (0.08, 0.75)
"""(a, b): the second search uses the drop cost a + b · q, or that of the first search if it is lower. q is the 90th
percentile of the costs of the pairs that the first search matched, without silence."""

OPENING = 2.5
"""Extra cost of opening a run of drops: as much as dropping this many seconds."""

SURE = 0.5
"""Minimum confidence of a stretch; others are discarded."""

DRIFT = 3
"""Number of small jumps of the offset in one direction that suggests different speeds."""

UNDECIDED = "these are too short or too uniform to tell whether they have anything in common, so nothing was compared"

STRETCHED = 0.1
"""Difference in a passage's duration between the recordings, in seconds, that suggests different speeds."""


def diff(
    a: Source,
    b: Source,
    *,
    min: float = 1.0,
    speed: bool = False,
    progress: Progress = None,
) -> Edits:
    """Find which passages two recordings share, and which only one of them has.

    Parameters
    ----------
    a, b : the path of a sound or video file, or (samples, rate): samples (n,) or (n, channels).
    min : minimum duration, in seconds, of a passage or a difference in the result; shorter ones are not listed.
    speed : whether the recordings may differ in speed by a few percent.
    progress : a function called with (done, total). True shows a progress line on standard error, False shows none;
        None shows it on a terminal when the work takes longer than two seconds.

    Returns
    -------
    The `Edits`. A moved passage shows as removed in one place and inserted in another. If the recordings have nothing
    in common, or if one of them is silent or too short to compare, there is no "same" row, and a note says why.

    Raises
    ------
    FileNotFoundError : if there is no such file.
    ValueError : if a file cannot be read as sound, or if an option is invalid.
    ImportError : if PyAV is not installed; samples at 16,000 per second do not need it.

    >>> import numpy as np
    >>> from dropdtw import media
    >>> sound = np.random.default_rng(0).normal(size=16000 * 30)
    >>> jingle = np.random.default_rng(1).normal(size=16000 * 5)
    >>> longer = np.concatenate([sound[:160000], jingle, sound[160000:]])
    >>> print(media.diff((sound, 16000), (longer, 16000)))
    same    0:00.000–0:10.000  0:00.000–0:10.000  100 %
    only B                     0:10.000–0:15.000  100 %
    same    0:10.000–0:30.000  0:15.000–0:35.000  100 %
    """
    check_min(min)
    sounds = Sound(a, "A"), Sound(b, "B")
    A, B = (_read(sound, progress) for sound in sounds)
    notes = [note for sound in sounds for note in sound.notes]
    if A is None or B is None:
        silent = [sound.name for sound, frames in zip(sounds, (A, B), strict=True) if frames is None]
        which = "A and B are" if len(silent) == 2 else f"{silent[0]} is"
        notes.append(f"{which} silent or too short, so the recordings were not compared")
        return Edits.uncompared((sounds[0].seconds, sounds[1].seconds), notes)
    found = _edits(A, B, min, speed, DROP, OPENING, progress)
    return replace(found, notes=(*notes, *found.notes))


def diff_features(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    fps: float,
    *,
    min: float = 1.0,
    speed: bool = False,
    drop: float = DROP,
    opening: float = OPENING,
    progress: Progress = None,
) -> Edits:
    """Find which passages two sequences of feature vectors share, and which only one of them has.

    Each frame is scaled to length 1, the mean of all scaled frames of A and B is subtracted, and the results are
    compared by cosine. So neither the norm of a frame nor an offset common to all scaled frames matters. There is one
    search, without refinement, so borders fall on whole frames. The confidence was calibrated on sound, not on other
    features.

    Parameters
    ----------
    A, B : (n, d) and (m, d) with d ≥ 2, one row for each frame; frames of zeros count as silence.
    fps : frames per second; 1 counts frames instead of seconds.
    min, speed, progress : as in `diff`.
    drop : the cost of dropping a frame. A match saves two drops, so two frames match if 1 − cosine < 2 · drop.
    opening : the extra cost of each run of drops, in seconds: 2.5 is the cost of dropping 2.5 seconds.

    Returns
    -------
    The `Edits`, with times in seconds (in frames if `fps` is 1).

    Raises
    ------
    ValueError : if a sequence or an option is invalid.

    >>> import numpy as np
    >>> from dropdtw import media
    >>> A = np.random.default_rng(0).normal(size=(300, 16))
    >>> B = np.delete(A, range(100, 150), axis=0)
    >>> print(media.diff_features(A, B, fps=10))
    same    0:00.000–0:10.000  0:00.000–0:10.000  100 %
    only A  0:10.000–0:15.000                     100 %
    same    0:15.000–0:30.000  0:10.000–0:25.000  100 %
    """
    check_min(min)
    for name, value in (("fps", fps), ("drop", drop)):
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}; give a number above 0")
    if not (isfinite(opening) and opening >= 0):
        raise ValueError(f"opening is {opening!r}; give a number of seconds ≥ 0")
    Z, X = as_pair(A, B)
    if Z.shape[1] == 1:
        raise ValueError("A and B have one feature per row, which cannot tell passages apart; give at least two")
    center = center_of(Z, X)
    frames = frames_of_rows(Z, fps, center), frames_of_rows(X, fps, center)
    return _edits(*frames, min, speed, drop, opening, progress)


def _read(sound: Sound, progress: Progress) -> Frames | None:
    with working(f"reading {sound.name}", progress):
        return frames_of_sound(sound.blocks())


def _edits(A: Frames, B: Frames, least: float, speed: bool, drop: float, opening: float, progress: Progress) -> Edits:
    """The full pipeline from frames to the result; `least` is the minimum duration of its rows."""
    durations = (A.seconds, B.seconds)
    if (note := too_short(durations, least)) is not None:
        return Edits.uncompared(durations, [note])
    fine = A.per > 1
    pairs = _matched(A, B, speed, drop, opening, reporter("diff", progress), tightened=fine)
    runs = stretches(pairs, A.per, speed)
    runs = merged(runs, gap=least * A.rate, shift=A.per)
    runs = [run for run in runs if run.length >= least * A.rate]
    runs = merged(runs, gap=least * A.rate, shift=A.per)  # bridge discarded short stretches
    if fine:
        runs = [fitted(A, B, run) for run in runs]
        runs = with_typical_slope(A, B, runs) if speed else runs
    proposed = [(run, evidence(A, B, run)) for run in runs]
    found = [(run, known) for run, known in proposed if probability(known) >= SURE]
    runs = [run for run, _ in found]
    if fine:
        runs = refined(A, B, runs, [known for _, known in found])
    runs = without_overlaps(runs)
    known = [evidence(A, B, run) for run in runs]
    rows = [_segment(run, probability(e), A.rate, durations, speed) for run, e in zip(runs, known, strict=True)]
    rows = [row for row in rows if row.duration >= least]
    if not rows and _undecided(A, B, proposed):
        return Edits.uncompared(durations, [UNDECIDED])
    edits = Edits.of_same(rows, durations, min=least, notes=_notes(rows, least, speed))
    if not rows:
        doubt = max([0.0, *(probability(known) for _, known in proposed)])
        return replace(edits, segments=tuple(replace(s, confidence=1 - doubt) for s in edits.segments))
    return edits


def _undecided(A: Frames, B: Frames, proposed: list[tuple[Stretch, StretchEvidence]]) -> bool:
    """Whether not even a perfect match could have been found.

    proposed : the runs that the search found, with their evidence.
    """
    shorter = min(len(A.fine), len(B.fine))
    heard = min(float((~frames.quiet).sum()) / frames.rate for frames in (A, B))
    return probability(StretchEvidence(0.0, 1.0, heard)) < SURE or any(
        2 * run.length >= shorter and probability(known._replace(cost=0.0)) < SURE for run, known in proposed
    )


def _matched(
    A: Frames, B: Frames, speed: bool, drop: float, opening: float, report: Report, *, tightened: bool
) -> Array:
    """The matched pairs of frames. With `tightened`, they come from a second search, which may have a lower drop cost.

    The first search shows how closely the recordings match. If they match closely, a lower drop cost separates a
    passage of music from the same tune played again, or from another tune at the same tempo.
    """

    def search(drop: float, number: int) -> Array:
        price, searches = opening * drop * A.rate / A.per, 1 + tightened

        def overall(done: int, total: int) -> None:
            report(number * total + done, searches * total)

        return match(A, B, drop=drop, opening=price, speed=speed, report=overall)

    pairs = search(drop, 0)
    if not tightened:
        return pairs
    tight = TIGHT[0] + TIGHT[1] * level(A, B, pairs, 0.9)
    return search(min(drop, tight), 1)


def _segment(run: Stretch, sure: float, rate: float, durations: tuple[float, float], speed: bool) -> Segment:
    a, b = ((start / rate, min(stop / rate, end)) for start, stop, end in _ends(run, durations))
    return Segment("same", a, b, sure, 1 / run.slope if speed else None)


def _ends(run: Stretch, durations: tuple[float, float]) -> list[tuple[float, float, float]]:
    return [(max(run.a, 0.0), run.a_stop, durations[0]), (max(run.b, 0.0), run.b_stop, durations[1])]


def _notes(rows: list[Segment], least: float, speed: bool) -> list[str]:
    if not rows:
        return [NOTHING]
    jumps = [gap_b - gap_a for gap_a, gap_b in map(_gaps, rows, rows[1:]) if max(gap_a, gap_b) < least]
    stretched = any(abs(b[1] - b[0] - a[1] + a[0]) > STRETCHED for a, b in map(_spans, rows))
    if not speed and (stretched or max(sum(jump > 0 for jump in jumps), sum(jump < 0 for jump in jumps)) >= DRIFT):
        return [f"the offset drifts: the recordings seem to run at different speeds; {OTHER_SPEED}"]
    return []


def _gaps(before: Segment, after: Segment) -> tuple[float, float]:
    """Seconds between two passages, in A and in B."""
    (a, b), (a_next, b_next) = _spans(before), _spans(after)
    return a_next[0] - a[1], b_next[0] - b[1]


def _spans(row: Segment) -> tuple[Span, Span]:
    assert row.a is not None
    assert row.b is not None
    return row.a, row.b
