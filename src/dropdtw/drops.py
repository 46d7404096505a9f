"""Drop costs: the cost of dropping an element (paper Section 3.4), fixed or computed from the match costs.

`drop_x` and `drop_z` accept, in `align`, `solve` and most other functions:

- None: no element may be dropped;
- a number, or one number per element (+∞ forbids dropping that element);
- a rule: a string ("percentile:30" or "suggest"; for `drop_x` with `match="softmax"` also "logit:30"), an object of
  this module, such as `Background` for the output of a classifier, or any function of the match costs C that returns a
  number or one number per *column* of C. A function for `drop_z` receives Cᵀ, so columns are always the elements to be
  dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array, as_match_costs, detached, owned

if TYPE_CHECKING:
    from dropdtw.problem.match import MatchCosts

__all__ = [
    "Background",
    "Constant",
    "DropCost",
    "LogitPercentile",
    "PerElement",
    "Percentile",
    "Suggest",
    "percentile_drop",
]

DropCost = None | str | npt.ArrayLike | Callable[[Array], npt.ArrayLike]
"""What `drop_x=` and `drop_z=` take: the cost of dropping an element.

- None: no element may be dropped.
- A number, such as 0.3: the cost of dropping any element.
- One number per element; +∞ for an element that may not be dropped.
- "percentile:30": the 30th percentile of the match costs, so that 30 % of all pairs cost less than a drop.
- "suggest": a number chosen from the match costs, see `dropdtw.drops.Suggest`.
- "logit:30", only with the match cost "softmax": dropping becomes one more class of the softmax, see
  `dropdtw.drops.LogitPercentile`.
- A function of the match costs C (K, N) that returns a number or one number per column. For `drop_z` it receives Cᵀ.
"""

Band = tuple[Array, Array] | None

EPSILON: Final = 1e-5
"""The default ε of `LogitPercentile`."""


class Lowered(NamedTuple):
    """A rule in the form that every executor takes, compiled or not, on a CPU or a GPU.

    kind : "number"; "each" (one number per element); "percentile", "logit" or "suggest", which the match costs decide;
        or "own", which only `Rule.price` can compute.
    number : the number, or the percentile.   values : one number per element.
    """

    kind: str
    number: float = np.inf
    values: Array | None = None

    @property
    def known(self) -> float | Array:
        """The drop cost of every element, whatever the match costs: one number, or one per element."""
        return self.number if self.values is None else self.values

    def fits(self, sequences: Sequence[Sized]) -> bool:
        """Whether kernels can compute it for all of these sequences; one number per element fits one length only."""
        if self.values is not None:
            return {len(each) for each in sequences} == {np.size(self.values)}
        return self.kind in ("number", "percentile", "suggest")


class Rule(ABC):
    """A way to compute drop costs. `resolve` turns every accepted value of `drop_x` and `drop_z` into one of these.

    kind : as in `Lowered`. It counts only in the class that states it: a subclass may compute something else.
    needs_costs : whether it depends on the match costs; if not, the drop costs are known before any match cost
        is computed.
    symmetric : whether the drop cost stays the same if Z and X are exchanged.
    """

    kind: ClassVar[str] = "own"
    needs_costs: ClassVar[bool] = True
    symmetric: ClassVar[bool] = False

    @abstractmethod
    def price(self, costs: MatchCosts, side: str, band: Band = None) -> npt.ArrayLike:
        """The drop cost for these match costs: a number, or one per element.

        side : "x" or "z", the elements to be dropped.
        band : the x that each z_i may match, as in `dropdtw.problem.costs.Costs`.
        """

    def plain(self) -> float | str | None:
        """The rule as a number or a string that `resolve` accepts; None if it cannot be written that way."""
        return None

    @property
    def said(self) -> object:
        """The rule as error messages show it."""
        return self.plain() or self

    def __call__(self, C: npt.ArrayLike) -> npt.ArrayLike:
        """The cost of dropping a column of C (K, N): one number for all columns, or one per column."""
        from dropdtw.problem.match import Matrix

        return self.price(Matrix(as_match_costs(C)), "x")


@dataclass(frozen=True)
class Constant(Rule):
    """The same drop cost for every element: `drop_x=0.3` means `Constant(0.3)`.

    value : the drop cost, any number except NaN and −∞.

    >>> from dropdtw import drops
    >>> drops.Constant(0.3)([[1.0, 2.0]])
    0.3
    """

    value: float

    kind: ClassVar[str] = "number"
    needs_costs: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True

    def price(self, costs: MatchCosts, side: str, band: Band = None) -> float:
        """The constant."""
        return self.value

    def plain(self) -> float | None:
        """The number; None if it is not a number or does not fit into a float."""
        if not isinstance(self.value, Real) or isinstance(self.value, (bool, np.bool_)):
            return None
        try:
            return float(self.value)
        except OverflowError:
            return None

    @property
    def said(self) -> object:
        """The number."""
        return self.value


@dataclass(frozen=True, eq=False)
class PerElement(Rule):
    """One drop cost per element: `drop_x=[0.3, 0.5]` means `PerElement([0.3, 0.5])`.

    values : (N,) for `drop_x`, (K,) for `drop_z`; +∞ forbids dropping that element.

    >>> from dropdtw import drops
    >>> drops.PerElement([0.3, 0.5])([[1.0, 2.0]])
    [0.3, 0.5]
    """

    values: npt.ArrayLike

    kind: ClassVar[str] = "each"
    needs_costs: ClassVar[bool] = False

    def price(self, costs: MatchCosts, side: str, band: Band = None) -> npt.ArrayLike:
        """The values."""
        return detached(self.values)  # type: ignore[no-any-return]

    @property
    def said(self) -> object:
        """The values."""
        return self.values


class Background(PerElement):
    """−log of the probability that an element is background: d_j = offset − scale · log p_j.

    The rule for a classifier that knows background as a class, beside match costs −log p (`costs.of_scores`): a frame
    is dropped where background is likelier than the step that it would match.

    probability : p, (N,) for `drop_x` or (K,) for `drop_z`, 0 to 1. Where it is 0, the element may not be dropped.
        A PyTorch tensor, such as (B, N) for a batch, passes gradients.
    scale : 1 for match costs −log p; otherwise what one nat is worth in the unit of the match costs, for example 0.1
        beside cosine costs.
    offset : what a drop costs where p = 1. Above 0, it drops less.

    Raises ValueError if a probability is not a number from 0 to 1, or if scale or offset is invalid.

    >>> import numpy as np, dropdtw
    >>> from dropdtw import costs, drops
    >>> p = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])        # frames × (background, boil, pour)
    >>> C = costs.of_scores(np.log(p), [1, 2])
    >>> dropdtw.solve(C, drops.Background(p[:, 0]), method="steps").labels
    array([ 0, -1,  1])
    """

    kind: ClassVar[str] = "each"

    def __init__(self, probability: npt.ArrayLike, scale: float = 1.0, offset: float = 0.0) -> None:
        p: Any = probability if hasattr(probability, "detach") else np.asarray(probability, np.float64)
        seen = np.asarray(detached(p))
        if not ((seen >= 0) & (seen <= 1)).all():
            raise ValueError(
                f"the probabilities of background lie between {seen.min():g} and {seen.max():g}; give numbers from 0 "
                "to 1, or use Background.of_scores for logits"
            )
        with np.errstate(divide="ignore"):
            self._set(p.log() if hasattr(p, "detach") else np.log(p), scale, offset)

    @classmethod
    def of_scores(cls, scores: npt.ArrayLike, column: int = 0, scale: float = 1.0, offset: float = 0.0) -> Self:
        """The rule for the scores (N, classes) of a classifier: logits, or logarithms of probabilities.

        column : the class that is background.
        """
        from dropdtw.costs import of_scores

        rule = cls.__new__(cls)
        given: Any = scores
        log = given.log_softmax(-1)[..., column] if hasattr(given, "detach") else -of_scores(scores, [column])[0]
        rule._set(log, scale, offset)
        return rule

    def _set(self, log: Any, scale: float, offset: float) -> None:
        if not isinstance(scale, Real) or not 0 < scale < np.inf:
            raise ValueError(f"scale is {scale!r}; give a finite number > 0")
        if not isinstance(offset, Real) or not np.isfinite(offset):
            raise ValueError(f"offset is {offset!r}; give a finite number")
        object.__setattr__(self, "values", offset - scale * log)


@dataclass(frozen=True)
class Percentile(Rule):
    """The p-th percentile of the match costs, the same for every element (paper Eq. 5).

    p : 0 to 100. p = 30 makes 30 % of the pairs cheaper than a drop; a lower p drops more.

    Raises ValueError if p is not a number from 0 to 100.

    >>> from dropdtw import drops
    >>> drops.Percentile(50)([[1.0, 2.0, 3.0]])
    2.0
    """

    p: float

    kind: ClassVar[str] = "percentile"
    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_percentile(self.p)

    def price(self, costs: MatchCosts, side: str, band: Band = None) -> float:
        """The percentile. A large C is not materialized for it."""
        return costs.percentile(self.p)

    def plain(self) -> str:
        """The string that `resolve` accepts."""
        return f"percentile:{_digits(self.p)}"


@dataclass(frozen=True)
class Suggest(Rule):
    """A drop cost between good matches and chance matches, the same for every element of Z and X.

    The best match of an x is a good match or, for junk, a chance match. Its best match elsewhere in Z is always a
    chance match. We take the costs of both, for every x. The drop cost is the threshold that splits these numbers most
    clearly into two groups (Otsu's threshold). `dropdtw.suggest_drop` also reports how far to trust it.

    >>> from dropdtw import drops
    >>> drops.Suggest()([[0.1, 0.9, 0.8], [0.9, 0.2, 0.9]])         # best matches 0.1, 0.2 and 0.8; all others 0.9
    0.5
    """

    kind: ClassVar[str] = "suggest"

    def price(self, costs: MatchCosts, side: str, band: Band = None) -> float:
        """The same number for x and z, from a sample of the pairs inside the band (`sampled`)."""
        return gap(sampled(costs, band)).threshold

    def plain(self) -> str:
        """The string that `resolve` accepts."""
        return "suggest"


@dataclass(frozen=True)
class LogitPercentile(Rule):
    """A drop logit inside the softmax match cost: "drop" is one more class, which competes with the steps for each x_j.

    Its logit is the k-th largest similarity z·x over all pairs of a z and an x, where repeated z count once, with
    k = max(1, ⌊p/100 · number of these pairs⌋). It is added to the softmax as one more row; then C = −log(P(z_i) + ε)
    and d_x = −log(P(drop) + ε). So the drop cost differs between x_j. A larger p lowers the logit and drops less.
    Works with `match="softmax"` and for `drop_x` only.

    p : 0 to 100.   epsilon : ε, which keeps the costs finite.

    Raises ValueError if p is not a number from 0 to 100.

    >>> import dropdtw
    >>> Z, X = [[4.0, 0.0], [0.0, 4.0]], [[2.0, 0.0], [-2.0, -2.0], [0.0, 2.0]]
    >>> dropdtw.align(Z, X, match="softmax", drop_x="logit:50").labels      # x_1 resembles neither step
    array([ 0, -1,  1])
    """

    p: float
    epsilon: float = EPSILON

    kind: ClassVar[str] = "logit"

    def __post_init__(self) -> None:
        _check_percentile(self.p)

    def price(self, costs: MatchCosts, side: str, band: Band = None) -> npt.ArrayLike:
        """Always raise ValueError: this rule changes the match costs, so it cannot be computed from them."""
        raise OptionError(
            f"drop_{side}",
            self.said,
            "use it as {drop_x} of align, distance or pairwise with {match='softmax'}",
            ", which is part of the softmax match cost",
        )

    def logits(self, S: Array) -> Array:
        """The drop logit for similarities S (U, N) of the unique z, as a scalar array."""
        k = max(1, int(self.p * S.size / 100))
        return np.asarray(np.partition(S.ravel(), S.size - k)[S.size - k])

    def plain(self) -> str | None:
        """The string that `resolve` accepts; None for an ε other than the default, which it cannot express."""
        return f"logit:{_digits(self.p)}" if self.epsilon == EPSILON else None


@dataclass(frozen=True, eq=False)
class _Function(Rule):
    """A function given by the caller."""

    function: Callable[[Array], npt.ArrayLike]

    @property
    def said(self) -> object:
        return self.function

    def price(self, costs: MatchCosts, side: str, band: Band = None) -> npt.ArrayLike:
        return self.function(costs.matrix if side == "x" else costs.matrix.T)


_NAMED: Final[dict[str, Callable[[float], Rule]]] = {"percentile": Percentile, "logit": LogitPercentile}


def resolve(drop: DropCost, name: str) -> Rule | None:
    """The rule for `drop`; None if nothing may be dropped.

    drop : any value that `drop_x` and `drop_z` accept.   name : the name of the argument, for error messages.

    Raises ValueError if a string names no rule.

    >>> resolve("percentile:30", "drop_x"), resolve(0.5, "drop_x"), resolve(None, "drop_x")
    (Percentile(p=30.0), Constant(value=0.5), None)
    """
    drop = detached(drop)
    if drop is None or isinstance(drop, Rule):
        return drop
    if isinstance(drop, str):
        return _parsed(drop, name)
    if callable(drop):
        return _Function(drop)
    try:
        single = np.ndim(drop) == 0
    except ValueError:  # a ragged list, which is rejected later, when its length is checked
        single = False
    if single:
        return Constant(drop)  # type: ignore[arg-type]
    if isinstance(drop, np.ndarray):
        return PerElement(owned(drop))
    return PerElement(list(drop) if isinstance(drop, list) else drop)


def lowered(rule: Rule | None) -> Lowered:
    """A rule as executors take it; without one, a drop costs +∞.

    >>> lowered(resolve("percentile:30", "drop_x")), lowered(None).number
    (Lowered(kind='percentile', number=30.0, values=None), inf)
    """
    if rule is None:
        return Lowered("number")
    kind = vars(type(rule)).get("kind", "own")
    if isinstance(rule, PerElement) and kind == "each":
        return Lowered(kind, values=np.asarray(detached(rule.values)))
    number = rule.plain() if kind == "number" else getattr(rule, "p", np.inf)
    return Lowered("own") if number is None else Lowered(kind, float(number))


def spelled(rule: Rule | None) -> float | str | None:
    """A rule as a number or a string that `resolve` accepts; None if there is none, such as for a class of your own."""
    return None if rule is None or lowered(rule).kind == "own" else rule.plain()


def _parsed(drop: str, name: str) -> Rule:
    if drop == "suggest":
        return Suggest()
    kind, _, p = drop.partition(":")
    try:
        return _NAMED[kind](float(p))
    except (KeyError, ValueError):
        if name == "threshold":
            raise OptionError(name, drop, "give a number or a rule such as 'percentile:30'") from None
        raise OptionError(
            name,
            drop,
            "give None, a number, one number per element, 'percentile:30' or 'logit:30' (0 to 100), 'suggest'",
            in_python=", or a rule from dropdtw.drops",
        ) from None


def _digits(p: float) -> str:
    """The shortest text that `float` reads back as p, without a trailing ".0"."""
    return repr(float(p)).removesuffix(".0")


def _check_percentile(p: float) -> None:
    if not isinstance(p, Real) or not 0 <= p <= 100:
        raise ValueError(f"the percentile is {p!r}; give a number from 0 to 100 (not 0 to 1)")


def percentile_drop(C: Array, p: float) -> float:
    """Compute the p-th percentile of the finite entries of C (paper Eq. 5).

    C : (K, N) match costs.
    p : 0 to 100. p = 30 makes 30 % of the pairs cheaper than a drop; a lower p drops more.

    Returns a float; +∞ if no entry is finite. Raises ValueError if p is not a number from 0 to 100.

    >>> import numpy as np
    >>> from dropdtw import drops
    >>> drops.percentile_drop(np.array([[1.0, 2.0], [3.0, np.inf]]), 50)
    2.0
    """
    _check_percentile(p)
    finite = C[np.isfinite(C)]
    return float(np.percentile(finite, p)) if finite.size else np.inf


def percentile_of_strips(strips: Callable[[], Iterable[Array]], sample: Array, p: float) -> float:
    """`percentile_drop` of match costs that come in strips, without materializing C.

    strips : returns a fresh iterator over the strips at each call.
    sample : some of the costs, for a first guess at the percentile.

    >>> C = np.arange(100.0).reshape(10, 10)
    >>> percentile_of_strips(lambda: (C[:, :7], C[:, 7:]), C[:, ::4], 30), percentile_drop(C, 30)
    (29.7, 29.7)
    """
    known = sample[np.isfinite(sample)]
    margin = 2.0  # in percentile points, on each side of p
    while True:  # keep the costs inside a bracket and count those below; widen it until the percentile is inside
        low = np.percentile(known, p - margin) if known.size and p > margin else -np.inf
        high = np.percentile(known, p + margin) if known.size and p + margin < 100 else np.finfo(sample.dtype).max
        count = below = 0
        kept = []
        for strip in strips():
            count += int(np.count_nonzero(strip < np.inf))
            below += int(np.count_nonzero(strip < low))
            kept.append(strip[(strip >= low) & (strip <= high)])
        if not count:
            return np.inf
        inside = np.concatenate(kept)
        del kept
        rank = (count - 1) * (p / 100)
        first, second = int(np.floor(rank)), int(np.ceil(rank))
        if below <= first and second < below + len(inside):
            inside.partition([first - below, second - below])
            a, b = float(inside[first - below]), float(inside[second - below])
            share = rank - first
            return a + (b - a) * share if share < 0.5 else b - (b - a) * (1 - share)  # rounds like NumPy
        margin *= 4


# --- The suggested drop cost --------------------------------------------------------------------------------------

MAX_SAMPLED: Final = 1 << 22
"""Number of match costs above which only every n-th x is examined. At least 2K of the x are examined (all if N < 2K),
so the sample of a long Z can be larger than this."""


@dataclass(frozen=True, eq=False)
class Gap:
    """The gap between good matches and chance matches.

    threshold : a cost inside the gap; the largest finite match cost if all values are equal.
    explained : the share of the variance that the split explains; None if all values are equal.
    values : the costs that the threshold splits.
    """

    threshold: float
    explained: float | None
    values: Array


def sampled(costs: MatchCosts, band: Band = None) -> Array:
    """About `MAX_SAMPLED` match costs at most (more for a long Z): all rows, every n-th column, +∞ outside the band."""
    K, N = costs.shape
    stride = max(1, min(-(-K * N // MAX_SAMPLED), N // (2 * K)))
    C = costs.matrix if stride == 1 else costs.part(slice(None), slice(None, None, stride))
    if band is None:
        return C
    start, stop = (limit[:, None] for limit in band)
    j = np.arange(0, N, stride)
    return np.asarray(np.where((start <= j) & (j < stop), C, np.inf))


def gap(C: Array) -> Gap:
    """The gap between the best match of each x and its best match elsewhere.

    Neighbors of the best match do not count as elsewhere: they are too similar to it.
    """
    finite = C[np.isfinite(C)]
    if not finite.size:
        raise ValueError(
            "every match is forbidden (+inf), so there is nothing to choose a drop cost from; "
            "allow some matches, or give the drop cost as a number"
        )
    K = len(C)
    near = np.abs(np.arange(K)[:, None] - C.argmin(axis=0)) <= K // 8
    best, other = C.min(axis=0), np.where(near, np.inf, C).min(axis=0)
    values = np.concatenate([best[np.isfinite(best)], other[np.isfinite(other)]])
    if np.ptp(values) <= 1e-9 * np.abs(values).max():  # relative, so that the unit of the costs does not matter
        return Gap(float(finite.max()), None, values)
    return Gap(*otsu(values), values)


def otsu(values: Array) -> tuple[float, float]:
    """Otsu's threshold, which splits numbers into two groups, and the share (0–1) of the variance that this explains.

    >>> threshold, explained = otsu(np.array([0.0, 0.1, 0.9, 1.0]))
    >>> threshold, round(explained, 2)
    (0.5, 0.99)
    """
    v = np.sort(np.asarray(values, np.float64))
    n, total = len(v), np.cumsum(v)
    k = np.arange(1, n)
    apart = k * (n - k) / n * (total[:-1] / k - (total[-1] - total[:-1]) / (n - k)) ** 2
    i = int(apart.argmax())
    return float((v[i] + v[i + 1]) / 2), float(apart[i] / ((v - v.mean()) ** 2).sum())


def chance_gain(C: Array, saved_x: float, saved_z: float) -> float:
    """The most that a stretch of chance matches can save. An opening cost this high makes such stretches unprofitable.

    Chance matches pair an x with a z far from its best match (as in `Suggest`). A stretch of them runs along a
    diagonal, where each match saves the drops of its x and its z, or along a row, where each match saves the drop of
    its x, and all of them together save one drop, that of the z.

    saved_x, saved_z : the cost of a drop; 0 if dropping is not allowed.

    >>> C = np.ones((9, 6))
    >>> C[range(6), range(6)], C[range(5, 8), range(3)] = 0, 0.25      # the best matches, and three chance matches
    >>> chance_gain(C, 0.25, 0.25)
    0.75
    """
    K = len(C)
    near = np.abs(np.arange(K)[:, None] - C.argmin(axis=0)) <= K // 8
    gain = np.where(near, -np.inf, saved_x + saved_z - C.astype(np.float64))
    best, here = 0.0, np.zeros(C.shape[1])
    for row in gain:
        here = row + np.concatenate([[0.0], np.maximum(here[:-1], 0)])
        best = max(best, float(here.max()))
    gain -= saved_z
    never = 2 * np.maximum(gain, 0).sum(axis=1, keepdims=True)  # no stretch saves as much; unlike ∞, it can be summed
    total = np.pad(np.cumsum(np.maximum(gain, -never), axis=1), ((0, 0), (1, 0)))
    along = float((total - np.minimum.accumulate(total, axis=1)).max())
    return max(best, along + saved_z if along > 0 else 0.0)
