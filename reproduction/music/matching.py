"""Match the notes of a score to those of a performance, by alignments with drops on both sides.

1. `rough`: a list of chords, each of which takes the played notes of its pitches. It divides the piece into sections.
2. `by_pitch`: in each section, the score is a list of chords whose notes come in any order; only equal pitches match.
3. `by_time`: a match costs its distance from the time expected after 2. Only notes of equal pitch are ordered, so this
   is one alignment per pitch. It runs twice.
4. `trills`: a note with a trill sign takes the first note of its trill, which may be the upper one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

import dropdtw
from dropdtw import orders
from dropdtw.problem.inputs import Array
from reproduction.music.notes import Notes
from reproduction.music.tempo import expected

SECTION: Final = 64
"""The least number of score notes in a section."""
SURE: Final = 3
"""Events on each side of a border between sections that must be played exactly."""
TOGETHER: Final = 9
"""More notes of a chord than this are ordered from low to high, in groups: the graph of any order grows as 2ⁿ."""
EARLY: Final = 0.3
"""Cost of a trill that begins too early, relative to one that begins too late."""
UPPER: Final = 0.05
"""Cost of a trill that begins with its upper note, relative to a drop."""
PASSES: Final = 2


@dataclass(frozen=True)
class Constants:
    """What is chosen on data.

    seconds : a match this far from its expected time costs as much as a drop.   reach : events on each side that say
    what time is expected.   soft : dropping a played note of this velocity costs half a drop; louder ones cost more.
    """

    seconds: float = 1.0
    reach: int = 4
    soft: float = 4.0


def matched(notes: Notes, constants: Constants, first: Array | None = None) -> Array:
    """Pairs of (z, x). first : pairs of `by_pitch`, if they are known."""
    pairs = by_pitch(notes) if first is None else first
    for _ in range(PASSES):
        if not len(pairs):
            return pairs
        times = expected(notes, pairs, constants.reach)[notes.event]
        pairs = by_time(notes, times, constants)
    return trills(notes, pairs, times, constants) if notes.trill.any() else pairs


def as_list(notes: Notes) -> Array:
    """The baseline: a score is a list of notes, and only equal pitches match."""
    return _one_to_one(np.where(notes.pitch[:, None] == notes.key, 0.0, np.inf)).pairs


def by_pitch(notes: Notes) -> Array:
    """Match equal pitches; the notes of a chord come in any order."""
    found = [np.empty((0, 2), np.int64)]
    borders = [(0, 0), *sections(notes, rough(notes)), (len(notes.pitch), len(notes.key))]
    for (a, b), (c, d) in pairwise(borders):
        if a < c and b < d:
            C = np.where(notes.pitch[a:c, None] == notes.key[b:d], 0.0, np.inf)
            found.append(_one_to_one(C, order=chords(notes.event[a:c])).pairs + np.array([a, b]))
    return np.concatenate(found)


def chords(event: Array) -> list[Any]:
    """A list of events as an order: the notes of each come in any order."""
    parts: list[Any] = []
    for whole in np.split(np.arange(len(event)), np.flatnonzero(np.diff(event)) + 1):
        groups = np.array_split(whole, -(-len(whole) // TOGETHER))
        parts += [orders.any_order(*rows.tolist()) if len(rows) > 1 else int(rows[0]) for rows in groups]
    return parts


def rough(notes: Notes) -> Array:
    """Pairs of (event, x): an event takes played notes of its pitches."""
    has = np.zeros((len(notes.onset), 128), bool)
    has[notes.event, notes.pitch] = True
    C = np.where(has[:, notes.key], 0.0, np.inf)
    return dropdtw.solve(C, 1.0, notes.size.astype(float), many_to_one=False).pairs


def sections(notes: Notes, pairs: Array) -> list[tuple[int, int]]:
    """Where the piece can be divided, as (z, x): between events that were all played exactly, one after another."""
    event, x = pairs.T
    count = np.bincount(event, minlength=len(notes.onset))
    first, last = np.zeros_like(count), np.full_like(count, -2)
    first[event[::-1]], last[event] = x[::-1], x
    exact = (count == notes.size) & (last - first + 1 == count)
    joined = np.r_[False, exact[1:] & exact[:-1] & (first[1:] == last[:-1] + 1)]
    gaps = np.cumsum(~joined)
    found: list[tuple[int, int]] = []
    for k in range(SURE, len(exact) - SURE):
        begins = int(notes.first[k])
        if gaps[k - SURE] == gaps[k + SURE] and begins - (found[-1][0] if found else 0) >= SECTION:
            found.append((begins, int(first[k])))
    return found


def by_time(notes: Notes, times: Array, constants: Constants) -> Array:
    """Match the notes of each pitch by time. times : expected of each z."""
    drop_x = _loudness(notes, constants)
    found = [np.empty((0, 2), np.int64)]
    for pitch in np.intersect1d(notes.pitch, notes.key):
        z, x = np.flatnonzero(notes.pitch == pitch), np.flatnonzero(notes.key == pitch)
        C = np.abs(times[z][:, None] - notes.time[x]) / constants.seconds
        pairs = _one_to_one(C, drop_x[x]).pairs
        found.append(np.stack([z[pairs[:, 0]], x[pairs[:, 1]]], axis=1))
    return np.concatenate(found)


def trills(notes: Notes, pairs: Array, times: Array, constants: Constants) -> Array:
    """Match notes with a trill sign anew, to what the other matches leave."""
    kept = pairs[~notes.trill[pairs[:, 0]]]
    z, x = np.flatnonzero(notes.trill), np.setdiff1d(np.arange(len(notes.key)), kept[:, 1])
    z = z[np.argsort(times[z], kind="stable")]
    late = (notes.time[x] - times[z][:, None]) / constants.seconds
    above = notes.key[x] - notes.pitch[z][:, None]
    C = np.where(late < 0, -EARLY * late, late) + np.where(above > 0, UPPER, 0.0)
    C[(above < 0) | (above > 2)] = np.inf
    if not len(x):
        return kept
    again = _one_to_one(C, _loudness(notes, constants)[x]).pairs
    return np.concatenate([kept, np.stack([z[again[:, 0]], x[again[:, 1]]], axis=1)])


def _loudness(notes: Notes, constants: Constants) -> Array:
    """The cost of dropping each x: less for notes that are hardly audible, which are slips."""
    velocity = notes.of.velocity[notes.played].astype(float)
    return velocity / (velocity + constants.soft)


def _one_to_one(C: Array, drop_x: Array | float = 1.0, order: Any = None) -> dropdtw.Alignment:
    return dropdtw.solve(C, drop_x, 1.0, one_to_many=False, many_to_one=False, order=order)
