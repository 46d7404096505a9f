"""Warnings that point at the caller's line, however deep inside the library they arise."""

from __future__ import annotations

import os
import sys
import warnings
from numbers import Real

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning whose location is the innermost stack frame outside the library."""
    level, frame = 1, sys._getframe()
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_of_hard_gamma(reducer: str, gamma: object, default: float = 0.0) -> None:
    """Warn of a temperature that the hard minimum ignores. default : a γ that nobody has to have given."""
    if reducer == "hard" and isinstance(gamma, Real) and gamma not in (0, default):
        warn(f"gamma is {gamma!r}, but the minimum is hard and does not use it; give reducer='soft' or 'smooth'")
