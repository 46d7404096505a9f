"""Beyond the paper: inference and training when steps may occur in any order that a recipe allows."""

from typing import Final

PARTS: Final = ("inference", "training", "digits")
"""The experiments of `python -m reproduction orders`."""
