"""Steps and their order as people write them: a step to a line, and indented blocks.

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

A block is opened by one of the lines in `WORDS`, and holds the lines that are indented more. A text without such lines
is a list of steps, however it is indented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dropdtw.orders.order import MOST_NESTED, MOST_STEPS, Order, any_order, as_order, one_of, repeat

MARK: Final = re.compile(
    r"^\s*(?:[-*+•–—▪◦·]+\s+|(?:step\s*)?\(?\d{1,3}\s*[.):]\s*|step\s+\d{1,3}\s+|\[[ xX]\]\s+)+", re.I
)
"""What may stand before a step: a bullet, a number, "Step 3:", a box to tick."""

WORDS: Final = ("any order:", "one of:", "optional:", "repeat:", "in order:")
"""The lines that open a block, in small or capital letters."""


class Steps(NamedTuple):
    """Steps by name, and what is known of their order.

    names : their texts; empty where only numbers are known.
    order : None: they follow each other as listed.
    optional : the numbers of those that may be left out, ascending.
    """

    names: tuple[str, ...]
    order: Order | None = None
    optional: tuple[int, ...] = ()


class Line(NamedTuple):
    """A line that says something: its number, from 1, its indentation, its text without bullets.

    comment : whether it is a comment that is indented.
    """

    number: int
    indent: str
    text: str
    comment: bool = False

    @property
    def word(self) -> str | None:
        """The block that it opens, if it opens one."""
        said = " ".join(self.text.casefold().split())
        return said if said in WORDS else None


def read_blocks(text: str, number: Callable[[Line], int] | None = None) -> Steps:
    """The steps of a text, and their order.

    number : the number of the step that a line names; without it each line is a step of its own, numbered from 0.

    >>> read_blocks("Boil water\\nany order:\\n  Warm the pot\\n  Open the tin\\noptional:\\n  Add sugar")
    Steps(names=('Boil water', 'Warm the pot', 'Open the tin', 'Add sugar'), order=[0, any_order(1, 2), 3], \
optional=(3,))
    """
    lines = _lines(text)
    if any(line.word for line in lines):
        # Where blocks are meant, comments may be indented like what they stand beside.
        return _Reader([line for line in lines if not line.comment], number).read()
    if not lines:
        raise ValueError("there are no steps; give a text with one step to a line")
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
    """Reads blocks, one inside the other."""

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
        """The parts of the block that `opener` opens, inside the blocks `around`; None: the text as a whole."""
        if len(around) >= MOST_NESTED:
            raise ValueError(f"line {around[-1].number}: blocks lie inside each other more than {MOST_NESTED} deep")
        if self.at == len(self.lines) or (opener and len(self.lines[self.at].indent) <= len(opener.indent)):
            assert opener is not None
            raise ValueError(
                f"line {opener.number}: '{opener.text}' opens a block, but no line below it is indented more; indent "
                "what belongs to it, or reword the line if it is a step"
            )
        indent = self.lines[self.at].indent
        parts: list[Order] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if len(line.indent) < len(indent):
                outer = [len(self.lines[0].indent), *(len(b.indent) for b in around)]
                if opener is None or (len(line.indent) > len(opener.indent) or len(line.indent) not in outer):
                    raise ValueError(
                        f"line {line.number}: it is indented by {len(line.indent)}, less than the lines above it, but "
                        "as no block around it; indent it like the block that it belongs to"
                    )
                break
            if len(line.indent) > len(indent):
                raise ValueError(
                    f"line {line.number}: it is indented more than line {self.lines[self.at - 1].number}, which opens "
                    f"no block; begin a block with one of {', '.join(WORDS)}, or indent both alike"
                )
            self.at += 1
            parts += self.part(line, around, optional)
        return parts

    def part(self, line: Line, around: tuple[Line, ...], optional: bool) -> list[Order]:
        """What a line stands for: a step, or the block it opens. Optional steps stand where their block stands."""
        word = line.word
        if word is None:
            step = len(self.names) if self.number is None else self.number(line)
            self.names.append(line.text)
            if len(self.names) > MOST_STEPS:
                raise ValueError(f"line {line.number}: there are more than {MOST_STEPS} steps; divide the text")
            if optional:
                self.optional.add(step)
            return [Order("step", (step,))]
        holder = next((b for b in reversed(around) if b.word == "any order:"), None)
        if holder and word in ("one of:", "repeat:"):
            raise ValueError(
                f"line {line.number}: '{line.text}' stands inside '{holder.text}' (line {holder.number}); '{word}' may "
                f"hold '{holder.word}', but not stand inside it"
            )
        parts = self.block(line, (*around, line), optional or word == "optional:")
        if word == "optional:":
            return parts
        try:
            if word == "any order:":
                return [any_order(*parts)]
            if word == "one of:":
                return [one_of(*parts)]
            return [repeat(parts) if word == "repeat:" else as_order(parts)]
        except ValueError as error:
            raise ValueError(f"line {line.number}: {error}") from None


def _check_indents(lines: Sequence[Line]) -> None:
    """Refuse indentation of which it is not clear how deep it is."""
    first: Line | None = None
    for line in lines:
        kinds = {"\t": "tabs", " ": "spaces"}
        if not set(line.indent) <= set(kinds):
            raise ValueError(f"line {line.number}: it is indented with something else than spaces; use spaces")
        if len(set(line.indent)) > 1:
            raise ValueError(f"line {line.number}: it is indented with tabs and spaces; use spaces alone")
        if not line.indent:
            continue
        first = first or line
        if line.indent[0] != first.indent[0]:
            raise ValueError(
                f"line {line.number}: it is indented with {kinds[line.indent[0]]}, but line {first.number} with "
                f"{kinds[first.indent[0]]}; use spaces alone"
            )
