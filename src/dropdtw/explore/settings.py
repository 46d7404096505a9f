"""The settings of a request. Every request carries all of its settings, so that browser tabs cannot mix theirs up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from dropdtw.problem.errors import OptionError
from dropdtw.problem.options import OPTIONS, Options

DEFAULTS: Final[dict[str, Any]] = {name: option.default for name, option in OPTIONS.items()}
DROPS: Final = ("none", "constant", "percentile", "given")
WINDOWS: Final = ("none", "share", "columns")
UNSEEN: Final = ("order", "reducer", "normalize")
"""Options of an `Aligner` without a control: the order comes with the data, and the page shows the best alignment."""


@dataclass(frozen=True)
class Choice:
    """A kind and its number, for a drop cost, a threshold or a window."""

    kind: str = "none"
    value: float = 0.0

    @classmethod
    def of(cls, name: str, value: Any) -> Self:
        """The choice that stands for the value of an option. Raises OptionError if there is none."""
        if value is None:
            return cls()
        if isinstance(value, str) and value.startswith("percentile:"):
            return cls("percentile", float(value.partition(":")[2]))
        if isinstance(value, int | float) and math.isfinite(value):
            kind = "constant" if name != "window" else "columns" if isinstance(value, int) else "share"
            return cls(kind, float(value))
        raise OptionError(name, value, "the explorer takes a number, percentile:30, suggest or none")

    def option(self, given: Any) -> Any:
        """The value of the option; `given` is the value for the kind "given"."""
        values = {"none": None, "percentile": f"percentile:{_plain(self.value)}", "given": given}
        return values.get(self.kind, int(self.value) if self.kind == "columns" else self.value)

    def to_json(self) -> dict[str, Any]:
        """Encode as the page sends it."""
        return {"kind": self.kind, "value": self.value}


@dataclass(frozen=True)
class PageSettings:
    """The options of an `Aligner` as the controls of the page hold them.

    match : None if only match costs were loaded.   gamma : None if no posterior is wanted.
    """

    match: str | None = None
    method: str = DEFAULTS["method"]
    drop_x: Choice = Choice()
    drop_z: Choice = Choice()
    threshold: Choice = Choice()
    window: Choice = Choice()
    one_to_many: bool = DEFAULTS["one_to_many"]
    many_to_one: bool = DEFAULTS["many_to_one"]
    contiguous: bool = DEFAULTS["contiguous"]
    open_x: float = DEFAULTS["open_x"]
    open_z: float = DEFAULTS["open_z"]
    warp: float = DEFAULTS["warp"]
    gamma: float | None = None

    @classmethod
    def of(cls, options: Options) -> Self:
        """The settings that show these options. Raises OptionError if an option has no control."""
        changed = {name: value for name, value in options.changed.items() if name not in UNSEEN}
        for name in changed:
            if name not in CONTROLS:
                raise OptionError(name, changed[name], "leave it out", ", which the explorer cannot show")
            if isinstance(CONTROLS[name], Choice):
                changed[name] = Choice.of(name, changed[name])
        return cls(**changed)

    def options(self, given: Mapping[str, Any]) -> Options:
        """The options of the alignment.

        given : the drop costs to use for the kind "given", by argument name.

        >>> PageSettings(drop_x=Choice("percentile", 30.0), window=Choice("columns", 9.0)).options({})
        Options(drop_x='percentile:30', window=9)
        """
        values: dict[str, Any] = {}
        for name in CONTROLS:
            value = getattr(self, name)
            if isinstance(value, Choice):
                if value.kind == "given" and name not in given:
                    raise OptionError(name, "given", "choose another kind", ", but the data contain no drop costs")
                value = value.option(given.get(name))
            if value is not None:
                values[name] = value
        return Options(**values)

    def to_json(self) -> dict[str, Any]:
        """Encode as the page sends them."""
        values = {name: getattr(self, name) for name in CONTROLS}
        return {name: v.to_json() if isinstance(v, Choice) else v for name, v in values.items()}


CONTROLS: Final = {each.name: each.default for each in fields(PageSettings)}
"""The controls of the page with their defaults."""


def parse(data: object) -> PageSettings:
    """Validate the settings in a request; ValueError if they are malformed.

    >>> parse({"method": "dtw", "window": {"kind": "share", "value": 0.5}}).window
    Choice(kind='share', value=0.5)
    """
    if not isinstance(data, dict):
        raise ValueError(f"settings are {_name(data)}; send an object")
    if unknown := sorted(set(data) - set(CONTROLS)):
        raise ValueError(f"settings have {_short(unknown[0])}; the known settings are {', '.join(sorted(CONTROLS))}")
    return PageSettings(**{name: _checked(name, value) for name, value in data.items()})


def _checked(name: str, value: object) -> Any:
    """The value of a control, of the same type as its default."""
    default = CONTROLS[name]
    if isinstance(default, Choice):
        return _choice(name, value, WINDOWS if name == "window" else DROPS)
    if value is None and default is None:
        return None
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {_name(value)}; send true or false")
        return value
    if isinstance(default, float) or name == "gamma":
        return number(name, value)
    if not isinstance(value, str):
        raise ValueError(f"{name} is {_name(value)}; send a string")
    return value


def number(name: str, value: object) -> float:
    """Validate a finite number; ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {_name(value)}; send a number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ValueError(f"{name} is too large; send a finite number")
    return found


def whole(name: str, value: object, below: int) -> int:
    """Validate an integer in 0 … `below` − 1; ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise ValueError(f"{name} is {_short(value)}; send an integer from 0 to {below - 1}")
    return value


def _choice(name: str, value: object, kinds: tuple[str, ...]) -> Choice:
    if not isinstance(value, dict) or not set(value) <= {"kind", "value"} or value.get("kind") not in kinds:
        raise ValueError(f'{name} is {_short(value)}; send {{"kind": one of {", ".join(kinds)}, "value": a number}}')
    size = number(name, value.get("value", 0))
    if value["kind"] == "columns" and size != int(size):
        raise ValueError(f"{name} is {size:g} columns; send an integer")
    # Clear values that have no effect, so that equivalent settings compare equal.
    return Choice(value["kind"], 0.0 if value["kind"] in ("none", "given") else size)


def _plain(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) < 60 else f"{text[:57]}…"
