"""Align a stream while it runs: `Online` takes one frame after the other and ends with the answer of `align`.

Every column of the table needs only the one before it (`reference.Column`). Of a column that is past, the best way
into each state of each cell is kept, until all paths that may still win go through one cell: whatever the future
brings, what lies before that cell is decided.
"""

from __future__ import annotations

from array import array
from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost
from dropdtw.executors.reference import Column
from dropdtw.problem.fixed import fixed
from dropdtw.problem.inputs import Array, as_drop_costs, as_match_costs, as_pair, as_sequence
from dropdtw.problem.prepare import Problem, check_fit, no_alignment, prepare
from dropdtw.problem.problem import Costs, Sequences
from dropdtw.results.alignment import Alignment, Segment
from dropdtw.tables.methods import Options
from dropdtw.tables.recurrence import MOVES, Recurrence
from dropdtw.tables.reducers import hard_min, soft_min


class Now(NamedTuple):
    """Where a stream stands after a frame x.

    step : the last z that the cheapest alignment so far has dealt with; −1: none yet.
    label : the z that x matches in it; −1: x is dropped.
    cost : what it has paid. It covers all x so far, and z up to `step`.
    match : (K,) probability that x matches z_i, over all alignments so far; empty where γ is None.
    dropped : probability that x is dropped.
    """

    step: int
    label: int
    cost: float
    match: Array
    dropped: float


class Online:
    """Align Z with frames that arrive one by one.

    Z : (K, d) steps.
    drop_x : the drop cost of every x; `push` takes another one for its frame.
    gamma : the temperature of the probabilities that `push` gives, as in `posterior`; None spares them, and half the
        time.
    beam : None is exact. A number gives up every alignment that is dearer than the cheapest so far by more: then far
        more is committed, but what had fallen behind cannot win any more (see `committed`).
    keep_costs : keep all match costs, so that the alignment can be explained, rescored and drawn.
    others : as in `align`. What needs the whole stream is refused: rules that read all match costs, a window,
        and greedy drops of z.

    >>> import dropdtw.search.online
    >>> o = dropdtw.search.online.Online([0.0, 1.0, 2.0], drop_x=0.5, match="euclidean", gamma=0.1)
    >>> for x in [0.1, 0.0, 7.0, 1.1, 2.0, -5.0, 2.1]:
    ...     now = o.push(x)
    >>> now.step, now.label
    (2, 2)
    >>> o.finish().labels
    array([ 0,  0, -1,  1,  2, -1,  2])
    """

    def __init__(
        self,
        Z: npt.ArrayLike,
        drop_x: DropCost = None,
        drop_z: DropCost = None,
        *,
        match: MatchCost = "cosine",
        method: str | Recurrence = "drop_dtw",
        one_to_many: bool = True,
        many_to_one: bool = True,
        contiguous: bool = False,
        window: float | None = None,
        threshold: DropCost = None,
        gamma: float | None = 1.0,
        beam: float | None = None,
        keep_costs: bool = False,
    ) -> None:
        self.Z = as_sequence(Z, "Z").copy()
        self.match, self.method, self.beam, self.keep_costs = match, method, beam, keep_costs
        match_costs.resolve(match)
        why = "which a stream does not have until it ends"
        d_x, self.drop_z = (fixed(d, n, why) for d, n in ((drop_x, "drop_x"), (drop_z, "drop_z")))
        fixed(threshold, "threshold", why)
        if d_x is not None and np.ndim(d_x):
            raise ValueError(
                f"drop_x has shape {np.shape(d_x)}; a stream has no length yet: give one number, "
                "and where frames differ push(x, drop_x=...)"
            )
        if window is not None:
            raise ValueError(
                f"window is {window!r}, a band along the line to the end of X, which a stream does not know; "
                "leave it out"
            )
        if method == "greedy" and drop_z is not None:
            raise ValueError("greedy drops of z need all match costs of z; leave out drop_z, or use 'drop_dtw'")
        if beam is not None and not (isinstance(beam, Real) and beam >= 0):
            raise ValueError(f"beam is {beam!r}; give a cost ≥ 0, or None to give up nothing")
        if gamma is not None and soft_min(gamma).gamma == 0:
            raise ValueError("gamma is 0, where one alignment has all the probability; give γ > 0, or None for none")
        self.drop_x, self.gamma = d_x, gamma
        self.options = Options(one_to_many, many_to_one, contiguous, None, threshold)
        self.frames = 0
        self._problem = self._prepared(self.Z.dtype)  # all that was said is checked now
        self._costs: list[Array] = []
        self._prices: list[float] = []
        self._stream: _Stream | None = None
        self._soft: Column | None = None

    def push(self, x: npt.ArrayLike, *, drop_x: float | None = None) -> Now:
        """Take the next frame, (d,) or a number, and say where the stream stands.

        drop_x : what dropping this x costs; None: what dropping any costs.
        """
        C = self._column(x)
        if drop_x is not None and self.drop_x is None:
            raise ValueError(
                "drop_x was given for a frame, but not to Online, so no x may be dropped; give it there too"
            )
        price = None if drop_x is None else as_drop_costs(drop_x, "drop_x", 1, "x_j")
        if self._stream is None:  # the first frame decides on the precision
            self._problem = self._prepared(C.dtype)
            self._stream = _Stream(self._problem)
            if self.gamma is not None:
                self._soft = Column(self._problem.table, soft_min(self.gamma), self._problem.costs.drop_z)
        given = self._problem.given
        C = C.astype(given.dtype, copy=False)
        price = given.drop_x[:1] if price is None else price.astype(given.dtype)
        paid = self._problem.edit(Costs(C, price, given.drop_z))
        column, lost = paid.match[:, 0], float(paid.drop_x[0])
        self._stream.push(column, lost, self.beam)
        if self.keep_costs:
            self._costs.append(C)
            self._prices.append(float(price[0]))
        self.frames += 1
        cost, row, label = self._stream.best_prefix()
        match, dropped = self._probabilities(column, lost)
        return Now(row - 1, label, cost, match, dropped)

    @property
    def committed(self) -> list[Segment]:
        """The segments that nothing to come can change, in the order of z, then of x.

        An alignment that has dropped everything so far, or has rushed through Z, may still win whatever comes: the
        whole of Z may be played again, and better. So in most tables without `beam` little but the background at the
        beginning is ever committed; with one, all that no alignment within the beam disputes.
        """
        return [] if self._stream is None else self._stream.committed()

    @property
    def decided(self) -> int:
        """For how many frames, from the first on, it is decided whether they are dropped and what they match."""
        return 0 if self._stream is None else self._stream.decide()

    def finish(self) -> Alignment:
        """The alignment of Z with all frames so far, as `align` finds it. Pushing may go on afterwards.

        Equal to `align` to the last bit where match costs are: a matrix product over many frames may round otherwise
        than over one.
        """
        if self._stream is None:
            raise ValueError("there has been no frame; push one before finish")
        K, N = len(self.Z), self.frames
        check_fit(K, N, self.drop_x is None, self.drop_z is None, self.options, self.method)
        found = self._stream.best_end()
        if found is None and self.beam is not None:
            raise ValueError(
                f"no alignment with all of Z is left within the beam of {self.beam}: the stream may have ended early; "
                "widen the beam, or leave it out"
            )
        if found is None:
            raise no_alignment(self._problem)
        cost, path = found
        return Alignment(
            cost,
            np.stack([np.array(part, np.int64) for part in (path.i, path.j)], axis=1),
            (K, N),
            np.array(path.labels, np.int64),
            self._problem.method,
            np.array(path.paid_x, np.int64),
            path.paid_z,
            self._whole() if self.keep_costs else None,
        )

    def _probabilities(self, column: Array, lost: float) -> tuple[Array, float]:
        """How probable each match and the drop of the newest x are, among the alignments of all x with any first z."""
        if self._soft is None or self._stream is None:
            return np.empty(0), np.nan
        soft, ends = self._soft, self._stream.ends
        soft.push(column, lost)
        weights = np.zeros_like(soft.values)
        weights[ends] = soft.reducer.weights(soft.values[ends].reshape(-1, 1)).reshape(len(ends), -1)
        match, dropped = soft.derivatives(weights)
        if self._problem.table.skips_for_free:  # then not every drop is paid for
            dropped = float(np.clip(weights.sum() - match.sum(), 0, 1))
        return match, dropped

    def _whole(self) -> Problem:
        """The problem that has been solved."""
        C = np.concatenate(self._costs, axis=1)
        drop_x = None if self.drop_x is None else np.array(self._prices, C.dtype)
        return prepare(C, drop_x, self.drop_z, self.options, self.method, None)

    def _prepared(self, dtype: np.dtype[np.float32 | np.float64]) -> Problem:
        """The table and the drop costs, from a square problem: its shape suits every table."""
        K = len(self.Z)
        nothing = np.broadcast_to(np.zeros((), dtype), (K, K))
        return prepare(nothing, self.drop_x, self.drop_z, self.options, self.method, None)

    def _column(self, x: npt.ArrayLike) -> Array:
        """The match costs of a frame, (K, 1)."""
        frame = as_sequence(np.reshape(np.asarray(x), (1, -1)), f"frame {self.frames}")
        C = match_costs.between(*as_pair(self.Z, frame), self.match)
        return C.matrix if isinstance(C, Sequences) else as_match_costs(C)


@dataclass
class _Path:
    """What a path has done from the start on: its pairs (i, j), the label of each x, the drops paid."""

    paid_z: Array
    i: array[int] = field(default_factory=lambda: array("q"))
    j: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("q"))
    paid_x: array[int] = field(default_factory=lambda: array("q"))

    def extend(self, steps: list[_Step], frames: int) -> None:
        """Go on, up to a number of frames."""
        new = frames - len(self.labels)
        self.labels.extend([-1] * new)
        self.paid_x.extend([0] * new)
        least = np.inf
        for step in steps:
            if step.cost == "match":
                again = len(self.j) > 0 and self.j[-1] == step.j
                self.i.append(step.i)
                self.j.append(step.j)
                if not again or step.price < least:  # of several z the cheapest, of equals the first
                    self.labels[step.j], least = step.i, step.price
            elif step.cost == "drop_x":
                self.paid_x[step.j] += 1
            elif step.cost == "drop_z":
                self.paid_z[step.i] += 1


class _Step(NamedTuple):
    """An edge of a path: what it pays for, in which cell (0-based), and the match cost where that is one."""

    cost: str
    i: int
    j: int
    price: float


class _Past(NamedTuple):
    """A column that is not decided: the way into each state of each cell, and its match costs."""

    choices: Array
    match: Array


class _Stream:
    """The hard minimum over a stream, and the ways back. A cell is the number s (K + 1) + i of its state and row."""

    def __init__(self, problem: Problem) -> None:
        table, K = problem.table, len(problem.costs.drop_z)
        self.column = Column(table, hard_min, problem.costs.drop_z)
        self.height = K + 1
        self.ways = [[(way.src, way.di, way.dj, way.cost) for way in ways] for ways in self.column.grid.ways]
        widest = max(1, *map(len, self.ways))
        self.moves = np.array([[way[:3] for way in ways] + [(0, 0, 1)] * (widest - len(ways)) for ways in self.ways])
        # Each alignment of what has come so far ends in one of these: not in a state that is part of a later one.
        number = {state: s for s, state in enumerate(table.states)}
        listed = (*table.edges, *(table.border or ()))
        parts = {e.src for e in listed if e.move == "same"}
        self.ends = [s for state, s in number.items() if state not in parts]
        self.final = self.column.grid.final
        self.leaving = sorted({number[e.src] for e in listed if MOVES[e.move][1]})
        self.prices = table.matches_by("top")  # where an x may match several z, the cheapest is its label
        self.past = [self._newest(np.empty(0))]
        self.widths = [0]  # through how many cells of each such column paths went when it was last looked at
        self.first = 0  # the column of past[0]
        self.looked = 0  # how many columns were undecided at the last look
        self.path = _Path(np.zeros(K, np.int64))
        self.read = 0  # how many pairs of the path are in these two
        self.open: dict[int, Segment] = {}
        self.closed: list[Segment] = []

    def push(self, match: Array, drop_x: float, beam: float | None) -> None:
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
        """The cheapest end of all x so far with any first z: its cost, its row, and what the newest x matches."""
        values = self.column.values[self.ends]
        row, s = np.unravel_index(np.argmin(values.T), values.T.shape)  # of equals the least row
        cost = float(values[s, row])
        if not np.isfinite(cost):
            return cost, 0, -1
        newest = self.first + len(self.past) - 1
        steps = self._walk(self.ends[s] * self.height + int(row), newest, newest)
        matches = [step for step in steps if step.cost == "match"]
        return cost, int(row), min(matches, key=lambda step: step.price).i if matches else -1

    def best_end(self) -> tuple[float, _Path] | None:
        """The cheapest alignment with all of Z: its cost and its path; None where there is none."""
        ends = self.column.values[self.final, -1]
        s = int(np.argmin(ends))
        if not np.isfinite(ends[s]):
            return None
        path = deepcopy(self.path)
        newest = self.first + len(self.past) - 1
        steps = self._walk(self.final[s] * self.height + self.height - 1, newest, self.first) if self.past else []
        path.extend(steps, newest)
        return float(ends[s]), path

    def decide(self) -> int:
        """Commit what all paths share that may still win; gives the number of frames decided."""
        values = self.column.values
        alive = np.zeros(values.shape, bool)
        alive[self.leaving] = True
        alive[self.final, -1] = True
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
        decided = self.decide()
        i, j = self.path.i, self.path.j
        for z, x in zip(i[self.read :], j[self.read :], strict=True):
            run = self.open.get(z)
            if run is not None and run.stop != x:
                self.closed.append(run)
                run = None
            self.open[z] = Segment(z, run.start if run else x, x + 1)
        self.read = len(i)
        for z, run in list(self.open.items()):
            if run.stop < decided:  # one that ends with the last x decided may still grow
                self.closed.append(self.open.pop(z))
        return sorted(self.closed)

    def _newest(self, match: Array) -> _Past:
        return _Past(self.column.choices().astype(np.int8), match.copy() if self.prices else match[:0])

    def _before(self, choices: Array, cells: Array) -> Array:
        """The cells of the column before through which the paths to some cells come."""
        s, i = np.divmod(cells, self.height)
        left = []
        while len(s):
            way = choices[s, i]
            s, i, way = s[way >= 0], i[way >= 0], way[way >= 0]  # the origin has no way into it
            src, di, dj = self.moves[s, way].T
            s, i, out = src, i - di, dj == 1
            left.append(s[out] * self.height + i[out])
            s, i = s[~out], i[~out]
        return np.unique(np.concatenate(left)) if left else cells[:0]

    def _walk(self, cell: int, column: int, stop: int) -> list[_Step]:
        """The path to a cell of a column, from column `stop` on, from its start."""
        s, i = divmod(cell, self.height)
        j = column
        steps = []
        while j >= stop and (i, j) != (0, 0):
            past = self.past[j - self.first]
            src, di, dj, cost = self.ways[s][past.choices[s, i]]
            price = float(past.match[i - 1]) if cost == "match" and self.prices else np.inf
            steps.append(_Step(cost, i - 1, j - 1, price))
            s, i, j = src, i - di, j - dj
        return steps[::-1]

    def _commit(self, cell: int, k: int) -> None:
        """All paths go through a cell of column past[k]: keep the way to it, and forget the columns up to there."""
        column = self.first + k
        self.path.extend(self._walk(cell, column, self.first), column)
        del self.past[: k + 1], self.widths[: k + 1]
        self.first = column + 1
