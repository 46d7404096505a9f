"""The hard minimum over a stream of columns, with incremental traceback. Used by `Online`."""

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
from dropdtw.tables.table import MOVES, Recurrence


@dataclass
class OpenPath:
    """A path from the start: its pairs (i, j), the label of each x, and the drops it pays.

    walk : the z that it has visited.   visit : the entry of `walk` that each pair belongs to.
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
        """Append steps, up to a total number of frames."""
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
                # The label is the cheapest of several z; ties: the smallest.
                if not again or (step.price, step.i) < (least, self.labels[step.j]):
                    self.labels[step.j], least = step.i, step.price
            elif step.cost == "drop_x":
                self.paid_x[step.j] += 1
            elif step.cost == "drop_z":
                self.paid_z[step.i] += 1


class _Step(NamedTuple):
    """An edge of a path: the cost it pays, its cell (0-based), and its match cost if it is a match.

    enters : whether it advances to another z.
    """

    cost: str
    i: int
    j: int
    weight: float
    plus: str | None
    price: float
    enters: bool


class _Past(NamedTuple):
    """An undecided column: the best predecessor of each state of each cell, and its match costs."""

    choices: Choices
    match: Array


def _unfinished(table: Recurrence) -> set[str]:
    """The states in the middle of a step pattern: from the same source, each edge in could also end the alignment."""
    ending = {(e.src, e.move, e.cost) for e in table.every_edge if e.dst in table.final}
    into = {s: {(e.src, e.move, e.cost) for e in table.every_edge if e.dst == s} for s in table.states}
    return {s for s, ways in into.items() if s not in table.final and ways and ways <= ending}


class Stream:
    """The hard minimum over a stream, with the predecessors needed for the traceback.

    A cell is encoded as s · places + place, for state s and a place (see `columns`).
    """

    def __init__(self, problem: Problem) -> None:
        table = problem.table
        self.column = columns(problem, hard_min)
        self.height = len(self.column.label)
        # Each alignment of the frames so far ends in one of these cells. States that feed another state of the same
        # cell, or that are in the middle of a step pattern, are left out, so that no alignment counts twice.
        number = {state: s for s, state in enumerate(table.states)}
        parts = {e.src for e in table.every_edge if e.move == "same"} | _unfinished(table)
        self.ends = np.ix_(
            np.array([s for state, s in number.items() if state not in parts]), np.array(self.column.counted)
        )
        self.final = np.ix_([number[state] for state in table.final], self.column.finals)
        self.leaving = sorted({number[e.src] for e in table.every_edge if MOVES[e.move][1]})
        self.prices = table.matches_by("top")  # if an x may match several z, its label is the cheapest
        self.past = [self._newest(np.empty(0))]
        self.widths = [0]  # the number of live cells in each of these columns at the last check
        self.first = 0  # the column of past[0]
        self.looked = 0  # the number of undecided columns at the last check
        self.path = OpenPath(np.zeros(len(problem.costs.drop_z), np.int64))
        self.read = 0  # the number of pairs of the path that are in the next two
        self.open: dict[int, Segment] = {}
        self.closed: list[Segment] = []

    def push(self, match: Array, drop_x: float, beam: float | None) -> None:
        """Take the next column, and discard what costs more than the best plus the beam."""
        if len(self.past) >= 2 * self.looked + 32:  # check occasionally, to free memory
            self.decide()
            self.looked = len(self.past)
        self.column.push(match, drop_x)
        self.past.append(self._newest(match))
        self.widths.append(0)
        if beam is not None:
            values = self.column.values
            values[values > values.min() + beam] = np.inf

    def best_prefix(self) -> tuple[float, int, int]:
        """The cheapest alignment of all x so far with a prefix of Z: its cost, its last z, and the newest x's label."""
        values = self.column.values[self.ends]
        at, s = np.unravel_index(np.argmin(values.T), values.T.shape)  # the smallest place among ties
        cost = float(values[s, at])
        if not np.isfinite(cost):
            return cost, -1, -1
        state, place = int(self.ends[0][s, 0]), int(self.ends[1][0, at])
        newest = self.first + len(self.past) - 1
        steps = self._walk(state * self.height + place, newest, newest)
        matches = [step for step in steps if step.cost == "match"]
        label = min(matches, key=lambda step: (step.price, step.i)).i if matches else -1
        return cost, int(self.column.label[place]), label

    def best_end(self) -> tuple[float, OpenPath] | None:
        """The cheapest alignment with all of Z: its cost and its path; None if there is none."""
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
        """Commit the common part of all paths that can still win. Returns the number of decided frames."""
        values = self.column.values
        alive = np.zeros(values.shape, bool)
        alive[self.leaving] = True
        alive[self.final] = True
        cells = np.flatnonzero(alive & np.isfinite(values))
        for k in reversed(range(len(self.past))):
            if len(cells) == 1:
                self._commit(int(cells[0]), k)
                break
            if len(cells) == self.widths[k]:  # live cells only ever decrease, so nothing changes before this column
                break
            self.widths[k] = len(cells)
            cells = self._before(self.past[k].choices, cells)
        return max(0, self.first - 1)

    def committed(self) -> list[Segment]:
        """The segments that no future frame can change."""
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
            if run.stop < decided:  # a segment that ends at the last decided x may still grow
                self.closed.append(self.open.pop(z))
        return sorted(self.closed)

    def _newest(self, match: Array) -> _Past:
        return _Past(self.column.choices(), match.copy() if self.prices else match[:0])

    def _before(self, choices: Choices, cells: Array) -> Array:
        """The cells of the previous column through which the paths to these cells pass."""
        s, place = np.divmod(cells, self.height)
        left = []
        while len(s):
            s, place, out = self.column.sources(choices, s, place)
            left.append(s[out] * self.height + place[out])
            s, place = s[~out], place[~out]
        return np.unique(np.concatenate(left)) if left else cells[:0]

    def _walk(self, cell: int, column: int, stop: int) -> list[_Step]:
        """The steps of the path to a cell of a column, from column `stop` on, in order."""
        s, place = divmod(cell, self.height)
        j = column
        steps = []
        while j >= stop and (j, place) != (0, self.column.start):
            past = self.past[j - self.first]
            i = int(self.column.label[place])
            way, s, place = self.column.source(past.choices, s, place)
            if way is not None:
                price = float(past.match[i]) if way.cost == "match" and self.prices else np.inf
                steps.append(_Step(way.cost, i, j - 1, way.weight, way.plus, price, bool(way.di)))
                j -= way.dj
        return steps[::-1]

    def _commit(self, cell: int, k: int) -> None:
        """Commit the path to a cell of column past[k], through which all paths pass, and free the columns up to it."""
        column = self.first + k
        self.path.extend(self._walk(cell, column, self.first), column)
        del self.past[: k + 1], self.widths[: k + 1]
        self.first = column + 1
