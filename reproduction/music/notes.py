"""The notes of a score and of a performance, sorted for alignment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dropdtw.problem.inputs import Array
from reproduction.data.match import Performance


@dataclass(frozen=True)
class Notes:
    """A performance with its notes sorted: Z is the score, by event, and X is what was played, by time.

    An event is a chord, or a grace note by itself, before the chord that it decorates. score, played : the rows of the
    performance.   event : of each z.   Of two voices in unison, the piano plays one: the earlier in the file has no z.
    """

    of: Performance
    score: Array
    played: Array
    event: Array

    @classmethod
    def sort(cls, of: Performance) -> Notes:
        """Sort the notes of a performance."""
        rows = np.arange(len(of.pitch))
        last = {(of.onset[k], of.pitch[k]): k for k in rows if not of.grace[k]}
        sounding = rows[[bool(of.grace[k]) or last[of.onset[k], of.pitch[k]] == k for k in rows]]
        rank = np.where(of.grace[sounding], sounding, len(rows))  # grace notes in their order, then the chord
        score = sounding[np.lexsort((of.pitch[sounding], rank, of.onset[sounding]))]
        begins = (np.diff(of.onset[score]) > 0) | of.grace[score][:-1]
        return cls(of, score, np.lexsort((of.key, of.time)), np.cumsum(np.r_[False, begins]))

    @cached_property
    def pitch(self) -> Array:
        """The pitch of each z."""
        return self.of.pitch[self.score]

    @cached_property
    def key(self) -> Array:
        """The pitch of each x."""
        return self.of.key[self.played]

    @cached_property
    def time(self) -> Array:
        """The time of each x in seconds."""
        return self.of.time[self.played]

    @cached_property
    def trill(self) -> Array:
        """Whether each z has a trill sign."""
        return self.of.trill[self.score]

    @cached_property
    def first(self) -> Array:
        """The first z of each event."""
        return np.flatnonzero(np.r_[True, np.diff(self.event) > 0])

    @cached_property
    def size(self) -> Array:
        """The number of notes of each event."""
        return np.bincount(self.event)

    @cached_property
    def onset(self) -> Array:
        """The onset of each event in beats."""
        return self.of.onset[self.score[self.first]]

    @cached_property
    def grace(self) -> Array:
        """Whether each event is a grace note."""
        return self.of.grace[self.score[self.first]]

    def rows(self, pairs: Array) -> Array:
        """Pairs of z and x as pairs of rows of the performance."""
        return np.stack([self.score[pairs[:, 0]], self.played[pairs[:, 1]]], axis=1)
