"""The options of an alignment, declared once: name, type, default, documentation and flag of the command line."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass, field, fields
from functools import cached_property
from inspect import Parameter, signature
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Final, Self, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from dropdtw import drops
from dropdtw.costs import MatchCost, Softmax
from dropdtw.drops import DropCost, PerElement
from dropdtw.orders.order import Order, OrderLike, as_order
from dropdtw.problem.charges import Opening
from dropdtw.problem.errors import OptionError, refuse_unknown
from dropdtw.problem.inputs import as_mask, detached
from dropdtw.problem.symbols import Lookup, as_lookup
from dropdtw.tables.methods import METHODS, Method, MethodLike

_Function = TypeVar("_Function", bound=Callable[..., Any])

# --- Values in one form, so that equal options compare equal ----------------------------------------------------------


def _as_given(value: Any, name: str) -> Any:
    return value


def _number(value: Any, name: str) -> Any:
    """A number of Python's own; whatever else arrived is refused by `Spec.of`."""
    if not isinstance(value, np.generic) or isinstance(value, np.bool_) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _drop(value: Any, name: str) -> Any:
    """A number or a string where one says it all, a read-only array for numbers per element, otherwise as given."""
    value = _number(value, name)
    if type(value) in (int, float):
        return value
    rule = drops.resolve(value, name)
    if isinstance(rule, PerElement) and isinstance(numbers := detached(rule.values), (np.ndarray, list, tuple)):
        return _array(numbers)
    said = drops.spelled(rule)
    return value if said is None else said


def _array(values: Any) -> Any:
    """A read-only copy; values that are not numbers stay as they are, because an error will show them."""
    if isinstance(values, np.ma.MaskedArray) or any(isinstance(row, np.ma.MaskedArray) for row in values):
        return values
    try:
        found = np.array(values)
    except ValueError:  # rows of different lengths
        return values
    if found.dtype.kind not in "iuf":
        return values
    found.flags.writeable = False
    return found


def _mask(value: Any, name: str) -> Any:
    if value is None:
        return None
    found = as_mask(value).copy()
    found.flags.writeable = False
    return found


def _match(value: Any, name: str) -> Any:
    return as_lookup(value)


def _ids(value: Any, name: str) -> Any:
    """A tuple of plain values that can be hashed."""
    if value is None:
        return None
    try:
        listed = np.asarray(value).tolist() if isinstance(value, np.ndarray) else list(value)
        hash(tuple(listed))
    except TypeError:
        raise OptionError(name, value, "give one number or string per element of Z") from None
    return tuple(each.item() if isinstance(each, np.generic) else each for each in listed)


def _anchors(value: Any, name: str) -> Any:
    """Pairs (i, j) in order, each once."""
    if value is None:
        return None
    try:
        listed = sorted({(operator.index(i), operator.index(j)) for i, j in value})
        if any(isinstance(each, bool) for pair in value for each in pair) or (listed and min(map(min, listed)) < 0):
            raise TypeError
    except (TypeError, ValueError):
        raise OptionError(name, value, "give a list of pairs (i, j) of indices ≥ 0: z_i matches x_j") from None
    for a, b in pairwise(listed):
        if b[1] < a[1]:
            raise OptionError(name, value, "remove one of them", f", but {a} and {b} cross")
    return tuple(listed) or None


def _order(value: Any, name: str) -> Any:
    return None if value is None else as_order(value)


def _method(value: Any, name: str) -> Any:
    return value.name if isinstance(value, Method) and value.built_in and value.made_by is None else value


def about(
    doc: str,
    *,
    clean: Callable[[Any, str], Any] = _as_given,
    metavar: str | None = None,
    instead: str | None = None,
) -> dict[str, Any]:
    """Describe an option.

    doc : what it means.   clean : brings its value into one form.
    metavar : its value in the help of the command line; None if it has no flag, unless it is true or false.
    instead : what to do instead in a loss, if losses do not have it.
    """
    return {"doc": doc, "clean": clean, "metavar": metavar, "instead": instead}


class _Named:
    """Refuses unknown keywords with the closest known one."""

    def __new__(cls, *values: Any, **options: Any) -> Self:
        refuse_unknown(options, OPTIONS, cls.__name__)
        return super().__new__(cls)


@dataclass(frozen=True, eq=False, repr=False)
class Options(_Named):
    """How two sequences are aligned, as the caller said it. `dropdtw.solve` and `dropdtw.align` explain the options.

    Arrays are copied, read-only, and compared by content; functions and modules are compared by identity.
    """

    drop_x: DropCost = field(
        default=None,
        metadata=about(
            "Cost of dropping an element of X; lower drops more. A number, percentile:30 (of the match costs), "
            "logit:30 (with match softmax), suggest (choose it from the data), or none (drop nothing).",
            clean=_drop,
            metavar="COST",
        ),
    )
    drop_z: DropCost = field(
        default=None, metadata=about("The same for elements of Z, without logit.", clean=_drop, metavar="COST")
    )
    _: KW_ONLY
    match: MatchCost = field(
        default="auto",
        metadata=about(
            "How to compare two elements: auto (euclidean for up to 15 features, cosine for more), cosine, softmax, "
            "softmax:0.1, euclidean, sqeuclidean, cityblock, chebyshev or correlation.",
            clean=_match,
            metavar="NAME",
        ),
    )
    method: MethodLike = field(
        default="drop_dtw", metadata=about(f"Alignment method: {', '.join(METHODS)}.", clean=_method, metavar="NAME")
    )
    one_to_many: bool = field(default=True, metadata=about("Allow one element of Z to match several of X."))
    many_to_one: bool = field(default=True, metadata=about("Allow one element of X to match several of Z."))
    contiguous: bool = field(
        default=False, metadata=about("Drop no element of X between two that match the same element of Z.")
    )
    open_x: Opening = field(
        default=0.0,
        metadata=about(
            "Extra cost of each run of dropped elements of X, which favors fewer, longer runs: a number, or suggest "
            "(choose it from the data). Default: 0.",
            clean=_number,
            metavar="COST",
        ),
    )
    open_z: Opening = field(default=0.0, metadata=about("The same for elements of Z.", clean=_number, metavar="COST"))
    warp: float = field(
        default=0.0,
        metadata=about("Extra cost of each match that repeats an element, 0 or more.", clean=_number, metavar="COST"),
    )
    window: float | None = field(
        default=None,
        metadata=about(
            "Forbid matches farther from the diagonal than this: a number of columns (20) or a fraction of X (0.1).",
            clean=_number,
            metavar="W",
        ),
    )
    mask: npt.ArrayLike | None = field(
        default=None,
        metadata=about(
            "(K, N) bool: which pairs may match.", clean=_mask, instead="use a match function that returns ∞"
        ),
    )
    threshold: DropCost = field(
        default=None,
        metadata=about(
            "For lcss and edr: the highest cost at which two elements count as equal. A number, percentile:30 or "
            "suggest.",
            clean=_drop,
            metavar="COST",
        ),
    )
    order: OrderLike | None = field(default=None, metadata=about("Which steps may follow which.", clean=_order))
    ids: npt.ArrayLike | None = field(
        default=None,
        metadata=about(
            "One name per element of Z: equal names are the same element.", clean=_ids, instead="pass ids= to the loss"
        ),
    )
    reducer: str = field(default="hard", metadata=about("The minimum over alignments: hard, soft or smooth."))
    gamma: float | None = field(
        default=None, metadata=about("Temperature of a soft or smooth minimum, and of probabilities.", clean=_number)
    )
    normalize: str | None = field(
        default=None, metadata=about("What values are divided by: x, z, both, pattern or path.")
    )
    missing: str | None = field(
        default=None,
        metadata=about("What to do with elements that have NaN: drop.", instead="pass x_mask= to the loss"),
    )
    anchors: Sequence[tuple[int, int]] | None = field(
        default=None,
        metadata=about(
            "Pairs (i, j): this z matches this x, and neither is dropped.",
            clean=_anchors,
            metavar="I,J ...",
            instead="use a match function that returns ∞ for what crosses them",
        ),
    )
    per: str | None = field(
        default=None,
        metadata=about(
            "second: multiply the costs of each element of X by its duration.",
            metavar="second",
            instead="multiply C and the drop costs by the durations of the x",
        ),
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, each.metadata["clean"](getattr(self, each.name), each.name))

    @cached_property
    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        values = ((each, getattr(self, each.name)) for each in fields(self))
        return {each.name: value for each, value in values if _key(each.name, value) != _key(each.name, each.default)}

    def replace(self, **changes: Any) -> Self:
        """A copy with other values for some options."""
        return type(self)(**{**self.changed, **changes})

    def __eq__(self, other: object) -> bool:
        return self._keys == other._keys if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._keys)

    @cached_property
    def _keys(self) -> frozenset[tuple[str, Any]]:
        return frozenset((name, _key(name, value)) for name, value in self.changed.items())

    def __reduce__(self) -> Any:
        return _made, (type(self), self.changed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.changed.items())})"

    def to_dict(self) -> dict[str, Any]:
        """The options that differ from their defaults, as JSON can hold them; `from_dict` reads them.

        Raises ValueError if an option is a function, a module or a table of your own.
        """
        return {name: _encoded(name, value) for name, value in self.changed.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote. Raises ValueError if an option is unknown or invalid."""
        refuse_unknown(data, OPTIONS, cls.__name__)
        return cls(**{name: _decoded(name, value) for name, value in data.items()})


def _made(kind: type[Options], changed: dict[str, Any]) -> Options:
    return kind(**changed)


OPTIONS: Final[dict[str, Field[Any]]] = {each.name: each for each in fields(Options)}
"""The declaration of every option, by its name: `type`, `default`, and `metadata` as in `about`."""


# --- The same as keyword arguments, for type checkers: what several functions take, from the fewest to all ------------


class MoveOptions(TypedDict, total=False):
    """Which elements may match several others."""

    one_to_many: bool
    many_to_one: bool
    contiguous: bool
    warp: float


class OpeningOptions(MoveOptions, total=False):
    """With the costs of a run of drops."""

    open_x: Opening
    open_z: Opening


class MethodOptions(OpeningOptions, total=False):
    """With all that says how two sequences of any length are aligned, apart from drop costs and match cost."""

    method: MethodLike
    window: float | None
    threshold: DropCost


class PathOptions(MethodOptions, total=False):
    """With what belongs to one pair of sequences."""

    mask: npt.ArrayLike | None
    order: OrderLike | None
    ids: npt.ArrayLike | None
    anchors: Sequence[tuple[int, int]] | None
    per: str | None


class ElementOptions(TypedDict, total=False):
    """How elements are compared."""

    match: MatchCost
    missing: str | None


class ValueOptions(TypedDict, total=False):
    """Which number is computed."""

    reducer: str
    gamma: float | None
    normalize: str | None


class SequenceOptions(PathOptions, ElementOptions, total=False):
    """All that says how two sequences are aligned, apart from drop costs."""


class CostOptions(PathOptions, ValueOptions, total=False):
    """The options of `dropdtw.cost`."""


class PathsOptions(MethodOptions, ElementOptions, total=False):
    """The options of `dropdtw.alignments`."""


class PairOptions(PathsOptions, ValueOptions, total=False):
    """The options of `dropdtw.pairwise`."""


class DistanceOptions(PathOptions, ElementOptions, ValueOptions, total=False):
    """The options of `dropdtw.distance`."""


def takes(options: type[Any] = dict) -> Callable[[_Function], _Function]:
    """Give a function that takes `**options: Unpack[...]` a signature with each of these options and its default.

    Without options, hide a catch-all that only serves `refuse_keywords`.
    """
    found = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for name, each in OPTIONS.items()
        if name in getattr(options, "__annotations__", ())
    ]
    places = {name: place for place, name in enumerate(OPTIONS)}

    def place(one: Parameter) -> tuple[int, int]:
        """Options come in the order of their declaration, before other keywords."""
        return one.kind, places.get(one.name, len(places)) if one.kind is Parameter.KEYWORD_ONLY else 0

    def decorate(function: _Function) -> _Function:
        said = signature(function)
        own = [each for each in said.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        function.__signature__ = said.replace(parameters=sorted(own + found, key=place))  # type: ignore[attr-defined]
        return function

    return decorate


class _ById:
    """Compares a value by identity."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key(name: str, value: Any) -> Any:
    """What an option is compared by."""
    if type(value) is int and name != "window":  # there an int counts columns, and a float is a fraction
        return (float, value)
    if isinstance(value, np.ndarray):
        whole = value.astype(bool if value.dtype == bool else np.float64) + (0 if value.dtype == bool else 0.0)
        return ("array", whole.shape, whole.tobytes())
    known = (
        value is None or isinstance(value, (bool, int, float, str, tuple, drops.Rule, Order, Lookup)) or callable(value)
    )
    if not known and not isinstance(value, MethodLike):
        return _ById(value)
    try:
        hash(value)
    except TypeError:
        return _ById(value)
    return (type(value), value)


# --- JSON ---------------------------------------------------------------------------------------------------------


def _encoded(name: str, value: Any) -> Any:
    """An option as JSON can hold it."""
    if isinstance(value, np.ndarray):
        return _spelled(value.tolist())
    if value is None or isinstance(value, (bool, int, float, str)):
        return _spelled(value)
    if isinstance(value, Order):
        return value.to_dict()
    if name == "anchors":
        return [list(pair) for pair in value]
    if name == "ids" and all(isinstance(each, (int, float, str)) for each in value):
        return list(value)
    if isinstance(value, Softmax) and value.ids is None:
        return f"softmax:{value.gamma!r}"
    if isinstance(value, Softmax) and all(isinstance(each, (int, str)) for each in value.ids or ()):
        return {"softmax": value.gamma, "ids": list(value.ids or ())}
    if isinstance(value, Lookup) and all(isinstance(each, (int, float, str)) for pair in value.costs for each in pair):
        return {"lookup": _spelled(value.to_lists())}
    if isinstance(value, Method) and value.made_by is not None:
        maker, arguments = value.made_by
        return {maker.__name__: list(arguments)}
    advice = "give a name or numbers, or pickle the Aligner (of a loss with parameters, save the state_dict)"
    raise OptionError(name, value, advice, ", which JSON cannot hold")


def _decoded(name: str, value: Any) -> Any:
    """Read what `_encoded` wrote."""
    try:
        return _read(name, value)
    except (KeyError, TypeError, AttributeError) as error:
        raise OptionError(name, value, "give it as Aligner.to_dict writes it") from error


def _read(name: str, value: Any) -> Any:
    if name in ("drop_x", "drop_z", "threshold"):
        return _numbers(value)
    if name == "match" and isinstance(value, dict):
        if "lookup" in value:
            return Lookup.from_lists(value["lookup"])
        return Softmax(value["softmax"], tuple(value["ids"]))
    if name == "order" and value is not None:
        from dropdtw.orders.text import parse

        return parse(value)
    if name == "method" and isinstance(value, dict):
        import dropdtw

        if len(value) != 1:
            raise KeyError(name)
        ((maker, arguments),) = value.items()
        makers: dict[str, Callable[..., Method]] = {
            "free_ends": dropdtw.free_ends, "wdtw": dropdtw.wdtw, "erp": dropdtw.erp
        }  # fmt: skip
        return makers[maker](*arguments)
    return value


def _spelled(value: Any) -> Any:
    """Infinity as a string, because JSON has no number for it."""
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return math.inf if value == "inf" else value
