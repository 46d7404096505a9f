"""The hard minimum over a stream of columns, and the way back to its start: what `Online` is made of."""

from __future__ import annotations

from array import array
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dropdtw.problem.inputs import Array
from dropdtw.problem.problem import Problem
from dropdtw.results.alignment import Segment
from dropdtw.search.columns import Choices, columns
from dropdtw.tables.reducers import hard_min
from dropdtw.tables.table import MOVES


@dataclass
class Path:
    """What a path has done from the start on: its pairs (i, j), the label of each x, the drops paid.

    walk : the z that it has come to.   visit : which of these each pair belongs to.
    """

    paid_z: Array
    i: array[int] = field(default_factory=lambda: array("q"))
    j: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("q"))
    paid_x: array[int] = field(default_factory=lambda: array("q"))
    weights: array[float] = field(default_factory=lambda: array("d"))
    charged: Counter[str | None] = field(default_factory=Counter)
    walk: array[int] = field(default_factory=lambda: array("q"))
    visit: array[int] = field(default_factory=lambda: array("q"))

    def extend(self, steps: list[_Step], frames: int) -> None:
        """Go on, up to a number of frames."""
        new = frames - len(self.labels)
        self.labels.extend([-1] * new)
        self.paid_x.extend([0] * new)
        least = np.inf
        for step in steps:
            self.charged[step.plus] += 1
            if step.enters:
                self.walk.append(step.i)
            if step.cost == "match":
                self.weights.append(step.weight)
                again = len(self.j) > 0 and self.j[-1] == step.j
                self.i.append(step.i)
                self.j.append(step.j)
                self.visit.append(len(self.walk) - 1)
                # Of several z the cheapest, of equals the first.
                if not again or (step.price, step.i) < (least, self.labels[step.j]):
                    self.labels[step.j], least = step.i, step.price
            elif step.cost == "drop_x":
                self.paid_x[step.j] += 1
            elif step.cost == "drop_z":
                self.paid_z[step.i] += 1


class _Step(NamedTuple):
    """An edge of a path: what it pays for, in which cell (0-based), and the match cost where that is one.

    enters : whether it comes to another z.
    """

    cost: str
    i: int
    j: int
    weight: float
    plus: str | None
    price: float
    enters: bool


class _Past(NamedTuple):
    """A column that is not decided: the way into each state of each cell, and its match costs."""

    choices: Choices
    match: Array


class Stream:
    """The hard minimum over a stream, and the ways back. A cell is the number s · places + place of its state and place
    (`columns`)."""

    def __init__(self, problem: Problem) -> None:
        table = problem.table
        self.column = columns(problem, hard_min)
        self.height = len(self.column.label)
        # Each alignment of what has come so far ends in one of these: not in a state that is part of a later one.
        number = {state: s for s, state in enumerate(table.states)}
        parts = {e.src for e in table.every_edge if e.move == "same"}
        self.ends = np.ix_(
            np.array([s for state, s in number.items() if state not in parts]), np.array(self.column.counted)
        )
        self.final = np.ix_([number[state] for state in table.final], self.column.finals)
        self.leaving = sorted({number[e.src] for e in table.every_edge if MOVES[e.move][1]})
        self.prices = table.matches_by("top")  # where an x may match several z, the cheapest is its label
        self.past = [self._newest(np.empty(0))]
        self.widths = [0]  # through how many cells of each such column paths went when it was last looked at
        self.first = 0  # the column of past[0]
        self.looked = 0  # how many columns were undecided at the last look
        self.path = Path(np.zeros(len(problem.costs.drop_z), np.int64))
        self.read = 0  # how many pairs of the path are in these two
        self.open: dict[int, Segment] = {}
        self.closed: list[Segment] = []

    def push(self, match: Array, drop_x: float, beam: float | None) -> None:
        """Take the next column, and give up what lies behind the best by more than the beam."""
        if len(self.past) >= 2 * self.looked + 32:  # now and then, so that memory is given back
            self.decide()
            self.looked = len(self.past)
        self.column.push(match, drop_x)
        self.past.append(self._newest(match))
        self.widths.append(0)
        if beam is not None:
            values = self.column.values
            values[values > values.min() + beam] = np.inf

    def best_prefix(self) -> tuple[float, int, int]:
        """The cheapest end of all x so far with any first z: its cost, its last z, and what the newest x matches."""
        values = self.column.values[self.ends]
        at, s = np.unravel_index(np.argmin(values.T), values.T.shape)  # of equals the least place
        cost = float(values[s, at])
        if not np.isfinite(cost):
            return cost, -1, -1
        state, place = int(self.ends[0][s, 0]), int(self.ends[1][0, at])
        newest = self.first + len(self.past) - 1
        steps = self._walk(state * self.height + place, newest, newest)
        matches = [step for step in steps if step.cost == "match"]
        label = min(matches, key=lambda step: (step.price, step.i)).i if matches else -1
        return cost, int(self.column.label[place]), label

    def best_end(self) -> tuple[float, Path] | None:
        """The cheapest alignment with all of Z: its cost and its path; None where there is none."""
        ends = self.column.values[self.final]
        s, at = np.unravel_index(np.argmin(ends), ends.shape)
        if not np.isfinite(ends[s, at]):
            return None
        path = deepcopy(self.path)
        newest = self.first + len(self.past) - 1
        cell = int(self.final[0][s, 0]) * self.height + self.column.finals[at]
        path.extend(self._walk(cell, newest, self.first) if self.past else [], newest)
        return float(ends[s, at]), path

    def decide(self) -> int:
        """Commit what all paths share that may still win; gives the number of frames decided."""
        values = self.column.values
        alive = np.zeros(values.shape, bool)
        alive[self.leaving] = True
        alive[self.final] = True
        cells = np.flatnonzero(alive & np.isfinite(values))
        for k in reversed(range(len(self.past))):
            if len(cells) == 1:
                self._commit(int(cells[0]), k)
                break
            if len(cells) == self.widths[k]:  # the cells of a column only become fewer: from here on nothing is new
                break
            self.widths[k] = len(cells)
            cells = self._before(self.past[k].choices, cells)
        return max(0, self.first - 1)

    def committed(self) -> list[Segment]:
        """The segments that nothing to come can change."""
        decided = self.decide()
        i, j = self.path.i, self.path.j
        for z, x in zip(i[self.read :], j[self.read :], strict=True):
            run = self.open.get(z)
            if run is not None and run.stop < x:
                self.closed.append(run)
                run = None
            self.open[z] = Segment(z, run.start if run else x, x + 1)
        self.read = len(i)
        for z, run in list(self.open.items()):
            if run.stop < decided:  # one that ends with the last x decided may still grow
                self.closed.append(self.open.pop(z))
        return sorted(self.closed)

    def _newest(self, match: Array) -> _Past:
        return _Past(self.column.choices(), match.copy() if self.prices else match[:0])

    def _before(self, choices: Choices, cells: Array) -> Array:
        """The cells of the column before through which the paths to some cells come."""
        s, place = np.divmod(cells, self.height)
        left = []
        while len(s):
            s, place, out = self.column.sources(choices, s, place)
            left.append(s[out] * self.height + place[out])
            s, place = s[~out], place[~out]
        return np.unique(np.concatenate(left)) if left else cells[:0]

    def _walk(self, cell: int, column: int, stop: int) -> list[_Step]:
        """The path to a cell of a column, from column `stop` on, from its start."""
        s, place = divmod(cell, self.height)
        j = column
        steps = []
        while j >= stop and (j, place) != (0, self.column.start):
            past = self.past[j - self.first]
            i = int(self.column.label[place])
            way, s, place = self.column.source(past.choices, s, place)
            if way is not None:
                price = float(past.match[i]) if way.cost == "match" and self.prices else np.inf
                steps.append(_Step(way.cost, i, j - 1, way.weight, way.plus, price, way.enters))
                j -= way.dj
        return steps[::-1]

    def _commit(self, cell: int, k: int) -> None:
        """All paths go through a cell of column past[k]: keep the way to it, and forget the columns up to there."""
        column = self.first + k
        self.path.extend(self._walk(cell, column, self.first), column)
        del self.past[: k + 1], self.widths[: k + 1]
        self.first = column + 1
