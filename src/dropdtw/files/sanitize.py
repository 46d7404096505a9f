"""Make untrusted text safe for terminals and spreadsheets."""

from __future__ import annotations

import re
from typing import Final

BREAKS: Final = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, characters that change the direction of writing, and surrogates."""
FORMULA: Final = re.compile(r"\s*[=+\-@＝＋－＠]")
"""The beginning of a cell that spreadsheets evaluate as a formula."""


def one_line(text: str) -> str:
    """Put a text on one line, and replace each control character by a mark.

    >>> one_line("boil \\x1b[31mwater\\nnow")
    'boil �[31mwater now'
    """
    return CONTROLS.sub("\ufffd", BREAKS.sub(" ", text))


def cell(text: str) -> str:
    """Convert a text to a CSV cell: one line, with an apostrophe if spreadsheets would evaluate it as a formula.

    >>> cell("=1+1"), cell("1 egg")
    ("'=1+1", '1 egg')
    """
    line = one_line(text)
    return f"'{line}" if FORMULA.match(line) else line
