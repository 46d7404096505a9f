"""Registries: what an experiment offers by name. A new entry is all that a new loss or data set needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Entry = TypeVar("Entry")


def find(registry: Mapping[str, Entry], name: str, what: str) -> Entry:
    """The entry of this name; where there is none, the error lists the names.

    >>> find({"smooth": 1, "drop": 2}, "mean", "loss")
    Traceback (most recent call last):
    ValueError: loss is 'mean'; choose one of smooth, drop
    """
    if name not in registry:
        raise ValueError(f"{what} is {name!r}; choose one of {', '.join(registry)}")
    return registry[name]
