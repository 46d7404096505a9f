"""Registries of the losses and data sets of an experiment. To add one, add an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Entry = TypeVar("Entry")


def find(registry: Mapping[str, Entry], name: str, what: str) -> Entry:
    """Look up an entry; for an unknown name, the error lists the known names.

    >>> find({"smooth": 1, "drop": 2}, "mean", "loss")
    Traceback (most recent call last):
    ValueError: loss is 'mean'; choose one of smooth, drop
    """
    if name not in registry:
        raise ValueError(f"{what} is {name!r}; choose one of {', '.join(registry)}")
    return registry[name]
