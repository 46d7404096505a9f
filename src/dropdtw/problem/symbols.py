"""Sequences of symbols: letters, words or any hashable objects. They become numbers, and their costs a lookup.

`encode` gives each symbol a number and replaces the match cost by one that reads these numbers. Everything after it
sees sequences of numbers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from numbers import Number, Real
from typing import Any, Final, NamedTuple

import numpy as np

from dropdtw.problem.errors import OptionError, choices, described
from dropdtw.problem.inputs import Array
from dropdtw.problem.warn import warn

SCORES: Final = re.compile(r"[A-Z][A-Z0-9.]+")
"""What names of Biopython's score matrices look like."""


class Lookup:
    """The costs of pairs of symbols: `match=` turns a dictionary or a data frame into one.

    costs : a dictionary of pairs, {("A", "G"): 0.5, ...}, or a data frame with a row per symbol of Z and a column per
        symbol of X (NaN: not given). (b, a) costs as much as (a, b) if only that is given, and a symbol costs nothing
        against itself. Any other pair that is not given raises an error once it is needed, unless `costs` is a
        `collections.defaultdict`, which says what it costs. +∞ forbids a match.

    Lookups with the same costs are equal. Raises ValueError if a key is not a pair, or if a cost is not a number.

    >>> from dropdtw import costs
    >>> costs.Lookup({("A", "G"): 0.5})
    Lookup({('A', 'G'): 0.5})
    """

    name = "lookup"

    def __init__(self, costs: Any) -> None:
        self.default: float | None = None
        pairs = dict(costs) if isinstance(costs, Mapping) else _cells(costs)
        if isinstance(costs, defaultdict) and costs.default_factory is not None:
            self.default = _cost(costs.default_factory(), "the default")
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise OptionError("match", costs, "give pairs of symbols as keys, as in {{('A', 'G'): 0.5}}")
        self.costs = {pair: _cost(cost, pair) for pair, cost in pairs.items()}

    def between(self, Z: Sequence[Hashable], X: Sequence[Hashable]) -> Array:
        """The costs of all pairs of distinct symbols, (len(Z), len(X)). Raises ValueError if one is not given."""
        rows, columns = ({symbol: k for k, symbol in enumerate(symbols)} for symbols in (Z, X))
        found = np.full((len(Z), len(X)), np.nan if self.default is None else self.default)
        shared = rows.keys() & columns.keys()
        given = [*(((a, a), 0.0) for a in shared), *(((b, a), cost) for (a, b), cost in self.costs.items())]
        for (a, b), cost in [*given, *self.costs.items()]:  # what is given itself comes last, and counts
            if a in rows and b in columns:
                found[rows[a], columns[b]] = cost
        if np.isnan(found).any():
            i, j = (int(k[0]) for k in np.nonzero(np.isnan(found)))
            known = dict.fromkeys(symbol for pair in self.costs for symbol in pair)
            called = "match" if self.name == Lookup.name else self.name
            raise ValueError(f"{called} has no cost for {Z[i]!r} with {X[j]!r}{_advice((Z[i], X[j]), known)}")
        return found

    def to_lists(self) -> list[Any]:
        """The pairs as [a, b, cost], and the default if there is one, as JSON can hold them."""
        default = [] if self.default is None else [self.default]
        return [*([a, b, cost] for (a, b), cost in self.costs.items()), *default]

    @classmethod
    def from_lists(cls, lists: Iterable[Any]) -> Lookup:
        """Read what `to_lists` wrote."""
        found: defaultdict[Any, float] = defaultdict(None)
        for each in lists:
            if isinstance(each, list):
                a, b, cost = each
                found[a, b] = float(cost)
            else:
                found.default_factory = lambda default=float(each): default
        return cls(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lookup) and (self.costs, self.default) == (other.costs, other.default)

    def __hash__(self) -> int:
        return hash((frozenset(self.costs.items()), self.default))

    def __repr__(self) -> str:
        some = ", ".join(f"{pair!r}: {cost!r}" for pair, cost in islice(self.costs.items(), 3))
        return f"Lookup({{{some}{', …' if len(self.costs) > 3 else ''}}})"


def _cells(frame: Any) -> dict[Any, Any]:
    """The cells of a data frame that are not NaN."""
    values = frame.to_numpy()
    cells = zip(*np.nonzero(frame.notna().to_numpy()), strict=True)
    return {(frame.index[i], frame.columns[j]): values[i, j] for i, j in cells}


def _cost(value: Any, of: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not float(value) > -np.inf:
        raise ValueError(f"match has the cost {value!r} for {of!r}; give a number, or +inf to forbid the match")
    return float(value)


def _advice(symbols: Sequence[Hashable], known: Iterable[Hashable]) -> str:
    """What to do about a pair without a cost."""
    known, remedy = list(known), "; give one, or a collections.defaultdict with a cost for all other pairs"
    for symbol in symbols:
        if symbol in known:
            continue
        alike = [other for other in known if str(other) == str(symbol)]
        if alike:
            return f"; it has {alike[0]!r} ({type(alike[0]).__name__}), but no {symbol!r} ({type(symbol).__name__})"
        some = ", ".join(map(repr, known[:8])) + (", …" if len(known) > 8 else "")
        return f", because {symbol!r} is not among its symbols {some}{remedy}"
    return remedy


@lru_cache(maxsize=64)
def score_matrix(name: str) -> Lookup:
    """A score matrix of Biopython, such as "BLOSUM62", as costs: its scores, negated."""
    try:
        from Bio.Align import substitution_matrices
    except ImportError:
        raise OptionError(
            "match", name, "run pip install biopython, or give costs as a dictionary", ", a score matrix of Biopython"
        ) from None
    if name not in (names := substitution_matrices.load()):
        raise OptionError("match", name, choices(name, names), ", which is no score matrix of Biopython")
    matrix = substitution_matrices.load(name)
    pairs = {(a, b): -float(matrix[a, b]) for a in matrix.alphabet for b in matrix.alphabet}
    found = Lookup(pairs)
    found.name = name
    return found


def as_lookup(match: Any) -> Any:
    """A dictionary or data frame of costs as a `Lookup`; everything else is returned unchanged."""
    frame = hasattr(match, "to_numpy") and hasattr(match, "index") and hasattr(match, "columns")
    return Lookup(match) if frame or isinstance(match, Mapping) else match


class Coded:
    """The match cost of encoded symbols: C[i, j] = table[z_i, x_j].

    table : (U, V), a row for each number that occurs in a Z, a column for each that occurs in an X.
    """

    def __init__(self, name: str, table: Array) -> None:
        self.name, self.table = name, table
        self.least = float(table.min())
        self.symmetric = table.shape[0] == table.shape[1] and bool((table == table.T).all())

    def __call__(self, Z: Array, X: Array) -> Array:
        """The match costs C (K, N) of the codes Z (K, 1) and X (N, 1)."""
        z, x = Z[:, 0].astype(np.intp), X[:, 0].astype(np.intp)
        if len(self.table) > len(z):
            return np.asarray(self.table[z[:, None], x])
        return np.asarray(np.take(np.take(self.table, x, axis=1), z, axis=0))  # copying whole rows is fast

    def each(self, Z: Array, X: Array) -> Array:
        """The costs (n,) of n pairs."""
        return np.asarray(self.table[Z[:, 0].astype(np.intp), X[:, 0].astype(np.intp)])


Symbols = tuple[Hashable, ...]


class Side(NamedTuple):
    """The sequences of one side.

    symbols : their symbols.   codes : a number for each symbol, (length, 1) each; NaN where one is missing.
    numbers : the number of each symbol that occurs.
    """

    symbols: list[Symbols]
    codes: list[Array]
    numbers: dict[Hashable, int]

    @classmethod
    def of(cls, sequences: Sequence[Any], called: Callable[[int], str], numbers: dict[Hashable, int]) -> Side:
        """Number the symbols of sequences; those that are not among `numbers` get the next ones.

        called : the name of a sequence, for errors.
        """
        symbols = [listing(values, called(k)) for k, values in enumerate(sequences)]
        return cls(symbols, [_codes(each, numbers, called(k)) for k, each in enumerate(symbols)], numbers)


class Encoded(NamedTuple):
    """Symbols as numbers: both sides, and the match cost that reads their codes."""

    match: Any
    left: Side
    right: Side


def encode(
    match: Any,
    left: Sequence[Any],
    right: Sequence[Any] | Side | None,
    called: Callable[[int, int], str],
    numeric: str | None = None,
) -> Encoded | None:
    """Give the symbols of many sequences numbers; None if these sequences hold vectors.

    match : how to compare them: "auto" or "equal", a `Lookup`, the name of a score matrix, or a function of one symbol
        of Z and one of X that returns their cost.
    left, right : the Z and the X; right=None: the X are the Z.
    called : the name of sequence k of a side (0 for Z), for errors.
    numeric : why the method needs numbers, for errors; None if it does not.

    Raises ValueError if the symbols cannot be compared.
    """
    given = [*left, *(() if right is None or isinstance(right, Side) else right)]
    if not isinstance(right, Side) and not compares_symbols(match, given):
        return None
    lookup = score_matrix(match) if _is_score(match) else match
    if numeric is not None:
        raise ValueError(f"{numeric}, but {called(0, 0)} holds symbols; use another method, or give numbers")
    equal = lookup in ("auto", "equal")
    if equal and not isinstance(right, Side):
        _refuse_vectors([left] if right is None else [left, right], called)
    if isinstance(right, Side):
        x = right
        z = Side.of(left, partial(called, 0), dict(x.numbers) if equal else {})
    else:
        z = Side.of(left, partial(called, 0), {})
        x = z if right is None else Side.of(right, partial(called, 1), z.numbers if equal else {})
    if equal:
        _refuse_mixed(z, x, called)
        _warn_of_letters([left] if right is None or isinstance(right, Side) else [left, right], z, x, called)
    if match == "auto" and not any(isinstance(values, str) for values in given):
        _refuse_numbers(z.numbers, called(0, 0))
    return Encoded(_compared(lookup, z.numbers, x.numbers), z, x)


def compares_symbols(match: Any, sequences: Iterable[Any]) -> bool:
    """Whether sequences are to be compared as symbols, judging by the match cost and their ends."""
    return isinstance(match, Lookup) or _is_score(match) or any(map(symbolic, sequences))


def _is_score(match: Any) -> bool:
    return isinstance(match, str) and SCORES.fullmatch(match) is not None


def _compared(match: Any, of_z: Mapping[Hashable, int], of_x: Mapping[Hashable, int]) -> Any:
    """The match cost of codes."""
    if match in ("auto", "equal"):
        return "equal"
    Z, X = list(of_z), list(of_x)
    if isinstance(match, Lookup):
        return Coded(match.name, match.between(Z, X))
    if callable(match) and not hasattr(match, "gamma"):
        return Coded("custom", _asked(match, Z, X))
    raise OptionError(
        "match",
        match,
        "use 'equal'",
        ", which compares numbers, but the sequences hold symbols",
        in_python=", or give costs: {('A', 'G'): 0.5, ...}, the name of a score matrix of Biopython such as "
        "'BLOSUM62', or a function of a symbol of Z and one of X",
    )


def _asked(match: Callable[[Any, Any], Any], Z: list[Hashable], X: list[Hashable]) -> Array:
    """The costs that a function gives to all pairs of distinct symbols."""
    found = np.empty((len(Z), len(X)))
    for i, a in enumerate(Z):
        for j, b in enumerate(X):
            cost = match(a, b)
            if not isinstance(cost, (Real, np.bool_)) or not float(cost) > -np.inf:
                raise ValueError(
                    f"match({a!r}, {b!r}) returned {described(cost)}; for symbols, give a function of one symbol of Z "
                    "and one of X that returns a number, or +inf to forbid the match"
                )
            found[i, j] = cost
    return found


def _codes(symbols: Symbols, numbers: dict[Hashable, int], name: str) -> Array:
    """The number of each symbol, (length, 1); new symbols get the next ones. NaN where a symbol is missing."""
    try:
        codes = np.array([numbers.setdefault(symbol, len(numbers)) for symbol in symbols], np.float64).reshape(-1, 1)
    except TypeError:
        k, bad = next((k, each) for k, each in enumerate(symbols) if not _hashable(each))
        raise ValueError(
            f"element {k} of {name} is {described(bad)}, which is not hashable; give symbols that are, such as strings "
            "or tuples"
        ) from None
    gone = [code for symbol, code in numbers.items() if is_missing(symbol)]
    return np.where(np.isin(codes, gone), np.nan, codes) if gone else codes


def _refuse_vectors(sides: Sequence[Sequence[Any]], called: Callable[[int, int], str]) -> None:
    """Raise if some sequences hold symbols and others do not."""
    first: dict[bool, str] = {}
    for side, sequences in enumerate(sides):
        for k, values in enumerate(sequences):
            first.setdefault(symbolic(values), f"{called(side, k)} is {described(values)}")
    if len(first) > 1:
        raise ValueError(
            f"{first[True]}, which holds symbols, and {first[False]}, which does not; give a rectangular array of "
            "real numbers for both, or symbols for both"
        )


def _refuse_mixed(z: Side, x: Side, called: Callable[[int, int], str]) -> None:
    """Raise if symbols are of kinds that are never equal, such as "1" and 1."""
    kinds: dict[type, Hashable] = {}
    for symbol in {**z.numbers, **x.numbers}:
        for kind in (str, bytes, Number):
            if isinstance(symbol, kind) and not is_missing(symbol):
                kinds.setdefault(kind, symbol)
    if len(kinds) > 1:
        places = [(side, k, each) for side, of in enumerate((z, x)) for k, each in enumerate(of.symbols)]
        found = [
            f"{next(called(side, k) for side, k, each in places if symbol in each)} holds {described(symbol)} "
            f"({type(symbol).__name__})"
            for symbol in islice(kinds.values(), 2)
        ]
        raise ValueError(
            f"{' and '.join(found)}; symbols of different types are never equal, so give all as the same type"
        )


def _warn_of_letters(sides: Sequence[Sequence[Any]], z: Side, x: Side, called: Callable[[int, int], str]) -> None:
    """Warn if letters are compared with words."""
    text = next((called(side, k) for side, of in enumerate(sides) for k, v in enumerate(of) if isinstance(v, str)), "")
    if text and any(isinstance(symbol, str) and len(symbol) > 1 for symbol in {**z.numbers, **x.numbers}):
        warn(f"{text} is a string, so its letters are aligned; pass {text}.split() for words")


def _refuse_numbers(symbols: Iterable[Hashable], name: str) -> None:
    """Raise if symbols are numbers written as strings, which `match="auto"` would compare as strings."""
    symbols = [symbol for symbol in symbols if not is_missing(symbol)]
    try:
        numbers = [float(symbol) for symbol in symbols if isinstance(symbol, (str, bytes))]
    except ValueError:
        return
    if len(numbers) == len(symbols) > 0:
        raise ValueError(
            f"{name} holds numbers as strings, such as {symbols[0]!r}; convert them, as in np.asarray({name}, float), "
            "or give match='equal' to compare the strings"
        )


def symbolic(values: Any) -> bool:
    """Whether a sequence holds symbols rather than numbers or vectors, judging by its ends."""
    if isinstance(values, (str, bytes)):
        return True
    if hasattr(values, "detach") or hasattr(values, "columns"):
        return False
    if hasattr(values, "__array__") and not isinstance(values, np.ndarray):
        values = np.asarray(values)
    if isinstance(values, np.ndarray):
        if values.ndim == 0:
            return False
        if values.dtype.kind != "O":
            return values.dtype.kind in "UST" and values.size == len(values)
        values = values.ravel()
    elif not isinstance(values, Sequence):
        return type(values).__module__.startswith("Bio.")  # Biopython's sequences are no `Sequence`
    ends = [next((each for each in some if each is not None), None) for some in (values, reversed(values))]
    return any(each is not None and _is_symbol(each) for each in ends)


def _is_symbol(each: Any) -> bool:
    if isinstance(each, (str, bytes)):
        return True
    if isinstance(each, (tuple, list)):
        return any(map(_is_symbol, each))
    return not isinstance(each, (Number, np.generic)) and not hasattr(each, "__array__")


def listing(values: Any, name: str) -> Symbols:
    """The symbols of a sequence: the letters of a string, and the elements of anything else."""
    if hasattr(values, "__array__") and not isinstance(values, np.ndarray):
        values = np.asarray(values)
    if isinstance(values, np.ndarray):
        if values.ndim == 0 or values.size != len(values):
            raise ValueError(f"{name} has shape {values.shape}; as symbols, give one per element, (length,)")
        values = values.ravel().tolist()
    if not isinstance(values, Iterable):
        raise ValueError(f"{name} is {described(values)}; give a sequence of symbols, such as a string or a list")
    found = tuple(values)
    if not found:
        raise ValueError(f"{name} is empty; give at least one symbol")
    return found


def _hashable(symbol: object) -> bool:
    try:
        hash(symbol)
    except TypeError:
        return False
    return True


def is_missing(symbol: object) -> bool:
    """Whether a symbol stands for none: None, NaN or NA."""
    return symbol is None or type(symbol).__name__ == "NAType" or (isinstance(symbol, float) and symbol != symbol)
