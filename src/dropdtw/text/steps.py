"""The steps of a procedure, one to a line."""

from __future__ import annotations

import re
from typing import Final

MARK: Final = re.compile(
    r"^\s*(?:[-*+•–—▪◦·]+\s+|(?:step\s*)?\(?\d{1,3}\s*[.):]\s*|step\s+\d{1,3}\s+|\[[ xX]\]\s+)+", re.I
)
"""What may stand before a step: a bullet, a number, "Step 3:", a box to tick."""


def read_steps(text: str) -> list[str]:
    """The steps in a text: its lines without numbers and bullets; blank lines and lines that begin with # are no steps.

    >>> read_steps("# Tea\\n1. Boil water\\n\\n2) Warm 2 pots\\n- 3 minutes later: pour\\n")
    ['Boil water', 'Warm 2 pots', '3 minutes later: pour']
    """
    lines = [MARK.sub("", line).strip() for line in text.lstrip("\ufeff").splitlines() if not line.startswith("#")]
    steps = [line for line in lines if any(c.isalnum() for c in line)]
    if not steps:
        raise ValueError("there are no steps; give a text with one step to a line")
    return steps
