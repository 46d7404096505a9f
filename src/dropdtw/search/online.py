"""Align a stream while it runs: `Online` takes one frame after the other and ends with the answer of `align`.

Every column of the table needs only the one before it (`reference.Column`). Of a column that is past, the best way
into each state of each cell is kept, until all paths that may still win go through one cell: whatever the future
brings, what lies before that cell is decided.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw import executors
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost, PerElement
from dropdtw.orders.order import OrderLike
from dropdtw.problem.charges import Charges
from dropdtw.problem.inputs import Array, as_drop_costs, as_pair, as_sequence, refuse_masked
from dropdtw.problem.match import Matrix
from dropdtw.problem.problem import Costs, Problem, between
from dropdtw.problem.spec import Spec
from dropdtw.results.alignment import Alignment, Segment
from dropdtw.search.columns import Nodes, Rows, columns
from dropdtw.search.stream import Stream
from dropdtw.tables.methods import MethodLike
from dropdtw.tables.reducers import soft_min


class StreamState(NamedTuple):
    """Where a stream stands after a frame x.

    step : the last z that the cheapest alignment so far has dealt with; −1: none yet.
    label : the z that x matches in it; −1: x is dropped.
    cost : what it has paid. It covers all x so far, and z up to `step`; with an order, those on its way to `step`.
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
    gamma : the temperature of the probabilities that `push` returns, as in `posterior`; None skips them, which halves
        the time.
    beam : None is exact. A number gives up every alignment whose cost exceeds that of the cheapest so far by more: far
        more is committed then, but what has fallen behind cannot win any more (see `committed`).
    keep_costs : keep all match costs, so that the alignment can be explained, rescored and drawn.
    order : as in `align`. Until it is decided, a frame then takes a few bytes for each node of the order's graph and
        each state.
    drop_z, match, method, one_to_many, many_to_one, contiguous, open_x, open_z, warp, window, threshold : as in
        `align`. What needs the whole stream is refused: rules that read all match costs, a window, and greedy drops of
        z.

    >>> import dropdtw
    >>> o = dropdtw.Online([0.0, 1.0, 2.0], drop_x=0.5, gamma=0.1)
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
        match: MatchCost = "auto",
        method: MethodLike = "drop_dtw",
        one_to_many: bool = True,
        many_to_one: bool = True,
        contiguous: bool = False,
        open_x: float = 0.0,
        open_z: float = 0.0,
        warp: float = 0.0,
        window: float | None = None,
        threshold: DropCost = None,
        order: OrderLike | None = None,
        gamma: float | None = 1.0,
        beam: float | None = None,
        keep_costs: bool = False,
    ) -> None:
        self.Z = as_sequence(Z, "Z").copy()
        self.beam, self.keep_costs = beam, keep_costs
        self.spec = Spec.of(
            drop_x,
            drop_z,
            match,
            method,
            one_to_many,
            many_to_one,
            contiguous,
            threshold=threshold,
            open_x=open_x,
            open_z=open_z,
            warp=warp,
            order=order,
        )
        self.spec.refuse_rules("which a stream does not have until it ends")
        if np.ndim(
            drop_x := 0.0 if self.spec.drop_x is None else self.spec.drop_x.price(Matrix(np.empty((0, 0))), "x")
        ):
            raise ValueError(
                f"drop_x has shape {np.shape(drop_x)}; a stream has no length yet: give one number, "
                "and where frames differ push(x, drop_x=...)"
            )
        if window is not None:
            raise ValueError(
                f"window is {window!r}, a band along the line to the end of X, which a stream does not know; "
                "leave it out"
            )
        if not self.spec.method.streams:
            raise ValueError(
                f"method {self.spec.method.name!r} needs all of X before it can price a match or a drop; "
                "use align when the stream has ended"
            )
        if self.spec.method.narrow is not None and drop_z is not None:
            raise ValueError("greedy drops of z need all match costs of z; leave out drop_z, or use 'drop_dtw'")
        if self.spec.method.narrow is not None and self.spec.method.refuses is not None:
            raise ValueError(
                f"method {self.spec.method.name} limits what is skipped by where X ends, which a stream does not know; "
                "use 'subsequence', 'free_begin' or 'free_end'"
            )
        if beam is not None and not (isinstance(beam, Real) and beam >= 0):
            raise ValueError(f"beam is {beam!r}; give a cost ≥ 0, or None to give up nothing")
        if gamma is not None and soft_min(gamma).gamma == 0:
            raise ValueError("gamma is 0, where one alignment has all the probability; give γ > 0, or None for none")
        self.gamma = gamma
        self.frames = 0
        self._match = match_costs.resolve(match, self.Z.shape[1])
        self._match.check_features(self.Z.shape[1])
        self._problem = self._prepared(self.Z.dtype)  # all that was said is checked now
        self._costs: list[Array] = []
        self._prices: list[float] = []
        self._stream: Stream | None = None
        self._soft: Rows | Nodes | None = None

    def push(self, x: npt.ArrayLike, *, drop_x: float | None = None) -> StreamState:
        """Take the next frame, (d,) or a number, and say where the stream stands.

        drop_x : what dropping this x costs; None: what dropping any costs.
        """
        C = self._column(x)
        if drop_x is not None and self.spec.drop_x is None:
            raise ValueError(
                "drop_x was given for a frame, but not to Online, so no x may be dropped; give it there too"
            )
        price = None if drop_x is None else as_drop_costs(drop_x, "drop_x", 1, "x_j")
        if self._stream is None:  # the first frame decides on the precision
            self._problem = self._prepared(C.dtype)
            self._stream = Stream(self._problem)
            if self.gamma is not None:
                self._soft = columns(self._problem, soft_min(self.gamma))
        given = self._problem.given
        C = C.astype(given.dtype, copy=False)
        price = given.drop_x[:1] if price is None else price.astype(given.dtype)
        paid = self._problem.edit(Costs(Matrix(C), price, given.drop_z, None, given.charges))
        column, lost = paid.matrix[:, 0], float(paid.drop_x[0])
        self._stream.push(column, lost, self.beam)
        if self.keep_costs:
            self._costs.append(C)
            self._prices.append(float(price[0]))
        self.frames += 1
        cost, step, label = self._stream.best_prefix()
        match, dropped = self._probabilities(column, lost)
        return StreamState(step, label, cost, match, dropped)

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
        self.spec.check_fit(K, N)
        found = self._stream.best_end()
        if found is None and self.beam is not None:
            raise ValueError(
                f"no alignment with all of Z is left within the beam of {self.beam}: the stream may have ended early; "
                "widen the beam, or leave it out"
            )
        if found is None:
            raise executors.no_alignment(self._problem)
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
            None if self.spec.table.weights <= {1.0} else np.array(path.weights),
            Charges(*(float(path.charged[plus]) for plus in Charges._fields)),
            None if self._problem.graph is None else (np.array(path.walk, np.int64), np.array(path.visit, np.int64)),
        )

    def _probabilities(self, column: Array, lost: float) -> tuple[Array, float]:
        """How probable each match and the drop of the newest x are, among the alignments of all x with any first z."""
        if self._soft is None or self._stream is None:
            return np.empty(0), np.nan
        soft, ends = self._soft, self._stream.ends
        soft.push(column, lost)
        weights = np.zeros_like(soft.values)
        values = soft.values[ends]
        weights[ends] = soft.column.reducer.weights(values.reshape(-1, 1)).reshape(values.shape)
        match, dropped = soft.derivatives(weights)
        if self._problem.table.skips_for_free:  # then not every drop is paid for
            dropped = float(np.clip(weights.sum() - match.sum(), 0, 1))
        return match, dropped

    def _whole(self) -> Problem:
        """The problem that has been solved."""
        C = np.concatenate(self._costs, axis=1)
        drop_x = None if self.spec.drop_x is None else PerElement(np.array(self._prices, C.dtype))
        return Problem.of_costs(replace(self.spec, drop_x=drop_x), C)

    def _prepared(self, dtype: np.dtype[np.float32 | np.float64]) -> Problem:
        """The table and the drop costs, from a square problem: its shape suits every table."""
        K = len(self.Z)
        return Problem.of_costs(self.spec, np.broadcast_to(np.zeros((), dtype), (K, K)))

    def _column(self, x: npt.ArrayLike) -> Array:
        """The match costs of a frame, (K, 1)."""
        name = f"frame {self.frames}"
        refuse_masked(x, name)
        frame = as_sequence(np.reshape(np.asarray(x), (1, -1)), name)
        return between(*as_pair(self.Z, frame), self._match).matrix
