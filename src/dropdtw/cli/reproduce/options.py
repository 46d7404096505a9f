"""Options that several experiments share, and what they mean."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from typing import Annotated, Final

import typer

MODULES: Final = ("torch", "lightning_fabric", "matplotlib", "scipy", "PIL")
"""What every experiment imports sooner or later."""

Seed = Annotated[int, typer.Option(min=0, help="Of everything random: same seed, same numbers.")]

Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="All of it on tiny data, in seconds: good for checking an installation and seeing what a report has. Its "
        "numbers mean nothing.",
    ),
]


def check_installed() -> None:
    """Refuse before anything is trained, rather than when a module turns out to be missing."""
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise ImportError(f"this command needs {', '.join(missing)}: pip install 'dropdtw[experiments]'")


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
