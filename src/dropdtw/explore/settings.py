"""The settings of a request. Every request carries all of its settings, so that browser tabs cannot mix theirs up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

Call = dict[str, Any]
"""Keyword arguments of `dropdtw.solve`."""

DROPS: Final = ("none", "constant", "percentile", "given")
WINDOWS: Final = ("none", "share", "columns")
CHARGES: Final = ("open_x", "open_z", "warp")


@dataclass(frozen=True)
class Choice:
    """A kind and its number, for a drop cost, a threshold or a window."""

    kind: str = "none"
    value: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Encode as the page sends it."""
        return {"kind": self.kind, "value": self.value}


@dataclass(frozen=True)
class Settings:
    """How to align.

    match : None if only match costs were loaded.   gamma : None if no posterior is wanted.
    open_x, open_z, warp : extra cost of each run of drops and of each repeated element; 0 for none.
    """

    match: str | None = None
    method: str = "drop_dtw"
    drop_x: Choice = Choice()
    drop_z: Choice = Choice()
    threshold: Choice = Choice()
    window: Choice = Choice()
    one_to_many: bool = True
    many_to_one: bool = True
    contiguous: bool = False
    open_x: float = 0.0
    open_z: float = 0.0
    warp: float = 0.0
    gamma: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Encode as the page sends them."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: v.to_json() if isinstance(v, Choice) else v for name, v in values.items()}


def parse(data: object) -> Settings:
    """Validate the settings in a request; ValueError if they are malformed.

    >>> parse({"method": "dtw", "window": {"kind": "share", "value": 0.5}}).window
    Choice(kind='share', value=0.5)
    """
    if not isinstance(data, dict):
        raise ValueError(f"settings are {_name(data)}; send an object")
    known = {f.name for f in fields(Settings)}
    if unknown := sorted(set(data) - known):
        raise ValueError(f"settings have {_short(unknown[0])}; the known settings are {', '.join(sorted(known))}")
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name in ("one_to_many", "many_to_one", "contiguous"):
            if not isinstance(value, bool):
                raise ValueError(f"{name} is {_name(value)}; send true or false")
            found[name] = value
        elif name in ("drop_x", "drop_z", "threshold", "window"):
            found[name] = _choice(name, value, WINDOWS if name == "window" else DROPS)
        elif name in CHARGES:
            found[name] = number(name, value)
        elif name == "gamma":
            found[name] = None if value is None else number(name, value)
        elif value is None and name == "match":
            found[name] = None
        elif isinstance(value, str):
            found[name] = value
        else:
            raise ValueError(f"{name} is {_name(value)}; send a string")
    return Settings(**found)


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


def arguments(settings: Settings, given: Mapping[str, Any]) -> Call:
    """The keyword arguments that differ from the defaults.

    given : the drop costs to use for the kind "given", by argument name.

    >>> arguments(Settings(drop_x=Choice("percentile", 30.0), window=Choice("columns", 9.0)), {})
    {'drop_x': 'percentile:30', 'window': 9}
    """
    call: Call = {}
    for name in ("drop_x", "drop_z", "threshold"):
        choice: Choice = getattr(settings, name)
        if choice.kind == "constant":
            call[name] = choice.value
        elif choice.kind == "percentile":
            call[name] = f"percentile:{_plain(choice.value)}"
        elif choice.kind == "given":
            if name not in given:
                raise ValueError(f"{name} is 'given', but the data contain no drop costs; choose another kind")
            call[name] = given[name]
    if settings.method != "drop_dtw":
        call["method"] = settings.method
    for name, default in (("one_to_many", True), ("many_to_one", True), ("contiguous", False)):
        if getattr(settings, name) is not default:
            call[name] = getattr(settings, name)
    call |= {name: value for name in CHARGES if (value := getattr(settings, name)) != 0}
    if settings.window.kind != "none":
        value = settings.window.value
        call["window"] = int(value) if settings.window.kind == "columns" else value
    return call


def _plain(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) < 60 else f"{text[:57]}…"
