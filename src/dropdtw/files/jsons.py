"""JSON that may be anything: what cannot be read is a ValueError, however it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def loads(text: str | bytes, *, parse_int: Callable[[str], Any] | None = None) -> Any:
    """What a JSON text says; `parse_int` makes a number of its digits."""
    try:
        return json.loads(text, parse_int=parse_int)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def brief(value: Any) -> str:
    """The beginning of a value, as JSON."""
    try:
        return json.dumps(value)[:80]
    except RecursionError:
        return "nested too deeply"
