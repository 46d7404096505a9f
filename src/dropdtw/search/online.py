"""Align a stream frame by frame: `Online` ends with the same result as `align`.

Every column of the table depends only on the previous one (`reference.Column`). For past columns we store the best
predecessor of each state of each cell. Once all paths that can still win pass through one cell, everything before that
cell is decided, and its columns are freed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from dropdtw import costs as match_costs
from dropdtw import executors
from dropdtw.costs import MatchCost
from dropdtw.drops import DropCost, PerElement
from dropdtw.orders.order import OrderLike
from dropdtw.problem.charges import Charges
from dropdtw.problem.clock import Clock, Clocks, timed
from dropdtw.problem.errors import OptionError, refuse_keywords
from dropdtw.problem.inputs import Array, Columns, as_drop_costs, as_floats, as_sequence, same_precision
from dropdtw.problem.match import Matrix
from dropdtw.problem.options import MethodOptions, takes
from dropdtw.problem.problem import Problem, between
from dropdtw.problem.spec import Spec
from dropdtw.problem.symbols import Side, compares_symbols, is_missing
from dropdtw.results.alignment import Alignment, Segment
from dropdtw.search.columns import ListColumns, Nodes, columns
from dropdtw.search.stream import Stream
from dropdtw.tables.reducers import soft_min


class StreamState(NamedTuple):
    """The state of a stream after a frame x. Returned by `Online.push`.

    It describes the cheapest alignment of all frames so far with a prefix of Z, of any length. With an `order`, it is a
    prefix of one of the sequences of steps that the order allows.

    step : the index of the last z that this alignment has matched or dropped; −1 if there is none yet.
    label : the index of the z that x matches in this alignment; −1 if x is dropped.
    cost : the cost of this alignment.
    match : (K,) the probability that x matches z_i, over all alignments so far; empty if gamma is None.
    dropped : the probability that x is dropped; NaN if gamma is None.

    >>> import dropdtw
    >>> now = dropdtw.Online([0.0, 1.0], drop_x=0.5, gamma=None).push(0.1)
    >>> now.step, now.label, round(now.cost, 6)
    (0, 0, 0.1)
    """

    step: int
    label: int
    cost: float
    match: Array
    dropped: float


class Online:
    """Align Z with frames that arrive one by one.

    `push` takes the next frame and returns the state of the stream. `committed` lists the segments that are final, and
    `decided` counts the frames whose label is final. `finish` returns the same alignment as `align`.

    Parameters
    ----------
    Z : (K, d) or (K,), the steps; or symbols, as in `dropdtw.align`, and then each x is a symbol.
    drop_x : the drop cost of every x, a number; `push` can override it for one frame. None forbids dropping x.
    gamma : the temperature of the probabilities that `push` returns, as in `dropdtw.posterior`; None skips them, which
        halves the time.
    beam : None keeps every alignment, so that the result is exact. A number discards each alignment that costs more
        than the cheapest one so far plus `beam`. Then segments are committed much earlier (see `committed`), but a
        discarded alignment cannot win later.
    keep_costs : whether to keep all match costs, so that the alignment can be explained, rescored and drawn.
    fps : frames per second, so that segments have times, and an order may say how many seconds steps last. If frames
        arrive irregularly, give `push` the time of each.
    order : as in `dropdtw.solve`. With an order, each frame that is not decided yet takes a few bytes for each node of
        the order's graph and each state of the table.
    match : as in `dropdtw.align`.
    drop_z, open_x, open_z, threshold : as in `dropdtw.solve`, but numbers only; drop_z can be one number per element.
    method, one_to_many, many_to_one, contiguous, warp : as in `dropdtw.solve`.
    window : None; a window depends on the length of X, which a stream does not know.

    Raises
    ------
    ValueError : if an argument is invalid or needs the whole stream: a rule such as "percentile:30", a window, drop_z
        with the method "greedy", or a method such as "erp".

    >>> import dropdtw
    >>> o = dropdtw.Online([0.0, 1.0, 2.0], drop_x=0.5, gamma=0.1)
    >>> for x in [0.1, 0.0, 7.0, 1.1, 2.0, -5.0, 2.1]:
    ...     now = o.push(x)
    >>> now.step, now.label
    (2, 2)
    >>> o.finish().labels
    array([ 0,  0, -1,  1,  2, -1,  2])

    With a beam, segments become final while the stream is still running:

    >>> o = dropdtw.Online([0.0, 1.0, 2.0], drop_x=0.5, gamma=None, beam=0.6)
    >>> for x in [0.1, 0.0, 7.0, 1.1, 2.0]:
    ...     now = o.push(x)
    >>> o.committed, o.decided
    ([Segment(label=0, start=0, stop=2)], 4)
    """

    @takes(MethodOptions)
    def __init__(
        self,
        Z: npt.ArrayLike,
        drop_x: DropCost = None,
        drop_z: DropCost = None,
        *,
        match: MatchCost = "auto",
        order: OrderLike | None = None,
        gamma: float | None = 1.0,
        beam: float | None = None,
        keep_costs: bool = False,
        fps: float | None = None,
        **options: Unpack[MethodOptions],
    ) -> None:
        refuse_keywords(Online, options)
        window = options.pop("window", None)
        Z, _, clocks = timed(Z, ())
        spec = Spec.of(drop_x, drop_z, match=match, order=order, **options)
        coded = Side.of([Z], lambda k: "Z", {}) if compares_symbols(spec.match, [Z]) else None
        self._symbols = None if coded is None else coded.symbols[0]
        self._compared = bytes(Z) if isinstance(Z, (bytes, bytearray)) else self._symbols  # bytes alone are numbers
        self._pushed: list[Hashable] = []
        self._of_symbol: dict[Hashable, Array] = {}
        self._columns = Columns()
        self.Z = as_sequence(self._columns.sort(Z, "Z") if coded is None else coded.codes[0], "Z").copy()
        self._clock_z = None if clocks is None else clocks.z
        self._times: list[Any] = []
        self.fps = fps
        self.beam, self.keep_costs = beam, keep_costs
        clocks = None if fps is None else Clocks(None, Clock.at_rate(fps, 1))
        self.spec = spec.timed(clocks)
        self.spec.refuse_rules("and a stream does not know all of them until it ends")
        if np.ndim(
            drop_x := 0.0 if self.spec.drop_x is None else self.spec.drop_x.price(Matrix(np.empty((0, 0))), "x")
        ):
            raise ValueError(
                f"drop_x has shape {np.shape(drop_x)}, but the length of a stream is not known; give one number, "
                "and push(x, drop_x=...) for frames that differ"
            )
        if window is not None:
            raise ValueError(
                f"window is {window!r}, a band that depends on the length of X, which a stream does not know; "
                "leave it out"
            )
        if not self.spec.method.streams:
            raise ValueError(
                f"method {self.spec.method.name!r} needs all of X to compute the cost of a match or a drop; "
                "use align when the stream has ended"
            )
        if self.spec.method.narrow is not None and drop_z is not None:
            raise ValueError(
                f"method {self.spec.method.name!r} decides whether to drop a z after seeing all of X, which a stream "
                "does not know; leave out drop_z, or use 'drop_dtw'"
            )
        if self.spec.method.narrow is not None and self.spec.method.refuses is not None:
            raise ValueError(
                f"method {self.spec.method.name} limits how much may be skipped, which Online does not support; "
                "use 'subsequence', 'free_begin' or 'free_end'"
            )
        if beam is not None and not (isinstance(beam, Real) and beam >= 0):
            raise ValueError(f"beam is {beam!r}; give a cost ≥ 0, or None to discard nothing")
        if gamma is not None and soft_min(gamma).gamma == 0:
            raise ValueError(
                "gamma is 0, where one alignment has all the probability; give γ > 0, or None for no probabilities"
            )
        self.gamma = gamma
        self.frames = 0
        _ = self._clocks()  # raise errors now
        if self._symbols is None:
            self._match = match_costs.resolve(self.spec.match, self.Z.shape[1])
            self._match.check_features(self.Z.shape[1])
        self._problem = self._prepared(self.Z.dtype)  # validates all arguments now, not at the first frame
        self._costs: list[Array] = []
        self._prices: list[float] = []
        self._stream: Stream | None = None
        self._soft: ListColumns | Nodes | None = None

    def push(self, x: Any, *, drop_x: float | None = None, time: Any = None) -> StreamState:
        """Take the next frame and return the state of the stream.

        x : (d,), a number, or a symbol.   drop_x : the cost of dropping this x; None for the cost given to `Online`.
        time : when this x begins, in seconds or as a date; either all frames have a time, or none.

        Returns a `StreamState`. Raises ValueError if x, drop_x or time is invalid, or if time does not increase.
        """
        C = self._column(x)
        self._check_time(time)
        if drop_x is not None and self.spec.drop_x is None:
            raise ValueError(
                "drop_x was given for a frame, but not to Online, so no x may be dropped; give it to Online too"
            )
        price = None if drop_x is None else as_drop_costs(drop_x, "drop_x", 1, "x_j")
        if self._stream is None:  # the first frame determines the precision
            self._problem = self._prepared(C.dtype)
            self._stream = Stream(self._problem)
            if self.gamma is not None:
                self._soft = columns(self._problem, soft_min(self.gamma))
        given = self._problem.given
        C = C.astype(given.dtype, copy=False)
        price = given.drop_x[:1] if price is None else price.astype(given.dtype)
        paid = self._problem.edit(given._replace(match=Matrix(C), drop_x=price))
        column, lost = paid.matrix[:, 0], float(paid.drop_x[0])
        self._stream.push(column, lost, self.beam)
        if self.keep_costs:
            self._costs.append(C)
            self._prices.append(float(price[0]))
        if self._symbols is not None:
            self._pushed.append(x)
        if time is not None:
            self._times.append(time)
        self.frames += 1
        cost, step, label = self._stream.best_prefix()
        match, dropped = self._probabilities(column, lost)
        return StreamState(step, label, cost, match, dropped)

    @property
    def committed(self) -> list[Segment]:
        """The segments that no future frame can change, sorted by z, then by x.

        Without `beam`, this is usually empty until the end: an alignment that has dropped every frame so far can still
        win, because all of Z may follow and match better. With `beam`, it holds what all alignments within the beam
        agree on.
        """
        if self._stream is None:
            return []
        found, clocks = self._stream.committed(), self._clocks()
        return found if clocks is None else [Segment(*segment, clock=clocks.x) for segment in found]

    @property
    def decided(self) -> int:
        """The number of frames, from the first on, whose label no future frame can change."""
        return 0 if self._stream is None else self._stream.decide()

    def finish(self) -> Alignment:
        """Return the alignment of Z with all frames so far, as `align` finds it. You can push more frames afterward.

        If the match costs are the same, the result equals that of `align` to the last bit. They may differ slightly,
        because a matrix product over many frames can round differently from one over a single frame.

        Returns a `dropdtw.Alignment`. Raises ValueError if there are no frames yet, or if every alignment is forbidden
        or discarded.
        """
        if self._stream is None:
            raise ValueError("there are no frames yet; push at least one before finish")
        K, N = len(self.Z), self.frames
        self.spec.check_fit(K, N)
        found = self._stream.best_end()
        if found is None and self.beam is not None:
            raise ValueError(
                f"no alignment with all of Z is left within the beam of {self.beam}; the stream may have ended early. "
                "Widen the beam, or leave it out"
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
            clocks=self._clocks(),
            symbols=None if self._symbols is None else (self._symbols, tuple(self._pushed)),
        )

    def _check_time(self, time: Any) -> None:
        """Raise unless the time of the next frame follows that of the previous one."""
        if time is not None and self.fps is not None:
            raise OptionError("time", time, "leave it out", f", but fps={self.fps!r} already sets the times of frames")
        if self.frames and (time is None) is not (not self._times):
            raise OptionError("time", time, "give every frame a time, or none", f" for frame {self.frames}")
        if time is not None:
            Clock.of([*self._times[-1:], time], "frame", "time")

    def _clocks(self) -> Clocks | None:
        """The times of Z and of all frames so far."""
        x = None if self.fps is None else Clock.at_rate(self.fps, self.frames)
        if self._times:
            x = Clock.of(self._times, "x", "time")
        return None if x is None and self._clock_z is None else Clocks(self._clock_z, x)

    def _probabilities(self, column: Array, lost: float) -> tuple[Array, float]:
        """The probability of each match and of the drop of the newest x, over all alignments with a prefix of Z."""
        if self._soft is None or self._stream is None:
            return np.empty(0), np.nan
        soft, ends = self._soft, self._stream.ends
        soft.push(column, lost)
        weights = np.zeros_like(soft.values)
        values = soft.values[ends]
        weights[ends] = soft.column.reducer.weights(values.reshape(-1, 1)).reshape(values.shape)
        match, dropped = soft.marginals(weights)
        if self._problem.table.skips_for_free:  # no drop is paid for them
            dropped = float(np.clip(weights.sum() - match.sum(), 0, 1))
        return match, dropped

    def _whole(self) -> Problem:
        """The complete problem, from the stored costs."""
        C = np.concatenate(self._costs, axis=1)
        drop_x = None if self.spec.drop_x is None else PerElement(np.array(self._prices, C.dtype))
        return Problem.of_costs(replace(self.spec, drop_x=drop_x), C)

    def _prepared(self, dtype: np.dtype[np.float32 | np.float64]) -> Problem:
        """A problem with the table and the drop costs. It is square, because every table accepts that shape."""
        K = len(self.Z)
        return Problem.of_costs(self.spec, np.broadcast_to(np.zeros((), dtype), (K, K)))

    def _column(self, x: Any) -> Array:
        """The match costs of a frame, (K, 1)."""
        if self._symbols is not None:
            return self._column_of(x)
        name, d = f"frame {self.frames}", self.Z.shape[1]
        names: list[Any] = getattr(getattr(x, "index", None), "tolist", list)()  # of a row of a data frame
        if names and all(isinstance(each, str) for each in names):
            order = self._columns.order(names, name)
            x = x if order is None else x.iloc[order]
        frame = as_floats(x, name).reshape(1, -1)
        if frame.shape[1] != d:
            shape = "a number" if d == 1 else f"a vector ({d},)"
            raise ValueError(f"{name} has {frame.shape[1]} features, but Z has {d}; give {shape}")
        if not np.isfinite(frame).all():
            raise ValueError(f"{name} has NaN or infinity; skip it or fill it in")
        return between(*same_precision(self.Z, frame), self._match).matrix

    def _column_of(self, symbol: Any) -> Array:
        """The match costs of a symbol, (K, 1). Each different symbol is compared with Z once."""
        name = f"frame {self.frames}"
        if isinstance(symbol, Hashable) and symbol in self._of_symbol:
            return self._of_symbol[symbol]
        if is_missing(symbol):
            raise ValueError(f"{name} is {symbol!r}, a missing symbol; skip it")
        spec, coded = self.spec.encoded([self._compared], [(symbol,)], lambda side, k: name if side else "Z")
        assert coded is not None
        (Z,), (x,) = coded.left.codes, coded.right.codes
        found = self._of_symbol[symbol] = between(Z, x, spec.resolved(1)).matrix
        return found
