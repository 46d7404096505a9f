"""Read the steps of a procedure, one per line."""

from __future__ import annotations

from dropdtw.orders.blocks import read_blocks


def read_steps(text: str) -> list[str]:
    """The steps in a text: its lines without numbers and bullets. Blank lines and lines that begin with # are skipped.

    text : one step per line. If it has blocks such as `any order:` (see `dropdtw.orders.blocks`), use
        `dropdtw.orders.parse_steps`, which also returns the order.

    Returns a list of strings. Raises ValueError if there are no steps, or if a block is malformed.

    >>> from dropdtw.text import read_steps
    >>> read_steps("# Tea\\n1. Boil water\\n\\n2) Warm 2 pots\\n- 3 minutes later: pour\\n")
    ['Boil water', 'Warm 2 pots', '3 minutes later: pour']
    """
    return list(read_blocks(text).names)
