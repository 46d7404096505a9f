"""Docstrings as this project writes them, turned into Markdown for the reference.

`name : what it is` becomes an item of a list, a heading underlined with hyphens is set bold, and examples become code.
"""

import re
from typing import Any

import griffe

ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)")
SECOND_ENTRY = re.compile(r" {3,}(?=\w+(?:, \w+)* : )")
"""A second entry on the same line: three spaces or more before it."""


def to_markdown(text: str) -> str:
    r"""A docstring as Markdown.

    >>> print(to_markdown("Add.\n\nParameters\n----------\na, b : numbers,\n    or strings.   c : more."))
    Add.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - **`a`, `b`**: numbers,
      or strings.
    - **`c`**: more.
    """
    out: list[str] = []
    place = "text"  # or "list", "code"
    for line in _lines(text):
        entry = ENTRY.fullmatch(line)
        if place == "code" and line:
            out.append(line)
            continue
        if place == "code":
            out += ["```", ""]
            place = "text"
        elif line.startswith(">>> "):
            out += ["", "```pycon", line]
            place = "code"
        elif re.fullmatch("-{3,}", line) and out:
            out[-1] = f"**{out[-1]}**"
            out.append("")
        elif entry:
            if place == "text":
                out.append("")
            names = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            out.append(f"- **{names}**: {entry[2]}")
            place = "list"
        elif place == "list" and line.startswith("    "):
            out.append("  " + line.strip())
        else:
            if place == "list" and line:
                out.append("")
            place = "text"
            out.append(line)
    if place == "code":
        out.append("```")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out))


def _lines(text: str) -> list[str]:
    return [part for line in text.splitlines() for part in (SECOND_ENTRY.split(line) if " : " in line else [line])]


class Plain(griffe.Extension):
    """Rewrites each docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
