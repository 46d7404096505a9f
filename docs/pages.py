"""What becomes of each page after MkDocs has made HTML of it: what a reader copies, and where numbers may break."""

from __future__ import annotations

import html
import re
from typing import Any

SESSION = re.compile(
    r'<div class="(?P<kind>[^"]*\bhighlight)">(?P<code><pre>(?:(?!</pre>).)*<span class="gp">.*?</pre>)', re.DOTALL
)
"""A block of code with prompts."""
CODE = re.compile(r"(<pre.*?</pre>|<code.*?</code>|<[^>]*>)", re.DOTALL)
UNIT = re.compile(r"(?<=\d) (?=(?:%|±|×|[kMG]?i?B\b|ms\b|µs\b|s\b))|(?<=[±×]) (?=\d)")
"""A space inside a quantity."""


def on_page_content(content: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    return unbroken(copyable(content))


def copyable(content: str) -> str:
    """Sessions of Python with the code alone for the copy button, without prompts and results."""

    def with_code(block: re.Match[str]) -> str:
        text = html.unescape(re.sub(r"<[^>]*>", "", block["code"]))
        return f'<div class="{block["kind"]}" data-copy="{html.escape(typed(text))}">{block["code"]}'

    return SESSION.sub(with_code, content)


def typed(session: str) -> str:
    r"""What a person types in a session; an empty line ends an indented block, as an interpreter wants it.

    >>> typed(">>> for k in range(2):\n...     print(k)\n0\n1\n>>> 1 + 1\n2\n")
    'for k in range(2):\n    print(k)\n\n1 + 1\n'
    """
    lines: list[str] = []
    for line in session.splitlines():
        prompt, code = line[:4].rstrip(), line[4:]
        if prompt == ">>>" and lines and lines[-1].startswith(" "):
            lines.append("")
        if prompt in (">>>", "..."):
            lines.append(code)
    return "\n".join(lines) + "\n"


def unbroken(content: str) -> str:
    """A page whose numbers stay on one line with their units and errors; code is left alone.

    >>> unbroken("<p>97.0 ± 0.22 of <code>1 %</code></p>")
    '<p>97.0\\xa0±\\xa00.22 of <code>1 %</code></p>'
    """
    parts = CODE.split(content)
    parts[::2] = [UNIT.sub("\N{NO-BREAK SPACE}", part) for part in parts[::2]]
    return "".join(parts)
