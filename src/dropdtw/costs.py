"""Match costs: how different z_i and x_j are (paper Section 3.3).

Each function maps Z (K, d) and X (N, d) to C (K, N). Pass a function or its name as `match=`. A `Softmax` object is
such a function too, with a temperature γ and ids that say which z are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dropdtw.problem import compiled
from dropdtw.problem.errors import OptionError, choices
from dropdtw.problem.inputs import Array, as_floats, as_match_costs, as_pair
from dropdtw.problem.symbols import SCORES, Coded, Lookup, score_matrix
from dropdtw.problem.warn import warn

__all__ = [
    "Lookup",
    "MatchCost",
    "Softmax",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "equal",
    "euclidean",
    "of_scores",
    "softmax",
    "sqeuclidean",
]

MatchCost = str | Callable[..., npt.ArrayLike] | Mapping[tuple[Any, Any], float] | Lookup
"""What `match=` takes: how different two elements are.

- "auto": Euclidean for up to 15 features, cosine for more. Cosine ignores the length of a vector, which suits
  embeddings, but not measurements.
- The name of a function of this module: "cosine", "softmax", "euclidean", "sqeuclidean", "cityblock", "chebyshev" or
  "correlation".
- "softmax:0.1", or any γ > 0: the softmax cost with that temperature.
- Any function of Z (K, d) and X (N, d) that returns the match costs C (K, N).

If the sequences hold symbols (the letters of a string, words, any hashable objects):

- "auto" or "equal": 0 for equal symbols, 1 for others.
- A dictionary of pairs, {("A", "G"): 0.5, ...}, or a data frame; see `Lookup`.
- The name of a score matrix of Biopython, such as "BLOSUM62"; costs are its scores, negated.
- A function of one symbol of Z and one of X that returns their cost. It is called once per pair of distinct symbols.
"""


def cosine(Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
    """Cosine cost: 1 − cos(z_i, x_j) (paper Eq. 3), in [0, 2].

    A zero vector has no direction. Its cosine counts as 0, so its cost is 1.

    Z, X : (K, d) and (N, d).

    Returns C (K, N). Raises ValueError if a sequence has NaN or infinity, or if the numbers of features d differ. Warns
    (UserWarning) if d = 1, because then only signs are compared.

    >>> from dropdtw import costs
    >>> costs.cosine([[1, 0], [0, 0]], [[2, 0], [0, 3], [-1, 0]])
    array([[0., 1., 2.],
           [1., 1., 1.]])
    """
    A, B = as_pair(Z, X)
    _NAMED["cosine"].check_features(A.shape[1])
    return _cosine(A, B)


def _cosine(A: Array, B: Array) -> Array:
    lengths = row_lengths(B)
    return cosine_of(unit_rows(A), unit_rows(B), None) if lengths is None else cosine_of(unit_rows(A), B, 1 / lengths)


def cosine_of(units: Array, B: Array, scale: Array | None) -> Array:
    """The cosine cost of unit vectors and the rows of B.

    scale : (len(B),) factors that turn the rows of B into unit vectors; None if they are unit vectors already.
    """
    if (found := compiled.match_costs("cosine", units, B, scale)) is not None:
        return found
    C: Array = units @ B.T
    if scale is not None:  # scaling C instead of B avoids a copy of B
        C *= scale
    np.subtract(1, C, out=C)
    return np.asarray(np.clip(C, 0, 2, out=C))


def softmax(Z: npt.ArrayLike, X: npt.ArrayLike, *, gamma: float = 1.0, ids: Sequence[Hashable] | None = None) -> Array:
    """Softmax cost: −log softmax over i of (z_i · x_j / γ) (paper Eq. 4).

    Repeated z count once in the sum of the softmax (the paper's appendix).

    Z, X : (K, d) and (N, d).
    gamma : the temperature γ, > 0; a smaller one makes the softmax sharper.
    ids : one id per row of Z; rows with the same id count once. None: equal rows count once.

    Returns C (K, N). Raises ValueError if a sequence or gamma is invalid, if the numbers of features d differ, or if
    z·x / γ overflows.

    >>> from dropdtw import costs
    >>> costs.softmax([[1.0], [1.0], [0.0]], [[0.0]]).round(4).T  # two unique rows: each has probability 1/2
    array([[0.6931, 0.6931, 0.6931]])
    """
    return Softmax(gamma, None if ids is None else tuple(ids))(Z, X)


def of_scores(scores: npt.ArrayLike, classes: Sequence[int]) -> Array:
    """Match costs of a list of classes by the scores of a classifier: −log softmax of each x_j at each class.

    scores : (N, number of classes), logits or logarithms of probabilities.   classes : the K classes, as columns; a
        class may occur more than once.

    Returns C (K, N). Raises ValueError if the scores are not such a matrix, or if a class is not one of its columns.

    The drop rule that fits is `drops.Background`.

    >>> import numpy as np
    >>> from dropdtw import costs
    >>> costs.of_scores(np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]), [2, 0]).round(2)
    array([[1.39, 0.22],
           [0.69, 2.3 ]])
    """
    S = as_floats(scores, "scores")
    if S.ndim != 2 or 0 in S.shape or not (np.isfinite(S).any(axis=1) & (np.inf > S).all(axis=1)).all():
        raise ValueError(
            f"scores has shape {S.shape}; give (N, classes) without NaN or +∞, and a class for each row that is not −∞"
        )
    columns = np.asarray(classes)
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or not ((columns >= 0) & (columns < S.shape[1])).all():
        raise ValueError(f"classes is {classes!r}; give a list of columns of the scores, 0 to {S.shape[1] - 1}")
    return np.asarray((_log_sum_exp(S.T) - S.T)[columns])


def euclidean(Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
    """Euclidean distance: ‖z_i − x_j‖.

    Z, X : (K, d) and (N, d), or (K,) and (N,) for numbers.

    Returns C (K, N). Raises ValueError if a sequence has NaN or infinity, or if the numbers of features d differ.

    >>> from dropdtw import costs
    >>> costs.euclidean([0, 3], [0, 1])
    array([[0., 1.],
           [3., 2.]])
    """
    return _euclidean(*as_pair(Z, X))


def _euclidean(A: Array, B: Array) -> Array:
    if _moderate(A, B):
        found = compiled.match_costs("euclidean", A, B)
        return np.asarray(np.sqrt(_sqeuclidean(A, B))) if found is None else found
    # Squares would overflow or underflow, so scale the largest value to about 1. The squares of pairs that are much
    # closer than that still underflow; they are recomputed, each at its own scale.
    exponent = int(np.frexp(_largest(A, B))[1]) - 1
    C = _sqeuclidean(np.ldexp(A, -exponent), np.ldexp(B, -exponent))
    info = np.finfo(C.dtype)
    close = info.tiny / info.eps**2 > C
    with np.errstate(over="ignore"):
        C = np.asarray(np.ldexp(np.sqrt(C), exponent))
    _by_differences(C, close, A, B, _length)
    return C


def _length(differences: Array) -> Array:
    """The Euclidean length of each row, each at its own scale."""
    scale = np.abs(differences).max(axis=1)
    units = differences / np.where(scale > 0, scale, 1)[:, None]
    return np.asarray(np.sqrt((units**2).sum(axis=1)) * scale)


def _by_differences(C: Array, chosen: Array, A: Array, B: Array, cost: Callable[[Array], Array]) -> None:
    """Replace the `chosen` entries of C by the cost of the differences z − x, in chunks of 4,096 pairs."""
    i, j = np.nonzero(chosen)
    for k in range(0, len(i), 4096):
        part = slice(k, k + 4096)
        C[i[part], j[part]] = cost(A[i[part]] - B[j[part]])


def sqeuclidean(Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
    """Squared Euclidean distance: ‖z_i − x_j‖²; +∞ on overflow.

    Z, X : (K, d) and (N, d), or (K,) and (N,) for numbers.

    Returns C (K, N). Raises ValueError if a sequence has NaN or infinity, or if the numbers of features d differ.

    >>> from dropdtw import costs
    >>> costs.sqeuclidean([0, 3], [0, 1])
    array([[0., 1.],
           [9., 4.]])
    """
    return _sqeuclidean(*as_pair(Z, X))


def _sqeuclidean(A: Array, B: Array) -> Array:
    if (found := compiled.match_costs("sqeuclidean", A, B)) is not None:
        return found
    if A.shape[1] <= 8:
        C: Array = np.zeros((len(A), len(B)), A.dtype)
        with np.errstate(over="ignore"):
            for a, b in zip(A.T, B.T, strict=True):
                C += (a[:, None] - b[None, :]) ** 2
        return C
    # |z|² + |x|² − 2 z·x is one matrix product, but cancels where z ≈ x: center first, and compute close pairs
    # from their differences.
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.concatenate([A, B]).mean(axis=0)
        P, Q = A - center, B - center
        p, q = (P**2).sum(axis=1), (Q**2).sum(axis=1)
        C = P @ (-2 * Q).T
        C += p[:, None]
        C += q
        np.maximum(C, 0, out=C)
        if C.min() > 1e-2 * (p.max() + q.max()):
            return C
        close = ~(1e-2 * (p[:, None] + q) < C)  # negated rather than ≥, so that NaN from an overflow counts as close
        _by_differences(C, close, A, B, lambda differences: (differences**2).sum(axis=1))
    return C


def equal(Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
    """0 where z_i and x_j are equal in every feature, 1 elsewhere. `dropdtw.align` takes symbols, too.

    Z, X : (K, d) and (N, d), or (K,) and (N,) for numbers.

    Returns C (K, N). Raises ValueError if a sequence has NaN or infinity, or if the numbers of features d differ.

    >>> from dropdtw import costs
    >>> costs.equal([1, 2], [2, 1, 1])
    array([[1., 0., 0.],
           [0., 1., 1.]])
    """
    return _equal(*as_pair(Z, X))


def _equal(A: Array, B: Array) -> Array:
    apart = A[:, :1] != B[:, 0]
    for a, b in zip(A.T[1:], B.T[1:], strict=True):
        apart |= a[:, None] != b
    return np.asarray(apart, A.dtype)


def cityblock(Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
    """City-block distance: Σ_k |z_ik − x_jk|. A single outlying feature weighs less than in `sqeuclidean`.

    Z, X : (K, d) and (N, d), or (K,) and (N,) for numbers.

    Returns C (K, N). Raises ValueError if a sequence has NaN or infinity, or if the numbers of features d differ.

    >>> from dropdtw import costs
    >>> costs.cityblock([[0, 0], [3, 4]], [[1, 1]])
    array([[2.],
           [5.]])
    """
    return _by_feature(*as_pair(Z, X), np.add)


def chebyshev(Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
    """Chebyshev distance: max_k |z_ik − x_jk|. Two elements are close only if they are close in every feature.

    Z, X : (K, d) and (N, d), or (K,) and (N,) for numbers.

    Returns C (K, N). Raises ValueError if a sequence has NaN or infinity, or if the numbers of features d differ.

    >>> from dropdtw import costs
    >>> costs.chebyshev([[0, 0], [3, 4]], [[1, 1]])
    array([[1.],
           [3.]])
    """
    return _by_feature(*as_pair(Z, X), np.maximum)


def _by_feature(A: Array, B: Array, combine: np.ufunc) -> Array:
    """Combine the absolute differences of all features; +∞ on overflow."""
    C: Array = np.zeros((len(A), len(B)), A.dtype)
    rows = max(1, (1 << 15) // len(B))  # few enough cells to stay in a core's cache during the loop over features
    with np.errstate(over="ignore"):
        for k in range(0, len(A), rows):
            part, apart = C[k : k + rows], np.empty_like(C[k : k + rows])
            for a, b in zip(A[k : k + rows].T, B.T, strict=True):
                np.abs(np.subtract(a[:, None], b, out=apart), out=apart)
                combine(part, apart, out=part)
    return C


def correlation(Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
    """Correlation cost: 1 − the correlation of z_i and x_j over their features, in [0, 2].

    This is the cosine cost of z − z̄ and x − x̄. An element whose features are all equal has no correlation with
    anything, so its cost is 1.

    Z, X : (K, d) and (N, d), d ≥ 2.

    Returns C (K, N). Raises ValueError if a sequence has NaN or infinity, if the numbers of features d differ, or if
    d = 1.

    >>> from dropdtw import costs
    >>> costs.correlation([[1, 2, 3], [5, 5, 5]], [[10, 20, 30], [3, 2, 1]]).round(6)
    array([[0., 2.],
           [1., 1.]])
    """
    A, B = as_pair(Z, X)
    _NAMED["correlation"].check_features(A.shape[1])
    return _correlation(A, B)


def _correlation(A: Array, B: Array) -> Array:
    return _cosine(_centered(A), _centered(B))


def _centered(A: Array) -> Array:
    """Rows minus their means, scaled so that sums cannot overflow; exactly 0 where a row is constant."""
    scale = np.maximum(np.abs(A).max(axis=1, keepdims=True), np.finfo(A.dtype).tiny)
    A = A / scale
    constant = (A[:, :1] == A).all(axis=1, keepdims=True)  # rounding errors would give such a row a direction
    return np.asarray(np.where(constant, A.dtype.type(0), A - A.mean(axis=1, keepdims=True)))


@dataclass(frozen=True)
class Softmax:
    """The match cost of paper Eq. 4 as an object: `match=costs.Softmax(gamma=0.1, ids=step_ids)`.

    gamma : the temperature γ, > 0.
    ids : one id per row of Z; rows with the same id count once. None: equal rows count once.

    A drop logit (see `drops.LogitPercentile`) adds one more entry to the softmax of each x_j, which then gives the drop
    costs as well: C = −log(P(z_i) + ε), d_x = −log(P(drop) + ε).

    Raises ValueError if gamma is not a finite number > 0.

    >>> from dropdtw import costs
    >>> costs.Softmax(gamma=0.5)([[1.0], [0.0]], [[0.0]]).round(4).T
    array([[0.6931, 0.6931]])
    """

    gamma: float = 1.0
    ids: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.gamma, Real) or not 0 < self.gamma < np.inf:
            raise ValueError(f"the softmax cost's gamma is {self.gamma!r}; give a finite number > 0")

    def __call__(self, Z: npt.ArrayLike, X: npt.ArrayLike) -> Array:
        """The match costs C (K, N) of Z (K, d) and X (N, d)."""
        S, row = self.similarities(Z, X)
        S = self._logits(S)
        C: Array = _log_sum_exp(S) - S
        return C[row]

    def with_drop_logits(
        self, Z: npt.ArrayLike, X: npt.ArrayLike, logits: Callable[[Array], Array], epsilon: float
    ) -> tuple[Array, Array]:
        """C (K, N) and d_x (N,) of a softmax that includes a drop logit.

        logits : computes the drop logit from the similarities (U, N) of the unique z.   epsilon : ε in the costs.
        """
        S, row = self.similarities(Z, X)
        S = self._logits(np.concatenate([S, np.broadcast_to(logits(S), (1, S.shape[1]))]))
        C = -np.log(np.exp(S - _log_sum_exp(S)) + epsilon)
        return C[:-1][row], C[-1]

    def similarities(self, Z: npt.ArrayLike, X: npt.ArrayLike) -> tuple[Array, Array]:
        """The products z·x of the unique z, (U, N), and for each z_i its row among them, (K,)."""
        A, B = as_pair(Z, X)
        if self.ids is None:
            _, first, row = np.unique(A, axis=0, return_index=True, return_inverse=True)
            row = row.ravel()
        else:
            if len(self.ids) != len(A):
                raise ValueError(f"ids has {len(self.ids)} entries, but Z has {len(A)} elements; give one id per z_i")
            where: dict[Hashable, int] = {}
            row = np.array([where.setdefault(name, len(where)) for name in self.ids])
            first = np.array([self.ids.index(name) for name in where])
        with np.errstate(over="ignore", invalid="ignore"):
            return A[first] @ B.T, row

    def _logits(self, S: Array) -> Array:
        with np.errstate(over="ignore"):
            logits: Array = S / self.gamma
        if not np.isfinite(logits).all():
            how = "raise gamma, or give them as float64" if S.dtype == np.float32 else "or raise gamma"
            raise ValueError(f"z·x / {self.gamma:g} overflows {S.dtype}; scale Z and X down, {how}")
        return logits


MATCH_COSTS: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "cosine": cosine,
    "softmax": Softmax(),
    "euclidean": euclidean,
    "sqeuclidean": sqeuclidean,
    "cityblock": cityblock,
    "chebyshev": chebyshev,
    "correlation": correlation,
    "equal": equal,
}
"""The match costs by name."""


@dataclass(frozen=True, eq=False)
class Match:
    """A match cost and its properties.

    cost : the function; it takes sequences that have already been validated.
    in_kernels : whether all kernels can compute it from the sequences. This is False for cosine, which only the kernels
        for many pairs can compute.
    by_column : whether column j depends only on Z and x_j, so that C can be computed in strips.
    by_pair : whether, in addition, row i depends only on z_i and X.
    symmetric : whether exchanging Z and X transposes C.
    least : a lower bound on every cost.
    softmax : for a softmax cost, the `Softmax` object, which can take a drop logit; otherwise None.
    prepare : if given, this cost is the cosine cost of `prepare(Z)` and `prepare(X)`.
    table : for codes of symbols, the cost of each pair of codes; otherwise None.
    each : if given, it computes the costs (n,) of n pairs of elements, (n, d) and (n, d).
    """

    name: str
    cost: Callable[[Array, Array], Array]
    in_kernels: bool = False
    by_column: bool = True
    by_pair: bool = True
    symmetric: bool = True
    least: float = 0.0
    softmax: Softmax | None = None
    prepare: Callable[[Array], Array] | None = None
    table: Array | None = None
    each: Callable[[Array, Array], Array] | None = None

    def of(self, derive: Callable[[Array], Array]) -> Match:
        """The same cost of derived sequences, `derive(Z)` and `derive(X)`, whose elements may depend on neighbors."""
        return Match(
            self.name,
            lambda Z, X: self.cost(derive(Z), derive(X)),
            by_column=False,
            by_pair=False,
            symmetric=self.symmetric,
            least=self.least,
        )

    def kernel_metric(self, *sequences: Array) -> str | None:
        """The cost's name if the compiled kernels may compute it for these sequences, otherwise None."""
        return self.name if self.in_kernels and _moderate(*sequences) else None

    def check_features(self, features: int) -> None:
        """Raise or warn if the cost is meaningless for this many features. Call it once per request, not per pair."""
        if self.name == "correlation" and features == 1:
            why = ", which compares the features of two elements, but these have only one"
            raise OptionError("match", self.name, "use 'euclidean', or give windows of the series as elements", why)
        if self.name == "cosine" and features == 1:
            warn("the cosine of one-dimensional elements compares only their signs; match='euclidean' compares values")


FEW: Final = 15
"""The most features for which "auto" is Euclidean. Longer vectors are usually embeddings, whose direction matters."""

_NAMED: Final = {
    "cosine": Match("cosine", _cosine),
    "euclidean": Match("euclidean", _euclidean, in_kernels=True),
    "sqeuclidean": Match("sqeuclidean", _sqeuclidean, in_kernels=True),
    "cityblock": Match("cityblock", partial(_by_feature, combine=np.add)),
    "chebyshev": Match("chebyshev", partial(_by_feature, combine=np.maximum)),
    "correlation": Match("correlation", _correlation, prepare=_centered),
    "equal": Match("equal", _equal, each=lambda A, B: (A != B).any(axis=1).astype(A.dtype)),
}


def resolve(match: MatchCost, features: int) -> Match:
    """Resolve a name, "auto", "softmax:γ", costs of symbols or a callable. The results of a callable are validated.

    features : d of the sequences; "auto" is Euclidean for up to `FEW` features and cosine for more.

    >>> resolve("auto", 15).name, resolve("auto", 16).name
    ('euclidean', 'cosine')
    """
    if match == "auto":
        return _NAMED["euclidean" if features <= FEW else "cosine"]
    if isinstance(match, str) and match in _NAMED:
        return _NAMED[match]
    if isinstance(match, Coded):
        return Match(
            match.name, match, symmetric=match.symmetric, least=match.least, table=match.table, each=match.each
        )
    if isinstance(match, Lookup) or (isinstance(match, str) and SCORES.fullmatch(match)):
        lookup = match if isinstance(match, Lookup) else score_matrix(match)
        return Match(lookup.name, partial(_only_symbols, lookup))
    softmax = _softmax(match)
    if softmax is not None:
        return Match("softmax", softmax, by_pair=False, symmetric=False, softmax=softmax)
    if callable(match):
        return Match("custom", _checked(match), by_column=False, by_pair=False, symmetric=False, least=-np.inf)
    raise OptionError(
        "match",
        match,
        f"{choices(match, MATCH_COSTS)}, 'softmax:0.1' (any γ > 0), 'auto'",
        in_python=", or give a function of Z (K, d) and X (N, d) that returns C (K, N)",
    )


def _only_symbols(lookup: Lookup, Z: Array, X: Array) -> Array:
    raise OptionError("match", lookup, "use align, distance, pairwise, find or nearest", ", which compares symbols")


def _softmax(match: MatchCost) -> Softmax | None:
    if isinstance(match, Softmax):
        return match
    name, colon, gamma = match.partition(":") if isinstance(match, str) else ("", "", "")
    if name != "softmax":
        return None
    try:
        return Softmax(float(gamma) if colon else 1.0)
    except ValueError:
        return None


def _checked(match: Callable[[Array, Array], npt.ArrayLike]) -> Callable[[Array, Array], Array]:
    def call(Z: Array, X: Array) -> Array:
        try:
            found = match(Z, X)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"match(Z, X) failed for Z of shape {Z.shape} and X of shape {X.shape}: {error}; give a function of "
                "all Z (K, d) and all X (N, d) that returns C (K, N)"
            ) from error
        C = as_match_costs(found, "the result of match(Z, X)")
        if C.shape != (len(Z), len(X)):
            raise ValueError(
                f"match(Z, X) returned shape {C.shape} for {len(Z)} elements of Z and {len(X)} of X; "
                f"it must return C of shape ({len(Z)}, {len(X)})"
            )
        return C

    return call


def _moderate(*sequences: Array) -> bool:
    """Whether squares need no scaling: none overflows, and those that underflow are negligible."""
    largest = _largest(*sequences)
    info = np.finfo(sequences[0].dtype)
    return largest == 0 or float(info.tiny) ** 0.25 < largest < float(info.max) ** 0.25


def _largest(*sequences: Array) -> float:
    """The largest absolute value."""
    return max(max(float(A.max()), -float(A.min())) for A in sequences)


_SAFE: Final = {np.dtype(t): float(np.finfo(t).tiny) ** 0.25 for t in (np.float32, np.float64)}
"""Minimum length of a vector: above it, squares that underflow are too small to matter."""


def row_lengths(A: Array) -> Array | None:
    """The Euclidean lengths of the rows; None if squares overflow or underflow in some row, or a row is zero."""
    if (norm := compiled.row_lengths(A)) is None:
        with np.errstate(over="ignore", under="ignore"):
            norm = np.sqrt(np.einsum("nd,nd->n", A, A))
    safe = _SAFE[A.dtype] < norm.min() <= norm.max() < np.inf
    return norm if safe else None


def unit_rows(A: Array) -> Array:
    """The rows scaled to length 1; zero rows stay zero."""
    lengths = row_lengths(A)
    if lengths is None:
        A = A / np.maximum(np.abs(A).max(axis=1, keepdims=True), np.finfo(A.dtype).tiny)
        lengths = np.sqrt((A**2).sum(axis=1))
        lengths = np.where(lengths > 0, lengths, A.dtype.type(1))
    return np.asarray(A / lengths[:, None])


def _log_sum_exp(S: Array) -> Array:
    top = S.max(axis=0)
    return np.asarray(top + np.log(np.exp(S - top).sum(axis=0)))
