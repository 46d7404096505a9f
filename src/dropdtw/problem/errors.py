"""Errors about options: what arrived, what fits, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])


def described(values: object) -> str:
    """A value as messages show it."""
    if isinstance(values, np.ndarray):
        return f"an array of dtype {values.dtype}"
    text = repr(values)
    text = text if len(text) < 60 else text[:57] + "..."
    if not isinstance(values, (list, tuple)):
        return text
    kind = "list" if isinstance(values, list) else "tuple"
    try:
        np.asarray(values)
    except ValueError:
        return f"a {kind} with rows of different lengths, {text}"
    return f"the {kind} {text}"


def shown(value: object) -> str:
    """The value of an option as messages show it: short arrays as lists, long ones by their shape."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 8 else f"an array of shape {value.shape}"
    text = repr(value)
    if "\n" in text:  # a module, a data frame
        return f"a {type(value).__name__}"
    return text if len(text) < 200 else text[:197] + "..."


def choices(value: object, names: Iterable[str]) -> str:
    """Advice for a name that is unknown: the closest known one, and all of them.

    >>> choices("fats", ["fast", "slow"])
    "did you mean 'fast'? Or choose one of 'fast', 'slow'"
    """
    names = tuple(names)
    close = get_close_matches(str(value), names, 1)
    return (f"did you mean {close[0]!r}? Or " if close else "") + f"choose one of {', '.join(map(repr, names))}"


@contextmanager
def naming_item(b: int, count: int) -> Iterator[None]:
    """Name item b of a batch in errors, unless it is the only one."""
    try:
        yield
    except ValueError as error:
        raise error if count == 1 else ValueError(f"item {b}: {error}") from None


class MismatchError(ValueError):
    """Options, or options and data, do not fit together.

    said : the message. It writes an option as "{drop_x}", and with a value as "{many_to_one=True}".
    in_python : what else fits, in Python only.   values : what the message shows under other names in braces.

    >>> error = MismatchError("Z has {K} elements; pass {many_to_one=True}", K=3)
    >>> print(error)
    Z has 3 elements; pass many_to_one=True
    """

    def __init__(self, said: str, *, in_python: str = "", **values: Any) -> None:
        super().__init__(said)
        self.said, self.in_python, self.values = said, in_python, values

    def __reduce__(self) -> Any:
        return partial(type(self), in_python=self.in_python, **self.values), self.args

    def text(self, called: Callable[[str], str]) -> str:
        """The message, with each option under the name that `called` gives it, without advice for Python alone."""
        return self.said.format_map(_OptionNames(called, self.values))

    def __str__(self) -> str:
        return self.text(lambda name: name) + self.in_python


class OptionError(MismatchError):
    """An option has a value that does not fit. Python prints the option's name, the command line its flag.

    name, value : the option and its value.
    expected : what fits, as an instruction ("give a number ≥ 0").
    hint : what else explains the error, between the value and the instruction.

    in_python : what else fits, in Python only.

    `expected` and `hint` write other options in braces, with a value if it matters: "pass {many_to_one=True}".

    >>> error = OptionError("open_x", 2, "give {drop_x} as well", ", but no x may be dropped")
    >>> print(error)
    open_x is 2, but no x may be dropped; give drop_x as well
    >>> error.text(lambda name: "--" + name.replace("_", "-"))
    '--open-x is 2, but no x may be dropped; give --drop-x as well'
    """

    def __init__(self, name: str, value: Any, expected: str, hint: str = "", *, in_python: str = "") -> None:
        ValueError.__init__(self, name, value, expected, hint)
        self.name, self.value, self.expected, self.hint, self.in_python = name, value, expected, hint, in_python

    def __reduce__(self) -> Any:
        return partial(type(self), in_python=self.in_python), self.args

    def text(self, called: Callable[[str], str]) -> str:
        """The message, with each option under the name that `called` gives it, without advice for Python alone."""
        names = _OptionNames(called)
        hint, expected = (part.format_map(names) for part in (self.hint, self.expected))
        return f"{called(self.name)} is {shown(self.value)}{hint}; {expected}"


class _OptionNames(dict[str, str]):
    """The name of every option that a message mentions."""

    def __init__(self, called: Callable[[str], str], values: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(values)
        self.called = called

    def __missing__(self, name: str) -> str:
        return self.called(name)


class UnknownOptionError(OptionError, TypeError):
    """There is no such option. A TypeError too, because Python raises that for an unknown keyword."""

    def __init__(self, name: str, value: Any, known: Iterable[str], of: str) -> None:
        super().__init__(name, value, ", ".join(known), of)

    def __reduce__(self) -> Any:
        return type(self), (self.name, self.value, self.expected.split(", "), self.hint)

    def text(self, called: Callable[[str], str]) -> str:
        """The message: the known options that begin with the name, the closest one, or all of them."""
        known = self.expected.split(", ")
        similar = get_close_matches(self.name, known, 1, cutoff=0.7)  # "order" is not similar to "reducer"
        close = [name for name in known if name.startswith(self.name)] or similar
        fits = " or ".join(map(called, close))
        remedy = f"did you mean {fits}?" if close else f"the options are {', '.join(map(called, known))}"
        return f"{self.hint} has no option {called(self.name)}; {remedy}"


def refuse_unknown(given: Iterable[str], known: Iterable[str], of: str) -> None:
    """Raise if a keyword is not an option; the error names those that fit best.

    given : the keywords.   known : the options.   of : what takes them, for the message.

    >>> refuse_unknown(["mach"], ["match", "method"], "Aligner")
    Traceback (most recent call last):
    dropdtw.problem.errors.UnknownOptionError: Aligner has no option mach; did you mean match?
    >>> refuse_unknown(["drop"], ["drop_x", "drop_z", "match"], "Aligner")
    Traceback (most recent call last):
    dropdtw.problem.errors.UnknownOptionError: Aligner has no option drop; did you mean drop_x or drop_z?
    """
    known = tuple(known)
    for name in given:
        if name not in known:
            raise UnknownOptionError(name, None, known, of)


def refuse_keywords(function: Callable[..., Any], unknown: Mapping[str, Any]) -> None:
    """Raise for keywords that a function caught but does not take; the error names the closest parameter.

    Functions call this themselves, because a wrapper would slow down every call.
    """
    if unknown:
        refuse_unknown(unknown, signature(function).parameters, function.__name__)
