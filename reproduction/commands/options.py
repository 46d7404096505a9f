"""Options and checks that several experiments share."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from typing import Annotated, Final

import typer

from dropdtw.cli import screen

MODULES: Final = ("torch", "lightning_fabric", "matplotlib", "scipy", "PIL")
"""Modules that every experiment imports at some point."""

Seed = Annotated[int, typer.Option(min=0, help="Random seed; the same seed gives the same numbers.")]

Jobs = Annotated[int, typer.Option(min=1, help="Number of trainings at a time, each in its own process.")]

Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="Run everything on tiny data, in seconds, to check the installation and to see what a report looks like. "
        "The numbers mean nothing.",
    ),
]


def check_installed() -> None:
    """Raise if a required module is missing, before anything is trained; tell a terminal that loading takes a while."""
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise ImportError(f"this command needs {', '.join(missing)}: run make setup, and .venv/bin/python")
    if sys.stderr.isatty() and "torch" not in sys.modules:
        screen.note("loading PyTorch")


def command() -> str:
    """The command that is running, for reports."""
    return shlex.join(["python", "-m", "reproduction", *sys.argv[1:]])


def device(name: str) -> str:
    """The device of this name, if PyTorch can use it."""
    import torch

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError):
        raise ValueError(f"PyTorch has no device {name!r} on this machine; use --device cpu") from None
    return name
