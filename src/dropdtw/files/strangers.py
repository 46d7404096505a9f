"""Text that others wrote, made safe for terminals and spreadsheets."""

from __future__ import annotations

import re
from typing import Final

BREAKS: Final = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What terminals obey instead of showing it, what turns the direction of writing, and what is no letter at all."""
FORMULA: Final = re.compile(r"\s*[=+\-@＝＋－＠]")
"""How a cell begins that spreadsheets compute."""


def one_line(text: str) -> str:
    """A text on one line, with a mark instead of each character that a terminal would obey.

    >>> one_line("boil \\x1b[31mwater\\nnow")
    'boil �[31mwater now'
    """
    return CONTROLS.sub("\ufffd", BREAKS.sub(" ", text))


def cell(text: str) -> str:
    """A text as a cell of CSV: one line, with an apostrophe where spreadsheets would take it for a formula.

    >>> cell("=1+1"), cell("1 egg")
    ("'=1+1", '1 egg')
    """
    line = one_line(text)
    return f"'{line}" if FORMULA.match(line) else line
