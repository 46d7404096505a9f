"""Options that several experiments share, and what they mean."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(min=0, help="Of everything random: same seed, same numbers.")]


def command() -> str:
    """The command that is running, for reports."""
    return shlex.join(["dropdtw", *sys.argv[1:]])


def device(name: str) -> str:
    """The device of this name, if PyTorch can use it."""
    import torch

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError):
        raise ValueError(f"there is no device {name!r} here; use --device cpu") from None
    return name
