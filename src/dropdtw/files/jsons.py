"""Parse untrusted JSON: every failure is a ValueError."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def loads(text: str | bytes, *, parse_int: Callable[[str], Any] | None = None) -> Any:
    """Parse a JSON text. `parse_int` converts the digits of an integer. Raises ValueError if the text is invalid."""
    try:
        return json.loads(text, parse_int=parse_int)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def brief(value: Any) -> str:
    """The first 80 characters of a value as JSON."""
    try:
        return json.dumps(value)[:80]
    except RecursionError:
        return "nested too deeply"
