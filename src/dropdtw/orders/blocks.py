"""Read steps and their order from a text: one step per line, and indented blocks.

    Boil water
    any order:
        Warm the pot
        in order:
            Open the tin
            Measure the tea
    one of:
        Add milk
        Add lemon
    optional:
        Add sugar

One of the lines in `WORDS` opens a block. The block contains the lines below it that are indented more. A text without
such lines is a list of steps, however it is indented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dropdtw.orders.order import MOST_NESTED, MOST_STEPS, Order, any_order, as_order, one_of, repeat

MARK: Final = re.compile(
    r"^\s*(?:[-*+•–—▪◦·]+\s+|(?:step\s*)?\(?\d{1,3}\s*[.):](?:\s+|$)|step\s+\d{1,3}\s+|\[[ xX]\]\s+)+", re.I
)
"""Prefixes that are ignored: a bullet, a number, "Step 3:", a checkbox. White space follows: "2.5 kg" has none."""

WORDS: Final = ("any order:", "one of:", "optional:", "repeat:", "in order:")
"""The lines that open a block. Case does not matter."""


class Steps(NamedTuple):
    """Steps by name, and their order.

    names : the texts of the steps; empty if only their numbers are known.
    order : which steps may follow which; None if they follow each other as listed.
    optional : the numbers of the steps that may be left out, ascending.

    >>> from dropdtw.orders import Steps
    >>> Steps(("Boil water", "Add sugar"), optional=(1,)).optional
    (1,)
    """

    names: tuple[str, ...]
    order: Order | None = None
    optional: tuple[int, ...] = ()


class Line(NamedTuple):
    """A line that is not blank: its number, from 1, its indentation, and its text without bullets.

    comment : whether it is an indented comment.
    """

    number: int
    indent: str
    text: str
    comment: bool = False

    @property
    def word(self) -> str | None:
        """The kind of block that the line opens; None if it opens none."""
        said = " ".join(self.text.casefold().split())
        return said if said in WORDS else None


def read_blocks(text: str, number: Callable[[Line], int] | None = None) -> Steps:
    """Read the steps of a text and their order.

    number : returns the number of the step that a line names. Without it, each line is a new step, numbered from 0.

    >>> read_blocks("Boil water\\nany order:\\n  Warm the pot\\n  Open the tin\\noptional:\\n  Add sugar")
    Steps(names=('Boil water', 'Warm the pot', 'Open the tin', 'Add sugar'), order=[0, any_order(1, 2), 3], \
optional=(3,))
    """
    lines = _lines(text)
    if any(line.word for line in lines):
        # In a text with blocks, comments may be indented like the lines around them.
        return _Reader([line for line in lines if not line.comment], number).read()
    if not lines:
        raise ValueError("there are no steps; give a text with one step per line")
    names = tuple(line.text for line in lines)
    return Steps(names, None if number is None else as_order([number(line) for line in lines]))


def _lines(text: str) -> list[Line]:
    found = []
    for n, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        said = MARK.sub("", line).strip()
        if not line.startswith("#") and any(c.isalnum() for c in said):
            bare = line.lstrip()
            found.append(Line(n, line[: len(line) - len(bare)], said, bare.startswith("#")))
    return found


class _Reader:
    """Reader for nested blocks."""

    def __init__(self, lines: Sequence[Line], number: Callable[[Line], int] | None) -> None:
        self.lines, self.number = lines, number
        self.at = 0
        self.names: list[str] = []
        self.optional: set[int] = set()

    def read(self) -> Steps:
        _check_indents(self.lines)
        order = as_order(self.block(None, (), False))
        return Steps(tuple(self.names), None if order.is_plain else order, tuple(sorted(self.optional)))

    def block(self, opener: Line | None, around: tuple[Line, ...], optional: bool) -> list[Order]:
        """The parts of the block that `opener` opens, inside the blocks `around`. Without an opener, the whole text."""
        if len(around) >= MOST_NESTED:
            raise ValueError(f"line {around[-1].number}: blocks are nested more than {MOST_NESTED} deep; flatten them")
        if self.at == len(self.lines) or (opener and len(self.lines[self.at].indent) <= len(opener.indent)):
            assert opener is not None
            raise ValueError(
                f"line {opener.number}: '{opener.text}' opens a block, but the line below it is not indented more; "
                "indent the lines of the block, or reword this line if it is a step"
            )
        indent = self.lines[self.at].indent
        parts: list[Order] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if len(line.indent) < len(indent):
                outer = [len(self.lines[0].indent), *(len(b.indent) for b in around)]
                if opener is None or (len(line.indent) > len(opener.indent) or len(line.indent) not in outer):
                    raise ValueError(
                        f"line {line.number}: it is indented by {len(line.indent)}, which matches no block around it; "
                        "indent it like the block that it belongs to"
                    )
                break
            if len(line.indent) > len(indent):
                raise ValueError(
                    f"line {line.number}: it is indented more than line {self.lines[self.at - 1].number}, which does "
                    f"not open a block; open one with {', '.join(WORDS[:-1])} or {WORDS[-1]}, or indent both equally"
                )
            self.at += 1
            parts += self.part(line, around, optional)
        return parts

    def part(self, line: Line, around: tuple[Line, ...], optional: bool) -> list[Order]:
        """The parts that a line stands for: a step, or the block that it opens.

        An optional block is inlined, except among alternatives, where it is one of them.
        """
        word = line.word
        if word is None:
            step = len(self.names) if self.number is None else self.number(line)
            self.names.append(line.text)
            if len(self.names) > MOST_STEPS:
                raise ValueError(f"line {line.number}: there are more than {MOST_STEPS} steps; split the text")
            if optional:
                self.optional.add(step)
            return [Order("step", (step,))]
        holder = next((b for b in reversed(around) if b.word == "any order:"), None)
        if holder and word in ("one of:", "repeat:"):
            raise ValueError(
                f"line {line.number}: '{line.text}' is inside '{holder.text}' (line {holder.number}), whose "
                f"steps come exactly once; move '{word}' out of it"
            )
        parts = self.block(line, (*around, line), optional or word == "optional:")
        if word == "optional:":
            return [as_order(parts)] if around and around[-1].word == "one of:" else parts
        try:
            if word == "any order:":
                return [any_order(*parts)]
            if word == "one of:":
                return [one_of(*parts)]
            return [repeat(parts) if word == "repeat:" else as_order(parts)]
        except ValueError as error:
            raise ValueError(f"line {line.number}: {error}") from None


def _check_indents(lines: Sequence[Line]) -> None:
    """Raise if the depth of an indentation is ambiguous."""
    first: Line | None = None
    for line in lines:
        kinds = {"\t": "tabs", " ": "spaces"}
        if not set(line.indent) <= set(kinds):
            raise ValueError(f"line {line.number}: it is indented with neither spaces nor tabs; use spaces")
        if len(set(line.indent)) > 1:
            raise ValueError(f"line {line.number}: it is indented with tabs and spaces; use only spaces")
        if not line.indent:
            continue
        first = first or line
        if line.indent[0] != first.indent[0]:
            raise ValueError(
                f"line {line.number}: it is indented with {kinds[line.indent[0]]}, but line {first.number} with "
                f"{kinds[first.indent[0]]}; use only spaces"
            )
