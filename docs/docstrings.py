"""Docstrings as this project writes them, turned into Markdown for the reference.

`name : what it is` becomes an item of a list, a heading underlined with hyphens is set bold, examples become code, and
"as in `solve`" and `dropdtw.drops` become links to where the reference explains these.
"""

import inspect
import pydoc
import re
from pathlib import Path
from typing import Any

import griffe

ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)")
SECOND_ENTRY = re.compile(r" {3,}(?=\w+(?:, \w+)* : )")
"""A second entry on the same line: three spaces or more before it."""
NAMES = re.compile(r"\w+(?:, \w+)*,")
"""Names that go on in the next line."""
MENTIONED = re.compile(r"as\s+in\s+`[\w.]+`(?:(?:,|\s+and)\s+`[\w.]+`)*|`dropdtw\.[\w.]+`")
EXPLAINED = frozenset(
    place
    for page in (Path(__file__).parent / "api").glob("*.md")
    for place in re.findall(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
)
"""What the pages of the reference explain."""


def to_markdown(text: str, where: str = "") -> str:
    r"""A docstring as Markdown; `where` is the path of what it belongs to.

    >>> print(to_markdown("Add.\n\nParameters\n----------\na, b : numbers,\n    or strings.   c : as in `solve`."))
    Add.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - **`a`, `b`**: numbers,
      or strings.
    - **`c`**: as in [`solve`][dropdtw.api.solve].
    """
    out: list[str] = []
    place = "text"  # or "list", "code"
    for line in _lines(linked(text, where)):
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


def linked(text: str, where: str) -> str:
    """A text in which mentions of what the reference explains are links."""

    def link(name: re.Match[str]) -> str:
        place = explained(name[1], where)
        return name[0] if place is None else f"[{name[0]}][{place}]"

    return MENTIONED.sub(lambda mention: re.sub(r"`([\w.]+)`", link, mention[0]), text)


def explained(name: str, where: str) -> str | None:
    """Where the reference explains a name that the docstring of `where` mentions: the nearest place of that name.

    >>> [explained(name, "dropdtw.corpus.api.retrieve") for name in ("pairwise", "dropdtw.pairwise")]
    ['dropdtw.corpus.pairwise', 'dropdtw.api.pairwise']
    """
    found = [place for place in EXPLAINED if place.rpartition(".")[2] == name.rpartition(".")[2] and place != where]
    if name in found or not found:
        return name if name in found else None
    near = "dropdtw.api" if name.startswith("dropdtw.") else where

    def distance(place: str) -> tuple[int, bool, str]:
        shared = [a == b for a, b in zip(place.split("."), near.split("."), strict=False)]
        return -[*shared, False].index(False), not place.startswith("dropdtw.api."), place

    return min(found, key=distance)


def _lines(text: str) -> list[str]:
    """The lines, with entries apart and the names of an entry in one line."""
    lines: list[str] = []
    for line in text.splitlines():
        if lines and NAMES.fullmatch(lines[-1]) and line.startswith("    "):
            lines[-1] += " " + line.strip()
        else:
            lines += SECOND_ENTRY.split(line) if " : " in line else [line]
    return lines


class Plain(griffe.Extension):
    """Rewrites each docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value, obj.path)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Show the options of a function one by one, as `help` does."""
        said = getattr(pydoc.locate(func.path), "__signature__", None)
        if said is not None:
            func.parameters = griffe.Parameters(*(_parameter(func, each) for each in said.parameters.values()))


def _parameter(func: griffe.Function, each: inspect.Parameter) -> griffe.Parameter:
    if each.name in func.parameters:
        return func.parameters[each.name]
    annotation = None if each.annotation is each.empty else str(each.annotation)
    kind = griffe.ParameterKind.keyword_only
    return griffe.Parameter(each.name, annotation=annotation, kind=kind, default=repr(each.default))
